"""Execute the notebooks with the gpunotes kernel of this .venv.

    notebooks.py compare [NAME...]    nothing is written; outputs must be those committed
    notebooks.py update [NAME...]     outputs are written into the notebooks
    notebooks.py run --device cuda:0 [NAME...]    runs them on another device; nothing is compared or written

NAME is the beginning of a file name in notebooks/ ("05"); without one, all of the series are taken, whose names begin with two
digits: what else is there is the user's own. The kernel is looked for below
GPUNOTES_KERNEL_PREFIX, if that is set (as given to `go run ./jupyter install --prefix`).

Rules: a cell tagged `measured` shows times of this machine: it must run, its outputs are not compared, and an update keeps
the committed ones unless it or a code cell above it changed since (--refresh-measured: writes them too); the metadata say
of which code they are. So it is with one tagged `machine`, which shows code for the CPU of this machine. A cell tagged `raises-exception` may fail,
no other may. Text is compared exactly, execution counts not at all, pictures by their pixels with a small tolerance.

An exercise is a markdown cell with `<details><summary>Solution</summary>`. The ```go blocks in it are run as cells after the
last cell, and must not fail. If one ends with a comment `// Output: text`, the text and the comment lines behind it must
be what it prints on standard output, blanks at the ends of lines apart.

`run --device` changes one string, that of the line `gpu := gpukit.MustOpen("...")` in the first code cell.

A notebook should take less than a minute on two cores: one that takes longer is named, one that takes --limit fails.
Executed notebooks and pictures are left under artefacts/notebooks/.
"""

from __future__ import annotations

import argparse
import base64
import copy
import difflib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from PIL import Image, ImageChops, ImageStat

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "gpunotes"
SERIES = "[0-9][0-9]-*.ipynb"
PREFIX = "GPUNOTES_KERNEL_PREFIX"  # in the environment: where the kernel is installed, if not in this .venv
KERNELSPEC = {"display_name": "Go (gpunotes)", "language": "go", "name": KERNEL}

# Rasterisers of two CPU families round some edge pixels differently: a level or two, here and there. A changed digit of a
# tick label changes dozens of pixels by more than half the range, so it is caught whatever the size of the picture.
MEAN_LEVELS = 0.05
STRONG_LEVELS = 48
STRONG_PIXELS = 4

