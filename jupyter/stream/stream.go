// Package stream captures what a process writes to a file and hands it on as
// text, in order and live: what is printed within a few hundredths of a second
// comes as one piece.
package stream

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unicode/utf8"
)

// A Stream is a pipe whose far end passes everything on.
type Stream struct {
	w      *os.File
	r      *os.File
	emit   func(text string)
	marker []byte

	mu      sync.Mutex // one Flush at a time
	flushed chan struct{}
}

// New starts a stream. emit is called from one goroutine with pieces of valid
// UTF-8; bytes that are not valid become U+FFFD.
func New(emit func(text string)) (*Stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	var id [12]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	s := &Stream{w: w, r: r, emit: emit, flushed: make(chan struct{}, 1)}
	// Shorter than the pipe's atomic unit, and nothing a program prints by chance.
	s.marker = []byte("\x00" + hex.EncodeToString(id[:]) + "\x00")
	go s.copy()
	return s, nil
}

// File returns the end to write to. It stays the same for the whole life of
// the stream, so that it can take the place of os.Stdout.
func (s *Stream) File() *os.File { return s.w }

// Flush returns when everything written before the call has been passed on. It
// gives up after the timeout, which only a blocked emit can make it need.
func (s *Stream) Flush(timeout time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.flushed: // of an earlier call that gave up
	default:
	}
	if _, err := s.w.Write(s.marker); err != nil {
		return err
	}
	select {
	case <-s.flushed:
		return nil
	case <-time.After(timeout):
		return fmt.Errorf("output not flushed within %v", timeout)
	}
}

// Close ends the stream.
func (s *Stream) Close() error { return s.w.Close() }

// Gather is how long text waits for more, and Full how many bytes of it wait at most.
// Front ends drop a kernel's text that comes in too many messages.
const (
	Gather = 50 * time.Millisecond
	Full   = 128 << 10
)

func (s *Stream) copy() {
	defer s.r.Close()
	buf := make([]byte, 32<<10)
	var pending []byte
	var due time.Time // when pending must be sent; zero if nothing waits
	for {
		// Without a deadline for pipes, on some systems, text goes out at once.
		canWait := s.r.SetReadDeadline(due) == nil
		n, err := s.r.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		pending = append(pending, buf[:n]...)
		for {
			i := bytes.Index(pending, s.marker)
			if i < 0 {
				break
			}
			s.send(pending[:i])
			pending, due = pending[i+len(s.marker):], time.Time{}
			select {
			case s.flushed <- struct{}{}:
			default:
			}
		}
		if err != nil {
			s.send(pending)
			return
		}
		keep := s.unfinished(pending)
		now := time.Now()
		switch {
		case len(pending) == keep:
			due = time.Time{} // the rest will come with its next byte
			continue
		case due.IsZero():
			due = now.Add(Gather)
		}
		if canWait && len(pending) < Full && now.Before(due) {
			continue
		}
		s.send(pending[:len(pending)-keep])
		pending, due = append([]byte(nil), pending[len(pending)-keep:]...), time.Time{}
	}
}

// unfinished counts the bytes at the end that may belong to a marker or a
// character of which the rest is still to come.
func (s *Stream) unfinished(b []byte) int {
	for n := min(len(b), len(s.marker)-1); n > 0; n-- {
		if bytes.HasPrefix(s.marker, b[len(b)-n:]) {
			return n
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			break
		}
	}
	return 0
}

func (s *Stream) send(b []byte) {
	if len(b) > 0 {
		s.emit(string(bytes.ToValidUTF8(b, []byte("\uFFFD"))))
	}
}
