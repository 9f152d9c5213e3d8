//go:build cuda

package cuda

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/cuda/shim"
)

// The tests run on whatever libcuda there is: a driver with a GPU, or the mock (package mock) where GPUNOTES_LIBCUDA or
// LD_LIBRARY_PATH says so. Oracles: the documentation of package driver, and arithmetic done here.

// living asks the mock for what was not freed; false with a real driver.
func living() (string, bool) { return shim.Ask("gpunotesMockLive") }

// need skips a test without a device. Where the library is named, there must be one.
func need(t testing.TB) []driver.Info {
	t.Helper()
	list, err := Driver{}.Devices()
	if err == nil {
		return list
	}
	if os.Getenv(shim.Variable) != "" {
		t.Fatal(err)
	}
	t.Skip(err)
	return nil
}

func first(t testing.TB) *device {
	t.Helper()
	need(t)
	return opened(t, 0)
}

func opened(t testing.TB, i int) *device {
	t.Helper()
	d, err := Driver{}.Open(i)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil && d.Lost() == nil {
			t.Error("Close:", err)
		}
	})
	return d.(*device)
}

// code is the error that err is, 0 for none.
func code(err error) driver.Code {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return -1
	}
	return 0
}

// check compares an error with a code and words that it must have.
func check(t testing.TB, what string, err error, want driver.Code, words ...string) {
	t.Helper()
	if code(err) != want {
		t.Errorf("%s: %v, want %v", what, err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v\n\tdoes not say %q", what, err, w)
		}
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func alloc(t testing.TB, d driver.Device, n uint64) driver.Ptr {
	t.Helper()
	p, err := d.Alloc(n)
	ok(t, err)
	if p == 0 || p%256 != 0 {
		t.Fatalf("Alloc(%d) = %#x", n, uint64(p))
	}
	return p
}

func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// The kernels: affine computes y[i] = a*x[i] + b for int32, with a grid-stride loop; spin runs until the word is not 0 and
// adds 1 to *count; store writes to any address; dynamic uses n words of dynamic shared memory; bounded has bounds.
const kernels = `.version 6.0
.target sm_30
.address_size 64
.global .align 8 .u32 counter[4];
.const .align 4 .u32 seven = 7;
.extern .shared .align 16 .b8 dyn[];
.visible .entry affine(.param .u64 y, .param .u64 x, .param .u32 n, .param .s32 a, .param .s32 b)
{
	.reg .pred %p<4>;
	.reg .b32 %r<12>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [y];
	ld.param.u64 %rd2, [x];
	ld.param.u32 %r1, [n];
	ld.param.s32 %r2, [a];
	ld.param.s32 %r3, [b];
	mov.u32 %r4, %ctaid.x;
	mov.u32 %r5, %ntid.x;
	mov.u32 %r6, %tid.x;
	mad.lo.u32 %r7, %r4, %r5, %r6;
	mov.u32 %r8, %nctaid.x;
	mul.lo.u32 %r8, %r8, %r5;
loop:
	setp.ge.u32 %p1, %r7, %r1;
	@%p1 bra done;
	mul.wide.u32 %rd3, %r7, 4;
	add.u64 %rd4, %rd2, %rd3;
	ld.global.s32 %r9, [%rd4];
	mad.lo.s32 %r10, %r9, %r2, %r3;
	add.u64 %rd5, %rd1, %rd3;
	st.global.s32 [%rd5], %r10;
	add.u32 %r7, %r7, %r8;
	bra loop;
done:
	ret;
}
.visible .entry spin(.param .u64 word, .param .u64 count)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [word];
	ld.param.u64 %rd2, [count];
again:
	ld.volatile.global.u32 %r1, [%rd1];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra again;
	atom.global.add.u32 %r2, [%rd2], 1;
	ret;
}
.visible .entry store(.param .u64 at)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [at];
	mov.u32 %r1, 42;
	st.global.u32 [%rd1], %r1;
	ret;
}
.visible .entry dynamic(.param .u64 out, .param .u32 n) // the last of n words
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<5>;
	ld.param.u64 %rd1, [out];
	ld.param.u32 %r1, [n];
	mov.u64 %rd2, dyn;
	sub.u32 %r3, %r1, 1;
	mul.wide.u32 %rd3, %r3, 4;
	add.u64 %rd2, %rd2, %rd3;
	st.shared.u32 [%rd2], %r1;
	ld.shared.u32 %r4, [%rd2];
	st.global.u32 [%rd1], %r4;
	ret;
}
.visible .entry bounded() .maxntid 64, 2, 1
{
	ret;
}
.visible .entry exact() .reqntid 32, 2
{
	ret;
}
`

type loaded struct {
	m driver.Module
	t testing.TB
}

func load(t testing.TB, d driver.Device) loaded {
	t.Helper()
	m, err := d.Load([]byte(kernels))
	ok(t, err)
	return loaded{m, t}
}

func (c loaded) f(name string) driver.Function {
	c.t.Helper()
	f, err := c.m.Function(name)
	ok(c.t, err)
	return f
}

func line(grid, block int, params ...uint64) driver.Launch {
	return driver.Launch{Grid: driver.Dim{X: grid, Y: 1, Z: 1}, Block: driver.Dim{X: block, Y: 1, Z: 1}, Params: params}
}

func ints(b []byte) []int32 {
	out := make([]int32, len(b)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// affine is what the kernel of that name computes.
func affine(x []byte, a, b int32) []byte {
	y := make([]byte, len(x))
	for i, v := range ints(x) {
		binary.LittleEndian.PutUint32(y[4*i:], uint32(a*v+b))
	}
	return y
}

func negative(x int32) uint64 { return uint64(uint32(x)) }

func TestDevices(t *testing.T) {
	for i, info := range need(t) {
		if info.Name == "" || info.Simulated || info.SM() < 30 || info.Multiprocessors < 1 || info.WarpSize != 32 || info.Clock < 1e8 || info.MemoryClock < 1e8 ||
			info.BusBits < 32 || info.L2 < 1<<10 || info.Memory < 1<<20 || info.Constant < 1<<15 || info.MaxThreadsPerBlock < 256 || info.MaxBlock.Count() < 1<<10 ||
			info.MaxGrid.X < 1<<16 || info.MaxGrid.Y < 1 || info.MaxGrid.Z < 1 || info.RegistersPerBlock < 1<<14 || info.RegistersPerMP < 1<<14 ||
			info.RegistersPerThread < 63 || info.SharedPerBlock < 16<<10 || info.SharedPerBlockOptIn < info.SharedPerBlock || info.SharedPerMP < info.SharedPerBlock ||
			info.MaxThreadsPerMP < 1024 || info.MaxBlocksPerMP < 1 || info.LocalPerThread < 1<<14 || !info.UnifiedAddressing || !info.Mapped || info.Driver.Major < 9 ||
			info.PTX.Major < 6 {
			t.Errorf("device %d: %+v", i, info)
		}
		if !regexp.MustCompile(`^[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]$`).MatchString(info.PCI) {
			t.Errorf("device %d: PCI id %q", i, info.PCI)
		}
		if !regexp.MustCompile(`^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(info.UUID) {
			t.Errorf("device %d: UUID %q", i, info.UUID)
		}
		d := opened(t, i)
		if d.Info() != info {
			t.Errorf("device %d: %+v when opened", i, d.Info())
		}
		if d.Streams() != 3 || d.Lost() != nil || d.CancelWord() == 0 {
			t.Errorf("device %d: %d streams, lost %v, cancel word %#x", i, d.Streams(), d.Lost(), uint64(d.CancelWord()))
		}
	}
	n := len(need(t))
	_, err := Driver{}.Open(n)
	check(t, "Open past the last", err, driver.InvalidDevice, fmt.Sprintf("there is no device %d", n))
	_, err = Driver{}.Open(-1)
	check(t, "Open(-1)", err, driver.InvalidDevice, "there is no device -1")
}

func TestMemory(t *testing.T) {
	d := first(t)
	_, err := d.Alloc(0)
	check(t, "Alloc(0)", err, driver.InvalidValue, "0 bytes")
	free, total, err := d.MemInfo()
	ok(t, err)
	if free == 0 || free > total || total > d.info.Memory*2 {
		t.Errorf("%d of %d free", free, total)
	}
	for _, n := range []uint64{total * 4, 1 << 50, math.MaxUint64} {
		_, err = d.Alloc(n)
		check(t, "Alloc too much", err, driver.OutOfMemory, fmt.Sprint(n, " bytes"), "asked for", "free on "+d.info.Name)
	}
	ok(t, d.Free(0))
	check(t, "Free of nothing", d.Free(12345), driver.InvalidValue, "0x3039 is no allocation")

	var held []driver.Ptr
	for _, n := range []int{1, 4, 255, 256, 257, 4096, 64<<10 - 1, 64<<10 + 4, 3<<20 + 1} {
		in := random(n)
		p, q := alloc(t, d, uint64(n)), alloc(t, d, uint64(n)+300)
		held = append(held, p, q)
		src := bytes.Clone(in)
		ok(t, d.CopyIn(p, src))
		clear(src) // src may be changed when CopyIn returns
		ok(t, d.Fill(q, 0xa5, uint64(n)+300))
		ok(t, d.Copy(q+100, p, uint64(n)))
		out := make([]byte, n+300)
		ok(t, d.CopyOut(out, q))
		want := bytes.Repeat([]byte{0xa5}, n+300)
		copy(want[100:], in)
		if !bytes.Equal(out, want) {
			t.Errorf("%d bytes: wrong", n)
		}
		for what, err := range map[string]error{
			"CopyIn": d.CopyIn(p+1, in), "CopyOut": d.CopyOut(out[:n], p+1), "Fill": d.Fill(p, 1, uint64(n)+1), "Copy from": d.Copy(q, p+1, uint64(n)),
			"Copy to": d.Copy(p+1, q, uint64(n)), "StartIn": d.StartIn(1, p+1, in), "StartOut": d.StartOut(2, out[:n], p+1),
		} {
			check(t, what+" over the end", err, driver.InvalidValue, "are not within one allocation")
		}
	}
	p, q := held[len(held)-2], held[len(held)-1]
	check(t, "Copy that overlaps", d.Copy(p+5, p, 10), driver.InvalidValue, "overlap")
	check(t, "Copy to where it is", d.Copy(p, p, 10), driver.InvalidValue, "overlap")
	ok(t, d.Copy(p+10, p, 10))
	ok(t, d.CopyIn(p, nil))
	ok(t, d.CopyOut(nil, p))
	ok(t, d.Fill(p, 1, 0))
	ok(t, d.Copy(q, q, 0))
	ok(t, d.Sync())
	for _, p := range held {
		ok(t, d.Free(p))
		check(t, "Free twice", d.Free(p), driver.InvalidValue, "freed before")
		check(t, "Fill of freed memory", d.Fill(p, 0, 1), driver.InvalidValue)
	}
	ok(t, d.Sync())
	after, _, err := d.MemInfo()
	ok(t, err)
	if _, mock := living(); mock && after != free {
		t.Errorf("%d bytes are free, %d were before", after, free)
	}
}

func TestPinned(t *testing.T) {
	d := first(t)
	_, err := d.Pinned(-1)
	check(t, "Pinned(-1)", err, driver.InvalidValue)
	empty, err := d.Pinned(0)
	ok(t, err)
	ok(t, d.FreePinned(empty))
	b, err := d.Pinned(10000)
	ok(t, err)
	if len(b) != 10000 || !d.isPinned(b) || !d.isPinned(b[9999:]) || d.isPinned(make([]byte, 4)) {
		t.Fatal("which memory is page-locked?")
	}
	check(t, "FreePinned of a part", d.FreePinned(b[1:]), driver.InvalidValue, "no memory of Pinned")
	check(t, "FreePinned of other memory", d.FreePinned(make([]byte, 8)), driver.InvalidValue)
	p := alloc(t, d, 10000)
	in := random(10000)
	copy(b, in)
	ok(t, d.CopyIn(p, b))
	clear(b)
	ok(t, d.CopyOut(b, p))
	if !bytes.Equal(b, in) {
		t.Error("wrong bytes")
	}
	ok(t, d.FreePinned(b))
	check(t, "FreePinned twice", d.FreePinned(b), driver.InvalidValue)
	_, err = d.Pinned(math.MaxInt - 10000)
	check(t, "Pinned too much", err, driver.OutOfMemory, "host memory")
}

func TestLaunch(t *testing.T) {
	d := first(t)
	c := load(t, d)
	const n = 1000
	x, y := alloc(t, d, 4*n), alloc(t, d, 4*n)
	in, out := random(4*n), make([]byte, 4*n)
	ok(t, d.CopyIn(x, in))
	f := c.f("affine")
	ok(t, f.Launch(line(3, 64, uint64(y), uint64(x), n, negative(-3), 7)))
	ok(t, d.CopyOut(out, y))
	if !bytes.Equal(out, affine(in, -3, 7)) {
		t.Error("affine is wrong")
	}
	a := f.Attributes()
	if a.Name != "affine" || a.Registers < 4 || a.Registers > 64 || a.Shared != 0 || a.MaxThreads < 256 || a.MaxThreads > d.info.MaxThreadsPerBlock ||
		a.PTX != (driver.Version{Major: 6}) || a.Target != 30 {
		t.Errorf("%+v", a)
	}

	with := func(grid, block driver.Dim, shared int, params ...uint64) driver.Launch {
		return driver.Launch{Grid: grid, Block: block, Shared: shared, Params: params}
	}
	one, five := driver.Dim{X: 1, Y: 1, Z: 1}, []uint64{uint64(y), uint64(x), 0, 0, 0}
	for _, c := range []struct {
		f    driver.Function
		l    driver.Launch
		want driver.Code
		say  string
	}{
		{f, with(driver.Dim{X: 0, Y: 1, Z: 1}, one, 0, five...), driver.InvalidValue, "grid (0,1,1) has 0 blocks along x; there must be at least 1"},
		{f, with(one, driver.Dim{X: 1, Y: 1, Z: -2}, 0, five...), driver.InvalidValue, "-2 threads along z"},
		{f, with(driver.Dim{X: 1, Y: d.info.MaxGrid.Y + 1, Z: 1}, one, 0, five...), driver.InvalidValue, "put the long axis on x"},
		{f, with(driver.Dim{X: d.info.MaxGrid.X + 1, Y: 1, Z: 1}, one, 0, five...), driver.InvalidValue, d.info.Name + " takes at most"},
		{f, with(one, driver.Dim{X: d.info.MaxBlock.X + 1, Y: 1, Z: 1}, 0, five...), driver.InvalidValue, "threads along x"},
		{f, with(one, driver.Dim{X: d.info.MaxThreadsPerBlock, Y: 2, Z: 1}, 0, five...), driver.InvalidValue, "threads; " + d.info.Name},
		{f, with(one, one, -1, five...), driver.InvalidValue, "-1 bytes of dynamic shared memory"},
		{f, with(one, one, d.info.SharedPerBlockOptIn+1, five...), driver.InvalidValue, "bytes per block"},
		{f, with(one, one, 0, 1, 2), driver.InvalidValue, "kernel affine: 2 parameters, but it has 5"},
		{f, with(one, one, 0), driver.InvalidValue, "0 parameters, but it has 5"},
		{c.f("bounded"), with(one, driver.Dim{X: 129, Y: 1, Z: 1}, 0), driver.InvalidValue, "it allows 128 (.maxntid)"},
		{c.f("exact"), with(one, driver.Dim{X: 64, Y: 1, Z: 1}, 0), driver.InvalidValue, "it asks for (32,2,1) (.reqntid)"},
		{f, driver.Launch{Grid: one, Block: one, Params: five, Stream: 3}, driver.InvalidValue, "stream 3"},
		{c.f("bounded"), with(one, driver.Dim{X: 128, Y: 1, Z: 1}, 0), 0, ""},
		{c.f("exact"), with(one, driver.Dim{X: 32, Y: 2, Z: 1}, 0), 0, ""},
	} {
		check(t, c.say, c.f.Launch(c.l), c.want, strings.Fields(c.say)...)
		if err := d.Sync(); err != nil {
			t.Fatalf("%s: %v afterwards", c.say, err)
		}
	}
	for _, shared := range []int{4, 48 << 10, d.info.SharedPerBlockOptIn, 1024} {
		l := line(1, 1, uint64(y), uint64(shared/4))
		l.Shared = shared
		ok(t, c.f("dynamic").Launch(l))
		ok(t, d.CopyOut(out[:4], y))
		if got := ints(out[:4])[0]; int(got) != shared/4 {
			t.Errorf("%d bytes of dynamic shared memory: %d", shared, got)
		}
	}
}

func TestModules(t *testing.T) {
	d := first(t)
	c := load(t, d)
	at, n, err := c.m.Global("counter")
	ok(t, err)
	if n != 16 {
		t.Errorf("counter has %d bytes", n)
	}
	ok(t, d.CopyIn(at, random(16)))
	back := make([]byte, 16)
	ok(t, d.CopyOut(back, at))
	if !bytes.Equal(back, random(16)) {
		t.Error("the variable was not written")
	}
	at7, _, err := c.m.Global("seven")
	ok(t, err)
	ok(t, d.CopyOut(back[:4], at7))
	if ints(back)[0] != 7 {
		t.Error("a constant is", back[:4])
	}
	check(t, "Free of a variable", d.Free(at), driver.InvalidValue)
	_, _, err = c.m.Global("nope")
	check(t, "Global", err, driver.NotFound, `no variable "nope"`)
	_, err = c.m.Function("nope")
	check(t, "Function", err, driver.NotFound, `no kernel "nope"`)
	_, err = c.m.Function("a\x00b")
	check(t, "Function with a zero byte", err, driver.NotFound)
	f := c.f("bounded")
	ok(t, c.m.Unload())
	check(t, "Unload twice", c.m.Unload(), driver.InvalidHandle, "unloaded already")
	check(t, "Launch of an unloaded kernel", f.Launch(line(1, 1)), driver.InvalidHandle, "unloaded")
	_, err = c.m.Function("affine")
	check(t, "Function of an unloaded module", err, driver.InvalidHandle)
	_, _, err = c.m.Global("counter")
	check(t, "Global of an unloaded module", err, driver.InvalidHandle)
	check(t, "Fill of an unloaded variable", d.Fill(at, 0, 4), driver.InvalidValue)

	m, err := d.Load([]byte(kernels + "\x00"))
	ok(t, err)
	ok(t, m.Unload())
	replaced := func(old, new string) []byte { return []byte(strings.Replace(kernels, old, new, 1)) }
	for _, x := range []struct {
		image []byte
		want  driver.Code
		say   string
	}{
		{nil, driver.InvalidImage, "empty"},
		{[]byte(" \n\x00"), driver.InvalidImage, "empty"},
		{[]byte("\x7fELF nothing"), -2, ""},
		{replaced("mad.lo.s32 %r10", "mad.lo.s33 %r10"), driver.InvalidPTX, "s33"},
		{replaced(".version 6.0", ".version 42.0"), driver.UnsupportedPTXVersion, "install a newer driver"},
		{replaced(".target sm_30", ".target sm_999"), driver.NoBinaryForGPU, ".target sm_999 is above " + d.info.Name},
	} {
		_, err := d.Load(x.image)
		if x.want == -2 { // the driver has some code for it
			if code(err) < driver.InvalidImage || code(err) > 300 {
				t.Errorf("Load of nonsense: %v", err)
			}
			continue
		}
		check(t, "Load", err, x.want, x.say)
	}
	ok(t, d.Sync())
}

// TestStreams: copies in, kernels and copies out of many pieces, which overlap as far as marks allow.
func TestStreams(t *testing.T) {
	d := first(t)
	f := load(t, d).f("affine")
	const pieces, n = 40, 3000
	for _, pinned := range []bool{true, false} {
		memory := func(n int) []byte {
			if !pinned {
				return make([]byte, n)
			}
			b, err := d.Pinned(n)
			ok(t, err)
			return b
		}
		in, out := memory(4*n*pieces), memory(4*n*pieces)
		copy(in, random(len(in)))
		// Two places for each piece: a piece is copied in while the one before is computed.
		var x, y [2]driver.Ptr
		var computed, emptied [2]driver.Mark
		for i := range x {
			x[i], y[i] = alloc(t, d, 4*n), alloc(t, d, 4*n)
		}
		for i := range pieces {
			k, part := i%2, 4*n*i
			ok(t, d.After(1, computed[k]))
			ok(t, d.StartIn(1, x[k], in[part:part+4*n]))
			there, err := d.Mark(1)
			ok(t, err)
			ok(t, d.After(0, there))
			ok(t, d.After(0, emptied[k]))
			ok(t, f.Launch(line(8, 64, uint64(y[k]), uint64(x[k]), n, uint64(i), 1)))
			computed[k], err = d.Mark(0)
			ok(t, err)
			ok(t, d.After(2, computed[k]))
			ok(t, d.StartOut(2, out[part:part+4*n], y[k]))
			emptied[k], err = d.Mark(2)
			ok(t, err)
		}
		ok(t, d.Wait(emptied[(pieces-1)%2]))
		for i := range pieces {
			part := 4 * n * i
			if !bytes.Equal(out[part:part+4*n], affine(in[part:part+4*n], int32(i), 1)) {
				t.Fatalf("pinned %v: piece %d is wrong", pinned, i)
			}
		}
		ok(t, d.Sync())
		if pinned {
			ok(t, d.FreePinned(in))
			ok(t, d.FreePinned(out))
		}
		for i := range x {
			ok(t, d.Free(x[i]))
			ok(t, d.Free(y[i]))
		}
	}
	check(t, "Mark", func() error { _, err := d.Mark(7); return err }(), driver.InvalidValue, "stream 7; there are 0 to 2")
	check(t, "After", d.After(-1, driver.Mark{}), driver.InvalidValue, "stream -1")
	check(t, "After", d.After(0, driver.Mark{Stream: 9}), driver.InvalidValue, "stream 9")
	check(t, "Wait", d.Wait(driver.Mark{Stream: 9}), driver.InvalidValue, "stream 9")
	check(t, "Wait", d.Wait(driver.Mark{Number: 1 << 60}), driver.InvalidValue, "no mark")
	check(t, "StartIn", d.StartIn(3, 0, nil), driver.InvalidValue, "stream 3")
	check(t, "StartOut", d.StartOut(3, nil, 0), driver.InvalidValue, "stream 3")
	ok(t, d.Wait(driver.Mark{Stream: 2}))
}

// TestFreeInOrder: memory that is freed is not given to others before the work that uses it is done.
func TestFreeInOrder(t *testing.T) {
	d := first(t)
	in, err := d.Pinned(1 << 16)
	ok(t, err)
	out, err := d.Pinned(1 << 16)
	ok(t, err)
	for i := range 20 {
		for k := range in {
			in[k] = byte(i)
		}
		p := alloc(t, d, 1<<16)
		ok(t, d.StartIn(1, p, in))
		m, err := d.Mark(1)
		ok(t, err)
		ok(t, d.After(2, m))
		ok(t, d.StartOut(2, out, p))
		ok(t, d.Free(p))
		q := alloc(t, d, 1<<16)
		ok(t, d.Fill(q, 0xff, 1<<16))
		ok(t, d.Sync())
		if !bytes.Equal(in, out) {
			t.Fatalf("round %d: memory was given away while it was read", i)
		}
		ok(t, d.Free(q))
	}
}

// TestManyMarks: events are used again, and a lane that is not waited for does not grow without bound.
func TestManyMarks(t *testing.T) {
	d := first(t)
	p := alloc(t, d, 4096)
	var oldest, last driver.Mark
	for i := range 700 {
		ok(t, d.Fill(p, byte(i), 4096))
		m, err := d.Mark(0)
		ok(t, err)
		if i == 0 {
			oldest = m
		}
		if m.Number <= last.Number {
			t.Fatalf("mark %d after mark %d", m.Number, last.Number)
		}
		last = m
	}
	ok(t, d.Wait(oldest))
	ok(t, d.Wait(last))
	again, err := d.Mark(0)
	ok(t, err)
	if again != last {
		t.Errorf("a mark with no work before it: %v, want %v", again, last)
	}
	d.mu.Lock()
	events := len(d.untimed) + len(d.timed)
	d.mu.Unlock()
	if events > deepest+10 {
		t.Errorf("%d events for 700 marks", events)
	}
	for range 700 {
		ok(t, d.Fill(p, 1, 4096)) // without marks of ours
	}
	ok(t, d.Sync())
}

func TestRecord(t *testing.T) {
	d := first(t)
	c := load(t, d)
	x := alloc(t, d, 1<<16)
	b, err := d.Pinned(1 << 16)
	ok(t, err)
	ok(t, d.Fill(x, 0, 1<<16)) // nobody listens yet
	var got, late []driver.Record
	d.Record(func(r driver.Record) { got = append(got, r) })
	ok(t, d.CopyIn(x, b[:100]))
	ok(t, d.CopyIn(x, make([]byte, 200)))
	ok(t, d.StartIn(1, x, b[:300]))
	l := line(2, 64, uint64(x), uint64(x), 10, 1, 0)
	l.Cancel, l.Shared = func() bool { return false }, 16
	ok(t, c.f("affine").Launch(l))
	check(t, "a launch that fails", c.f("affine").Launch(line(1, 1)), driver.InvalidValue)
	check(t, "a copy that fails", d.CopyIn(1, b), driver.InvalidValue)
	ok(t, d.Fill(x, 1, 400))
	ok(t, d.Copy(x, x+1024, 500))
	ok(t, d.CopyOut(b[:600], x))
	ok(t, d.StartOut(2, make([]byte, 700), x))
	ok(t, d.CopyIn(x, nil))
	d.Record(func(r driver.Record) { late = append(late, r) })
	ok(t, d.Fill(x, 1, 800))
	d.Record(nil)
	ok(t, d.Fill(x, 1, 900))
	ok(t, d.Sync())
	type row struct {
		op     driver.Operation
		bytes  uint64
		pinned bool
		stream driver.Stream
	}
	want := []row{
		{driver.HostToDevice, 100, true, 0}, {driver.HostToDevice, 200, false, 0}, {driver.HostToDevice, 300, true, 1}, {driver.Kernel, 0, false, 0},
		{driver.Memset, 400, false, 0}, {driver.DeviceToDevice, 500, false, 0}, {driver.DeviceToHost, 600, true, 0}, {driver.DeviceToHost, 700, false, 2},
		{driver.HostToDevice, 0, false, 0},
	}
	var rows []row
	ends := map[driver.Stream]time.Duration{}
	for i, r := range got {
		rows = append(rows, row{r.Op, r.Bytes, r.Pinned, r.Stream})
		if r.Simulated || r.Start < ends[r.Stream]-time.Microsecond || r.Duration < 0 || r.Start > time.Hour {
			t.Errorf("record %d: %v at %v, the one before ended at %v", i, r.Duration, r.Start, ends[r.Stream])
		}
		ends[r.Stream] = r.Start + r.Duration
	}
	if !slices.Equal(rows, want) {
		t.Fatalf("records %v,\nwant %v", rows, want)
	}
	if len(late) != 1 || late[0].Bytes != 800 {
		t.Errorf("another recorder got %v", late)
	}
	k := got[3]
	if k.Attributes != c.f("affine").Attributes() || k.Launch.Grid != l.Grid || k.Launch.Block != l.Block || k.Launch.Shared != 16 || k.Launch.Params != nil || k.Launch.Cancel != nil {
		t.Errorf("the launch is reported as %+v", k)
	}
}

// TestClock: times stay on one clock when the base of measuring moves.
func TestClock(t *testing.T) {
	d := first(t)
	p := alloc(t, d, 256)
	var got []driver.Record
	d.Record(func(r driver.Record) { got = append(got, r) })
	ok(t, d.Fill(p, 0, 256))
	ok(t, d.Sync())
	d.advancing.Lock()
	d.offset += 20 * time.Second // as if the base were that old; the next report is measured from the same event
	d.advancing.Unlock()
	ok(t, d.Fill(p, 0, 256))
	ok(t, d.Sync())
	if len(got) != 2 || got[1].Start-got[0].Start < 20*time.Second || got[1].Start-got[0].Start > 40*time.Second {
		t.Errorf("%v", got)
	}
}

// until is a Cancel function that is true from a time on.
func until(d time.Duration, asked *atomic.Int64) func() bool {
	end := time.Now().Add(d)
	return func() bool {
		asked.Add(1)
		return time.Now().After(end)
	}
}

func TestCancel(t *testing.T) {
	d := first(t)
	c := load(t, d)
	spin, f := c.f("spin"), c.f("affine")
	count := alloc(t, d, 4096)
	b := make([]byte, 4)
	counted := func() int32 {
		t.Helper()
		ok(t, d.CopyOut(b, count))
		return ints(b)[0]
	}
	for round, wait := range []func() error{
		d.Sync,
		func() error { m, err := d.Mark(0); return errors.Join(err, d.Wait(m)) },
		func() error { return d.CopyOut(make([]byte, 4), count) },
		func() error { return d.StartOut(0, make([]byte, 4), count) }, // it waits for the kernel; the error comes with Sync
		func() error { _, err := d.Mark(0); return err },
	} {
		ok(t, d.Fill(count, 0, 4096))
		ok(t, d.Sync())
		var asked atomic.Int64
		l := line(2, 32, uint64(d.CancelWord()), uint64(count))
		l.Cancel = until(30*time.Millisecond, &asked)
		ok(t, spin.Launch(l))
		err := wait()
		if round >= 3 {
			ok(t, err)
			err = d.Sync()
		}
		check(t, fmt.Sprint("round ", round), err, driver.LaunchTimeout, "kernel spin: stopped")
		if d.Lost() != nil {
			t.Fatal("a stopped kernel is no reason to lose the device:", d.Lost())
		}
		if asked.Load() < 2 {
			t.Errorf("round %d: Cancel was asked %d times", round, asked.Load())
		}
		was := asked.Load()
		ok(t, f.Launch(line(1, 32, uint64(count)+64, uint64(count), 1, 5, 1)))
		ok(t, d.Sync())
		if asked.Load() != was {
			t.Errorf("round %d: Cancel is asked after the end", round)
		}
		if n := counted(); n != 64 {
			t.Errorf("round %d: %d threads ended", round, n)
		}
		if *d.word != 0 {
			t.Errorf("round %d: the word is still set", round)
		}
	}

	// Several under way: the word ends them all, and that is said; those behind see it as 0 again.
	ok(t, d.Fill(count, 0, 4096))
	ok(t, d.Sync())
	var asked atomic.Int64
	l := line(1, 32, uint64(d.CancelWord()), uint64(count))
	ok(t, spin.Launch(l))
	l.Stream, l.Cancel = 1, until(20*time.Millisecond, &asked)
	ok(t, spin.Launch(l))
	check(t, "two", d.Sync(), driver.LaunchTimeout, "1 other launch")
	ok(t, d.Sync())
	if n := counted(); n != 64 {
		t.Errorf("%d threads ended, want 64", n)
	}
	// A launch of another goroutine, while one is being stopped, is not hit.
	l = line(1, 32, uint64(d.CancelWord()), uint64(count))
	l.Cancel = until(0, &asked)
	ok(t, spin.Launch(l))
	done := make(chan error)
	go func() { done <- d.Sync() }()
	for range 20 {
		ok(t, f.Launch(line(1, 32, uint64(count)+64, uint64(count), 1, 5, 1)))
	}
	check(t, "Sync beside", <-done, driver.LaunchTimeout)
	ok(t, d.Sync())
	ok(t, f.Launch(line(1, 32, uint64(count)+64, uint64(count), 1, 5, 1)))
	ok(t, d.Sync())

	// Close ends what runs.
	ok(t, spin.Launch(line(1, 32, uint64(d.CancelWord()), uint64(count))))
	begin := time.Now()
	ok(t, d.Close())
	if time.Since(begin) > 5*time.Second {
		t.Errorf("Close took %v", time.Since(begin))
	}
}

func TestClose(t *testing.T) {
	need(t)
	before, mock := living()
	d, err := Driver{}.Open(0)
	ok(t, err)
	other := opened(t, 0)
	c := load(t, other)
	p := alloc(t, other, 1000)
	ok(t, other.CopyIn(p, random(1000)))

	cd := load(t, d)
	f := cd.f("bounded")
	q := alloc(t, d, 5000)
	host, err := d.Pinned(5000)
	ok(t, err)
	d.Record(func(driver.Record) {})
	ok(t, d.StartIn(1, q, host))
	m, err := d.Mark(1)
	ok(t, err)
	for range 100 {
		ok(t, f.Launch(line(1, 64)))
	}
	check(t, "other's memory", other.Fill(q, 0, 1), driver.InvalidValue)
	ok(t, d.Close())
	ok(t, d.Close())
	for what, err := range map[string]error{
		"Alloc": second(d.Alloc(1)), "Free": d.Free(q), "Free(0)": d.Free(0), "Pinned": second(d.Pinned(1)), "FreePinned": d.FreePinned(make([]byte, 1)), "StartIn": d.StartIn(0, q, host[:0]),
		"StartOut": d.StartOut(0, nil, q), "Mark": second(d.Mark(0)), "After": d.After(0, m), "Wait": d.Wait(m), "CopyIn": d.CopyIn(q, nil), "CopyOut": d.CopyOut(nil, q),
		"Copy": d.Copy(q, q, 0), "Fill": d.Fill(q, 0, 0), "Load": second(d.Load([]byte(kernels))), "Sync": d.Sync(), "Function": second(cd.m.Function("affine")),
		"Unload": cd.m.Unload(), "Launch": f.Launch(line(1, 1)),
	} {
		check(t, what+" after Close", err, driver.Deinitialized, "the device is closed")
	}
	_, _, err = d.MemInfo()
	check(t, "MemInfo after Close", err, driver.Deinitialized)
	_, _, err = cd.m.Global("counter")
	check(t, "Global after Close", err, driver.Deinitialized)
	if d.Info() != other.Info() || d.Lost() != nil {
		t.Error("Info after Close is", d.Info())
	}
	d.Record(nil)

	back := make([]byte, 1000)
	ok(t, other.CopyOut(back, p))
	if !bytes.Equal(back, random(1000)) {
		t.Error("Close of one opening has changed the memory of another")
	}
	ok(t, c.f("bounded").Launch(line(1, 1)))
	ok(t, other.Sync())
	ok(t, other.Close())
	if after, _ := living(); mock && after != before {
		t.Errorf("left: %s\nbefore: %s", after, before)
	}
}

func second[T any](_ T, err error) error { return err }

// TestLost: after an error that stays, all openings of the device are lost, other devices are not, and the device can be
// opened anew. Host memory outlives it.
func TestLost(t *testing.T) {
	n := len(need(t))
	before, mock := living()
	for round := range 3 {
		d, other := opened(t, 0), opened(t, 0)
		var apart *device
		if n > 1 {
			apart = opened(t, 1)
		}
		host, err := other.Pinned(1 << 20)
		ok(t, err)
		p := alloc(t, d, 4)
		var reported int
		d.Record(func(driver.Record) { reported++ })
		c := load(t, d)
		ok(t, d.Fill(p, 0, 4))
		ok(t, c.f("store").Launch(line(1, 1, 8))) // nothing is at 8
		err = d.Sync()
		if code(err) != driver.IllegalAddress && code(err) != driver.LaunchFailed {
			t.Fatal("a store to nowhere:", err)
		}
		if !strings.Contains(err.Error(), "kernel store") {
			t.Errorf("%v does not name the kernel", err)
		}
		sticky := code(err)
		for what, err := range map[string]error{
			"Lost": d.Lost(), "Lost of another opening": other.Lost(), "Sync": d.Sync(), "Sync of another opening": other.Sync(), "Alloc": second(d.Alloc(4)), "Free": d.Free(p),
			"CopyOut": d.CopyOut(make([]byte, 4), p), "Launch": second(c.m.Function("bounded")), "Load": second(other.Load([]byte(kernels))), "Unload": c.m.Unload(), "Pinned": second(d.Pinned(4)),
		} {
			check(t, what, err, sticky)
		}
		if apart != nil {
			ok(t, apart.Sync())
			ok(t, apart.Free(alloc(t, apart, 100)))
		}
		var again *device
		switch round {
		case 0: // Close resets
			ok(t, d.Close())
			again = opened(t, 0)
		case 1: // Open resets
			again = opened(t, 0)
			ok(t, d.Close())
		case 2: // all are closed
			for i := range host {
				host[i] = byte(i)
			}
			ok(t, other.Close())
			ok(t, d.Close())
			again = opened(t, 0)
		}
		if round < 2 {
			for i := range host {
				host[i] = byte(i) // is still there
			}
			check(t, "another opening after the reset", other.Sync(), sticky)
			ok(t, other.Close())
		}
		ok(t, d.Close())
		q := alloc(t, again, 4)
		ok(t, load(t, again).f("store").Launch(line(1, 1, uint64(q))))
		b := make([]byte, 4)
		ok(t, again.CopyOut(b, q))
		if ints(b)[0] != 42 || again.Lost() != nil {
			t.Error("the device opened anew does not work:", b, again.Lost())
		}
		ok(t, again.Close())
		if apart != nil {
			ok(t, apart.Close())
		}
	}
	if after, _ := living(); mock && after != before {
		t.Errorf("left: %s\nbefore: %s", after, before)
	}
}

func TestGoroutines(t *testing.T) {
	d := first(t)
	c := load(t, d)
	f := c.f("affine")
	var group sync.WaitGroup
	for g := range 64 {
		group.Add(1)
		go func() {
			defer group.Done()
			fail := func(err error) bool {
				if err != nil {
					t.Error(err)
				}
				return err != nil
			}
			for round := range 6 {
				n := 100 + 37*g + round
				in, out := random(4*n), make([]byte, 4*n)
				x, err := d.Alloc(uint64(4 * n))
				if fail(err) {
					return
				}
				y, err := d.Alloc(uint64(4 * n))
				if fail(err) || fail(d.CopyIn(x, in)) {
					return
				}
				l := line(2, 64, uint64(y), uint64(x), uint64(n), uint64(g), uint64(round))
				l.Cancel = func() bool { return false }
				if fail(f.Launch(l)) {
					return
				}
				if g%2 == 0 {
					m, err := d.Mark(0)
					if fail(err) || fail(d.After(2, m)) || fail(d.StartOut(2, out, y)) || fail(d.Sync()) {
						return
					}
				} else if fail(d.CopyOut(out, y)) {
					return
				}
				if !bytes.Equal(out, affine(in, int32(g), int32(round))) {
					t.Errorf("goroutine %d, round %d: wrong", g, round)
				}
				if fail(d.Free(x)) || fail(d.Free(y)) {
					return
				}
			}
		}()
	}
	group.Wait()

	// Close while others call: each call works or says that the device is closed.
	for g := range 16 {
		group.Add(1)
		go func() {
			defer group.Done()
			for {
				p, err := d.Alloc(1000)
				if err == nil {
					err = d.Fill(p, byte(g), 1000)
				}
				if err == nil {
					err = d.Sync()
				}
				if err == nil {
					err = d.Free(p)
				}
				if err != nil {
					check(t, "beside Close", err, driver.Deinitialized)
					return
				}
			}
		}()
	}
	time.Sleep(20 * time.Millisecond)
	ok(t, d.Close())
	group.Wait()
}

// TestSeveralDevices: calls for different devices from one goroutine do not mix.
func TestSeveralDevices(t *testing.T) {
	if len(need(t)) < 2 {
		t.Skip("one device")
	}
	var d [2]*device
	var p [2]driver.Ptr
	var f [2]driver.Function
	for i := range d {
		d[i] = opened(t, i)
		f[i] = load(t, d[i]).f("store")
		p[i] = alloc(t, d[i], 8)
	}
	for i := range d {
		ok(t, d[i].Fill(p[i], byte(i+1), 8))
	}
	for i := range d {
		ok(t, f[i].Launch(line(1, 1, uint64(p[i]))))
	}
	for i := range d {
		b := make([]byte, 8)
		ok(t, d[i].CopyOut(b, p[i]))
		if v := ints(b); v[0] != 42 || v[1] != int32(i+1)*0x01010101 {
			t.Errorf("device %d: %v", i, v)
		}
	}
	if d[0].Info().PCI == d[1].Info().PCI || d[0].Info().UUID == d[1].Info().UUID {
		t.Error("two devices with one name")
	}
}

const childMark = "GPUNOTES_TEST_CHILD"

// mocked skips a test that sets things up with the mock. In a child nothing is asked.
func mocked(t *testing.T) []driver.Info {
	t.Helper()
	if os.Getenv(childMark) != "" {
		return make([]driver.Info, 1)
	}
	list := need(t)
	if _, mock := living(); !mock {
		t.Skip("this is set up with the mock")
	}
	return list
}

// inChild runs this test in a process of its own, with other variables of the environment: the driver starts once.
// true in the child.
func inChild(t *testing.T, env ...string) bool {
	t.Helper()
	if os.Getenv(childMark) == t.Name() {
		return true
	}
	var parts []string
	for p := range strings.SplitSeq(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(p)+"$")
	}
	c := exec.Command(os.Args[0], "-test.run="+strings.Join(parts, "/"), "-test.v", "-test.timeout=60s")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CUDA_VISIBLE_DEVICES=") && !strings.HasPrefix(v, childMark+"=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(append(c.Env, childMark+"="+t.Name(), "GORACE=atexit_sleep_ms=0"), env...)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v: %v\n%s", env, err, out)
	}
	return false
}

// fails checks that there is no device, and what is said about it.
func fails(t *testing.T, want driver.Code, words ...string) {
	t.Helper()
	for range 2 { // it does not change
		_, err := Driver{}.Devices()
		check(t, "Devices", err, want, words...)
		if !errors.Is(err, driver.NoDevice) {
			t.Errorf("%v is not NoDevice", err)
		}
		_, err = Driver{}.Open(0)
		check(t, "Open", err, want, words...)
	}
}

// TestNoLibrary needs none.
func TestNoLibrary(t *testing.T) {
	t.Run("none", func(t *testing.T) {
		if inChild(t, shim.Variable+"=") {
			fails(t, driver.NoDevice, "dlopen", shim.Variable, "set and empty")
		}
	})
	t.Run("missing", func(t *testing.T) {
		if inChild(t, shim.Variable+"=/nowhere/libcuda.so.1") {
			fails(t, driver.NoDevice, "dlopen", "/nowhere/libcuda.so.1", "cannot open shared object file", "unset it")
			if shim.Library() != "" {
				t.Error("loaded:", shim.Library())
			}
			// A library that comes later is found.
			os.Setenv(shim.Variable, "")
			fails(t, driver.NoDevice, "set and empty")
		}
	})
	t.Run("other", func(t *testing.T) {
		if inChild(t, shim.Variable+"=libc.so.6") {
			fails(t, driver.NoDevice, "libc.so.6 has no function cuInit")
		}
	})
}

// TestBinary: the program does not ask for libcuda when it is started, and gives nobody its own entry points.
func TestBinary(t *testing.T) {
	f, err := elf.Open(os.Args[0])
	ok(t, err)
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	ok(t, err)
	for _, l := range libraries {
		if strings.Contains(l, "cuda") {
			t.Error("needs", l)
		}
	}
	symbols, err := f.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if regexp.MustCompile(`^cu[A-Z]`).MatchString(s.Name) {
			t.Error("dynamic symbol", s.Name)
		}
	}
}

// TestNoDevice: what may be wrong with a machine, each said.
func TestNoDevice(t *testing.T) {
	list := mocked(t)
	for _, c := range []struct {
		name, env string
		want      driver.Code
		words     []string
	}{
		{"driver alone", "GPUNOTES_MOCK_CARDS=", driver.NoDevice, []string{"cuInit", "the driver is here"}},
		{"stub", "GPUNOTES_MOCK_INIT=34", driver.StubLibrary, []string{"stubs", "restart the program"}},
		{"versions", "GPUNOTES_MOCK_INIT=803", driver.SystemDriverMismatch, []string{"different versions"}},
		{"compat", "GPUNOTES_MOCK_INIT=804", driver.CompatNotSupportedOnDevice, []string{"compat"}},
		{"fabric", "GPUNOTES_MOCK_INIT=802", driver.SystemNotReady, []string{"nvidia-fabricmanager"}},
		{"unknown", "GPUNOTES_MOCK_INIT=999", driver.Unknown, []string{"nvidia-uvm"}},
		{"busy", "GPUNOTES_MOCK_INIT=46", driver.DeviceUnavailable, []string{"another process"}},
		{"mps", "GPUNOTES_MOCK_INIT=805", driver.MPSConnectionFailed, []string{"nvidia-cuda-mps-control"}},
		{"nameless", "GPUNOTES_MOCK_INIT=77", driver.Code(77), []string{"CUDA error 77", "restart"}},
		{"count", "GPUNOTES_MOCK_FAIL=cuDeviceGetCount:1=3,cuDeviceGetCount:2=3,cuDeviceGetCount:3=3,cuDeviceGetCount:4=3", -3, nil},
		{"hidden all", "CUDA_VISIBLE_DEVICES=", driver.NoDevice, []string{`CUDA_VISIBLE_DEVICES=""`, "empty shows none"}},
		{"hidden -1", "CUDA_VISIBLE_DEVICES=-1,0", driver.NoDevice, []string{`"-1,0"`, "-1 hides itself and all that follow"}},
		{"hidden range", "CUDA_VISIBLE_DEVICES=17,0", driver.NoDevice, []string{"no device 17"}},
		{"hidden PCI", "CUDA_VISIBLE_DEVICES=" + list[0].PCI, driver.NoDevice, []string{"looks like a PCI id", "restart"}},
		{"hidden ids", "CUDA_VISIBLE_DEVICES=10DE 1B06 63933842", driver.NoDevice, []string{`="10DE 1B06 63933842"`, "10DE 1B06 63933842 are PCI ids", "not which"}},
		{"hidden UUID", "CUDA_VISIBLE_DEVICES=GPU-00000000", driver.NoDevice, []string{"no device has the UUID GPU-00000000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !inChild(t, c.env) {
				return
			}
			if c.want == -3 {
				_, err := Driver{}.Devices()
				check(t, "Devices", err, driver.NotInitialized, "cuDeviceGetCount")
				return
			}
			fails(t, c.want, c.words...)
		})
	}
	t.Run("hidden some", func(t *testing.T) {
		if !inChild(t, "CUDA_VISIBLE_DEVICES="+list[len(list)-1].UUID+",-1,0") {
			return
		}
		if len(need(t)) != 1 {
			t.Error(need(t))
		}
		opened(t, 0)
		_, err := Driver{}.Open(1)
		check(t, "Open of a hidden one", err, driver.InvalidDevice, "there is only device 0", "CUDA_VISIBLE_DEVICES=")
	})
}

// TestFailures: errors of the driver's come through, with the call's name, and leave nothing behind.
func TestFailures(t *testing.T) {
	mocked(t)
	for _, c := range []struct {
		name, fail string
		want       driver.Code
		call       string
		lost       bool
	}{
		{"context", "cuDevicePrimaryCtxRetain:1=46", driver.DeviceUnavailable, "cuDevicePrimaryCtxRetain", false},
		{"stream", "cuStreamCreate:2=2", driver.OutOfMemory, "cuStreamCreate", false},
		{"event", "cuEventCreate:1=2", driver.OutOfMemory, "cuEventCreate", false},
		{"alloc", "cuMemAlloc_v2:1=2,cuMemAllocAsync:1=2,cuMemAllocAsync:2=2", driver.OutOfMemory, "cuMemAlloc", false},
		{"copy in", "cuMemcpyHtoDAsync_v2:1=1", driver.InvalidValue, "cuMemcpyHtoD", false},
		{"copy out", "cuMemcpyDtoHAsync_v2:1=719", driver.LaunchFailed, "cuMemcpyDtoH", true},
		{"launch", "cuLaunchKernel:1=701", driver.LaunchOutOfResources, "cuLaunchKernel", false},
		{"launch lost", "cuLaunchKernel:1=702", driver.LaunchTimeout, "cuLaunchKernel", true},
		{"load", "cuModuleLoadDataEx:1=221", driver.JITCompilerNotFound, "cuModuleLoadDataEx", false},
		{"mark", "cuEventRecord:2=2", driver.OutOfMemory, "cuEventRecord", false},
		{"current", "cuCtxSetCurrent:9=201", driver.InvalidContext, "cuCtxSetCurrent", true},
		{"ecc", "cuEventQuery:1=214", driver.ECCUncorrectable, "cuEventQuery", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !inChild(t, "GPUNOTES_MOCK_FAIL="+c.fail) {
				return
			}
			need(t)
			before, _ := living()
			// A whole way through the calls; the first error ends it.
			d, err := Driver{}.Open(0)
			way := func() error {
				m, err := d.Load([]byte(kernels))
				if err != nil {
					return err
				}
				f, err := m.Function("store")
				if err != nil {
					return err
				}
				p, err := d.Alloc(1000)
				if err != nil {
					return err
				}
				if err := d.CopyIn(p, make([]byte, 1000)); err != nil {
					return err
				}
				if err := f.Launch(line(1, 1, uint64(p))); err != nil {
					return err
				}
				if err := d.CopyOut(make([]byte, 1000), p); err != nil {
					return err
				}
				return d.Sync()
			}
			if err == nil {
				err = way()
			}
			check(t, c.fail, err, c.want, c.call)
			if d == nil {
				if d, err = (Driver{}).Open(0); err != nil { // once, not for ever
					t.Fatal(err)
				}
			} else if (d.Lost() != nil) != c.lost {
				t.Errorf("lost: %v", d.Lost())
			}
			if c.lost {
				ok(t, d.Close())
				d, err = Driver{}.Open(0)
				ok(t, err)
			}
			if err := way(); err != nil {
				t.Errorf("the next time: %v", err)
			}
			ok(t, d.Close())
			if after, _ := living(); after != before {
				t.Errorf("left: %s\nbefore: %s", after, before)
			}
		})
	}
	for _, missing := range []string{"cuMemHostRegister_v2", "cuMemHostGetDevicePointer_v2", "cuDeviceGetUuid,cuDeviceGetPCIBusId,cuGetErrorString", "cuMemPoolTrimTo", "cuEventElapsedTime"} {
		t.Run("without "+missing, func(t *testing.T) {
			if !inChild(t, "GPUNOTES_MOCK_MISSING="+missing) {
				return
			}
			d := opened(t, 0)
			if strings.Contains(missing, "Host") != (d.CancelWord() == 0) {
				t.Errorf("cancel word at %#x", uint64(d.CancelWord()))
			}
			b, err := d.Pinned(5000)
			ok(t, err)
			copy(b, random(5000))
			p := alloc(t, d, 5000)
			var reported int
			d.Record(func(driver.Record) { reported++ })
			ok(t, d.StartIn(1, p, b))
			ok(t, d.Sync())
			clear(b)
			ok(t, d.CopyOut(b, p))
			if !bytes.Equal(b, random(5000)) || reported != 2 {
				t.Error("wrong, or not reported:", reported)
			}
			ok(t, d.FreePinned(b))
		})
	}
}

func TestHidden(t *testing.T) {
	for value, want := range map[string]string{
		"": "empty", " ": "empty", "-1": "-1 hides", "0000:01:00.0": "PCI", "01:00.0,1": "PCI", "3": "no device 3", "GPU-1234": "UUID GPU-1234", "MIG-12": "UUID MIG-12", "gpu-ab": "UUID", "all": "all is neither",
	} {
		if got := hidden(value); !strings.Contains(got, want) || !strings.Contains(got, "numbers from 0") {
			t.Errorf("%q: %s", value, got)
		}
	}
}

func TestNewestPTX(t *testing.T) {
	for cuda, want := range map[driver.Version]driver.Version{
		{Major: 4, Minor: 2}: {}, {Major: 8}: {Major: 5}, {Major: 10, Minor: 2}: {Major: 6, Minor: 5}, {Major: 11, Minor: 4}: {Major: 7, Minor: 4}, {Major: 12, Minor: 4}: {Major: 8, Minor: 4},
		{Major: 12, Minor: 6}: {Major: 8, Minor: 5}, {Major: 12, Minor: 9}: {Major: 8, Minor: 8}, {Major: 13}: {Major: 9}, {Major: 99}: {Major: 9, Minor: 1},
	} {
		if got := newestPTX(cuda); got != want {
			t.Errorf("CUDA %v: PTX %v, want %v", cuda, got, want)
		}
	}
}

func TestReadPTX(t *testing.T) {
	got := readPTX([]byte(kernels))
	if got.version != (driver.Version{Major: 6}) || got.target != 30 || len(got.entries) != 6 {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]entry{
		"affine": {params: 5}, "spin": {params: 2}, "store": {params: 1}, "dynamic": {params: 2}, "bounded": {bound: 128}, "exact": {bound: 64, required: driver.Dim{X: 32, Y: 2, Z: 1}},
	} {
		if got.entries[name] != want {
			t.Errorf("%s: %+v, want %+v", name, got.entries[name], want)
		}
	}
	odd := readPTX([]byte(".version 8.7 // .version 1.0\n.target sm_90a, debug\n/* .entry no() { */ .entry $a_1%(\n\t.param .align 8 .b8 $p[24], // two, of which\n\t.param .u32 q,\n.param .b8 r[8]\n)\n{ ret; }\n.entry b{ret;}\n.func c(.param .u64 x) { ret; }"))
	if odd.target != 90 || odd.version != (driver.Version{Major: 8, Minor: 7}) || len(odd.entries) != 2 || odd.entries["b"] != (entry{}) ||
		odd.entries["$a_1%"] != (entry{params: 3, long: ".param .align 8 .b8 $p[24]"}) {
		t.Errorf("%+v", odd)
	}
}

func TestRegions(t *testing.T) {
	var r regions
	for _, a := range []uint64{4096, 256, 1024, 1 << 40} {
		r.add(region{base: a, size: 100})
	}
	for _, c := range []struct {
		a, n uint64
		in   bool
	}{{256, 100, true}, {256, 101, false}, {355, 1, true}, {356, 0, false}, {255, 1, false}, {0, 1, false}, {4100, 96, true}, {4100, 97, false}, {1<<40 + 99, 1, true}, {1<<40 + 50, math.MaxUint64, false}} {
		if (r.find(c.a, c.n) != nil) != c.in {
			t.Errorf("%d bytes at %d: %v", c.n, c.a, !c.in)
		}
	}
	if _, found := r.remove(300); found {
		t.Error("a region is removed by an address within")
	}
	if x, found := r.remove(1024); !found || x.size != 100 || r.find(1024, 1) != nil || len(r) != 3 {
		t.Error("not removed")
	}
}
