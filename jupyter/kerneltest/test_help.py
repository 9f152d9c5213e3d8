"""Shift-Tab, ?name and Tab, through the protocol."""
import time

import pytest


@pytest.fixture(scope="module", autouse=True)
def names(nb):
    nb.ok(
        'import ("fmt"; "strings"; "gpunotes/gpukit"; "gpunotes/plots"; "gonum.org/v1/gonum/mat"; "gonum.org/v1/plot")\n'
        'gpu := gpukit.MustOpen("cpu")\nz := gpukit.Must(gpukit.Linspace(-1, 3, 12).Reshape(3, 4), nil)\n'
        'sim := gpukit.MustOpen("sim:gtx-970"); far := gpukit.Must(sim.Put(z))\n'
        "größe := 3.5\nword := \"abc\"\nlist := []int{1, 2}\nm := mat.NewDense(2, 2, nil)\n"
        "// half of it,\n// rounded.\nfunc half(x, y float64) float64 {\n\treturn x / 2 // the end\n}\n"
        "type Point struct { X, Y float64; Name string }\nfunc (p Point) Norm() float64 { return p.X }\nps := []Point{{1, 2, \"a\"}}\n"
    )


def ask(nb, kind, code, cursor, **more):
    begin = time.time()
    msg = nb.client.session.msg(kind + "_request", {"code": code, "cursor_pos": len(code) if cursor is None else cursor, **more})
    nb.client.shell_channel.send(msg)
    while True:
        reply = nb.client.get_shell_msg(timeout=10)
        if reply["parent_header"].get("msg_id") == msg["header"]["msg_id"]:
            return reply["content"], time.time() - begin


def inspect(nb, code, cursor=None):
    got, _ = ask(nb, "inspect", code, cursor, detail_level=0)
    assert got["status"] == "ok" and got["found"] == bool(got["data"])
    return got["data"].get("text/plain", "")


@pytest.mark.parametrize(
    "code, cursor, parts",
    [
        ("fmt.Println", None, ["func Println(a ...any) (n int, err error)", "default formats"]),
        ("fmt.Println(1)", 6, ["func Println("]),
        ("fmt.Println(1, 2", None, ["func Println("]),  # inside the call
        ("fmt.Println(strings.Repeat(", None, ["func Repeat(s string, count int) string"]),
        ("fmt.Println(strings.Repeat(\"a\", 2), ", None, ["func Println("]),
        ("fmt", None, ["package fmt", "formatted I/O"]),
        ("strings.Builder", None, ["type Builder struct", "efficiently build a string"]),
        ("gpu.Vectorize", None, ["func (d *Device) Vectorize(fn any, args ...any) (*Array, error)", "one result"]),
        ('gpukit.MustOpen("cpu").Launch', None, ["Launch(kernel any, grid Grid"]),
        ("gpukit.Linspace", None, ["func Linspace(", "float64"]),
        ("plots.Heatmap", None, ["func Heatmap("]),
        ("mat.NewDense", None, ["func NewDense(r, c int, data []float64) *Dense", "creates a new Dense matrix"]),
        ("m.Mul", None, ["func (m *Dense) Mul(a, b Matrix)"]),
        ("plot.New", None, ["func New() *Plot"]),
        ("gpu", None, ["var gpu *gpunotes/gpukit.Device", "Device runs functions"]),
        ("z", None, ["var z *gpunotes/gpukit.Array", "shape [3 4], dtype float64, device host, min -1, max 3"]),
        ("far", None, ["shape [3 4], dtype float64, device sim:gtx-970, min -1, max 3"]),
        ("größe", None, ["var größe float64 = 3.5"]),
        ('"größe", gr', 4, []),
        ("word", None, ['var word string = "abc"']),
        ("list", None, ["len 2"]),
        ("half(1, 2)", 2, ["// half of it,\n// rounded.\nfunc half(x, y float64) float64 {\n\treturn x / 2 // the end\n}"]),
        ("ps[0].Norm", None, ["method Norm func() float64"]),
        ("append(", None, ["func append(slice []Type, elems ...Type) []Type"]),
        # Nothing of this cell has run.
        ('import "math"\nmath.Hypot', None, ["func Hypot(p, q float64) float64"]),
        ("sb := strings.Builder{}\nsb.Grow", None, ["func (b *Builder) Grow(n int)"]),
        ("nothing", None, []),
        ("1 + 2", None, []),
    ],
)
def test_inspect(nb, code, cursor, parts):
    text = inspect(nb, code, cursor)
    assert bool(text) == bool(parts), text
    for part in parts:
        assert part in text, text


