"""Stop ends whatever a cell does within 200 ms, and nothing else is lost."""
import os
import signal
import time

import pytest

LIMIT = 0.2  # seconds from the request to the answer of the cell


@pytest.fixture(scope="module", autouse=True)
def names(nb):
    nb.ok(
        'import ("fmt"; "time"; "sync"; "sort"; "math"; "os"; "strings"; "net"; "gpunotes/gpukit"; "gpunotes/plots")\n'
        'cpu := gpukit.MustOpen("cpu"); par := gpukit.MustOpen("parallel"); sim := gpukit.MustOpen("sim:gtx-970")\n'
        "ch := make(chan int); to := make(chan int); var wg sync.WaitGroup; var mu sync.Mutex; kept := 41\n"
        "wg.Add(1); mu.Lock(); ln, err := net.Listen(\"tcp\", \"127.0.0.1:0\")\n"
        "func slow(x float64) float64 { for i := 0; i < 2000000000; i++ { x += math.Sin(x) }; return x }\n"
        "func spin() { for {} }\nfunc wait() int { return <-ch }\nbig := gpukit.Linspace(0, 1, 4000000)\nx, y := gpukit.MeshGrid(gpukit.Linspace(0, 1, 3000), gpukit.Linspace(0, 1, 3000))\n"
    )


def stop(nb, code, how, before):
    msg = nb.send(code)
    time.sleep(before)
    begin = time.time()
    if how == "message":
        nb.client.control_channel.send(nb.client.session.msg("interrupt_request", {}))
    else:
        os.kill(nb.manager.provisioner.process.pid, signal.SIGINT)
    got = nb.collect(msg)
    return got, time.time() - begin


INTERPRETED = ["for {}", "for i := 0; ; i++ { i-- }", "spin()", "sort.Slice([]int{3, 1, 2}, func(i, j int) bool { for {}; return true })",
               "func again() { defer func() { recover() }(); for {} }\nfor { again() }"]
NOTICED = ["time.Sleep(time.Hour)", "cpu.Vectorize(slow, 1.0)", "par.Vectorize(slow, big)", "sim.Vectorize(slow, big)",
           "for { gpukit.Must(cpu.Vectorize(math.Sin, big)) }", "for { p := plots.Heatmap(x, y, x); p.Render() }", "$sleep 100", "for { big.Sum() }"]
LEFT = ["<-ch", "to <- 1", "wg.Wait()", "mu.Lock()", "wait()", "ln.Accept()", "n := 0\nfor v := range ch { n += v }"]


@pytest.mark.parametrize("how", ["message", "signal"])
@pytest.mark.parametrize("code", INTERPRETED + NOTICED + LEFT)
def test_stop(nb, code, how):
    times = []
    for attempt in range(4):  # the bound is that of a machine that does nothing else
        got, took = stop(nb, code, how, 0.4)
        assert got.status == "error" and got.error["ename"] == "Interrupted", got.error
        assert got.error["evalue"].startswith("interrupted") and "line" in "\n".join(got.error["traceback"])
        assert ("left to itself" in got.error["evalue"]) == (code in LEFT), got.error
        assert nb.ok("kept").plain == "41"
        times.append(took)
        if took < LIMIT:
            break
    assert min(times) < LIMIT, times


def test_what_was_left_to_itself_stays_silent(nb):
    nb.ok("late := make(chan int)\nreached := 0")
    got, _ = stop(nb, "v := <-late\nreached = v\nfmt.Println(v)", "message", 0.2)
    assert "left to itself" in got.error["evalue"]
    assert nb.ok("late <- 7\ntime.Sleep(100 * time.Millisecond)\nreached").plain == "0"
    assert nb.ok("kept").text() == ""


def test_nothing_runs_on_after_stop(nb):
    nb.ok("count := 0")
    got, _ = stop(nb, "for {}\ncount = 1", "message", 0.2)
    assert nb.ok("count").plain == "0"
    # Without a running cell, Stop does nothing to the next one.
    nb.control("interrupt_request")
    assert nb.ok("for i := 0; i < 1000; i++ { count++ }\ncount").plain == "1000"


def test_cells_behind_a_stopped_one(nb):
    ids = [nb.send("for {}")] + [nb.send("count += 10")] * 1
    time.sleep(0.3)
    nb.client.control_channel.send(nb.client.session.msg("interrupt_request", {}))
    status = {}
    while len(status) < 2:
        m = nb.client.get_shell_msg(timeout=10)
        status[m["parent_header"]["msg_id"]] = m["content"]["status"]
    assert [status[i] for i in ids] == ["error", "aborted"]
