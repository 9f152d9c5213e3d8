"""The notebook runner itself, what it must catch and what it must not mind; and the shape of the notebooks as one series."""

import base64
import copy
import io
import re
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image, ImageDraw, ImageFont

import notebooks


def png(draw=None, size=(640, 480), colour="white") -> bytes:
    image = Image.new("RGB", size, colour)
    if draw:
        draw(image)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def label(text):
    return lambda image: ImageDraw.Draw(image).text((300, 460), text, fill="black", font=ImageFont.load_default(12))


def grey_noise(image):
    # one level off in a tenth of the pixels of one band: a rasteriser's rounding
    for x in range(0, image.width, 10):
        for y in range(image.height):
            r, g, b = image.getpixel((x, y))
            image.putpixel((x, y), (r, g, b - 1))


def one_pixel(image):
    image.putpixel((10, 10), (0, 0, 0))


def picture(data: bytes, mime="image/png"):
    return new_output("display_data", {mime: base64.b64encode(data).decode()})


def result(text, mime="text/plain", count=1):
    return new_output("execute_result", {mime: text}, execution_count=count)


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def failure(text, name="ERROR"):
    return new_output("error", ename=name, evalue=text, traceback=[text])


def html(data: bytes, text="Fig."):
    return result(f'<img src="data:image/png;base64,{base64.b64encode(data).decode()}"/>{text}', "text/html")


SAME = {
    "nothing": ([], []),
    "text": ([result("1\n2")], [result("1\n2")]),
    "execution count": ([result("1", count=1)], [result("1", count=7)]),
    "text as lines": ([result("a\nb")], [new_output("execute_result", {"text/plain": ["a\n", "b"]}, execution_count=1)]),
    "stream cut elsewhere": ([stream("a\nb\n")], [stream("a"), stream("\nb\n")]),
    "streams interleaved otherwise": (
        [stream("a"), stream("x", "stderr"), stream("b")],
        [stream("x", "stderr"), stream("a"), stream("b")],
    ),
    "stream before or after a value": ([stream("a"), result("1")], [result("1"), stream("a")]),
    "same pixels, other bytes": ([picture(png())], [picture(png() + b"\0")]),
    "rounding": ([picture(png())], [picture(png(grey_noise))]),
    "a stray pixel": ([picture(png())], [picture(png(one_pixel))]),
    "embedded picture, rounding": ([html(png())], [html(png(grey_noise))]),
    "json in another order": (
        [result({"a": 1, "b": [2]}, "application/json")],
        [result({"b": [2], "a": 1}, "application/json")],
    ),
}

DIFFERENT = {
    "text": ([result("1\n2")], [result("1\n3")], "+3"),
    "last line end": ([stream("a\n")], [stream("a")], "line ends"),
    "output gone": ([result("1")], [], "-execute_result: text/plain"),
    "output new": ([], [stream("hello\n")], "+hello"),
    "one more output": ([result("1")], [result("1"), result("1")], "output 2"),
    "stdout became stderr": ([stream("a\n")], [stream("a\n", "stderr")], "stderr"),
    "result became display": ([result("1")], [new_output("display_data", {"text/plain": "1"})], "+display_data"),
    "type gone": ([result("<b>", "text/html")], [result("<b>", "text/plain")], "text/plain"),
    "other order of values": ([result("1"), result("2")], [result("2"), result("1")], "output 1"),
    "error text": ([failure("cell 3:4:7: x")], [failure("cell 3:4:8: x")], "+cell 3:4:8: x"),
    "error became value": ([failure("x")], [result("x")], "-x"),
    "svg": ([result("<svg>1</svg>", "image/svg+xml")], [result("<svg>2</svg>", "image/svg+xml")], "+<svg>2</svg>"),
    "size": ([picture(png())], [picture(png(size=(640, 481)))], "size 640x481, committed 640x480"),
    "colour": ([picture(png())], [picture(png(colour="#fdfdfd"))], "mean"),
    "a digit of a label": ([picture(png(label("99.5")))], [picture(png(label("99.6")))], "x 3"),
    "embedded picture": ([html(png(label("1")))], [html(png(label("2")))], "picture 1"),
    "text around an embedded picture": ([html(png())], [html(png(), "Figure")], "Figure"),
    "broken picture": ([picture(png())], [picture(b"none")], "not a readable picture"),
    "json": ([result({"a": 1}, "application/json")], [result({"a": 2}, "application/json")], '+ "a": 2'),
    "metadata": (
        [new_output("display_data", {"text/plain": "1"}, metadata={"width": 3})],
        [new_output("display_data", {"text/plain": "1"}, metadata={"width": 4})],
        '"width": 4',
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_same(case):
    want, got = SAME[case]
    assert notebooks.compare_outputs(want, got) == []
    assert notebooks.compare_outputs(got, want) == []


@pytest.mark.parametrize("case", DIFFERENT)
def test_different(case, tmp_path):
    want, got, said = DIFFERENT[case]
    faults = notebooks.compare_outputs(want, got, tmp_path)
    assert faults
    assert said in "\n".join(faults)
    assert notebooks.compare_outputs(got, want)


def test_pictures_are_kept(tmp_path):
    want, got, _ = DIFFERENT["a digit of a label"]
    notebooks.compare_outputs(want, got, tmp_path, "cell05-")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "cell05-output-1-image-png-committed.png",
        "cell05-output-1-image-png-difference.png",
        "cell05-output-1-image-png.png",
    ]
    diff = Image.open(tmp_path / "cell05-output-1-image-png-difference.png")
    assert diff.getbbox()[1] >= 460


def notebook(*cells):
    nb = new_notebook(cells=list(cells))
    nb.metadata = nbformat.from_dict({"kernelspec": dict(notebooks.KERNELSPEC), "language_info": {"name": "go"}})
    return nb


def code(source, *outputs, tags=(), **more):
    cell = new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)} if tags else {}, **more)
    return cell


