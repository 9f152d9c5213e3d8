"""The experiments' work through CuPy, for bench.py: requests and answers as gpubench has them."""
import sys

import cupy as cp
import numpy as np

import peer

CHORD = """
double u = sin(0.008726645*(lat2-lat1)), v = sin(0.008726645*(lon2-lon1));
double a = u*u + cos(0.01745329*lat1)*cos(0.01745329*lat2)*(v*v);
"""
product = cp.ElementwiseKernel("float64 a, float64 b", "float64 c", "c = a*b", "product")
chord = cp.ElementwiseKernel("float64 lat1, float64 lon1, float64 lat2, float64 lon2", "float64 d", CHORD + "d = a;", "chord")
distance = cp.ElementwiseKernel("float64 lat1, float64 lon1, float64 lat2, float64 lon2, float64 s", "float64 d",
                                CHORD + "d = atan2(a, 1.0-a)*s;", "distance")
increment = cp.ElementwiseKernel("float64 x", "float64 y", "y = x + 1.0", "increment")
mesh = cp.ElementwiseKernel(
    "float64 lat2, float64 lon2, float64 lat0, float64 dlat, float64 lon0, float64 dlon, float64 s, int64 nx", "float64 d",
    "double lat1 = lat0 + (i/nx)*dlat, lon1 = lon0 + (i%nx)*dlon;" + CHORD + "d = atan2(a, 1.0-a)*s;", "mesh")


class Peer:
    name, version = "CuPy", cp.__version__

    def __init__(self):
        self.device = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def put(self, a):
        return cp.asarray(a)

    def get(self, a):
        return cp.asnumpy(a)

    def sync(self):
        cp.cuda.get_current_stream().synchronize()

    def timer(self):
        return Events()

    def call(self, form, put, host, rows, side, n):
        def finish(kernel, *args):
            if host:  # what a user writes whose arrays are numpy's
                return lambda: cp.asnumpy(kernel(*[cp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]))
            return lambda: kernel(*args)

        if form in ("t14", "t16"):
            return finish(product, put(peer.small()), put(peer.ramp(rows, 4000, 5)))
        if form == "t15":
            return finish(product, put(np.ones((rows, 4000, 5))), put(peer.ramp(rows, 4000, 5)))
        if form == "t17":
            mult, discount = put(peer.small()), put(peer.ramp(4000, rows, 5))
            return finish(product, mult[:, None, :], discount)
        if form in ("t38", "t39"):
            lat, lon = peer.grid(side)
            lat, lon = put(lat), put(lon)
            if form == "t39":
                return finish(distance, lat, lon, 30.0, 101.0, 1.0)
            return finish(chord, lat, lon, put(np.full(side * side, 30.0)), put(np.full(side * side, 101.0)))
        if form == "t40":
            out, step = cp.empty((side, side)), 2.0 / max(side - 1, 1)
            return lambda: self.maybe(host, mesh(30.0, 101.0, 29.0, step, 99.0, step, 1.0, side, out))
        if form == "launch":
            return finish(increment, put(np.arange(1.0)))
        if form == "copy in":
            x = np.arange(float(n))
            return lambda: cp.asarray(x)
        if form == "copy out":
            x = cp.arange(float(n))
            return lambda: cp.asnumpy(x)
        if form == "copy within":
            x, y = cp.arange(float(n)), cp.empty(n)

            def within():
                cp.copyto(y, x)
                return y
            return within
        return None

    def maybe(self, host, a):
        return cp.asnumpy(a) if host else a


class Events:
    def __init__(self):
        self.a, self.b = cp.cuda.Event(), cp.cuda.Event()
        self.a.record()

    def stop(self):
        self.b.record()
        self.b.synchronize()
        return cp.cuda.get_elapsed_time(self.a, self.b)


if __name__ == "__main__":
    sys.exit(peer.serve(Peer()))
