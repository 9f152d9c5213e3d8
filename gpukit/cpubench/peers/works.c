// The works in C, built with the flags that are measured. Loops are behind noipa functions whose sizes the compiler does not know,
// except where the sizes are the point: gcc peels loops of known size and then leaves parts of them scalar.
#include "server.h"
#include <math.h>
#define APART __attribute__((noipa, noinline))

#if defined __AVX512F__ && defined __AVX512DQ__
#include <immintrin.h>
#define HAND
enum { LANES = 8, ROOM = 4 };
typedef __m512d vec;
typedef __m512i ivec;
typedef __mmask8 mask;
#define V(op) _mm512_##op
#define below(m, x, y) _mm512_mask_cmp_pd_mask(m, x, y, _CMP_LE_OQ)
#define count(n, m) _mm512_mask_sub_epi64(n, m, n, _mm512_set1_epi64(-1))
#define some(m) (m)
#define full ((mask)0xff)
#define stream(p, x) _mm512_stream_pd(p, x)
#define store_whole(p, n) _mm512_storeu_si512((void *)(p), n)
#define no_whole _mm512_setzero_si512()
#elif defined __AVX2__ && defined __FMA__
#include <immintrin.h>
#define HAND
enum { LANES = 4, ROOM = 2 }; // sixteen registers hold two vectors of pixels
typedef __m256d vec;
typedef __m256i ivec;
typedef __m256d mask;
#define V(op) _mm256_##op
#define below(m, x, y) _mm256_and_pd(m, _mm256_cmp_pd(x, y, _CMP_LE_OQ))
#define count(n, m) _mm256_sub_epi64(n, _mm256_castpd_si256(m))
#define some(m) _mm256_movemask_pd(m)
#define full _mm256_castsi256_pd(_mm256_set1_epi64x(-1))
#define stream(p, x) _mm256_stream_pd(p, x)
#define store_whole(p, n) _mm256_storeu_si256((void *)(p), n)
#define no_whole _mm256_setzero_si256()
#endif

static double *once(double **p, long n) {
  if (!*p) *p = zeros(n);
  return *p;
}

// Discount.
static double *product_;
static double *product_out(void) { return once(&product_, size.rows * ROW); }
static const void *product_result(size_t *n) { *n = size.rows * ROW; return product_; }

APART static void multiply(double *restrict z, const double *restrict m, const double *restrict x, long rows, long n) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < n; j++) z[i * n + j] = m[j] * x[i * n + j];
}
static void multiply_part(long from, long to) { multiply(product_ + from * ROW, input_small(), input_discount() + from * ROW, to - from, ROW); }
static void discount(int t) { product_out(); input_small(); input_discount(); in_parts(t, size.rows, multiply_part); }

APART static void multiply17(double *restrict z, const double *restrict m, const double *restrict x, long columns, long rows, long n) {
  for (long c = 0; c < columns; c++)
    for (long i = 0; i < rows; i++)
      for (long k = 0; k < n; k++) z[(c * rows + i) * n + k] = m[c * n + k] * x[(c * rows + i) * n + k];
}
static void multiply17_part(long from, long to) {
  long n = size.rows * FIVE;
  multiply17(product_ + from * n, input_small() + from * FIVE, input_discount() + from * n, to - from, size.rows, FIVE);
}
static void discount17(int t) { product_out(); input_small(); input_discount(); in_parts(t, ROW / FIVE, multiply17_part); }

#ifdef HAND
APART static void multiply_stream(double *z, const double *m, const double *x, long rows, long n) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < n; j += LANES) stream(z + i * n + j, V(mul_pd)(V(load_pd)(m + j), V(load_pd)(x + i * n + j)));
  _mm_sfence();
}
static void multiply_stream_part(long from, long to) { multiply_stream(product_ + from * ROW, input_small(), input_discount() + from * ROW, to - from, ROW); }
static void discount_stream(int t) { product_out(); input_small(); input_discount(); in_parts(t, size.rows, multiply_stream_part); }

// A tile of the factor stays in the first cache.
enum { TILE = 2000 };
static void multiply_tile_part(long from, long to) {
  const double *m = input_small(), *x = input_discount();
  for (long j = 0; j < ROW; j += TILE)
    for (long i = from; i < to; i++) multiply_stream(product_ + i * ROW + j, m + j, x + i * ROW + j, 1, TILE);
}
static void discount_tiles(int t) { product_out(); input_small(); input_discount(); in_parts(t, size.rows, multiply_tile_part); }

