"""What the kernel does for a user, through the Jupyter protocol."""
import base64
import os
import signal
import struct
import subprocess
import sys
import time

import nbclient
import nbconvert
import nbformat
import pytest
from pygments.lexers import get_lexer_by_name, get_lexer_for_mimetype

from conftest import KERNEL


def pid(nb):
    return int(nb.ok('import ("os"; "fmt"; "time"; "log"; "errors")\nos.Getpid()').plain)


def test_values_and_text(nb):
    got = nb.ok('import "fmt"\nfmt.Println("out", 1)\nx := 20\nx + 22')
    assert got.text() == "out 1\n"
    assert got.plain == "42"
    assert [m["header"]["msg_type"] for m in got.messages] == ["status", "execute_input", "stream", "execute_result", "status"]
    assert got.reply["content"]["execution_count"] == got.of("execute_input")[0]["execution_count"]


def test_prints_show_no_count(nb):
    got = nb.ok('import "fmt"\nfmt.Println("twelve char")')
    assert got.data is None and got.text() == "twelve char\n"


def test_value_and_error(nb):
    nb.ok('import "strconv"')
    assert nb.ok('strconv.Atoi("12")').plain == "12"
    failed = nb.fails('x1 := 5\nstrconv.Atoi("a12")\nx1 = 6')
    assert failed.error["ename"] == "NumError"
    assert 'strconv.Atoi("a12")' in "\n".join(failed.error["traceback"])
    assert "line 2" in "\n".join(failed.error["traceback"])
    assert nb.ok("x1").plain == "5"


@pytest.mark.parametrize(
    "code, line",
    [
        ('import "errors"\na, err := 1, errors.New("bad luck")\nfmt.Println(a)', 2),
        ('import "errors"\n\n\nvar err2 error\nerr = errors.New("bad luck")', 5),
        ('import "errors"\nerrors.New("bad luck")', 2),
        ('func f() {\n\tpanic("bad luck")\n}\nf()', 2),
    ],
)
def test_error_rule(nb, code, line):
    failed = nb.fails(code)
    count = failed.reply["content"]["execution_count"]
    trace = failed.error["traceback"]
    assert "bad luck" in failed.error["evalue"]
    assert f"cell {count}, line {line}" in trace[1]
    assert trace[2].endswith(code.split("\n")[line - 1])
    content = failed.reply["content"]
    assert (content["ename"], content["evalue"], content["traceback"]) == (
        failed.error["ename"], failed.error["evalue"], failed.error["traceback"])


def test_compile_and_syntax_errors_have_lines(nb):
    assert ":2:" in nb.fails("1\nundefined1 + 1").error["evalue"]
    assert ":3:" in nb.fails("a := 1\n\nb := )").error["evalue"]
    assert "not compiled into" in nb.fails('import "no/such/package"').error["evalue"]


def test_expect_error(nb):
    got = nb.ok('%expect-error\nimport "errors"\nerrors.New("as foreseen")\nfmt.Println("not reached")')
    assert "as foreseen" in got.text("stderr") and "line 3" in got.text("stderr")
    assert got.text() == ""
    assert nb.ok("%expect-error\nnope +").text("stderr")
    failed = nb.fails("%expect-error\n1 + 1")
    assert failed.error["ename"] == "NoError" and failed.data is None


def test_functions_of_a_cell_and_redefinition(nb):
    assert nb.ok("func twice(x int) int { return 2 * one(x) }\nfunc one(x int) int { return x }\ntwice(4)").plain == "8"
    nb.ok("func one(x int) int { return 10 * x }")
    assert nb.ok("twice(4)").plain == "80"


def interrupt_by_message(nb, _):
    reply = nb.control("interrupt_request")
    assert reply["content"] == {"status": "ok"}
    assert reply["header"]["msg_type"] == "interrupt_reply"


def interrupt_by_signal(nb, _):
    os.kill(nb.manager.provisioner.process.pid, signal.SIGINT)


