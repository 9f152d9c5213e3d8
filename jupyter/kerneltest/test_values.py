"""How values and errors look below a cell."""
import base64
import re

import pytest


@pytest.fixture(autouse=True)
def names(nb):
    nb.ok(
        'import ("fmt"; "image"; "errors"; "os"; "encoding/json"; "gonum.org/v1/plot"; "gonum.org/v1/gonum/mat"; "gpunotes/gpukit"; "gpunotes/gpukit/trace"; "gpunotes/plots")\n'
        "type P struct { Name string; X, y float64; N int }\nps := []P{{\"a\", 1.5, 2, 3}, {\"bcd\", -10, 2.25, 4}}\n"
        "img := image.NewGray(image.Rect(0, 0, 3, 2))\nx := gpukit.Linspace(0, 1, 10)"
    )


def test_structs_are_tables(nb):
    got = nb.ok("ps").data
    assert got["text/plain"] == "Name    X     y  N\na     1.5     2  3\nbcd   -10  2.25  4"
    assert re.sub(r' style="[^"]*"', "", got["text/html"]).startswith("<table>\n<tr><th>Name</th><th>X</th><th>y</th><th>N</th></tr>\n<tr><td>a</td>")
    got = nb.ok('[]P{{Name: "<b>"}, {}}').data["text/html"]
    assert "&lt;b&gt;" in got and "<b>" not in got
    assert nb.ok("[]*P{&ps[0], nil}").plain.split("\n")[2] == "<nil>"
    got = nb.ok("make([]P, 1000)").data
    assert got["text/plain"].endswith("1,000 rows, 980 not shown") and got["text/html"].count("<tr>") == 22
    assert nb.ok("[]P{}").plain == "[]"
    assert nb.ok("[]error{errors.New(\"e\")}").data.keys() == {"text/plain"}


def test_long_values_say_their_size(nb):
    assert nb.ok("make([]float64, 100000)").plain == "[0 0 0 0 0 0 0 0 0 0 ... 0 0 0] (100,000 elements)"
    assert nb.ok("[2000]int{1, 2}").plain.endswith("(2,000 elements)")
    assert len(nb.ok("make([]int, 1000)").plain) == 2001
    cut = nb.ok("string(make([]byte, 1000000))").plain
    assert len(cut) < 30000 and cut.endswith("(980000 more bytes; use fmt.Println to see all)")


def test_several_values(nb):
    assert nb.ok('1, "two", ps[0]').plain == "1 two {a 1.5 2 3}"
    assert nb.ok("a, b := 3, 4\na, b // both").plain == "3 4"
    got = nb.ok("img, ps, 5")
    assert ["image/png" in d["data"] for d in got.of("display_data")] == [True, False] and got.plain == "5"
    assert nb.fails("1, nope").error["evalue"].startswith(f"cell {nb.ok('1').reply['content']['execution_count'] - 1}:1:4: undefined: nope")
    assert "last line" in nb.fails("1, 2\n3").error["evalue"]


def test_several_pictures(nb):
    got = nb.ok('p := plot.New()\np\nfmt.Println("between")\nimg\nplots.Heatmap(x, x, gpukit.Zeros(10, 10))\n3')
    kinds = [m["header"]["msg_type"] for m in got.messages if m["header"]["msg_type"] in ("display_data", "stream", "execute_result")]
    assert kinds == ["display_data", "stream", "display_data", "display_data", "execute_result"]
    # A method that changes a figure and returns it shows it no second time; arrays are no pictures.
    got = nb.ok('f := plots.Heatmap(x, x, gpukit.Zeros(10, 10))\nf.Title("t")\nf.Labels("a", "b")\ngpukit.Linspace(0, 1, 3)\nf')
    assert got.of("display_data") == [] and got.data
    # A slice of pictures shows each.
    got = nb.ok("[]*plots.Figure{f, plots.Heatmap(x, x, gpukit.Zeros(10, 10)), f}")
    assert len(got.of("display_data")) == 2 and "image/png" in got.data
    got = nb.ok("[]*plots.Figure{f, nil}")
    assert got.of("display_data") == [] and not any(mime.startswith("image/") for mime in got.data)


def test_pictures_in_loops_and_branches(nb):
    got = nb.ok('for i := 0; i < 2; i++ {\n\tfmt.Println(i)\n\tplots.Heatmap(x, x, gpukit.Zeros(10, 10)).Title(fmt.Sprint(i))\n}')
    kinds = [m["header"]["msg_type"] for m in got.messages if m["header"]["msg_type"] in ("display_data", "stream", "execute_result")]
    assert kinds == ["stream", "display_data"] * 2
    assert ["0" in got.of("display_data")[0]["data"]["text/plain"], "1" in got.of("display_data")[1]["data"]["text/plain"]] == [True, True]
    got = nb.ok('if true {\n\tf\n} else {\n\tplot.New()\n}\nswitch {\ncase len(x.Float64s()) == 10:\n\tp\n}')
    assert len(got.of("display_data")) == 2
    got = nb.ok('%%bench 5\nif true {\n\tf\n}')
    assert len(got.of("display_data")) == 1 and "median of 5" in got.text()
    assert nb.ok('figs := make(chan *plots.Figure, 2)\nfigs <- f\nfigs <- f\nif true {\n\tselect {\n\tcase <-figs:\n\t}\n\t<-figs\n}').of("display_data") == []
    # So are images of Go, as a variable, as an interface and as a call.
    got = nb.ok('import "image"\ngray := image.NewGray(image.Rect(0, 0, 2, 2))\nvar any image.Image = gray\nfor i := 0; i < 2; i++ {\n\tgray\n\tany\n\timage.NewRGBA(image.Rect(0, 0, 3, 3))\n}')
    assert len(got.of("display_data")) == 6
    # What changes a figure shows it no second time, and a function shows nothing.
    got = nb.ok('if true {\n\tf.Title("u")\n\tg := f\n\tg.Title("v")\n\t(func() { plots.Heatmap(x, x, gpukit.Zeros(10, 10)) })()\n\tgpukit.Zeros(3)\n}')
    assert got.of("display_data") == []
    got = nb.fails('for i := 0; i < 3; i++ {\n\tplots.Heatmap(x, x, gpukit.Zeros(3))\n}').error
    assert any("2 | \tplots.Heatmap" in line for line in got["traceback"]), got


