package nvptx

import (
	"fmt"
	"slices"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ptx"
)

// outlined is a function of a kernel's own that calls of an ir.Func marked
// Outline become. Its parameters are those of the function, the bases of its
// Global memories, and where its loops, checks or prints need them the cancel
// word, the worker's number, the record and what is printed to.
type outlined struct {
	fn      *ptx.Func
	results []ir.Type
	cancel  bool
	worker  bool
	record  bool
	prints  bool
	// What a caller puts arguments into and takes results from.
	args   []ptx.Var
	result ptx.Var // none if there are no results
}

// slot is the type of what passes a t to a function.
func slot(t ir.Type) ptx.Type {
	if t == ir.Bool {
		return ptx.B32
	}
	return class(t)
}

// outline emits the function that g becomes, once for each kernel, before those
// that call it.
func (e *emitter) outline(g *ir.Func) (*outlined, error) {
	if o := e.callees[g]; o != nil {
		return o, nil
	}
	if slices.ContainsFunc(g.Mems, func(m ir.Memory) bool { return m.Space == ir.Shared }) || meets(g) {
		return nil, fmt.Errorf("nvptx: internal error: threads meet in %s, which stands on its own", g.Name)
	}
	f, bases := optimized(ir.Inline(g))
	// Nothing is known here of the kernel's arrays.
	origins := make([]origin, len(g.Params))
	for i := range origins {
		origins[i] = origin{kind: ArgValue, index: i}
	}
	s := newEmitter(e.m, e.level, &Kernel{Name: e.k.Name, Func: f, Threads: e.k.Threads, Poll: e.k.Poll}, f, append(origins, bases...))
	s.entry, s.callees, s.files = e.entry, e.callees, e.files
	s.fn = &ptx.Func{Name: fmt.Sprintf("%s_f%d", e.k.Name, len(e.callees))}
	o := &outlined{fn: s.fn, results: g.Results}
	e.callees[g] = o
	if err := s.outlines(); err != nil {
		return nil, err
	}

	variable := func(kind string, i int, t ptx.Type) ptx.Var {
		return ptx.Var{Space: ptx.ParamSpace, Type: t, Name: fmt.Sprintf("%s_%s%d", s.fn.Name, kind, i)}
	}
	param := func(t ptx.Type) ptx.Operand {
		v := variable("p", len(s.fn.Params), t)
		s.fn.Params = append(s.fn.Params, v)
		o.args = append(o.args, variable("a", len(o.args), t))
		return ptx.SymAddr(v.Name, 0)
	}
	word := func() ptx.Operand { return s.get("ld.param.b64", ptx.B64, param(ptx.B64)) }
	for i, p := range f.Params {
		t := f.Types[p.Value]
		switch {
		case s.origins[i].kind == MemBase && f.Mems[s.origins[i].index].Space == ir.Global:
			s.vals[p.Value] = word()
		case s.origins[i].kind == MemBase:
			if s.used[p.Value] {
				s.vals[p.Value] = s.memory(s.origins[i].index)
			}
		case t == ir.Bool:
			s.vals[p.Value] = s.get("setp.ne.s32", ptx.Pred, s.get("ld.param.b32", ptx.B32, param(ptx.B32)), ptx.Int(0))
		default:
			s.vals[p.Value] = s.get("ld.param."+slot(t).String(), class(t), param(slot(t)))
		}
	}
	if o.cancel = s.polls(); o.cancel {
		s.cancel = word()
	}
	o.record, o.prints = s.mayFault() || s.calls(func(o *outlined) bool { return o.record }), s.prints()
	if o.worker = (o.record || o.prints) && !e.k.Threads; o.worker {
		s.worker = word()
	}
	if o.record {
		s.record = word()
	}
	if o.prints {
		s.printed = word()
	}
	if n := len(g.Results); n > 0 {
		v := variable("r", 0, ptx.B8)
		o.result = variable("o", 0, ptx.B8)
		for _, w := range []*ptx.Var{&v, &o.result} {
			if n == 1 {
				w.Type = slot(g.Results[0])
			} else { // a function gives one result: they are put together
				w.Align, w.Array, w.Len = 8, true, 8*n
			}
		}
		s.fn.Results = []ptx.Var{v}
		for i, x := range s.function() {
			t := g.Results[i]
			if t == ir.Bool {
				x = s.get("selp.b32", ptx.B32, ptx.Int(1), ptx.Int(0), x)
			}
			s.ins("st.param."+slot(t).String(), ptx.SymAddr(v.Name, int64(8*i)), x)
		}
	} else {
		s.function()
	}
	s.ins("ret")
	if s.refs["EXIT"] {
		s.fn.AddLabel("EXIT")
		s.ins("exit")
	}
	s.faults("exit")
	s.finish()
	at := slices.Index(e.m.Funcs, e.fn)
	if at < 0 {
		at = len(e.m.Funcs)
	}
	e.m.Funcs = slices.Insert(e.m.Funcs, at, s.fn)
	return o, nil
}

