"""What moves while a cell runs: progress, late text, questions to the user; and the special lines."""
import re
import shutil
import subprocess
import time

import pytest


@pytest.fixture(autouse=True)
def names(nb):
    nb.ok('import ("fmt"; "time"; "os"; "errors"; "bufio"; "log"; "display"; "gpunotes/gpukit"; "math")')


def shown(got):
    """The bars: their messages in order, by display id."""
    bars = {}
    for m in got.messages:
        kind, c = m["header"]["msg_type"], m["content"]
        if kind in ("display_data", "update_display_data"):
            bars.setdefault(c["transient"]["display_id"], []).append((kind, c["data"]["text/html"], c["data"]["text/plain"]))
    return list(bars.values())


def test_a_long_loop_has_a_bar(nb):
    (bar,) = shown(nb.ok("n := 30\nfor i := 10; i < n+10; i++ {\n\ttime.Sleep(80 * time.Millisecond)\n}"))
    assert [kind for kind, _, _ in bar] == ["display_data"] + ["update_display_data"] * (len(bar) - 1) and 3 <= len(bar) <= 20
    assert all(re.search(r'<progress value="0\.\d+"></progress> line 2: \d+%, \d+ of 30, ', page) for _, page, _ in bar[:-1])
    # It collapses to one line, which is all that a saved notebook keeps.
    assert re.fullmatch(r"<small>line 2: 30 in [\d.]+ s</small>", bar[-1][1]) and "progress" not in bar[-1][1]


@pytest.mark.parametrize(
    "code, running, end",
    [
        ("xs := make([]int, 25)\nfor range xs { time.Sleep(80 * time.Millisecond) }", "of 25", "line 2: 25 in"),
        ("for i, x := range xs { _, _ = i, x; time.Sleep(80 * time.Millisecond) }", "of 25", "line 1: 25 in"),
        ("for i := len(xs) - 1; i >= 0; i-- { time.Sleep(80 * time.Millisecond) }", "of 25", "line 1: 25 in"),
        ("for i := 0; i <= 48; i += 2 { time.Sleep(80 * time.Millisecond) }", "of 49", "line 1: 49 in"),
        ("outer:\nfor u := uint8(0); u < 25; u++ { time.Sleep(80 * time.Millisecond); continue outer }", "of 25", "line 1: 25 in"),
        ("for n := 0; ; n++ { time.Sleep(80 * time.Millisecond); if n == 25 { break } }", "line 1: ", "line 1: 25 in"),
        ("for i := 0; i < 100; i++ { time.Sleep(80 * time.Millisecond); if i == 25 { break } }", "of 100", "stopped at 25 of 100"),
        ('for i := 0; i < 100; i++ { time.Sleep(80 * time.Millisecond); if i == 25 { panic("x") } }', "of 100", "stopped at 25 of 100"),
    ],
)
def test_bars_of_all_loops(nb, code, running, end):
    (bar,) = shown(nb.run(code))
    assert all(running in text for _, _, text in bar[:-1]) and end in bar[-1][2], bar


def test_short_loops_and_bars_of_ones_own(nb):
    assert shown(nb.ok("for i := 0; i < 1000; i++ {}")) == []
    got = nb.ok('b := display.Progress("fit", 40)\nfor i := 0; i < 40; i++ { b.Step(); time.Sleep(50 * time.Millisecond) }\nb.Done()')
    (bar,) = shown(got)
    assert "fit: 40 in" in bar[-1][2] and all("of 40" in text for _, _, text in bar[:-1])
    (bar,) = shown(nb.fails('b = display.Progress("half", 40)\nfor i := 0; i < 20; i++ { b.Step(); time.Sleep(10 * time.Millisecond) }\npanic("x")'))
    assert "half: stopped at 20 of 40" in bar[-1][2]


def test_drawing_shows(nb):
    nb.ok('type slowly struct{}\nfunc (slowly) String() string { time.Sleep(1900 * time.Millisecond); return "drawn" }')
    got = nb.ok("1\nslowly{}")
    (bar,) = shown(got)
    assert got.plain == "drawn" and "line 2, drawing: 1" in bar[0][2] and "<progress" in bar[0][1], bar
    assert re.fullmatch(r"<small>line 2, drawing: [\d.]+ s</small>", bar[-1][1]), bar


def test_gpukit_at_work_shows(nb):
    nb.ok('gpu := gpukit.MustOpen("cpu")\nfunc slow(x float64) float64 { for i := 0; i < 2000000; i++ { x += math.Sin(x) }; return x }')
    msg = nb.send("gpukit.Must(gpu.Vectorize(slow, gpukit.Linspace(0, 1, 2000)))")
    time.sleep(4)
    nb.control("interrupt_request")
    (bar,) = shown(nb.collect(msg))
    assert "line 1, gpukit at work" in bar[0][2] and "<progress" in bar[0][1] and "progress" not in bar[-1][1]


