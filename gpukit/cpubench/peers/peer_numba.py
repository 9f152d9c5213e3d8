"""The works of cpubench in numba. The threading layer is the process's: NUMBA_THREADING_LAYER."""
import math
import os

import llvmlite.binding
import numba
import numpy as np
from numba import config, float64, guvectorize, int64, njit, prange, set_num_threads, vectorize

from peer import COLUMNS, FIVE, ROW, discount, market, matrices, mesh, once, plane, ready, repeated, serve, size, work


def target(threads):
    return {"target": "parallel" if threads > 1 else "cpu"}


# Discount.
def product(a, b):
    return a * b


@work("discount", "vectorize")
def _(threads):
    m, x, z = discount()
    f = vectorize([float64(float64, float64)], **target(threads))(product)
    return lambda: f(m, x, z), lambda: z


@work("discount", "gufunc of a slice")  # its signature promises contiguous memory
def _(threads):
    m, x, z = discount()

    @guvectorize(["void(float64[::1], float64[::1], float64[::1])"], "(n),(n)->(n)", **target(threads))
    def f(m, x, z):
        for i in range(m.shape[0]):
            z[i] = m[i] * x[i]
    args = m.reshape(ROW), x.reshape(-1, ROW), z.reshape(-1, ROW)
    return lambda: f(*args), lambda: z


@work("discount", "prange")
def _(threads):
    m, x, z = discount()

    @njit("void(float64[::1], float64[:,::1], float64[:,::1])", parallel=threads > 1)
    def f(m, x, z):
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                z[i, j] = m[j] * x[i, j]
    args = m.reshape(ROW), x.reshape(-1, ROW), z.reshape(-1, ROW)
    return lambda: f(*args), lambda: z


@work("t14", "gufunc")
def _(threads):
    m, x, z = discount()

    @guvectorize(["void(int64, float64[:,:], float64[:,:,:], int64, int64, float64[:,:,:])"], "(),(m,o),(n,m,o),(),()->(n,m,o)", **target(threads))
    def f(rows, m, x, n, columns, z):
        for d in range(rows):
            for i in range(columns):
                for k in range(n):
                    z[d, i, k] = m[i, k] * x[d, i, k]
    rows, n, columns = np.int64(size.rows), np.int64(FIVE), np.int64(COLUMNS)
    return lambda: f(rows, m, x, n, columns, z), lambda: z


@work("t16", "gufunc")
def _(threads):
    m, x, z = discount()

    @guvectorize(["void(float64[:,:], float64[:,:], int64, int64, float64[:,:])"], "(m,o),(m,o),(),()->(m,o)", **target(threads))
    def f(m, x, n, columns, z):
        for i in range(columns):
            for k in range(n):
                z[i, k] = m[i, k] * x[i, k]
    n, columns = np.int64(FIVE), np.int64(COLUMNS)
    return lambda: f(m, x, n, columns, z), lambda: z


@work("t17", "gufunc")
def _(threads):
    m, x, z = discount()
    x, z = x.reshape(COLUMNS, size.rows, FIVE), z.reshape(COLUMNS, size.rows, FIVE)

    @guvectorize(["void(int64, float64[:], float64[:,:], int64, float64[:,:])"], "(),(o),(m,o),()->(m,o)", **target(threads))
    def f(rows, m, x, n, z):
        for d in range(rows):
            for k in range(n):
                z[d, k] = m[k] * x[d, k]
    rows, n = np.int64(size.rows), np.int64(FIVE)
    return lambda: f(rows, m, x, n, z), lambda: z


# Distance mesh.
def distance(lat1, lon1, lat2, lon2, s):
    a = math.sin(0.008726645 * (lat2 - lat1)) ** 2 + math.cos(0.01745329 * lat1) * math.cos(0.01745329 * lat2) * math.sin(0.008726645 * (lon2 - lon1)) ** 2
    return math.atan2(a, 1 - a) * s


FIVE_FLOATS = [float64(float64, float64, float64, float64, float64)]


def of_mesh(accuracy, **options):
    # The numbers make the loop of vectorize one of several strides, which LLVM leaves scalar; so there is the other form too.
    @work("distance", "vectorize" + accuracy)
    def _(threads):
        lat, lon, z = mesh()
        f = vectorize(FIVE_FLOATS, **options, **target(threads))(distance)
        return lambda: f(lat, lon, 30.0, 101.0, 1.0, z), lambda: z

    @work("distance", "prange" + accuracy)
    def _(threads):
        lat, lon, z = mesh()
        inner = njit(**options)(distance)

        @njit("void(float64[::1], float64[::1], float64, float64, float64, float64[::1])", parallel=threads > 1, **options)
        def f(lat, lon, lat2, lon2, s, z):
            for i in prange(z.shape[0]):
                z[i] = inner(lat[i], lon[i], lat2, lon2, s)
        return lambda: f(lat, lon, 30.0, 101.0, 1.0, z), lambda: z

    @work("mesh", "prange" + accuracy)
    def _(threads):
        z = ready(size.side, size.side)
        inner = njit(**options)(distance)

        @njit("void(float64, float64, float64, float64, float64, float64, float64, int64, int64, float64[:,::1])", parallel=threads > 1, **options)
        def f(lat2, lon2, x0, x1, y0, y1, s, nx, ny, z):
            for y in prange(ny):
                for x in range(nx):
                    z[y, x] = inner((x1 - x0) * x / (nx - 1) + x0, (y1 - y0) * y / (ny - 1) + y0, lat2, lon2, s)
        return lambda: f(30.0, 101.0, 29.0, 31.0, 99.0, 101.0, 1.0, size.side, size.side, z), lambda: z


