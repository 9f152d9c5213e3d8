package shape

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// anySpan makes a small view with any strides, zero and clashing ones too.
func anySpan(r *rand.Rand) Span {
	n := r.IntN(5)
	s := Span{Offset: r.IntN(12)}
	for range n {
		s.Shape = append(s.Shape, []int{0, 1, 2, 2, 3, 3, 4, 5}[r.IntN(8)])
		s.Strides = append(s.Strides, []int{0, 1, 1, 2, 3, 4, 5, 6, 7, 10, 12, 20}[r.IntN(12)]*(1-2*r.IntN(2)))
	}
	return s
}

func TestBoundsAndOverlapsMatchCells(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	shared, apart, unsure, dense := 0, 0, 0, 0
	for range 20000 {
		a, b := anySpan(r), anySpan(r)
		if r.IntN(3) == 0 {
			// A dense view: the answer must be exact.
			for _, v := range []*Span{&a, &b} {
				v.Strides = Contiguous(v.Shape)
				v.Offset = r.IntN(60)
			}
		}
		if r.IntN(3) == 0 {
			// A view of every other element, as columns of a matrix are.
			for _, v := range []*Span{&a, &b} {
				for k := range v.Strides {
					v.Strides[k] *= 2
				}
			}
		}
		ca, cb := cells(a.Shape, a.Strides, a.Offset), cells(b.Shape, b.Strides, b.Offset)
		lo, hi, ok := a.Bounds()
		if ok != (len(ca) > 0) || ok && (lo != slices.Min(ca) || hi != slices.Max(ca)) {
			t.Fatalf("Bounds(%+v) = %d, %d, %v of cells %v", a, lo, hi, ok, ca)
		}
		common := slices.ContainsFunc(ca, func(k int) bool { return slices.Contains(cb, k) })
		got := Overlaps(a, b)
		if got != Overlaps(b, a) {
			t.Fatalf("Overlaps(%+v, %+v) depends on the order", a, b)
		}
		solid := IsContiguous(a.Shape, a.Strides) && IsContiguous(b.Shape, b.Strides)
		switch {
		case common && !got:
			t.Fatalf("Overlaps(%+v, %+v) misses a common element", a, b)
		case common:
			shared++
		case got && solid:
			t.Fatalf("Overlaps(%+v, %+v) of dense views is wrong", a, b)
		case got:
			unsure++
		default:
			apart++
		}
		if solid && len(ca) > 0 && len(cb) > 0 {
			dense++
		}
	}
	if shared < 2000 || apart < 2000 || dense < 1000 || unsure > apart {
		t.Errorf("%d shared, %d apart, %d unsure, %d dense", shared, apart, unsure, dense)
	}
}

func TestOverlapsOfColumns(t *testing.T) {
	column := func(k int) Span { return Span{k, []int{100}, []int{3}} }
	if Overlaps(column(0), column(1)) || !Overlaps(column(2), column(2)) {
		t.Error("columns of one matrix")
	}
	// add(a[:-1], a[1:], out=a[1:])
	a, b := Span{0, []int{9}, []int{1}}, Span{1, []int{9}, []int{1}}
	if !Overlaps(a, b) || SameElements(a, b) || !SameElements(b, b) {
		t.Error("shifted slices")
	}
}

func TestSelfOverlapsMatchesCells(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	yes, no := 0, 0
	for range 30000 {
		v := anySpan(r)
		at := cells(v.Shape, v.Strides, 0)
		slices.Sort(at)
		want := len(slices.Compact(slices.Clone(at))) < len(at)
		if got := SelfOverlaps(v.Shape, v.Strides); got != want {
			t.Fatalf("SelfOverlaps(%v, %v) = %v, cells %v", v.Shape, v.Strides, got, at)
		}
		if want {
			yes++
		} else {
			no++
		}
	}
	if yes < 3000 || no < 3000 {
		t.Errorf("%d overlap, %d do not: not both kinds are tested", yes, no)
	}
}

func TestSelfOverlapsOfLargeViews(t *testing.T) {
	const n = 1 << 20
	for _, c := range []struct {
		what  string
		s, st []int
		want  bool
	}{
		{"C order", []int{n, n, 3}, []int{3 * n, 3, 1}, false},
		{"transposed and reversed", []int{3, n, n}, []int{-1, 3, -3 * n}, false},
		{"broadcast", []int{n, n}, []int{0, 1}, true},
		{"broadcast dimension of one", []int{1, n}, []int{0, 1}, false},
		{"broadcast but empty", []int{n, 0}, []int{0, 1}, false},
		{"sliding windows", []int{n, 5}, []int{1, 1}, true},
		{"interleaved without a clash", []int{n, 3}, []int{3, 2 * n}, false},
		{"two dimensions, first clash at the last index", []int{n + 1, 4}, []int{3, n}, true},
		{"two dimensions, just no clash", []int{n, 4}, []int{3, n}, false},
		// Distinct elements in truth: 10 to 14, then 15.. by 6; too many to walk.
		{"interleaved beyond the limit", []int{n, 3, 2}, []int{6, 2, 3}, true},
		{"interleaved, small beneath a large stride", []int{n, 2, 2, 2}, []int{1000, 6, 4, 3}, false},
	} {
		if got := SelfOverlaps(c.s, c.st); got != c.want {
			t.Errorf("%s: SelfOverlaps(%v, %v) = %v", c.what, c.s, c.st, got)
		}
	}
}

func TestSameElementsMatchesCells(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	same, empty, other := 0, 0, 0
	for range 20000 {
		a := anySpan(r)
		b := Span{a.Offset, slices.Clone(a.Shape), slices.Clone(a.Strides)}
		switch r.IntN(4) {
		case 0:
			b = anySpan(r)
		case 1:
			b.Offset++
		case 2:
			if n := len(b.Strides); n > 0 {
				b.Strides[r.IntN(n)]++
			}
		}
		ca, cb := cells(a.Shape, a.Strides, a.Offset), cells(b.Shape, b.Strides, b.Offset)
		want := slices.Equal(a.Shape, b.Shape) && slices.Equal(ca, cb)
		if SameElements(a, b) != want || SameElements(b, a) != want {
			t.Fatalf("SameElements(%+v, %+v) is not %v", a, b, want)
		}
		switch {
		case want && len(ca) == 0:
			empty++
		case want:
			same++
		default:
			other++
		}
	}
	if same < 2000 || empty < 500 || other < 2000 {
		t.Errorf("%d same, %d empty, %d other: not all kinds are tested", same, empty, other)
	}
}
