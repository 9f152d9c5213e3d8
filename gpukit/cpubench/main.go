// Command cpubench does the works of bench.py through gpukit and in plain Go. It
// reads requests, one a line, and answers each with a JSON object:
//
//	time   WORK VARIANT THREADS REPETITIONS  {"ns": [...]}, after one that is not timed
//	check  WORK VARIANT THREADS FILE         the largest difference between gpukit's result and the float64 in FILE
//	dump   WORK VARIANT THREADS FILE         writes the result as float64
//	compile KERNEL VARIANT 1 REPETITIONS     {"ns": [...]}: the first call of a kernel on a new device, less the second
//
// Fields are separated by tabs. Its first line says what it is.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gpunotes/gpukit"
)

// answer is empty but for what the request asked for.
type answer struct {
	NS    []float64 `json:"ns,omitempty"`
	ULP   *float64  `json:"ulp,omitempty"`
	Part  *float64  `json:"part,omitempty"`
	Error string    `json:"error,omitempty"`
}

type server struct {
	*bench
	works map[string]*work
}

func (s *server) work(name, variant string, threads int) (*work, error) {
	key := fmt.Sprint(name, "/", variant, "/", threads)
	w, err := s.works[key], error(nil)
	if w == nil {
		if w, err = s.make(name, variant, threads); err != nil {
			return nil, err
		}
		s.works[key] = w
	}
	return w, nil
}

func (s *server) answer(line string) (out answer, err error) {
	defer func() { // what cannot be made panics with a *gpukit.ShapeError
		if x := recover(); x != nil {
			err = fmt.Errorf("%v", x)
		}
	}()
	f := strings.Split(line, "\t")
	if len(f) != 5 {
		return out, fmt.Errorf("%d fields in %q, five are wanted", len(f), line)
	}
	threads, err := strconv.Atoi(f[3])
	if err != nil || threads < 1 {
		return out, fmt.Errorf("threads %q", f[3])
	}
	repetitions := func() (int, error) {
		n, err := strconv.Atoi(f[4])
		if err != nil || n < 1 {
			return 0, fmt.Errorf("repetitions %q", f[4])
		}
		return n, nil
	}
	if f[0] == "compile" {
		n, err := repetitions()
		if err != nil {
			return out, err
		}
		for range n {
			first, second, err := s.compile(f[1], f[2])
			if err != nil {
				return out, err
			}
			out.NS = append(out.NS, float64(first-second))
		}
		return out, nil
	}
	w, err := s.work(f[1], f[2], threads)
	if err != nil {
		return out, err
	}
	switch f[0] {
	case "time":
		n, err := repetitions()
		if err != nil {
			return out, err
		}
		if err := w.run(); err != nil {
			return out, err
		}
		for range n {
			start := time.Now()
			err := w.run()
			out.NS = append(out.NS, float64(time.Since(start)))
			if err != nil {
				return out, err
			}
		}
		return out, nil
	case "dump":
		if err := w.run(); err != nil {
			return out, err
		}
		return out, writeNumbers(f[4], w.result())
	case "check":
		if err := w.run(); err != nil {
			return out, err
		}
		theirs, err := readNumbers(f[4])
		if err != nil {
			return out, err
		}
		most, part, err := difference(w.result(), theirs)
		out.ULP, out.Part = &most, &part
		return out, err
	}
	return out, fmt.Errorf("no request %q", f[0])
}

// compile takes the times of the first two calls of a kernel. The first one has to find
// source, types, code, and unless the variant is fastmath the self-check.
func (s *server) compile(name, variant string) (first, second time.Duration, err error) {
	d, err := gpukit.Open("cpu")
	if err != nil {
		return 0, 0, err
	}
	defer d.Close()
	if variant == "fastmath" {
		d = d.With(gpukit.FastMath())
	}
	call, err := s.smallest(d, name)
	if err != nil {
		return 0, 0, err
	}
	for _, took := range []*time.Duration{&first, &second} {
		start := time.Now()
		if err := call(); err != nil {
			return 0, 0, err
		}
		*took = time.Since(start)
	}
	return first, second, nil
}

func writeNumbers(file string, x []float64) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(binary.Write(w, binary.LittleEndian, x), w.Flush(), f.Close())
}

func readNumbers(file string) ([]float64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	x := make([]float64, len(b)/8)
	_, err = binary.Decode(b, binary.LittleEndian, x)
	return x, err
}

// about says what gpukit executes kernels with on this machine, and how it stores
// the large results of discount.
func (s *server) about() (engine, stores string, err error) {
	p, err := s.devices[0].Explain(product, gpukit.FromFlat(s.small(), columns, five), gpukit.FromFlat(s.discount(), s.rows, columns, five))
	if err != nil {
		return "", "", err
	}
	stores = "plain"
	if strings.Contains(p.Code, "vmovntpd") {
		stores = "streaming"
	}
	return p.Engine, stores, nil
}

func serve(b *bench, in io.Reader, out io.Writer) error {
	s := &server{b, map[string]*work{}}
	answers := json.NewEncoder(out)
	engine, stores, err := s.about()
	if err != nil {
		return err
	}
	if err := answers.Encode(map[string]string{"peer": "gpukit", "version": runtime.Version(), "engine": engine, "stores": stores}); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		a, err := s.answer(lines.Text())
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

// parse reads the sizes as bench.py gives them, in the order of the fields.
func parse(args []string) (s sizes, err error) {
	to := []*int{&s.rows, &s.side, &s.options, &s.pixels, &s.most, &s.matrices, &s.resident, &s.repeats, &s.processor}
	if len(args) != len(to) {
		return s, fmt.Errorf("%d sizes, %d are wanted; bench.py calls this program", len(args), len(to))
	}
	for i, a := range args {
		if *to[i], err = strconv.Atoi(a); err != nil || *to[i] < 1 {
			return s, fmt.Errorf("size %q", a)
		}
	}
	return s, nil
}

func main() {
	flag.Parse()
	s, err := parse(flag.Args())
	if err == nil {
		runtime.GOMAXPROCS(s.processor)
		var b *bench
		if b, err = newBench(s); err == nil {
			err = serve(b, os.Stdin, os.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
