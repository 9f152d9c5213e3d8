#!/usr/bin/env python3
"""Compares gpukit with numba-cuda and CuPy on this machine's GPU, in one run, and prints tables.

usage: bench.py path/to/gpubench [--device cuda:0] [--sources FOLDER] [--rounds 5] [--reps 9] [--quick] [--out FILE]

Each round asks every peer in turn for each experiment; the figure is the median of all repetitions of all rounds, the
ratio that of the medians. Warm-up: one call for each request. Peers that are not installed are left out, and said so
(pip install numba-cuda numba cupy-cuda12x).
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
THREAD = 2_000_000          # elements of the threads' arrays, 16 MB
MB32 = 4_000_000            # 32 MB
GIB4 = 540_000_000          # 4.02 GiB, a multiple of 20000 and close to a square
FORMS = ["t14", "t15", "t16", "t17", "t38", "t39", "t40"]


class Peer:
    def __init__(self, command):
        env = dict(os.environ, PYTHONPATH=HERE + os.pathsep + os.environ.get("PYTHONPATH", ""))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        first = self.process.stdout.readline()
        if not first:
            raise RuntimeError((self.process.stderr.read() or "it ended").strip().splitlines()[-1])
        self.about = json.loads(first)
        self.name = self.about["peer"]

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": "the peer ended"}


def median(x):
    return statistics.median(x) if x else None


def fmt(x):
    return "-" if x is None else ("%.4g" % x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("gpubench")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--sources", default="")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--reps", type=int, default=9)
    p.add_argument("--quick", action="store_true", help="small arrays only, to rehearse")
    p.add_argument("--out", default="")
    o = p.parse_args()

    peers = []
    missing = []
    for name, command in (("gpukit", [o.gpubench, "-device", o.device, "-sources", o.sources]),
                          ("numba", [sys.executable, os.path.join(HERE, "peer_numba.py")]),
                          ("CuPy", [sys.executable, os.path.join(HERE, "peer_cupy.py")])):
        try:
            peers.append(Peer(command))
        except (RuntimeError, OSError) as e:
            missing.append("%s: %s" % (name, e))
            if name == "gpukit":
                sys.exit("gpubench does not start: %s" % e)

    lines = []

    def say(s=""):
        print(s, flush=True)
        lines.append(s)

    def table(title, unit, requests, key):
        """rows of requests, a column of medians for each peer, and gpukit's ratio to each"""
        say("\n### %s\n" % title)
        names = [x.name for x in peers]
        columns = ["work", "elements"] + ["%s / %s" % (n, unit) for n in names] + ["gpukit : " + n for n in names[1:]]
        say("| " + " | ".join(columns) + " |")
        say("|---" * len(columns) + "|")
        results, wrong, notes = {}, [], set()
        for label, r in requests:
            got = [[] for _ in peers]
            sums = [None] * len(peers)
            errors = [""] * len(peers)
            for _ in range(o.rounds):
                for i, x in enumerate(peers):
                    if errors[i] or (x.name == "numba" and r.get("one_worker") and r["elements"] > THREAD):
                        continue
                    a = x.ask(**{k: v for k, v in r.items() if k != "one_worker"})
                    if a.get("error"):
                        errors[i] = a["error"]
                        continue
                    got[i] += a[key]
                    notes.add(a.get("note") or "")
                    sums[i] = a["sum"]
            m = [median(g) for g in got]
            for i, s in enumerate(sums[1:], 1):
                if s is not None and sums[0] is not None and abs(s - sums[0]) > 1e-9 * max(abs(s), abs(sums[0])):
                    errors[i] = "its sum is %r, gpukit's %r" % (s, sums[0])
            ratios = [m[0] / x if m[0] is not None and x else None for x in m[1:]]
            say("| " + " | ".join([label, str(r["elements"])] + [fmt(x) for x in m + ratios]) + " |")
            wrong.extend("%s, %s, %d elements: %s" % (peers[i].name, label, r["elements"], e) for i, e in enumerate(errors) if e)
            results[label, r["elements"]] = m
        if "simulated" in notes and key != "call_ms":
            say("\nThe times of gpukit's device are simulated.")
        for w in wrong:
            say("\n" + w)
        return results

    say("# gpukit, numba and CuPy on one card\n")
    for x in peers:
        say("- %(peer)s %(version)s, %(device)s" % x.about)
    for x in missing:
        say("- left out: " + x)
    say("- %s, medians of %d rounds of %d repetitions after a warm-up call each, peers in turn" % (datetime.date.today(), o.rounds, o.reps))
    try:
        smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,clocks.mem,clocks.sm", "--format=csv,noheader"],
                             capture_output=True, text=True, timeout=30)
        say("- nvidia-smi: " + smi.stdout.strip().replace("\n", "; "))
    except (OSError, subprocess.TimeoutExpired):
        pass

    sizes = [20_000] if o.quick else [THREAD, MB32, GIB4]
    reps = {THREAD: o.reps, MB32: o.reps, GIB4: max(o.reps // 3, 3)}

    def requests(sizes, host):
        return [(f, {"form": f, "elements": n, "reps": reps.get(n, 2), "warmup": 1, "host": host, "one_worker": f == "t14"})
                for n in sizes for f in FORMS]

    kernels = table("Kernels: arguments and result on the device, time by events", "ms", requests(sizes, False), "kernel_ms")
    big = sizes[-1]
    copies = table("A device's own copy", "ms", [("copy within", {"form": "copy within", "elements": big, "reps": 5, "warmup": 1})], "call_ms")
    best = min(x for x in copies["copy within", big] if x)
    say("\nThe best copy moves %.4g GB/s (read and written). Against it, gpukit's kernels at %d elements:\n" % (16e-6 * big / best, big))
    say("| work | bytes per element | GB/s | of the copy |")
    say("|---|---|---|---|")
    per = {"t14": 16, "t15": 24, "t16": 16, "t17": 16, "t38": 40, "t39": 24, "t40": 8}  # what must be read and written; the small factor stays in a cache
    for f in FORMS:
        m = kernels.get((f, big), [None])[0]
        if m:
            say("| %s | %d | %.4g | %.3g |" % (f, per[f], per[f] * 1e-6 * big / m, per[f] * best / (16 * m)))
    table("Whole calls: arguments and result in host memory", "ms", requests(sizes[:2], True), "call_ms")
    table("A launch: one element on the device, until it is done", "ms",
          [("launch", {"form": "launch", "elements": 1, "reps": 200, "warmup": 5})], "call_ms")
    table("Copies between host and device", "ms",
          [(f, {"form": f, "elements": n, "reps": 5, "warmup": 1, "host": f == "copy out"}) for f in ("copy in", "copy out") for n in sizes[:2]], "call_ms")
    if o.out:
        with open(o.out, "w") as f:
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
