//go:build cuda

#include "shim.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// Numbers of cuda.h, which this file does without.
enum { success = 0, not_initialized = 3, not_supported = 801 };

static const char *const names[] = {
#define SYMBOL(name) #name,
#include "symbols.h"
#undef SYMBOL
};
enum { count = sizeof names / sizeof *names };

static int early(void) { return not_initialized; }
static int absent(void) { return not_supported; }

// trampolines_*.S jump through it, in the order of names.
__attribute__((visibility("hidden"))) void *gpunotes_cuda_table[count] = { [0 ... count - 1] = (void *)early };

static void *library;
static int (*init)(unsigned);

__attribute__((visibility("hidden"))) int cuInit(unsigned flags) { return init ? init(flags) : success; }

// Of these the later form has the same parameters.
static void *later(void *from, const char *name) {
	static const char *const same[] = { "cuEventElapsedTime", "cuDeviceGetUuid" };
	char v2[64];
	for (unsigned i = 0; i < sizeof same / sizeof *same; i++) {
		if (strcmp(name, same[i]) == 0 && snprintf(v2, sizeof v2, "%s_v2", name) < (int)sizeof v2)
			return dlsym(from, v2);
	}
	return NULL;
}

char *gpunotes_cuda_load(const char *file) {
	void *from = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!from) {
		const char *reason = dlerror();
		return strdup(reason ? reason : "unknown error of dlopen");
	}
	void *f = dlsym(from, "cuInit");
	if (!f) {
		char reason[512];
		snprintf(reason, sizeof reason, "%s has no function cuInit: it is not NVIDIA's libcuda", file);
		dlclose(from);
		return strdup(reason);
	}
	for (int i = 0; i < count; i++) {
		void *p = dlsym(from, names[i]);
		if (!p)
			p = later(from, names[i]);
		gpunotes_cuda_table[i] = p ? p : (void *)absent;
	}
	init = (int (*)(unsigned))f;
	library = from;
	return NULL;
}

int gpunotes_cuda_ask(const char *name, char *buffer, int size) {
	int (*f)(char *, int) = library ? (int (*)(char *, int))dlsym(library, name) : NULL;
	if (!f)
		return 0;
	memset(buffer, 0, size);
	f(buffer, size);
	return 1;
}