@pytest.mark.parametrize(
    "device, many", [("cpu", "12000"), ("parallel", "40000"), ("sim:gtx-970", "8000")]
)
def test_gpukit_says_how_far_it_is(nb, device, many):
    nb.ok(
        f'dev := gpukit.MustOpen("{device}")\nfunc some(x float64) float64 {{ for i := 0; i < 3000; i++ {{ x += math.Sin(x) }}; return x }}\n'
        "func few(x float64) float64 { for i := 0; i < 300; i++ { x += math.Sin(x) }; return x }"
    )
    # Long enough on any machine: the work is doubled until it takes four seconds, of the kernel's and not of waiting for it.
    n, took = int(many), 0.0
    f = "few" if device.startswith("sim") else "some"
    while took < 4 or not shown(got) and took < 30:
        begin = time.time()
        got = nb.ok(f"gpukit.Must(dev.Vectorize({f}, gpukit.Linspace(0, 1, {n})))", timeout=120)
        took, n = time.time() - begin, n * (2 if took > 1 else 4)
    (bar,) = shown(got)
    parts = [float(m.group(1)) for _, page, _ in bar for m in [re.search(r'<progress value="([\d.]+)"></progress> line 1, gpukit at work: \d+%, [\d.]+ s', page)] if m]
    assert len(parts) >= 3 and parts == sorted(parts) and parts[-1] > 0.5, bar
    assert re.fullmatch(r"<small>line 1: [\d.]+ s</small>", bar[-1][1])
    assert not any(" of " in text for _, _, text in bar)  # parts of the work mean nothing to users


def test_many_short_calls_have_no_parts(nb):
    nb.ok("func often(n int) { for i := 0; i < n; i++ { gpukit.Must(gpu.Vectorize(math.Sin, gpukit.Linspace(0, 1, 1000))) } }")
    msg = nb.send("often(100000000)")
    time.sleep(4)
    nb.control("interrupt_request")
    (bar,) = shown(nb.collect(msg))
    assert all("%" not in text for _, _, text in bar), bar


def test_late_text_belongs_to_its_cell(nb):
    first = nb.send('go (func() { time.Sleep(600 * time.Millisecond); fmt.Println("late"); fmt.Fprint(os.Stderr, "late error"); log.Print("late log") })()')
    nb.collect(first)
    second = nb.send('for i := 0; i < 10; i++ { time.Sleep(100 * time.Millisecond); fmt.Println("own") }')
    late, own = [], []
    end = time.time() + 10
    while time.time() < end:
        m = nb.client.get_iopub_msg(timeout=10)
        parent, kind = m["parent_header"].get("msg_id"), m["header"]["msg_type"]
        if kind == "stream":
            (late if parent == first else own).append((m["content"]["name"], m["content"]["text"]))
        if parent == second and kind == "status" and m["content"]["execution_state"] == "idle":
            break
    assert ("stdout", "late\n") in late and any(n == "stderr" and t.startswith("late error") and "late log" in t for n, t in late), late
    assert "".join(t for _, t in own) == "own\n" * 10
    # A goroutine of that goroutine belongs to it, too.
    first = nb.send('go (func() { time.Sleep(300 * time.Millisecond); go (func() { fmt.Println("grandchild") })() })()')
    nb.collect(first)
    assert nb.ok("time.Sleep(400 * time.Millisecond)").text() == ""


C = r'''
#include <stdio.h>
#include <unistd.h>
int main(void) {
    printf("printf %d\n", 1);
    fflush(stdout);
    fprintf(stderr, "to stderr\n");
    write(1, "past stdio\n", 11);
    return 0;
}
'''


def test_what_other_programs_print(nb, tmp_path):
    """Programs that inherit the descriptors: of a shell, and one in C where there is a compiler."""
    start = 'p, err := os.StartProcess(%s, []string{%s}, &os.ProcAttr{Files: []*os.File{nil, os.NewFile(1, "1"), os.NewFile(2, "2")}})\np.Wait()\nfmt.Println("own")'
    got = nb.ok(start % ('"/bin/sh"', '"sh", "-c", "echo from a child; echo its error >&2"'))
    assert got.text() == "from a child\nown\n" and got.text("stderr") == "its error\n"
    got = nb.ok('import "os/exec"\nc := exec.Command("sh", "-c", "echo as usual")\nc.Stdout = os.Stdout\nc.Run()')
    assert got.text() == "as usual\n"
    cc = shutil.which("gcc") or shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler here")
    (tmp_path / "p.c").write_text(C)
    subprocess.run([cc, "-o", tmp_path / "p", tmp_path / "p.c"], check=True)
    got = nb.ok(start % (f'"{tmp_path}/p"', '"p"'))
    assert got.text() == "printf 1\npast stdio\nown\n" and got.text("stderr") == "to stderr\n"


def test_what_c_would_print(nb):
    """Text written to the file descriptors, past os.Stdout, as a C library writes it."""
    got = nb.ok('raw := os.NewFile(1, "raw")\nraw2 := os.NewFile(2, "raw2")\nraw.WriteString("one\\n")\nraw2.WriteString("two\\n")\nfmt.Println("three")')
    assert got.text() == "one\nthree\n" and got.text("stderr") == "two\n"


