//go:build ignore

/*
The part of the mock that is a libcuda.so.1: every entry point hands its arguments, unread, to a server process, and does
what the server then asks of the calling thread: read memory, write memory, map memory. It knows nothing of CUDA, so all
that there is to know is in the server. NAMES is a file with a line ENTRY(name) for each entry point.

Each thread has its own connection, which is how the server tells threads apart. One more connection belongs to a thread of
this library: on it the server reads and writes memory while no call waits for it, as a card does by itself.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

enum { argumentCount = 11, unknownError = 999 };

/* What the server sends: the end of a call with its result, or something to do first. */
enum { done, readMemory, writeMemory, readString, mapMemory, unmapMemory };
struct message { uint32_t op; int32_t result; uint64_t address, length; };

static struct sockaddr_un server;
static socklen_t serverLength;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t atThreadEnd;
static int started;
static __thread int connection = -1;

static int sendAll(int fd, const void *p, size_t n) {
	for (const char *c = p; n > 0;) {
		ssize_t k = send(fd, c, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR) continue;
		if (k <= 0) return -1;
		c += k;
		n -= k;
	}
	return 0;
}

static int receiveAll(int fd, void *p, size_t n) {
	for (char *c = p; n > 0;) {
		ssize_t k = recv(fd, c, n, MSG_WAITALL);
		if (k < 0 && errno == EINTR) continue;
		if (k <= 0) return -1;
		c += k;
		n -= k;
	}
	return 0;
}

/* sendMemory sends memory that may be gone: the kernel looks at addresses, so that a wrong one does not end the program. */
static int sendMemory(int fd, uint64_t address, uint64_t n) {
	static const char nothing[4096];
	while (n > 0) {
		ssize_t k = send(fd, (void *)(uintptr_t)address, n, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR) continue;
		if (k < 0 && errno == EFAULT) {
			k = n < sizeof nothing ? n : sizeof nothing;
			if (sendAll(fd, nothing, k)) return -1;
		}
		if (k <= 0) return -1;
		address += k;
		n -= k;
	}
	return 0;
}

/* obey does what the server asks until the call is over. */
static int obey(int fd) {
	struct message m;
	while (receiveAll(fd, &m, sizeof m) == 0) {
		void *p = (void *)(uintptr_t)m.address;
		uint64_t n;
		switch (m.op) {
		case done:
			return m.result;
		case readMemory:
			if (sendMemory(fd, m.address, m.length)) return unknownError;
			break;
		case writeMemory:
			if (receiveAll(fd, p, m.length)) return unknownError;
			break;
		case readString:
			n = strlen(p);
			if (sendAll(fd, &n, sizeof n) || sendAll(fd, p, n)) return unknownError;
			break;
		case mapMemory:
			p = mmap(0, m.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			n = p == MAP_FAILED ? 0 : (uintptr_t)p;
			if (sendAll(fd, &n, sizeof n)) return unknownError;
			break;
		case unmapMemory:
			munmap(p, m.length);
			break;
		}
	}
	return unknownError;
}

static void *obeyForever(void *fd) {
	obey((int)(intptr_t)fd);
	return 0;
}

static void closeConnection(void *fd) { close((int)(intptr_t)fd - 1); }

/* dial makes a connection; the first byte says what it is for: 'c' calls, 'm' memory. */
static int dial(char kind) {
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) return -1;
	while (connect(fd, (struct sockaddr *)&server, serverLength)) {
		if (errno == EINTR) continue;
		close(fd);
		return -1;
	}
	if (sendAll(fd, &kind, 1)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* start starts the server, which is a file beside this library. It ends when the pipe to it is closed, thus with us. */
static void start(void) {
	Dl_info self;
	char path[4096];
	if (!dladdr((void *)start, &self)) return;
	const char *slash = strrchr(self.dli_fname, '/');
	int folder = slash ? slash - self.dli_fname + 1 : 0;
	if (snprintf(path, sizeof path, "%.*sgpunotes-mock", folder, self.dli_fname) >= (int)sizeof path) return;

	uint64_t nonce[2];
	if (getrandom(nonce, sizeof nonce, 0) != sizeof nonce) return;
	char name[64];
	int length = snprintf(name, sizeof name, "gpunotes-mock-%016llx%016llx", (unsigned long long)nonce[0], (unsigned long long)nonce[1]);
	server.sun_family = AF_UNIX;
	memcpy(server.sun_path + 1, name, length); /* a name that begins with 0 is in no file system */
	serverLength = offsetof(struct sockaddr_un, sun_path) + 1 + length;

	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) return;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, all, before;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	posix_spawnattr_init(&how);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &all);
	posix_spawnattr_setpgroup(&how, 0); /* an interrupt from the keyboard is not for it */
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	char *args[] = {path, "-serve", name, 0};
	pid_t pid;
	int failed = posix_spawn(&pid, path, &files, &how, args, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	close(in[0]);
	close(out[1]);
	char ready;
	ssize_t k = -1;
	while (!failed && (k = read(out[0], &ready, 1)) < 0 && errno == EINTR) {}
	close(out[0]);
	if (k != 1) {
		fprintf(stderr, "mock libcuda: cannot start %s\n", path);
		return;
	}
	int fd = dial('m');
	if (fd < 0 || pthread_key_create(&atThreadEnd, closeConnection)) return;
	pthread_t thread;
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the threads of the program */
	started = pthread_create(&thread, 0, obeyForever, (void *)(intptr_t)fd) == 0;
	pthread_sigmask(SIG_SETMASK, &before, 0);
}

static int ask(const char *name, const uint64_t *arguments) {
	int error = errno;
	pthread_once(&once, start);
	if (started && connection < 0 && (connection = dial('c')) >= 0) pthread_setspecific(atThreadEnd, (void *)(intptr_t)(connection + 1));
	struct { uint64_t a[argumentCount]; char name[72]; } call;
	memset(&call, 0, sizeof call);
	memcpy(call.a, arguments, sizeof call.a);
	strncpy(call.name, name, sizeof call.name - 1);
	int result = unknownError;
	if (connection >= 0 && sendAll(connection, &call, sizeof call) == 0) result = obey(connection);
	errno = error;
	return result;
}

/* No entry point has more arguments, none has one of floating point. With the calling conventions of 64-bit Linux an
   integer or pointer can be taken as 64 bits; what the caller did not give is read and never used. */
#define ENTRY(name) \
	__attribute__((visibility("default"))) int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, \
		uint64_t g, uint64_t h, uint64_t i, uint64_t j, uint64_t k) { \
		uint64_t x[argumentCount] = {a, b, c, d, e, f, g, h, i, j, k}; \
		return ask(#name, x); \
	}
#include NAMES
