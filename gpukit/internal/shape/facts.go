package shape

import "fmt"

// Space is what facts are found of: an index space and what its workers use. Kinds
// are the caller's numbers for where elements come from, 0 for memory.
type Space struct {
	Dims  []int // sizes of the dimensions
	Walks []Walk
	Views []View
	More  uint8 // what else the caller's code depends on
	Small int   // up to which the sizes of views that are to be frozen are part of the facts
}

// Walk is how workers go through a sequence of elements or numbers, one each.
type Walk struct {
	Strides []int // over the dimensions; nil if every worker has the same
	Kind    uint8
	// Place says that the number itself is what a worker gets, and not an element.
	Place bool
}

// View is an array that each worker indexes.
type View struct {
	Shape, Strides []int // of what a worker sees
	Kind           uint8
	Align          int    // a power of two, up to 128, of which all addresses are multiples; 0 if nobody asks
	Alone          bool   // nothing that the launch writes overlaps it
	Freeze         uint64 // the dimensions whose sizes are part of the facts if they are small: bit d for dimension d
}

// Facts is what code may rely on: launches of equal facts can run the same code.
// It is comparable; the zero value says nothing.
type Facts struct{ key string }

// Known are the facts in words.
type Known struct {
	Rank   int  // dimensions that are left when those that all walk as one are joined
	Narrow bool // fewer than 2^31 workers
	More   uint8
	Walks  []KnownWalk
	Views  []KnownView
}

// KnownWalk is what is known of a Walk.
type KnownWalk struct {
	Kind       uint8
	Place      bool
	Same       bool  // every worker has the same
	Contiguous bool  // the n-th worker has the n-th
	Steps      []int // over the joined dimensions: 0, 1, or Unknown; nil if Same
}

// KnownView is what is known of a View.
type KnownView struct {
	Kind       uint8
	Contiguous bool // C order without gaps
	Unit       bool // the last stride is 1
	Alone      bool
	Align      int
	Zero       []int // the dimensions of stride 0 and more than one element
	Sizes      []int // by dimension, or Unknown
	// Equal is, by dimension, the number of an earlier size, counted over all
	// dimensions of all views, that is the same; or Unknown.
	Equal []int
}

// Unknown is what stands for a number of which facts say nothing.
const Unknown = -1

// Join finds the dimensions that every walk goes through as if they were one, from
// the right, and leaves out those of size 1. keep are the dimensions whose strides
// remain; both results are appended to the arguments.
func (s *Space) Join(dims, keep []int) (joined, kept []int) {
	for d, n := range s.Dims {
		if n == 1 {
			continue
		}
		if last := len(keep) - 1; last >= 0 && s.goesOn(keep[last], d) {
			keep[last] = d
			dims[last] *= n
			continue
		}
		keep, dims = append(keep, d), append(dims, n)
	}
	return dims, keep
}

// goesOn reports whether every walk steps from the end of dimension d on into the
// next index of dimension before.
func (s *Space) goesOn(before, d int) bool {
	for i := range s.Walks {
		if st := s.Walks[i].Strides; st != nil && st[before] != st[d]*s.Dims[d] {
			return false
		}
	}
	return true
}

const (
	walkPlace = 1 << iota
	walkSame
	walkContiguous
)

const (
	viewContiguous = 1 << iota
	viewUnit
	viewAlone
)

const (
	stepOther = 2
	sizeFree  = 254 // not known, the first of its size
	sizeEqual = 255 // followed by the number of the earlier one
)

// maxSmall bounds Small.
const maxSmall = 200

