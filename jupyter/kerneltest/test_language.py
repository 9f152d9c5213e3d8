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
        # Maps in fmt's order: fields one by one, false before true, NaN and nil first.
        ('fmt.Println(map[Code]Pt{{10}: p, {9}: p, {-1}: p}, map[[2]int]Pt{{1, 10}: p, {1, 9}: p, {0, 11}: p})', "map[code -1:Pt!a code 9:Pt!a code 10:Pt!a] map[[0 11]:Pt!a [1 9]:Pt!a [1 10]:Pt!a]\n"),
        ('fmt.Println(map[bool]Pt{true: p, false: p}, map[float64]Pt{10: p, 9: p, -1: p}, map[complex128]Pt{2i: p, 1i: p, 10: p})', "map[false:Pt!a true:Pt!a] map[-1:Pt!a 9:Pt!a 10:Pt!a] map[(0+1i):Pt!a (0+2i):Pt!a (10+0i):Pt!a]\n"),
        ('fmt.Println(map[string]Pt{"b": p, "a": p, "B": p}, map[uint8]Pt{200: p, 3: p}, map[interface{}]Pt{10: p, 9: p, nil: p}, map[Shape]int{Square{10}: 1, Square{9}: 2, nil: 3})',
         "map[B:Pt!a a:Pt!a b:Pt!a] map[3:Pt!a 200:Pt!a] map[<nil>:Pt!a 9:Pt!a 10:Pt!a] map[<nil>:3 {9}:2 {10}:1]\n"),
        ('fmt.Fprintln(os.Stdout, p)\nfmt.Fprintf(os.Stdout, "%T\\n", p)', "Pt!a\nmain.Pt\n"),
    ],
)
def test_fmt_sees_what_cells_declare(nb, code, text):
    assert nb.ok(code).text() == text


def test_big_maps_are_printed_soon(nb):
    nb.ok("big := map[string]Pt{}\nbigInt := map[int]Pt{}\nbigBox := map[Code]int{}\nfor i := 0; i < 30000; i++ { big[fmt.Sprint(i)] = p; bigInt[i] = p; bigBox[Code{i}] = i }")
    begin = time.time()
    assert nb.ok("len(fmt.Sprint(big)), len(fmt.Sprint(bigInt)), len(fmt.Sprint(bigBox)) > 300000").plain == "318894 318894 true"
    assert time.time() - begin < 5


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
    for code, name in (("gpu.Put([]Pt{p})", "of type []main.Pt is"), ("gpu.Put(p)", "main.Pt"), ("gpu.Put(map[string]Box{})", "map[string]main.Box")):
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


@pytest.mark.parametrize(
    "code, use, value",
    [
        ("type Fwd struct{ x int }\nfunc (m Fwd) One() int { return m.Two() }\nfunc (m Fwd) Two() int { return m.x }", "Fwd{3}.One()", "3"),
        ("func (m *Fwd) A(n int) int { if n == 0 { return m.x }; return m.B(n - 1) }\nfunc (m *Fwd) B(n int) int { if n == 0 { return -m.x }; return m.A(n - 1) }", "(&Fwd{3}).A(4), (&Fwd{3}).A(5)", "3 -3"),
        ("func NewG() *G { g := &G{}; g.Edge(1, 2); return g }\nvar theG = NewG()\ntype G struct { n int }\nfunc (g *G) Edge(a, b int) { g.n += a + b + deflt }\nconst deflt = 4", "theG.n", "7"),
        ("func helperA(m *Graph) int { return m.Size() }\ntype Graph struct { k int }\nfunc (m *Graph) Size() int { return m.k + helperB(m) }\nfunc helperB(m *Graph) int { if m.k > 0 { return helperC(&Graph{m.k - 1}) }; return total }\n"
         "func helperC(m *Graph) int { return helperB(m) + m.Size() }\nvar total = 1", "helperA(&Graph{2})", "7"),
        ("type Op func(int) int\nfunc (o Op) Twice(x int) int { return o.Once(o.Once(x)) }\nfunc (o Op) Once(x int) int { return o(x) }", "Op(func(x int) int { return x + 1 }).Twice(3)", "5"),
        ("type Fwd struct{ x, y int }\nfunc (m Fwd) One() int { return m.Two() + m.Three() }\nfunc (m Fwd) Two() int { return m.y }\nfunc (m Fwd) Three() int { return 100 }", "Fwd{3, 4}.One()", "104"),
        ("func even(n int) bool { if n == 0 { return yes }; return odd(n - 1) }\nfunc odd(n int) bool { if n == 0 { return !yes }; return even(n - 1) }\nvar yes = true\nvar even4 = even(4)", "even4, odd(4)", "true false"),
    ],
)
def test_declarations_in_any_order(nb, code, use, value):
    nb.ok(code)
    assert nb.ok(use).plain == value


