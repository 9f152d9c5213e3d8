package shape

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// randomSpace has small dimensions and strides of all kinds.
func randomSpace(r *rand.Rand) *Space {
	sizes := func(n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = []int{0, 1, 1, 2, 3, 4, 5, 17}[min(r.IntN(9), 7)]
			if out[i] == 0 && r.IntN(4) > 0 {
				out[i] = 2
			}
		}
		return out
	}
	strides := func(dims []int) []int {
		st := Contiguous(dims)
		for d := range st {
			switch r.IntN(8) {
			case 0:
				st[d] = 0
			case 1:
				st[d] = r.IntN(9) - 3
			case 2:
				st[d] *= 2
			}
		}
		return st
	}
	s := &Space{Dims: sizes(r.IntN(4)), More: uint8(r.IntN(3)), Small: 4}
	for range r.IntN(4) {
		w := Walk{Kind: uint8(r.IntN(2)), Place: r.IntN(3) == 0}
		if !w.Place || r.IntN(2) == 0 {
			w.Strides = strides(s.Dims)
		}
		s.Walks = append(s.Walks, w)
	}
	for range r.IntN(3) {
		dims := sizes(1 + r.IntN(3))
		s.Views = append(s.Views, View{Shape: dims, Strides: strides(dims), Kind: uint8(r.IntN(2)), Align: []int{0, 1, 8, 16}[r.IntN(4)],
			Alone: r.IntN(2) == 0, Freeze: uint64(r.IntN(8))})
	}
	return s
}

// offsets are where the elements are, in C order.
func offsets(dims, strides []int) (out []int) {
	Each(dims, strides, 0, func(k int) { out = append(out, k) })
	return out
}

func counting(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestFacts compares what is known with every element.
func TestFacts(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	seen := map[Facts]*Known{}
	joined, again := 0, 0
	for range 6000 {
		s := randomSpace(r)
		f := s.Facts()
		k := f.Known()
		if old := seen[f]; old != nil {
			if again++; !reflect.DeepEqual(old, k) {
				t.Fatalf("%+v: one key, two meanings", s)
			}
		}
		seen[f] = k
		dims, keep := s.Join(nil, nil)
		n, _ := Size(s.Dims)
		if k.Rank != len(keep) || len(dims) != len(keep) || !k.Narrow || k.More != s.More || len(k.Walks) != len(s.Walks) || len(k.Views) != len(s.Views) {
			t.Fatalf("%+v: %+v", s, k)
		}
		if len(keep) < len(s.Dims) {
			joined++
		}
		for i, w := range s.Walks {
			x := k.Walks[i]
			if x.Kind != w.Kind || x.Place != w.Place {
				t.Fatalf("%+v: walk %d: %+v", s, i, x)
			}
			if w.Strides == nil {
				if !x.Same {
					t.Fatalf("%+v: walk %d: %+v", s, i, x)
				}
				continue
			}
			st := make([]int, len(keep))
			for j, d := range keep {
				st[j] = w.Strides[d]
			}
			all := offsets(s.Dims, w.Strides)
			if !slices.Equal(all, offsets(dims, st)) {
				t.Fatalf("%+v: joined to %v, walk %d goes elsewhere", s, dims, i)
			}
			if x.Same && slices.ContainsFunc(all, func(k int) bool { return k != 0 }) || x.Contiguous && !slices.Equal(all, counting(n)) {
				t.Fatalf("%+v: walk %d: %+v", s, i, x)
			}
			if n > 1 && !w.Place && slices.Equal(all, counting(n)) && !x.Contiguous {
				t.Fatalf("%+v: walk %d is contiguous, which is not known", s, i)
			}
			for j := range x.Steps {
				if x.Steps[j] != Unknown && x.Steps[j] != st[j] || x.Steps[j] == Unknown && (st[j] == 0 || st[j] == 1) {
					t.Fatalf("%+v: walk %d: %+v", s, i, x)
				}
			}
		}
		var sizes []int
		for i, v := range s.Views {
			x := k.Views[i]
			if x.Kind != v.Kind || x.Alone != v.Alone || x.Align != v.Align {
				t.Fatalf("%+v: view %d: %+v", s, i, x)
			}
			all := offsets(v.Shape, v.Strides)
			if x.Contiguous && !slices.Equal(all, counting(len(all))) || x.Unit && v.Strides[len(v.Strides)-1] != 1 {
				t.Fatalf("%+v: view %d: %+v", s, i, x)
			}
			for d, size := range v.Shape {
				if slices.Contains(x.Zero, d) != (v.Strides[d] == 0 && size > 1) {
					t.Fatalf("%+v: view %d: %+v", s, i, x)
				}
				if x.Sizes[d] != Unknown && x.Sizes[d] != size || (x.Sizes[d] != Unknown) != (size <= s.Small && v.Freeze>>d&1 != 0) {
					t.Fatalf("%+v: view %d: %+v", s, i, x)
				}
				e := x.Equal[d]
				if e != Unknown && (e >= len(sizes) || sizes[e] != size) || e == Unknown && x.Sizes[d] == Unknown && slices.Contains(sizes, size) {
					t.Fatalf("%+v: view %d: %+v", s, i, x)
				}
				sizes = append(sizes, size)
			}
		}
	}
	if joined < 500 || again < 500 {
		t.Errorf("%d spaces had dimensions to join, %d had facts that another had", joined, again)
	}
}

func TestFactsOfNothing(t *testing.T) {
	if k := (Facts{}).Known(); k.Rank != 0 || k.Walks != nil || k.Views != nil {
		t.Error(k)
	}
	a, b := (&Space{Dims: []int{3}}).Facts(), (&Space{Dims: []int{3, 4}, Walks: []Walk{{Strides: []int{9, 1}}}}).Facts()
	if a == b || a.With(b) == b.With(a) || a.With(b) == a {
		t.Error("different facts are equal")
	}
}
