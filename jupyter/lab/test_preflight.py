"""preflight.sh on machines that lack things: everything is said at once, each with its cure, and only what is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PREFLIGHT = Path(__file__).with_name("preflight.sh")
TOOLS = ("sh", "awk", "cat", "df", "dirname", "id", "sed", "uname")


def machine(folder: Path, go: str | None = "go1.26.8", python: str | None = "3.11", venv=True, toolchain="auto", free=99, **programs):
    """A PATH with the tools of every Unix and made-up programs."""
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool))

    def program(name, text):
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text("#!/bin/sh\n" + text)
        (folder / name).chmod(0o755)

    program("df", f"echo header; echo disk 1 1 {free * 1048576} 1% /\n")
    if go:
        program("go", f'case $2 in GOVERSION) echo {go};; GOTOOLCHAIN) echo {toolchain};; GOCACHE) echo /tmp;; esac\n')
    if python:
        program("python3", f'case $2 in *version_info*) echo {python};; *ensurepip*) exit {0 if venv else 1};; esac\n')
    for name, text in programs.items():
        program(name, text)
    return {"PATH": str(folder)}


def run(env, *args):
    sh = shutil.which("sh")
    return subprocess.run([sh, str(PREFLIGHT), *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture
def cure():
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    return "apt-get install " if root else "sudo apt-get install "


def test_whole_machine(tmp_path):
    done = run(machine(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


LACKING = {
    "no go": ({"go": None}, ["Go 1.21 or later (go is not there)", "golang-go"]),
    "old go": ({"go": "go1.19.8"}, ["Go 1.21 or later (go is 1.19.8)", "golang-go"]),
    "go that may not fetch": ({"go": "go1.22.2", "toolchain": "local"}, ["GOTOOLCHAIN forbids it", "go env -w GOTOOLCHAIN=auto"]),
    "go that names nothing": ({"go": "devel"}, ["Go 1.21 or later"]),
    "no python": ({"python": None}, ["Python 3.10 or later (python3 is not there)", "python3 python3-venv"]),
    "old python": ({"python": "3.9"}, ["Python 3.10 or later (python3 is 3.9)"]),
    "no venv": ({"venv": False}, ["modules venv and ensurepip", "apt-get install python3-venv"]),
    "broken python": ({"python3": "exit 1\n"}, ["python3 does not start"]),
    "no room": ({"free": 0}, ["has 0 GiB free"]),
}


@pytest.mark.parametrize("case", LACKING)
def test_lacking(case, tmp_path):
    changed, said = LACKING[case]
    done = run(machine(tmp_path, **changed))
    assert done.returncode == 1
    for part in said:
        assert part in done.stderr


@pytest.mark.parametrize("go, fetches", [("go1.21.0", True), ("go1.25.9", True), ("go1.26.0", False), ("go1.27rc1", False), ("go2.0", False)])
def test_accepted_go(go, fetches, tmp_path):
    done = run(machine(tmp_path, go=go))
    assert done.returncode == 0, done.stderr
    assert ("fetch the toolchain" in done.stderr) == fetches


@pytest.mark.parametrize("version", ["3.10", "3.14", "4.0"])
def test_accepted_python(version, tmp_path):
    assert run(machine(tmp_path, python=version)).returncode == 0


def test_everything_at_once(tmp_path, cure):
    done = run(machine(tmp_path, go=None, python=None), "browser")
    assert done.returncode == 1
    for part in ("golang-go", "python3 python3-venv", "chromium"):
        assert cure + part in done.stderr
    assert "3 missing." in done.stderr


def test_browser_is_asked_for_only_then(tmp_path):
    env = machine(tmp_path, **{"google-chrome": "exit 0\n"})
    assert run(env, "browser").returncode == 0
    (tmp_path / "google-chrome").unlink()
    assert run(env).returncode == 0
    assert "install chromium" in run(env, "browser").stderr


def test_on_a_mac(tmp_path):
    done = run(machine(tmp_path, go=None, uname="echo Darwin\n"))
    assert "brew install go" in done.stderr and "apt-get" not in done.stderr
