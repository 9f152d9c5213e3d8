"""The table of the README: this kernel beside gophernotes as published. Run it on a machine that does nothing else:

    python jupyter/kerneltest/compare.py [--cells 10000] [--only-ours]

gophernotes is built as it stands, with `go build -trimpath` (else it does not start on today's Go), into a folder of its own.
Whatever takes longer than a minute, or ends the kernel, is a "no".
"""
import argparse
import json
import os
import pathlib
import queue
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
ROOT = pathlib.Path(__file__).resolve().parents[2]

import conftest  # noqa: E402  (finds our kernel)
import client  # noqa: E402


def Notebook(kernel):
    """What a kernel says on its terminal is no part of the table."""
    return client.Notebook(kernel, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def gophernotes(folder: pathlib.Path) -> str:
    spec = folder / "kernels" / "gophernotes-0.7.5"
    spec.mkdir(parents=True)
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"}
    subprocess.run(["go", "build", "-trimpath", "-buildvcs=false", "-o", spec / "gophernotes", "github.com/gopherdata/gophernotes"], cwd=ROOT, env=env, check=True)
    (spec / "kernel.json").write_text(json.dumps({"argv": [str(spec / "gophernotes"), "{connection_file}"], "display_name": "gophernotes", "language": "go"}))
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("JUPYTER_PATH")]))
    os.environ.pop("GOROOT", None)
    return "gophernotes-0.7.5"


def ready(kernel):
    """Median of five starts, without jupyter_client's own share: until the first reply to kernel_info_request."""
    times = []
    for _ in range(5):
        begin = time.time()
        with Notebook(kernel):
            times.append(time.time() - begin)
    return f"{statistics.median(times):.2f} s"


def round_trip(kernel):
    with Notebook(kernel) as nb:
        times = []
        for _ in range(1000):
            begin = time.perf_counter()
            nb.run("")
            times.append(time.perf_counter() - begin)
    return f"{1000 * statistics.median(times):.1f} ms"


def text(kernel):
    with Notebook(kernel) as nb:
        nb.ok('import ("fmt"; "strings")\nline := strings.Repeat("x", 99)')
        begin = time.time()
        got = nb.run("for i := 0; i < 100000; i++ { fmt.Println(line) }", timeout=60)
        took = time.time() - begin
        assert len(got.text()) == 10**7, f"only {len(got.text())} of 10,000,000 bytes arrived"
    return f"{took:.2f} s"


def growth(kernel, cells):
    with Notebook(kernel) as nb:
        for i in range(500):
            nb.run(f"x{i % 7} := {i}")
        before = nb.memory()
        for i in range(cells):
            nb.run(f"x{i % 7} := {i}")
        return f"{nb.memory() - before:.0f} MB"


def loop(kernel):
    with Notebook(kernel) as nb:
        nb.ok("sum := 0")
        times = []
        for _ in range(5):
            begin = time.time()
            nb.ok("for i := 0; i < 10000000; i++ { sum += i & 3 }", timeout=60)
            times.append(time.time() - begin)
    return f"{min(times):.2f} s"


def stopped(kernel, code):
    with Notebook(kernel) as nb:
        nb.ok('import "time"\nkept := 7')
        msg = nb.send(code)
        time.sleep(0.5)
        begin = time.time()
        nb.manager.interrupt_kernel()
        nb.collect(msg, timeout=10)
        took = time.time() - begin
        assert nb.ok("kept", timeout=5).plain == "7"
    return f"{1000 * took:.0f} ms"


def survives(kernel, code):
    with Notebook(kernel) as nb:
        nb.ok('import ("os"; "log"; "time"; "fmt")\nkept := 7')
        nb.run(code, timeout=20)
        assert nb.ok("kept", timeout=5).plain == "7"
    return "yes"