def test_cell_is_named():
    want = notebook(new_markdown_cell("#"), code("1", result("1")), code("2", result("2")))
    got = copy.deepcopy(want)
    got.cells[2].outputs = [result("3")]
    (fault,) = notebooks.compare_notebooks(want, got)
    assert fault.startswith("cell 3, In [2]: ") and "-2" in fault and "+3" in fault


def marked(nb):
    """As an update leaves it."""
    return notebooks.keep_committed(notebook(), nb)


def test_measured_is_not_compared():
    want = marked(notebook(code("t()", result("1 ms"), tags=["measured"]), code("x", result("1 ms"))))
    got = copy.deepcopy(want)
    for cell in got.cells:
        cell.outputs = [result("2 ms")]
    (fault,) = notebooks.compare_notebooks(want, got)
    assert fault.startswith("cell 2, ")


@pytest.mark.parametrize("tag", ["measured", "machine"])
def test_outputs_of_other_code_are_found(tag):
    old = marked(notebook(code("x := 1"), new_markdown_cell("#"), code("t(x)", result("1 ms"), tags=[tag]), code("y := 1")))
    assert notebooks.compare_notebooks(old, old) == []
    old.cells[1].source, old.cells[3].source = "# more", "y := 2"
    assert notebooks.compare_notebooks(old, old) == []
    old.cells[0].source = "x := 2"
    (fault,) = notebooks.compare_notebooks(old, old)
    assert fault.startswith("cell 3, ") and "make notebooks-update" in fault
    new = copy.deepcopy(old)
    new.cells[2].outputs = [result("2 ms")]
    kept = notebooks.keep_committed(old, new)
    assert kept.cells[2].outputs == new.cells[2].outputs and notebooks.compare_notebooks(kept, kept) == []
    new.cells[2].outputs = [result("3 ms")]
    assert notebooks.keep_committed(kept, new).cells[2].outputs == kept.cells[2].outputs


def test_progress_bars_do_not_count():
    bar = nbformat.v4.new_output("display_data", {"text/plain": "line 1: 9 in 3 s"}, metadata={"gpunotes": {"shown": "progress"}})
    want, got = notebook(code("1", result("1"))), notebook(code("1", bar, result("1")))
    assert notebooks.compare_notebooks(want, got) == [] == notebooks.compare_notebooks(got, want)
    assert [o.output_type for o in notebooks.normalise(got).cells[0].outputs] == ["execute_result"]


def test_normalise():
    nb = notebook(code("1", stream("a"), stream("b"), result("1", count=9), execution_count=9), new_markdown_cell("#"))
    nb.cells[0].metadata = nbformat.from_dict({"tags": ["measured"], "execution": {"iopub.execute_input": "12:00"}})
    nb.cells[1].id = nb.cells[0].id
    nb.metadata.language_info.version = "go1.26.8"
    nb.metadata.kernelspec.name = "gophernotes"
    nb.metadata.title = "kept"
    out = notebooks.normalise(nb)
    assert dict(out.metadata.kernelspec) == notebooks.KERNELSPEC
    # JupyterLab adds what a kernel says of its language, and would call the notebook changed as soon as it is opened.
    assert dict(out.metadata.language_info) == {"name": "go", "version": "go1.26.8"} and out.metadata.title == "kept"
    assert dict(out.cells[0].metadata) == {"tags": ["measured"]}
    assert [c.id for c in out.cells] == [nb.cells[0].id, "cell-02"]
    assert out.cells[0].execution_count == 1 and out.cells[0].outputs[1].execution_count == 1
    assert out.cells[0].outputs[0].text == "ab"
    nbformat.validate(out)
    assert notebooks.normalise(out) == out


def test_update_keeps_what_says_the_same():
    committed = png()
    old = marked(
        notebook(
            code("p", picture(committed)),
            code("t()", result("1 ms"), tags=["measured"]),
            code("x", result("1")),
            code("u()", result("5 ms"), tags=["measured"]),
        )
    )
    new = copy.deepcopy(old)
    new.cells[0].outputs = [picture(png(one_pixel))]
    new.cells[1].outputs = [result("2 ms")]
    new.cells[2].outputs = [result("2")]
    new.cells[3].source, new.cells[3].outputs = "v()", [result("6 ms")]
    kept = notebooks.keep_committed(old, new)
    assert kept.cells[0].outputs == old.cells[0].outputs
    assert kept.cells[1].outputs == old.cells[1].outputs
    assert kept.cells[2].outputs == new.cells[2].outputs
    assert kept.cells[3].outputs == new.cells[3].outputs
    assert notebooks.keep_committed(old, new, True).cells[1].outputs == new.cells[1].outputs