// Copies of as many bytes.
APART static void copy_plain(double *z, const double *x, long n) {
  for (long j = 0; j < n; j += 4 * LANES) {
    vec a = V(load_pd)(x + j), b = V(load_pd)(x + j + LANES), c = V(load_pd)(x + j + 2 * LANES), d = V(load_pd)(x + j + 3 * LANES);
    V(store_pd)(z + j, a); V(store_pd)(z + j + LANES, b); V(store_pd)(z + j + 2 * LANES, c); V(store_pd)(z + j + 3 * LANES, d);
  }
}
APART static void copy_stream(double *z, const double *x, long n) {
  for (long j = 0; j < n; j += 4 * LANES) {
    vec a = V(load_pd)(x + j), b = V(load_pd)(x + j + LANES), c = V(load_pd)(x + j + 2 * LANES), d = V(load_pd)(x + j + 3 * LANES);
    stream(z + j, a); stream(z + j + LANES, b); stream(z + j + 2 * LANES, c); stream(z + j + 3 * LANES, d);
  }
  _mm_sfence();
}
static void copy_plain_part(long from, long to) { copy_plain(product_ + from * ROW, input_discount() + from * ROW, (to - from) * ROW); }
static void copy_stream_part(long from, long to) { copy_stream(product_ + from * ROW, input_discount() + from * ROW, (to - from) * ROW); }
static void copied_plain(int t) { product_out(); input_discount(); in_parts(t, size.rows, copy_plain_part); }
static void copied_stream(int t) { product_out(); input_discount(); in_parts(t, size.rows, copy_stream_part); }
#endif

// Distance mesh.
static double *far_, *of_lat, *factor, *of_lon;
static volatile double lat2 = 30, lon2 = 101, diameter = 1;
static double *far_out(void) { return once(&far_, size.side * size.side); }
static const void *far_result(size_t *n) { *n = size.side * size.side; return far_; }

APART static void distances(double *restrict z, const double *restrict lat, const double *restrict lon, double lat2, double lon2, double s, long n) {
  for (long i = 0; i < n; i++) {
    double u = sin(0.008726645 * (lat2 - lat[i])), v = sin(0.008726645 * (lon2 - lon[i]));
    double a = u * u + cos(0.01745329 * lat[i]) * cos(0.01745329 * lat2) * (v * v);
    z[i] = atan2(a, 1 - a) * s;
  }
}
static void distances_part(long from, long to) { distances(far_ + from, input_lat() + from, input_lon() + from, lat2, lon2, diameter, to - from); }
static void distance(int t) { far_out(); input_lat(); input_lon(); in_parts(t, size.side * size.side, distances_part); }

APART static void angles(double *restrict z, const double *restrict l, const double *restrict f, const double *restrict o, double s, long rows, long n) {
  for (long y = 0; y < rows; y++)
    for (long x = 0; x < n; x++) {
      double a = l[x] + f[x] * o[y];
      z[y * n + x] = atan2(a, 1 - a) * s;
    }
}
APART static void axes(double *restrict l, double *restrict f, double *restrict o, double lat2, double lon2, long n) {
  for (long i = 0; i < n; i++) {
    double lat = spaced(29, 31, n, i), lon = spaced(99, 101, n, i);
    double u = sin(0.008726645 * (lat2 - lat)), v = sin(0.008726645 * (lon2 - lon));
    l[i] = u * u; f[i] = cos(0.01745329 * lat) * cos(0.01745329 * lat2); o[i] = v * v;
  }
}
static void angles_part(long from, long to) { angles(far_ + from * size.side, of_lat, factor, of_lon + from, diameter, to - from, size.side); }
static void mesh(int t) {
  far_out(); once(&of_lat, size.side); once(&factor, size.side); once(&of_lon, size.side);
  axes(of_lat, factor, of_lon, lat2, lon2, size.side);
  in_parts(t, size.side, angles_part);
}

// Black-Scholes.
static double *prices;
static volatile double rate = 0.02, volatility = 0.3;
static const void *prices_result(size_t *n) { *n = 2 * size.options * OPTION_ROW; return prices; }

