"""JupyterLab in a real Chromium: what a user sees and presses. Run by `make test-all`; pictures are left in artefacts/browser/.

The .venv's JupyterLab serves a copy of notebooks/ without outputs, and of the pages beside it, so what the page shows was computed in front of it.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import nbformat
import pytest
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

import notebooks

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = ROOT / "artefacts" / "browser"

# The two cells that the README promises, as a user types them.
FIRST_CELL = """\
import ("math"; "gpunotes/gpukit"; "gpunotes/plots")

func sq(x float64) float64 { return x * x }
func dist(lat1, lon1, lat2, lon2, s float64) float64 {
    a := sq(math.Sin(0.008726645*(lat2-lat1))) +
        math.Cos(0.01745329*lat1)*math.Cos(0.01745329*lat2)*sq(math.Sin(0.008726645*(lon2-lon1)))
    return math.Atan2(a, 1-a) * s
}
gpu := gpukit.MustOpen("parallel")        // or "sim:quadro-k2000", "cuda:0", "cpu", "auto"
lon, lat := gpukit.MeshGrid(gpukit.Linspace(99, 101, 1000), gpukit.Linspace(29, 31, 1000))
Z := gpukit.Must(gpu.Vectorize(dist, lat, lon, 30.0, 101.0, 1.0))  // one call: compile, place, run, bring back
plots.Heatmap(lon, lat, Z).Labels("longitude / deg", "latitude / deg")
"""
SECOND_CELL = "gpu.Explain(dist, lat, lon, 30.0, 101.0, 1.0)\n"

CHROMIUM_FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
if hasattr(os, "geteuid") and os.geteuid() == 0:
    CHROMIUM_FLAGS.append("--no-sandbox")  # Chromium's sandbox does not start as root

COMPUTED = re.compile(r"\[\d+\]:")


@pytest.fixture(scope="module")
def mesh() -> Path:
    """The notebook of the distance mesh, as committed."""
    (path,) = (ROOT / "notebooks").glob("05*.ipynb")
    return path


class Server(NamedTuple):
    url: str
    token: str
    folder: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """JupyterLab on a copy of notebooks/ and of the pages that notebooks link to."""
    scratch = tmp_path_factory.mktemp("lab")
    root = scratch / "served"
    served = root / "notebooks"
    shutil.copytree(ROOT / "notebooks", served, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    for path in served.glob("*.ipynb"):
        nb = nbformat.read(path, as_version=4)
        for cell in nb.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(nb, path)
    shutil.copytree(ROOT / "gpukit", root / "gpukit", ignore=lambda folder, names: [n for n in names if "." in n and not n.endswith(".md")])

    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON"))}
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR"):
        (scratch / name).mkdir()
        env[name] = str(scratch / name)
    env["JUPYTERLAB_WORKSPACES_DIR"] = str(scratch / "workspaces")
    for name, values in {
        # all cells stay in the page, so that the test can look at each without scrolling to it
        "notebook-extension/tracker": {"windowingMode": "none"},
        # saving Untitled.ipynb asks no question
        "docmanager-extension/plugin": {"renameUntitledFileOnSave": False},
    }.items():
        settings = scratch / "JUPYTERLAB_SETTINGS_DIR" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps(values))

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    log = ARTEFACTS / "jupyterlab.log"
    command = [str(ROOT / "jupyter" / "lab" / "lab.sh"), "--no-browser", f"--ServerApp.root_dir={root}"]
    command += [f"--ServerApp.preferred_dir={served}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += ["--IdentityProvider.token=typed-by-nobody"]
    with log.open("w") as out:
        lab = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
    try:
        deadline = time.monotonic() + 60
        while True:
            assert lab.poll() is None, f"JupyterLab ended:\n{log.read_text()}"
            assert time.monotonic() < deadline, f"JupyterLab does not answer:\n{log.read_text()}"
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield Server(f"http://127.0.0.1:{port}", "typed-by-nobody", served)
    finally:
        lab.terminate()  # its kernels are ended by it
        try:
            lab.wait(20)
        except subprocess.TimeoutExpired:
            lab.kill()


@pytest.fixture(scope="module")
def chromium():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert path, "no Chromium: run this through `make test-browser`"
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, headless=True, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium, server, request):
    """A page of its own for each test; it may talk to nobody but this JupyterLab."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(30_000)
    hosts = set()
    context.on("request", lambda r: hosts.add(urlsplit(r.url).hostname) if r.url.startswith(("http", "ws")) else None)
    page = context.new_page()
    yield page
    page.screenshot(path=ARTEFACTS / f"{request.node.name}-end.png")
    context.close()
    assert hosts == {"127.0.0.1"}, f"the page asked {sorted(hosts - {'127.0.0.1'})}"


