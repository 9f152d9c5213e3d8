"""Execute the notebooks with the gpunotes kernel of this .venv.

    notebooks.py compare [NAME...]    nothing is written; outputs must be those committed
    notebooks.py update [NAME...]     outputs are written into the notebooks

NAME is the beginning of a file name in notebooks/ ("05"); without one, all are taken.

Rules: a cell tagged `measured` shows times of this machine: it must run, its outputs are not compared, and an update keeps
the committed ones unless the cell changed (--refresh-measured: writes them too). So it is with one tagged `machine`, which
shows code for the CPU of this machine. A cell tagged `raises-exception` may fail,
no other may. Text is compared exactly, execution counts not at all, pictures by their pixels with a small tolerance.
Executed notebooks and pictures are left under artefacts/notebooks/.
"""

from __future__ import annotations

import argparse
import base64
import copy
import difflib
import io
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from PIL import Image, ImageChops, ImageStat

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "gpunotes"
KERNELSPEC = {"display_name": "Go (gpunotes)", "language": "go", "name": KERNEL}

# Rasterisers of two CPU families round some edge pixels differently: a level or two, here and there. A changed digit of a
# tick label changes dozens of pixels by more than half the range, so it is caught whatever the size of the picture.
MEAN_LEVELS = 0.05
STRONG_LEVELS = 48
STRONG_PIXELS = 4

PICTURES = ("image/png", "image/jpeg")
EMBEDDED = re.compile(r"data:(image/(?:png|jpeg));base64,([A-Za-z0-9+/=\s]+)")
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


def compare_notebooks(want, got, keep: Path | None = None) -> list[str]:
    """What differs in the outputs of two notebooks with the same cells."""
    faults = []
    for i, (a, b) in enumerate(zip(want.cells, got.cells)):
        if a.cell_type != "code" or of_this_machine(a):
            continue
        was, now = ([o for o in cell.get("outputs", []) if not is_progress(o)] for cell in (a, b))
        for fault in compare_outputs(was, now, keep, f"cell{i + 1:02d}-"):
            faults.append(f"{cell_name(want, i)}: {fault}")
    return faults


def normalise(nb):
    """Leaves in a notebook only what its author or its execution means: small diffs."""
    nb = copy.deepcopy(nb)
    nb.nbformat, nb.nbformat_minor = 4, 5
    language = {k: v for k, v in nb.metadata.get("language_info", {}).items() if k != "version"}
    kept = {k: v for k, v in nb.metadata.items() if k not in (*VOLATILE_METADATA, "language_info", "kernelspec")}
    nb.metadata = nbformat.from_dict({**kept, "kernelspec": dict(KERNELSPEC), "language_info": language})
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
    for cell in new.cells:
        past = before.get((cell.get("id"), cell.source)) if cell.cell_type == "code" else None
        if past is None or not past.outputs:
            continue
        if of_this_machine(cell):
            same = not refresh_measured
        else:
            same = not compare_outputs(past.outputs, cell.outputs)
        if same:
            cell.outputs = copy.deepcopy(past.outputs)
    return new


def execute(nb, folder: Path, limit: float) -> tuple[int, str | None]:
    """Runs the notebook in place; the number of cells that ran to their end, and why it stopped there (None: it did not)."""
    deadline = time.monotonic() + limit
    client = NotebookClient(
        nb,
        kernel_name=KERNEL,
        resources={"metadata": {"path": str(folder)}},
        timeout_func=lambda cell: max(1, round(deadline - time.monotonic())),
        record_timing=False,
        coalesce_streams=True,
        startup_timeout=60,
    )
    running = 0

    def note(cell, cell_index):
        nonlocal running
        running = cell_index

    client.on_cell_start = note
    try:
        client.execute()
    except CellTimeoutError:
        return running, f"{cell_name(nb, running)}: still running after {limit:.0f} s for the whole notebook"
    except CellExecutionError as err:
        shown = err.traceback.strip() or f"{err.ename}: {err.evalue}"
        return running, f"{cell_name(nb, running)}: failed, and is not tagged raises-exception:\n{shown}"
    except DeadKernelError:
        return running, f"{cell_name(nb, running)}: the kernel died"
    except Exception as err:  # the kernel did not start, sockets, ...: one notebook's fault must not hide the others
        return running, f"could not be executed: {type(err).__name__}: {err}"
    if time.monotonic() > deadline:
        return len(nb.cells), f"took more than {limit:.0f} s"
    return len(nb.cells), None


