package frontend

import (
	"go/types"

	"gpunotes/gpukit/internal/ir"
)

// layout says of which scalars a value of a Go type consists.
type layout struct {
	// groups lists them: a scalar is one group of one; a struct has the groups
	// of its fields one after the other; an array of n has those of its element,
	// each n times as long, element after element; a slice is one group of
	// int64: offset, shape, strides.
	groups []group
	n      int // of all groups together
	// Of arrays.
	elem *layout
	len  int
	// Of structs.
	fields []*layout
	// Of slices.
	rank int
	of   ir.Type
}

// group is a run of scalars of one type.
type group struct {
	t     ir.Type
	n     int
	array bool // of elements of an array
	blank bool // of a field without a name: == does not look at it
}

func (y *layout) scalar() bool { return y.elem == nil && y.fields == nil && y.rank == 0 }

// start is the place of group g among all the scalars.
func (y *layout) start(g int) int {
	n := 0
	for _, x := range y.groups[:g] {
		n += x.n
	}
	return n
}

// field gives the first group of a field.
func (y *layout) field(i int) (first int) {
	for _, f := range y.fields[:i] {
		first += len(f.groups)
	}
	return first
}

// maxElements bounds the elements of a fixed array.
const maxElements = 1 << 20

// layoutOf gives the layout of t, or false if values of t are not part of the
// kernel language.
func layoutOf(t types.Type) (*layout, bool) {
	y := layouts{}.of(t)
	return y, y != nil
}

// layouts has nil for a type that is being looked at: one that contains itself
// is an error of go/types, but still a type.
type layouts map[types.Type]*layout

func (m layouts) of(t types.Type) *layout {
	if y, ok := m[t]; ok || t == nil {
		return y
	}
	m[t] = nil
	y, ok := m.make(t)
	if !ok {
		return nil
	}
	m[t] = y
	return y
}

func (m layouts) make(t types.Type) (*layout, bool) {
	if x, ok := irType(t); ok {
		return &layout{groups: []group{{t: x, n: 1}}, n: 1}, true
	}
	if _, ok := t.(*types.TypeParam); ok {
		return nil, false
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		rank := 1
		e := u.Elem()
		for {
			s, ok := e.Underlying().(*types.Slice)
			if !ok {
				break
			}
			e = s.Elem()
			if rank++; rank > maxRank {
				return nil, false
			}
		}
		of, ok := irType(e)
		return &layout{groups: []group{{t: ir.I64, n: 2*rank + 1}}, n: 2*rank + 1, rank: rank, of: of}, ok
	case *types.Array:
		e := m.of(u.Elem())
		if e == nil || e.rank > 0 || u.Len() > maxElements || int(u.Len())*e.n > maxElements {
			return nil, false
		}
		y := &layout{elem: e, len: int(u.Len()), n: int(u.Len()) * e.n}
		for _, g := range e.groups {
			y.groups = append(y.groups, group{g.t, g.n * y.len, true, g.blank})
		}
		return y, true
	case *types.Struct:
		y := &layout{fields: []*layout{}}
		for i := range u.NumFields() {
			f := m.of(u.Field(i).Type())
			if f == nil || f.rank > 0 || y.n+f.n > maxElements {
				return nil, false
			}
			y.fields = append(y.fields, f)
			for _, g := range f.groups {
				g.blank = g.blank || u.Field(i).Name() == "_"
				y.groups = append(y.groups, g)
			}
			y.n += f.n
		}
		return y, true
	}
	return nil, false
}

// maxRank ends a slice type that contains itself.
const maxRank = 32

func isSlice(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Slice)
	return ok
}

func isArray(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Array)
	return ok
}
