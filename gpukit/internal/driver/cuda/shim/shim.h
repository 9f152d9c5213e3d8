// What the Go side of the shim calls. Hidden: the program exports nothing of it.
#pragma GCC visibility push(hidden)

// Loads the library and fills the table of functions. Returns NULL, or why not, which the caller frees.
char *gpunotes_cuda_load(const char *file);

// Calls int name(char *buffer, int size) of the library; 0 if it has none.
int gpunotes_cuda_ask(const char *name, char *buffer, int size);

#pragma GCC visibility pop