static inline double polynomial(double d) {
  double k = 1 / (1 + 0.2316419 * fabs(d));
  double r = 0.39894228040143267793994605993438 * exp(-0.5 * d * d) *
             (k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))));
  return d > 0 ? 1 - r : r;
}
static inline double with_erf(double d) { return 0.5 + 0.5 * erf(d * 0.70710678118654752440); }

#define OPTIONS(name, cumulative) \
  APART static void name##_row(double *restrict call, double *restrict put, const double *restrict s, const double *restrict k, const double *restrict t, double r, double v, long n) { \
    for (long i = 0; i < n; i++) { \
      double q = sqrt(t[i]), d1 = (log(s[i] / k[i]) + (r + 0.5 * v * v) * t[i]) / (v * q), d2 = d1 - v * q; \
      double c1 = cumulative(d1), c2 = cumulative(d2), e = exp(-r * t[i]); \
      call[i] = s[i] * c1 - k[i] * e * c2; \
      put[i] = k[i] * e * (1 - c2) - s[i] * (1 - c1); \
    } \
  } \
  static void name##_part(long from, long to) { \
    for (long i = from * OPTION_ROW; i < to * OPTION_ROW; i += OPTION_ROW) \
      name##_row(prices + i, prices + size.options * OPTION_ROW + i, input_price() + i, input_strike() + i, input_years() + i, rate, volatility, OPTION_ROW); \
  } \
  static void name(int t) { once(&prices, 2 * size.options * OPTION_ROW); input_price(); input_strike(); input_years(); in_parts(t, size.options, name##_part); }
OPTIONS(options_polynomial, polynomial)
OPTIONS(options_erf, with_erf)

// Mandelbrot set.
static int64_t *counts;
static const void *counts_result(size_t *n) { *n = size.pixels * size.pixels; return counts; }

APART static int64_t pixel(double cx, double cy, int64_t most) {
  double x = 0, y = 0;
  int64_t i = 0;
  for (; i < most; i++) {
    double a = x * x, b = y * y;
    if (a + b > 4) break;
    y = 2 * x * y + cy;
    x = a - b + cx;
  }
  return i;
}
static void scalar_part(long from, long to) {
  for (long r = from; r < to; r++)
    for (long c = 0; c < size.pixels; c++) counts[r * size.pixels + c] = pixel(input_cx()[c], input_cy()[r], size.most);
}
static void set(int t, void (*part)(long, long)) {
  once((double **)&counts, size.pixels * size.pixels); input_cx(); input_cy();
  in_parts(t, size.pixels, part);
}
static void mandelbrot(int t) { set(t, scalar_part); }

#ifdef HAND
// U vectors of pixels at a time, until all of them have left or have had all iterations.
#define PIXELS(name, U) \
  APART static void name##_row(int64_t *to, const double *cxs, double cy1, long n, long most) { \
    const vec cy = V(set1_pd)(cy1), four = V(set1_pd)(4); \
    for (long c = 0; c < n; c += LANES * U) { \
      vec cx[U], x[U], y[U]; ivec k[U]; mask in[U]; \
      for (int u = 0; u < U; u++) { cx[u] = V(loadu_pd)(cxs + c + LANES * u); x[u] = y[u] = V(setzero_pd)(); k[u] = no_whole; in[u] = full; } \
      for (long i = 0; i < most; i++) { \
        int any = 0; \
        for (int u = 0; u < U; u++) { \
          vec a = V(mul_pd)(x[u], x[u]); \
          in[u] = below(in[u], V(fmadd_pd)(y[u], y[u], a), four); \
          any |= some(in[u]); \
          k[u] = count(k[u], in[u]); \
          vec next = V(fnmadd_pd)(y[u], y[u], V(add_pd)(a, cx[u])); \
          y[u] = V(fmadd_pd)(V(add_pd)(x[u], x[u]), y[u], cy); \
          x[u] = next; \
        } \
        if (!any) break; \
      } \
      for (int u = 0; u < U; u++) store_whole(to + c + LANES * u, k[u]); \
    } \
  } \
  static void name##_part(long from, long to) { \
    for (long r = from; r < to; r++) name##_row(counts + r * size.pixels, input_cx(), input_cy()[r], size.pixels, size.most); \
  } \
  static void name(int t) { set(t, name##_part); }
PIXELS(mandelbrot_one, 1)
PIXELS(mandelbrot_some, ROOM)
#endif

// Products of 8x8 matrices.
static double *all_products, *few_products;
static const void *all_result(size_t *n) { *n = size.matrices * SIZE; return all_products; }
static const void *few_result(size_t *n) { *n = size.resident * SIZE; return few_products; }

APART static void sums(double *restrict z, const double *restrict a, const double *restrict b) {
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) {
      double s = 0;
      for (int k = 0; k < 8; k++) s += a[i * 8 + k] * b[k * 8 + j];
      z[i * 8 + j] = s;
    }
}
APART static void by_row(double *restrict z, const double *restrict a, const double *restrict b) {
  for (int i = 0; i < 8; i++) {
    double s[8] = {0};
    for (int k = 0; k < 8; k++)
      for (int j = 0; j < 8; j++) s[j] += a[i * 8 + k] * b[k * 8 + j];
    for (int j = 0; j < 8; j++) z[i * 8 + j] = s[j];
  }
}
#ifdef HAND
APART static void by_hand(double *z, const double *a, const double *b) {
  for (int j = 0; j < 8; j += LANES) {
    vec rows[8];
    for (int k = 0; k < 8; k++) rows[k] = V(loadu_pd)(b + 8 * k + j);
    for (int i = 0; i < 8; i++) {
      vec s = V(mul_pd)(V(set1_pd)(a[i * 8]), rows[0]), t = V(mul_pd)(V(set1_pd)(a[i * 8 + 1]), rows[1]);
      for (int k = 2; k < 8; k += 2) {
        s = V(fmadd_pd)(V(set1_pd)(a[i * 8 + k]), rows[k], s);
        t = V(fmadd_pd)(V(set1_pd)(a[i * 8 + k + 1]), rows[k + 1], t);
      }
      V(storeu_pd)(z + i * 8 + j, V(add_pd)(s, t));
    }
  }
}
#endif
#define PRODUCTS(f) \
  static void f##_all_part(long from, long to) { \
    const double *a = input_a(size.matrices), *b = input_b(size.matrices); \
    for (long i = from * SIZE; i < to * SIZE; i += SIZE) f(all_products + i, a + i, b + i); \
  } \
  static void f##_few_part(long from, long to) { \
    const double *a = input_a(size.resident), *b = input_b(size.resident); \
    for (long r = 0; r < size.repeats; r++) \
      for (long i = from * SIZE; i < to * SIZE; i += SIZE) f(few_products + i, a + i, b + i); \
  } \
  static void f##_all(int t) { once(&all_products, size.matrices * SIZE); input_a(size.matrices); input_b(size.matrices); in_parts(t, size.matrices, f##_all_part); } \
  static void f##_few(int t) { once(&few_products, size.resident * SIZE); input_a(size.resident); input_b(size.resident); in_parts(t, size.resident, f##_few_part); }
