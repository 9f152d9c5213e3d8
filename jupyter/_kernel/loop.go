//go:build go1.21

package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/xreflect"
	"github.com/go-zeromq/zmq4"

	"gpunotes/gpukit/host"
	"gpunotes/jupyter/cell"
	"gpunotes/jupyter/stream"
)

// logger is for what the kernel itself has to say. The package log belongs to
// the cells.
var logger = log.New(os.Stderr, "gpunotes kernel: ", log.LstdFlags)

// kernel is one running notebook. Its fields belong to the shell loop, except
// those guarded by mu.
type kernel struct {
	gn       Kernel // gophernotes' part: the interpreter and its renderers
	session  *cell.Session
	notebook *host.Notebook
	count    int // cells executed
	history  []historyEntry
	out, err *stream.Stream
	stringer xreflect.Type       // fmt.Stringer, as the interpreter knows it
	pages    []map[string]string // answers to the questions of the running cell

	executing atomic.Bool // a cell runs

	polled   atomic.Bool  // gpukit has asked whether to stop: it is at work
	told     atomic.Int64 // when it last heard that it is to stop
	work     work         // how far gpukit is
	watching sync.Mutex
	bar      *Progress // of the statement that runs, if it takes long

	journal journal

	asking  sync.Mutex
	answers chan string // what users typed

	mu      sync.Mutex
	current *msgReceipt     // the request that output belongs to
	mayAsk  bool            // its front end can ask the user
	bars    []*Progress     // that the current cell has
	shown   map[string]bool // display ids shown by the current cell
	pending []message       // shell requests not yet looked at
	arrived chan struct{}   // has room for one signal: pending is not empty
}

// message is a request together with the socket on which it is answered.
type message struct {
	msgReceipt
	err error
	raw [][]byte // as it came
	id  int      // in the journal, 0 if it is not there
}

// newKernel starts the interpreter and everything else but the sockets.
func newKernel() *kernel {
	k := &kernel{shown: map[string]bool{}, arrived: make(chan struct{}, 1), answers: make(chan string, 1)}
	k.session = cell.NewSession(
		func(n, line int, text string) error { return k.notebook.Record(n, line, text) },
		func(text string) {
			if k.err != nil {
				k.flush() // what was printed before the remark stands above it
			}
			k.stream(StreamStderr, text+"\n")
		},
	)
	k.notebook = host.NewNotebook(func(name string) (reflect.Value, bool) { return k.session.Lookup(name) })
	host.Attach(host.Host{Source: k.notebook, Interrupted: k.interrupted, Progress: k.work.report, Update: k.update})
	k.session.Watch, k.session.Picture, k.session.Busy, k.session.Texts = k.watch, k.picture, k.busy, texts
	fast.Elsewhere = k.session.Elsewhere
	k.bindPrints()
	k.bindReads()
	k.initDisplay()
	return k
}

// interrupted is asked by gpukit again and again while it is at work.
func (k *kernel) interrupted() bool {
	if !k.polled.Load() {
		k.polled.Store(true)
	}
	if k.session.Interrupted() {
		k.told.Store(time.Now().UnixNano())
		return true
	}
	return false
}

// busy reports whether gpukit has just heard that it is to stop: then it will.
func (k *kernel) busy() bool { return time.Now().UnixNano()-k.told.Load() < int64(time.Second) }

// serve runs the kernel for one Jupyter connection until it is shut down.
// supervised says that there is a first process, which looks after this one.
func serve(connectionFile string, supervised bool) error {
	data, err := os.ReadFile(connectionFile)
	if err != nil {
		return fmt.Errorf("cannot read the connection file: %w", err)
	}
	var info ConnectionInfo
	if err := json.Unmarshal(data, &info); err != nil {
		return fmt.Errorf("connection file %s: %w", connectionFile, err)
	}
	k := newKernel()
	var left estate
	if supervised {
		if left, err = k.takeOver(); err != nil {
			return err
		}
	}
	welcomed := make(chan string, 100)
	zmq4.Subscribed = func(topic string) {
		select {
		case welcomed <- topic:
		default: // nobody else waits so long
		}
	}
	sockets, err := prepareSockets(info)
	if err != nil {
		return err
	}
	startHeartbeat(sockets.HBSocket, &sync.WaitGroup{})
	// Whoever signals the process group reaches the first process, too, which passes it on.
	signal.Ignore(os.Interrupt)

	starting := msgReceipt{Sockets: sockets}
	go func() {
		for topic := range welcomed {
			if err := starting.Publish("iopub_welcome", map[string]string{"subscription": topic}); err != nil {
				logger.Println("iopub_welcome not sent:", err)
			}
		}
	}()
	k.status(starting, kernelStarting)
	if err := k.capture(starting); err != nil {
		return err
	}

	control := sockets
	control.ShellSocket = sockets.ControlSocket // so that replies go out where the request came in
	go func() {
		for {
			m := receive(sockets.ControlSocket, control)
			if m.err != nil {
				logger.Println("control channel:", m.err)
				continue
			}
			k.handle(m, controlHandlers)
		}
	}()
	go func() {
		for {
			m := receive(sockets.ShellSocket, sockets)
			if m.err != nil {
				logger.Println("shell channel:", m.err)
				continue
			}
			if questions[m.Msg.Header.MsgType] && k.executes() {
				m.id = k.journal.got(m.raw)
				k.handle(m, shellHandlers)
				k.journal.write(note{Kind: "done", ID: m.id})
				k.mu.Lock()
				cell := k.current
				k.mu.Unlock()
				if cell != nil && k.executes() { // front ends show the last status that came
					k.status(*cell, kernelBusy)
				}
				continue
			}
			m.id = k.journal.got(m.raw)
			k.mu.Lock()
			k.pending = append(k.pending, m)
			k.mu.Unlock()
			select {
			case k.arrived <- struct{}{}:
			default:
			}
		}
	}()
	go k.listen(sockets)
	k.journal.write(note{Kind: "ready"})
	k.inherit(left, sockets)
	for {
		<-k.arrived
		for {
			m, ok := k.next()
			if !ok {
				break
			}
			if m.Msg.Header.MsgType == "execute_request" {
				k.journal.write(note{Kind: "begun", ID: m.id, Count: k.count + 1})
				k.executing.Store(true)
			}
			k.handle(m, shellHandlers)
			k.executing.Store(false)
			k.journal.write(note{Kind: "done", ID: m.id})
		}
	}
}

