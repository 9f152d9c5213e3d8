//go:build go1.21

package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/cosmos72/gomacro/xreflect"

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
	stringer xreflect.Type // fmt.Stringer, as the interpreter knows it

	mu      sync.Mutex
	current *msgReceipt     // the request that output belongs to
	shown   map[string]bool // display ids shown by the current cell
	pending []message       // shell requests not yet looked at
	arrived chan struct{}   // has room for one signal: pending is not empty
}

// message is a request together with the socket on which it is answered.
type message struct {
	msgReceipt
	err error
}

// newKernel starts the interpreter and everything else but the sockets.
func newKernel() *kernel {
	k := &kernel{shown: map[string]bool{}, arrived: make(chan struct{}, 1)}
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
	host.Attach(host.Host{Source: k.notebook, Interrupted: k.session.Interrupted, Update: k.update})
	k.initDisplay()
	return k
}

// serve runs the kernel for one Jupyter connection until it is shut down.
func serve(connectionFile string) error {
	data, err := os.ReadFile(connectionFile)
	if err != nil {
		return fmt.Errorf("cannot read the connection file: %w", err)
	}
	var info ConnectionInfo
	if err := json.Unmarshal(data, &info); err != nil {
		return fmt.Errorf("connection file %s: %w", connectionFile, err)
	}
	k := newKernel()
	sockets, err := prepareSockets(info)
	if err != nil {
		return err
	}
	startHeartbeat(sockets.HBSocket, &sync.WaitGroup{})
	followParent()

	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	go func() {
		for range interrupts {
			k.session.Interrupt()
		}
	}()

	starting := msgReceipt{Sockets: sockets}
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
			k.mu.Lock()
			k.pending = append(k.pending, m)
			k.mu.Unlock()
			select {
			case k.arrived <- struct{}{}:
			default:
			}
		}
	}()
	for {
		<-k.arrived
		for {
			m, ok := k.next()
			if !ok {
				break
			}
			k.handle(m, shellHandlers)
		}
	}
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

// receive reads one message. A malformed or wrongly signed one is an error,
// never the end of the kernel; a dead socket is.
func receive(from Socket, answer SocketGroup) (m message) {
	raw, err := from.Socket.Recv()
	if err != nil {
		logger.Println("connection lost:", err)
		os.Exit(1)
	}
	defer func() {
		if r := recover(); r != nil {
			m.err = fmt.Errorf("malformed message: %v", r)
		}
	}()
	msg, ids, err := WireMsgToComposedMsg(raw.Frames, answer.Key)
	return message{msgReceipt{msg, ids, answer}, err}
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

// capture takes over os.Stdout and os.Stderr for good. Text that a goroutine
// prints after its cell has ended still reaches the notebook, below the last
// cell that ran. The kernel's own log stays on the old standard error.
func (k *kernel) capture(first msgReceipt) error {
	k.current = &first
	var err error
	if k.out, err = stream.New(func(text string) { k.stream(StreamStdout, text) }); err != nil {
		return err
	}
	if k.err, err = stream.New(func(text string) { k.stream(StreamStderr, text) }); err != nil {
		return err
	}
	os.Stdout, os.Stderr = k.out.File(), k.err.File()
	log.SetOutput(os.Stderr) // the cells' log
	return nil
}

// flush passes on all text printed so far.
func (k *kernel) flush() {
	for _, s := range []*stream.Stream{k.out, k.err} {
		if err := s.Flush(5 * time.Second); err != nil {
			logger.Println(err)
		}
	}
}

// stream shows text below the current cell.
func (k *kernel) stream(name, text string) {
	if r := k.receipt(); r != nil {
		if err := r.PublishWriteStream(name, text); err != nil {
			logger.Println("text not sent:", err)
		}
	}
}

func (k *kernel) receipt() *msgReceipt {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// followParent ends the kernel when the Jupyter server that started it is gone.
func followParent() {
	parent := os.Getppid()
	if id, err := strconv.Atoi(os.Getenv("JPY_PARENT_PID")); err != nil || id != parent || id <= 1 {
		return
	}
	go func() {
		for range time.Tick(time.Second) {
			if os.Getppid() != parent {
				os.Exit(1)
			}
		}
	}()
}