// outlines emits the functions that are called.
func (e *emitter) outlines() (err error) {
	ir.Walk(e.f.Body, func(in *ir.Instr) {
		if in.Op == ir.OpCall && err == nil {
			var o *outlined
			if o, err = e.outline(in.Callee); err == nil {
				for m := range in.Mems {
					e.used[e.base(in.Mems[m])] = true
				}
				if o.cancel {
					e.unbounded[in] = true
				}
			}
		}
	})
	return err
}

// calls reports whether a function is called of which is holds.
func (e *emitter) calls(is func(*outlined) bool) (yes bool) {
	ir.Walk(e.f.Body, func(in *ir.Instr) { yes = yes || in.Op == ir.OpCall && is(e.callees[in.Callee]) })
	return yes
}

// call emits a call.
func (e *emitter) call(in *ir.Instr) {
	o := e.callees[in.Callee]
	// The variables of a call are declared once for all calls of the function.
	declare := func(v ptx.Var) string {
		if !slices.ContainsFunc(e.fn.Vars, func(w ptx.Var) bool { return w.Name == v.Name }) {
			e.fn.Vars = append(e.fn.Vars, v)
		}
		return v.Name
	}
	var values []ptx.Operand
	for _, a := range in.Args {
		x := e.inReg(a)
		if e.f.Types[a] == ir.Bool {
			x = e.get("selp.b32", ptx.B32, ptx.Int(1), ptx.Int(0), x)
		}
		values = append(values, x)
	}
	for _, m := range in.Mems {
		values = append(values, e.vals[e.base(m)])
	}
	if o.cancel {
		values = append(values, e.cancel)
	}
	if o.worker {
		values = append(values, e.worker)
	}
	if o.record {
		values = append(values, e.record)
	}
	if o.prints {
		values = append(values, e.printed)
	}
	var args, results []ptx.Operand
	for i, x := range values {
		args = append(args, ptx.Sym(declare(o.args[i]), 0))
		e.ins("st.param."+o.args[i].Type.String(), ptx.SymAddr(o.args[i].Name, 0), x)
	}
	if len(o.results) > 0 {
		results = append(results, ptx.Sym(declare(o.result), 0))
	}
	callee := ptx.Operand{Kind: ptx.KindFunc, Sym: o.fn.Name}
	var list []ptx.Operand
	if len(results) > 0 {
		list = append(list, ptx.Operand{Kind: ptx.KindList, Elems: results})
	}
	list = append(list, callee)
	if len(args) > 0 {
		list = append(list, ptx.Operand{Kind: ptx.KindList, Elems: args})
	}
	e.ins("call", list...)
	for i, t := range o.results {
		at := ptx.SymAddr(o.result.Name, int64(8*i))
		x := e.get("ld.param."+slot(t).String(), registerOf(slot(t)), at)
		if t == ir.Bool {
			x = e.get("setp.ne.s32", ptx.Pred, x, ptx.Int(0))
		}
		e.vals[in.Results[i]] = x
	}
}