def test_choose(tmp_path):
    for name in ("00-tour.ipynb", "05-mesh.ipynb", "05-more.ipynb", "x.txt", "Untitled.ipynb", "my-own.ipynb"):
        (tmp_path / name).write_text("")
    assert [p.name for p in notebooks.choose(tmp_path, [])] == ["00-tour.ipynb", "05-mesh.ipynb", "05-more.ipynb"]
    assert [p.name for p in notebooks.choose(tmp_path, ["05"])] == ["05-mesh.ipynb", "05-more.ipynb"]
    assert [p.name for p in notebooks.choose(tmp_path, ["my"])] == ["my-own.ipynb"]
    with pytest.raises(SystemExit, match="'06'"):
        notebooks.choose(tmp_path, ["06"])


def exercise(code, title="### 1 · Count", after=""):
    return new_markdown_cell(f"{title}\n\nHow many?\n\n<details><summary>Solution</summary>\n\n```go\n{code}\n```\n\nSo.{after}\n</details>")


@pytest.mark.parametrize(
    "code, want",
    [
        ("f()", None),
        ("f()\n// Output: 3", "3"),
        ("f()\n//Output: 3\n", "3"),
        ("f()\n// Output:\n// a  b\n//   c\n//\n// d", "a  b\n  c\n\nd"),
        ("f()\n    // Output: one\n    // two  ", "one\ntwo"),
        ("// Output: 3\nf()", None),  # it must be the end
        ("f() // Output: 3", None),
        ("f()\n// the output: 3", None),
        ("f()\n// Output: 1\ng()\n// Output: 2", "2"),
        ("f()\n// Output:", ""),
    ],
)
def test_expected_output(code, want):
    assert notebooks.expected_output(code) == want


def test_exercises_are_found():
    two = exercise("a()", "## **2** `b`\n\nx", "\n\n```go\nb()\n```\n")
    other = new_markdown_cell("```go\nno()\n```\n<details><summary>Why?</summary>\n\n```go\nno()\n```\n\n</details>")
    python = new_markdown_cell("<details><summary>Solution</summary>\n\n```python\nno()\n```\n\n</details>")
    nb = notebook(new_markdown_cell("#"), exercise("x()\ny()"), other, two, python)
    assert [(e.name, e.code) for e in notebooks.exercises(nb)] == [
        ("cell 2, exercise “1 · Count”", "x()\ny()"),
        ("cell 4, exercise “2 b”, part 1", "a()"),
        ("cell 4, exercise “2 b”, part 2", "b()"),
    ]


def test_opening_is_changed():
    opening = 'import "x"\n\ngpu := gpukit.MustOpen("sim:quadro-k2000") // or another\ngpu'
    nb = notebook(new_markdown_cell("#"), code(opening), code('o := gpukit.MustOpen("sim:gtx-970")'))
    assert notebooks.open_on(nb, "cuda:0") is None
    assert nb.cells[1].source == opening.replace("sim:quadro-k2000", "cuda:0") and "gtx-970" in nb.cells[2].source
    for cells in ([code("1"), code(opening)], [code(opening), code(opening)], [code("1")]):
        assert "gpu := gpukit.MustOpen" in notebooks.open_on(notebook(*cells), "cuda:0")


# ---- with a real kernel: Python's own stands in, so that these tests say what the runner does and not what gpunotes does


@pytest.fixture
def stand_in(monkeypatch):
    pytest.importorskip("ipykernel")  # jupyterlab brings it
    monkeypatch.setattr(notebooks, "KERNEL", "python3")
    monkeypatch.setattr(notebooks, "KERNELSPEC", {"display_name": "Python", "language": "python", "name": "python3"})


def saved(folder, *cells):
    path = folder / "01-case.ipynb"
    nbformat.write(notebooks.normalise(notebook(*cells)), path)
    return path


def whole(path, tmp_path, mode="compare", limit=60, device=None):
    return notebooks.run_one(path, mode, tmp_path / "kept", limit, device=device)


def run(path, tmp_path, mode="compare", limit=60):
    return whole(path, tmp_path, mode, limit).faults


def test_update_then_compare(stand_in, tmp_path):
    path = saved(
        tmp_path,
        code("x = 6\nprint('hello')\nx * 7"),
        code("import time\ntime.time()", tags=["measured"]),
        code("1 // 0", tags=["raises-exception"]),
        code("x"),
    )
    assert any("+hello" in fault for fault in run(path, tmp_path))
    assert run(path, tmp_path, "update") == []
    written = path.read_text()
    assert "42" in written and "ZeroDivisionError" in written and '"version": "' not in written
    assert run(path, tmp_path) == []
    assert run(path, tmp_path, "update") == []
    assert path.read_text() == written


