"""Cells are Go: what the interpreter did otherwise, and what compiled code did not see of cells."""
import time

import pytest

from client import TIMEOUT

NAMES = """import ("bufio"; "bytes"; "container/heap"; "context"; "encoding/json"; "errors"; "fmt"; "io"; "os"; "reflect"; "sort"; "strings"; "sync"; "time"; "gpunotes/gpukit")
"""
TYPES = """
type Pt struct { X int; y string }
func (p Pt) String() string { return "Pt!" + p.y }
type Deg float64
func (c Deg) String() string { return fmt.Sprintf("%.1f deg", float64(c)) }
type Code struct { N int }
func (e Code) Error() string { return fmt.Sprint("code ", e.N) }
type Lost struct { Name string }
func (e *Lost) Error() string { return "lost " + e.Name }
type Box struct { a int; B []Pt }
type Shape interface { Area() float64 }
type Square struct { Side float64 }
func (s Square) Area() float64 { return s.Side * s.Side }
type Disc struct { Side float64 }
func (d *Disc) Area() float64 { return 3 * d.Side * d.Side }
func fails() error { return Code{5} }
func loses() error { return &Lost{"key"} }
p := Pt{1, "a"}
"""


@pytest.fixture(scope="module", autouse=True)
def declared(nb):
    nb.ok(NAMES)
    nb.ok(TYPES)


@pytest.mark.parametrize(
    "code, text",
    [
        ("fmt.Println(p, &p, Deg(3))", "Pt!a Pt!a 3.0 deg\n"),
        ("fmt.Println(fails(), loses(), Code{2}, &Lost{\"x\"})", "code 5 lost key code 2 lost x\n"),
        ("fmt.Println([]Pt{p}, []Deg{1}, map[string]Deg{\"k\": 2}, [1]Pt{p}, []error{fails()})", "[Pt!a] [1.0 deg] map[k:2.0 deg] [Pt!a] [code 5]\n"),
        ("fmt.Println(Box{1, []Pt{p}}, struct{ c Deg; D Deg }{1, 2})", "{1 [Pt!a]} {1 2.0 deg}\n"),
        ("var s fmt.Stringer = p\nfmt.Println(s)", "Pt!a\n"),
        ("var s2 fmt.Stringer = Deg(1)\nfmt.Println(s2, s2.String())", "1.0 deg 1.0 deg\n"),
        ("var x interface{} = p\nfmt.Println(x)", "Pt!a\n"),
        ("args := []interface{}{p, &p, 1, nil}\nfmt.Println(args...)", "Pt!a Pt!a 1 <nil>\n"),
        ("func two() (Pt, error) { return p, fails() }\nfmt.Println(two())", "Pt!a code 5\n"),
        ('fmt.Printf("%v|%+v|%s|%q|%d|%6.2f|%-8v|\\n", p, p, p, p, p, Deg(2), p)', 'Pt!a|Pt!a|Pt!a|"Pt!a"|{1 %!d(string=a)}|  2.00|Pt!a    |\n'),
        ('fmt.Printf("%T %T %T %[1]T %v %%T\\n", p, &p, []Deg{})', "main.Pt *main.Pt []main.Deg main.Pt Pt!a %T\n"),
        ('fmt.Printf("%+v %#v\\n", Box{1, nil}, Box{1, []Pt{p}})', '{a:1 B:[]} main.Box{a:1, B:[]main.Pt{main.Pt{X:1, y:"a"}}}\n'),
        ('fmt.Println(fmt.Sprint(p), fmt.Sprintf("%T", p), fmt.Errorf("of %v", p))', "Pt!a main.Pt of Pt!a\n"),
        ("var sh Shape = Square{2}\nfmt.Println(sh, []Shape{Square{1}, &Disc{1}}[0])", "{2} {1}\n"),
        ("fmt.Println(reflect.TypeOf(p), reflect.TypeOf(Box{}))", "main.Pt main.Box\n"),
        ('fmt.Fprintln(os.Stdout, p)\nfmt.Fprintf(os.Stdout, "%T\\n", p)', "Pt!a\nmain.Pt\n"),
    ],
)
def test_fmt_sees_what_cells_declare(nb, code, text):
    assert nb.ok(code).text() == text


@pytest.mark.parametrize(
    "code, value",
    [
        ("p", "Pt!a"), ("Deg(2.5)", "2.5 deg"), ("[]Pt{p}", "[Pt!a]"), ("Box{1, []Pt{p}}", "{1 [Pt!a]}"), ("map[string]Deg{\"a\": 1}", "map[a:1.0 deg]"),
        ("shown := Shape(Square{2})\nshown", "{2}"), ("var none Shape\nnone", "<nil>"), ("[]Shape{Square{1}, Square{2}}", "[{1} {2}]"),
        ("var any0 interface{} = p\nany0", "Pt!a"), ("reflect.TypeOf(p)", "main.Pt"),
        ('""', '""'), ("var noError error\nnoError", "<nil>"), ("var noPtr *Pt\nnoPtr", "<nil>"), ("var noMap map[string]int\nnoMap", "map[]"), ('" "', " "),
        ("[]Box{{1, nil}, {2, nil}}", "a  B\n1  []\n2  []"),
    ],
)
def test_the_last_line(nb, code, value):
    assert nb.ok(code).plain == value


