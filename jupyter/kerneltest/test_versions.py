"""%versions: what a notebook was run with."""
import html
import json
import os
import re
import subprocess
from pathlib import Path

import pytest


def rows(text):
    head, *lines = text.split("\n")
    assert re.fullmatch(r"what +version", head), head
    at = head.index("version")
    return {line[:at].strip(): line[at:] for line in lines}


@pytest.fixture(scope="module")
def shown(nb):
    got = nb.ok("%versions")
    (data,) = [m["data"] for m in got.of("display_data")]
    assert got.data is None and got.text() == ""
    return data


def test_what_it_names(nb, shown):
    said = rows(shown["text/plain"])
    assert list(said)[:10] == ["gpunotes", "Go", "gophernotes", "gomacro", "gonum", "gonum/plot", "operating system", "processor", "cores", "engine"]
    assert all(re.match("GPU", name) for name in list(said)[10:]) and len(said) >= 11
    assert not [name for name, value in said.items() if not value.strip() or "unknown" in value and name != "processor"]
    assert re.search(r"source [0-9a-f]{16}$", said["gpunotes"])
    assert said["cores"].split(",")[0] == str(os.cpu_count()) == nb.ok('import "runtime"\nruntime.NumCPU()').plain
    assert "go" + said["Go"] == nb.ok("runtime.Version()").plain
    assert nb.ok("runtime.GOARCH").plain in said["operating system"]


def test_versions_are_those_of_go_mod(shown):
    said = rows(shown["text/plain"])
    modules = dict(re.findall(r"^\t(\S+) v(\S+)", (Path(__file__).parents[2] / "go.mod").read_text(), re.M))
    for name, path in {
        "gophernotes": "github.com/gopherdata/gophernotes", "gomacro": "github.com/cosmos72/gomacro",
        "gonum": "gonum.org/v1/gonum", "gonum/plot": "gonum.org/v1/plot",
    }.items():
        assert said[name] == modules[path]


def test_revision_is_a_commit(shown):
    said = re.match(r"revision ([0-9a-f]+)\+?, ", rows(shown["text/plain"])["gpunotes"])
    try:
        where = subprocess.run(["git", "-C", str(Path(__file__).parent), "cat-file", "-t", said[1] if said else "HEAD"], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no git")
    assert bool(said) == (where.returncode == 0)
    assert not said or where.stdout.strip() == "commit"


def test_engine_is_what_explain_says(nb, fresh):
    for env in ({}, {"GPUNOTES_CPU": "portable"}):
        kernel = fresh(env={**os.environ, **env}) if env else nb
        said = rows(kernel.ok("%versions").of("display_data")[0]["data"]["text/plain"])["engine"]
        kernel.ok('import "gpunotes/gpukit"\nfunc half(x float64) float64 { return x / 2 }\nplan, err := gpukit.MustOpen("parallel").Explain(half, 1.0)')
        assert said == kernel.ok("plan.Engine").plain
        if env:
            assert "portable" in said.lower()


def test_html_says_the_same(shown):
    cells = [html.unescape(c) for c in re.findall(r"<td[^>]*>(.*?)</td>", shown["text/html"])]
    assert dict(zip(cells[::2], cells[1::2])) == rows(shown["text/plain"])


def test_no_path_of_this_machine(shown):
    text = json.dumps(shown)
    assert str(Path.home()) not in text and str(Path(__file__).parents[2]) not in text


def test_help_completion_and_arguments(nb):
    assert re.search(r"^%versions  ", nb.ok("%help").text(), re.M)
    assert "takes no argument" in nb.fails("%versions all").error["evalue"]
    reply = nb.client.complete("%ver", 4, reply=True, timeout=10)
    assert reply["content"]["matches"] == ["%versions"]


def test_it_may_stand_before_code(nb):
    got = nb.ok("%versions\n1 + 1")
    assert got.plain == "2" and len(got.of("display_data")) == 1
