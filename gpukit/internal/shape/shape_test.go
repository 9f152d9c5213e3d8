package shape

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// cells lists the indices that an array visits in C order: the model against
// which strides are checked.
func cells(s, st []int, offset int) []int {
	var out []int
	Each(s, st, offset, func(k int) { out = append(out, k) })
	return out
}

// random makes a strided view of rank up to 4 over distinct cells, some
// dimensions 0 or 1, some reversed, permuted.
func random(r *rand.Rand) (s, st []int, offset int) {
	n := r.IntN(5)
	for range n {
		s = append(s, []int{0, 1, 1, 2, 3, 4, 6}[r.IntN(7)])
	}
	gap := 1 + r.IntN(2)
	st = make([]int, n)
	next := gap
	order := r.Perm(n)
	if r.IntN(2) == 0 {
		slices.Sort(order)
		slices.Reverse(order)
	}
	for _, i := range order {
		st[i] = next
		next *= max(s[i], 1)
	}
	for i := range st {
		if r.IntN(4) == 0 {
			offset += st[i] * max(s[i]-1, 0)
			st[i] = -st[i]
		}
	}
	return s, st, offset
}

func TestEachMatchesLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		s, st, off := random(r)
		var want []int
		var walk func(axis, k int)
		walk = func(axis, k int) {
			if axis == len(s) {
				want = append(want, k)
				return
			}
			for i := range s[axis] {
				walk(axis+1, k+i*st[axis])
			}
		}
		walk(0, off)
		if got := cells(s, st, off); !slices.Equal(got, want) {
			t.Fatalf("Each(%v, %v, %d) = %v, want %v", s, st, off, got, want)
		}
		if n, ok := Size(s); !ok || n != len(want) {
			t.Fatalf("Size(%v) = %d, %v, want %d", s, n, ok, len(want))
		}
		inOrder := true
		for i, k := range want {
			inOrder = inOrder && k == off+i
		}
		if IsContiguous(s, st) != (inOrder || len(want) == 0) {
			t.Fatalf("IsContiguous(%v, %v) is %v", s, st, !inOrder)
		}
	}
}

func factorings(n, rank int, r *rand.Rand) []int {
	out := make([]int, rank)
	for i := range out {
		out[i] = 1
	}
	if n == 0 {
		out[r.IntN(rank)] = 0
		return out
	}
	for f := 2; n > 1; f++ {
		for n%f == 0 {
			out[r.IntN(rank)] *= f
			n /= f
		}
	}
	return out
}

func TestReshapeVisitsTheSameCells(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	views, copies := 0, 0
	for range 20000 {
		s, st, off := random(r)
		n, _ := Size(s)
		to := factorings(n, 1+r.IntN(4), r)
		got, ok := Reshape(s, st, to)
		if !ok {
			copies++
			if IsContiguous(s, st) {
				t.Fatalf("Reshape(%v, %v, %v) needs no copy", s, st, to)
			}
			continue
		}
		views++
		if a, b := cells(s, st, off), cells(to, got, off); !slices.Equal(a, b) {
			t.Fatalf("Reshape(%v, %v, %v) = %v visits %v, want %v", s, st, to, got, b, a)
		}
	}
	if views < 5000 || copies < 1000 {
		t.Errorf("%d views, %d copies: not both kinds are tested", views, copies)
	}
}

func TestBroadcast(t *testing.T) {
	for _, c := range []struct {
		in   [][]int
		want []int
	}{
		{nil, []int{}},
		{[][]int{{}, {}}, []int{}},
		{[][]int{{3}, {}}, []int{3}},
		{[][]int{{2, 1}, {3}}, []int{2, 3}},
		{[][]int{{1}, {0}}, []int{0}},
		{[][]int{{5, 1, 3}, {4, 1}, {1, 1, 1}}, []int{5, 4, 3}},
		{[][]int{{0, 3}, {3}}, []int{0, 3}},
	} {
		if got, conflict := Broadcast(c.in...); conflict != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("Broadcast(%v) = %v, %v, want %v", c.in, got, conflict, c.want)
		}
	}
	_, conflict := Broadcast([]int{1, 3}, []int{2, 3}, []int{4, 3})
	if want := (&Conflict{First: 1, Second: 2, FromEnd: 2, FirstSize: 2, SecondSize: 4}); !reflect.DeepEqual(conflict, want) {
		t.Errorf("conflict %+v, want %+v", conflict, want)
	}
	if _, conflict := Broadcast([]int{0}, []int{2}); conflict == nil {
		t.Error("0 and 2 broadcast")
	}
}

func TestSliceLikePython(t *testing.T) {
	// Values of list(range(n))[from:to:step].
	for _, c := range []struct {
		n, from, to, step int
		want              []int
	}{
		{5, 0, 5, 1, []int{0, 1, 2, 3, 4}},
		{5, 1, -1, 1, []int{1, 2, 3}},
		{5, -100, 100, 2, []int{0, 2, 4}},
		{5, 4, -6, -1, []int{4, 3, 2, 1, 0}},
		{5, 8, 1, -2, []int{4, 2}},
		{5, 3, 3, 1, nil},
		{5, 2, 4, -1, nil},
		{0, 0, 5, 1, nil},
		{1, 0, 1, 7, []int{0}},
	} {
		first, n := Slice(c.n, c.from, c.to, c.step)
		var got []int
		for i := range n {
			got = append(got, first+i*c.step)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("range(%d)[%d:%d:%d] = %v, want %v", c.n, c.from, c.to, c.step, got, c.want)
		}
	}
}

func TestSizeOverflow(t *testing.T) {
	for _, s := range [][]int{{1 << 32, 1 << 32}, {-1}, {1 << 62, 4}, {0, -1}} {
		if _, ok := Size(s); ok {
			t.Errorf("Size(%v) is accepted", s)
		}
	}
	if n, ok := Size([]int{1 << 62, 4, 0}); !ok || n != 0 {
		t.Error("an empty shape has size 0 whatever its other dimensions")
	}
}