def test_a_call_without_error_shows_nothing(nb):
    assert nb.ok("func fine() error { return nil }\nfine()").plain is None


@pytest.mark.parametrize(
    "code, value",
    [
        ("var c Code\nerrors.As(fails(), &c), c.N", "true 5"),
        ('var l *Lost\nerrors.As(fmt.Errorf("w: %w", loses()), &l), l.Name', "true key"),
        ("var l2 *Lost\nerrors.As(fails(), &l2)", "false"),
        ("errors.Is(fmt.Errorf(\"w: %w\", fails()), Code{5}), errors.Is(fails(), Code{6})", "true false"),
        ('sentinel := loses()\nerrors.Is(fmt.Errorf("w: %w", sentinel), sentinel), errors.Is(fmt.Errorf("%w", io.EOF), io.EOF)', "true true"),
        ('errors.Unwrap(fmt.Errorf("w: %w", fails())) == Code{5}', "true"),
        ('fmt.Errorf("w: %w", fails()).Error()', "w: code 5"),
        ("type Chain struct { in error }\nfunc (c *Chain) Error() string { return \"chain\" }\nfunc (c *Chain) Unwrap() error { return c.in }\nvar end error = &Chain{fails()}\nerrors.Is(end, Code{5})", "true"),
        ('func risky() (err error) { defer func() { if r := recover(); r != nil { err = fmt.Errorf("caught: %w", r.(error)) } }(); panic(Code{3}) }\nrisk := risky()\nrisk.Error()', "caught: code 3"),
    ],
)
def test_errors(nb, code, value):
    assert nb.ok(code).plain == value


def test_encoders_see_what_they_would_of_go(nb):
    assert nb.ok("text, _ := json.Marshal(Box{1, []Pt{p}})\nstring(text)").plain == '{"B":[{"X":1}]}'
    nb.ok('type Temp struct { t float64 }\nfunc (t Temp) MarshalJSON() ([]byte, error) { return []byte(fmt.Sprintf("\\"%.0fK\\"", t.t)), nil }')
    assert nb.ok("text2, _ := json.Marshal(Temp{300})\nstring(text2)").plain == '"300K"'


def test_messages_name_types_as_cells_do(nb):
    nb.ok('gpu := gpukit.MustOpen("cpu")')
    for code, name in (("gpu.Put([]Pt{p})", "a []main.Pt is"), ("gpu.Put(p)", "main.Pt"), ("gpu.Put(map[string]Box{})", "map[string]main.Box")):
        message = nb.fails(code).error["evalue"]
        assert name in message and not any(0x12000 <= ord(c) <= 0x120FF for c in message), message


def test_interfaces_of_compiled_packages(nb):
    nb.ok("type Count struct { n int }\nfunc (w *Count) Write(b []byte) (int, error) { w.n += len(b); return len(b), nil }\nw := &Count{}")
    nb.ok("type Xs struct { n int }\nfunc (r *Xs) Read(b []byte) (int, error) { if r.n == 0 { return 0, io.EOF }; r.n--; b[0] = 'x'; return 1, nil }")
    assert nb.ok('fmt.Fprintf(w, "hello %v", p)\nw.n').plain == "10"
    assert nb.ok("copied, err := io.Copy(w, &Xs{5})\ncopied, w.n").plain == "5 15"
    assert nb.ok("all, err := io.ReadAll(bufio.NewReader(&Xs{3}))\nstring(all)").plain == "xxx"
    nb.ok("type By []Pt\nfunc (b By) Len() int { return len(b) }\nfunc (b By) Less(i, j int) bool { return b[i].X < b[j].X }\nfunc (b By) Swap(i, j int) { b[i], b[j] = b[j], b[i] }")
    assert nb.ok('by := By{{3, ""}, {1, ""}, {2, ""}}\nsort.Sort(by)\nby[0].X, by[1].X, by[2].X').plain == "1 2 3"
    assert nb.ok("sort.Sort(sort.Reverse(by))\nby[0].X").plain == "3"
    nb.ok("type Heap []int\nfunc (h Heap) Len() int { return len(h) }\nfunc (h Heap) Less(i, j int) bool { return h[i] < h[j] }\nfunc (h Heap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }\n"
          "func (h *Heap) Push(x interface{}) { *h = append(*h, x.(int)) }\nfunc (h *Heap) Pop() interface{} { o := *h; n := len(o); x := o[n-1]; *h = o[:n-1]; return x }")
    assert nb.ok("h := &Heap{5, 2, 8}\nheap.Init(h)\nheap.Push(h, 1)\nheap.Pop(h).(int), heap.Pop(h).(int)").plain == "1 2"


