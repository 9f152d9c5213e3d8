"""The works of cpubench in numpy, which has one thread."""
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402

from peer import discount, market, matrices, mesh, ready, repeated, serve, size, work  # noqa: E402


@work("discount", "expression")
def _(threads):
    m, x, z = discount()
    return lambda: np.multiply(m, x, out=z), lambda: z


def distance(lat, lon, lat2=30.0, lon2=101.0, s=1.0, out=None):
    a = np.sin(0.008726645 * (lat2 - lat)) ** 2 + np.cos(0.01745329 * lat) * np.cos(0.01745329 * lat2) * np.sin(0.008726645 * (lon2 - lon)) ** 2
    return np.multiply(np.arctan2(a, 1 - a), s, out=out)


@work("distance", "expression")
def _(threads):
    lat, lon, z = mesh()
    return lambda: distance(lat, lon, out=z), lambda: z


@work("mesh", "expression")  # of a row and a column, so that each sine is computed once
def _(threads):
    z = ready(size.side, size.side)

    def f():
        lat, lon = np.linspace(29, 31, size.side), np.linspace(99, 101, size.side)
        distance(lat[None, :], lon[:, None], out=z)
    return f, lambda: z


def cumulative(d):
    k = 1 / (1 + 0.2316419 * np.abs(d))
    r = 0.39894228040143267793994605993438 * np.exp(-0.5 * d * d) * (
        k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))))
    return np.where(d > 0, 1 - r, r)


@work("options, polynomial", "expression")  # four rows at a time, whose temporaries stay in the cache
def _(threads):
    price, strike, years, both = market()

    def f(r=0.02, v=0.3):
        for i in range(0, size.options, 4):
            s, k, t = price[i:i + 4], strike[i:i + 4], years[i:i + 4]
            q = np.sqrt(t)
            d1 = (np.log(s / k) + (r + 0.5 * v * v) * t) / (v * q)
            c1, c2, e = cumulative(d1), cumulative(d1 - v * q), np.exp(-r * t)
            both[0, i:i + 4] = s * c1 - k * e * c2
            both[1, i:i + 4] = k * e * (1 - c2) - s * (1 - c1)
    return f, lambda: both


@work("matrices", "matmul")
def _(threads):
    a, b, c = matrices(size.matrices)
    return lambda: np.matmul(a, b, out=c), lambda: c


@work("matrices in cache", "matmul")
def _(threads):
    a, b, c = matrices(size.resident)
    return repeated(lambda: np.matmul(a, b, out=c), size.repeats), lambda: c


@work("ten elements", "expression")
def _(threads):
    lat, lon = np.linspace(29, 31, 10), np.linspace(99, 101, 10)
    return repeated(lambda: distance(lat, lon), 1000), lambda: distance(lat, lon)


if __name__ == "__main__":
    serve({"peer": "numpy", "version": np.__version__})