@pytest.mark.parametrize("how", [interrupt_by_message, interrupt_by_signal])
@pytest.mark.parametrize("code", ["for {}", "for { counter++ }", "func hang() { for {} }\nhang()", 'import "time"\ntime.Sleep(time.Hour)', "$sleep 100"])
def test_interrupt_keeps_variables(nb, how, code):
    kernel_pid = pid(nb)
    nb.ok("kept := 7; counter := 0")
    for _ in range(2):
        msg = nb.send(code)
        time.sleep(0.2)
        begin = time.time()
        how(nb, kernel_pid)
        got = nb.collect(msg)
        assert time.time() - begin < 2
        assert got.status == "error" and got.error["evalue"] == "interrupted" and got.error["ename"] == "Interrupted"
        assert nb.ok("kept").plain == "7"
    assert pid(nb) == kernel_pid


@pytest.mark.parametrize("how", [interrupt_by_message, interrupt_by_signal])
def test_interrupt_of_an_idle_kernel(nb, how):
    kernel_pid = pid(nb)
    how(nb, kernel_pid)
    time.sleep(0.1)
    assert nb.ok("1 + 1").plain == "2"


def test_panics_of_methods_are_errors(nb):
    kernel_pid = pid(nb)
    nb.ok(
        "type S struct { X int }\nfunc (s S) String() string { panic(\"in String\") }\n"
        "type H struct { X int }\nfunc (h H) HTML() string { panic(\"in HTML\") }\n"
        "type P struct { X int }\nfunc (p *P) HTML() string { return \"p\" }\n"
        "type J struct { X int }\nfunc (j J) JSON() map[string]interface{} { return map[string]interface{}{\"a\": j.X} }\n"
        "type JS struct { X int }\nfunc (j JS) JavaScript() string { return \"1\" }"
    )
    failed = nb.fails("1\nS{\n1}\n// the end")
    assert "in String" in failed.error["evalue"] and "line 2" in "\n".join(failed.error["traceback"])
    assert "in HTML" in nb.fails("H{1}").error["evalue"]
    nb.run("&P{1}")  # gomacro may or may not manage; the kernel must live
    assert nb.ok("J{3}").data["application/json"] == {"a": 3}
    assert nb.ok("JS{3}").data["application/javascript"] == "1"
    assert pid(nb) == kernel_pid


def test_methods_of_cell_types_are_used(nb):
    nb.ok("type Deg float64\nfunc (d Deg) String() string { return \"degrees\" }\n"
          "type Page struct { T string }\nfunc (p Page) HTML() string { return \"<b>\" + p.T + \"</b>\" }")
    assert nb.ok("Deg(3)").plain == "degrees"
    got = nb.ok('Page{"x"}').data
    assert got["text/html"] == "<b>x</b>" and got["text/plain"]


def test_matrices_and_records_are_tables(nb):
    nb.ok('import ("gonum.org/v1/gonum/mat"; "gpunotes/gpukit")')
    small = nb.ok("mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6.5})").plain.split("\n")
    assert len(small) == 2 and small[1].split() == ["⎣4", "5", "6.5⎦"]
    assert "&{" not in nb.ok("mat.NewVecDense(3, nil)").plain
    assert "2x3" not in nb.ok("mat.NewDense(2, 3, nil).T()").plain
    big = nb.ok("mat.NewDense(100, 200, nil)").plain
    assert big.count("\n") < 15 and "100" in big and "200" in big
    assert "0x0" in nb.ok("&mat.Dense{}").plain
    devices = nb.ok("gpukit.Devices()").plain
    lines = nb.ok("len(gpukit.Devices())").plain
    assert devices.count("\n") == int(lines) - 1 and not devices.startswith("[")


def test_plot_is_drawn(nb):
    got = nb.ok('import "gonum.org/v1/plot"\np := plot.New()\np.Title.Text = "hello"\np').data
    png = base64.b64decode(got["image/png"])
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    assert width > height > 100
    assert got["text/plain"]


def test_image_and_display(nb):
    got = nb.ok('import "image"\nimage.NewGray(image.Rect(0, 0, 3, 2))').data
    assert base64.b64decode(got["image/png"])[:4] == b"\x89PNG" and "3x2" in got["text/plain"]
    got = nb.ok('import "display"\nDisplay(display.SVG("<svg/>"))\nDisplay(display.HTML("<i>h</i>"))\n3')
    shown = got.of("display_data")
    assert [sorted(s["data"]) for s in shown] == [["image/svg+xml", "text/plain"], ["text/html", "text/plain"]]
    assert got.plain == "3"
    # An interface variable is shown as what it holds.
    got = nb.ok('var any1 interface{} = image.NewGray(image.Rect(0, 0, 3, 2))\nany1').data
    assert "image/png" in got
    assert "(image/png, 4 bytes)" == nb.ok("Display(display.PNG([]byte{1,2,3,4}))").of("display_data")[0]["data"]["text/plain"]


