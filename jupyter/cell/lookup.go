package cell

import (
	"math"
	"reflect"

	"github.com/cosmos72/gomacro/fast"
)

// Lookup returns the current value of a notebook global: a constant, a
// variable, or a function. For a function it is the very closure that cells
// pass to compiled code. It may be called from any goroutine.
func (s *Session) Lookup(name string) (v reflect.Value, ok bool) {
	s.compiling.RLock()
	defer s.compiling.RUnlock()
	return s.lookup(name)
}

// lookup is Lookup for who has locked compiling.
func (s *Session) lookup(name string) (v reflect.Value, ok bool) {
	defer func() {
		if recover() != nil {
			v, ok = reflect.Value{}, false
		}
	}()
	sym := s.ir.Comp.TryResolve(name)
	if sym == nil {
		return reflect.Value{}, false
	}
	// Interp.ValueOf would do, but it resets a pending interrupt and takes
	// addresses, and may run only on the goroutine of the interpreter.
	env := s.env
	for i := 0; i < sym.Upn; i++ {
		env = env.Outer
	}
	switch sym.Desc.Class() {
	case fast.ConstBind:
		lit := sym.Bind.Lit
		if lit.Untyped() {
			v = reflect.ValueOf(lit.ConstTo(lit.DefaultType()))
		} else {
			v = reflect.ValueOf(lit.Value)
		}
	case fast.IntBind:
		v = unpack(sym.Bind.Type.ReflectType(), env.Ints[sym.Desc.Index():])
	case fast.VarBind, fast.FuncBind:
		v = env.Vals[sym.Desc.Index()].ReflectValue()
	}
	return v, v.IsValid()
}

// unpack reads a variable of basic type out of the interpreter's words, where
// it lies in the first bytes of its word (little endian, as on every machine
// that gomacro's word tricks are right on).
func unpack(t reflect.Type, words []uint64) reflect.Value {
	v := reflect.New(t).Elem()
	w := words[0]
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(w&0xff != 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(w))
	case reflect.Int8:
		v.SetInt(int64(int8(w)))
	case reflect.Int16:
		v.SetInt(int64(int16(w)))
	case reflect.Int32:
		v.SetInt(int64(int32(w)))
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		v.SetUint(w)
	case reflect.Uint8:
		v.SetUint(uint64(uint8(w)))
	case reflect.Uint16:
		v.SetUint(uint64(uint16(w)))
	case reflect.Uint32:
		v.SetUint(uint64(uint32(w)))
	case reflect.Float32:
		v.SetFloat(float64(math.Float32frombits(uint32(w))))
	case reflect.Float64:
		v.SetFloat(math.Float64frombits(w))
	case reflect.Complex64:
		v.SetComplex(complex(float64(math.Float32frombits(uint32(w))), float64(math.Float32frombits(uint32(w>>32)))))
	case reflect.Complex128:
		v.SetComplex(complex(math.Float64frombits(w), math.Float64frombits(words[1])))
	default:
		return reflect.Value{}
	}
	return v
}