def test_failing_cell(stand_in, tmp_path):
    path = saved(tmp_path, code("print('new')"), code("1 // 0"), code("2", result("2")))
    before = path.read_text()
    faults = run(path, tmp_path)
    assert len(faults) == 2, faults  # the cells after the failing one are not held against the notebook
    assert faults[0].startswith("cell 1, In [1]: ") and "+new" in faults[0]
    assert faults[1].startswith("cell 2, In [2]: failed") and "ZeroDivisionError" in faults[1]
    (fault,) = run(path, tmp_path, "update")
    assert "not written" in fault and path.read_text() == before


def test_measured_cell_must_run(stand_in, tmp_path):
    (fault,) = run(saved(tmp_path, code("1 // 0", tags=["measured"])), tmp_path)
    assert fault.startswith("cell 1, In [1]: failed")


def test_time_limit(stand_in, tmp_path):
    first, fault = run(saved(tmp_path, code("print('new')"), code("while True: pass")), tmp_path, limit=3)
    assert "+new" in first
    assert fault == "cell 2, In [2]: still running after 3 s for the whole notebook"


def test_solutions_run_after_the_notebook(stand_in, tmp_path):
    path = saved(
        tmp_path,
        exercise("print(y + 1)"),
        code("y = 6;"),
        exercise("1 // 0", "### 2 · Divide"),
        exercise("z = y", "### 3 · Keep"),
        code("y = 8;"),
        exercise("z + nowhere", "### 4 · In order"),
    )
    got = whole(path, tmp_path)
    first, second = got.faults  # one does not hide the other
    assert first.startswith("cell 3, exercise “2 · Divide”: the solution fails:") and "ZeroDivisionError" in first
    assert second.startswith("cell 6, exercise “4 · In order”: the solution fails:") and "'nowhere'" in second
    assert got.exercises == 4 and got.ran == 6 and got.exercise_seconds > 0 and "4 solutions" in got.timing()
    before = path.read_text()
    assert run(path, tmp_path, "update")[-1].endswith("not written") and path.read_text() == before
    kept = nbformat.read(tmp_path / "kept" / path.name, 4)
    assert len(kept.cells) == 6  # solutions leave nothing in the notebook


def test_output_of_a_solution(stand_in, tmp_path, monkeypatch):
    # Python's comments are others; what is compared comes from the text all the same.
    want = notebooks.expected_output
    monkeypatch.setattr(notebooks, "expected_output", lambda text: want(text.replace("# ", "// ")))
    good = exercise("print('a ')\nprint('b')\n# Output: a\n# b")
    assert run(saved(tmp_path, code("1;"), good), tmp_path) == []
    path = saved(tmp_path, code("1;"), exercise("print(2 + 3)\n# Output: 6"))
    (fault,) = run(path, tmp_path)
    assert fault.startswith("cell 2, exercise “1 · Count”: the solution prints something else:") and "-6" in fault and "+5" in fault
    assert run(path, tmp_path, "run") == []  # on another device nothing is compared


def test_solution_that_ends_the_kernel(stand_in, tmp_path):
    (fault,) = run(saved(tmp_path, exercise("import os; os._exit(3)"), code("1;")), tmp_path)
    assert fault == "cell 1, exercise “1 · Count”: the kernel died"


def test_no_solution_after_a_failure(stand_in, tmp_path):
    got = whole(saved(tmp_path, exercise("1 // 0"), code("2 // 0")), tmp_path)
    assert got.exercises == 0 and len(got.faults) == 1 and "cell 2, In [1]: failed" in got.faults[0]


def test_run_on_another_device(stand_in, tmp_path, monkeypatch):
    import re

    monkeypatch.setattr(notebooks, "OPENING", re.compile(r'^gpu = \("([^"]+)"\)', re.MULTILINE))
    path = saved(tmp_path, code('gpu = ("sim:quadro-k2000")\ngpu', result("'sim:quadro-k2000'")), code("gpu == 'cuda:0' or 1 // 0"))
    before = path.read_text()
    assert whole(path, tmp_path, "run", device="cuda:0").faults == []
    (fault,) = whole(path, tmp_path, "run", device="cuda:1").faults
    assert "cell 2, In [2]: failed" in fault and "ZeroDivisionError" in fault
    assert path.read_text() == before
    with pytest.raises(SystemExit):
        notebooks.main(["compare", "--device", "cuda:0"])


def test_slow_notebooks_are_named(stand_in, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "SLOW", 0)
    monkeypatch.setattr(notebooks, "isolate", lambda scratch: None)
    path = saved(tmp_path, code("1;"), exercise("2"))
    assert notebooks.main(["compare", "--folder", str(tmp_path), "--artefacts", str(tmp_path / "kept")]) == 0
    said = capsys.readouterr().out
    assert f"ok   {path.name}  " in said and "1 solution " in said and "slow: a notebook" in said
    assert said.splitlines()[-1].startswith("notebooks: 1 passed, 0 failed; ") and said.endswith(f"; slow: {path.name}\n")