class Notebook:
    """The notebook that is open in the page."""

    def __init__(self, page: Page, path: Path):
        self.page = page
        self.path = path
        self.panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
        expect(self.panel).to_have_count(1, timeout=60_000)
        self.cells = self.panel.locator(".jp-Cell")
        self.wait_idle()

    def wait_idle(self, seconds: float = 60):
        # the status bar, not the circle in the toolbar: that one shows idle before the kernel is connected
        idle = self.page.locator("#jp-main-statusbar").get_by_text("Go (gpunotes) | Idle", exact=True)
        expect(idle).to_have_count(1, timeout=seconds * 1000)

    def wait_computed(self, cell, seconds: float = 60):
        expect(cell.locator(".jp-InputPrompt")).to_have_text(COMPUTED, timeout=seconds * 1000)
        self.wait_idle(seconds)

    def menu(self, menu: str, item: str):
        self.page.get_by_role("menuitem", name=menu, exact=True).click()
        self.page.get_by_role("menuitem", name=item, exact=True).click()

    def start(self, text: str):
        """Types a new cell at the end and runs it; returns at once with the cell."""
        before = self.cells.count()
        self.panel.locator(".jp-Notebook-footer").click()
        expect(self.cells).to_have_count(before + 1)
        return self.type_and_run(self.cells.nth(before), text)

    def type_and_run(self, cell, text: str):
        cell.locator(".cm-content").click()
        self.page.keyboard.type(text)
        self.page.keyboard.press("Control+Enter")
        return cell

    def run(self, text: str, seconds: float = 60) -> str:
        """Types and runs a new cell, waits for it, returns the text of its outputs."""
        cell = self.start(text)
        self.wait_computed(cell, seconds)
        return self.output(cell)

    def output(self, cell) -> str:
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts())

    def errors(self) -> list[tuple[int, str]]:
        """Saves the notebook as a user does; number of cell and text of every error in the file."""
        self.page.keyboard.press("Control+s")
        expect(self.page.locator("#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current.jp-mod-dirty")).to_have_count(0)
        cells = nbformat.read(self.path, as_version=4).cells
        assert len(cells) == self.cells.count(), "the notebook was not saved"
        return [
            (i, f"{out.ename}: {out.evalue}")
            for i, cell in enumerate(cells)
            for out in cell.get("outputs", [])
            if out.output_type == "error"
        ]

    def stop(self):
        self.panel.locator('.jp-Toolbar [data-command="notebook:interrupt-kernel"]').first.click()

    def shot(self, name: str):
        self.page.screenshot(path=ARTEFACTS / f"{name}.png")


def open_notebook(page: Page, server, name: str, cells: int) -> Notebook:
    page.goto(f"{server.url}/lab/tree/notebooks/{name}?reset&token={server.token}")
    book = Notebook(page, server.folder / name)
    expect(book.cells).to_have_count(cells, timeout=30_000)
    return book


def shown_pixels(image, places) -> list[tuple[int, int, int]]:
    """Colours that the page shows at places, given as fractions of the picture's width and height."""
    return [
        tuple(c)
        for c in image.evaluate(
            """(img, places) => {
                const canvas = document.createElement("canvas");
                canvas.width = img.naturalWidth; canvas.height = img.naturalHeight;
                const g = canvas.getContext("2d");
                g.fillStyle = "white"; g.fillRect(0, 0, canvas.width, canvas.height);
                g.drawImage(img, 0, 0, canvas.width, canvas.height);
                return places.map(([x, y]) => Array.from(g.getImageData(
                    Math.floor(x * canvas.width), Math.floor(y * canvas.height), 1, 1).data).slice(0, 3));
            }""",
            [list(p) for p in places],
        )
    ]