def test_assertions_and_type_switches(nb):
    nb.ok("type T1 struct { X int }\ntype T2 struct { X int }\n"
          'func kind(v interface{}) string { switch v.(type) { case nil: return "nil"; case T1: return "T1"; case T2: return "T2"; case Shape: return "shape"; case fmt.Stringer: return "text"; case error, *bytes.Buffer: return "error" }; return "?" }')
    assert nb.ok("kind(nil), kind(T1{}), kind(T2{}), kind(Square{}), kind(&Disc{}), kind(p), kind(fails()), kind(&Lost{}), kind(time.Second), kind(3)").plain == "nil T1 T2 shape shape text error error text ?"
    assert nb.ok("interface{}(3).(int)").plain == "3"
    assert nb.ok("var held interface{} = p\nheld.(fmt.Stringer).String()").plain == "Pt!a"
    assert nb.ok("_, isShape := held.(Shape)\nisShape").plain == "false"
    for code, part in (("held.(int)", "main.Pt"), ('var str interface{} = "s"\nstr.(int)', "string"), ("var empty interface{}\nempty.(int)", "nil")):
        assert part in nb.fails(code).error["evalue"]


def test_a_value_in_an_interface_stays(nb):
    assert nb.ok('q := Square{1}\nvar kept Shape = q\nvar text3 fmt.Stringer = p\nold := p\nq.Side = 9\np.y = "changed"\narea, str3 := kept.Area(), text3.String()\np = old\narea, str3').plain == "1 Pt!a"


def test_types_that_refer_to_each_other(nb):
    nb.ok("type A struct { b *B }\ntype B struct { a *A; n int }")
    assert nb.ok("aa := &A{&B{nil, 3}}\naa.b.n, aa.b.a == nil").plain == "3 true"
    assert nb.ok("aa.b.a = aa\naa.b.a.b.a.b.n").plain == "3"
    nb.ok("type Tree struct { L, R *Tree; V int }\n"
          "func (t *Tree) Insert(v int) *Tree { if t == nil { return &Tree{nil, nil, v} }; if v < t.V { t.L = t.L.Insert(v) } else { t.R = t.R.Insert(v) }; return t }\n"
          "func (t *Tree) Sum() int { if t == nil { return 0 }; return t.L.Sum() + t.V + t.R.Sum() }")
    assert nb.ok("var root *Tree\nfor _, v := range []int{3, 1, 2, 5} { root = root.Insert(v) }\nroot.L.R.V, root.Sum(), root.R == nil, root.R.R == nil").plain == "2 11 false true"
    nb.ok("type Node struct { kids []*Node; m map[string]*Node; name string; next *Node }\nn := &Node{name: \"a\"}")
    assert nb.ok('n.kids = append(n.kids, &Node{name: "b"})\nn.m = map[string]*Node{"x": n}\nn.kids[0].name, len(n.kids), n.next == nil, n.m["x"].name, len(n.kids[0].m)').plain == "b 1 true a 0"
    assert nb.ok("list := make([]Node, 2)\nlist[1].kids = append(list[1].kids, n)\nlen(list[0].kids), list[1].kids[0].name").plain == "0 a"


def test_append(nb):
    begin = time.time()
    assert nb.ok('big := make([]byte, 50000000)\nout := append([]byte("x"), big...)\nlen(out)').plain == "50000001"
    assert time.time() - begin < 5
    assert nb.ok('string(append([]byte("abc"), "def"...))').plain == "abcdef"
    assert nb.ok("append([]int{1}, []int{2, 3}...), append([]int(nil), []int(nil)...) == nil").plain == "[1 2 3] true"


def test_select_without_cases_waits_for_stop(nb):
    for code in ("select {}", "func forever() { select {} }\nforever()", "done := make(chan int)\ngo (func() { select {} ; done <- 1 })()\n<-done"):
        msg = nb.send(code)
        time.sleep(0.5)
        nb.control("interrupt_request")
        assert nb.collect(msg, TIMEOUT).error["ename"] == "Interrupted"


