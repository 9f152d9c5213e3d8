package frontend

import (
	"math/rand"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gpunotes/gpukit/internal/ir"
)

var arrayNatives = map[string]any{
	"aSum": aSum, "aAxpy": aAxpy, "aMatmul": aMatmul, "aConvolve": aConvolve, "aPrefix": aPrefix, "aHistogram": aHistogram, "aRank3": aRank3,
	"aRows": aRows, "aCallees": aCallees, "aVest14": aVest14, "aVest16": aVest16, "aVest17": aVest17, "aSlices": aSlices, "aTotal": aTotal,
	"aIndexTypes": aIndexTypes, "aOrder": aOrder, "aNamed": aNamed, "aBools": aBools, "aShortCircuit": aShortCircuit, "aFound": aFound, "aBubble": aBubble,
	"aConstantIndex": aConstantIndex, "aDynamicIndex": aDynamicIndex, "aZeroInLoop": aZeroInLoop, "aByValue": aByValue, "aRangeCopies": aRangeCopies,
	"aArrayViews": aArrayViews, "aBig": aBig, "aManyConstants": aManyConstants, "aTables": aTables, "aEmpty": aEmpty,
	"aStructs": aStructs, "aBlankFields": aBlankFields, "aStructParam": aStructParam, "aArrayOfStructs": aArrayOfStructs,
	"aBits8": aBits8, "aBits16": aBits16, "aBits32": aBits32, "aBits64": aBits64, "aBits": aBits, "aWide": aWide,
}

