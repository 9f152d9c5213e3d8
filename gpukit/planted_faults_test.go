package gpukit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planted is a deliberate fault: in file, the only place that reads old reads new.
type planted struct{ what, file, old, new string }

// machineCode are the files, besides package amd64, whose faults show in machine code
// alone.
var machineCode = []string{"internal/cpu/native.go", "internal/cpu/crew.go", "internal/cpu/variant.go", "internal/cpu/inside.go"}

// faults are of the kinds that compilers and engines have. Each must be found by
// the conformance suite or the fuzzer.
var faults = []planted{
	// What an operation means.
	{"min takes the second of two equal numbers, -0 or not", "internal/cpu/kernels.go", "d[i] = min(x[i], y[i])", "if d[i] = y[i]; x[i] < y[i] {\n\t\t\td[i] = x[i]\n\t\t}"},
	{"max with one operand for all lanes forgets NaN", "internal/cpu/kernels.go", "d[i] = max(x[i], y)", "if d[i] = y; x[i] > y {\n\t\t\td[i] = x[i]\n\t\t}"},
	{"operands of a subtraction from one value are swapped", "internal/cpu/kernels.go", "d[i] = y - x[i]", "d[i] = x[i] - y"},
	{"a shift counts modulo 64, as the processor does", "internal/cpu/kernels.go", "d[i] = x[i] >> uint64(y[i])", "d[i] = x[i] >> (uint64(y[i]) & 63)"},
	{"a shift by one value for all lanes is one short from the width on", "internal/cpu/kernels.go", "for n, i := uint64(y), 0; i < len(d); i++ {\n\t\td[i] = x[i] << n", "for n, i := min(uint64(y), 63), 0; i < len(d); i++ {\n\t\td[i] = x[i] << n"},
	{"<= is < ", "internal/cpu/kernels.go", "d[i] = x[i] <= y[i]", "d[i] = x[i] < y[i]"},
	{"a product and a sum are contracted to an fma", "internal/cpu/fuse.go", "d[i] = float64(x[i]*y[i]) + z[i]", "d[i] = math.FMA(x[i], y[i], z[i])"},
	{"an fma in place of z - x*y", "internal/cpu/fuse.go", "d[i] = z[i] - float64(x[i]*y[i])", "d[i] = math.FMA(-x[i], y[i], z[i])"},
	{"a fused difference takes the wrong side", "internal/cpu/fuse.go", "side == 1 && second.Op == ir.OpSub", "false"},
	{"floats that are too large for an integer wrap", "internal/cpu/kernels.go", "case v >= hi:\n\t\t\td[i] = high", "case v >= hi:\n\t\t\td[i] = low"},
	{"NaN converts to the lowest integer", "internal/cpu/kernels.go", "default:\n\t\t\td[i] = 0\n", "default:\n\t\t\td[i] = low\n"},
	{"the bits of a NaN show its payload", "internal/ir/math.go", "fn(\"math.Float64bits\", U64, func(a []Bits) Bits { return Canonical(F64, a[0]) }", "fn(\"math.Float64bits\", U64, func(a []Bits) Bits { return a[0] ^ a[0]>>63 }"},
	{"Signbit of -0 is that of +0", "internal/ir/math.go", "return x == x && math.Signbit(x)", "return x < 0"},
	{"rotation the other way", "internal/ir/math.go", "return x<<s | x>>(Bits(n)-s)", "return x>>s | x<<(Bits(n)-s)"},

	// Passes.
	{"x + 0 is x for floats, though -0 + 0 is +0", "internal/ir/optimize.go", "if t := f.Types[args[0]]; !t.IsFloat() {", "if t := f.Types[args[0]]; t != Invalid {"},
	{"x - 0.0 and x / 1 but 1 / x too is x", "internal/ir/optimize.go", "case OpDiv:\n\t\tif is(1, one) {\n\t\t\treturn args[0], true\n\t\t}", "case OpDiv:\n\t\tif is(1, one) {\n\t\t\treturn args[0], true\n\t\t}\n\t\tif is(0, one) {\n\t\t\treturn args[1], true\n\t\t}"},
	{"select takes the wrong arm", "internal/ir/optimize.go", "s.op(OpSelect, cond, yields[0][i], yields[1][i])", "s.op(OpSelect, cond, yields[1][i], yields[0][i])"},
	{"what a nested if computes is thought to be known behind it", "internal/ir/optimize.go", "\ts.known.forget(n)\n", "\t_ = n\n"},
	{"a break has one level less after an if was spliced", "internal/ir/optimize.go", "for _, l := range s.nest[at+1:] {\n\t\tif l.new {", "for i, l := range s.nest[at+1:] {\n\t\tif l.new || i+at == 1 {"},
	{"a quotient by any constant is a product with its inverse", "internal/ir/optimize.go", "math.Abs(fraction) != 0.5 ||", "math.Abs(fraction) > 2 ||"},
	{"an early exit takes the statements behind it along", "internal/ir/optimize.go", "if t := arm.Terminator(); t.Op == OpBreak && t.Level() == 1 {\n\t\t\texit = i", "if t := arm.Terminator(); t.Op == OpBreak && t.Level() <= 2 {\n\t\t\texit = i"},
	{"a store is removed like a load", "internal/ir/op.go", "return in.Pure(f) || in.Op == OpLoad\n", "return in.Pure(f) || in.Op == OpLoad || in.Op == OpStore\n"},
	{"two loads around a store are one", "internal/ir/op.go", "OpLoad, OpStore, OpClear, OpAtomic, OpBarrier, OpWarpBarrier, OpShuffle, OpVote:\n\t\treturn false", "OpStore, OpClear, OpAtomic, OpBarrier, OpWarpBarrier, OpShuffle, OpVote:\n\t\treturn false"},
	{"a division may run for a worker that does not come to it", "internal/ir/op.go", "return in.faultOf(f) != NoFault", "return in.Op != OpDiv && in.faultOf(f) != NoFault"},
	{"commutative is also -", "internal/ir/optimize.go", "if op.Row().Commutative && e.a > e.b && t != F64 && t != F32 {", "if (op.Row().Commutative || op == OpSub) && e.a > e.b && t != F64 && t != F32 {"},

	// The front end.
	{"&^ is &", "internal/frontend/expr.go", "token.AND_NOT: ir.OpAndNot,\n", "token.AND_NOT: ir.OpAnd,\n"},
	{"the right side of && runs in any case", "internal/frontend/expr.go", "case token.QUO, token.REM:\n\t\t\t\tif x.IsInt() && y == nil {\n\t\t\t\t\tok = false", "case token.QUO, token.REM:\n\t\t\t\tif x.IsInt() && y == nil {\n\t\t\t\t\tok = true"},
	{"an array is equal if its last element is", "internal/frontend/expr.go", "v = l.b.Op(ir.OpAnd, v, w)", "v = w"},

	{"a bound that a loop carries counts as the same in all iterations", "internal/codegen/nvptx/loops.go", "for _, v := range loop.Carried {\n\t\tin[v] = true\n\t}\n\tir.Walk(loop", "ir.Walk(loop"},
	{"the stride of a dimension of one element is another to the host", "call.go", "if b.core[d] != 1 {", "if true {"},

	// Masks and lanes.
	{"lanes that leave a loop early are not taken out of the frame around it", "internal/cpu/machine.go", "m.gone[k.id] = append(m.gone[k.id], idx...)", "m.gone[k.id] = append(m.gone[k.id], idx[:len(idx)-1]...)"},
	{"the value of a break goes to the wrong lanes", "internal/cpu/machine.go", "b.scatter(dst.slot, src.slot, idx)", "b.copy(dst.slot, src.slot, n)"},
	{"a break out of two loops loses its value", "internal/cpu/machine.go", "b.scatterOne(dst.slot, src.slot, idx)", "b.scatterOne(dst.slot, src.slot, idx[:1])"},
	{"the mask of else is that of then", "internal/cpu/machine.go", "m.armSome(els, e[:n-yes])", "m.armSome(els, t[:n-yes])"},
	{"an if without else runs for one lane too few", "internal/cpu/machine.go", "m.armSome(then, t[:yes])", "m.armSome(then, t[:max(yes-1, 1)])"},
	{"lanes that moved keep their old place in local memory", "internal/cpu/machine.go", "lane[mv.to] = lane[mv.from]", "lane[mv.to] = lane[mv.to]"},
	{"a tail is one worker short", "internal/cpu/launch.go", "r.blocks = (total + r.length - 1) / r.length", "r.blocks = max(1, (total+r.length-2)/r.length)"},
	{"a row that does not end with a block is cut", "internal/cpu/launch.go", "k := min(n-at, last-w%last)", "k := min(n-at, last)"},
	{"an array that is the same for a row is taken for one that never changes", "internal/cpu/launch.go", "case constant0(o.strides[row:]):\n\t\t\tc = perRow", "case constant0(o.strides[row:]):\n\t\t\tc = 0"},
	{"an index that goes in steps is thought to count up by one", "internal/cpu/ramp.go", "case step == 1:\n\t\tcopy(d, piece(mem, at, n))", "case step > 0:\n\t\tcopy(d, piece(mem, at, n))"},
	{"an index that goes in steps counts lanes of the frame", "internal/cpu/ramp.go", "d[i] = mem[at+step*int64(id)]", "d[i] = mem[at+step*int64(i+0*int(id))]"},
	{"of a local array in a branch the last element is not cleared", "internal/cpu/memory.go", "for ; len(mem) > 0; mem = mem[all:] {", "for ; len(mem) > all; mem = mem[all:] {"},
	{"a shuffle does not look where lanes are after others have left", "internal/cpu/threads.go", "from = int(here[t-lane+s])", "from = min(t-lane+s, n-1)"},
	{"a ballot counts lanes of the block", "internal/cpu/threads.go", "return i / ir.WarpSize, 1 << (i % ir.WarpSize)", "return i / ir.WarpSize, 1 << (i % (ir.WarpSize - 1))"},
	{"all lanes vote as any", "internal/cpu/threads.go", "d[i] = ballot[w] == present[w]", "d[i] = ballot[w] == present[w] || ballot[w] > 1"},
	{"atomic min is max", "internal/cpu/atomic.go", "ir.AtomicMin: func(old, x, _ T) T { return min(old, x) }", "ir.AtomicMin: func(old, x, _ T) T { return max(old, x) }"},
	{"the sum of a warp's atomics leaves out the first lane", "internal/cpu/atomic.go", "sum = f(sum, vx[i*sx], sum)", "sum = f(vx[i*sx], vx[(i-1)*sx], sum)"},
	{"an index one past the end is good", "internal/cpu/guard.go", "limit, bad := uint64(length[0]), uint8(0)", "limit, bad := uint64(length[0])+1, uint8(0)"},
	{"of an index that goes in steps only the first is checked", "internal/cpu/ramp.go", "uint64(v) < limit && uint64(v+step*int64(m.n[frameBlock]-1)) < limit {", "uint64(v) < limit {"},
	{"a slice may begin behind its end", "internal/cpu/guard.go", "f < 0 || f > t || t > length[i*sl]", "f < 0 || t > length[i*sl]"},
	{"a negative shift count is let through", "internal/cpu/guard.go", "guards[true][t] = over(func(v T) bool { return v < 0 })", "guards[true][t] = over(func(v T) bool { return false && v < 0 })"},
	{"the lowest failing worker is the last", "internal/cpu/guard.go", "place < m.worst.place", "place > m.worst.place"},

	// Code for GPUs.
	{"carried values of a GPU's loop are swapped through no third register", "internal/codegen/nvptx/emit.go", "for j := range todo[1:] {", "for j := range todo[:0] {"},
	{"a branch jumps if its condition holds", "internal/codegen/nvptx/emit.go", "case quiet(els):\n\t\t\te.branch(p, true, c.end)", "case quiet(els):\n\t\t\te.branch(p, false, c.end)"},
	{"a break on a GPU loses its value", "internal/codegen/nvptx/emit.go", "e.moves(c.results, in.Args)\n\t\t\te.jump(c.end)", "e.jump(c.end)"},
	{"the next carried value is computed where the old one is still needed", "internal/codegen/nvptx/emit.go", "&& after[in.Carried[k]] <= i {", "&& after[in.Carried[k]] >= 0 {"},
	{"min on a GPU is that of PTX", "internal/codegen/nvptx/emit.go", "return e.get(\"selp.\"+s, c, nan(t), r, e.get(\"setp.nan.\"+s, ptx.Pred, x, y))", "return r"},
	{"the lowest integer divided by -1 is left to PTX", "internal/codegen/nvptx/emit.go", "(!constant || int64(y.Bits) == -1)", "(constant && int64(y.Bits) == -1)"},
	{"NaN converts to what a GPU gives", "internal/codegen/nvptx/emit.go", "return e.get(\"selp.\"+bits(to), c, ptx.Int(0), r, e.get(\"setp.nan.\"+suffix(from), ptx.Pred, x, x))", "return r"},
	{"the last worker is one too many", "internal/codegen/nvptx/kernel.go", "e.branch(e.get(\"setp.ge.u64\", ptx.Pred, e.worker, n), false, exit)", "e.branch(e.get(\"setp.gt.u64\", ptx.Pred, e.worker, n), false, exit)"},
	{"an index check on a GPU lets the end through", "internal/codegen/nvptx/emit.go", "e.check(in, ir.IndexRange, e.get(\"setp.ge.u64\", ptx.Pred,", "e.check(in, ir.IndexRange, e.get(\"setp.gt.u64\", ptx.Pred,"},
	{"a bool that a GPU prints is the contrary", "internal/codegen/nvptx/print.go", "ptx.Int(1), ptx.Int(0), x))", "ptx.Int(0), ptx.Int(1), x))"},
	{"lines of a GPU are shown as they come", "internal/codegen/nvptx/print.go", "return cmp.Compare(a.Worker, b.Worker) }", "return cmp.Compare(0, 0) }"},
	{"an array with gaps is known as one without", "internal/shape/facts.go", "bit(IsContiguous(v.Shape, v.Strides), viewContiguous)", "bit(len(v.Shape) > 1 || IsContiguous(v.Shape, v.Strides), viewContiguous)"},
	{"of facts the sizes that are in the code are left out", "internal/shape/facts.go", "b = append(b, byte(size))\n", "b = append(b, byte(max(size, 3)))\n"},
	{"loop dimensions are joined though an array has gaps", "internal/shape/facts.go", "st[before] != st[d]*s.Dims[d]", "st[before] < st[d]*s.Dims[d]"},
	{"arrays begin at better addresses than they do", "facts.go", "all |= l.In[i].Offset * size", "all |= 0 * l.In[i].Offset"},

	// Machine code for processors.
	{"machine code: the mask of else is that of then", "internal/codegen/amd64/control.go", "l.t.maskAndNot(l, m[p], outer.mask[p], cond[p])", "l.t.maskAnd(l, m[p], outer.mask[p], cond[p])"},
	{"machine code: lanes that break stay in the regions around", "internal/codegen/amd64/control.go", "\t\t\t\tl.t.maskAndNot(l, r.mask[p], r.mask[p], m[p])\n", "\t\t\t\tif i > first+1 {\n\t\t\t\t\tl.t.maskAndNot(l, r.mask[p], r.mask[p], m[p])\n\t\t\t\t}\n"},
	{"machine code: a select is its second number", "internal/codegen/amd64/control.go", "\t\tl.blend(t, dst[p], m[p], xs[p], ys[p])\n", "\t\tl.blend(t, dst[p], m[p], fromReg(ys[p]), ys[p])\n\t\t_ = xs\n"},
	{"machine code: carried values are swapped through the wrong register", "internal/codegen/amd64/control.go", "\t\t\tl.copy(t, d)\n\t\t\tfor i := range moves {", "\t\t\tl.copy(t, moves[0].src)\n\t\t\tfor i := range moves {"},
	{"machine code: the last group of a row is one lane short", "internal/codegen/amd64/frame.go", "\t\tl.add(inst{row: dec, reg: b, v: b})\n", "\t\tl.add(inst{row: dec, reg: b, v: b})\n\t\tl.add(inst{row: shr64, reg: b, v: b, imm: 1})\n"},
	{"machine code: rows of the outer dimensions step as those of the first", "internal/codegen/amd64/frame.go", "streamAt(i, StreamAdvance)+int32(8*d)", "streamAt(i, StreamAdvance)"},
	{"machine code: of what was interrupted a register comes back from its neighbour's place", "internal/codegen/amd64/emit.go", "\t\t\tr = loadRow(k)\n\t\t}\n\t\tfor _, reg := range e.alloc.used[c] {\n", "\t\t\tr = loadRow(k)\n\t\t}\n\t\tfor i, reg := range e.alloc.used[c] {\n\t\t\tif load && c == 0 && i == 1 {\n\t\t\t\te.op(r, operands{reg: reg, rm: inMemory(at(rsi, off-e.l.size(k)))})\n\t\t\t\toff += e.l.size(k)\n\t\t\t\tcontinue\n\t\t\t}\n"},
	{"machine code: two values share a place in memory", "internal/codegen/amd64/emit.go", "return at(rsi, e.slotBase+e.alloc.slot[v])", "return at(rsi, e.slotBase+e.alloc.slot[v]&^64)"},
	{"machine code: a value that only some lanes bring out of a loop is the same for all", "internal/codegen/amd64/lanes.go", "\tif c.partial && !c.same[j] {\n", "\tif false {\n"},
	{"machine code: small integers keep what overflowed", "internal/codegen/amd64/ops.go", "l.op2i(vpsrad, dst, fromReg(u), int32(32-n))", "l.op2i(vpsrad, dst, fromReg(u), int32(31-n))"},
	{"machine code: > is >=", "internal/codegen/amd64/target.go", "ir.OpGt: greater,", "ir.OpGt: greaterEqual,"},
	{"machine code: NaN as an unsigned integer is the largest", "internal/codegen/amd64/avx512.go", "l.op2(vcvttpd2uqq, dst, fromReg(u))", "l.op2(vcvttpd2uqq, dst, fromReg(x))"},
	{"machine code: large unsigned numbers become negative floats", "internal/codegen/amd64/avx512.go", "l.op2(vcvtudq2pd, dst[p], fromReg(s))", "l.op2(vcvtdq2pd, dst[p], fromReg(s))"},
	{"machine code: a group at the end of an array is thought to lie in it", "internal/codegen/amd64/memory.go", "l.add(inst{row: subImm4, reg: most, v: l.gpr(length), imm: int32(l.lanes)})", "l.add(inst{row: subImm4, reg: most, v: l.gpr(length), imm: int32(l.lanes - 1)})"},
	{"machine code: elements of 32 bits are gathered with the mask of the lower half", "internal/codegen/amd64/memory.go", "one(vgatherqps, idx[2*p+1], ms[2*p+1])", "one(vgatherqps, idx[2*p+1], ms[2*p])"},
	{"machine code: negative numbers are divided by a constant without their sign", "internal/codegen/amd64/divide.go", "\t\t\tl.op3(subInt.of(t), q, u, fromReg(sign))\n", "\t\t\tl.copy(q, u)\n"},
	{"machine code: the failing lane that is named is the one behind", "internal/cpu/native.go", "\tfor lanes>>at.lane&1 == 0 {\n\t\tat.lane++\n\t}\n", "\tfor lanes>>at.lane&1 == 0 || at.lane < 1 && lanes > 1 {\n\t\tat.lane++\n\t}\n"},
	{"machine code: lanes that are not there print too", "internal/cpu/native.go", "\t\tif active&1 == 0 {\n\t\t\tcontinue\n\t\t}\n", "\t\tif active&1 == 0 && s.in.Op != ir.OpPrint {\n\t\t\tcontinue\n\t\t}\n"},

	// Loops as workers.
	{"all loops that became workers walk along the first of them", "stages.go", "strides[dim] += times", "strides[len(c.loop)] += times"},
	{"a condition that holds of the first worker is believed of all", "stages.go", "if !uniformOperand(&v.l.In[i], v.l.Shape) {", "if false {"},
	{"conditions are not tested", "stages.go", "if !values.allHold(fs.conditions) {", "if false {"},
	{"workers that can fail change their order", "stages.go", "	if !k.observed() {\n", "	if k.lifted != nil {\n"},
	{"the worker that failed is counted among iterations", "engine.go", "c.failed(d, failed.Worker/s.per, failed.Err)", "c.failed(d, failed.Worker, failed.Err)"},
	{"an element is loaded before it is written", "internal/ir/lift.go", "s.always && !s.late && len(s.rest) == 0", "s.always && len(s.rest) == 0"},
	{"a store in a branch is everybody's", "internal/ir/lift.go", "always: in == top && !l.leaves", "always: !l.leaves"},
	{"accesses of one memory all lie at the first", "internal/ir/lift.go", "&& s.lifted.equal(spots[0].lifted)\n", "\n"},
	{"an index is lifted with the wrong sign", "internal/ir/lift.go", "s = l.sum(in.Args[0]).add(l.sum(in.Args[1]), -1)", "s = l.sum(in.Args[0]).add(l.sum(in.Args[1]), 1)"},
	{"a write after a read is no dependence", "internal/ir/depend.go", "if !x.write && !y.write || !n.mayShare(", "if !x.write || !y.write || !n.mayShare("},
	{"a loop that became workers lacks its last iteration", "internal/ir/spread_stage.go", "b.Convert(I64, b.Op(OpAdd, d, one))", "b.Convert(I64, d)"},
	{"iterations of a loop in steps of two are counted as if it went by one", "internal/ir/spread_stage.go", "if step != 1 {", "if step > 2 {"},
	{"a bound need not be the same for all workers", "internal/ir/spread_plan.go", "if !n.uniform(l.first) || !n.uniform(l.bound) {", "if !n.uniform(l.first) {"},
	{"a local array that keeps its values from iteration to iteration is of no account", "internal/ir/spread_plan.go", "if locals[Mem(m)] && !p.private(l, Mem(m)) {", "if false {"},
	{"of two accesses only one is looked at after the other", "internal/ir/depend.go", "if x != y && !n.apart(l, same, y, x) {", "if false {"},

	// Tables.
	{"a table depends on what its last operand does", "internal/ir/axes.go", "n.axes |= h.axes[a]", "n.axes = h.axes[a]"},
	{"a division that may fail is computed for a table", "internal/ir/axes.go", "in.Regions == nil && in.Pure(f) ||", "in.Regions == nil && (in.Pure(f) || in.Op == OpDiv) ||"},
	{"what needs an element of memory is computed for a table", "internal/ir/axes.go", "n.free = n.free && h.free[a]", "n.free = h.free[a]"},
	{"tables on as many dimensions are one", "internal/ir/axes.go", "return g.axes == n.axes })", "return g.axes.Len() == n.axes.Len() })"},
	{"an if that leaves the loop around it is computed for a table", "internal/ir/axes.go", "x.Level() > depth ||", "x.Level() > depth+1 ||"},
	{"a table is walked along other dimensions than it has", "axes.go", "steps[dim] = o.Strides[k]", "steps[len(steps)-1-dim] = o.Strides[k]"},
	{"a cut kernel is found again for arguments of other strides", "axes.go", "fmt.Fprintf(&key, \"%x \", varies[i])", "fmt.Fprint(&key, i)"},
	{"what is walked backwards is the same for all workers", "axes.go", "if st != 0 && s.Shape[dim] > 1 {", "if st > 0 && s.Shape[dim] > 1 {"},
	{"the last element of an array stays on the host", "gpu_launch.go", "return lo, hi - lo + 1", "return lo, max(hi-lo, 1)"},
	{"what a launch reads and writes is not copied in", "gpu_launch.go", "return b.indexed || !b.written", "return !b.written"},

	// Calls.
	{"an argument that the result overlaps is not copied", "call.go", "!(elementwise && a.array.offset == o.array.offset && shape.SameElements(", "!(elementwise || shape.SameElements("},
	{"arrays overlap only if they begin in the same place", "internal/shape/alias.go", "return (a.Offset-b.Offset)%g == 0", "return a.Offset == b.Offset"},
	{"a repeated dimension walks on", "internal/shape/shape.go", "case d == 1:\n\t\t\tout[lead+i] = 0", "case d == 1:\n\t\t\tout[lead+i] = st[i]"},
	{"the last element of Linspace is computed like the others", "storage.go", "dst[last/stride] = g.stop", "_ = last"},
	{"a program is found again though a constant of it has changed", "program.go", "key := programKey{f.source.Key, d.options}", "key := programKey{strings.Map(func(r rune) rune {\n\t\tif r >= '0' && r <= '9' {\n\t\t\treturn '0'\n\t\t}\n\t\treturn r\n\t}, f.source.Key), d.options}"},
	{"a function is found again though a cell has changed what it uses", "program.go", "key.version = key.notebook.Version()", "key.version = 7"},
}

// Every fault can still be planted: what it replaces stands in its file, once.
func TestFaultsCanBePlanted(t *testing.T) {
	if len(faults) < 100 {
		t.Errorf("only %d faults are there", len(faults))
	}
	for _, p := range faults {
		text, err := os.ReadFile(filepath.FromSlash(p.file))
		if err != nil {
			t.Error(err)
		} else if n := strings.Count(string(text), p.old); n != 1 {
			t.Errorf("%s: in %s %q is there %d times", p.what, p.file, p.old, n)
		}
	}
}