def test_long_values_are_cut(nb):
    assert len(nb.ok("make([]float64, 100000)").plain) < 50000


def test_text_arrives_live_and_before_idle(nb):
    msg = nb.send('import ("fmt"; "time")\nfmt.Println("first")\ntime.Sleep(700 * time.Millisecond)\nfmt.Println("second")')
    begin, seen = time.time(), None
    while seen is None and time.time() - begin < 10:
        m = nb.client.get_iopub_msg(timeout=10)
        if m["header"]["msg_type"] == "stream" and m["parent_header"].get("msg_id") == msg:
            seen = time.time() - begin
            assert m["content"]["text"] == "first\n"
    assert seen < 0.6
    nb.collect(msg)
    for n in (1, 100, 20000):
        got = nb.ok(f'for i := 0; i < {n}; i++ {{ fmt.Println("line", i, "é☃") }}')
        assert got.text() == "".join(f"line {i} é☃\n" for i in range(n))
    got = nb.ok('import ("log"; "os")\nfmt.Fprintln(os.Stderr, "to stderr")\nlog.Println("logged")\nprintln("built in")')
    assert got.text("stderr").startswith("to stderr\n") and "logged" in got.text("stderr") and "built in" in got.text("stderr")


def test_text_is_gathered(nb):
    """Jupyter drops the text of a kernel that sends too many messages."""
    for how in ("for i := 0; i < 20000; i++ { fmt.Println(i) }", "for i := 0; i < 20000; i++ { fmt.Print(i); fmt.Println() }"):
        begin = time.time()
        got = nb.ok('import "fmt"\n' + how)
        assert got.text() == "".join(f"{i}\n" for i in range(20000))
        assert len(got.of("stream")) <= 5 + 20 * (time.time() - begin)


def test_text_keeps_its_place(nb):
    """Gathered text stands above what came after it: errors, displays, values."""
    nb.ok('import ("fmt"; "os"; "display"; "image")')
    kinds = lambda got: [m["header"]["msg_type"] for m in got.messages if m["header"]["msg_type"] not in ("status", "execute_input")]
    assert kinds(nb.fails('fmt.Println("a")\npanic("b")')) == ["stream", "error"]
    assert kinds(nb.fails('fmt.Fprintln(os.Stderr, "a")\nnil')) == ["stream", "error"]
    got = nb.ok('fmt.Println("a")\nDisplay(display.HTML("<i>h</i>"))\nfmt.Println("b")\n3')
    assert kinds(got) == ["stream", "display_data", "stream", "execute_result"]
    assert [c["text"] for c in got.of("stream")] == ["a\n", "b\n"]


def test_output_after_the_cell(nb):
    first = nb.send('w := os.Stdout\ngo (func() { time.Sleep(300 * time.Millisecond); fmt.Println("late") })()')
    nb.collect(first)
    assert [m["content"]["text"] for m in nb.drain(first, 1) if m["header"]["msg_type"] == "stream"] == ["late\n"]
    assert nb.ok('fmt.Fprintln(w, "same file")').text() == "same file\n"


def test_cells_behind_a_failed_one(nb):
    ids = [nb.send('time.Sleep(300 * time.Millisecond)\npanic("first")')] + [nb.send(f"after{i} := {i}") for i in range(3)]
    replies = {}
    end = time.time() + 10
    while len(replies) < 4 and time.time() < end:
        m = nb.client.get_shell_msg(timeout=10)
        replies[m["parent_header"]["msg_id"]] = m["content"]["status"]
    assert [replies[i] for i in ids] == ["error", "aborted", "aborted", "aborted"]
    nb.fails("after0")
    ids = [nb.send('time.Sleep(200 * time.Millisecond)\npanic("first")', stop_on_error=False), nb.send("after9 := 9")]
    replies = {}
    while len(replies) < 2:
        m = nb.client.get_shell_msg(timeout=10)
        replies[m["parent_header"]["msg_id"]] = m["content"]["status"]
    assert [replies[i] for i in ids] == ["error", "ok"]


