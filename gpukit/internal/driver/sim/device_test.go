package sim

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/ptx"
)

// TestRefusals: what a card does not take is an error of the right code that says why.
func TestRefusals(t *testing.T) {
	d := open(t, "quadro-k2000", Options{})
	for _, c := range []struct {
		image string
		code  driver.Code
		text  string
	}{
		{"", driver.InvalidImage, "empty"},
		{"\x7fELF....", driver.NoBinaryForGPU, "machine code"},
		{"hello", driver.InvalidPTX, "version"},
		{".version 6.0\n.target sm_30\n.address_size 64\n.visible .entry k() { add.f65 %r0; }", driver.InvalidPTX, "f65"},
		{".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }", driver.NoBinaryForGPU, "sm_70 is above Quadro K2000, which is sm_30"},
		{".version 8.6\n.target sm_30\n.address_size 64\n.visible .entry k() { ret; }", driver.UnsupportedPTXVersion, "Unsupported .version 8.6"},
		{".version 6.0\n.target sm_30\n.address_size 32\n.visible .entry k() { ret; }", driver.InvalidPTX, "64"},
		{".version 6.0\n.target sm_30\n.address_size 64\n.const .f64 c[9000];\n.visible .entry k() { ret; }", driver.InvalidPTX, "constant data"},
		{".version 6.0\n.target sm_30\n.address_size 64\n.visible .entry k(.param .u64 a) { .reg .b64 %rd; ld.global.nc.u64 %rd, [a]; ret; }", driver.InvalidPTX, ""},
	} {
		_, err := d.Load([]byte(c.image))
		if code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%q: %v", c.image, err)
		}
	}
	m, err := d.Load([]byte(kernelText("sm_30", "a b", "ret;") + "\x00"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Function("other"); code(err) != driver.NotFound {
		t.Errorf("%v", err)
	}
	f, _ := m.Function("k")
	one := driver.Dim{X: 1, Y: 1, Z: 1}
	for _, c := range []struct {
		l    driver.Launch
		code driver.Code
		text string
	}{
		{driver.Launch{Grid: one, Block: one, Params: []uint64{1}}, driver.InvalidValue, "1 parameters, but it has 2"},
		{driver.Launch{Grid: one, Block: driver.Dim{X: 2000, Y: 1, Z: 1}, Params: []uint64{1, 2}}, driver.InvalidValue, "1024"},
		{driver.Launch{Grid: driver.Dim{X: 1, Y: 70000, Z: 1}, Block: one, Params: []uint64{1, 2}}, driver.InvalidValue, "65535"},
		{driver.Launch{Grid: driver.Dim{}, Block: one, Params: []uint64{1, 2}}, driver.InvalidValue, "at least 1"},
		{driver.Launch{Grid: one, Block: one, Shared: 1 << 20, Params: []uint64{1, 2}}, driver.InvalidValue, "shared"},
	} {
		if err := f.Launch(c.l); code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%+v: %v", c.l, err)
		}
	}
	if err := f.Launch(driver.Launch{Grid: one, Block: one, Params: []uint64{1, 2}}); err != nil {
		t.Error(err)
	}
	if err := m.Unload(); err != nil {
		t.Error(err)
	}
	if err := f.Launch(driver.Launch{Grid: one, Block: one, Params: []uint64{1, 2}}); code(err) != driver.InvalidHandle {
		t.Errorf("%v", err)
	}
	if _, err := (Driver{}).Open(99); code(err) != driver.InvalidDevice {
		t.Errorf("%v", err)
	}
	for i := range CardNames() {
		if d, err := (Driver{}).Open(i); err != nil || d.Info().Multiprocessors == 0 {
			t.Errorf("%v", err)
		}
	}
	bounded := loadKernel(t, d, strings.Replace(kernelText("sm_30", "", "ret;"), "k()", "k()\n.reqntid 32, 2, 1", 1))
	if bounded.Attributes().MaxThreads != 64 {
		t.Errorf("%+v", bounded.Attributes())
	}
	if err := bounded.Launch(driver.Launch{Grid: one, Block: driver.Dim{X: 64, Y: 1, Z: 1}}); code(err) != driver.InvalidValue || !strings.Contains(err.Error(), "reqntid") {
		t.Errorf("%v", err)
	}
}

