"""What the interpreter takes though it is no Go is refused before anything runs."""
import pytest

GARBAGE = [
    ('x := "a" + 65', "1:6", "mismatched types"),
    ("var s string = 97", "1:16", "cannot use 97"),
    ('m := map[string]int{"A": 1}\nm[65]', "2:3", "map index"),
    ('"abc" == 97', "1:10", "mismatched types"),
    ("[]string{1, 2}", "1:10", "cannot use 1"),
    ('import "strings"\nstrings.ToUpper(97)', "2:17", "argument to strings.ToUpper"),
    ("uint8(200) + 100", "1:1", "overflows"),
    ("func f(x int) int {\n\tif x > 0 { return 1 }\n}", "3:1", "missing return"),
    ("type I interface { M() }\ntype T struct{}\nvar _ I = T{}", "3:11", "missing method M"),
    ("bits.Len(3)", "1:1", 'import "math/bits"'),
    ("slices.Sort([]int{2, 1})", "1:1", "sort.Ints"),
    ('import "fmt"\nfmt.println(1)', "2:5", "did you mean fmt.Println?"),
    ('%errcheck on\n\nx := "é" + 1', "3:6", "mismatched types"),
    ("n := 4\nif n > 3\n{\n}", "2:9", "put the { at its end"),
]


@pytest.mark.parametrize("code, place, part", GARBAGE)
def test_silent_garbage_is_refused(nb, code, place, part):
    got = nb.fails(code)
    error = got.error
    assert error["evalue"].startswith(f"cell {got.reply['content']['execution_count']}:{place}: "), error
    assert part in error["evalue"]
    lines = "\n".join(error["traceback"]).split("\n")
    caret = next(i for i, line in enumerate(lines) if line.endswith("^"))
    row, col = place.split(":")
    source = code.split("\n")[int(row) - 1]
    assert lines[caret - 1].endswith("| " + source)
    assert len(lines[caret]) - len("       | ") == len(source.encode()[: int(col) - 1].decode()) + 1
    assert not got.text() and not got.data


def test_nothing_of_a_refused_cell_runs(nb):
    got = nb.fails('import "fmt"\nfmt.Println("ran")\nkept := 1\nfmt.Println(kept + "a")\nfmt.Prinln()')
    assert got.text() == ""
    text = "\n".join(got.error["traceback"])
    assert "mismatched types" in text and "did you mean fmt.Println?" in text and text.count("^") == 2
    assert "undefined: kept" in nb.fails("kept").error["evalue"]
    assert nb.ok("1 + 1").plain == "2"


def test_functions_whose_callee_takes_less_now(nb):
    nb.ok("func callee(a, b int) int { return a + b }\nfunc caller() int { return callee(1, 2) }")
    nb.ok("func callee(a int) int { return a }")
    assert "declared again" in nb.fails("caller()").error["evalue"]
    assert nb.ok("func caller() int { return callee(1) }\ncaller()").plain == "1"


def test_what_is_right_in_a_notebook_is_taken(nb):
    for code in [
        'n := 3\nn := "text"\nn + "!"', 'import "fmt"\nimport "os"', "a, b := 1, 2.5\nb, a", "func unused() { v := 1; v := 2 }",
        "type T struct{ A int }\nvar t T\nt.A", "type T struct{ A int }\nfunc (t T) Twice() int { return 2 * t.A }\nt = T{4}\nt.Twice()",
        "type T struct{ A int }\nt.Twice()", "func (t *T) Set(v int) { t.A = v }\nt.Set(5)\nt.A", 'type T struct{ B string }\nt := T{"b"}\nt.B + "c"',
        "%errcheck off\nfmt.Sscan(\"x\", &a)", "%errcheck on\na",
    ]:
        nb.ok(code)
