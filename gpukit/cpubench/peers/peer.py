"""What the peers in Python have in common: inputs, and answers as cpubench/main.go gives them (time and dump)."""
import gc
import json
import sys
import time

import numpy as np

ROW, COLUMNS, FIVE, OPTION_ROW, EIGHT = 20000, 4000, 5, 512, 8


class Sizes:
    def __init__(self, args):
        (self.rows, self.side, self.options, self.pixels, self.most, self.matrices, self.resident, self.repeats,
         self.processors) = [int(x) for x in args]


size = Sizes(sys.argv[1:10])
made = {}


def once(f):
    def g(*args):
        key = (f, args)
        if key not in made:
            made[key] = f(*args)
        return made[key]
    return g


def ready(*shape, dtype=float):
    """An array whose memory has been touched."""
    return np.full(shape, 0, dtype)


def uniform(i):
    z = (i.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return ((z ^ z >> np.uint64(31)) >> np.uint64(11)) / 2.0 ** 53


@once
def discount():
    """factor (4000, 5), discount (rows, 4000, 5), result"""
    return np.arange(float(ROW)).reshape(COLUMNS, FIVE), np.arange(float(size.rows * ROW)).reshape(size.rows, COLUMNS, FIVE), ready(size.rows, COLUMNS, FIVE)


@once
def mesh():
    lat, lon = np.meshgrid(np.linspace(29, 31, size.side), np.linspace(99, 101, size.side))
    return lat.ravel().copy(), lon.ravel().copy(), ready(size.side ** 2)


@once
def market():
    """price, strike, years, and both results in one array"""
    i = np.arange(size.options * OPTION_ROW)
    both = ready(2, size.options, OPTION_ROW)
    x = 5 + 25 * uniform(3 * i), 1 + 99 * uniform(3 * i + 1), 0.25 + 9.75 * uniform(3 * i + 2)
    return [a.reshape(size.options, OPTION_ROW) for a in x] + [both]


@once
def plane():
    i = np.arange(size.pixels)
    return 3 * i / size.pixels - 2, 3 * i / size.pixels - 1.5, ready(size.pixels, size.pixels, dtype=np.int64)


@once
def matrices(n):
    i = np.arange(n * EIGHT * EIGHT)
    a, b = (i % 97) * 0.01, (i % 89) * 0.02 - 0.5
    return a.reshape(n, EIGHT, EIGHT), b.reshape(n, EIGHT, EIGHT), ready(n, EIGHT, EIGHT)


works = {}


def work(name, variant):
    """For functions of the number of threads, which prepare and return what is timed, and a function for the result."""
    def put(f):
        works[name, variant] = once(f)
        return f
    return put


def repeated(f, n):
    def g():
        for _ in range(n):
            f()
    return g


def answer(request, before):
    what, name, variant, threads, last = request.split("\t")
    make = works.get((name, variant))
    if make is None:
        return {"error": "no such work"}
    threads = size.processors if int(threads) > 1 else 1
    before(threads)
    run, result = make(threads)
    run()
    if what == "dump":
        np.ascontiguousarray(result(), dtype=np.float64).tofile(last)
        return {}
    ns = []
    for _ in range(int(last)):
        start = time.perf_counter_ns()
        run()
        ns.append(time.perf_counter_ns() - start)
    return {"ns": ns}


def serve(about, before=lambda threads: None):
    def say(x):
        print(json.dumps(x), flush=True)

    gc.disable()
    say(about)
    for line in sys.stdin:
        try:
            say(answer(line.rstrip("\n"), before))
        except Exception as e:  # of any kind: the next request may work
            say({"error": "%s: %s" % (type(e).__name__, str(e).strip().splitlines()[0] if str(e).strip() else "")})
