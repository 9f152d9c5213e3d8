//go:build cuda

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"gpunotes/gpukit/internal/driver"
)

// What a program is asked to do during a call, or at any time by the connection for memory. The numbers are in libcuda.c.
const (
	wireDone uint32 = iota
	wireRead
	wireWrite
	wireString
	wireMap
	wireUnmap
)

const (
	argumentCount = 11
	nameBytes     = 72
	pieceBytes    = 1 << 20
)

// lost is the panic of a connection that is no more.
type lost struct{}

// wire is a connection to a thread of the program. What it only sends waits until there is an answer to wait for.
type wire struct {
	r *bufio.Reader
	w *bufio.Writer
}

func newWire(c net.Conn) *wire {
	return &wire{bufio.NewReaderSize(c, 1<<16), bufio.NewWriterSize(c, 1<<16)}
}

func (w *wire) message(op uint32, result driver.Code, address, length uint64) {
	var m [24]byte
	binary.LittleEndian.PutUint32(m[:], op)
	binary.LittleEndian.PutUint32(m[4:], uint32(result))
	binary.LittleEndian.PutUint64(m[8:], address)
	binary.LittleEndian.PutUint64(m[16:], length)
	w.w.Write(m[:]) // errors stay, and come with Flush
}

func (w *wire) flush() {
	if w.w.Flush() != nil {
		panic(lost{})
	}
}

func (w *wire) receive(b []byte) {
	if _, err := io.ReadFull(w.r, b); err != nil {
		panic(lost{})
	}
}

// read reads memory of the program.
func (w *wire) read(b []byte, address uint64) {
	for len(b) > 0 {
		n := min(len(b), pieceBytes)
		w.message(wireRead, 0, address, uint64(n))
		w.flush()
		w.receive(b[:n])
		b, address = b[n:], address+uint64(n)
	}
}

// gather reads up to 8 bytes from each of several places, in one exchange.
func (w *wire) gather(addresses []uint64, sizes []int) []uint64 {
	for i, a := range addresses {
		w.message(wireRead, 0, a, uint64(sizes[i]))
	}
	w.flush()
	values := make([]uint64, len(addresses))
	for i := range addresses {
		var b [8]byte
		w.receive(b[:sizes[i]])
		values[i] = binary.LittleEndian.Uint64(b[:])
	}
	return values
}

// words reads n numbers of 8 bytes.
func (w *wire) words(address uint64, n int) []uint64 {
	b := make([]byte, 8*n)
	w.read(b, address)
	values := make([]uint64, n)
	for i := range values {
		values[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return values
}

// write writes memory of the program; it has happened when the call is over, or after the next read.
func (w *wire) write(address uint64, b []byte) {
	if len(b) > 0 {
		w.message(wireWrite, 0, address, uint64(len(b)))
		w.w.Write(b)
	}
}

func (w *wire) put32(address uint64, v int) {
	w.write(address, binary.LittleEndian.AppendUint32(nil, uint32(v)))
}

func (w *wire) put64(address, v uint64) {
	w.write(address, binary.LittleEndian.AppendUint64(nil, v))
}

// putText writes a C string of at most n bytes.
func (w *wire) putText(address uint64, n int, s string) {
	if n > 0 {
		w.write(address, append([]byte(s[:min(len(s), n-1)]), 0))
	}
}

func (w *wire) text(address uint64) string {
	w.message(wireString, 0, address, 0)
	w.flush()
	var n [8]byte
	w.receive(n[:])
	b := make([]byte, binary.LittleEndian.Uint64(n[:]))
	w.receive(b)
	return string(b)
}

// mapped gives n bytes of new memory of the program, 0 if it has none.
func (w *wire) mapped(n uint64) uint64 {
	w.message(wireMap, 0, 0, n)
	w.flush()
	var b [8]byte
	w.receive(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (w *wire) unmap(address, n uint64) { w.message(wireUnmap, 0, address, n) }

// call is a call of an entry point: its arguments are 64 bits each, of which the lower ones of an int are its own.
type call struct {
	name string
	x    [argumentCount]uint64
}

func (c *call) int(i int) int { return int(int32(c.x[i])) }

func (w *wire) next() (*call, bool) {
	var b [8*argumentCount + nameBytes]byte
	if _, err := io.ReadFull(w.r, b[:]); err != nil {
		return nil, false
	}
	c := &call{name: string(bytes.TrimRight(b[8*argumentCount:], "\x00"))}
	for i := range c.x {
		c.x[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return c, true
}

// hostMemory is the memory of the program, reached while no call waits for it.
type hostMemory struct {
	mu sync.Mutex
	w  *wire
}

func (h *hostMemory) read(b []byte, address uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer gone()
	h.w.read(b, address)
}

// gone ends this process if the program is gone while work is done.
func gone() {
	if r := recover(); r != nil {
		os.Exit(0)
	}
}

// write writes the pieces of b that ranges names, by their first and last index.
func (h *hostMemory) write(address uint64, b []byte, ranges ...[2]int) {
	if len(ranges) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	defer gone()
	for _, r := range ranges {
		h.w.write(address+uint64(r[0]), b[r[0]:r[1]])
	}
	h.w.read(make([]byte, 1), address) // so that it has happened
}

// serve answers the library that started this process, until the pipe from it is closed.
func serve(name string) error {
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		return err
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	m := newMock(os.LookupEnv)
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		return err
	}
	os.Stdout.Close()
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		var kind [1]byte
		if _, err := io.ReadFull(c, kind[:]); err != nil {
			c.Close()
			continue
		}
		if kind[0] == 'm' {
			m.host.w = newWire(c) // before the first call
			continue
		}
		go m.thread(c)
	}
}

// thread answers the calls of one thread.
func (m *mock) thread(c net.Conn) {
	defer c.Close()
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(lost); !ok {
				panic(r)
			}
		}
	}()
	t := &thread{wire: newWire(c), m: m}
	for {
		k, ok := t.next()
		if !ok {
			return
		}
		code := t.answer(k)
		if code != 0 && m.set.verbose && code != notReady {
			fmt.Fprintf(os.Stderr, "mock libcuda: %s: %v\n", k.name, code)
		}
		t.message(wireDone, code, 0, 0)
		t.flush()
	}
}