def test_inspect_has_html_and_is_quick(nb):
    got, _ = ask(nb, "inspect", "fmt.Println", None)
    assert "<pre>func Println(a ...any)" in got["data"]["text/html"] and "<p>Println formats" in got["data"]["text/html"]
    assert min(ask(nb, "inspect", "gpu.Vectorize", None)[1] for _ in range(5)) < 0.05


def test_questions(nb):
    for code in ("?strings.Repeat", "strings.Repeat?", "\n?strings.Repeat\n"):
        (page,) = nb.ok(code).reply["content"]["payload"]
        assert page["source"] == "page" and "func Repeat(s string, count int) string" in page["data"]["text/plain"]
    assert "nothing is known" in nb.fails("?neverheardof").error["evalue"]
    # A question changes nothing else.
    assert nb.ok("?z\nhalf(3, 4)").plain == "1.5"


def complete(nb, code, cursor=None):
    got, _ = ask(nb, "complete", code, cursor)
    assert got["status"] == "ok"
    return got["matches"], got["cursor_start"], got["cursor_end"]


@pytest.mark.parametrize(
    "code, want, unwanted",
    [
        ("fmt.Printl", ["Println"], ["Printf"]),
        ("fmt.Println(gpukit.Lins", ["Linspace"], []),
        ("x := half(strings.Rep", ["Repeat", "Replace"], []),
        ("gpu.Vec", ["Vectorize", "Vectorize2"], []),
        ("z.", ["Shape", "Sum", "T"], ["shape"]),
        ('gpukit.MustOpen("cpu").Expl', ["Explain"], []),
        ("gpukit.Linspace(0, 1, 3).Resh", ["Reshape"], []),
        ("ps[0].", ["X", "Y", "Name", "Norm"], []),
        ("(&ps[0]).No", ["Norm"], []),
        ("q := Point{Na", ["Name"], []),
        ("q := &Point{X: 1, ", ["Name", "Y"], []),
        ("qs := []Point{{X: 1}, {N", ["Name"], []),
        ("fmt.Println(Point{X: hal", ["half"], []),
        ("f := func(p Point) float64 { return p.No", ["Norm"], []),
        ("func f(d *gpukit.Device) { d.Laun", ["Launch"], []),
        ("dev := gpukit.MustOpen(\"cpu\")\narr, err := dev.Vectorize(half, 1.0, 2.0)\narr.Sh", ["Shape"], []),
        ("for _, p := range ps { p.N", ["Name", "Norm"], []),
        ("loc := 1\nlo", ["loc"], []),
        ('import "gonum.org/v1/gonum/fl', ["gonum.org/v1/gonum/floats"], []),
        ('import (\n\t"fmt"\n\t"gpunotes/p', ["gpunotes/plots"], []),
        ("gr", ["größe"], []),
        ("ret", ["return"], []),
        ("%%be", ["%%bench"], []),
        ("?gpu.Vect", ["Vectorize"], []),
        ('"fmt.Printl', [], ["Println"]),
        ("// fmt.Printl", [], ["Println"]),
        ("zzzz", [], []),
        ("nothing.", [], []),
        ("", [], []),
    ],
)
def test_complete(nb, code, want, unwanted):
    matches, start, end = complete(nb, code)
    assert set(want) <= set(matches) and not set(unwanted) & set(matches), matches
    if not want:
        assert matches == []
    for m in want:
        assert m.startswith(code[start:end]), (m, code[start:end])
    assert end == len(code)


def test_complete_counts_characters(nb):
    matches, start, end = complete(nb, '"äöü🙂" + strings.Rep', None)
    assert "Repeat" in matches and (start, end) == (17, 20)
    assert complete(nb, "größe + alpha", 3) == (["größe"], 0, 3)
    matches, start, end = complete(nb, "x := strings.Rep + 1", 16)
    assert "Repeat" in matches and (start, end) == (13, 16)