PRODUCTS(sums)
PRODUCTS(by_row)
#ifdef HAND
PRODUCTS(by_hand)
#endif

const char build[] = BUILD;
const struct work works[] = {
  {"discount", "loop", discount, product_result},
  {"discount17", "loop", discount17, product_result},
  {"distance", "loop", distance, far_result},
  {"mesh", "by axes", mesh, far_result},
  {"options, polynomial", "loop", options_polynomial, prices_result},
  {"options, erf", "loop", options_erf, prices_result},
  {"mandelbrot", "loop", mandelbrot, counts_result, 1},
  {"matrices", "sums", sums_all, all_result},
  {"matrices", "by row", by_row_all, all_result},
  {"matrices in cache", "sums", sums_few, few_result},
  {"matrices in cache", "by row", by_row_few, few_result},
#ifdef HAND
  {"discount", "streaming", discount_stream, product_result},
  {"discount", "streaming, tiles", discount_tiles, product_result},
  {"copy", "plain", copied_plain, product_result},
  {"copy", "streaming", copied_stream, product_result},
  {"mandelbrot", "one vector", mandelbrot_one, counts_result, 1},
  {"mandelbrot", "several vectors", mandelbrot_some, counts_result, 1},
  {"matrices", "by hand", by_hand_all, all_result},
  {"matrices in cache", "by hand", by_hand_few, few_result},
#endif
  {0},
};
