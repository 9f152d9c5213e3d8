"""The scripts for GPUs, on a machine that may have none."""

import importlib.util
import math
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

LAB = Path(__file__).parent
FACTS = LAB.parents[1] / "gpukit/internal/driver/cuda/facts"


def run(*args, **env):
    env = {k: v for k, v in {**os.environ, "GPUNOTES_LIBCUDA": "/nowhere/libcuda.so.1", **env}.items() if v is not None}
    return subprocess.run([str(a) for a in args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def facts():
    spec = importlib.util.spec_from_file_location("facts", FACTS / "facts.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_ptx_of_facts_is_current(facts):
    for level, version, make in facts.LEVELS:
        assert Path(facts.file_of(level)).read_text() == facts.text_of(level, version, make), "run facts.py --write"


def test_expected_numbers_are_those_of_this_processor(facts):
    """float64 against Python's own operators; float32 by way of float64, which is exact enough for one operation."""
    def number(f, b):
        return struct.unpack("<d", struct.pack("<Q", b))[0] if f is facts.F64 else struct.unpack("<f", struct.pack("<I", b))[0]

    def bits(f, x):
        if f is facts.F64:
            return struct.unpack("<Q", struct.pack("<d", x))[0]
        try:
            return struct.unpack("<I", struct.pack("<f", x))[0]
        except OverflowError:
            return f.inf | (f.top if x < 0 else 0)

    def divide(a, b):
        if b == 0:
            return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)
        return a / b

    own = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": divide}
    for f in (facts.F64, facts.F32):
        for x, y in zip(*facts.pairs(f, 1500, 77)):
            for op, g in own.items():
                want, got = g(number(f, x), number(f, y)), facts.ieee(op, f, x, y)
                assert got == (facts.NAN if want != want else bits(f, want)), (op, f.show(x), f.show(y))
            root = math.nan if number(f, x) < 0 else math.sqrt(number(f, x))
            assert facts.ieee("sqrt", f, x) == (facts.NAN if root != root else bits(f, root)), f.show(x)


def test_fma_rounds_once(facts):
    f = facts.F64
    a = f.of(1 + 2.0**-30)
    assert facts.ieee("fma", f, a, a, f.of(-(1 + 2.0**-29))) == f.of(2.0**-60)
    assert facts.ieee("fma", f, f.top, f.of(1.0), 0) == 0 and facts.ieee("fma", f, f.top, f.of(1.0), f.top) == f.top
    assert facts.ieee("fma", f, f.inf, f.of(1.0), f.inf | f.top) == facts.NAN


@pytest.mark.parametrize("args", [[], ["--card"]])
def test_facts_without_a_driver(args):
    done = run(sys.executable, FACTS / "facts.py", *args)
    assert done.returncode == 2 and done.stdout == "" and "no card to ask: no driver" in done.stderr


def test_run_sh_without_a_driver(tmp_path):
    for name in ("version", "settings"):
        (tmp_path / name).write_text("")
    (tmp_path / ".src/gpukit").mkdir(parents=True)
    shutil.copytree(FACTS, tmp_path / "facts")
    script = shutil.copy(LAB / "gpu-run.sh", tmp_path / "run.sh")
    for what in ("facts", "test", "bench"):
        done = run("sh", script, what)
        assert done.returncode == 2 and "no card to ask" in done.stderr, what
    assert run("sh", script).returncode == 2


FAKE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static const char *text; static char said[4000];
int nvPTXCompilerGetVersion(unsigned *a, unsigned *b) { *a = 12; *b = 34; return 0; }
int nvPTXCompilerCreate(void **h, size_t n, const char *p) { text = p; *h = said; return 0; }
int nvPTXCompilerDestroy(void **h) { return 0; }
int nvPTXCompilerCompile(void *h, int n, const char **o) {
	said[0] = 0;
	for (int i = 0; i < n; i++) { strcat(said, o[i]); strcat(said, " "); if (strstr(o[i], "sm_30")) return 4; }
	return strstr(text, "bad") ? 4 : 0;
}
static int none(void *h, size_t *n) { *n = 0; return 0; }
int nvPTXCompilerGetErrorLogSize(void *h, size_t *n) { return none(h, n); }
int nvPTXCompilerGetErrorLog(void *h, char *s) { return 0; }
int nvPTXCompilerGetInfoLogSize(void *h, size_t *n) { *n = strlen(said); return 0; }
int nvPTXCompilerGetInfoLog(void *h, char *s) { strcpy(s, said); return 0; }
int nvPTXCompilerGetCompiledProgramSize(void *h, size_t *n) { *n = 4; return 0; }
int nvPTXCompilerGetCompiledProgram(void *h, void *p) { memcpy(p, "\177ELF", 4); return 0; }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here to make a stand-in of the driver's compiler")
def test_ptxjit_acts_like_ptxas(tmp_path):
    (tmp_path / "jit.c").write_text(FAKE)
    subprocess.run(["gcc", "-w", "-shared", "-fPIC", "-o", tmp_path / "jit.so", tmp_path / "jit.c"], check=True)
    (tmp_path / "good.ptx").write_text(".version 3.1")
    (tmp_path / "bad.ptx").write_text("bad")

    def ptxjit(*args):
        return run(sys.executable, LAB / "ptxjit.py", *args, GPUNOTES_PTXJIT=str(tmp_path / "jit.so"))

    assert "CUDA 12.34" in ptxjit("--library").stdout
    listed = ptxjit("--help").stdout
    assert "'sm_35'" in listed and "'sm_30'" not in listed
    done = ptxjit("-arch=sm_61", "-v", "-lineinfo", "-O1", "-c", "-o", tmp_path / "out", tmp_path / "good.ptx")
    assert (done.returncode, (tmp_path / "out").read_bytes()) == (0, b"\x7fELF")
    assert done.stderr.split() == ["--gpu-name=sm_61", "--verbose", "--generate-line-info", "--opt-level=1", "--compile-only"]
    assert ptxjit("-arch=sm_61", "-o", tmp_path / "out", tmp_path / "bad.ptx").returncode == 255
    assert ptxjit("-arch=sm_61", "--what", "-o", tmp_path / "out", tmp_path / "good.ptx").returncode == 255


def test_ptxjit_without_a_library():
    done = run(sys.executable, LAB / "ptxjit.py", "--library", GPUNOTES_PTXJIT="/nowhere/jit.so")
    assert done.returncode == 1 and "/nowhere/jit.so" in done.stderr