// TestMemoryOfADevice: the card's capacity, errors that leave it usable, and the end.
func TestMemoryOfADevice(t *testing.T) {
	d := open(t, "quadro-k2000", Options{})
	free, total, err := d.MemInfo()
	if err != nil || free != total || total != d.Info().Memory {
		t.Fatal(free, total, err)
	}
	big, err := d.Alloc(total / 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Alloc(total/2 + 1); code(err) != driver.OutOfMemory {
		t.Errorf("%v", err)
	}
	if free, _, _ = d.MemInfo(); free != total-total/2 {
		t.Errorf("%d of %d free", free, total)
	}
	if _, err := d.Alloc(0); code(err) != driver.InvalidValue {
		t.Errorf("%v", err)
	}
	p, err := d.Alloc(100)
	if err != nil || p%256 != 0 || uint64(p) < globalWindow {
		t.Errorf("%#x %v", uint64(p), err)
	}
	if err := d.CopyIn(p, bytes.Repeat([]byte{7}, 101)); code(err) != driver.InvalidValue {
		t.Errorf("%v", err)
	}
	if err := d.CopyIn(p+1, []byte("hello")); err != nil {
		t.Error(err)
	}
	if err := d.Copy(p+50, p+1, 5); err != nil {
		t.Error(err)
	}
	if err := d.Copy(p+3, p+1, 5); code(err) != driver.InvalidValue {
		t.Errorf("%v", err)
	}
	if err := d.Fill(p+55, '!', 2); err != nil {
		t.Error(err)
	}
	got := make([]byte, 8)
	if err := d.CopyOut(got, p+49); err != nil || string(got) != "\x00hello!!" {
		t.Errorf("%q %v", got, err)
	}
	if err := d.Free(p + 8); code(err) != driver.InvalidValue {
		t.Errorf("%v", err)
	}
	for _, q := range []driver.Ptr{p, big, 0} {
		if err := d.Free(q); err != nil {
			t.Error(err)
		}
	}
	if err := d.Free(p); code(err) != driver.InvalidValue {
		t.Errorf("a second time: %v", err)
	}
	if free, _, _ = d.MemInfo(); free != total {
		t.Errorf("%d of %d free", free, total)
	}
	m, err := d.Load([]byte(".version 3.1\n.target sm_30\n.address_size 64\n.global .align 8 .u32 v[3] = {5, 6};\n.const .f64 c = 0d3FF0000000000000;\n"))
	if err != nil {
		t.Fatal(err)
	}
	at, size, err := m.Global("v")
	b := make([]byte, 12)
	if err2 := d.CopyOut(b, at); err != nil || err2 != nil || size != 12 || b[0] != 5 || b[4] != 6 || b[8] != 0 {
		t.Errorf("%v %v %d %v", err, err2, size, b)
	}
	if err := d.Free(at); code(err) != driver.InvalidValue {
		t.Errorf("a variable: %v", err)
	}
	if _, _, err := m.Global("w"); code(err) != driver.NotFound {
		t.Errorf("%v", err)
	}
	m.Unload()
	if free, _, _ = d.MemInfo(); free != total {
		t.Errorf("%d of %d free", free, total)
	}
	if d.Close() != nil || d.Close() != nil {
		t.Error("Close")
	}
	if _, err := d.Alloc(1); code(err) != driver.Deinitialized {
		t.Errorf("%v", err)
	}
	if err := d.Sync(); code(err) != driver.Deinitialized {
		t.Errorf("%v", err)
	}
}

// TestMemoryOfTheMachine: a card has more than the machine that simulates it, which is an error too, not the end.
func TestMemoryOfTheMachine(t *testing.T) {
	left := uint64(1 << 30)
	d := open(t, "h200", Options{HostBytes: func() uint64 { return left }})
	p, err := d.Alloc(600 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Fill(p, 0, 600<<20); err != nil || d.mem.touched != 0 {
		t.Errorf("%v, %d bytes touched", err, d.mem.touched)
	}
	if _, err := d.Alloc(600 << 20); code(err) != driver.OutOfMemory || !strings.Contains(err.Error(), "this machine") {
		t.Errorf("%v", err)
	}
	if err := d.Fill(p+5, 3, 1); err != nil || d.mem.touched != pageBytes {
		t.Errorf("%v, %d bytes touched", err, d.mem.touched)
	}
	if err := d.Fill(p, 0, 600<<20); err != nil {
		t.Error(err)
	}
	b := make([]byte, 1)
	if err := d.CopyOut(b, p+5); err != nil || b[0] != 0 {
		t.Errorf("%v %v", b, err)
	}
	d.Free(p)
	if d.mem.touched != 0 {
		t.Errorf("%d bytes touched", d.mem.touched)
	}
	if _, err := d.Alloc(900 << 20); err != nil {
		t.Error(err)
	}
}

// TestAddresses: addresses that were given back are used again in the end.
func TestAddresses(t *testing.T) {
	d := open(t, "h200", Options{})
	keep := alloc(t, d, []byte{1, 2, 3})
	for range 30 {
		p, err := d.Alloc(100 << 30)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.CopyIn(p+50<<30, []byte{9}); err != nil {
			t.Fatal(err)
		}
		if uint64(p) < globalWindow || uint64(p)+100<<30 > sharedWindow || uint64(p) <= keep && keep < uint64(p)+100<<30 {
			t.Fatalf("%#x", uint64(p))
		}
		if err := d.Free(p); err != nil {
			t.Fatal(err)
		}
	}
	b := make([]byte, 3)
	if err := d.CopyOut(b, driver.Ptr(keep)); err != nil || b[2] != 3 {
		t.Errorf("%v %v", b, err)
	}
}

// TestRecords: each operation is reported with its size, place in time and what it was.
func TestRecords(t *testing.T) {
	d := open(t, "quadro-k2000", Options{})
	f := loadKernel(t, d, kernelText("sm_30", "a", "ld.global.u64 %rd1, [%rda]; ret;"))
	var got []driver.Record
	d.Record(func(r driver.Record) { got = append(got, r) })
	p := alloc(t, d, make([]byte, 1<<20))
	l := driver.Launch{Grid: driver.Dim{X: 4, Y: 1, Z: 1}, Block: driver.Dim{X: 64, Y: 1, Z: 1}, Params: []uint64{p}}
	if err := f.Launch(l); err != nil {
		t.Fatal(err)
	}
	readWords(t, d, p, 1)
	d.Fill(driver.Ptr(p), 0, 100)
	d.Record(nil)
	readWords(t, d, p, 1)
	if len(got) != 4 {
		t.Fatalf("%d records", len(got))
	}
	for i, want := range []driver.Operation{driver.HostToDevice, driver.Kernel, driver.DeviceToHost, driver.Memset} {
		r := got[i]
		if r.Op != want || !r.Simulated || r.Duration <= 0 || i > 0 && r.Start < got[i-1].Start+got[i-1].Duration {
			t.Errorf("%d: %+v", i, r)
		}
	}
	k := got[1]
	if s, ok := k.Stats.(*Stats); !ok || s.Classes[LoadGlobal] != (Count{8, 256}) || s.Memory == nil || s.Memory.Global[Loads].Accesses != 8 || k.Launch.Grid.X != 4 || k.Attributes.Name != "k" || k.Launch.Params != nil {
		t.Errorf("%+v", k)
	}
	if got[0].Bytes != 1<<20 || got[2].Bytes != 8 || got[3].Bytes != 100 {
		t.Error("bytes")
	}
}

// TestCounts has the counts of a small kernel by class, opcode and line.
func TestCounts(t *testing.T) {
	d := open(t, "quadro-k2000", Options{})
	text := kernelText("sm_30", "out", `
.loc 1 3 1
mov.u32 %r0, %tid.x; mov.u32 %r1, 0;
LOOP:
.loc 1 4 1
cvt.rn.f64.u32 %fd0, %r1; mul.rn.f64 %fd1, %fd0, %fd0; sqrt.rn.f64 %fd1, %fd1; mul.lo.u32 %r2, %r1, %r1; add.u64 %rd1, %rdout, 8;
.loc 1 5 1
add.u32 %r1, %r1, 1; setp.le.u32 %p0, %r1, %r0; @%p0 bra LOOP;
st.global.f64 [%rdout], %fd1;
ret;`)
	text = strings.Replace(text, ".address_size 64\n", ".address_size 64\n.file 1 \"cell 9\"\n", 1)
	f := loadKernel(t, d, text)
	if err := f.Launch(driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 40, Y: 1, Z: 1}, Params: []uint64{alloc(t, d, words(1))}}); err == nil {
		t.Error("the checker did not see that all threads write one word")
	}
	d = open(t, "quadro-k2000", Options{Unchecked: true})
	f = loadKernel(t, d, text)
	if err := f.Launch(driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 40, Y: 1, Z: 1}, Params: []uint64{alloc(t, d, words(1))}}); err != nil {
		t.Fatal(err)
	}
	s := d.LastLaunch()
	// Warp 0 goes round 32 times, warp 1 (threads 32 to 39) 40 times. A thread whose predicate is false does not count,
	// so that each branches back once less.
	rounds, lanes := uint64(72), uint64(40*41/2)
	want := map[Class]Count{Convert64: {rounds, lanes}, Float64: {rounds, lanes}, FloatDivide64: {rounds, lanes}, Multiply32: {rounds, lanes}, Int64: {rounds, lanes}, Int32: {2 * rounds, 2 * lanes},
		Branch: {rounds + 2, lanes - 40 + 40}, Move: {4, 80}, StoreGlobal: {2, 40}, LoadParam: {2, 40}}
	for c := range NumClasses {
		if s.Classes[c] != want[c] {
			t.Errorf("%v: %v, want %v", c, s.Classes[c], want[c])
		}
	}
	if got := s.Lines[Line{"cell 9", 4}]; got != (Count{5 * rounds, 5 * lanes}) {
		t.Errorf("line 4: %v", got)
	}
	if s.Opcodes["sqrt.rn.f64"] != (Count{rounds, lanes}) || s.Divergences != 31+7 || s.TakenBranches != 31+39 {
		t.Errorf("%+v", s)
	}
}

