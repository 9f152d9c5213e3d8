//go:build go1.21

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-zeromq/zmq4"

	"gpunotes/jupyter/cell"
)

// What Go cannot catch ends a process: two goroutines that write one map at the
// same time, the lack of memory, a panic in a goroutine of a compiled package. So
// the kernel is two processes. The first serves nothing: it starts the second,
// which does, and another one when that has died. What the second tells it about
// requests makes sure that each gets an answer, which says what has happened.

// note is what the serving process tells the first one, a line of JSON each.
type note struct {
	Kind   string   `json:"kind"` // ready, got, begun, done, bye
	ID     int      `json:"id,omitempty"`
	Frames [][]byte `json:"frames,omitempty"` // of got: the request as it came
	Count  int      `json:"count,omitempty"`  // of begun: the number of the cell
}

// estate is what a process that has died leaves to the next one.
type estate struct {
	Died     string     `json:"died"` // why; "" if nobody has
	Count    int        `json:"count"`
	Begun    int        `json:"begun"` // the request it was at, 0 for none
	Requests []unsolved `json:"requests"`
}

type unsolved struct {
	ID     int      `json:"id"`
	Frames [][]byte `json:"frames"`
}

// File descriptors of the serving process.
const (
	notesFD  = 3
	estateFD = 4
	crashFD  = 5
)

// interruptOrder is what the first process passes on when it is interrupted.
const interruptOrder = "interrupt"

// serveFlag is the first argument of the serving process.
const serveFlag = "--serve"

// maxIdleDeaths is how often in a row the serving process may die without having
// begun a cell.
const maxIdleDeaths = 3

// supervise is the first process. It returns its exit status.
func supervise(connectionFile string) int {
	program, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpunotes kernel:", err)
		return 1
	}
	followParent()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	left := estate{}
	idle := 0
	for {
		life, err := live(program, connectionFile, left, signals)
		switch {
		case err != nil:
			fmt.Fprintln(os.Stderr, "gpunotes kernel:", err)
			return 1
		case life.bye || !life.ready:
			return life.status
		case life.left.Begun == 0:
			if idle++; idle == maxIdleDeaths {
				fmt.Fprintln(os.Stderr, "gpunotes kernel: it dies again and again:", life.left.Died)
				return 1
			}
		default:
			idle = 0
		}
		logger.Println("died and is started again:", life.left.Died)
		left = life.left
	}
}

// life is that of one serving process.
type life struct {
	ready, bye bool
	status     int
	left       estate
}

func live(program, connectionFile string, left estate, signals <-chan os.Signal) (l life, err error) {
	var pipes [3][2]*os.File
	for i := range pipes {
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			return l, err
		}
		defer pipes[i][0].Close()
		defer pipes[i][1].Close()
	}
	notes, will, crash := pipes[0], pipes[1], pipes[2]
	cmd := exec.Command(program, serveFlag, connectionFile)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{notes[1], will[0], crash[1]}
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return l, err
	}
	notes[1].Close()
	will[0].Close()
	crash[1].Close()
	// This stays open: its end tells the process that we are gone.
	orders := json.NewEncoder(will[1])
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = orders.Encode(left)
	}()

	var told, said sync.WaitGroup
	told.Add(1)
	said.Add(1)
	var lastWords []byte
	go func() {
		defer said.Done()
		const most = 64 << 10
		lastWords, _ = io.ReadAll(io.LimitReader(crash[0], most))
		_, _ = io.Copy(io.Discard, crash[0])
	}()
	open := map[int][][]byte{}
	l.left.Count = left.Count
	go func() {
		defer told.Done()
		for dec := json.NewDecoder(notes[0]); ; {
			var n note
			if dec.Decode(&n) != nil {
				return
			}
			switch n.Kind {
			case "ready":
				l.ready = true
			case "bye":
				l.bye = true
			case "got":
				open[n.ID] = n.Frames
			case "begun":
				l.left.Begun, l.left.Count = n.ID, n.Count
			case "done":
				delete(open, n.ID)
				if l.left.Begun == n.ID {
					l.left.Begun = 0
				}
			}
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err = cmd.Wait()
	}()
	for done := false; !done; {
		select {
		case s := <-signals:
			if s == os.Interrupt {
				<-written
				_ = orders.Encode(interruptOrder)
				continue
			}
			_ = cmd.Process.Kill()
			<-ended
			os.Exit(0)
		case <-ended:
			done = true
		}
	}
	told.Wait()
	said.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return l, err
	}
	l.status = cmd.ProcessState.ExitCode()
	l.left.Died = causeOfDeath(cmd.ProcessState, string(lastWords))
	for id, frames := range open {
		l.left.Requests = append(l.left.Requests, unsolved{id, frames})
	}
	sort.Slice(l.left.Requests, func(i, j int) bool { return l.left.Requests[i].ID < l.left.Requests[j].ID })
	return l, nil
}