of_mesh("")
of_mesh(", fastmath", fastmath=True)


@work("ten elements", "vectorize")
def _(threads):
    lat, lon = np.linspace(29, 31, 10), np.linspace(99, 101, 10)
    f = vectorize(FIVE_FLOATS, **target(threads))(distance)
    return repeated(lambda: f(lat, lon, 30.0, 101.0, 1.0), 1000), lambda: f(lat, lon, 30.0, 101.0, 1.0)


# Black-Scholes.
@once
def cumulatives(fast):
    def polynomial(d):
        k = 1 / (1 + 0.2316419 * abs(d))
        r = 0.39894228040143267793994605993438 * math.exp(-0.5 * d * d) * (
            k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))))
        return 1 - r if d > 0 else r

    def with_erf(d):
        return 0.5 + 0.5 * math.erf(d * 0.70710678118654752440)
    options = {"fastmath": True} if fast else {}
    return {"polynomial": njit(**options)(polynomial), "erf": njit(**options)(with_erf)}


def of_options(kind):
    def body(fast):
        cumulative = cumulatives(fast)[kind]

        def f(price, strike, years, r, v, call, put):
            for i in range(price.shape[0]):
                q = math.sqrt(years[i])
                d1 = (math.log(price[i] / strike[i]) + (r + 0.5 * v * v) * years[i]) / (v * q)
                d2 = d1 - v * q
                c1, c2, e = cumulative(d1), cumulative(d2), math.exp(-r * years[i])
                call[i] = price[i] * c1 - strike[i] * e * c2
                put[i] = strike[i] * e * (1 - c2) - price[i] * (1 - c1)
        return f

    def gufunc(variant, array, fast, **options):
        @work("options, " + kind, variant)
        def _(threads):
            price, strike, years, both = market()
            signature = "void(%s, %s, %s, float64, float64, %s, %s)" % ((array,) * 5)
            f = guvectorize([signature], "(n),(n),(n),(),()->(n),(n)", **options, **target(threads))(body(fast))
            return lambda: f(price, strike, years, 0.02, 0.3, both[0], both[1]), lambda: both

    gufunc("gufunc", "float64[:]", False)
    gufunc("gufunc, contiguous", "float64[::1]", False)

    @work("options, " + kind, "prange, fastmath")
    def _(threads):
        price, strike, years, both = market()
        inner = njit(fastmath=True, error_model="numpy")(body(True))

        @njit("void(float64[:,::1], float64[:,::1], float64[:,::1], float64, float64, float64[:,::1], float64[:,::1])", parallel=threads > 1,
              fastmath=True, error_model="numpy")
        def f(price, strike, years, r, v, call, put):
            for i in prange(price.shape[0]):
                inner(price[i], strike[i], years[i], r, v, call[i], put[i])
        return lambda: f(price, strike, years, 0.02, 0.3, both[0], both[1]), lambda: both


of_options("polynomial")
of_options("erf")


# Mandelbrot set.
@work("mandelbrot", "vectorize")
def _(threads):
    cx, cy, z = plane()
    cx, cy = (a.ravel().copy() for a in np.meshgrid(cx, cy))
    flat = z.reshape(-1)

    @vectorize([int64(float64, float64, int64)], **target(threads))
    def f(cx, cy, most):
        x = 0.0
        y = 0.0
        i = 0
        while i < most:
            a = x * x
            b = y * y
            if a + b > 4:
                break
            y = 2 * x * y + cy
            x = a - b + cx
            i += 1
        return i
    most = np.int64(size.most)
    return lambda: f(cx, cy, most, flat), lambda: z


# Products of 8x8 matrices.
def of_matrices(name, count, repeats):
    def gufunc(variant, array):
        @work(name, variant)
        def _(threads):
            a, b, c = matrices(count)

            @guvectorize(["void(%s, %s, %s)" % (array, array, array)], "(m,n),(n,p)->(m,p)", **target(threads))
            def f(a, b, c):
                for i in range(a.shape[0]):
                    for j in range(b.shape[1]):
                        s = 0.0
                        for k in range(a.shape[1]):
                            s += a[i, k] * b[k, j]
                        c[i, j] = s
            return repeated(lambda: f(a, b, c), repeats), lambda: c

    gufunc("gufunc", "float64[:,:]")
    gufunc("gufunc, contiguous", "float64[:,::1]")


of_matrices("matrices", size.matrices, 1)
of_matrices("matrices in cache", size.resident, size.repeats)

if __name__ == "__main__":
    serve({"peer": "numba", "version": numba.__version__, "layer": os.environ.get("NUMBA_THREADING_LAYER", ""), "numpy": np.__version__,
           "note": "LLVM %d.%d, %s" % (*llvmlite.binding.llvm_version_info[:2], "SVML" if config.USING_SVML else "without SVML")}, set_num_threads)
