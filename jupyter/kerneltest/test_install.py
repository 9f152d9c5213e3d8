"""`go run ./jupyter install`, doctor and uninstall, for real."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

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
        assert "gpunotes/gpukit" in json.loads(out)["packages"]

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