def two_places(picture: Image.Image):
    """Two places of a picture, each within one even colour, whose colours are as unlike as can be; and the colours."""
    rgb = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture.convert("RGBA")).convert("RGB")
    even = []
    for fx in range(15, 90, 3):
        for fy in range(15, 90, 3):
            x, y = rgb.width * fx // 100, rgb.height * fy // 100
            bands = rgb.crop((x - 2, y - 2, x + 3, y + 3)).getextrema()
            colour = rgb.getpixel((x, y))
            # coloured: white and grey belong to the frame, and would be right of an empty picture too
            if all(hi - lo <= 12 for lo, hi in bands) and max(colour) - min(colour) > 40:
                even.append((((x + 0.5) / rgb.width, (y + 0.5) / rgb.height), colour))
    assert even, "the committed picture has no coloured area"
    pairs = ((sum(abs(p - q) for p, q in zip(a[1], b[1])), a, b) for a in even for b in even)
    distance, a, b = max(pairs, key=lambda pair: pair[0])
    assert distance > 60, "the committed picture has one colour only"
    return [a[0], b[0]], [a[1], b[1]]


def first_picture(path: Path):
    """Index of the first cell with a picture in a committed notebook, and the picture."""
    for i, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type == "code":
            for _, _, data in notebooks.unpack(cell.outputs)[1]:
                return i, Image.open(io.BytesIO(data))
    raise AssertionError(f"{path.name} has no picture: run `make notebooks-update`")


def heatmap_of(cell):
    image = cell.locator(".jp-OutputArea-output img").first
    expect(image).to_be_visible(timeout=60_000)
    assert image.evaluate("img => img.decode().then(() => img.naturalWidth)") > 0
    return image


def test_mesh_notebook_and_stop(page, server, mesh):
    index, committed = first_picture(mesh)
    expected = nbformat.read(mesh, as_version=4).cells
    book = open_notebook(page, server, mesh.name, len(expected))
    assert book.panel.locator(".jp-OutputArea-output").count() == 0
    book.menu("Run", "Run All Cells")
    last = max(i for i, c in enumerate(expected) if c.cell_type == "code" and c.source.strip())
    book.wait_computed(book.cells.nth(last), 120)
    allowed = {i for i, c in enumerate(expected) if "raises-exception" in notebooks.tags(c)}
    assert [e for e in book.errors() if e[0] not in allowed] == []

    image = heatmap_of(book.cells.nth(index))
    places, colours = two_places(committed)
    image.scroll_into_view_if_needed()
    book.shot("mesh-heatmap")
    for place, want, got in zip(places, colours, shown_pixels(image, places)):
        assert all(abs(w - g) <= 8 for w, g in zip(want, got)), f"at {place}: {got}, committed {want}"

    assert book.run("kept := 41") == ""
    endless = book.start("for {}")
    expect(endless.locator(".jp-InputPrompt")).to_have_text("[*]:")
    time.sleep(1)  # well inside the loop, not on its way there
    expect(endless.locator(".jp-InputPrompt")).to_have_text("[*]:")
    book.shot("stop-before")
    began = time.monotonic()
    book.stop()
    book.wait_computed(endless, 20)
    took = time.monotonic() - began
    book.shot("stop-after")
    assert took < 10, f"the Stop button took {took:.1f} s"
    number = book.cells.count() - 1
    (error,) = [text for i, text in book.errors() if i == number]
    assert "interrupt" in error.lower(), error
    assert "interrupt" in book.output(endless).lower()
    assert book.run("kept + 1").strip().startswith("42")


def test_the_two_cells_typed(page, server):
    page.goto(f"{server.url}/lab?reset&token={server.token}")
    page.locator('.jp-LauncherCard[data-category="Notebook"]', has_text="Go (gpunotes)").click()
    book = Notebook(page, server.folder / "Untitled.ipynb")

    first = book.type_and_run(book.cells.first, FIRST_CELL)
    book.wait_computed(first, 120)
    assert book.errors() == []
    image = heatmap_of(first)
    assert image.bounding_box()["width"] > 200
    far, near = shown_pixels(image, [(0.15, 0.5), (0.65, 0.5)])  # two degrees from the point, and beside it
    assert sum(abs(a - b) for a, b in zip(far, near)) > 60, f"the heat map shows {far} and {near}"
    book.shot("typed-heatmap")

    plan = book.run(SECOND_CELL)
    assert book.errors() == []
    book.cells.last.locator(".jp-OutputArea-output").first.scroll_into_view_if_needed()
    book.shot("typed-plan")
    for word in ("dist", "parallel", "lat1"):
        assert word in plan, plan