// TestSameTwice: a launch gives the same counts and the same memory each time, races included.
func TestSameTwice(t *testing.T) {
	var first *Stats
	var values []uint64
	for range 3 {
		d := open(t, "gtx-970", Options{Unchecked: true})
		f := loadKernel(t, d, kernelText("sm_52", "a", `
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r0, %r1, %r2, %r0; mul.lo.u32 %r3, %r0, 17; and.b32 %r3, %r3, 127; mul.wide.u32 %rd1, %r3, 8; add.u64 %rd1, %rd1, %rda; mov.u32 %r4, 0;
LOOP: ld.global.u64 %rd2, [%rd1]; cvt.u64.u32 %rd3, %r0; mad.lo.u64 %rd2, %rd2, 3, %rd3; st.global.u64 [%rd1], %rd2; add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 9; @%p0 bra LOOP; ret;`))
		a := alloc(t, d, words(128))
		if err := f.Launch(driver.Launch{Grid: driver.Dim{X: 50, Y: 1, Z: 1}, Block: driver.Dim{X: 96, Y: 1, Z: 1}, Params: []uint64{a}}); err != nil {
			t.Fatal(err)
		}
		got := readWords(t, d, a, 128)
		if first == nil {
			first, values = d.LastLaunch(), got
			continue
		}
		if fmt.Sprint(got) != fmt.Sprint(values) {
			t.Error("other values")
		}
		if s := d.LastLaunch(); s.Count != first.Count || s.Memory.L2 != first.Memory.L2 || s.Memory.Bursts != first.Memory.Bursts {
			t.Errorf("%+v, before %+v", s, first)
		}
	}
}