def answers(kernel, kind, content, wanted):
    with Notebook(kernel) as nb:
        nb.ok('import "fmt"\nx := 1')
        msg = nb.client.session.msg(kind + "_request", content)
        nb.client.shell_channel.send(msg)
        reply = nb.client.get_shell_msg(timeout=5)
        assert wanted in json.dumps(reply["content"])
    return "yes"


def shows(kernel, code, wanted, unwanted="\0"):
    with Notebook(kernel) as nb:
        nb.ok('import ("fmt"; "time")')
        got = nb.run(code, timeout=20)
        said = json.dumps([m["content"] for m in got.messages], ensure_ascii=False)
        assert wanted in said and unwanted not in said
    return "yes"


def suite(kernel):
    env = {**os.environ, "GPUNOTES_KERNEL_NAME": kernel}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ROOT / "jupyter" / "kerneltest" / "test_conformance.py"), "-k", "TestGo"],
                          env=env, capture_output=True, text=True, timeout=600)
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    return f"{counts.get('passed', 0)} of {sum(counts.values())}"


ROWS = [
    ("ready after", ready),
    ("an empty cell, there and back (median of 1,000)", round_trip),
    ("10 MB of text", text),
    ("a loop of 10 million additions", loop),
    ("memory after {cells} more cells", None),
    ("jupyter_kernel_test, with every sample", suite),
    ("Stop ends `for {}` and keeps variables", lambda k: stopped(k, "for {}")),
    ("Stop ends `time.Sleep`", lambda k: stopped(k, "time.Sleep(time.Hour)")),
    ("Stop ends `<-ch`", lambda k: stopped(k, "ch := make(chan int)\n<-ch")),
    ("survives a panic in a goroutine", lambda k: survives(k, 'go func() { panic("x") }()\ntime.Sleep(time.Second)')),
    ("survives `os.Exit` and `log.Fatal`", lambda k: survives(k, "os.Exit(1)") and survives(k, 'log.Fatal("x")')),
    ("survives endless recursion", lambda k: survives(k, "func r(n int) int { return r(n+1) + 1 }\nr(0)")),
    ("help on Shift-Tab, with documentation", lambda k: answers(k, "inspect", {"code": "fmt.Println", "cursor_pos": 11, "detail_level": 0}, "writes to standard output")),
    ("history", lambda k: answers(k, "history", {"hist_access_type": "tail", "n": 5, "output": False, "raw": True}, "x := 1")),
    ("a run-time error names its line", lambda k: shows(k, "a := []int{1}\ni := 3\na[i]", "line 3")),
    ("no `3 <nil>` below a print", lambda k: shows(k, 'fmt.Println("ab")', "ab", "<nil>")),
    ("a list of structs is a table", lambda k: shows(k, "type P struct { X int }\n[]P{{1}}", "<table>")),
    ("a bar for long loops", lambda k: shows(k, "for i := 0; i < 25; i++ { time.Sleep(100 * time.Millisecond) }", "<progress")),
    ("strings.Cut, os.ReadFile, log/slog", lambda k: shows(k, 'import ("strings"; "os"; "log/slog")\n_ = slog.Info\n_ = os.ReadFile\nx, _, _ := strings.Cut("a=b", "=")\nx + "ok"', "aok")),
]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--cells", type=int, default=10000)
    args.add_argument("--only-ours", action="store_true")
    args = args.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        kernels = [conftest.KERNEL] if args.only_ours else [conftest.KERNEL, gophernotes(pathlib.Path(scratch))]
        print("| | " + " | ".join(kernels) + " |\n|---|" + "---|" * len(kernels))
        for name, measure in ROWS:
            cells = []
            for kernel in kernels:
                try:
                    cells.append(measure(kernel) if measure else growth(kernel, args.cells))
                except (AssertionError, TimeoutError, queue.Empty, RuntimeError, subprocess.TimeoutExpired):
                    cells.append("no")
            print("| " + " | ".join([name.replace("{cells}", f"{args.cells:,}")] + cells) + " |", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