def test_links_to_pages_beside_the_notebooks(page, server):
    book = open_notebook(page, server, "00-tour.ipynb", len(nbformat.read(server.folder / "00-tour.ipynb", as_version=4).cells))
    link = book.panel.locator("a", has_text="The kernel language").first
    link.scroll_into_view_if_needed()
    link.click()
    expect(page.locator(".jp-FileEditor, .jp-MarkdownViewer").filter(has_text="The kernel language")).to_be_visible()
    book.shot("linked-page")


def test_help_progress_and_stop(page, server):
    """Shift-Tab shows documentation, a long loop a bar that moves and goes, Stop ends a call that cannot be stopped."""
    page.goto(f"{server.url}/lab?reset&token={server.token}")
    page.locator('.jp-LauncherCard[data-category="Notebook"]', has_text="Go (gpunotes)").click()
    book = Notebook(page, server.folder / "Untitled.ipynb")

    first = book.type_and_run(book.cells.first, 'import ("time"; "gpunotes/gpukit")\nkept := 41\ngpu := gpukit.MustOpen("cpu")\n')
    book.wait_computed(first)

    book.panel.locator(".jp-Notebook-footer").click()
    cell = book.cells.last
    cell.locator(".cm-content").click()
    page.keyboard.type("gpu.Vectorize(")
    page.keyboard.press("Shift+Tab")
    tip = page.locator(".jp-Tooltip")
    expect(tip).to_contain_text("func (d *Device) Vectorize(fn any, args ...any) (*Array, error)", timeout=20_000)
    expect(tip).to_contain_text("calls fn once for every element")
    book.shot("help-shift-tab")
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Backspace")

    loop = book.type_and_run(cell, "for i := 0; i < 60; i++ {\ntime.Sleep(100 * time.Millisecond)\n}")
    bar = loop.locator(".jp-OutputArea-output progress")
    expect(bar).to_have_count(1, timeout=20_000)
    seen = float(bar.get_attribute("value"))
    book.shot("progress-moving")
    page.wait_for_function("([bar, seen]) => !bar.isConnected || bar.value > seen", arg=[bar.element_handle(), seen])
    book.wait_computed(loop, 60)
    expect(bar).to_have_count(0)
    expect(loop.locator(".jp-OutputArea-output")).to_have_text(re.compile(r"line 1: 60 in [\d.]+ s"))
    book.shot("progress-over")
    assert book.errors() == []

    endless = book.start("ch := make(chan int)\n<-ch")
    expect(endless.locator(".jp-InputPrompt")).to_have_text("[*]:")
    time.sleep(1)
    book.stop()
    book.wait_computed(endless, 20)
    assert "left to itself" in book.output(endless) and "kept" not in book.output(endless)
    book.shot("stop-left-to-itself")
    assert book.run("kept + 1").strip().startswith("42")


def test_a_dead_kernel_leaves_no_cell_waiting(page, server):
    """What Go cannot catch ends the process: the cell says so, those behind it are given up, the notebook goes on."""
    page.goto(f"{server.url}/lab?reset&token={server.token}")
    page.locator('.jp-LauncherCard[data-category="Notebook"]', has_text="Go (gpunotes)").click()
    book = Notebook(page, server.folder / "Untitled.ipynb")
    first = book.type_and_run(book.cells.first, 'import ("os"; "time")\np, _ := os.FindProcess(os.Getpid())\n')
    book.wait_computed(first)
    deadly = book.start("time.Sleep(2 * time.Second)\np.Kill()\nfor {}")
    behind = book.start("1 + 1")
    expect(deadly.locator(".jp-OutputArea-output").first).to_contain_text("KernelDied", timeout=30_000)
    book.wait_idle()
    book.shot("kernel-died")
    for cell in (deadly, behind):
        expect(cell.locator(".jp-InputPrompt")).not_to_have_text("[*]:", timeout=20_000)
    assert "no cell was run again" in book.output(deadly)
    assert book.run("40 + 2").strip().startswith("42")
    assert "undefined" in book.run("p")