// Facts finds what is known of s.
func (s *Space) Facts() Facts {
	var room [256]byte
	var dimRoom, keepRoom [8]int
	dims, keep := s.Join(dimRoom[:0], keepRoom[:0])
	n, ok := Size(s.Dims)
	b := append(room[:0], byte(len(keep)), bit(ok && n < 1<<31, 1), s.More, byte(len(s.Walks)), byte(len(s.Walks)>>8))
	for i := range s.Walks {
		w := &s.Walks[i]
		same, contiguous, step := true, true, 1
		for k := len(keep) - 1; k >= 0 && w.Strides != nil; k-- {
			x := w.Strides[keep[k]]
			same = same && x == 0
			contiguous = contiguous && x == step
			step *= dims[k]
		}
		contiguous = contiguous && !w.Place && (w.Strides != nil || len(keep) == 0)
		b = append(b, w.Kind, bit(w.Place, walkPlace)|bit(same, walkSame)|bit(contiguous, walkContiguous))
		for _, d := range keep {
			if same {
				break
			}
			b = append(b, stepOf(w.Strides[d]))
		}
	}
	var sizeRoom [32]int
	sizes := sizeRoom[:0]
	for i := range s.Views {
		v := &s.Views[i]
		last := len(v.Strides) - 1
		align := byte(0)
		for a := v.Align; a > 1; a >>= 1 {
			align++
		}
		b = append(b, byte(len(v.Shape)), v.Kind, align, bit(v.Align > 0, 1),
			bit(IsContiguous(v.Shape, v.Strides), viewContiguous)|bit(last >= 0 && v.Strides[last] == 1, viewUnit)|bit(v.Alone, viewAlone))
		for d, size := range v.Shape {
			b = append(b, bit(v.Strides[d] == 0 && size > 1, 1))
			first := 0
			for first < len(sizes) && sizes[first] != size {
				first++
			}
			sizes = append(sizes, size)
			switch {
			case size <= min(s.Small, maxSmall) && d < 64 && v.Freeze>>d&1 != 0:
				b = append(b, byte(size))
			case first < len(sizes)-1:
				b = append(b, sizeEqual, byte(first), byte(first>>8))
			default:
				b = append(b, sizeFree)
			}
		}
	}
	return Facts{string(b)}
}

func bit(yes bool, b byte) byte {
	if yes {
		return b
	}
	return 0
}

func stepOf(stride int) byte {
	if stride == 0 || stride == 1 {
		return byte(stride)
	}
	return stepOther
}

// Known says what the facts are.
func (f Facts) Known() *Known {
	k := &Known{}
	if f.key == "" {
		return k
	}
	b := []byte(f.key)
	next := func() int {
		x := b[0]
		b = b[1:]
		return int(x)
	}
	wide := func() int { return next() | next()<<8 }
	k.Rank, k.Narrow, k.More = next(), next() != 0, uint8(next())
	k.Walks = make([]KnownWalk, wide())
	for i := range k.Walks {
		w := &k.Walks[i]
		w.Kind = uint8(next())
		flags := next()
		w.Place, w.Same, w.Contiguous = flags&walkPlace != 0, flags&walkSame != 0, flags&walkContiguous != 0
		for d := 0; d < k.Rank && !w.Same; d++ {
			x := next()
			if x == stepOther {
				x = Unknown
			}
			w.Steps = append(w.Steps, x)
		}
	}
	for len(b) > 0 {
		rank := next()
		v := KnownView{Kind: uint8(next())}
		align, given := next(), next()
		if given != 0 {
			v.Align = 1 << align
		}
		flags := next()
		v.Contiguous, v.Unit, v.Alone = flags&viewContiguous != 0, flags&viewUnit != 0, flags&viewAlone != 0
		for d := range rank {
			if next() != 0 {
				v.Zero = append(v.Zero, d)
			}
			size, equal := Unknown, Unknown
			switch x := next(); x {
			case sizeEqual:
				equal = wide()
			case sizeFree:
			default:
				size = x
			}
			v.Sizes, v.Equal = append(v.Sizes, size), append(v.Equal, equal)
		}
		k.Views = append(k.Views, v)
	}
	return k
}

// With are the facts of two launches.
func (f Facts) With(g Facts) Facts { return Facts{f.key + "\xff\xff" + g.key} }

// String writes the facts for messages of tests.
func (f Facts) String() string { return fmt.Sprintf("%+v", *f.Known()) }