// TestManyCallers use a device at a time.
func TestManyCallers(t *testing.T) {
	d := open(t, "h200", Options{})
	m, err := d.Load([]byte(kernelText("sm_70", "a", "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 8; add.u64 %rd1, %rd1, %rda; ld.global.u64 %rd2, [%rd1]; add.u64 %rd2, %rd2, 1; st.global.u64 [%rd1], %rd2; ret;")))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			f, err := m.Function("k")
			if err != nil {
				t.Error(err)
				return
			}
			p, err := d.Alloc(8 * 64)
			for range 20 {
				if err == nil {
					err = f.Launch(driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 64, Y: 1, Z: 1}, Params: []uint64{uint64(p)}})
				}
			}
			b := make([]byte, 8*64)
			if err == nil {
				err = d.CopyOut(b, p)
			}
			if err != nil || b[0] != 20 || b[8*63] != 20 {
				t.Errorf("%v %d", err, b[0])
			}
			d.Free(p)
		})
	}
	wg.Wait()
}

// TestEveryFormDecodes: the simulator takes every instruction of PTX's table, those that no other test executes too.
func TestEveryFormDecodes(t *testing.T) {
	rest := map[string]string{
		"prefetch": "[%rda]", "prefetchu": "[%rda]", "membar": "", "fence": "", "nanosleep": "5", "brkpt": "", "trap": "", "exit": "", "ret": "", "activemask": "%r0",
	}
	tested := map[string]bool{"ld": true, "ldu": true, "st": true, "atom": true, "red": true, "bar": true, "barrier": true, "shfl": true, "vote": true, "match": true, "redux": true, "bra": true, "call": true, "cvta": true, "isspacep": true}
	d := open(t, "h200", bare)
	for _, form := range ptx.Forms() {
		args, ok := rest[form.Op]
		if !ok {
			if elsewhere[form.Op] && !tested[form.Op] {
				t.Errorf("no test executes %s", form.Op)
			}
			continue
		}
		for _, op := range opcodes(form) {
			at := args
			if op == "prefetch.local.L1" || op == "prefetch.local.L2" {
				at = "[8]"
			}
			f := loadKernel(t, d, strings.Replace(kernelText("sm_90", "a", "mov.u32 %r1, 1; setp.eq.u32 %p0, %r1, 0; @%p0 "+op+" "+at+"; @!%p0 "+map[bool]string{true: op, false: "mov.u32 %r0, 0"}[form.Op != "trap" && form.Op != "brkpt"]+" "+map[bool]string{true: at}[form.Op != "trap" && form.Op != "brkpt"]+"; ret;"), ".version 7.0", ".version 7.8", 1))
			if err := f.Launch(driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 40, Y: 1, Z: 1}, Params: []uint64{alloc(t, d, words(2))}}); err != nil {
				t.Errorf("%s: %v", op, err)
			}
		}
	}
}