@pytest.mark.parametrize(
    "code, part",
    [
        ("a := []int{1, 2, 3}\ni := 5\na[i]", "index out of range [5] with length 3"),
        ("var arr [2]float64\nj := -1\narr[j] = 1", "index out of range [-1]"),
        ("a2 := []int{1, 2, 3}\ni2 := 5\na2[1:i2]", "slice bounds out of range [:5] with capacity 3"),
        ("str4 := \"abc\"\ni4 := 7\nstr4[i4]", "index out of range [7] with length 3"),
        ("a3 := []int{1, 2, 3}\ni3 := 2\na3[i3:1]", "slice bounds out of range [2:1]"),
        ("panic(p)", "Pt!a"), ("panic(Code{7})", "code 7"), ("panic(&Lost{\"x\"})", "lost x"),
        ('import "unsafe"\nunsafe.Sizeof(3)', "unsafe.Sizeof"),
    ],
)
def test_messages_say_what_was_wrong(nb, code, part):
    assert part in nb.fails(code).error["evalue"]


def test_goroutines_that_are_left_print_into_their_own_cell(nb):
    msg = nb.send('go (func() { for i := 0; i < 4; i++ { time.Sleep(50 * time.Millisecond); fmt.Println("left", i, p) } })()')
    client = nb.client
    texts, end = {}, time.time() + 3
    nb.send("time.Sleep(600 * time.Millisecond)\nfmt.Println(\"own\")")
    while time.time() < end:
        try:
            m = client.get_iopub_msg(timeout=0.1)
        except Exception:
            continue
        if m["header"]["msg_type"] == "stream":
            mine = m["parent_header"]["msg_id"] == msg
            texts[mine] = texts.get(mine, "") + m["content"]["text"]
    assert texts == {True: "".join(f"left {i} Pt!a\n" for i in range(4)), False: "own\n"}


def test_a_type_declared_again(nb):
    nb.ok("type Again struct { X, Y float64 }\nfunc (a Again) Size() float64 { return a.X }\nfirst := Again{1, 2}\nfunc size(a Again) float64 { return a.Size() }\nsize(first)")
    nb.ok("type Again struct { X, Y, Z float64 }\nfunc (a Again) Size() float64 { return a.Z }\nfunc (a *Again) Grow() { a.Z *= 2 }")
    assert nb.ok("second := Again{7, 8, 9}\nsecond.Grow()\nsecond.Size(), second, first").plain == "18 {7 8 18} {1 2}"
    nb.ok("func size(a Again) float64 { return a.Size() }")
    assert nb.ok("size(second)").plain == "18"
    nb.ok("type Link struct { next *Link; v int }\nfunc (l *Link) Get() int { return l.v }")
    nb.ok("type Link struct { next *Link; v, w int }\nfunc (l *Link) Get() int { return l.w }")
    assert nb.ok("(&Link{nil, 1, 2}).Get(), (&Link{&Link{nil, 3, 4}, 1, 2}).next.Get()").plain == "2 4"


def test_a_declaration_that_fails_changes_nothing(nb):
    nb.ok("type Keeps struct { next *Keeps; v int }\nfunc (k *Keeps) Get() int { return k.v }\nkept1 := &Keeps{nil, 4}")
    nb.fails("type Keeps struct { next *Keeps; v nosuch }")
    assert nb.ok("(&Keeps{kept1, 5}).next.Get(), kept1.Get()").plain == "4 4"


def test_embedded_types(nb):
    nb.ok('type Base struct { N int }\nfunc (b Base) String() string { return fmt.Sprint("base", b.N) }\ntype Derived struct { Base; M int }\nvar derived fmt.Stringer = Derived{Base{1}, 2}')
    assert nb.ok("fmt.Println(Derived{Base{1}, 2}, derived, derived.String(), &Base{3})").text() == "base1 base1 base1 base3\n"


def test_formatters_and_functions_with_methods(nb):
    nb.ok('type Verb struct { a int }\nfunc (f Verb) Format(s fmt.State, verb rune) { fmt.Fprintf(s, "<%c>", verb) }')
    assert nb.ok('fmt.Printf("%v %d %s\\n", Verb{1}, Verb{1}, []Verb{{1}})').text() == "<v> <d> [<s>]\n"
    assert nb.ok("type Fn func(int) int\nfunc (f Fn) Do(x int) int { return f(x) }\nFn(func(x int) int { return x + 1 }).Do(3)").plain == "4"


def test_kernels_take_structs(nb):
    nb.ok('type In struct { x, Y float64 }\nfunc norm(v In, s float64) float64 { return v.x*v.x + v.Y*v.Y + s }\ngpu2 := gpukit.MustOpen("cpu")')
    assert nb.ok("gpukit.Must(gpu2.Vectorize(norm, In{1, 2}, gpukit.Linspace(0, 1, 3))).At(2)").plain == "6"


def test_a_panic_in_a_method_that_fmt_calls(nb):
    got = nb.ok('type Bad struct { X int }\nfunc (b Bad) String() string { panic("no text") }\nfmt.Println(Bad{1}, "on")')
    assert got.text() == "%!v(PANIC=String method: no text) on\n"
