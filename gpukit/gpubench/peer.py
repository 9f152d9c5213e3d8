"""What the peers of gpubench have in common: arguments, repetitions, answers."""
import gc
import json
import sys
import time

import numpy as np


def ramp(*shape):
    return np.arange(float(np.prod(shape, dtype=np.int64))).reshape(shape)


def small():
    return ramp(4000, 5)


def grid(side):
    lon, lat = np.meshgrid(np.linspace(99, 101, side), np.linspace(29, 31, side))
    return lat.ravel(), lon.ravel()


def sample(peer, a):
    flat = a.reshape(a.size)
    at = [(a.size - 1) * i // 15 for i in range(16)]
    return float(sum(float(peer.get(flat[k:k + 1])[0]) for k in at))


def run(peer, r):
    n = r["elements"]
    rows, side, host = max(n // 20000, 1), max(int(n ** 0.5), 1), r.get("host", False)
    put = (lambda a: np.ascontiguousarray(a)) if host else peer.put
    call = peer.call(r["form"], put, host, rows, side, n)
    if call is None:
        return {"error": "this peer has no form %r" % r["form"]}

    def once():
        start = time.perf_counter()
        a = call()
        peer.sync()
        return a, (time.perf_counter() - start) * 1e3

    out = {"call_ms": [], "kernel_ms": [], "sum": 0.0}
    for _ in range(max(r.get("warmup", 1), 1)):
        a, _ = once()
        if out["sum"] == 0:
            out["sum"] = sample(peer, a)
        del a
    for _ in range(r["reps"]):
        a, took = once()
        out["call_ms"].append(took)
        del a
    if not host:
        for _ in range(r["reps"]):
            t = peer.timer()
            a = call()
            out["kernel_ms"].append(t.stop())
            del a
    return out


def serve(peer):
    def say(x):
        print(json.dumps(x), flush=True)

    say({"peer": peer.name, "device": peer.device, "version": peer.version})
    for line in sys.stdin:
        try:
            say(run(peer, json.loads(line)))
        except Exception as e:  # of any kind: the next request may work
            say({"error": "%s: %s" % (type(e).__name__, e)})
        gc.collect()