def test_methods_of_pointers_to_what_is_no_struct(nb):
    nb.ok("type Cn int\nfunc (c *Cn) Inc() *Cn { *c++; return c }\nfunc (c Cn) Get() int { return int(c) }\ntype St string\nfunc (s *St) Add(x string) { *s += St(x) }\n"
          "type Fl float64\nfunc (f *Fl) Add(x float64) { *f += Fl(x) }\ntype U8 uint8\nfunc (u *U8) Add() { *u += 200 }\ntype Bo bool\nfunc (b *Bo) Flip() { *b = !*b }\n"
          "type Stack []int\nfunc (s *Stack) Push(v int) { *s = append(*s, v) }\nfunc (s Stack) Len() int { return len(s) }")
    for code, value in (
        ("var cn Cn\ncn.Inc()\ncn.Inc().Inc()\ncn, cn.Get()", "3 3"),
        ("func local() Cn { var d Cn = 4; d.Inc(); return d }\nlocal()", "5"),
        ("func inner() Cn { var d Cn = 4; func() { d.Inc() }(); return d }\ninner()", "5"),
        ("func param(d Cn) Cn { d.Inc(); return d }\nparam(6)", "7"),
        ("type Has struct { M Cn; s St }\nhas := Has{}\nhas.M.Inc()\nhas.s.Add(\"ab\")\nhas.s.Add(\"c\")\nhas.M, has.s", "1 abc"),
        ("type Emb struct { Cn }\nvar emb Emb\nemb.Cn.Inc()\nemb.Inc()\nemb.Cn", "2"),
        ("var st St\nst.Add(\"q\")\nst", "q"),
        ("var bo Bo\nbo.Flip()\nbo", "true"),
        ("var fl Fl\nfl.Add(2.5)\naddTo := fl.Add\naddTo(2)\nfl", "4.5"),
        ("us := []U8{1, 2}\nus[1].Add()\nus[1].Add()\nus", "[1 146]"),
        ("var stack Stack\nstack.Push(1)\nsp := &stack\nsp.Push(3)\nsp.Len(), stack", "2 [1 3]"),
        ("func lenOf(q *Stack) int { return q.Len() }\nlenOf(sp)", "2"),
        ("pq := new(Cn)\npq.Inc()\n*pq.Inc().Inc(), pq.Get()", "3 3"),
        ("incr := (*Cn).Inc\nincr(pq)\n*pq, (*Stack).Len(sp), (*Cn).Get(pq)", "4 2 4"),
    ):
        assert nb.ok(code).plain == value, code


