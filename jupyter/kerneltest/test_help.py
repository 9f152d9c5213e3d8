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
        "// A Point has a place.\ntype Point struct { X, Y float64; Name string; seen bool }\nfunc (p Point) Norm() float64 { return p.X }\n"
        "func (p *Point) Move(dx float64) { p.X += dx }\nps := []Point{{1, 2, \"a\", true}}\npp := &ps[0]\n"
        "type (\n\tCelsius float64\n\t// A Shape has an area.\n\tShape interface { Area() float64 }\n)\nc := Celsius(20.5)\nconst K = 5\nvar none *Point\n"
        "var failure error = fmt.Errorf(\"boo\")\nch := make(chan int, 3)\nlong := make([]int, 1000)\ntable := map[string]int{\"a\": 1}\n"
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
        ("gpu", None, ["var gpu *gpukit.Device", "Device runs functions"]),
        ("z", None, ["var z *gpukit.Array", "shape [3 4], dtype float64, device host, min -1, max 3"]),
        ("far", None, ["shape [3 4], dtype float64, device sim:gtx-970, min -1, max 3"]),
        ("größe", None, ["var größe float64 = 3.5"]),
        ('"größe", gr', 4, []),
        ("word", None, ['var word string = "abc"']),
        ("list", None, ["len 2, = [1 2]"]),
        ("long", None, ["var long []int, len 1000"]),
        ("table", None, ["var table map[string]int, len 1, = map[a:1]"]),
        ("ch", None, ["var ch chan int, len 0 of 3"]),
        ("failure", None, ['var failure error = "boo"']),
        ("none", None, ["var none *Point = nil"]),
        ("K", None, ["const K untyped int = 5"]),
        ("c", None, ["var c Celsius = 20.5", "type Celsius float64"]),
        ("ps", None, ["var ps []Point, len 1, = [{X:1 Y:2 Name:a seen:true}]", "// A Point has a place.\ntype Point struct {"]),
        ("pp", None, ["var pp *Point", "type Point struct {"]),
        ("Point", None, ["// A Point has a place.\ntype Point struct { X, Y float64; Name string; seen bool }\n\n"
                         "func (p Point) Norm() float64\nfunc (p *Point) Move(dx float64)"]),
        ("Shape", None, ["// A Shape has an area.\ntype Shape interface { Area() float64 }"]),
        ("Celsius(1)", 3, ["type Celsius float64"]),
        ("ps[0].seen", None, ["field seen bool"]),
        ("for", None, ["for index, element := range list"]),
        ("x := 1\nswitch x {", 10, ["case 1, 2:"]),
        ("%%bench 10\nhalf(1, 2)", 4, ["%%bench [runs]"]),
        ("$ls -l", 3, ["run a line of the shell"]),
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
        ("%errcheck o", ["off", "on"], []),
        ('gpukit.MustOpen("', ["auto", "cpu", "parallel", "sim:quadro-k2000"], []),
        ('dev, err := gpukit.Open("sim:g', ["sim:gtx-970"], ["cpu"]),
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


def test_completes_files(nb, tmp_path):
    (tmp_path / "data.csv").write_text("")
    (tmp_path / "deep").mkdir()
    for code in (f'os.ReadFile("{tmp_path}/d', f"$cat {tmp_path}/d"):
        assert complete(nb, code)[0] == [f"{tmp_path}/data.csv", f"{tmp_path}/deep/"], code
    assert complete(nb, f"%cd {tmp_path}/")[0] == [f"{tmp_path}/deep/"]
    assert complete(nb, 'x := "')[0] == []


def test_while_a_cell_runs(nb):
    """What changes nothing is answered at once, and the front end still sees a busy kernel."""
    cell = nb.send("numbers := map[int]int{}\nfor { numbers[len(numbers)%1000]++ }")
    deadline = time.time() + 20
    while "numbers" not in complete(nb, "numb")[0]:
        assert time.time() < deadline
    for _ in range(20):
        assert "Println" in complete(nb, "fmt.Printl")[0]
        assert "func Repeat(" in inspect(nb, "strings.Repeat")
        assert "map[int]int" in inspect(nb, "numbers") and "float64 = 3.5" in inspect(nb, "größe")
        assert ask(nb, "is_complete", "f(", 0)[0]["status"] == "incomplete"
    states = []
    for m in iter(lambda: nb.client.get_iopub_msg(timeout=5), None):
        if m["header"]["msg_type"] == "status":
            states.append(m["content"]["execution_state"])
        if len(states) >= 5 and states[-2:] == ["idle", "busy"]:
            break
    nb.control("interrupt_request")
    assert nb.collect(cell).status == "error"
    assert "Println" in complete(nb, "fmt.Printl")[0]