def test_functions_show_pictures_by_display(nb):
    nb.ok('import "display"\nf := plots.Heatmap(x, x, gpukit.Zeros(10, 10))\nfunc showIt() { display.Show("", f.Render()) }')
    assert "image/png" in nb.ok("showIt()").of("display_data")[0]["data"]
    for code, hint in (("display.Show(f)", 'display.Show("", f.Render())'), ('display.Show("", f)', "f.Render()"), ("Display(f)", "f.Render()")):
        said = nb.fails(code).error["evalue"]
        assert hint in said and "display.Data" in said and "Metadata" not in said, said


def test_pointers_and_functions(nb):
    nb.ok('import "fmt"\ntype Vp struct { X int }\nfunc (v Vp) String() string { return fmt.Sprint("V", v.X) }\n'
          'type Pp struct { X int }\nfunc (p *Pp) String() string { return fmt.Sprint("P", p.X) }\n'
          'type Hp struct { X int }\nfunc (h Hp) HTML() string { return fmt.Sprint("<b>", h.X, "</b>") }\nvar none *Hp')
    assert nb.ok("Vp{3}").plain == nb.ok("&Vp{3}").plain == "V3"
    assert nb.ok("&Pp{4}").plain in ("P4", "&{4}")  # the interpreter has no such conversion
    assert nb.ok("Hp{5}").data["text/html"] == nb.ok("&Hp{5}").data["text/html"]
    nb.ok('func (p *Pp) HTML() string { return "<i>p</i>" }')
    assert "4" in nb.ok("&Pp{4}").plain
    nb.ok("none")  # of a nil pointer no method is called
    assert nb.ok("fmt.Sprint").plain == "func(...interface {}) string"
    assert nb.ok("func twice(x int) int { return 2 * x }\ntwice").plain == "func(int) int"
    assert "Vp is a type" in nb.fails("Vp").error["evalue"]
    assert "in parentheses" in nb.fails("func() int { return 5 }()").error["evalue"]
    assert nb.ok("(func() int { return 5 })()").plain == "5"


def test_no_count_below_a_print(nb):
    for code in ('fmt.Println("x")', 'fmt.Printf("x")', 'fmt.Fprintln(os.Stdout, "x")'):
        assert nb.ok(code).data is None


def test_constants_of_compiled_types(nb):
    """record.Kind == "launch" is as true as it is in Go."""
    nb.ok('var r trace.Record\nr.Kind = "launch"\nn := json.Number("3")\nm := map[json.Number]int{"3": 4}')
    for code, want in {
        'r.Kind == "launch"': "true", '"launch" == r.Kind': "true", 'r.Kind != "launch"': "false", 'r.Kind < "m"': "true", 'r.Kind + "x"': "launchx",
        'n == "3"': "true", 'm["3"], m[n]': "4 4", 'json.Number("3") == n': "true",
    }.items():
        assert nb.ok(code).plain == want, code
    assert nb.ok('switch r.Kind { case "launch": fmt.Print("yes"); default: fmt.Print("no") }').text() == "yes"
    nb.ok("_, _ = 1, 2\nu, v := 1, 2\n_, _ = u, v")


@pytest.mark.parametrize(
    "code, source, caret",
    [
        ("1\n\ty := 2 + nope", "\ty := 2 + nope", "\t         ^"),
        ("y := )", "y := )", "     ^"),
        ('import "no/such"', 'import "no/such"', "       ^"),
        ("func inner(i int) int {\n\tq := []int{1}\n\treturn q[i]\n}\ninner(5)", "\treturn q[i]", "\t       ^"),
        ('é := "ü"; nope2()', 'é := "ü"; nope2()', "          ^"),
        ("_, err := os.Open(\"/no/such\")", '_, err := os.Open("/no/such")', "^"),
        ("func bad(x float64) float64 {\n\tgo bad(x)\n\treturn x\n}\ngpukit.MustOpen(\"cpu\").Vectorize(bad, x)", "\tgo bad(x)", "\t^"),
    ],
)
def test_errors_point_at_their_place(nb, code, source, caret):
    lines = "\n".join(nb.fails(code).error["traceback"]).split("\n")
    at = [i for i, line in enumerate(lines) if line.endswith("| " + source)]
    assert at, lines
    assert lines[at[0] + 1].split("| ", 1)[1] == caret, lines