def test_time_and_bench(nb):
    text = nb.ok("%%time\ntime.Sleep(50 * time.Millisecond)\n3").text()
    wall = re.fullmatch(r"([\d.]+) ms on the clock, .* of processors, [\d.]+ (bytes|[KMG]iB) of memory in \d+ pieces\n", text)
    assert 50 <= float(wall.group(1)) < 500
    assert "on the clock" in nb.fails('%%time\npanic("x")').text()
    got = nb.ok("%%bench\nx := 0\nfor i := 0; i < 100; i++ { x += i }")
    assert re.match(r"[\d.]+ [mµ]s for one run \(median of \d+; mean .* ± .*, best .*\)\n$", got.text()), got.text()
    got = nb.ok("%%bench 7\ncalls++\ntime.Sleep(5 * time.Millisecond)") if nb.ok("calls := 0") else None
    assert "median of 7" in got.text() and nb.ok("calls").plain == "9"  # once as the cell, once to warm up
    for bad in ("%%bench 0\n1", "%%bench many\n1", "%%bench 1 2\n1", "%%time 3\n1"):
        assert nb.fails(bad).error["ename"] == "SpecialError"
    assert nb.fails('%%bench\nerrors.New("x")').error["evalue"] == "x"
    msg = nb.send("%%bench\nfor {}")
    time.sleep(0.3)
    nb.control("interrupt_request")
    assert nb.collect(msg).error["ename"] == "Interrupted"


def test_devices_and_errcheck(nb):
    text = nb.ok("%devices").text()
    assert "cpu: " in text and "sim:quadro-k2000: " in text
    nb.ok("%errcheck off")
    assert nb.ok('_, err := os.Open("/nowhere/at/all")\n"went on"').plain == "went on"
    nb.ok("%errcheck on")
    assert nb.fails('_, err := os.Open("/nowhere/at/all")\n"went on"').error["ename"] == "PathError"
    assert nb.fails("%errcheck maybe").error["ename"] == "SpecialError"


def test_shell(nb):
    assert nb.ok("$echo 'a  b' | tr a-z A-Z; echo $((2 + 3))").text() == "A  B\n5\n"
    failed = nb.fails("$echo out; echo err >&2; exit 3")
    assert failed.text() == "out\n" and failed.text("stderr") == "err\n" and "exit status 3" in failed.error["evalue"]
    # Stop ends what the shell started, too.
    msg = nb.send("$sleep 1000 & sleep 1001")
    time.sleep(0.3)
    nb.control("interrupt_request")
    assert nb.collect(msg).error["ename"] == "Interrupted"
    assert nb.ok("$ps ax | grep -c '[s]leep 100[01]' || true").text() == "0\n"


def test_display_ids_and_clear(nb):
    got = nb.ok('display.Show("d", display.HTML("<b>1</b>"))\ndisplay.Update("d", display.HTML("<b>2</b>"))\ndisplay.Clear(true)\nfmt.Println("x")')
    assert [[p for _, p, _ in bar] for bar in shown(got)] == [["<b>1</b>", "<b>2</b>"]]
    assert got.of("clear_output") == [{"wait": True}]
    kinds = [m["header"]["msg_type"] for m in got.messages]
    assert kinds.index("clear_output") < kinds.index("stream")


def test_input(nb):
    def answer(code, *lines):
        msg, questions = nb.send(code, allow_stdin=True), []
        for line in lines:
            q = nb.client.get_stdin_msg(timeout=10)
            assert q["header"]["msg_type"] == "input_request" and q["parent_header"]["msg_id"] == msg
            questions.append((q["content"]["prompt"], q["content"]["password"]))
            nb.client.input(line)
        return nb.collect(msg), questions

    got, _ = answer('var name string\nvar age int\nfmt.Print("who? ")\nfmt.Scanln(&name, &age)\nfmt.Sprint(name, age)', "Ada 36")
    assert got.plain == "Ada 36" or got.plain == "Ada36"
    assert got.text() == "who? "
    got, _ = answer("sc := bufio.NewScanner(os.Stdin)\nsc.Scan()\na := sc.Text()\nsc.Scan()\na + sc.Text()", "one line", ", another é")
    assert got.plain == "one line, another é"
    got, q = answer('display.Password("secret? ")', "xyz")
    assert got.plain == "xyz" and q == [("secret? ", True)]
    # Nobody can be asked, or the user presses Stop instead.
    assert "nobody can be asked" in nb.fails("fmt.Scanln(&name)", allow_stdin=False).error["evalue"]
    msg = nb.send("fmt.Scanln(&name)", allow_stdin=True)
    nb.client.get_stdin_msg(timeout=10)
    nb.control("interrupt_request")
    assert nb.collect(msg).error["ename"] == "Interrupted"
    got, _ = answer("fmt.Scanln(&name)\nname", "again")
    assert got.plain == "again"
