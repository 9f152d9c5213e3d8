"""The notebook comparer itself: what it must catch, and what it must not mind."""

import base64
import copy
import io

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


def test_measured_is_not_compared():
    want = notebook(code("t()", result("1 ms"), tags=["measured"]), code("x", result("1 ms")))
    got = copy.deepcopy(want)
    for cell in got.cells:
        cell.outputs = [result("2 ms")]
    (fault,) = notebooks.compare_notebooks(want, got)
    assert fault.startswith("cell 2, ")


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
    assert dict(out.metadata.language_info) == {"name": "go"} and out.metadata.title == "kept"
    assert dict(out.cells[0].metadata) == {"tags": ["measured"]}
    assert [c.id for c in out.cells] == [nb.cells[0].id, "cell-02"]
    assert out.cells[0].execution_count == 1 and out.cells[0].outputs[1].execution_count == 1
    assert out.cells[0].outputs[0].text == "ab"
    nbformat.validate(out)
    assert notebooks.normalise(out) == out


def test_update_keeps_what_says_the_same():
    committed = png()
    old = notebook(
        code("p", picture(committed)),
        code("t()", result("1 ms"), tags=["measured"]),
        code("x", result("1")),
        code("u()", result("5 ms"), tags=["measured"]),
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
    for name in ("00_tour.ipynb", "05_mesh.ipynb", "05_more.ipynb", "x.txt"):
        (tmp_path / name).write_text("")
    assert [p.name for p in notebooks.choose(tmp_path, [])] == ["00_tour.ipynb", "05_mesh.ipynb", "05_more.ipynb"]
    assert [p.name for p in notebooks.choose(tmp_path, ["05"])] == ["05_mesh.ipynb", "05_more.ipynb"]
    with pytest.raises(SystemExit, match="'06'"):
        notebooks.choose(tmp_path, ["06"])


# ---- with a real kernel: Python's own stands in, so that these tests say what the runner does and not what gpunotes does


@pytest.fixture
def stand_in(monkeypatch):
    pytest.importorskip("ipykernel")  # jupyterlab brings it
    monkeypatch.setattr(notebooks, "KERNEL", "python3")
    monkeypatch.setattr(notebooks, "KERNELSPEC", {"display_name": "Python", "language": "python", "name": "python3"})


def saved(folder, *cells):
    path = folder / "01_case.ipynb"
    nbformat.write(notebooks.normalise(notebook(*cells)), path)
    return path


def run(path, tmp_path, mode="compare", limit=60):
    return notebooks.run_one(path, mode, tmp_path / "kept", limit, False)


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
