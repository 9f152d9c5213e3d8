// Answers bench.py as cpubench/main.go does (time and dump), for the works of works.c.
#define _GNU_SOURCE
#include "server.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined __x86_64__
#include <immintrin.h>
#define pause() _mm_pause()
#else
#define pause() ((void)0)
#endif

struct sizes size;

double *zeros(size_t n) {
  const size_t huge = 2 << 20, bytes = (n * 8 + huge - 1) / huge * huge;
  char *p = mmap(0, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) { perror("mmap"); exit(1); }
  p += -(uintptr_t)p % huge;
  madvise(p, bytes, MADV_HUGEPAGE);
  memset(p, 0, bytes);
  return (double *)p;
}

double spaced(double start, double stop, long n, long i) {
  return i == n - 1 ? stop : (double)i * ((stop - start) / (double)(n - 1)) + start;
}

static double uniform(uint64_t i) { // splitmix64
  uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return (double)((z ^ z >> 31) >> 11) / (double)(1ull << 53);
}

#define INPUT(name, count, element) \
  const double *input_##name(void) { \
    static double *x; \
    if (!x) { long n = count; x = zeros(n); for (long i = 0; i < n; i++) x[i] = element; } \
    return x; \
  }
INPUT(small, ROW, i)
INPUT(discount, size.rows * ROW, i)
INPUT(lat, size.side * size.side, spaced(29, 31, size.side, i % size.side))
INPUT(lon, size.side * size.side, spaced(99, 101, size.side, i / size.side))
INPUT(price, size.options * OPTION_ROW, 5 + 25 * uniform(3 * i))
INPUT(strike, size.options * OPTION_ROW, 1 + 99 * uniform(3 * i + 1))
INPUT(years, size.options * OPTION_ROW, 0.25 + 9.75 * uniform(3 * i + 2))
INPUT(cx, size.pixels, (double)(3 * i) / (double)n - 2)
INPUT(cy, size.pixels, (double)(3 * i) / (double)n - 1.5)

// The smaller number of matrices are the first of the larger, elsewhere.
#define MATRICES(name, element) \
  const double *input_##name(long n) { \
    static double *x[2]; \
    double **to = &x[n == size.resident]; \
    if (!*to) { *to = zeros(n * SIZE); for (long i = 0; i < n * SIZE; i++) (*to)[i] = element; } \
    return *to; \
  }
MATRICES(a, (double)(i % 97) * 0.01)
MATRICES(b, (double)(i % 89) * 0.02 - 0.5)

// The other threads spin for a while before they sleep, each on a processor of its own: what takes less than a
// millisecond would else run on one.
enum { MOST = 64 };
static cpu_set_t allowed;
static int processor_of[MOST];
static struct fellow { atomic_int posted, sleeping; sem_t wake; } fellows[MOST];
static atomic_int done;
static int team;
static long team_count;
static void (*team_f)(long, long);

static void pin(pthread_t t, int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  pthread_setaffinity_np(t, sizeof one, &one);
}

static void part(int i) { team_f(team_count * i / team, team_count * (i + 1) / team); }

static void *help(void *arg) {
  int i = (int)(intptr_t)arg, seen = 0;
  struct fellow *h = &fellows[i];
  for (;;) {
    for (int k = 0; k < 10000 && atomic_load(&h->posted) == seen; k++) pause();
    if (atomic_load(&h->posted) == seen) {
      atomic_store(&h->sleeping, 1);
      if (atomic_load(&h->posted) == seen || atomic_exchange(&h->sleeping, 0) == 0) sem_wait(&h->wake);
      continue;
    }
    seen = atomic_load(&h->posted);
    part(i);
    atomic_fetch_add(&done, 1);
  }
  return 0;
}

void in_parts(int threads, long count, void (*f)(long, long)) {
  if (threads == 1) { f(0, count); return; }
  static int started = 1;
  for (; started < threads; started++) {
    pthread_t t;
    sem_init(&fellows[started].wake, 0, 0);
    if (pthread_create(&t, 0, help, (void *)(intptr_t)started)) { perror("pthread_create"); exit(1); }
    pin(t, processor_of[started]);
  }
  team = threads; team_count = count; team_f = f;
  atomic_store(&done, 0);
  for (int i = 1; i < threads; i++) {
    atomic_fetch_add(&fellows[i].posted, 1);
    if (atomic_exchange(&fellows[i].sleeping, 0)) sem_post(&fellows[i].wake);
  }
  part(0);
  while (atomic_load(&done) < threads - 1) pause();
}

static const struct work *find(const char *name, const char *variant) {
  for (const struct work *w = works; w->name; w++)
    if (!strcmp(w->name, name) && !strcmp(w->variant, variant)) return w;
  return 0;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static void dump(const struct work *w, const char *file) {
  size_t n;
  const void *x = w->result(&n);
  FILE *f = fopen(file, "wb");
  if (!f) { printf("{\"error\": \"cannot write\"}\n"); return; }
  for (size_t i = 0; i < n; i++) {
    double y = w->whole ? (double)((const int64_t *)x)[i] : ((const double *)x)[i];
    fwrite(&y, 8, 1, f);
  }
  printf(fclose(f) ? "{\"error\": \"cannot write\"}\n" : "{}\n");
}

int main(int argc, char **argv) {
  long *to[] = {&size.rows, &size.side, &size.options, &size.pixels, &size.most, &size.matrices, &size.resident, &size.repeats, &size.processors};
  if (argc != 10) { fprintf(stderr, "bench.py calls this program\n"); return 1; }
  for (int i = 0; i < 9; i++)
    if ((*to[i] = atol(argv[i + 1])) < 1) { fprintf(stderr, "size %s\n", argv[i + 1]); return 1; }
  sched_getaffinity(0, sizeof allowed, &allowed);
  int have = 0;
  for (int i = 0; i < CPU_SETSIZE && have < MOST; i++)
    if (CPU_ISSET(i, &allowed)) processor_of[have++] = i;
  if (size.processors > have) { fprintf(stderr, "%ld threads, %d processors\n", size.processors, have); return 1; }
  printf("{\"peer\": \"%s\", \"version\": \"%s\"}\n", build, __VERSION__);
  fflush(stdout);
  char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    char *f[5] = {0}, *s = line;
    line[strcspn(line, "\n")] = 0;
    for (int i = 0; i < 5; i++) f[i] = strsep(&s, "\t");
    const struct work *w = f[4] ? find(f[1], f[2]) : 0;
    if (!w) {
      printf("{\"error\": \"no such work\"}\n");
    } else {
      int threads = atoi(f[3]) > 1 ? (int)size.processors : 1;
      if (threads > 1) pin(pthread_self(), processor_of[0]);
      else sched_setaffinity(0, sizeof allowed, &allowed);
      w->run(threads);
      if (!strcmp(f[0], "dump")) {
        dump(w, f[4]);
      } else {
        printf("{\"ns\": [");
        for (int i = 0, n = atoi(f[4]); i < n; i++) {
          double start = now();
          w->run(threads);
          printf("%s%.0f", i ? ", " : "", now() - start);
        }
        printf("]}\n");
      }
    }
    fflush(stdout);
  }
  return 0;
}