// questions are answered while a cell runs, too: they change nothing.
var questions = map[string]bool{"complete_request": true, "inspect_request": true, "is_complete_request": true, "kernel_info_request": true, "comm_info_request": true}

// executes reports whether a cell runs or waits to run.
func (k *kernel) executes() bool {
	if k.executing.Load() {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.pending, func(m message) bool { return m.Msg.Header.MsgType == "execute_request" })
}

// next takes the oldest shell request.
func (k *kernel) next() (message, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.pending) == 0 {
		return message{}, false
	}
	m := k.pending[0]
	k.pending = k.pending[1:]
	return m, true
}

// takeExecutes removes the execute requests that wait behind a failed cell.
func (k *kernel) takeExecutes() []message {
	k.mu.Lock()
	defer k.mu.Unlock()
	var taken, kept []message
	for _, m := range k.pending {
		if m.Msg.Header.MsgType == "execute_request" {
			taken = append(taken, m)
		} else {
			kept = append(kept, m)
		}
	}
	k.pending = kept
	return taken
}

// lostConnection is the exit status of a process that nobody can reach any more.
const lostConnection = 1

// receive reads one message. A malformed or wrongly signed one is an error,
// never the end of the kernel; a dead socket is.
func receive(from Socket, answer SocketGroup) (m message) {
	raw, err := from.Socket.Recv()
	if err != nil {
		logger.Println("connection lost:", err)
		os.Exit(lostConnection)
	}
	defer func() {
		if r := recover(); r != nil {
			m.err = fmt.Errorf("malformed message: %v", r)
		}
	}()
	msg, ids, err := WireMsgToComposedMsg(raw.Frames, answer.Key)
	return message{msgReceipt: msgReceipt{msg, ids, answer}, err: err, raw: raw.Frames}
}

// handle answers one request, between a busy and an idle status.
func (k *kernel) handle(m message, handlers map[string]func(*kernel, msgReceipt)) {
	k.status(m.msgReceipt, kernelBusy)
	defer k.status(m.msgReceipt, kernelIdle)
	defer func() {
		if r := recover(); r != nil {
			k.refuse(m.msgReceipt, fmt.Sprint(r))
		}
	}()
	if h := handlers[m.Msg.Header.MsgType]; h != nil {
		h(k, m.msgReceipt)
	} else {
		k.refuse(m.msgReceipt, "this kernel does not handle "+m.Msg.Header.MsgType+" here")
	}
}

// refuse answers a request that went wrong, so that nobody waits for it.
func (k *kernel) refuse(r msgReceipt, why string) {
	const suffix = "_request"
	t := r.Msg.Header.MsgType
	if len(t) <= len(suffix) || t[len(t)-len(suffix):] != suffix {
		logger.Println("ignored:", why)
		return
	}
	k.reply(r, t[:len(t)-len(suffix)]+"_reply", errorContent("KernelError", why, []string{why}))
}

func errorContent(name, value string, trace []string) map[string]interface{} {
	return map[string]interface{}{"status": "error", "ename": name, "evalue": value, "traceback": trace}
}

func (k *kernel) reply(r msgReceipt, msgType string, content interface{}) {
	if err := r.Reply(msgType, content); err != nil {
		logger.Printf("%s not sent: %v", msgType, err)
	}
}

func (k *kernel) status(r msgReceipt, state string) {
	if err := r.PublishKernelStatus(state); err != nil {
		logger.Printf("status %s not sent: %v", state, err)
	}
}

// decode fills a struct with the content of a request.
func decode(r msgReceipt, into interface{}) {
	data, err := json.Marshal(r.Msg.Content)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		panic(fmt.Sprintf("cannot read the content of %s: %v", r.Msg.Header.MsgType, err))
	}
}
