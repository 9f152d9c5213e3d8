package gpukit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gpunotes/gpukit/internal/cpu"
	"gpunotes/gpukit/simt"
	"gpunotes/gpukit/trace"
)

func printsFloats(x []float64, y []float32) {
	i := simt.Grid1()
	println("begin")
	for k := 0; k < i%4; k++ {
		println(i, ":", k, "of", i%4, x[i], y[i], "end")
		if k%2 == 1 {
			println(k)
		}
	}
	println(i, x[i] > 0, y[i] != y[i])
}

func printsIntegers(a []int8, b []int16, c []int32, d []int64) {
	i := simt.Grid1()
	println("signed", a[i], b[i], c[i], d[i])
	println("unsigned", uint8(a[i]), uint16(b[i]), uint32(c[i]), uint64(d[i]), uint64(math.MaxUint64), "constant", 1.5, true)
}

func printsSome(n, times int, x []float64) {
	if i := simt.Grid1(); i < n {
		for k := 0; k < times; k++ {
			println(i, k)
			if i == len(x) {
				println("out of range")
				x[i] = 1
			}
		}
	}
}

func printsElement(x float64) float64 {
	println("element", x)
	if x < 0 {
		println("negative")
	}
	return 2 * x
}

func printsSlice(x []float64, out []float64) {
	for i := range x {
		println(i, x[i])
		out[i] = 10 / x[i]
	}
	println()
}

func printsAround(x []float64) {
	var s [64]float64
	simt.Shared(&s)
	i := simt.ThreadIdx().X
	println("before", simt.BlockIdx().X, i)
	s[i] = x[i]
	simt.SyncThreads()
	println("after", s[63-i])
}

func printsForEver(x []float64) {
	i := simt.Grid1()
	println("worker", i)
	for x[0] == 0 {
		x[i+1]++
	}
}

