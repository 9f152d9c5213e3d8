// What works.c needs of server.c. The latter is compiled without the flags that are
// measured, so that every build has the same inputs, bit for bit.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { ROW = 20000, FIVE = 5, OPTION_ROW = 512, SIZE = 64 };

// In the order in which bench.py gives them.
extern struct sizes { long rows, side, options, pixels, most, matrices, resident, repeats, processors; } size;

struct work {
  const char *name, *variant;
  void (*run)(int threads);
  const void *(*result)(size_t *n); // n elements
  int whole;                        // they are int64_t, else double
};
extern const struct work works[];
extern const char build[];

// Inputs, made at first use, and memory of zeros on huge pages.
const double *input_small(void), *input_discount(void), *input_lat(void), *input_lon(void);
const double *input_price(void), *input_strike(void), *input_years(void), *input_cx(void), *input_cy(void);
const double *input_a(long n), *input_b(long n);
double *zeros(size_t n);
double spaced(double start, double stop, long n, long i);

// Calls f for each thread with its part of the range below count.
void in_parts(int threads, long count, void (*f)(long from, long to));
