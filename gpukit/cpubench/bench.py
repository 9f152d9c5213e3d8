#!/usr/bin/env python3
"""Compares gpukit on this machine's processor with numba, numpy, numexpr, C and plain Go, in one run.

usage: bench.py --cpubench PROGRAM [--t16a PROGRAM --t16ago PROGRAM] [--peers FOLDER] [--svml FOLDER] [--out PEERS.md] [--samples FILE.json]
                [--pairs 15] [--minutes 9.5] [--only REGEXP] [--tiny] [--no-peers]

Every tool is a process that does one timed block when asked: one run that is not timed, then some that are. A pair is a
block of gpukit's and one of the peer's, one right after the other, in random order; rows take turns in random order. A pair is dropped
if the threads of either tool waited for a processor (schedstat of Linux) or the machine's host took one away. The ratio is
the median of the pairs' ratios, its bounds are those of the bootstrap. Tools that are missing are left out, and said so.
"""
import argparse
import datetime
import glob
import json
import os
import platform
import random
import re
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = os.path.join(HERE, "peers")
SIZES = dict(rows=100, side=1000, options=1953, pixels=1024, most=200, matrices=100_000, resident=1000, repeats=100)
TINY = dict(rows=2, side=32, options=2, pixels=64, most=20, matrices=16, resident=8, repeats=2)
SLACK = 0.05        # a target is met if the upper bound is at most so much above it
BLOCK = 15e6        # ns that the repetitions of a block take, if one does not take longer
DIFFERENT = 1e-6    # as a part of the largest result: results that far apart are not of the same work
LAYERS = ["tbb", "omp", "workqueue"]
KERNELS = ["t14", "t15", "t16", "t17", "t38", "t39", "t40", "options, polynomial", "options, erf", "mandelbrot", "matrices"]


class Left(Exception):
    """Why a tool is left out."""


class Tool:
    """A process that does works. Its first line says what it is."""

    def __init__(self, command, **env):
        self.said = tempfile.TemporaryFile()
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, bufsize=0,
                                            env=dict(os.environ, **env))
        except OSError as e:
            raise Left(str(e))
        self.omp = env.get("NUMBA_THREADING_LAYER") == "omp"
        self.rest = b""
        self.about = self.read(120)
        self.name = " ".join(self.about[k] for k in ("peer", "version") if k in self.about)
        if self.about["peer"].startswith("gcc"):
            self.name = self.about["peer"]

    def wait(self, seconds):
        """until there is something to read"""
        select.select([self.process.stdout], [], [], seconds)

    def read(self, seconds):
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            ready = select.select([self.process.stdout], [], [], max(end - time.monotonic(), 0))[0]
            more = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not more:
                self.process.kill()
                self.said.seek(0)
                said = self.said.read().decode(errors="replace").strip().splitlines()
                raise Left("no answer in %d s" % seconds if not ready else said[-1] if said else "it ended")
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def ask(self, *fields, seconds=120):
        self.send(*fields)
        return self.hear(seconds)

    def send(self, *fields):
        try:
            self.process.stdin.write(("\t".join(map(str, fields)) + "\n").encode())
        except BrokenPipeError:
            pass  # hear says so

    def hear(self, seconds=120):
        a = self.read(seconds)
        if "error" in a:
            raise Left(a["error"])
        return a

    def waited(self):
        """ns that the threads of the process have waited for a processor, since they were started"""
        ns = 0
        for f in glob.glob("/proc/%d/task/*/schedstat" % self.process.pid):
            try:
                with open(f) as x:
                    ns += int(x.read().split()[1])
            except (OSError, IndexError):
                pass
        return ns

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.said.close()


def stolen():
    """ticks that the host of a virtual machine has taken away from it"""
    try:
        with open("/proc/stat") as f:
            return int(f.readline().split()[8])
    except (OSError, IndexError, ValueError):
        return 0