def test_kernel_of_another_prefix(tmp_path, monkeypatch):
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_PATH", "JUPYTER_PREFER_ENV_PATH"):
        monkeypatch.setenv(name, "")  # isolate changes them, and this puts them back
    prefix = tmp_path / "there"
    monkeypatch.setenv(notebooks.PREFIX, str(prefix))
    (tmp_path / "1").mkdir()
    assert f"not in {prefix}: run `go run ./jupyter install --prefix" in notebooks.isolate(tmp_path / "1").replace("is not installed in", "not in")
    spec = prefix / "share" / "jupyter" / "kernels" / "gpunotes"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text('{"argv": ["false"], "display_name": "Go", "language": "go"}')
    (tmp_path / "2").mkdir()
    assert notebooks.isolate(tmp_path / "2") is None


def test_dead_kernel(stand_in, tmp_path):
    (fault,) = run(saved(tmp_path, code("import os; os._exit(3)")), tmp_path)
    assert "the kernel died" in fault


def test_other_kernelspec(tmp_path):
    path = saved(tmp_path, code("1"))
    path.write_text(path.read_text().replace('"name": "gpunotes"', '"name": "gophernotes"'))
    (fault,) = run(path, tmp_path)
    assert "'gophernotes'" in fault


def test_not_a_notebook(tmp_path):
    path = tmp_path / "00.ipynb"
    path.write_text("{")
    (fault,) = run(path, tmp_path)
    assert "not a readable notebook" in fault


# ---- the notebooks as one series

FOLDER = notebooks.ROOT / "notebooks"
SERIES = sorted(FOLDER.glob(notebooks.SERIES))
LAST = 10
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
MARKDOWN_PICTURE = re.compile(r"!\[([^\]]*)\]\(|<img\b([^>]*)>")
# Where this machine, or anybody's, keeps what is its own.
PLACES = re.compile(r"/(?:home|root|tmp|work|Users|private/var)/[\w.-]|[A-Za-z]:\\\\?Users|\.venv/")
OPENING_PARTS = ("You will learn", "The thread", "Takes")
CHANGE = "Change the device in the next cell to run all of it elsewhere."


def paragraphs(text):
    return [p.strip() for p in re.split(r"\n\s*\n", text.strip())]


def opening_faults(cell, name):
    if cell.cell_type != "markdown":
        return ["cell 1 is not markdown"]
    title, *parts = paragraphs(cell.source)
    faults = []
    if not re.fullmatch(rf"# {name[:2]} · \S[^\n]*", title):
        faults.append(f"cell 1 begins with {title!r}, not with '# {name[:2]} · ' and a title")
    *parts, last = parts or [""]
    before = r"Before this: \[\d\d[^\]]*\]\(\d\d-[\w-]+\.ipynb\)\. "
    if not re.fullmatch(("" if name.startswith("00") else before) + re.escape(CHANGE), last):
        faults.append(f"cell 1 ends with {last!r}, not with 'Before this: [link]. {CHANGE}'")
    # A list belongs to the paragraph in front of it.
    begins = [p for p in parts if not p.startswith(("- ", "* "))]
    if len(begins) != len(OPENING_PARTS) or not all(re.match(rf"\*\*{want}\b", p) for want, p in zip(OPENING_PARTS, begins)):
        faults.append(f"cell 1 must have three paragraphs that begin with {', '.join(f'**{p}**' for p in OPENING_PARTS)}, and nothing else")
    elif not re.match(r"\*\*Takes\*\* (about )?\d+ minutes", begins[2]):
        faults.append(f"cell 1 says {begins[2]!r}, not '**Takes** N minutes'")
    return faults


def device_faults(nb):
    cell = nb.cells[1]
    if cell.cell_type != "code" or notebooks.open_on(copy.deepcopy(nb), "cuda:0"):
        return ['cell 2 is not the one code cell with a line gpu := gpukit.MustOpen("...")']
    faults = []
    lines = [line for line in cell.source.splitlines() if line.strip() and not line.strip().startswith("//")]
    if not lines[0].startswith("import") or lines[-1] != "gpu" or not notebooks.OPENING.match(lines[-2]):
        faults.append("cell 2 must have the imports, the line that opens the device, and gpu as its last lines")
    device = notebooks.OPENING.search(cell.source)[1]
    shown = [o.data for o in cell.outputs if o.output_type == "execute_result"]
    if len(shown) != 1 or not shown[0].get("text/plain", "").startswith(f"device     {device}\n") or "text/html" not in shown[0]:
        faults.append(f"cell 2 does not show the badge of {device}")
    return faults