def test_process_survives(nb):
    kernel_pid = pid(nb)
    assert "os.Exit(3)" in nb.fails("os.Exit(3)").error["evalue"]
    assert "done for" in nb.fails('log.Fatal("done for")').error["evalue"]
    assert "nil" in nb.fails("var np *int\n*np = 3").error["evalue"]
    nb.fails("[]int{1}[kept]")
    assert nb.fails("func endless(n int) int { return endless(n+1) + 1 }\nendless(0)").error["ename"] == "StackOverflow"
    for wait in ("time.Sleep(time.Hour)", "for {}"):
        failed = nb.fails(f'1\ngo (func() {{ panic("alone") }})()\n{wait}')
        assert failed.error["evalue"] == "panic in a goroutine: alone" and "line 2" in "\n".join(failed.error["traceback"])
    nb.ok('go (func() { time.Sleep(200 * time.Millisecond); panic("late") })()')
    got = nb.ok("time.Sleep(500 * time.Millisecond)")
    assert "panic in a goroutine: late" in got.text("stderr")
    for code in ("make([]float64, 1<<40)", "var huge int = 1 << 45\nmake([][]int, 3, huge)"):
        failed = nb.fails(code)
        assert failed.error["ename"] == "OutOfMemory" and "this machine has" in failed.error["evalue"]
    nb.client.session.send(nb.client.shell_channel.socket, "execute_request", content={"nonsense": 1})
    assert pid(nb) == kernel_pid


def test_counting(nb):
    before = nb.ok("1").reply["content"]["execution_count"]
    silent = nb.ok("2", silent=True)
    assert silent.reply["content"]["execution_count"] == before
    assert not silent.of("execute_input") and silent.data is None
    assert nb.ok("3").reply["content"]["execution_count"] == before + 1


def test_user_expressions(nb):
    nb.ok("five := 5")
    got = nb.ok("1", user_expressions={"a": "five + 1", "b": "nope"}).reply["content"]["user_expressions"]
    assert got["a"] == {"status": "ok", "data": {"text/plain": "6"}, "metadata": {}}
    assert got["b"]["status"] == "error" and got["b"]["traceback"]


def test_special_lines(nb, tmp_path):
    assert nb.ok(f"%cd {tmp_path}\nimport \"os\"\nd, err := os.Getwd()\nd").plain == str(tmp_path)
    assert "expect-error" in nb.ok("%help").text()
    assert nb.ok("$echo hello").text() == "hello\n"
    for code, part in {
        "%expect-error OutOfMemory\nnope": "takes no argument",
        "%cd /\n%expect-error\nnope": "first line",
        "1\n%expect-error\nnope": "first line",
        "!ls": "$ls",
        "!ls -l /": "$ls",
    }.items():
        assert part in nb.fails(code).error["evalue"], code
    failed = nb.fails("\n%nonsense")
    assert "%nonsense" in failed.error["evalue"] and "line 2" in "\n".join(failed.error["traceback"])


def test_control_channel(nb):
    reply = nb.control("kernel_info_request")
    assert reply["header"]["msg_type"] == "kernel_info_reply" and reply["content"]["status"] == "ok"
    info = reply["content"]["language_info"]
    assert info["name"] == "go" and info["mimetype"] == "text/x-go" and info["file_extension"] == ".go"
    assert info["pygments_lexer"] == "go" and info["codemirror_mode"] == "go"
    assert tuple(map(int, reply["content"]["protocol_version"].split("."))) >= (5, 4)
    assert reply["content"]["banner"] and reply["content"]["implementation"] and info["version"].startswith("go1.")
    assert reply["header"]["version"] == reply["content"]["protocol_version"]
    # Also while a cell runs.
    msg = nb.send("for {}")
    time.sleep(0.1)
    assert nb.control("kernel_info_request")["content"]["status"] == "ok"
    assert nb.control("debug_request")["content"]["status"] == "error"
    nb.control("interrupt_request")
    assert nb.collect(msg).status == "error"