// TestPrint: the same text, to the letter, from every kind of device.
func TestPrint(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	var a []int8
	var b []int16
	var c []int32
	var i64 []int64
	for k := range 70 {
		x := int64(math.MinInt64)>>(k%64) + int64(k)
		a, b, c, i64 = append(a, int8(x)), append(b, int16(x)), append(c, int32(x)), append(i64, x)
	}
	x := make([]float64, 70)
	y := make([]float32, 70)
	copy(x, []float64{0, math.Copysign(0, -1), nan, inf, -inf, math.MaxFloat64, 5e-324, 1.0 / 3, 1e21, 123456789})
	copy(y, []float32{0, float32(math.Copysign(0, -1)), float32(nan), float32(inf), -float32(inf), math.MaxFloat32, 1e-45, 1.0 / 3, 1e21, 16777216})
	for k := 10; k < 70; k++ {
		x[k], y[k] = float64(k)/8-5, float32(k)/7-5
	}
	for _, c := range []struct {
		name  string
		lines int // how many are expected
		run   func(d *Device) error
	}{
		{"floats", 0, func(d *Device) error { return d.Launch(printsFloats, Blocks(7), Threads(10), x, y) }},
		{"integers", 140, func(d *Device) error { return d.Launch(printsIntegers, Blocks(2), Threads(35), a, b, c, i64) }},
		{"Vectorize", 70 + 31, func(d *Device) error { return second(d.Vectorize(printsElement, x)) }},
		{"GUVectorize", 3 * 6, func(d *Device) error { return second(d.GUVectorize(printsSlice, "(n)->(n)", Arange(15).Reshape(3, 5))) }},
		{"one worker", 1, func(d *Device) error { return second(d.Vectorize(printsElement, 2.0)) }},
		{"barrier", 3 * 64 * 2, func(d *Device) error { return d.Launch(printsAround, Blocks(3), Threads(64), Arange(64).copy()) }},
		{"nothing printed", 0, func(d *Device) error { return d.Launch(printsSome, Blocks(3), Threads(64), 0, 5, Zeros(0)) }},
		{"a failure", 5*3 + 2, func(d *Device) error { return d.Launch(printsSome, Blocks(4), Threads(8), 32, 3, Zeros(5)) }},
		{"all that is shown", cpu.MaxLines, func(d *Device) error { return d.Launch(printsSome, Blocks(80), Threads(64), 5000, 2, Zeros(5120)) }},
		{"one more", cpu.MaxLines + 1, func(d *Device) error { return d.Launch(printsSome, Blocks(79), Threads(128), 10001, 1, Zeros(10200)) }},
		{"too many", cpu.MaxLines + 1, func(d *Device) error { return d.Launch(printsSome, Blocks(40), Threads(64), 2500, 8, Zeros(2560)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want string
			var failed error
			for i, name := range []string{"cpu", "parallel", "sim:quadro-k2000", "sim:h200"} {
				d := MustOpen(name)
				var err error
				text := stdout(t, func() { err = c.run(d) })
				d.Close()
				if i == 0 {
					want, failed = text, err
					if n := strings.Count(text, "\n"); c.lines > 0 && n != c.lines {
						t.Errorf("%d lines, want %d:\n%.2000s", n, c.lines, text)
					}
					continue
				}
				if (err == nil) != (failed == nil) || err != nil && err.Error() != failed.Error() {
					t.Errorf("%s: %v, want %v", name, err, failed)
				}
				if text != want {
					t.Errorf("%s prints\n%.2000s\nwant\n%.2000s", name, text, want)
				}
			}
		})
	}
}

// TestPrintStopped: what was printed before a kernel was stopped is shown.
func TestPrintStopped(t *testing.T) {
	eachKind(t, func(t *testing.T, d *Device) {
		if _, err := d.ExplainLaunch(printsForEver, Blocks(1), Threads(2), Zeros(3)); err != nil { // which compiles it
			t.Fatal(err)
		}
		time.AfterFunc(200*time.Millisecond, func() { d.Close() })
		var err error
		text := stdout(t, func() { err = d.Launch(printsForEver, Blocks(1), Threads(2), Zeros(3)) })
		if err == nil || text != "worker 0\nworker 1\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func printsAlways(out []float64) {
	for i := 0; out[0] == 0; i++ {
		println(i)
	}
}

// TestEndlessPrinting: a loop that does little but print is stopped, too.
func TestEndlessPrinting(t *testing.T) {
	for _, e := range cpu.Engines() {
		d := openCores(e, 1)
		time.AfterFunc(200*time.Millisecond, func() { d.Close() })
		var err error
		done := make(chan string, 1)
		go func() {
			done <- stdout(t, func() { err = d.Launch(printsAlways, Blocks(1), Threads(2), Zeros(3)) })
		}()
		select {
		case text := <-done:
			if err == nil || !strings.HasPrefix(text, "0\n") {
				t.Errorf("%v: %.40q, %v", e, text, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%v does not stop", e)
		}
	}
}

// TestPrintTraced: a trace shows the launch, and not what gpukit copies to get at
// the lines.
func TestPrintTraced(t *testing.T) {
	d := quadro(t)
	var lines []string
	d.printed = func(s string) { lines = append(lines, s) }
	x := Must(d.Put(Zeros(4)))
	d.StartTrace()
	if err := d.Launch(prints, Blocks(2), Threads(2), x); err != nil {
		t.Fatal(err)
	}
	rs := d.StopTrace().Records
	if len(rs) != 1 || rs[0].Kind != trace.Launch || len(lines) != 4 {
		t.Error(rs, lines)
	}
}

// TestPrintLost: lines that there is no room for are counted, on a GPU.
func TestPrintLost(t *testing.T) {
	d := quadro(t)
	var lines []string
	d.printed = func(s string) { lines = append(lines, s) }
	defer func(n int) { printRoom = n }(printRoom)
	for _, c := range []struct{ room, lines, shown int }{{100, 250, 100}, {100, 101, 100}, {100, 100, 100}, {12_000, 15_000, cpu.MaxLines}} {
		lines = nil
		printRoom = c.room * 8 * 3 // a line of two numbers
		if err := d.Launch(printsSome, Blocks(1), Threads(1), 1, c.lines, Zeros(2)); err != nil {
			t.Fatal(err)
		}
		var want []string
		for k := range c.shown {
			want = append(want, fmt.Sprint(0, k))
		}
		if more := c.lines - c.shown; more > 0 {
			want = append(want, fmt.Sprintf("... and %d more lines", more))
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%+v: %d lines: %.300q", c, len(lines), lines)
		}
	}
}