PICTURES = ("image/png", "image/jpeg")
EMBEDDED = re.compile(r"data:(image/(?:png|jpeg));base64,([A-Za-z0-9+/=\s]+)")
SOLUTION = re.compile(r"<details>\s*<summary>\s*Solution\s*</summary>(.*?)</details>", re.DOTALL)
GO_BLOCK = re.compile(r"^```go[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
OPENING = re.compile(r'^gpu := gpukit\.MustOpen\("([^"]+)"\)', re.MULTILINE)

SLOW = 60  # seconds of a notebook that are worth a word
VOLATILE_METADATA = ("collapsed", "execution", "jp-MarkdownHeadingCollapsed", "scrolled", "trusted", "vscode")


def text_of(value) -> str:
    """A text as nbformat may hold it: one string or a list of lines."""
    return "".join(value) if isinstance(value, list) else value


# ---- pictures


def open_picture(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGBA")


def picture_difference(want: bytes, got: bytes) -> tuple[str | None, Image.Image | None]:
    """None if the pictures are the same within tolerance, else a sentence and, where sizes agree, the difference."""
    if want == got:
        return None, None
    try:
        a, b = open_picture(want), open_picture(got)
    except Exception as err:  # Pillow raises many kinds for a broken file
        return f"not a readable picture: {err}", None
    if a.size != b.size:
        return f"size {b.size[0]}x{b.size[1]}, committed {a.size[0]}x{a.size[1]} pixels", None
    diff = ImageChops.difference(a, b)
    mean = sum(ImageStat.Stat(diff).mean) / 4
    worst = None
    for band in diff.split():
        worst = band if worst is None else ImageChops.lighter(worst, band)
    histogram = worst.histogram()
    strong = sum(histogram[STRONG_LEVELS + 1 :])
    if mean <= MEAN_LEVELS and strong <= STRONG_PIXELS:
        return None, None
    box = worst.point(lambda v: 255 if v else 0).getbbox()
    shown = worst.point(lambda v: min(255, v * 4))
    return (
        f"{a.size[0] * a.size[1] - histogram[0]} pixels differ, {strong} of them by more than {STRONG_LEVELS} levels "
        f"(mean {mean:.3f}), within x {box[0]}..{box[2]}, y {box[1]}..{box[3]}"
    ), shown


# ---- outputs


def is_progress(output) -> bool:
    """What is left of a progress bar: it tells of this machine, and comes only where a cell takes long."""
    return output.get("metadata", {}).get("gpunotes", {}).get("shown") == "progress"


def merge_streams(outputs: list) -> list:
    """Joins neighbouring pieces of one stream: how a text was cut into messages is chance."""
    merged: list = []
    for out in outputs:
        out = copy.deepcopy(out)
        if out["output_type"] == "stream":
            out["text"] = text_of(out["text"])
            if merged and merged[-1]["output_type"] == "stream" and merged[-1]["name"] == out["name"]:
                merged[-1]["text"] += out["text"]
                continue
        merged.append(out)
    return merged


def cut_embedded(text: str) -> tuple[str, list[tuple[str, bytes]]]:
    """The text with every embedded picture replaced by its number, and the pictures."""
    pictures: list[tuple[str, bytes]] = []

    def cut(m):
        try:
            data = base64.b64decode(m[2], validate=False)
        except ValueError:
            return m[0]
        pictures.append((m[1], data))
        return f"[picture {len(pictures)}: {m[1]}]"

    return EMBEDDED.sub(cut, text), pictures


def unpack(outputs: list) -> tuple[list[tuple[str, str]], list[tuple[str, str, bytes]]]:
    """Outputs of a cell as named texts and named pictures (name, type, bytes).

    The streams come first, each whole: their order against each other and against shown values depends on pipes, and is
    chance.
    """
    texts: list[tuple[str, str]] = []
    pictures: list[tuple[str, str, bytes]] = []
    for stream in ("stdout", "stderr"):
        text = "".join(text_of(o["text"]) for o in outputs if o["output_type"] == "stream" and o["name"] == stream)
        if text:
            texts.append((stream, text))
    shown = [o for o in outputs if o["output_type"] != "stream"]
    for number, out in enumerate(shown, 1):
        kind = out["output_type"]
        where = f"output {number}"
        if kind == "error":
            body = "\n".join([out["ename"], out["evalue"], *out["traceback"]])
            texts.append((f"{where}, error", body))
            continue
        data = out.get("data", {})
        texts.append((where, f"{kind}: {', '.join(sorted(data)) or 'nothing'}"))
        for mime in sorted(data):
            value = data[mime]
            if mime in PICTURES:
                pictures.append((f"{where}, {mime}", mime, base64.b64decode(text_of(value))))
            elif isinstance(value, (str, list)) and not mime.endswith("json"):
                text, inside = cut_embedded(text_of(value))
                texts.append((f"{where}, {mime}", text))
                for n, (sub, picture) in enumerate(inside, 1):
                    pictures.append((f"{where}, {mime}, picture {n}", sub, picture))
            else:
                texts.append((f"{where}, {mime}", json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)))
        if out.get("metadata"):
            texts.append((f"{where}, metadata", json.dumps(out["metadata"], indent=1, sort_keys=True)))
    return texts, pictures


def text_difference(name: str, want: str, got: str) -> str:
    a, b = want.splitlines(), got.splitlines()
    lines = list(difflib.unified_diff(a, b, f"committed {name}", f"now {name}", lineterm=""))
    if not lines:  # same lines, so the ends of lines differ
        return f"{name}: line ends differ: committed {want[-20:]!r}, now {got[-20:]!r}"
    return "\n".join(line if len(line) <= 400 else line[:400] + f"... ({len(line)} characters)" for line in lines)


def file_name(where: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", where).strip("-")


def compare_outputs(want: list, got: list, keep: Path | None = None, prefix: str = "") -> list[str]:
    """What differs between two lists of outputs; pictures are left in the folder keep."""
    faults: list[str] = []
    want_texts, want_pictures = unpack(want)
    got_texts, got_pictures = unpack(got)
    a, b = dict(want_texts), dict(got_texts)
    for name in [n for n, _ in want_texts] + [n for n, _ in got_texts if n not in a]:
        if a.get(name) != b.get(name):
            faults.append(text_difference(name, a.get(name, ""), b.get(name, "")))
    pa, pb = {n: p for n, _, p in want_pictures}, {n: p for n, _, p in got_pictures}
    suffix = {n: "." + mime.split("/")[1] for n, mime, _ in want_pictures + got_pictures}
    for name in [n for n, _, _ in want_pictures] + [n for n, _, _ in got_pictures if n not in pa]:
        stem = f"{prefix}{file_name(name)}"
        if keep and name in pb:
            (keep / (stem + suffix[name])).write_bytes(pb[name])
        if name not in pa or name not in pb:
            continue  # said above: the lists of types differ
        fault, diff = picture_difference(pa[name], pb[name])
        if fault:
            if keep:
                (keep / f"{stem}-committed{suffix[name]}").write_bytes(pa[name])
                if diff:
                    diff.save(keep / f"{stem}-difference.png")
                fault += f"; see {stem}* in {keep}"
            faults.append(f"{name}: {fault}")
    return faults


# ---- notebooks


def tags(cell) -> list[str]:
    return cell.get("metadata", {}).get("tags", [])


def cell_name(nb, index: int) -> str:
    """Cells are numbered from 1 as one counts them on the page, with In [n] where it is code."""
    if nb.cells[index].cell_type != "code":
        return f"cell {index + 1}"
    count = sum(1 for c in nb.cells[: index + 1] if c.cell_type == "code")
    return f"cell {index + 1}, In [{count}]"


def of_this_machine(cell) -> bool:
    return bool({"measured", "machine"} & set(tags(cell)))


def code_until(nb, index: int) -> str:
    """A mark of the code that a cell's outputs came from: its own and that of all cells above."""
    code = "\0".join(c.source for c in nb.cells[: index + 1] if c.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:8]


def made_by(cell) -> str | None:
    return cell.get("metadata", {}).get("gpunotes", {}).get("code")


def compare_notebooks(want, got, keep: Path | None = None) -> list[str]:
    """What differs in the outputs of two notebooks with the same cells."""
    faults = []
    for i, (a, b) in enumerate(zip(want.cells, got.cells)):
        if a.cell_type != "code":
            continue
        if of_this_machine(a):
            if made_by(a) != code_until(want, i):
                faults.append(f"{cell_name(want, i)}: its outputs are of other code, here or above: run `make notebooks-update`")
            continue
        was, now = ([o for o in cell.get("outputs", []) if not is_progress(o)] for cell in (a, b))
        for fault in compare_outputs(was, now, keep, f"cell{i + 1:02d}-"):
            faults.append(f"{cell_name(want, i)}: {fault}")
    return faults


def normalise(nb):
    """Leaves in a notebook only what its author or its execution means: small diffs."""
    nb = copy.deepcopy(nb)
    nb.nbformat, nb.nbformat_minor = 4, 5
    kept = {k: v for k, v in nb.metadata.items() if k not in (*VOLATILE_METADATA, "kernelspec")}
    nb.metadata = nbformat.from_dict({**kept, "kernelspec": dict(KERNELSPEC)})
    seen: set[str] = set()
    count = 0
    for i, cell in enumerate(nb.cells, 1):
        if not cell.get("id") or cell.id in seen:
            n = i
            while f"cell-{n:02d}" in seen or any(c.get("id") == f"cell-{n:02d}" for c in nb.cells):
                n += 100
            cell.id = f"cell-{n:02d}"
        seen.add(cell.id)
        for key in VOLATILE_METADATA:
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = [nbformat.from_dict(o) for o in merge_streams(cell.outputs) if not is_progress(o)]
            for out in cell.outputs:
                if out.output_type == "execute_result":
                    out.execution_count = count
    return nb


def keep_committed(old, new, refresh_measured: bool = False):
    """The executed notebook, with the committed outputs wherever they say the same: an update changes only what changed."""
    new = copy.deepcopy(new)
    before = {(c.get("id"), c.source): c for c in old.cells if c.cell_type == "code"}
    for i, cell in enumerate(new.cells):
        past = before.get((cell.get("id"), cell.source)) if cell.cell_type == "code" else None
        if of_this_machine(cell):
            cell.metadata["gpunotes"] = {"code": code_until(new, i)}
        if past is None or not past.outputs:
            continue
        if of_this_machine(cell):
            same = not refresh_measured and made_by(past) == made_by(cell)
        else:
            same = not compare_outputs(past.outputs, cell.outputs)
        if same:
            cell.outputs = copy.deepcopy(past.outputs)
    return new


# ---- exercises


@dataclass
class Exercise:
    name: str
    code: str
    want: str | None  # what it prints; None: anything


def title_of(cell) -> str:
    """The first words of a markdown cell, without its marks."""
    for line in cell.source.splitlines():
        words = re.sub(r"[#*`]", "", line).strip()
        if words:
            return words if len(words) <= 70 else words[:67] + "..."
    return ""


def expected_output(code: str) -> str | None:
    """What the comment at the end of a solution says that it prints; None if there is no such comment."""
    said: list[str] = []
    for line in reversed(code.rstrip().splitlines()):
        text = line.strip()
        if not text.startswith("//"):
            return None
        first = re.fullmatch(r"// ?Output:(.*)", text)
        if first:
            return same_blanks("\n".join([first[1], *reversed(said)]))
        said.append(text[3:] if text.startswith("// ") else text[2:])
    return None


def same_blanks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def exercises(nb) -> list[Exercise]:
    found = []
    for i, cell in enumerate(nb.cells):
        if cell.cell_type != "markdown":
            continue
        blocks = [b for s in SOLUTION.findall(cell.source) for b in GO_BLOCK.findall(s)]
        for n, code in enumerate(blocks, 1):
            part = f", part {n}" if len(blocks) > 1 else ""
            found.append(Exercise(f"{cell_name(nb, i)}, exercise \u201c{title_of(cell)}\u201d{part}", code.rstrip("\n"), expected_output(code)))
    return found


def exercise_fault(exercise: Exercise, outputs: list, compare: bool) -> str | None:
    for out in outputs:
        if out["output_type"] == "error":
            shown = "\n".join(out["traceback"]).strip() or f"{out['ename']}: {out['evalue']}"
            return f"{exercise.name}: the solution fails:\n{shown}"
    printed = "".join(text_of(o["text"]) for o in outputs if o["output_type"] == "stream" and o["name"] == "stdout")
    if compare and exercise.want is not None and same_blanks(printed) != exercise.want:
        return f"{exercise.name}: the solution prints something else:\n" + text_difference("output", exercise.want, same_blanks(printed)).replace(
            "committed output", "its comment"
        )
    return None


# ---- running


@dataclass
class Run:
    """What became of a notebook."""

    faults: list[str] = field(default_factory=list)
    ran: int = 0  # cells that ran to their end
    seconds: float = 0  # of the notebook
    exercises: int = 0
    exercise_seconds: float = 0

    def timing(self) -> str:
        s = f"{self.seconds:.1f} s"
        if self.exercises:
            s += f", {self.exercises} solution{'s' if self.exercises > 1 else ''} {self.exercise_seconds:.1f} s"
        return s


def execute(nb, folder: Path, limit: float, compare: bool = True) -> Run:
    """Runs the notebook in place, then the solutions of its exercises in the same kernel."""
    run = Run()
    began = time.monotonic()
    deadline = began + limit
    tasks = exercises(nb)
    cells = len(nb.cells)
    whole = copy.deepcopy(nb)
    for task in tasks:
        whole.cells.append(nbformat.v4.new_code_cell(task.code, metadata={"tags": ["raises-exception"]}))
    client = NotebookClient(
        whole,
        kernel_name=KERNEL,
        resources={"metadata": {"path": str(folder)}},
        timeout_func=lambda cell: max(1, round(deadline - time.monotonic())),
        record_timing=False,
        coalesce_streams=True,
        startup_timeout=60,
    )
    running, turned = 0, None

    def note(cell, cell_index):
        nonlocal running, turned
        running = cell_index
        if running >= cells and turned is None:
            turned = time.monotonic()

    def where() -> str:
        return cell_name(nb, running) if running < cells else tasks[running - cells].name

    client.on_cell_start = note
    stopped = None
    try:
        client.execute()
        running = len(whole.cells)
        if time.monotonic() > deadline:
            stopped = f"took more than {limit:.0f} s"
    except CellTimeoutError:
        stopped = f"{where()}: still running after {limit:.0f} s for the whole notebook"
    except CellExecutionError as err:
        shown = err.traceback.strip() or f"{err.ename}: {err.evalue}"
        stopped = f"{where()}: failed, and is not tagged raises-exception:\n{shown}"
    except DeadKernelError:
        stopped = f"{where()}: the kernel died"
    except Exception as err:  # the kernel did not start, sockets, ...: one notebook's fault must not hide the others
        stopped = f"could not be executed: {type(err).__name__}: {err}"
    end = time.monotonic()
    run.seconds = (turned or end) - began
    run.exercise_seconds = end - turned if turned else 0
    run.exercises = max(0, running - cells)
    run.ran = min(running, cells)
    for old, new in zip(nb.cells, whole.cells):
        if old.cell_type == "code":
            old.outputs, old.execution_count = new.outputs, new.execution_count
    for task, cell in zip(tasks, whole.cells[cells : cells + run.exercises]):
        fault = exercise_fault(task, cell.outputs, compare)
        if fault:
            run.faults.append(fault)
    if stopped:
        run.faults.append(stopped)
    return run


def open_on(nb, device: str) -> str | None:
    """Changes the device of a notebook; None, or why that cannot be done."""
    code = [c for c in nb.cells if c.cell_type == "code"]
    lines = sum(len(OPENING.findall(c.source)) for c in code)
    if lines != 1 or not OPENING.search(code[0].source):
        return f'its first code cell, and no other, must have one line that begins with gpu := gpukit.MustOpen("..."); there are {lines}'
    code[0].source = OPENING.sub(lambda m: m[0].replace(f'"{m[1]}"', json.dumps(device)), code[0].source)
    return None


def isolate(scratch: Path) -> str | None:
    """Only this .venv counts, not the user's own Jupyter; None, or why the kernel is not to be had."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        (scratch / name).mkdir()
        os.environ[name] = str(scratch / name)
    os.environ.pop("JUPYTER_PATH", None)
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    prefix, cure = sys.prefix, "run `make kernel`"
    if os.environ.get(PREFIX):
        prefix = os.environ[PREFIX]
        os.environ["JUPYTER_PATH"] = str(Path(prefix).resolve() / "share" / "jupyter")
        cure = f"run `go run ./jupyter install --prefix {prefix}`"
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        where = Path(KernelSpecManager().get_kernel_spec(KERNEL).resource_dir).resolve()
    except NoSuchKernel:
        return f"the kernel {KERNEL} is not installed in {prefix}: {cure}"
    if Path(prefix).resolve() not in where.parents:
        return f"the kernel {KERNEL} is only in {where}, not in {prefix}: {cure}"
    return None


def choose(folder: Path, names: list[str]) -> list[Path]:
    """The notebooks whose file name begins with one of names, without names the series; a name that fits none is an error."""
    every = sorted(folder.glob("*.ipynb" if names else SERIES))
    for name in names:
        if not any(p.name.startswith(name) for p in every):
            raise SystemExit(f"no notebook in {folder} begins with {name!r}")
    return [p for p in every if not names or any(p.name.startswith(n) for n in names)]


def run_one(path: Path, mode: str, keep: Path, limit: float, refresh_measured: bool = False, device: str | None = None) -> Run:
    try:
        old = nbformat.read(path, as_version=4)
    except Exception as err:  # nbformat, json and Unicode each have their own
        return Run([f"not a readable notebook: {err}"])
    name = old.metadata.get("kernelspec", {}).get("name")
    if name != KERNEL and mode == "compare":
        return Run([f"kernelspec is {name!r}, must be {KERNEL!r}: run `make notebooks-update`"])
    new = copy.deepcopy(old)
    for cell in new.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    if device:
        trouble = open_on(new, device)
        if trouble:
            return Run([trouble])
    keep.mkdir(parents=True, exist_ok=True)
    for stale in keep.iterdir():
        stale.unlink()
    run = execute(new, path.parent, limit, compare=mode != "run")
    nbformat.write(new, keep / path.name)
    if mode == "compare":
        seen = nbformat.from_dict({"cells": new.cells[: run.ran]})
        run.faults = compare_notebooks(old, seen, keep) + run.faults
    if mode == "update" and run.faults:
        run.faults[-1] += "\nnot written"
    elif mode == "update":
        text = nbformat.writes(keep_committed(normalise(old), normalise(new), refresh_measured)) + "\n"
        if text != path.read_text(encoding="utf-8"):
            part = path.with_suffix(".ipynb.part")  # an interrupted update must not leave half a notebook
            part.write_text(text, encoding="utf-8")
            part.replace(path)
    return run


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("compare", "update", "run"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=Path, default=ROOT / "notebooks")
    parser.add_argument("--artefacts", type=Path, default=ROOT / "artefacts" / "notebooks")
    parser.add_argument("--limit", type=float, default=300, help=f"seconds for a whole notebook (default 300); from {SLOW} on it is named")
    parser.add_argument("--refresh-measured", action="store_true")
    parser.add_argument("--device", metavar="NAME", help="of run: what the first code cell opens instead")
    args = parser.parse_intermixed_args(argv)
    if args.device and args.mode != "run":
        parser.error("--device is for run: outputs of another device are neither compared nor written")

    chosen = choose(args.folder, args.names)
    if not chosen:
        print(f"no notebook in {args.folder}")
        return 1
    with tempfile.TemporaryDirectory(prefix="gpunotes-") as scratch:
        trouble = isolate(Path(scratch))
        if trouble:
            print(trouble)
            return 1
        runs: dict[str, Run] = {}
        for path in chosen:
            keep = args.artefacts / (f"{path.stem}-on-{file_name(args.device)}" if args.device else path.stem)
            run = run_one(path, args.mode, keep, args.limit, args.refresh_measured, args.device)
            runs[path.name] = run
            print(f"{'FAIL' if run.faults else 'ok  '} {path.name}  {run.timing()}", flush=True)
            for fault in run.faults:
                print("    " + fault.replace("\n", "\n    "), flush=True)
            if run.seconds >= SLOW:
                print(f"    slow: a notebook should take less than {SLOW} s on two cores", flush=True)
    failed = sum(bool(r.faults) for r in runs.values())
    slow = [n for n, r in runs.items() if r.seconds >= SLOW]
    print(
        f"notebooks: {len(runs) - failed} passed, {failed} failed; {sum(r.seconds for r in runs.values()):.0f} s, "
        f"with {sum(r.exercises for r in runs.values())} solutions {sum(r.seconds + r.exercise_seconds for r in runs.values()):.0f} s"
        + (f"; slow: {', '.join(slow)}" if slow else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