// TestCheckedLaunches: what the checker finds is the error of the launch, with its place and as a Violation; what is
// right is let through.
func TestCheckedLaunches(t *testing.T) {
	const tid = "mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 8; mov.u64 %rd2, dyn; add.u64 %rd3, %rd2, %rd1; setp.lt.u32 %p0, %r0, 40;\n"
	for _, c := range []struct {
		body  string
		fault Fault // -1 for none
	}{
		{"st.global.u32 [%rda], %r0;", RaceInBlock},
		{"@!%p0 st.shared.u64 [%rd3], 1; bar.sync 0; ld.shared.u64 %rd4, [%rd3];", UnwrittenShared},
		{"st.shared.u64 [%rd3], 1; ld.shared.u64 %rd4, [%rd2+8];", RaceInBlock},
		{"st.shared.u64 [%rd3], 1; bar.sync 0; ld.shared.u64 %rd4, [%rd2+8];", 255},
		{"@%p0 bar.sync 0; bar.sync 0;", DivergentBarrier},
		{"@%p0 bar.sync 0;", 255}, // the others leave without one, as if they had left before
		{"@!%p0 exit; bar.sync 0;", 255},
		{"@%p0 bra A; bar.sync 0; bra B; A: bar.sync 0; B:", DivergentBarrier},
		{"ld.volatile.global.u64 %rd5, [%rda]; AGAIN: mov.b64 %rd6, %rd5; add.u64 %rd7, %rd6, 1; atom.global.cas.b64 %rd5, [%rda], %rd6, %rd7; setp.ne.u64 %p1, %rd5, %rd6; @%p1 bra AGAIN;", 255},
		{"atom.global.add.u64 %rd4, [%rda], 1;", 255},
	} {
		for _, unchecked := range []bool{false, true} {
			d := open(t, "gtx-970", Options{Unchecked: unchecked})
			text := strings.Replace(kernelText("sm_52", "a", ".loc 1 5 2\n"+tid+c.body+"\nret;"), ".address_size 64\n", ".address_size 64\n.file 1 \"cell 2\"\n", 1)
			f := loadKernel(t, d, text)
			err := f.Launch(driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 64, Y: 1, Z: 1}, Shared: 512, Params: []uint64{alloc(t, d, words(8))}})
			if unchecked || c.fault == 255 {
				if err != nil {
					t.Errorf("%s: %v", c.body, err)
				}
				continue
			}
			var v *Violation
			var e *driver.Error
			if !errors.As(err, &v) || v.Fault != c.fault || !errors.As(err, &e) || e.Code != driver.LaunchFailed || e.Place == nil || e.Place.File != "cell 2" || e.Place.Line != 5 || !strings.Contains(err.Error(), "cell 2:5:2") {
				t.Errorf("%s: %v", c.body, err)
			}
			if _, err := threads(t, d, "sm_52", 1, 2, "mov.u64 %rd0, 4;"); err != nil {
				t.Errorf("after it: %v", err)
			}
		}
	}
}