def test_method_expressions(nb):
    nb.ok("type P1 struct { n int }\nfunc (p *P1) Inc() { p.n++ }\nfunc (p P1) Get() int { return p.n }\nfunc (p P1) Sum(xs ...int) int { for _, x := range xs { p.n += x }; return p.n }\ntype Mid struct { *P1 }\np1 := &P1{}")
    assert nb.ok("incP := (*P1).Inc\nincP(p1)\n(*P1).Get(p1), P1.Get(*p1), P1.Sum(*p1, 1, 2), (*P1).Sum(p1)").plain == "1 1 4 1"
    assert nb.ok("bump := Mid.Inc\nbump(Mid{p1})\np1.n, Mid.Get(Mid{p1}), (*Mid).Get(&Mid{p1})").plain == "2 2 2"
    assert nb.ok("Square.Area(Square{2}), Shape.Area(Square{3}), time.Duration.Seconds(time.Second), (*Disc).Area(&Disc{1})").plain == "4 9 1 3"


def test_methods_of_structs_without_a_name(nb):
    assert nb.ok("var gg = struct { sync.Mutex; v map[string]int }{v: map[string]int{}}\ngg.Lock()\ngg.v[\"a\"]++\ngg.Unlock()\nlen(gg.v)").plain == "1"
    assert nb.ok('var hasErr struct{ error }\nhasErr.error = fmt.Errorf("x")\nhasErr.Error()').plain == "x"
    assert nb.ok("type Part struct { n int }\nfunc (p *Part) Inc() { p.n++ }\nvar anon struct { Part; k int }\nanon.Inc()\nanon.n").plain == "1"


def test_methods_that_fail_leave_the_old_ones_and_imports(nb):
    nb.ok("type Old struct{ x int }\nfunc (m Old) Three() int { return 3 }")
    got = nb.fails('import "path"\nfunc (m Old) Three(k int) int { return m.Four(); goto L; L: return 2 }\nfunc (m Old) Four() int { return 1 }')
    assert "none of the declarations" in got.error["evalue"]
    assert nb.ok('Old{}.Three(), path.Base("a/b")').plain == "3 b"
    assert "Four" in nb.fails("Old{}.Four()").error["evalue"]


def test_method_values_copy_their_receiver(nb):
    nb.ok('import "fmt"; import "time"\ntype Rc struct{ v int }\nfunc (t Rc) Get() int { return t.v }\nfunc (t Rc) Say() { fmt.Println("say", t.v) }\nfunc (t *Rc) PGet() int { return t.v }\ntype RcIn struct { *Rc }\ntype RcIn2 struct { Rc }')
    assert nb.ok("rc := Rc{1}; rp := &rc; rg, rg2, rg3 := rc.Get, rp.Get, rc.PGet; rc.v = 7\nrg(), rg2(), rg3()").plain == "1 1 7"
    assert nb.ok("ri, ri2 := RcIn{&Rc{1}}, RcIn2{Rc{1}}; rh, rh2 := ri.Get, ri2.Get; ri.v, ri2.v = 8, 8\nrh(), rh2(), ri.Get(), ri2.Get()").plain == "1 1 8 8"
    assert nb.ok("var rfs []func() int\nfor _, q := range []Rc{{1}, {2}} { rfs = append(rfs, q.Get) }\nrfs[0](), rfs[1]()").plain == "1 2"
    assert nb.ok("func later() { q := Rc{1}; defer q.Say(); q.v = 5 }\nlater()").text() == "say 1\n"
    assert nb.ok("rtm := time.Unix(0, 0).UTC(); ryr := rtm.Year; rtm = rtm.AddDate(10, 0, 0)\nryr(), rtm.Year()").plain == "1970 1980"
    assert "nil pointer" in nb.fails("var rnil *Rc\nrnil.Get()").error["evalue"]