def isolate(scratch: Path) -> str | None:
    """Only this .venv counts, not the user's own Jupyter; None, or why the kernel is not to be had."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        (scratch / name).mkdir()
        os.environ[name] = str(scratch / name)
    os.environ.pop("JUPYTER_PATH", None)
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        where = Path(KernelSpecManager().get_kernel_spec(KERNEL).resource_dir).resolve()
    except NoSuchKernel:
        return f"the kernel {KERNEL} is not installed in {sys.prefix}: run `make kernel`"
    if Path(sys.prefix).resolve() not in where.parents:
        return f"the kernel {KERNEL} is only in {where}, not in {sys.prefix}: run `make kernel`"
    return None


def choose(folder: Path, names: list[str]) -> list[Path]:
    """The notebooks whose file name begins with one of names; a name that fits none is an error."""
    every = sorted(folder.glob("*.ipynb"))
    for name in names:
        if not any(p.name.startswith(name) for p in every):
            raise SystemExit(f"no notebook in {folder} begins with {name!r}")
    return [p for p in every if not names or any(p.name.startswith(n) for n in names)]


def run_one(path: Path, mode: str, keep: Path, limit: float, refresh_measured: bool) -> list[str]:
    try:
        old = nbformat.read(path, as_version=4)
    except Exception as err:  # nbformat, json and Unicode each have their own
        return [f"not a readable notebook: {err}"]
    name = old.metadata.get("kernelspec", {}).get("name")
    if name != KERNEL and mode == "compare":
        return [f"kernelspec is {name!r}, must be {KERNEL!r}: run `make notebooks-update`"]
    keep.mkdir(parents=True, exist_ok=True)
    for stale in keep.iterdir():
        stale.unlink()
    new = copy.deepcopy(old)
    for cell in new.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    ran, stopped = execute(new, path.parent, limit)
    nbformat.write(new, keep / path.name)
    if mode == "compare":
        seen = nbformat.from_dict({"cells": new.cells[:ran]})
        return compare_notebooks(old, seen, keep) + ([stopped] if stopped else [])
    if stopped:
        return [stopped + "\nnot written"]
    text = nbformat.writes(keep_committed(normalise(old), normalise(new), refresh_measured)) + "\n"
    if text != path.read_text(encoding="utf-8"):
        part = path.with_suffix(".ipynb.part")  # an interrupted update must not leave half a notebook
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    return []


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("compare", "update"))
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--folder", type=Path, default=ROOT / "notebooks")
    parser.add_argument("--artefacts", type=Path, default=ROOT / "artefacts" / "notebooks")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a whole notebook (default 60)")
    parser.add_argument("--refresh-measured", action="store_true")
    args = parser.parse_args(argv)

    chosen = choose(args.folder, args.names)
    if not chosen:
        print(f"no notebook in {args.folder}")
        return 1
    with tempfile.TemporaryDirectory(prefix="gpunotes-") as scratch:
        trouble = isolate(Path(scratch))
        if trouble:
            print(trouble)
            return 1
        failed = 0
        for path in chosen:
            began = time.monotonic()
            faults = run_one(path, args.mode, args.artefacts / path.stem, args.limit, args.refresh_measured)
            print(f"{'FAIL' if faults else 'ok  '} {path.name}  {time.monotonic() - began:.1f} s", flush=True)
            for fault in faults:
                print("    " + fault.replace("\n", "\n    "), flush=True)
            failed += bool(faults)
    print(f"notebooks: {len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
