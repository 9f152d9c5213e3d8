"""`go run ./jupyter install`, doctor and uninstall, for real."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from conftest import KERNEL

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="no go command here")


def test_install_doctor_uninstall(tmp_path):
    command = tmp_path / "jupyter-command"
    subprocess.run(["go", "build", "-buildvcs=false", "-o", command, "./jupyter"], cwd=ROOT, check=True)

    def run(*args, **env):
        done = subprocess.run(
            [command, *args, "--prefix", tmp_path / "p", "--as", "gophernotes"],
            cwd=ROOT, text=True, capture_output=True, env={**os.environ, **env},
        )
        return done.returncode, done.stdout + done.stderr

    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    well = {"PATH": path, "JUPYTER_PATH": str(tmp_path / "p" / "share" / "jupyter")}

    status, text = run("doctor", **well)
    assert status == 1 and "not installed" in text

    # Settings of the user's own Go projects must not get in the way.
    (tmp_path / "go.work").write_text("go 1.20\nuse ./nowhere\n")
    status, text = run("install", "--cuda=no", GOFLAGS="-mod=vendor", GOWORK=str(tmp_path / "go.work"))
    assert status == 0 and "without CUDA: --cuda=no" in text, text
    spec = tmp_path / "p" / "share" / "jupyter" / "kernels" / "gophernotes"
    assert json.loads((spec / "kernel.json").read_text())["interrupt_mode"] == "message"
    assert sorted(f.name for f in spec.iterdir()) == ["gophernotes", "kernel.json", "logo-32x32.png", "logo-64x64.png"]

    status, text = run("doctor", **well)
    assert status == 0 and "CUDA: the kernel was built without" in text, text

    # Another kernel of this name is found first.
    other = tmp_path / "other" / "kernels" / "gophernotes"
    shutil.copytree(spec, other)
    status, text = run("doctor", PATH=path, JUPYTER_PATH=str(tmp_path / "other") + os.pathsep + well["JUPYTER_PATH"])
    assert status == 1 and "hides" in text and str(other) in text
    # Jupyter does not look there at all.
    status, text = run("doctor", PATH=path, JUPYTER_PATH="", JUPYTER_DATA_DIR=str(tmp_path / "empty"))
    assert status == 1 and ("does not look" in text or "hides" in text)

    # The program runs without Go, without a home, and with GOROOT set.
    for env in ({"PATH": "/nowhere"}, {"GOROOT": "/nowhere"}, {"GOROOT": subprocess.check_output(["go", "env", "GOROOT"], text=True).strip()}):
        out = subprocess.check_output([spec / "gophernotes", "--selfcheck"], env=env, text=True)
        assert json.loads(out)["build"]

    status, text = run("uninstall")
    assert status == 0 and not spec.exists()
    status, text = run("uninstall")
    assert status == 1 and "no kernel" in text


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="CUDA is for Linux, and its build for gcc")
def test_a_toolkit_that_does_not_compile(tmp_path):
    """auto goes on without CUDA and says why, yes fails; neither damages what is installed."""
    home, lib = tmp_path / "toolkit", tmp_path / "libcuda.so.1"
    (home / "include").mkdir(parents=True)
    (home / "include" / "cuda.h").write_text("#define CUDA_VERSION 12040\n#error made up for a test\n")
    lib.write_text("")
    env = {**os.environ, "CUDA_HOME": str(home), "GPUNOTES_LIBCUDA": str(lib)}
    spec = tmp_path / "p" / "share" / "jupyter" / "kernels" / "gpunotes"

    def run(command, *args):
        done = subprocess.run(["go", "run", "./jupyter", command, "--prefix", tmp_path / "p", *args], cwd=ROOT, text=True, capture_output=True, env=env)
        return done.returncode, done.stdout + done.stderr

    status, text = run("cuda")
    assert status == 0 and text.startswith(f"with CUDA: cuda.h of 12.4 in {home}/include, driver of unknown version in {lib}")
    status, text = run("install")
    assert status == 0 and "it does not compile: " in text and "made up for a test" in text and "without CUDA: see above" in text, text
    before = (spec / "kernel.json").read_text()
    assert "cuda" not in json.loads(before)["metadata"]["gpunotes"]
    status, text = run("install", "--cuda=yes")
    assert status == 1 and "made up for a test" in text, text
    assert (spec / "kernel.json").read_text() == before
    status, text = run("doctor")
    assert status == 1 and "now there are cuda.h of 12.4" in text, text


def test_with_a_module_of_ones_own(tmp_path):
    """install --with compiles any module in; a cell that imports what is missing is told so."""
    mine = tmp_path / "mine"
    (mine / "deep" / "internal" / "hidden").mkdir(parents=True)
    (mine / "go.mod").write_text("module example.com/mine\n\ngo 1.21\n")
    (mine / "mine.go").write_text(
        "// Package mine is a test.\npackage mine\n\n// Twice doubles x.\nfunc Twice(x float64) float64 { return 2 * x }\n\n"
        "// Kind is a name.\ntype Kind string\n\nconst Good Kind = \"good\"\n\n"
        "// Of is for all types.\nfunc Of[T any](x T) T { return x }\n\ntype Pair struct { A, B int; K Kind }\n\nfunc (p Pair) Sum() int { return p.A + p.B }\n"
    )
    (mine / "deep" / "deep.go").write_text("package deep\n\nimport _ \"example.com/mine/deep/internal/hidden\"\n\nvar Here = \"deep\"\n")
    (mine / "deep" / "internal" / "hidden" / "h.go").write_text("package hidden\n")
    done = subprocess.run(
        ["go", "run", "./jupyter", "install", "--cuda=no", "--prefix", tmp_path / "p", "--with", str(mine), "container/heap"],
        cwd=ROOT, text=True, capture_output=True,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert "example.com/mine: skipped Of: generic function" in text
    kernels = tmp_path / "p" / "share" / "jupyter"
    assert json.loads((kernels / "kernels" / "gpunotes" / "kernel.json").read_text())["metadata"]["gpunotes"]["with"] == [str(mine), "container/heap"]
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\nfrom client import Notebook\n"
        "with Notebook('gpunotes') as nb:\n"
        "    nb.ok('import (\"example.com/mine\"; \"example.com/mine/deep\"; \"container/heap\"; \"fmt\")')\n"
        "    assert nb.ok('mine.Twice(4)').plain == '8' and nb.ok('mine.Pair{1, 2, \"good\"}.Sum()').plain == '3'\n"
        "    assert nb.ok('p := mine.Pair{K: \"good\"}\\np.K == \"good\" && p.K == mine.Good').plain == 'true' and nb.ok('deep.Here').plain == 'deep'\n"
        "    assert 'Twice doubles x.' in nb.ok('?mine.Twice').reply['content']['payload'][0]['data']['text/plain']\n"
        "    said = nb.fails('import \"example.com/other\"').error['evalue']\n"
        "    assert 'not compiled into this kernel' in said and 'install --prefix ' + sys.argv[2] + ' --with example.com/other' in said, said\n"
        # With another environment active, the command would install there.
        "with Notebook('gpunotes', env={**os.environ, 'VIRTUAL_ENV': '/elsewhere'}) as nb:\n"
        "    said = nb.fails('import \"example.com/other\"').error['evalue']\n"
        "    assert 'go run ./jupyter install --prefix ' + sys.argv[2] + ' --with example.com/other' in said, said\n"
    )
    env = {**os.environ, "JUPYTER_PATH": str(kernels)}
    env.pop("GPUNOTES_KERNEL_PREFIX", None)
    env.pop("VIRTUAL_ENV", None)
    subprocess.run([sys.executable, "-c", script, str(pathlib.Path(__file__).parent), str(tmp_path / "p")], env=env, check=True)
    # What cannot be had is said before anything is built; the old kernel stays.
    before = (kernels / "kernels" / "gpunotes" / "gophernotes").stat().st_mtime
    done = subprocess.run(["go", "run", "./jupyter", "install", "--cuda=no", "--prefix", tmp_path / "p", "--with", str(tmp_path / "nowhere")], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 1 and "there is no folder" in done.stderr and f"kept: {mine}, container/heap," in done.stdout, done.stdout + done.stderr
    assert (kernels / "kernels" / "gpunotes" / "gophernotes").stat().st_mtime == before


@pytest.mark.skipif(shutil.which("go") is None, reason="no go command here")
def test_the_tests_of_gophernotes():
    """gophernotes' own tests, against our build of it."""
    done = subprocess.run(
        ["go", "test", "-count=1", "-timeout=300s", "-run=TestGophernotesOwnTests", "./jupyter"],
        cwd=ROOT, text=True, capture_output=True, env={**os.environ, "GPUNOTES_GOPHERNOTES": KernelSpecManager().get_kernel_spec(KERNEL).resource_dir + "/gophernotes"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
