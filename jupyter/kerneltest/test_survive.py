"""Nothing that a cell or a front end does takes the notebook from the user."""
import os
import queue
import signal
import subprocess
import sys
import time

import pytest

from client import TIMEOUT
from conftest import KERNEL

NAMES = 'import ("fmt"; "os"; "time"; "log"; "sync"; "strings"; "errors"; "display"; "image"; "math"; "gpunotes/gpukit"; "gpunotes/plots")'


@pytest.fixture(autouse=True)
def names(nb):
    nb.ok(NAMES + "\nalive := 1")


def pid(nb):
    return int(nb.ok("os.Getpid()").plain)


@pytest.mark.parametrize(
    "code, ename, part",
    [
        ('go (func() { panic("in a goroutine") })()\ntime.Sleep(time.Hour)', "Panic", "in a goroutine"),
        ("var p *int\ngo (func() { *p = 1 })()\nfor {}", "Panic", "nil pointer"),
        ('type S struct { X int }\nfunc (s S) String() string { panic("in String") }\nS{1}', "Panic", "in String"),
        ('type S3 struct { X int }\nfunc (s S3) String() string { panic("in a String in a list") }\n[]S3{{1}}', "Panic", "in a String in a list"),
        ('type S4 struct { X int }\nfunc (s S4) String() string { return fmt.Sprintf("%v", s) }\n[]S4{{1}}', "StackOverflow", "recursion"),
        ('type S5 struct { X int }\nfunc (s S5) String() string { return fmt.Sprintf("%v", s) }\nfmt.Println(S5{1})', "StackOverflow", "recursion"),
        ('type H struct { X int }\nfunc (h H) HTML() string { panic("in HTML") }\nH{1}', "Panic", "in HTML"),
        ("os.Exit(3)", "Exit", "os.Exit(3)"),
        ('log.Fatal("fatal")', "Fatal", "fatal"),
        ('log.Fatalf("fatal %d", 2)', "Fatal", "fatal 2"),
        ("func deep(n int) int { return deep(n+1) + 1 }\ndeep(0)", "StackOverflow", "recursion"),
        ("type R struct { X int }\nfunc (r R) String() string { return r.String() }\nR{1}", "StackOverflow", "recursion"),
        ("make([]float64, 1<<40)", "OutOfMemory", "this machine has"),
        ("var e error\ne.Error()", "Panic", "nil interface"),
        ("close((chan int)(nil))", "Panic", "close of nil channel"),
        ('panic(fmt.Sprint("a ", 1))', "Panic", "a 1"),
        ("panic(errors.New(\"an error\"))", "Error", "an error"),
        ("gpukit.Linspace(0, 1, 4).Reshape(3)", "ShapeError", ""),
        ("a := []int{1}; i := 5; a[i]", "Panic", "out of range"),
        ("1 / (alive - 1)", "Panic", "divide by zero"),
        # Compiled code calls these in goroutines of its own.
        ('time.AfterFunc(time.Millisecond, func() { panic("in AfterFunc") })\ntime.Sleep(time.Minute)', "Panic", "in AfterFunc"),
        ("var wg sync.WaitGroup\nwg.Go(func() { var p *int; *p = 1 })\nwg.Wait()\ntime.Sleep(time.Minute)", "Panic", "nil pointer"),
        ("type G struct { wg sync.WaitGroup }\nvar g G\ng.wg.Go(func() { panic(\"in a field\") })\ng.wg.Wait()\ntime.Sleep(time.Minute)", "Panic", "in a field"),
        ('import "context"\nctx, cancel := context.WithCancel(context.Background())\ncontext.AfterFunc(ctx, func() { panic("in context") })\ncancel()\ntime.Sleep(time.Minute)', "Panic", "in context"),
        # Types that the machine has not the memory for.
        ("var a [1000000000000]int", "CompileError", "this machine has"),
        ("[...]int{900000000000: 1}", "CompileError", "this machine has"),
        ("[]int{900000000000: 1}", "CompileError", "this machine has"),
        ("new([100000000000]float64)", "CompileError", "this machine has"),
        ("func f() { var a [1000000000000]int; a[0] = 1 }", "CompileError", "this machine has"),
        ("type Big struct { a [9000000000]float64; b [9000000000]float64 }", "CompileError", "this machine has"),
        ("make(map[string][1000000000000]int)", "CompileError", "this machine has"),
    ],
)
def test_an_error_and_nothing_worse(nb, code, ename, part):
    before = pid(nb)
    failed = nb.fails(code)
    assert failed.error["ename"] == ename and part in failed.error["evalue"]
    assert failed.reply["content"]["traceback"] == failed.error["traceback"]
    assert pid(nb) == before and nb.ok("alive").plain == "1"


