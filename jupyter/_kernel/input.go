//go:build go1.21

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gpunotes/jupyter/cell"
)

// asker is the standard input of cells: to read from it asks the user for a line.
type asker struct {
	k    *kernel
	rest []byte
}

func (a *asker) Read(p []byte) (int, error) {
	if len(a.rest) == 0 {
		line, err := a.k.ask("", false)
		if err != nil {
			return 0, err
		}
		a.rest = []byte(line + "\n")
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// errNoInput is what reading gives where nobody can be asked, as in nbconvert.
var errNoInput = errors.New("nobody can be asked here: the program that runs this notebook takes no input")

// ask shows a prompt with a field to type into, and returns what was typed.
func (k *kernel) ask(prompt string, secret bool) (string, error) {
	k.asking.Lock()
	defer k.asking.Unlock()
	k.mu.Lock()
	r, allowed := k.current, k.mayAsk
	k.mu.Unlock()
	if r == nil || !allowed {
		return "", errNoInput
	}
	k.flush() // what was printed before stands above the field
	for {
		select {
		case <-k.answers: // to a question that was interrupted
			continue
		default:
		}
		break
	}
	where := *r
	where.Sockets.ShellSocket = r.Sockets.StdinSocket
	if err := where.Reply("input_request", map[string]interface{}{"prompt": prompt, "password": secret}); err != nil {
		return "", fmt.Errorf("the question could not be sent: %w", err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case line := <-k.answers:
			return line, nil
		case <-tick.C:
			if k.session.Interrupted() {
				return "", &cell.Error{Name: "Interrupted", Message: "interrupted", Interrupted: true}
			}
		}
	}
}

// listen takes the answers of users.
func (k *kernel) listen(sockets SocketGroup) {
	for {
		m := receive(sockets.StdinSocket, sockets)
		if m.err != nil {
			logger.Println("stdin channel:", m.err)
			continue
		}
		var said struct {
			Value string `json:"value"`
		}
		data, err := json.Marshal(m.Msg.Content)
		if err == nil {
			err = json.Unmarshal(data, &said)
		}
		if m.Msg.Header.MsgType != "input_reply" || err != nil {
			logger.Println("ignored on the stdin channel:", m.Msg.Header.MsgType, err)
			continue
		}
		select {
		case k.answers <- said.Value:
		default: // nobody asked
		}
	}
}

// bindReads lets the functions that read from standard input ask the user.
func (k *kernel) bindReads() {
	in := bufio.NewReader(&asker{k: k})
	from := func(r io.Reader) io.Reader {
		if r == os.Stdin {
			return in
		}
		return r
	}
	rebind("fmt", map[string]interface{}{
		"Scan":    func(args ...interface{}) (int, error) { return fmt.Fscan(in, args...) },
		"Scanln":  func(args ...interface{}) (int, error) { return fmt.Fscanln(in, args...) },
		"Scanf":   func(format string, args ...interface{}) (int, error) { return fmt.Fscanf(in, format, args...) },
		"Fscan":   func(r io.Reader, args ...interface{}) (int, error) { return fmt.Fscan(from(r), args...) },
		"Fscanln": func(r io.Reader, args ...interface{}) (int, error) { return fmt.Fscanln(from(r), args...) },
		"Fscanf": func(r io.Reader, format string, args ...interface{}) (int, error) {
			return fmt.Fscanf(from(r), format, args...)
		},
	})
	rebind("bufio", map[string]interface{}{
		"NewReader":     func(r io.Reader) *bufio.Reader { return bufio.NewReader(from(r)) },
		"NewReaderSize": func(r io.Reader, n int) *bufio.Reader { return bufio.NewReaderSize(from(r), n) },
		"NewScanner":    func(r io.Reader) *bufio.Scanner { return bufio.NewScanner(from(r)) },
	})
}
