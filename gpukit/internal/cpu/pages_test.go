package cpu

import (
	"runtime"
	"testing"
	"time"
	"unsafe"
)

// collect runs the garbage collector until what is waited for has come.
func collect(t *testing.T, what string, come func() bool) {
	t.Helper()
	for range 200 {
		runtime.GC()
		if come() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("in 200 cycles of the garbage collector: no %s", what)
}

func spareBlocks() int {
	pages.Lock()
	defer pages.Unlock()
	n := 0
	for _, l := range pages.spare {
		n += len(l)
	}
	return n
}

func TestMakeArray(t *testing.T) {
	DropPages()
	for _, n := range []int{0, 1, largeFrom/8 - 1, largeFrom / 8, largeFrom/8 + 1, hugeFrom/8 - 1, hugeFrom / 8, 2_000_000, 5_000_001} {
		s, dirty := MakeArray[float64](n)
		if len(s) != n || cap(s) != n {
			t.Fatalf("%d elements: len %d, cap %d", n, len(s), cap(s))
		}
		if n*8 >= hugeFrom && uintptr(unsafe.Pointer(&s[0]))%hugePage != 0 {
			t.Errorf("%d elements begin at %p", n, &s[0])
		}
		for i := range s {
			if !dirty && s[i] != 0 {
				t.Fatalf("%d elements: element %d is %v, not 0", n, i, s[i])
			}
			s[i] = 7
		}
	}
	if s, _ := MakeArray[bool](largeFrom + 3); len(s) != largeFrom+3 {
		t.Errorf("%d bools", len(s))
	}
}

// A block is used again once nobody refers to any element of it, and not before.
func TestPagesComeBack(t *testing.T) {
	DropPages()
	collect(t, "end of earlier blocks", func() bool { DropPages(); return spareBlocks() == 0 })
	const n = 1_000_000
	a, _ := MakeArray[float64](n)
	first := uintptr(unsafe.Pointer(&a[0]))
	a[n/2] = 42
	part := a[n/2 : n/2+1]
	a = nil
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if spareBlocks() != 0 {
		t.Fatal("a block waits for use though a slice of it is there")
	}
	if b, dirty := MakeArray[float64](n); dirty || uintptr(unsafe.Pointer(&b[0])) == first {
		t.Fatal("memory in use was given out")
	}
	if part[0] != 42 {
		t.Fatalf("an element of memory in use is %v", part[0])
	}
	runtime.KeepAlive(part)
	part = nil
	collect(t, "block that came back", func() bool { return spareBlocks() > 0 })
	seen := false
	for range 2 { // the one above came back too, perhaps
		b, dirty := MakeArray[int64](n) // of another type
		seen = seen || dirty && uintptr(unsafe.Pointer(&b[0])) == first
		runtime.KeepAlive(b)
	}
	if !seen {
		t.Error("the block was not given out again")
	}
	// What nobody wants goes.
	collect(t, "end of blocks that nobody wants", func() bool { return spareBlocks() == 0 })
	if pages.total != 0 {
		t.Errorf("%d bytes are counted for no block", pages.total)
	}
}

// Blocks that wait are bounded.
func TestPagesAreBounded(t *testing.T) {
	DropPages()
	defer DropPages()
	const n = 4 << 20
	for range mostSpare/(8*n) + 5 {
		keepBlock(block{first: new(uint64), words: n})
	}
	if pages.total > mostSpare || spareBlocks() > mostSpare/(8*n) {
		t.Errorf("%d blocks, %d bytes wait", spareBlocks(), pages.total)
	}
}

func BenchmarkFreshArray(b *testing.B) {
	const n = 2_000_000
	var keep []float64
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			keep = make([]float64, n)
			for i := range keep {
				keep[i] = 1
			}
		}
	})
	b.Run("MakeArray", func(b *testing.B) {
		for b.Loop() {
			keep, _ = MakeArray[float64](n)
			for i := range keep {
				keep[i] = 1
			}
		}
	})
	_ = keep
}