def test_blank_parameters_results_and_fields(nb):
    nb.ok('import "strings"\nfunc bl1(_ int) string { return "x" }\nfunc bl2(a, _ string) string { return a }\nfunc bl3() (n int, _ error) { n = 3; return }\nfunc bl4(_, b float64) (_ int, s string) { return int(b), "s" }\nfunc bl5(int) int { return 9 }')
    assert nb.ok('bcnt := 0; bh := func(_, _ string) { bcnt++ }; bh("a", "b")\nbn, _ := bl3()\nbu, bw := bl4(1, 2)\n'
                 "bl1(1), bl2(\"q\", \"r\"), bn, bu, bw, bl5(1), bcnt, func(_ int) int { return 3 }(1), strings.Map(func(_ rune) rune { return 'x' }, \"ab\")").plain == "x q 3 2 s 9 1 3 xx"
    assert nb.ok("type BlS struct { _ int; a int; _ string }\nBlS{a: 4}.a, BlS{a: 4}").plain == "4 {0 4 }"


def test_empty_structs_differ(nb):
    nb.ok('import "encoding/json"\ntype Em1 struct{}\ntype Em2 struct{}\nfunc (Em1) Name() string { return "em1" }\ntype EmIn struct { Em1; n int }\n'
          'func empty(v interface{}) string { switch v.(type) { case Em1: return "1"; case Em2: return "2"; case struct{}: return "none" }; return "?" }')
    assert nb.ok("empty(Em1{}), empty(Em2{}), empty(struct{}{}), empty(&Em1{})").plain == "1 2 none ?"
    assert nb.ok("emm := map[interface{}]int{Em1{}: 1, Em2{}: 2}\n_, em12 := interface{}(Em1{}).(Em2)\nlen(emm), emm[Em2{}], em12").plain == "2 2 false"
    assert nb.ok("var emy Em1 = struct{}{}\nvar emz struct{} = Em2{}\nemc := make(chan struct{}, 1); emc <- Em1{}\nems := []Em1{{}, struct{}{}}\nemy, emz, Em2(emy), EmIn{n: 2}, EmIn{}.Name(), len(ems)").plain == "{} {} {} {{} 2} em1 2"
    assert nb.ok("emj, _ := json.Marshal(Em1{})\nstring(emj)").plain == "{}"
    assert nb.ok("ems").plain == "[{} {}]"


def test_types_declared_by_compiled_types_lose_their_methods(nb):
    assert nb.ok("type Dur time.Duration\nDur(time.Second) / 1000, time.Duration(Dur(time.Second)).String()").plain == "1000000 1s"
    assert nb.ok("type Moment time.Time\nvar moment interface{} = Moment{}\n_, isText := moment.(fmt.Stringer)\nisText").plain == "false"


def test_imports_by_several_names(fresh):
    nb = fresh()
    assert nb.ok('import ("math"; mth "math")\nmath.Sqrt(mth.Sqrt(16))').plain == "2"
    assert nb.ok('import q1 "sort"\nimport q2 "sort"\nq1.IsSorted(q2.IntSlice{1})').plain == "true"
    assert nb.ok('import . "path"\nimport "os"\nBase("a/b"), os.Getpid() > 0').plain == "b true"
    assert nb.ok('import (st "strings"; . "strconv"; _ "image/png")\nItoa(4), st.ToUpper("a"), Base("c/d")').plain == "4 A d"


def test_constants_beyond_64_bits(nb):
    nb.ok('import "math"\nconst big, light = 1 << 100, 299792458\ntype Big struct { x float64 }\nfunc same(x float64) float64 { return x }\nvar onexp float64 = 100000000000000000000\nvar cube float64 = light * light * light\nxb := 2.0; yb := 1e20; var fb float64 = 1e19')
    assert nb.ok("float64(1 << 64), float64(big), math.Sqrt(1 << 100), math.Log2(1 << 90), onexp, cube").plain == (
        "1.8446744073709552e+19 1.2676506002282294e+30 1.125899906842624e+15 90 1e+20 2.694400241737399e+25")
    assert nb.ok("yb - 100000000000000000000, xb * (1 << 65), fb > 1<<65, []float64{1 << 64, 1 << 10}, Big{1 << 70}, same(-1 << 70)").plain == (
        "0 7.378697629483821e+19 false [1.8446744073709552e+19 1024] {1.1805916207174113e+21} -1.1805916207174113e+21")
    assert nb.ok("float32(1 << 70), float32(0x1000001000000000000), complex128(1 << 80), float64(1<<63), 3.0 * (1 << 62)").plain == (
        "1.1805916e+21 4.7223665e+21 (1.2089258196146292e+24+0i) 9.223372036854776e+18 1.3835058055282164e+19")