def exercise_faults(nb):
    headings = [i for i, c in enumerate(nb.cells) if c.cell_type == "markdown" and re.match(r"## Exercises\s*(\n|$)", c.source)]
    if len(headings) != 1:
        return [f"{len(headings)} cells begin with '## Exercises', not one"]
    tasks = [i for i, c in enumerate(nb.cells) if c.cell_type == "markdown" and "<details>" in c.source]
    faults = []
    if not 2 <= len(tasks) <= 4:
        faults.append(f"{len(tasks)} exercises, not 2 to 4")
    for i in tasks:
        text, where = nb.cells[i].source, notebooks.cell_name(nb, i)
        if i < headings[0]:
            faults.append(f"{where}: an exercise in front of '## Exercises'")
        if len(notebooks.SOLUTION.findall(text)) != 1 or text.count("<details>") != 1:
            faults.append(f"{where}: not one <details><summary>Solution</summary>")
        elif not re.search(r"\n\n<details><summary>Solution</summary>\n\n```go\n.*\n```\n\n\S.*\n</details>\s*\Z", text, re.DOTALL) or text.count("```go") != 1:
            faults.append(f"{where}: the solution is not one go block and a sentence, with a blank line around the block")
        if len(text.partition("<details>")[0].split()) < 5:
            faults.append(f"{where}: no task in front of the solution")
    return faults


def versions_faults(nb):
    at = [i for i, c in enumerate(nb.cells) if c.cell_type == "code" and "%versions" in c.source]
    if len(at) != 1:
        return [f"{len(at)} cells with %versions, not one"]
    cell, heading = nb.cells[at[0]], nb.cells[at[0] - 1]
    faults = []
    if cell.source.strip() != "%versions" or notebooks.tags(cell) != ["machine"]:
        faults.append("the cell with %versions has something else in it, or is not tagged machine and nothing else")
    if heading.cell_type != "markdown" or heading.source.strip().splitlines()[-1] != "## Versions":
        faults.append("the cell with %versions does not stand below '## Versions'")
    if not any(o.get("data", {}).get("text/plain", "").startswith("what") for o in cell.outputs):
        faults.append("the cell with %versions shows no table")
    return faults


def title_of_file(path):
    return nbformat.read(path, 4).cells[0].source.splitlines()[0].removeprefix("# ")


def link_faults(nb, name, folder):
    faults = []
    for i, cell in enumerate(nb.cells):
        if cell.cell_type != "markdown":
            continue
        for text, target in LINK.findall(re.sub(r"```.*?```|`[^`\n]*`", "", cell.source, flags=re.DOTALL)):
            if not re.match(r"https?:|#|mailto:", target) and not (folder / target.partition("#")[0]).exists():
                faults.append(f"{notebooks.cell_name(nb, i)}: the link [{text}]({target}) leads nowhere")
    last = nb.cells[-1]
    line = last.source.strip().splitlines()[-1] if last.cell_type == "markdown" else ""
    links = LINK.findall(line)
    number = int(name[:2])
    if number < LAST:
        if not re.fullmatch(r"Next: \[[^\]]*\]\([^)]*\)", line) or not links[0][1].startswith(f"{number + 1:02d}-"):
            return faults + [f"the last line is {line!r}, not 'Next: ' and a link to {number + 1:02d}"]
        next_one = folder / links[0][1]
        if next_one.exists() and links[0][0] != title_of_file(next_one):
            faults.append(f"the last line calls it {links[0][0]!r}, it calls itself {title_of_file(next_one)!r}")
    elif not line.startswith("Next: ") or [t[:2] for _, t in links][:1] != ["00"] or not any(t.endswith("LANGUAGE.md") for _, t in links):
        faults.append(f"the last line is {line!r}, not 'Next: ' and links back to 00 and to the language page")
    return faults


def output_faults(nb):
    faults = []
    for i, cell in enumerate(nb.cells):
        where = notebooks.cell_name(nb, i)
        if cell.cell_type == "markdown":
            for text, attributes in MARKDOWN_PICTURE.findall(cell.source):
                if not text.strip() and not re.search(r'alt="[^"]+"', attributes):
                    faults.append(f"{where}: a picture without a description")
        if cell.cell_type != "code":
            texts = [cell.source]
        else:
            tags = notebooks.tags(cell)
            if "measured" in tags and not re.search(r"\bpanic\(|return fmt\.Errorf\(", cell.source):
                faults.append(f"{where}: tagged measured, and has no assertion as a bound")
            if set(tags) - {"measured", "machine", "raises-exception"}:
                faults.append(f"{where}: unknown tags {tags}")
            if cell.execution_count is None:
                faults.append(f"{where}: was not executed")
            if any(o.output_type == "error" for o in cell.outputs) != ("raises-exception" in tags):
                faults.append(f"{where}: an error that is not expected, or none where one is")
            if cell.source.startswith("%expect-error") and not any(o.get("name") == "stderr" for o in cell.outputs):
                faults.append(f"{where}: %expect-error, and no error")
            for out in cell.outputs:
                data = out.get("data", {})
                for kind in [k for k in data if k.startswith("image/")]:
                    said = out.metadata.get(kind, {}).get("alt") or data.get("text/plain", "")
                    if len(said.split()) < 4 or said.startswith(("<", "*", "&")):
                        faults.append(f"{where}: a picture whose description is {said!r}")
            texts = [cell.source] + [text for _, text in notebooks.unpack(cell.outputs)[0]]
        for text in texts:
            for place in {m[0] for m in PLACES.finditer(text)} | {p for p in (str(notebooks.ROOT), sys.prefix) if p in text}:
                faults.append(f"{where}: names {place!r}, a place on a machine")
    return faults