func arraysFile(t testing.TB) *pkg {
	t.Helper()
	src, err := os.ReadFile("arrays_native_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, "arrays_native_test.go", string(src))
}

// TestArrays compares every function of arrays_native_test.go with itself,
// compiled by the Go compiler: results, faults, and what is in the arrays
// afterwards. The arrays lie in memory with offsets and strides of any kind.
func TestArrays(t *testing.T) {
	p := arraysFile(t)
	for name := range p.decls {
		if _, ok := arrayNatives[name]; len(name) > 1 && name[0] == 'a' && strings.ToUpper(name[1:2]) == name[1:2] && !ok {
			t.Errorf("%s is not in the table arrayNatives", name)
		}
	}
	for name, native := range arrayNatives {
		t.Run(name, func(t *testing.T) {
			prog, err := Compile(p.input(name))
			if err != nil {
				t.Fatal(err)
			}
			if err := ir.Verify(prog.Func); err != nil {
				t.Fatal(err)
			}
			compareArrays(t, prog, native, 300)
		})
	}
}

// memory is a Global memory of the evaluator; what lies between the elements of
// an array must stay as it is.
type memory []ir.Bits

func (m memory) Load(i int) ir.Bits     { return m[i] }
func (m memory) Store(i int, b ir.Bits) { m[i] = b }

const gap = 0x5A

// strided is an array argument: a Go slice, and the same as memory.
type strided struct {
	p       Param
	value   reflect.Value
	shape   []int
	strides []int
	offset  int
	mem     memory
}

// each calls f for every element of the Go slice, with its place in memory.
func (s *strided) each(f func(v reflect.Value, at int)) {
	var visit func(v reflect.Value, at, dim int)
	visit = func(v reflect.Value, at, dim int) {
		if dim == len(s.shape) {
			f(v, at)
			return
		}
		for i := range v.Len() {
			visit(v.Index(i), at+i*s.strides[dim], dim+1)
		}
	}
	visit(s.value, s.offset, 0)
}

func (s *strided) bits() []ir.Bits {
	b := []ir.Bits{ir.Bits(s.offset)}
	for _, n := range s.shape {
		b = append(b, ir.Bits(n))
	}
	for _, n := range s.strides {
		b = append(b, ir.Bits(n))
	}
	return b
}

func newStrided(rnd *rand.Rand, p Param, t reflect.Type) *strided {
	s := &strided{p: p, offset: rnd.Intn(3)}
	size := 1
	for range p.Rank {
		n := 3 + rnd.Intn(3)
		if rnd.Intn(12) == 0 {
			n = rnd.Intn(2)
		}
		s.shape = append(s.shape, n)
		size *= max(n, 1)
	}
	// Any order of the dimensions, any direction, gaps.
	s.strides = make([]int, p.Rank)
	step := 1 + rnd.Intn(2)
	for _, d := range rnd.Perm(p.Rank) {
		s.strides[d] = step
		n := max(s.shape[d], 1)
		if rnd.Intn(4) == 0 {
			s.strides[d] = -step
			s.offset += (n - 1) * step
		}
		step = step*n + rnd.Intn(2)
	}
	s.mem = make(memory, s.offset+step+4)
	for i := range s.mem {
		s.mem[i] = gap
	}
	var build func(t reflect.Type, dim int) reflect.Value
	build = func(t reflect.Type, dim int) reflect.Value {
		if dim == p.Rank {
			return toGo(t, p.Type, element(rnd, p.Type))
		}
		v := reflect.MakeSlice(t, s.shape[dim], s.shape[dim])
		for i := range s.shape[dim] {
			v.Index(i).Set(build(t.Elem(), dim+1))
		}
		return v
	}
	s.value = build(t, 0)
	s.each(func(v reflect.Value, at int) { s.mem[at] = fromGo(v) })
	return s
}

// element is a number that is often an index.
func element(rnd *rand.Rand, t ir.Type) ir.Bits {
	switch {
	case !t.IsInt() || rnd.Intn(12) == 0:
		return argument(rnd, t)
	case t.IsSigned() && rnd.Intn(20) == 0:
		return ir.Wrap(t, ir.Bits(-1-rnd.Intn(3)))
	}
	return ir.Bits(rnd.Intn(7))
}

var indexPanic = regexp.MustCompile(`index out of range \[(-?\d+)\](?: with length (\d+))?`)

func compareArrays(t *testing.T, prog *Program, native any, n int) {
	t.Helper()
	f := reflect.ValueOf(native)
	rnd := rand.New(rand.NewSource(5))
	optimised := ir.Optimize(prog.Func)
	if err := ir.Verify(optimised); err != nil {
		t.Fatal(err)
	}
	faults := 0
	loops := slices.ContainsFunc(prog.Params, func(p Param) bool { return p.Kind == Array })
	for range n {
		var arrays []*strided
		var args []ir.Bits
		in := make([]reflect.Value, len(prog.Params))
		for i, p := range prog.Params {
			if p.First != len(args) {
				t.Fatalf("parameter %s begins at %d, not %d", p.Name, p.First, len(args))
			}
			rt := f.Type().In(i)
			switch p.Kind {
			case Scalar:
				b := element(rnd, p.Type)
				if loops && p.Type.IsInt() {
					b = ir.Wrap(p.Type, b&0x3F-1) // it may bound a loop
				}
				args = append(args, b)
				in[i] = toGo(rt, p.Type, args[len(args)-1])
			case Array:
				s := newStrided(rnd, p, rt)
				arrays = append(arrays, s)
				args = append(args, s.bits()...)
				in[i] = s.value
			case Parts:
				v := reflect.New(rt).Elem()
				for _, leaf := range p.Leaves {
					b := element(rnd, leaf.Type)
					args = append(args, b)
					x := v
					for _, k := range leaf.Path {
						if x.Kind() == reflect.Array {
							x = x.Index(k)
							continue
						}
						x = x.Field(k)
					}
					x = reflect.NewAt(x.Type(), x.Addr().UnsafePointer()).Elem()
					x.Set(toGo(x.Type(), leaf.Type, b))
				}
				in[i] = v
			}
		}
		before := make([]memory, len(arrays))
		for i, a := range arrays {
			before[i] = append(memory(nil), a.mem...)
		}
		want, fault := callNative(f, in)
		for name, code := range map[string]*ir.Func{"raw": prog.Func, "optimised": optimised} {
			mems := make([]ir.Storage, len(arrays))
			for i := range arrays {
				mems[i] = append(memory(nil), before[i]...)
			}
			got, err := (&ir.Evaluator{Steps: 1e6}).RunWorker(code, mems, args)
			if fault != "" || err != nil {
				faults++
				if fault == "" || err == nil || !strings.Contains(fault, err.(*ir.FaultError).Fault.String()) {
					t.Fatalf("%s %v: fault %v, native %q\n%v", name, args, err, fault, code)
				}
				if m := indexPanic.FindStringSubmatch(fault); m != nil {
					says := "index " + m[1]
					if m[2] != "" {
						says += ", length " + m[2]
					}
					if !strings.Contains(err.Error(), says) && m[1][0] != '-' && len(m[1]) < 19 && m[2] != "0" {
						t.Fatalf("%s %v: %v, native %q", name, args, err, fault)
					}
				}
				if pos := err.(*ir.FaultError).Pos; pos.Line == 0 || pos.Col == 0 {
					t.Errorf("%v has no position", err)
				}
				continue
			}
			k := 0
			for i, w := range want {
				rt := prog.Results[i]
				if g, w := ir.Canonical(rt, got[k]), ir.Canonical(rt, fromGo(w)); g != w {
					t.Fatalf("%s %v: result %d is %s, native %s\n%v", name, args, i, ir.FormatBits(rt, g), ir.FormatBits(rt, w), code)
				}
				k++
			}
			for i, a := range arrays {
				m := mems[i].(memory)
				at := map[int]bool{}
				a.each(func(v reflect.Value, k int) {
					at[k] = true
					if g, w := ir.Canonical(a.p.Type, m[k]), ir.Canonical(a.p.Type, fromGo(v)); g != w {
						t.Fatalf("%s %v: %s holds %s, native %s\n%v", name, args, a.p.Name, ir.FormatBits(a.p.Type, g), ir.FormatBits(a.p.Type, w), code)
					}
				})
				for k := range m {
					if !at[k] && m[k] != before[i][k] {
						t.Fatalf("%s %v: wrote beside %s", name, args, a.p.Name)
					}
				}
				if !a.p.Written && !reflect.DeepEqual(m, before[i]) {
					t.Fatalf("%s is written and not said to be", a.p.Name)
				}
			}
		}
	}
	if faults > 2*n*9/10 {
		t.Errorf("%d of %d calls fault", faults, 2*n)
	}
}