def test_range_sets_existing_variables(nb):
    nb.ok("func lastOf(xs []int) int { i := -1; for i = range xs {}; return i }\nri := 9; rv := 0; var rs string; var rr rune")
    assert nb.ok("lastOf([]int{1, 2, 3}), lastOf(nil)").plain == "2 -1"
    assert nb.ok('for ri = range "héllo" {}\nrj := ri\nfor ri, rv = range []int{4, 5, 6} { if rv == 5 { continue }; if ri == 2 { break } }\nrj, ri, rv').plain == "5 2 6"
    assert nb.ok('rk := 0; ra := [3]int{0, 1, 2}\nfor rk, ra[rk] = range []int{4, 5, 6} {}\nra, rk').plain == "[5 6 2] 2"
    assert nb.ok('for rs, rv = range map[string]int{"a": 7} {}\nfor _, rr = range "xyz" {}\nrc := make(chan int, 2); rc <- 1; rc <- 2; close(rc)\nfor rv = range rc {}\nrs, rv, string(rr)').plain == "a 2 z"


def test_interfaces_within_interfaces(nb):
    nb.ok('import "fmt"\ntype Iw1 interface{ A() int }\ntype Iw2 interface{ Iw1; B() int }\ntype Iws struct{ n int }\nfunc (z Iws) A() int { return z.n }\nfunc (z Iws) B() int { return 2*z.n }\n'
          'type IwText interface{ fmt.Stringer; error }\ntype iwt struct{}\nfunc (iwt) String() string { return "s" }\nfunc (iwt) Error() string { return "e" }')
    assert nb.ok("var iw2 Iw2 = Iws{4}\nvar iw1 Iw1 = iw2\nfunc useIw(z Iw1) int { return z.A() }\n_, iwOk := iw1.(Iw2)\niw2.A(), iw2.B(), iw1.A(), useIw(iw2), useIw(Iws{5}), iwOk, iw1.(Iws).n").plain == "4 8 4 4 5 true 4"
    assert nb.ok("var iwt1 IwText = iwt{}\niwt1.String(), iwt1.Error()").plain == "s e"
    assert nb.ok("var iwNone Iw2\nvar iwNone1 Iw1 = iwNone\niwNone1 == nil").plain == "true"
    nb.ok("type IwP struct{ n string }\ntype IwSound interface{ Sound() string }\ntype IwName interface{ Name() string }\ntype IwBoth interface{ IwSound; IwName }\n"
          'func (d *IwP) Sound() string { return "wau" }\nfunc (d *IwP) Name() string { d.n += "!"; return d.n }')
    assert nb.ok('var iwb IwBoth = &IwP{"rex"}\nvar iws IwSound = iwb\niwb.Name(), iws.Sound(), iws.(IwName).Name(), iws.(*IwP).n').plain == "rex! wau rex!! rex!!"
    assert "cannot name itself" in nb.fails("type IwSelf interface{ Next() IwSelf }").error["evalue"]


def test_nil_as_the_key_of_a_map(nb):
    assert nb.ok('mk := map[interface{}]string{1: "i"}\nmk0 := mk[nil]\nmk[nil] = "x"\nmkv, mkOk := mk[nil]\nmk0, mkv, mkOk, len(mk)').plain == '"" x true 2'
    assert nb.ok("delete(mk, nil)\nmk2 := map[interface{}]int{nil: 3}\nmk2[nil]++\nmk3 := map[int]interface{}{}\nmk3[1] = nil\nlen(mk), mk2[nil], len(mk3)").plain == "1 4 1"