def shape_faults(nb, name, folder=FOLDER):
    """Where a notebook leaves the common shape."""
    if len(nb.cells) < 6:
        return ["fewer than six cells"]
    faults = opening_faults(nb.cells[0], name) + device_faults(nb) + exercise_faults(nb) + versions_faults(nb)
    faults += link_faults(nb, name, folder) + output_faults(nb)
    if notebooks.normalise(nb) != nb:
        faults.append("not as `make notebooks-update` writes it")
    return faults


def test_series_is_complete():
    assert [p.name[:3] for p in SERIES] == [f"{n:02d}-" for n in range(LAST + 1)]
    assert not [p.name for p in SERIES if not re.fullmatch(r"\d\d-[a-z0-9]+(-[a-z0-9]+)*\.ipynb", p.name)]


def test_the_first_lists_all():
    text = "\n".join(c.source for c in nbformat.read(SERIES[0], 4).cells if c.cell_type == "markdown")
    named = {(words, target) for words, target in LINK.findall(text)}
    for path in SERIES[1:]:
        assert (title_of_file(path), path.name) in named, f"{SERIES[0].name} does not list {title_of_file(path)!r}"


@pytest.mark.parametrize("path", SERIES, ids=lambda p: p.stem)
def test_shape(path):
    faults = shape_faults(nbformat.read(path, 4), path.name)
    assert not faults, "\n" + "\n".join(faults)


def sample(folder):
    """A notebook in the shape of the series, and the one behind it."""
    badge = result("device     sim:quadro-k2000\nwhat       a card\nexact      all")
    badge.data["text/html"] = "<b>sim:quadro-k2000</b>"
    shown = picture(png())
    shown.metadata["image/png"] = {"alt": "A line of points from one to two."}
    cells = [
        new_markdown_cell(
            "# 03 · Slices\n\n**You will learn**\n\n- this\n- that\n\n**The thread** asks why.\n\n**Takes** 10 minutes.\n\n"
            f"Before this: [02 · Rows](02-rows.ipynb). {CHANGE}"
        ),
        code('import "gpunotes/gpukit"\n\ngpu := gpukit.MustOpen("sim:quadro-k2000")\ngpu', badge),
        new_markdown_cell("See [the page](page.md) and ![a card](card.png)."),
        code("plot", shown),
        code("%expect-error\nx", stream("no x", "stderr")),
        code("%errcheck on\ny", failure("no y"), tags=["raises-exception"]),
        code("if t > 1 { panic(t) }\nt", result("0.5"), tags=["measured"]),
        new_markdown_cell("## Exercises"),
        exercise("f()", "### 1 · Count"),
        exercise("g()\n// Output: 2", "### 2 · Print"),
        new_markdown_cell("## Versions"),
        code("%versions", new_output("display_data", {"text/plain": "what  version\nGo    1.26"}), tags=["machine"]),
        new_markdown_cell("## What to take along\n\n- this\n\nNext: [04 · More](04-more.ipynb)"),
    ]
    for name, title in {"02-rows": "02 · Rows", "04-more": "04 · More"}.items():
        nbformat.write(notebook(new_markdown_cell(f"# {title}")), folder / f"{name}.ipynb")
    (folder / "page.md").write_text("")
    (folder / "card.png").write_bytes(png())
    return notebooks.normalise(notebook(*cells))


def drop(i):
    return lambda nb: nb.cells.pop(i)


def swap(i, old, new):
    def change(nb):
        assert old in nb.cells[i].source
        nb.cells[i].source = nb.cells[i].source.replace(old, new)

    return change


def put(i, what):
    return lambda nb: nb.cells.insert(i, what)


def outputs(i, *new):
    def change(nb):
        nb.cells[i].outputs = list(new)

    return change


def untag(i):
    return lambda nb: nb.cells[i].metadata.pop("tags")