def test_unknown_requests_are_answered(nb):
    msg = nb.client.session.msg("no_such_request", {})
    nb.client.shell_channel.send(msg)
    while True:
        reply = nb.client.get_shell_msg(timeout=10)
        if reply["parent_header"].get("msg_id") == msg["header"]["msg_id"]:
            break
    assert reply["header"]["msg_type"] == "no_such_reply" and reply["content"]["status"] == "error"


def test_start_is_quick(fresh):
    nb = fresh()
    # jupyter_client itself needs about half a second.
    assert nb.start_seconds < 3
    begin = time.time()
    nb.ok("1 + 1")
    assert time.time() - begin < 1


def test_redeclared_variables(nb):
    nb.ok('var rv = 3\nfunc useRV() int { return rv }\nimport "math"')
    assert nb.ok("rv := float64(rv) + 0.5\nrv").plain == "3.5"
    assert nb.ok("useRV()").plain == "3"
    assert nb.ok('rv := "text"\nuseRV()').plain == "3"
    assert nb.ok("math.FMA(2, 3, 4)").plain == "10"
    assert not nb.ok("var rv int = 5\nvar rv int = 6").text("stderr")


def test_interrupt_ends_goroutines(nb):
    nb.ok('import ("fmt"; "time")')
    msg = nb.send('go (func() { for { fmt.Println("tick"); time.Sleep(10 * time.Millisecond) } })()\nfor {}')
    time.sleep(0.3)
    nb.control("interrupt_request")
    got = nb.collect(msg)
    assert got.error["ename"] == "Interrupted" and "tick" in got.text()
    nb.ok("time.Sleep(200 * time.Millisecond)")
    assert nb.ok("time.Sleep(300 * time.Millisecond)").text() == ""


def test_gpukit(nb):
    """The asker's program, one plot, an error of compiled code, and Stop inside it."""
    nb.ok('import ("math"; "gpunotes/gpukit"; "gpunotes/plots")')
    got = nb.ok(
        "func sq(x float64) float64 { return x * x }\n"
        "func hyp(x, y float64) float64 { return math.Sqrt(sq(x) + sq(y)) }\n"
        'gpu := gpukit.MustOpen("parallel")\n'
        "x, y := gpukit.MeshGrid(gpukit.Linspace(0, 3, 4), gpukit.Linspace(0, 4, 5))\n"
        "z := gpukit.Must(gpu.Vectorize(hyp, x, y))\n"
        "z.At(4, 3)"
    )
    assert got.plain == "5"
    data = nb.ok("plots.Heatmap(x, y, z)").data
    assert data["text/plain"] and ("image/png" in data or "image/svg+xml" in data)
    nb.fails("plots.Heatmap(x, y, gpukit.Linspace(0, 1, 3))")
    # A redefined callee counts from then on.
    nb.ok("func sq(x float64) float64 { return 4 * x * x }")
    assert nb.ok("gpukit.Must(gpu.Vectorize(hyp, x, y)).At(4, 3)").plain == "10"
    count = nb.ok("1").reply["content"]["execution_count"] + 1
    failed = nb.fails("func rec(x float64) float64 {\n\treturn rec(x)\n}\n_, err := gpu.Vectorize(rec, x)")
    assert f"cell {count}:2:9" in failed.error["evalue"] and "line 4" in "\n".join(failed.error["traceback"])
    nb.ok("func slow(x float64) float64 { for i := 0; i < 1000000000; i++ { x += math.Sin(x) }; return x }")
    msg = nb.send("for { gpu.Vectorize(slow, x) }")
    time.sleep(0.3)
    begin = time.time()
    nb.control("interrupt_request")
    assert nb.collect(msg).error["evalue"] == "interrupted" and time.time() - begin < 2
    assert nb.ok("gpukit.Must(gpu.Vectorize(hyp, x, y)).At(4, 3)").plain == "10"


@pytest.mark.parametrize("setting", ["GOROOT", "no go on PATH", "go.work"])
def test_surroundings(fresh, tmp_path, setting):
    env = dict(os.environ)
    if setting == "GOROOT":
        try:
            env["GOROOT"] = subprocess.check_output(["go", "env", "GOROOT"], text=True).strip()
        except OSError:
            pytest.skip("no go command here")
    elif setting == "no go on PATH":
        env["PATH"] = os.pathsep.join(d for d in env["PATH"].split(os.pathsep) if not os.path.exists(os.path.join(d, "go")))
    else:
        (tmp_path / "go.work").write_text("go 1.20\nuse ./nowhere\n")
    nb = fresh(env=env, cwd=str(tmp_path))
    assert nb.ok('import ("fmt"; "math")\nfunc f(x float64) float64 { return math.Sqrt(x) }\nfmt.Sprint(f(16))').plain == "4"
    assert nb.fails("f(1, 2)").status == "error"