def test_a_late_panic_in_a_callback_is_only_told(nb):
    before = pid(nb)
    nb.ok('timer := time.AfterFunc(50 * time.Millisecond, func() { panic("late") })')
    assert "late" in nb.ok("time.Sleep(300 * time.Millisecond)").text("stderr")
    assert pid(nb) == before


def test_a_deep_method_leaves_nothing_behind(nb):
    """What is called to show a value runs outside the cell's own statements."""
    nb.fails("type R2 struct { X int }\nfunc (r R2) String() string { return r.String() }\nR2{1}")
    for _ in range(20):
        assert nb.ok("for i := 0; i < 300000; i++ { alive = 1 }\nalive").plain == "1"


def test_much_output(nb):
    before = pid(nb)
    begin = time.time()
    got = nb.ok('line := strings.Repeat("x", 99) + "\\n"\nbig := strings.Repeat(line, 10000)\nfor i := 0; i < 100; i++ { fmt.Print(big) }', timeout=240)
    text = got.text()
    assert len(text) == 10**8 and text[:100] == "x" * 99 + "\n"
    assert time.time() - begin < 120
    assert pid(nb) == before


def test_binary_output(nb):
    before = pid(nb)
    nb.ok('import "math/rand"\nb := make([]byte, 300000)\nfor i := 0; i < len(b); i++ { b[i] = byte(i * 7 + i/256) }')
    got = nb.ok("os.Stdout.Write(b)\nos.Stderr.Write(b[:1000])\nfmt.Println(string(b[:300]))\n3")
    assert got.plain == "3" and len(got.text()) > 100000 and got.text("stderr")
    nb.ok('string(b)')
    nb.ok('display.PNG(b)')
    failed = nb.fails("panic(string(b[:300]))")
    assert failed.error["evalue"]
    assert pid(nb) == before


def test_a_thousand_cells_at_once(nb):
    """All are sent before the first answer is read; each answer comes, in order."""
    before = pid(nb)
    nb.ok("sum := 0")
    ids = [nb.send(f"sum += {i}\nfmt.Println({i})") for i in range(1000)]
    seen, idle, text = [], set(), {}
    end = time.time() + 120
    while len(seen) < 1000 or len(idle) < 1000:
        assert time.time() < end, (len(seen), len(idle))
        try:
            m = nb.client.get_iopub_msg(timeout=0.05)
            parent = m["parent_header"].get("msg_id")
            if m["header"]["msg_type"] == "stream":
                text[parent] = text.get(parent, "") + m["content"]["text"]
            if m["header"]["msg_type"] == "status" and m["content"]["execution_state"] == "idle":
                idle.add(parent)
        except queue.Empty:
            pass
        while True:
            try:
                m = nb.client.get_shell_msg(timeout=0)
            except queue.Empty:
                break
            assert m["content"]["status"] == "ok"
            seen.append(m["parent_header"]["msg_id"])
    assert seen == ids
    assert [text[i] for i in ids] == [f"{i}\n" for i in range(1000)]
    assert nb.ok("sum").plain == str(999 * 500) and pid(nb) == before


def test_messages_that_are_none(nb):
    before = pid(nb)
    for channel in (nb.client.shell_channel, nb.client.control_channel, nb.client.stdin_channel):
        session, socket = nb.client.session, channel.socket
        good = session.serialize(session.msg("kernel_info_request", {}))
        for frames in (
            [b""], [b"\x00" * 10], [b"<IDS|MSG>"], [b"<IDS|MSG>", b"", b"{}"], [b"no delimiter", b"at", b"all"],
            [b"<IDS|MSG>", b"0" * 64] + good[2:],  # not signed with the key
            [b"<IDS|MSG>", b"zz"] + good[2:], [b"<IDS|MSG>", b""] + good[2:],
            [b"<IDS|MSG>", session.sign([b"{", b"{", b"{", b"{"]), b"{", b"{", b"{", b"{"],
            [b"<IDS|MSG>", session.sign([b"[]", b"1", b'"x"', b"null"]), b"[]", b"1", b'"x"', b"null"],
        ):
            socket.send_multipart(frames)
    for content in ({}, {"code": 5}, {"code": None}, {"code": "1", "silent": "yes"}, {"nonsense": 1}):
        for kind in ("execute_request", "complete_request", "inspect_request", "is_complete_request", "history_request", "comm_open", "input_reply"):
            nb.client.session.send(nb.client.shell_channel.socket, kind, content=content)
    assert nb.control("kernel_info_request")["content"]["status"] == "ok"
    assert pid(nb) == before