MUTANTS = {
    "no number in the title": (swap(0, "03 · ", ""), "cell 1 begins"),
    "another number in the title": (swap(0, "03 · ", "04 · "), "cell 1 begins"),
    "nothing to learn": (swap(0, "**You will learn**", "You will learn"), "three paragraphs"),
    "no thread": (swap(0, "**The thread** asks why.\n\n", ""), "three paragraphs"),
    "more in the opening": (swap(0, "**Takes**", "And more.\n\n**Takes**"), "three paragraphs"),
    "no minutes": (swap(0, "10 minutes", "a while"), "**Takes** N minutes"),
    "nothing before": (swap(0, "Before this: [02 · Rows](02-rows.ipynb). ", ""), "cell 1 ends"),
    "no word of the device": (swap(0, CHANGE, ""), "cell 1 ends"),
    "no opening": (drop(0), "cell 1 is not markdown"),
    "another name for the device": (swap(1, "gpu :=", "card :="), "cell 2 is not"),
    "the device opened twice": (put(3, code('gpu := gpukit.MustOpen("cpu")')), "cell 2 is not"),
    "the device not last": (swap(1, ")\ngpu", ")\ngpu.Name()"), "cell 2 must have"),
    "no badge": (outputs(1, result("sim:quadro-k2000")), "does not show the badge"),
    "the badge as text only": (outputs(1, result("device     sim:quadro-k2000\n")), "does not show the badge"),
    "no exercises": (drop(7), "'## Exercises'"),
    "one exercise": (drop(8), "1 exercises"),
    "an exercise too early": (lambda nb: nb.cells.insert(2, nb.cells.pop(8)), "in front of"),
    "no solution": (swap(8, "Solution", "Answer"), "not one <details>"),
    "no blank line before the block": (swap(8, "</summary>\n\n", "</summary>\n"), "blank line"),
    "nothing said of the solution": (swap(8, "So.", ""), "blank line"),
    "two blocks": (swap(8, "So.", "```go\n1\n```\n\nSo."), "blank line"),
    "another language": (swap(8, "```go", "```"), "blank line"),
    "no task": (swap(8, "### 1 · Count\n\nHow many?", "### 1"), "no task"),
    "no versions": (drop(11), "0 cells with %versions"),
    "no heading of the versions": (drop(10), "below '## Versions'"),
    "versions and more": (swap(11, "%versions", "%versions\n1"), "something else"),
    "versions compared": (untag(11), "not tagged machine"),
    "no table of versions": (outputs(11), "shows no table"),
    "nothing next": (swap(12, "Next: ", "Then: "), "the last line is"),
    "the wrong one next": (swap(12, "(04-more", "(02-rows"), "the last line is"),
    "the next one does not exist": (swap(12, "04-more", "04-less"), "leads nowhere"),
    "the next one has another title": (swap(12, "04 · More", "04 · Less"), "calls itself '04 · More'"),
    "code at the end": (put(13, code("1")), "the last line is"),
    "a dead link": (swap(2, "page.md", "pages.md"), "leads nowhere"),
    "a picture without a description": (swap(2, "![a card]", "![]"), "cell 3: a picture without"),
    "a tag without a description": (swap(2, "![a card](card.png)", '<img src="card.png">'), "cell 3: a picture without"),
    "a plot without a description": (outputs(3, picture(png())), "whose description is ''"),
    "a plot that says its type": (outputs(3, new_output("display_data", {"image/png": "", "text/plain": "*plot.Plot of some kind"})), "whose description is '*plot"),
    "an error": (outputs(3, failure("no")), "not expected"),
    "no error": (outputs(5), "not expected"),
    "no expected error": (outputs(4), "and no error"),
    "a measured cell without a bound": (swap(6, "panic(t)", "print(t)"), "no assertion"),
    "an unknown tag": (lambda nb: nb.cells[3].metadata.update(tags=["measure"]), "unknown tags"),
    "a cell that did not run": (lambda nb: nb.cells[3].update(execution_count=None), "was not executed"),
    "a place in the text": (swap(2, "See", "In /home/me, see"), "names '/home/m'"),
    "a place in an output": (outputs(4, stream("/tmp/x.go:3: no x", "stderr")), "names '/tmp/x'"),
    "this folder": (swap(2, "See", f"In {notebooks.ROOT}, see"), "a place on a machine"),
    "another kernel": (lambda nb: nb.metadata.kernelspec.update(name="go"), "make notebooks-update"),
}


def test_sample_has_the_shape(tmp_path):
    assert shape_faults(sample(tmp_path), "03-slices.ipynb", tmp_path) == []


@pytest.mark.parametrize("case", MUTANTS)
def test_shape_is_missed(case, tmp_path):
    change, said = MUTANTS[case]
    nb = sample(tmp_path)
    change(nb)
    faults = "\n".join(shape_faults(nb, "03-slices.ipynb", tmp_path))
    assert said in faults, faults


def test_shape_of_first_and_last(tmp_path):
    nb = sample(tmp_path)
    nb.cells[0].source = nb.cells[0].source.replace("03 · ", "00 · ").replace("Before this: [02 · Rows](02-rows.ipynb). ", "")
    nb.cells[-1].source = "Next: [01 · One](01-one.ipynb)"
    nbformat.write(notebook(new_markdown_cell("# 01 · One")), tmp_path / "01-one.ipynb")
    assert shape_faults(nb, "00-tour.ipynb", tmp_path) == []
    nb = sample(tmp_path)
    nb.cells[0].source = nb.cells[0].source.replace("03 · ", "10 · ")
    for name in ("00-tour.ipynb", "LANGUAGE.md"):
        (tmp_path / name).write_text("")
    for last, good in {
        "Next: back to [00 · A tour](00-tour.ipynb), or [the language](LANGUAGE.md)": True,
        "Next: back to [00 · A tour](00-tour.ipynb)": False,
        "Next: [the language](LANGUAGE.md)": False,
    }.items():
        nb.cells[-1].source = last
        assert (shape_faults(nb, "10-trouble.ipynb", tmp_path) == []) == good, last
