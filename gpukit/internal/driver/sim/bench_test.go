//go:build unix

package sim

import (
	"syscall"
	"testing"

	"gpunotes/gpukit/internal/driver"
)

// horner sums a polynomial of the thread's number, 1000 rounds of 20 instructions.
const horner = `
mov.u32 %r0, %tid.x; cvt.rn.f64.u32 %fd0, %r0; mul.rn.f64 %fd0, %fd0, 0d3F50624DD2F1A9FC; mov.f64 %fd1, 0d0000000000000000; mov.u32 %r1, 0; mov.u64 %rd1, 0;
LOOP:
fma.rn.f64 %fd2, %fd0, 0d3FE0000000000000, 0d3FF0000000000000;
mul.rn.f64 %fd3, %fd2, %fd0; add.rn.f64 %fd3, %fd3, 0d3FD5555555555555;
mul.rn.f64 %fd4, %fd3, %fd0; add.rn.f64 %fd4, %fd4, 0d3FC999999999999A;
mul.rn.f64 %fd5, %fd4, %fd0; sub.rn.f64 %fd5, %fd5, %fd2;
add.rn.f64 %fd1, %fd1, %fd5;
mul.wide.u32 %rd2, %r1, 8; add.s64 %rd1, %rd1, %rd2; and.b64 %rd1, %rd1, 4095; shl.b64 %rd3, %rd1, 2; sub.s64 %rd4, %rd3, %rd1;
setp.gt.f64 %p1, %fd1, 0d4024000000000000; selp.f64 %fd1, 0d0000000000000000, %fd1, %p1;
xor.b64 %rd5, %rd4, %rd2; cvt.u32.u64 %r2, %rd5;
add.u32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 1000; @%p0 bra LOOP;
mov.b64 %rd0, %fd1;
`

// saxpy goes over an array, 1000 rounds of 9 instructions with 2 loads and a store.
const saxpy = `
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r0, %r1, %r2, %r0; mul.wide.u32 %rd1, %r0, 8;
mov.u32 %r3, 0; mov.u64 %rd0, 0;
LOOP:
add.s64 %rd2, %rda, %rd1; add.s64 %rd3, %rdb, %rd1;
ld.global.f64 %fd0, [%rd2]; ld.global.f64 %fd1, [%rd3];
fma.rn.f64 %fd1, %fd0, 0d4000000000000000, %fd1;
st.global.f64 [%rd3], %fd1;
add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 1000; @%p0 bra LOOP;
`

// cpuSeconds is the time that this process has used: the machine may be busy with other things.
func cpuSeconds() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func benchmark(b *testing.B, o Options, body string, blocks, size int) {
	d := open(b, "quadro-k2000", o)
	f := loadKernel(b, d, kernelText("sm_30", "a b out", body+storeOwn))
	l := driver.Launch{Grid: driver.Dim{X: blocks, Y: 1, Z: 1}, Block: driver.Dim{X: size, Y: 1, Z: 1}}
	for range 3 {
		l.Params = append(l.Params, alloc(b, d, words(blocks*size)))
	}
	start := cpuSeconds()
	var warps, lanes uint64
	for b.Loop() {
		if err := f.Launch(l); err != nil {
			b.Fatal(err)
		}
		warps += d.LastLaunch().Warps
		lanes += d.LastLaunch().Lanes
	}
	used := cpuSeconds() - start
	b.ReportMetric(float64(warps)/used/1e6, "Mwarps/s")
	b.ReportMetric(float64(lanes)/used/1e6, "Mlanes/s")
}

func BenchmarkRunFullWarps(b *testing.B)        { benchmark(b, bare, horner, 8, 128) }
func BenchmarkRunFullWarpsAll(b *testing.B)     { benchmark(b, Options{}, horner, 8, 128) }
func BenchmarkRunOneLane(b *testing.B)          { benchmark(b, bare, horner, 1, 1) }
func BenchmarkRunOneLaneAll(b *testing.B)       { benchmark(b, Options{}, horner, 1, 1) }
func BenchmarkRunMemory(b *testing.B)           { benchmark(b, bare, saxpy, 8, 128) }
func BenchmarkRunMemoryCounted(b *testing.B)    { benchmark(b, Options{Unchecked: true}, saxpy, 8, 128) }
func BenchmarkRunMemoryAll(b *testing.B)        { benchmark(b, Options{}, saxpy, 8, 128) }
func BenchmarkRunMemoryOneLane(b *testing.B)    { benchmark(b, bare, saxpy, 1, 1) }
func BenchmarkRunMemoryOneLaneAll(b *testing.B) { benchmark(b, Options{}, saxpy, 1, 1) }

// A large grid on a large card: 132 multiprocessors of up to 64 warps take turns.
func BenchmarkRunLargeCard(b *testing.B) {
	for _, c := range []struct {
		name string
		o    Options
	}{{"bare", bare}, {"counted", Options{Unchecked: true}}, {"all", Options{}}} {
		b.Run(c.name, func(b *testing.B) {
			d := open(b, "h200", c.o)
			f := loadKernel(b, d, kernelText("sm_70", "a b out", `
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r0, %r1, %r2, %r0; mul.wide.u32 %rd1, %r0, 8;
add.s64 %rd2, %rda, %rd1; add.s64 %rd3, %rdb, %rd1; ld.global.f64 %fd0, [%rd2]; ld.global.f64 %fd1, [%rd3];
fma.rn.f64 %fd1, %fd0, 0d4000000000000000, %fd1; mul.rn.f64 %fd2, %fd1, %fd1; sqrt.rn.f64 %fd2, %fd2; add.rn.f64 %fd2, %fd2, %fd0; mov.b64 %rd0, %fd2;`+storeOwn))
			const n = 1 << 20
			l := driver.Launch{Grid: driver.Dim{X: n / 256, Y: 1, Z: 1}, Block: driver.Dim{X: 256, Y: 1, Z: 1}}
			for range 3 {
				l.Params = append(l.Params, alloc(b, d, words(n)))
			}
			start, lanes := cpuSeconds(), uint64(0)
			for b.Loop() {
				if err := f.Launch(l); err != nil {
					b.Fatal(err)
				}
				lanes += d.LastLaunch().Lanes
			}
			b.ReportMetric(float64(lanes)/(cpuSeconds()-start)/1e6, "Mlanes/s")
		})
	}
}

// BenchmarkRunLaunch is a launch of next to nothing.
func BenchmarkRunLaunch(b *testing.B) {
	for _, c := range []struct {
		name, card string
		o          Options
	}{{"bare", "h200", bare}, {"all", "quadro-k2000", Options{}}, {"all", "h200", Options{}}} {
		b.Run(c.name+" "+c.card, func(b *testing.B) {
			d := open(b, c.card, c.o)
			f := loadKernel(b, d, kernelText("sm_30", "out", "mov.u64 %rd0, 1;"+storeOwn))
			l := driver.Launch{Grid: driver.Dim{X: 1, Y: 1, Z: 1}, Block: driver.Dim{X: 32, Y: 1, Z: 1}, Params: []uint64{alloc(b, d, words(32))}}
			b.ReportAllocs()
			start := cpuSeconds()
			for b.Loop() {
				if err := f.Launch(l); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuSeconds()-start)/float64(b.N)*1e6, "cpu-us/launch")
		})
	}
}