def test_a_wrong_signature_runs_nothing(nb):
    session = nb.client.session
    frames = session.serialize(session.msg("execute_request", {"code": "alive = 99", "silent": False}))
    frames[1] = b"0" * 64
    nb.client.shell_channel.socket.send_multipart(frames)
    assert nb.ok("alive").plain == "1"


@pytest.mark.parametrize(
    "code, why",
    [
        # What Go cannot catch. Every one of these ends a process.
        ("time.Sleep(300 * time.Millisecond)\nm := map[int]int{}\nfor k := 0; k < 8; k++ { go (func() { for i := 0; ; i++ { m[i%10] = i } })() }\ntime.Sleep(time.Minute)", "one map at the same time"),
        ("time.Sleep(300 * time.Millisecond)\nvar mu sync.Mutex\nmu.Unlock()", "sync.Mutex was unlocked"),
        ("time.Sleep(300 * time.Millisecond)\np, _ := os.FindProcess(os.Getpid())\np.Kill()\nfor {}", "the system killed it"),
    ],
)
def test_a_death_is_told_and_a_new_kernel_is_there(fresh, code, why):
    nb = fresh()
    nb.ok(NAMES + "\nmine := 5")
    first, parent = pid(nb), nb.manager.provisioner.process.pid
    count = nb.ok("1").reply["content"]["execution_count"]
    ids = [nb.send(c) for c in (code, "2 + 2", "3 + 3")]
    replies, errors = {}, []
    end = time.time() + TIMEOUT
    while len(replies) < 3:
        assert time.time() < end, replies
        errors += [m["content"] for m in nb.drain(ids[0], 0.05) if m["header"]["msg_type"] == "error"]
        try:
            m = nb.client.get_shell_msg(timeout=0.05)
            replies[m["parent_header"]["msg_id"]] = m["content"]
        except queue.Empty:
            pass
    assert [replies[i]["status"] for i in ids] == ["error", "aborted", "aborted"]
    failed = replies[ids[0]]
    assert failed["ename"] == "KernelDied" and why in failed["evalue"] and "no cell was run again" in failed["evalue"]
    errors += [m["content"] for m in nb.drain(ids[0], 1) if m["header"]["msg_type"] == "error"]
    assert [e["evalue"] for e in errors] == [failed["evalue"]]
    # The new one works, does not know what the old one knew, and goes on counting.
    got = nb.ok('import "os"\nos.Getpid()')
    assert int(got.plain) != first and got.reply["content"]["execution_count"] == count + 2
    assert "undefined" in nb.fails("mine").error["evalue"]
    assert nb.manager.is_alive() and nb.manager.provisioner.process.pid == parent
    msg = nb.send("for {}")
    time.sleep(0.3)
    nb.control("interrupt_request")
    assert nb.collect(msg).error["ename"] == "Interrupted"


def test_no_process_stays_behind(fresh):
    for end in ("shutdown", "kill the first"):
        nb = fresh()
        serving = pid_of(nb)
        if end == "shutdown":
            nb.control("shutdown_request", {"restart": False})
        else:
            os.kill(nb.manager.provisioner.process.pid, signal.SIGKILL)
        deadline = time.time() + 5
        while alive(serving) and time.time() < deadline:
            time.sleep(0.05)
        assert not alive(serving), end


SERVER = r"""
import sys, time
from jupyter_client.manager import KernelManager
manager = KernelManager(kernel_name=sys.argv[1])
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
def hook(m):
    if m["header"]["msg_type"] == "execute_result":
        print(m["content"]["data"]["text/plain"], manager.provisioner.process.pid, flush=True)
client.execute_interactive('import "os"\nos.Getpid()', output_hook=hook, timeout=60)
time.sleep(600)
"""


def test_nothing_stays_behind_without_its_server(tmp_path):
    """The process that started the kernel dies and can tell nobody."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    server = subprocess.Popen([sys.executable, str(script), KERNEL], stdout=subprocess.PIPE, text=True)
    try:
        processes = [int(n) for n in server.stdout.readline().split()]
        assert len(processes) == 2 and all(alive(p) for p in processes)
    finally:
        server.kill()
        server.wait()
    deadline = time.time() + 10
    while any(alive(p) for p in processes) and time.time() < deadline:
        time.sleep(0.05)
    assert not any(alive(p) for p in processes)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def pid_of(nb):
    return int(nb.ok('import "os"\nos.Getpid()').plain)