class Block:
    """One block of a tool: its median in ns, and whether others disturbed it."""

    def __init__(self, tool, work, variant, threads, repetitions):
        waited, took, start = tool.waited(), stolen(), time.monotonic_ns()
        self.samples = tool.ask("time", work, variant, threads, repetitions)["ns"]
        wall = time.monotonic_ns() - start
        self.waited, self.wall = tool.waited() - waited, wall
        allowed = 0.03 * wall if threads == 1 else 0.06 * wall + 80e3 * (repetitions + 1)  # a thread that is woken waits a little
        self.disturbed = self.waited > allowed or stolen() > took
        self.ns = statistics.median(self.samples)
        time.sleep(0.02 if tool.omp else 0.003)  # threads of the last block may still spin


class Side:
    """What one tool does in a row."""

    def __init__(self, tool, work, variant, threads):
        self.tool, self.work, self.variant, self.threads = tool, work, variant, threads
        self.estimate = None

    def prepare(self):
        """begins to compile and to make the inputs"""
        self.tool.send("time", self.work, self.variant, self.threads, 1)

    def calibrate(self):
        """after prepare, finds how long one run takes at least"""
        self.estimate = min(self.tool.hear(180)["ns"])
        if self.estimate < 100e6:
            self.estimate = min(self.tool.ask("time", self.work, self.variant, self.threads, 3 if self.estimate > 5e6 else 7)["ns"])
        if self.tool.omp:
            time.sleep(0.02)

    def block(self):
        return Block(self.tool, self.work, self.variant, self.threads, int(min(max(BLOCK / self.estimate, 1), 15)))

    def label(self):
        peer = self.tool.about["peer"]
        if peer == "gpukit":
            return "plain Go" if self.variant == "go" else peer
        if peer == "numba":
            return ", ".join([self.tool.name, self.variant] + ([self.tool.about["layer"]] if self.threads > 1 else []))
        return self.tool.name if self.variant in ("expression", "matmul") else "%s, %s" % (self.tool.name, self.variant)


class Row:
    """gpukit beside one peer, on so many threads."""

    def __init__(self, title, ours, who, candidates, threads, target):
        self.title, self.ours, self.who, self.candidates, self.threads, self.target = title, ours, who, candidates, threads, target
        self.peer = None
        self.pairs, self.disturbed = [], []
        self.difference = "-"

    def pair(self):
        sides = [self.ours, self.peer]
        order = random.sample([0, 1], 2)
        blocks = [None, None]
        for i in order:
            blocks[i] = sides[i].block()
        to = self.disturbed if blocks[0].disturbed or blocks[1].disturbed else self.pairs
        to.append(blocks)

    def counted(self):
        return self.pairs if len(self.pairs) >= 5 else self.pairs + self.disturbed


def bounds(x, resamples=2000):
    """the 95 % bounds of the median"""
    medians = sorted(statistics.median(random.choices(x, k=len(x))) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples) - 1]


