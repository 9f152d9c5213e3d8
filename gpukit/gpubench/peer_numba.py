"""The experiments' work through numba-cuda, for bench.py: requests and answers as gpubench has them."""
import math
import sys

import numpy as np
import numba
from numba import cuda, float64, guvectorize, int64, vectorize

import peer


@vectorize([float64(float64, float64)], target="cuda")
def product(a, b):
    return a * b


@guvectorize([(int64, float64[:, :], float64[:, :, :], int64, int64, float64[:, :, :])], "(),(m,o),(n,m,o),(),()->(n,m,o)", target="cuda")
def vest14(rows, mult, discount, n, columns, out):
    for d in range(rows):
        for i in range(columns):
            for k in range(n):
                out[d, i, k] = mult[i, k] * discount[d, i, k]


@guvectorize([(float64[:, :], float64[:, :], int64, int64, float64[:, :])], "(m,o),(m,o),(),()->(m,o)", target="cuda")
def vest16(mult, discount, n, columns, out):
    for i in range(columns):
        for k in range(n):
            out[i, k] = mult[i, k] * discount[i, k]


@guvectorize([(int64, float64[:], float64[:, :], int64, float64[:, :])], "(),(o),(m,o),()->(m,o)", target="cuda")
def vest17(rows, mult, discount, n, out):
    for d in range(rows):
        for k in range(n):
            out[d, k] = mult[k] * discount[d, k]


@cuda.jit(device=True)
def chord_of(lat1, lon1, lat2, lon2):
    u = math.sin(0.008726645 * (lat2 - lat1))
    v = math.sin(0.008726645 * (lon2 - lon1))
    return u * u + math.cos(0.01745329 * lat1) * math.cos(0.01745329 * lat2) * (v * v)


@vectorize([float64(float64, float64, float64, float64)], target="cuda")
def chord(lat1, lon1, lat2, lon2):
    return chord_of(lat1, lon1, lat2, lon2)


@vectorize([float64(float64, float64, float64, float64, float64)], target="cuda")
def distance(lat1, lon1, lat2, lon2, s):
    a = chord_of(lat1, lon1, lat2, lon2)
    return math.atan2(a, 1.0 - a) * s


@vectorize([float64(float64)], target="cuda")
def increment(x):
    return x + 1.0


@cuda.jit
def mesh(lat2, lon2, lat0, lat1, lon0, lon1, s, out):
    x, y = cuda.grid(2)
    ny, nx = out.shape
    if x < nx and y < ny:
        lat = lat0 + y * ((lat1 - lat0) / (ny - 1))
        lon = lon0 + x * ((lon1 - lon0) / (nx - 1))
        a = chord_of(lat, lon, lat2, lon2)
        out[y, x] = math.atan2(a, 1.0 - a) * s


class Peer:
    name, version = "numba", numba.__version__

    def __init__(self):
        try:
            import numba_cuda
            self.version += ", numba-cuda " + numba_cuda.__version__
        except ImportError:
            pass
        name = cuda.get_current_device().name
        self.device = name.decode() if isinstance(name, bytes) else name

    def put(self, a):
        return cuda.to_device(np.ascontiguousarray(a))

    def get(self, a):
        return a.copy_to_host() if hasattr(a, "copy_to_host") else a

    def sync(self):
        cuda.synchronize()

    def timer(self):
        return Events()

    def call(self, form, put, host, rows, side, n):
        if form == "t14":
            mult, discount = put(peer.small()), put(peer.ramp(rows, 4000, 5))
            return lambda: vest14(rows, mult, discount, 5, 4000)
        if form == "t15":
            mult, discount = put(np.ones((rows, 4000, 5))), put(peer.ramp(rows, 4000, 5))
            return lambda: product(mult, discount)
        if form == "t16":
            # The device's gufuncs do not broadcast arrays that live there: the factor is repeated, as the thread had to.
            mult, discount = peer.small(), put(peer.ramp(rows, 4000, 5))
            mult = put(mult if host else np.broadcast_to(mult, (rows, 4000, 5)))
            return lambda: vest16(mult, discount, 5, 4000)
        if form == "t17":
            mult, discount = put(peer.small()), put(peer.ramp(4000, rows, 5))
            return lambda: vest17(rows, mult, discount, 5)
        if form in ("t38", "t39"):
            lat, lon = peer.grid(side)
            lat, lon = put(lat), put(lon)
            if form == "t39":
                if host:
                    return lambda: distance(lat, lon, 30.0, 101.0, 1.0)
                a, b, s = (put(np.full(side * side, x)) for x in (30.0, 101.0, 1.0))  # arrays on the device must have one shape
                return lambda: distance(lat, lon, a, b, s)
            a, b = put(np.full(side * side, 30.0)), put(np.full(side * side, 101.0))
            return lambda: chord(lat, lon, a, b)
        if form == "t40":
            out = cuda.device_array((side, side))
            blocks = ((side + 31) // 32, (side + 31) // 32)

            def once():
                mesh[blocks, (32, 32)](30.0, 101.0, 29.0, 31.0, 99.0, 101.0, 1.0, out)
                return out.copy_to_host() if host else out
            return once
        if form == "launch":
            x = put(np.arange(1.0))
            return lambda: increment(x)
        if form == "copy in":
            x = np.arange(float(n))
            return lambda: cuda.to_device(x)
        if form == "copy out":
            x = cuda.to_device(np.arange(float(n)))
            return lambda: x.copy_to_host()
        if form == "copy within":
            x, y = cuda.to_device(np.arange(float(n))), cuda.device_array(n)

            def within():
                y.copy_to_device(x)
                return y
            return within
        return None


class Events:
    def __init__(self):
        self.a, self.b = cuda.event(), cuda.event()
        self.a.record()

    def stop(self):
        self.b.record()
        self.b.synchronize()
        return cuda.event_elapsed_time(self.a, self.b)


if __name__ == "__main__":
    sys.exit(peer.serve(Peer()))