def test_shutdown(fresh):
    nb = fresh()
    reply = nb.control("shutdown_request", {"restart": False})
    assert reply["content"] == {"status": "ok", "restart": False}
    end = time.time() + 5
    while nb.manager.is_alive() and time.time() < end:
        time.sleep(0.05)
    assert not nb.manager.is_alive()


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_ten_thousand_cells_leave_little(fresh):
    nb = fresh()
    nb.ok('import ("fmt"; "math"; "gpunotes/gpukit")\nx1 := 0\ngpu := gpukit.MustOpen("cpu")\nfunc root(x float64) float64 { return math.Sqrt(x) }')
    kinds = [
        "x{m} := {i}", "func f{m}(a int) int {{ return a + {i} }}", "for i := 0; i < 10; i++ {{ x1 += i }}\nx1", 'fmt.Println("cell", {i})',
        "type P{m} struct {{ X int }}\n[]P{m}{{{{{i}}}}}", "nope{i}", "[]int{{1}}[{i}+5]", "gpu.Vectorize(root, float64({i}))",
    ]

    def run(n):
        for i in range(n):
            nb.run(kinds[i % 8].format(i=i, m=i % 7))

    run(1000)
    before = nb.memory()
    run(10000)
    assert nb.memory() - before < 50


def test_other_programs_highlight_go(tmp_path):
    """What nbconvert and editors read of a notebook: its language, and how to colour it."""
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell('func half(x float64) float64 { return x / 2 } // the half\nhalf(3)')]
    nbclient.NotebookClient(book, kernel_name=KERNEL, timeout=60).execute()
    info = book.metadata["language_info"]
    assert info["name"] == "go" and info["file_extension"] == ".go" and info["mimetype"] == "text/x-go"
    assert info["pygments_lexer"] == "go" and info["codemirror_mode"] == "go" and info["version"].startswith("go1.")
    assert get_lexer_by_name(info["pygments_lexer"]).name == "Go" == get_lexer_for_mimetype("text/x-gosrc").name
    page, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    for token in ('<span class="kd">func</span>', '<span class="k">return</span>', '<span class="kt">float64</span>', '<span class="c1">// the half</span>'):
        assert token in page, token
    script, resources = nbconvert.ScriptExporter().from_notebook_node(book)
    assert resources["output_extension"] == ".go" and "func half" in script


def test_a_bar_leaves_one_line_in_a_converted_notebook():
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell('import "time"\nfor i := 0; i < 30; i++ { time.Sleep(80 * time.Millisecond) }')]
    nbclient.NotebookClient(book, kernel_name=KERNEL, timeout=60).execute()
    (output,) = book.cells[0].outputs
    assert output["data"]["text/plain"].startswith("line 2: 30 in ")
    page, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    assert "<progress" not in page and page.count("line 2: 30 in ") == 1


def test_nbclient_runs_a_notebook():
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(c) for c in ["x := 1", 'x + 1', "%expect-error\nnope"]]
    nbclient.NotebookClient(book, kernel_name=KERNEL, timeout=60).execute()
    assert book.cells[1].outputs[0]["data"]["text/plain"] == "2"
    book.cells = [nbformat.v4.new_code_cell('panic("stop here")'), nbformat.v4.new_code_cell("1")]
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="stop here"):
        nbclient.NotebookClient(book, kernel_name=KERNEL, timeout=60).execute()
    # A time limit interrupts the kernel; it must not die of it.
    book.cells = [nbformat.v4.new_code_cell("for {}"), nbformat.v4.new_code_cell("40 + 2")]
    client = nbclient.NotebookClient(book, kernel_name=KERNEL, timeout=1, interrupt_on_timeout=True, allow_errors=True)
    client.execute()
    assert book.cells[1].outputs[0]["data"]["text/plain"] == "42"