def build_c(where, lines):
    """Compiles the C of PEERS with the flags that are measured. Returns their programs."""
    gcc = shutil.which("gcc")
    if not gcc:
        lines.append("left out: C (there is no gcc)")
        return {}
    flags = ["-march=native"] if platform.machine() in ("x86_64", "AMD64") else ["-mcpu=native"]
    wide = ["-mprefer-vector-width=512"] if "avx512f" in cpu_flags() else []
    programs = {}
    for name, options in (("O3", ["-O3"] + flags), ("Ofast", ["-Ofast"] + flags + wide)):
        program, server = os.path.join(where, "c-" + name), os.path.join(where, "server.o")
        for command in ([gcc, "-O2", "-ffp-contract=off", "-c", os.path.join(PEERS, "server.c"), "-o", server],
                        [gcc] + options + ['-DBUILD="gcc %s"' % " ".join(options), os.path.join(PEERS, "works.c"), server, "-o", program, "-lm", "-lpthread"]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                lines.append("left out: gcc %s (%s)" % (" ".join(options), (done.stderr.strip().splitlines() or ["it failed"])[-1]))
                break
        else:
            programs[name] = program
    return programs


def cpuinfo():
    try:
        with open("/proc/cpuinfo") as f:
            return f.read()
    except OSError:
        return ""


def cpu_flags():
    m = re.search(r"^flags\s*:(.*)$", cpuinfo(), re.M)
    return m.group(1).split() if m else []


def machine():
    model = re.search(r"^model name\s*:\s*(.*)$", cpuinfo(), re.M)
    family = [re.search(r"^%s\s*:\s*(\d+)$" % k, cpuinfo(), re.M) for k in ("cpu family", "model")]
    where = model.group(1) if model else platform.processor() or platform.machine()
    if all(family):
        where += " (family %s, model %s)" % tuple(m.group(1) for m in family)
    simd = "AVX-512" if "avx512f" in cpu_flags() else "AVX2" if "avx2" in cpu_flags() else "neither AVX-512 nor AVX2"
    pages = ""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as f:
            pages = ", huge pages: " + re.search(r"\[(.*)\]", f.read()).group(1)
    except (OSError, AttributeError):
        pass
    return "%s, %d processors, %s, %s %s%s" % (where, os.cpu_count() or 0, simd, platform.system(), platform.release(), pages)


class Bench:
    def __init__(self, o):
        self.o, self.end = o, time.monotonic() + 60 * o.minutes
        self.lines, self.tools, self.rows = [], {}, []
        self.processors = min(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
        self.sizes = [str(x) for x in (TINY if o.tiny else SIZES).values()] + [str(self.processors)]
        self.scratch = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.note("left out: rows on two threads (one processor)") if self.processors < 2 else None

    def note(self, text):
        print(text, file=sys.stderr, flush=True)
        self.lines.append(text)

    def start(self):
        """Starts the tools that there are."""
        def tool(key, command, **env):
            try:
                self.tools[key] = Tool(command + self.sizes, **env)
            except Left as e:
                if key == "gpukit":
                    sys.exit("%s does not start: %s" % (command[0], e))
                self.note("left out: %s (%s)" % (key, e))

        tool("gpukit", [self.o.cpubench])
        if self.o.no_peers:
            return
        where = self.o.build or self.scratch.name
        os.makedirs(where, exist_ok=True)
        left = []
        for name, program in build_c(where, left).items():
            tool(name, [program])
        for x in left:
            self.note(x)
        for folder, peers in ((self.o.peers, ["numpy", "numexpr", "numba"]), (self.o.svml, ["numba SVML"])):
            python = os.path.join(folder, "bin", "python")
            if not os.path.exists(python):
                self.note("left out: %s (no Python packages in %s)" % (", ".join(peers), folder or "a folder"))
                continue
            env = {"LD_LIBRARY_PATH": os.path.join(folder, "lib") + os.pathsep + os.environ.get("LD_LIBRARY_PATH", ""),
                   "NUMBA_NUM_THREADS": str(self.processors), "NUMEXPR_MAX_THREADS": str(self.processors)}
            for p in peers:
                script = os.path.join(PEERS, "peer_%s.py" % p.split()[0])
                for layer in LAYERS if p.startswith("numba") and self.processors > 1 else LAYERS[-1:]:
                    key = "%s %s" % (p, layer) if p.startswith("numba") else p
                    tool(key, [python, script], NUMBA_THREADING_LAYER=layer, **env)

    def side(self, key, work, variant, threads):
        return Side(self.tools[key], work, variant, threads)

    def numba(self, work, variants, threads):
        """candidates of all versions, and of all layers where there is more than one thread"""
        out = []
        for p in ("numba", "numba SVML"):
            for layer in LAYERS if threads > 1 else LAYERS[-1:]:
                if "%s %s" % (p, layer) in self.tools:
                    out += [self.side("%s %s" % (p, layer), work, v, threads) for v in variants]
        return out

    def add(self, title, work, who, candidates, threads, target=None, variant="gpukit"):
        if candidates and re.search(self.o.only, "%s %s %d" % (title, who, threads)):
            self.rows.append(Row(title, self.side("gpukit", work, variant, threads), who, candidates, threads, target))

    def plan(self):
        """All rows, of the tools that there are."""
        for t in range(1, self.processors + 1):
            def c(key, work, variant):
                return [self.side(key, work, variant, t)] if key in self.tools else []

            def own(work, variant):
                return [self.side("gpukit", work, variant, t)]

            name = "discount"
            self.add(name, name, "best C", c("O3", name, "loop") + c("O3", name, "streaming") + c("O3", name, "streaming, tiles"), t, 1.0)
            stores = self.tools["gpukit"].about.get("stores", "plain")
            for kind in ("plain", "streaming"):
                self.add(name, name, "copy, %s stores" % kind, c("O3", "copy", kind), t, 1.15 if kind == stores else None)
            self.add(name, name, "numba", self.numba(name, ["vectorize", "gufunc of a slice", "prange"], t), t)
            if t == 1:
                self.add(name, name, "numpy", c("numpy", name, "expression"), t)
            self.add(name, name, "numexpr", c("numexpr", name, "expression"), t)
            self.add(name, name, "plain Go", own(name, "go"), t)
            self.add("discount, new result", "discount, new result", "with Out", own(name, "gpukit"), t)
            for form, same in (("t14", "discount"), ("t16", "discount"), ("t17", "discount17")):
                self.add(form, form, "vectorize form", own(same, "gpukit"), t, 1.1)
                self.add(form, form, "numba", self.numba(form, ["gufunc"], t), t)

            name = "distance"
            self.add("distance from arrays", name, "gcc -Ofast", c("Ofast", name, "loop"), t, 1.0)
            self.add("distance from arrays", name, "numba", self.numba(name, ["vectorize", "prange"], t), t, 0.5)
            self.add("distance from arrays", name, "gcc -O3", c("O3", name, "loop"), t)
            if t == 1:
                self.add("distance from arrays", name, "numpy", c("numpy", name, "expression"), t)
            self.add("distance from arrays", name, "numexpr", c("numexpr", name, "expression"), t)
            self.add("distance from arrays", name, "plain Go", own(name, "go"), t)
            self.add("distance from arrays, FastMath", name, "gcc -Ofast", c("Ofast", name, "loop"), t, 0.7, "fastmath")
            self.add("distance from arrays, FastMath", name, "numba", self.numba(name, ["vectorize, fastmath", "prange, fastmath"], t), t, None, "fastmath")

            name = "mesh"
            self.add("distance from generators", name, "gcc -Ofast, by axes", c("Ofast", name, "by axes"), t, 1.0)
            self.add("distance from generators", name, "numba", self.numba(name, ["prange"], t), t)
            if t == 1:
                self.add("distance from generators", name, "numpy", c("numpy", name, "expression"), t)
            self.add("distance from generators", name, "plain Go, by axes", own(name, "go"), t)

            for name in ("options, polynomial", "options, erf"):
                self.add(name, name, "gcc -Ofast", c("Ofast", name, "loop"), t, 0.9)
                self.add(name, name, "gcc -O3", c("O3", name, "loop"), t)
                self.add(name, name, "numba", self.numba(name, ["gufunc", "gufunc, contiguous"], t), t)
                self.add(name, name, "numba, fastmath", self.numba(name, ["prange, fastmath"], t), t)
                if "polynomial" in name:  # they have no erf
                    if t == 1:
                        self.add(name, name, "numpy", c("numpy", name, "expression"), t)
                    self.add(name, name, "numexpr", c("numexpr", name, "expression"), t)
                self.add(name, name, "plain Go", own(name, "go"), t)

            name = "mandelbrot"
            self.add(name, name, "by hand, several vectors", c("O3", name, "several vectors"), t, 1.3)
            self.add(name, name, "by hand, one vector", c("O3", name, "one vector"), t)
            self.add(name, name, "numba", self.numba(name, ["vectorize"], t), t, 0.2)
            self.add(name, name, "gcc -O3", c("O3", name, "loop"), t)
            self.add(name, name, "plain Go", own(name, "go"), t)

            for name in ("matrices", "matrices in cache"):
                self.add(name, name, "gcc -Ofast, constant sizes", c("Ofast", name, "sums") + c("Ofast", name, "by row"), t, 1.0)
                self.add(name, name, "by hand", c("O3", name, "by hand"), t)
                self.add(name, name, "numba", self.numba(name, ["gufunc", "gufunc, contiguous"], t), t, 0.3)
                if t == 1:
                    self.add(name, name, "numpy", c("numpy", name, "matmul"), t)
                self.add(name, name, "plain Go", own(name, "go"), t)

            if t == 1:
                name = "ten elements"
                self.add("ten elements, 1000 calls", name, "numba", self.numba(name, ["vectorize"], t), t)
                self.add("ten elements, 1000 calls", name, "numpy", c("numpy", name, "expression"), t)

    def calibrate(self):
        """Finds each row's best candidate, and how much its results differ."""
        checked, kept, estimates, versions = {}, [], {}, {}
        for row in self.rows:
            version = versions.get((row.title, row.who))  # of numba, that is best on one thread
            candidates = [s for s in row.candidates if version in (None, s.tool.name)]
            self.estimate(candidates, estimates)
            best = {s.estimate: s for s in candidates if s.estimate}
            if not best:
                continue
            row.peer = best[min(best)]
            if row.who.startswith("numba"):
                versions[row.title, row.who] = row.peer.tool.name
            key = (row.ours.work, row.ours.variant, row.ours.threads)
            try:
                if key not in estimates:
                    row.ours.prepare()
                    row.ours.calibrate()
                    estimates[key] = row.ours.estimate
                row.ours.estimate = estimates[key]
                if row.peer.work != "copy":
                    row.difference = self.compare(row, checked)
            except Left as e:
                self.note("left out: %s, %s on %d threads (%s)" % (row.title, row.who, row.threads, e))
                continue
            kept.append(row)
        self.rows = kept

    def estimate(self, sides, estimates):
        """Finds out how long each takes, if that is not known yet. Tools compile at the same time."""
        def key(s):
            return s.tool, s.work, s.variant, s.threads
        new = [s for s in sides if key(s) not in estimates]
        while new:
            wave = list({s.tool: s for s in new}.values())
            new = [s for s in new if s not in wave]
            for s in wave:
                s.prepare()
            for s in wave:  # all are ready before one is timed
                s.tool.wait(180)
            for s in wave:
                try:
                    s.calibrate()
                except Left as e:
                    self.note("left out: %s, %s on %d threads (%s)" % (s.work, s.label(), s.threads, e))
                estimates[key(s)] = s.estimate
        for s in sides:
            s.estimate = estimates[key(s)]

    def compare(self, row, checked):
        p, o = row.peer, row.ours
        key = (p.tool, p.work, p.variant, p.threads, o.work, o.variant)
        if key not in checked:
            file = os.path.join(self.scratch.name, "result")
            p.tool.ask("dump", p.work, p.variant, p.threads, file)
            a = o.tool.ask("check", o.work, o.variant, o.threads, file)
            os.remove(file)
            if a["part"] > DIFFERENT:
                raise Left("results differ by %.2g of the largest" % a["part"])
            checked[key] = "%.3g" % a["ulp"] if a["ulp"] < 1e6 else "%.1e of the largest" % a["part"]
        return checked[key]

    def measure(self):
        least, most = self.o.pairs, self.o.pairs + self.o.pairs // 2
        last = time.monotonic()
        while True:
            todo = [r for r in self.rows if len(r.pairs) < least and len(r.disturbed) < 4 * least]
            if not todo:
                todo = [r for r in self.rows if r.target is not None and len(r.pairs) < most and len(r.disturbed) < 4 * least]
            if not todo:
                return
            for row in random.sample(todo, len(todo)):
                if time.monotonic() > self.end:
                    return
                try:
                    row.pair()
                except Left as e:
                    self.note("left out: %s, %s on %d threads (%s)" % (row.title, row.who, row.threads, e))
                    self.rows.remove(row)
            if time.monotonic() - last > 30:
                last = time.monotonic()
                print("%d pairs, %d dropped" % (sum(len(r.pairs) for r in self.rows), sum(len(r.disturbed) for r in self.rows)), file=sys.stderr, flush=True)

    def absolute(self):
        """What is measured without a peer: (what, median, bounds, unit, target, samples)."""
        out, gpukit, n = [], self.tools["gpukit"], max(self.o.pairs, 3)

        def add(what, ns, scale, unit, target):
            x = [v / scale for v in ns]
            out.append((what, statistics.median(x), bounds(x), unit, target, len(x)))

        for t in range(1, self.processors + 1):
            if not re.search(self.o.only, "ten elements %d" % t):
                continue
            blocks = [Block(gpukit, "ten elements", "gpukit", t, 3) for _ in range(n)]
            quiet = [b.ns for b in blocks if not b.disturbed]
            add("Vectorize of ten elements, warm, on %s" % ("cpu" if t == 1 else "parallel"), quiet if len(quiet) >= 5 else [b.ns for b in blocks], 1e6, "us", 3)
        for k in KERNELS:
            if re.search(self.o.only, "compile " + k):
                add("compile %s" % k, gpukit.ask("compile", k, "fastmath", 1, n)["ns"], 1e6, "ms", 1)
                add("compile %s, with the self-check" % k, gpukit.ask("compile", k, "gpukit", 1, n)["ns"], 1e6, "ms", None)
        return out

    def whole(self):
        """Programs from start to exit: rows of (what, peer, ms, ms, ratio, bounds, target, pairs)."""
        if not (self.o.t16a and self.o.t16ago) or not re.search(self.o.only, "whole program"):
            return []
        programs = {"arrays": [self.o.t16a, "slices"], "Arange": [self.o.t16a], "plain Go": [self.o.t16ago]}
        for folder, name in ((self.o.peers, "numba"), (self.o.svml, "numba SVML")):
            python = os.path.join(folder, "bin", "python")
            if os.path.exists(python) and not self.o.no_peers:
                programs[name] = [python, os.path.join(PEERS, "t16a_numba.py")]
        took = {k: [] for k in programs}
        for i in range(self.o.pairs + 1):
            for k in random.sample(list(programs), len(programs)):
                start = time.perf_counter()
                subprocess.run(programs[k], stdout=subprocess.DEVNULL, check=True)
                if i:  # the first fills the caches of the file system
                    took[k].append((time.perf_counter() - start) * 1e3)
        out = []
        for ours in ("arrays", "Arange"):
            for peer in programs:
                if peer in ("arrays", "Arange"):
                    continue
                ratios = [a / b for a, b in zip(took[ours], took[peer])]
                out.append(("t16a, start to exit, " + ours, peer, statistics.median(took[ours]), statistics.median(took[peer]),
                            statistics.median(ratios), bounds(ratios), 1.5 if peer == "plain Go" else 0.06, len(ratios)))
        self.samples_whole = took
        return out

    def report(self, absolute, whole):
        def met(upper, target, slack):
            return "-" if target is None else "yes" if upper <= target + slack else "no"

        def fmt(x):
            return "%.3g" % x if x < 100 else "%.0f" % x

        say = []
        head = ["work", "threads", "gpukit / ms", "peer", "peer / ms", "gpukit : peer", "95 % bounds", "pairs", "dropped", "target", "met", "largest difference / ulp"]
        say.append("| " + " | ".join(head) + " |")
        say.append("|---" * len(head) + "|")
        for r in self.rows:
            pairs = r.counted()
            if not pairs:
                continue
            ratios = [a.ns / b.ns for a, b in pairs]
            low, high = bounds(ratios)
            pairs_said = "%d" % len(r.pairs) if r.counted() is r.pairs else "%d (loaded)" % len(pairs)
            who = r.who
            if who.startswith("num"):
                who = r.peer.label()
            elif len(r.candidates) > 1:
                who += ": " + r.peer.variant
            say.append("| " + " | ".join([
                r.title, str(r.threads), fmt(statistics.median(a.ns for a, _ in pairs) / 1e6), who, fmt(statistics.median(b.ns for _, b in pairs) / 1e6),
                "**%.2f**" % statistics.median(ratios) if r.target is not None else "%.2f" % statistics.median(ratios), "%.2f to %.2f" % (low, high),
                pairs_said, str(len(r.disturbed)), "-" if r.target is None else "%g" % r.target, met(high, r.target, SLACK), r.difference]) + " |")
        for what, peer, a, b, ratio, (low, high), target, n in whole:
            say.append("| " + " | ".join([what, "1", fmt(a), peer, fmt(b), "**%.2f**" % ratio, "%.2f to %.2f" % (low, high), str(n), "-", "%g" % target,
                                         met(high, target, SLACK), "-"]) + " |")
        say.append("")
        say.append("| gpukit alone | median | 95 % bounds | samples | target | met |")
        say.append("|---" * 6 + "|")
        for what, m, (low, high), unit, target, n in absolute:
            say.append("| %s | %s %s | %s to %s | %d | %s | %s |" % (
                what, fmt(m), unit, fmt(low), fmt(high), n, "-" if target is None else "%g %s" % (target, unit), met(high, target, 0)))
        return say


HEAD = """# gpukit beside numba, numpy, numexpr, C and plain Go

Written by `%s`; run it again to have the figures of another machine. `bench.py` says how it measures: long-lived processes, blocks in
pairs and in random order, medians, ratios of the pairs with bootstrap bounds. A ratio below 1 means that gpukit is faster. A target is met if the upper
bound is at most 0.05 above it (for times: at most the target). Dropped are pairs whose threads waited for a processor.

- %s
- %s
- gpukit: %s, %s
%s
Works: *discount* multiplies 2,000,000 float64 by 20,000 into an array that is there (`Out`), t14, t16 and t17 are the threads' loops that do it; *distance* is the
threads' haversine over 1000 x 1000 points; *options* are 1953 x 512 Black-Scholes prices, call and put; *mandelbrot* is 1024 x 1024 points with at most 200
iterations; *matrices* are 100,000 products of 8 x 8, *in cache* 100 times the same 1000. Each peer has its best form that we know, of those that are
named in `peers/`; numba's is the fastest of its versions and threading layers, which is named. "By hand" is C with AVX intrinsics. gpukit computes without
contraction and within 1 ulp; gcc -Ofast, libmvec and fastmath within a few. *Compile* is the first call of a kernel on a new device less the second one: source,
types, code. It is measured with FastMath, which has no self-check; with it come the four workers that the reference evaluator computes, for 1 ms at most.

"""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--cpubench", required=True)
    p.add_argument("--t16a", default="")
    p.add_argument("--t16ago", default="")
    p.add_argument("--peers", default="")
    p.add_argument("--svml", default="")
    p.add_argument("--build", default="", help="folder for the C programs")
    p.add_argument("--out", default="")
    p.add_argument("--samples", default="")
    p.add_argument("--pairs", type=int, default=15)
    p.add_argument("--minutes", type=float, default=9.5)
    p.add_argument("--only", default="")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--no-peers", action="store_true")
    p.add_argument("--command", default="make bench-peers")
    o = p.parse_args()

    begun = time.monotonic()
    b = Bench(o)
    try:
        b.start()
        b.plan()
        b.calibrate()
        print("%d rows, ready after %.0f s" % (len(b.rows), time.monotonic() - begun), file=sys.stderr, flush=True)
        whole = b.whole()
        absolute = b.absolute()
        b.measure()
    finally:
        for t in b.tools.values():
            t.close()
        b.scratch.cleanup()
    table = b.report(absolute, whole)
    about = b.tools["gpukit"].about
    kept, dropped = sum(len(r.pairs) for r in b.rows), sum(len(r.disturbed) for r in b.rows)
    tools = sorted({"%s%s" % (t.about["peer"] if t.about["peer"].startswith("gcc") else t.name, " (%s)" % ", ".join(
        x for x in ((t.about["version"] if t.about["peer"].startswith("gcc") else ""), t.about.get("note", ""),
                    "numpy " + t.about["numpy"] if "numpy" in t.about else "") if x) if len(t.about) > 2 or t.about["peer"].startswith("gcc") else "")
        for k, t in b.tools.items() if k != "gpukit"})
    head = HEAD % (o.command, machine(), "%s; %d pairs, %d dropped, %.0f s" % (datetime.date.today(), kept, dropped, time.monotonic() - begun),
                   about["engine"], about["version"], "".join("- %s\n" % x for x in tools + b.lines))
    text = head + "\n".join(table) + "\n"
    print(text)
    if o.out:
        with open(o.out, "w") as f:
            f.write(text)
    if o.samples:
        os.makedirs(os.path.dirname(os.path.abspath(o.samples)), exist_ok=True)
        with open(o.samples, "w") as f:
            json.dump({"machine": machine(), "gpukit": about, "tools": tools, "whole_ms": getattr(b, "samples_whole", {}), "rows": [
                {"work": r.title, "threads": r.threads, "peer": r.peer.label(), "target": r.target, "difference": r.difference,
                 "pairs": [{"kept": kept, "gpukit_ns": x.samples, "peer_ns": y.samples, "gpukit_waited": x.waited, "peer_waited": y.waited}
                           for kept, pairs in ((True, r.pairs), (False, r.disturbed)) for x, y in pairs]} for r in b.rows]}, f)


if __name__ == "__main__":
    main()