// The Go runtime says why it gives up on standard error, which belongs to the
// notebook by then. In its last words, a list of calls, these tell most.
var telling = []struct{ call, why string }{
	{"maps.fatal(", "two goroutines used one map at the same time, and one of them wrote (guard it with a sync.Mutex)"},
	{"sync.fatal(", "a sync.Mutex was unlocked that was not locked"},
	{"runtime.morestack(", "stack overflow: functions that call each other without end"},
	{"runtime.newstack(", "stack overflow: functions that call each other without end"},
	{"runtime.sysMap", "out of memory"},
	{"runtime.(*mheap).", "out of memory"},
	{"runtime.sigpanic(", "a compiled package used memory that is not its own"},
}

// causeOfDeath says in a sentence why a process ended.
func causeOfDeath(state *os.ProcessState, words string) string {
	for _, line := range strings.Split(words, "\n") {
		line = strings.TrimSpace(line)
		for _, begin := range []string{"fatal error: ", "panic: ", "runtime: goroutine stack exceeds"} {
			if strings.HasPrefix(line, begin) {
				return line
			}
		}
	}
	for _, t := range telling {
		if strings.Contains(words, t.call) {
			return t.why
		}
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		if status.Signal() == syscall.SIGKILL {
			return "the system killed it, most likely because memory ran out"
		}
		return fmt.Sprintf("signal %d: %v", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("compiled code ended the process with status %d", state.ExitCode())
}

// journal is the serving process's side. Without a first process, as in tests of
// this package, it tells nobody.
type journal struct {
	mu   sync.Mutex
	enc  *json.Encoder
	last int
}

// takeOver connects the serving process with the first one.
func (k *kernel) takeOver() (estate, error) {
	k.journal.enc = json.NewEncoder(os.NewFile(notesFD, "notes"))
	if crash := os.NewFile(crashFD, "crash"); crash != nil {
		if err := debug.SetCrashOutput(crash, debug.CrashOptions{}); err != nil {
			return estate{}, err
		}
		crash.Close()
	}
	for _, fd := range []int{notesFD, estateFD} {
		syscall.CloseOnExec(fd) // a command of a cell must not keep them open
	}
	will := os.NewFile(estateFD, "estate")
	dec := json.NewDecoder(will)
	var left estate
	if err := dec.Decode(&left); err != nil {
		return left, fmt.Errorf("this program is not to be started by hand: %w", err)
	}
	go func() {
		for {
			var order string
			if dec.Decode(&order) != nil {
				os.Exit(1) // the first process is gone
			}
			if order == interruptOrder {
				k.session.Interrupt()
			}
		}
	}()
	return left, nil
}

func (j *journal) write(n note) {
	if j.enc == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.enc.Encode(n); err != nil {
		logger.Println("journal:", err)
	}
}

// got notes a request that is to be answered, and returns its number.
func (j *journal) got(frames [][]byte) int {
	j.mu.Lock()
	j.last++
	id := j.last
	j.mu.Unlock()
	j.write(note{Kind: "got", ID: id, Frames: frames})
	return id
}

// inherit answers the requests that a dead process has left, once the front ends
// have found the new one.
func (k *kernel) inherit(left estate, sockets SocketGroup) {
	if left.Died == "" {
		return
	}
	k.count = left.Count
	awaitFrontEnds(sockets)
	why := fmt.Sprintf("the kernel died: %s\n"+
		"Go programs cannot catch that. The kernel has been started again. Variables, functions and imports are gone, "+
		"and no cell was run again: run those that you need.", left.Died)
	for _, u := range left.Requests {
		msg, ids, err := WireMsgToComposedMsg(u.Frames, sockets.Key)
		if err != nil {
			continue
		}
		r := msgReceipt{msg, ids, sockets}
		if msg.Header.MsgType != "execute_request" {
			k.refuse(r, why)
			k.status(r, kernelIdle)
			continue
		}
		if u.ID != left.Begun {
			k.abort([]message{{msgReceipt: r, id: u.ID}})
			continue
		}
		var req executeRequest
		decode(r, &req)
		failed := &cell.Error{Name: "KernelDied", Message: why, Frames: cell.At(k.count, 1, req.Code)}
		k.showError(r, failed)
		k.replyError(r, failed)
		k.status(r, kernelIdle)
	}
	if left.Begun != 0 {
		// Whoever sent these did not know yet.
		k.abort(k.takeExecutes())
	}
}

// Front ends look for a dead process ten times a second, and subscribe to the new
// one when they next look for messages.
const (
	reconnect     = 400 * time.Millisecond
	reconnectMost = 5 * time.Second
)

func awaitFrontEnds(sockets SocketGroup) {
	pub, ok := sockets.IOPubSocket.Socket.(zmq4.Topics)
	for end := time.Now().Add(reconnectMost); ok && len(pub.Topics()) == 0 && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(reconnect) // the other ones
}
