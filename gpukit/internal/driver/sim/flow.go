package sim

import (
	"math/bits"
	"slices"
)

// Control flow of a flattened function: basic blocks, where threads that went apart meet again, and which registers
// live where.

type basicBlock struct {
	from, to int   // instructions
	succ     []int // blocks; an exit has none
	pred     []int
	exit     bool // ends the thread, without guard
	join     int  // block where the ways out of this one meet, -1 if they do not
}

type graph struct {
	blocks []basicBlock
	at     []int // block of an instruction
}

// newGraph divides code into blocks. The last instruction ends the thread.
func newGraph(code []flat) *graph {
	leader := make([]bool, len(code)+1)
	leader[0] = true
	for i := range code {
		switch {
		case code[i].isBranch():
			leader[code[i].target], leader[i+1] = true, true
		case code[i].isExit():
			leader[i+1] = true
		}
	}
	g := &graph{at: make([]int, len(code))}
	for i := range code {
		if leader[i] {
			g.blocks = append(g.blocks, basicBlock{from: i, join: -1})
		}
		k := len(g.blocks) - 1
		g.at[i] = k
		g.blocks[k].to = i + 1
	}
	for k := range g.blocks {
		b := &g.blocks[k]
		last := &code[b.to-1]
		link := func(to int) {
			b.succ = append(b.succ, to)
			g.blocks[to].pred = append(g.blocks[to].pred, k)
		}
		guarded := last.in.Guard.On
		switch {
		case last.isBranch():
			link(g.at[last.target])
			if guarded && b.to < len(code) && g.at[b.to] != b.succ[0] {
				link(g.at[b.to])
			}
		case last.isExit() && !guarded:
			b.exit = true
		case b.to < len(code):
			link(g.at[b.to])
		}
	}
	g.joins(code)
	return g
}

// joins finds where the ways out of each block meet: its immediate post-dominator, but that ways which only lead out of
// the kernel early (a failed check) are left out. Else threads would not meet again where one of them may fail. Who
// leaves does not come to the meeting, and is not waited for. Which end is the regular one is a guess that cannot be
// wrong, only unlucky.
func (g *graph) joins(code []flat) {
	next := make([][]int, len(g.blocks))
	ends := make([]bool, len(g.blocks))
	for k := range g.blocks {
		b := &g.blocks[k]
		next[k], ends[k] = b.succ, b.exit
	}
	// Jumps to a bare ret are early ways out if the code before it runs into it.
	for k := 1; k < len(g.blocks); k++ {
		b := &g.blocks[k]
		if !b.exit || b.to-b.from != 1 || !slices.Contains(b.pred, k-1) {
			continue
		}
		for _, p := range b.pred {
			if p != k-1 {
				next[p] = slices.DeleteFunc(slices.Clone(next[p]), func(s int) bool { return s == k })
				ends[p] = len(next[p]) == 0
			}
		}
	}
	before := make([][]int, len(g.blocks))
	for k := range next {
		for _, s := range next[k] {
			before[s] = append(before[s], k)
		}
	}
	reaching := func(k int) []bool {
		seen := make([]bool, len(g.blocks))
		seen[k] = true
		for todo := []int{k}; len(todo) > 0; {
			b := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, p := range before[b] {
				if !seen[p] {
					seen[p] = true
					todo = append(todo, p)
				}
			}
		}
		return seen
	}
	// The regular end is the first that at least half as many branches reach as the most reached one, and no trap.
	branches, most := make([]int, len(g.blocks)), 0
	for k := range g.blocks {
		if !ends[k] || code[g.blocks[k].to-1].d.Op == "trap" {
			continue
		}
		for b, yes := range reaching(k) {
			if yes && len(next[b]) > 1 {
				branches[k]++
			}
		}
		most = max(most, branches[k])
	}
	var regular []bool
	for k := range g.blocks {
		if most > 0 && branches[k]*2 >= most {
			regular = reaching(k)
			break
		}
	}
	// Dominators of the reversed graph, as of Cooper, Harvey and Kennedy; n is the end of all ends.
	n := len(g.blocks)
	succ := func(k int) []int {
		if ends[k] {
			return []int{n}
		}
		return next[k]
	}
	counts := func(k, s int) bool { return s == n || regular == nil || !regular[k] || regular[s] }
	pred := make([][]int, n+1)
	for k := range n {
		for _, s := range succ(k) {
			if counts(k, s) {
				pred[s] = append(pred[s], k)
			}
		}
	}
	order := make([]int, n+1) // position in postorder of the reversed graph, from 1
	var post []int
	type frame struct{ node, next int }
	seen := make([]bool, n+1)
	seen[n] = true
	for stack := []frame{{n, 0}}; len(stack) > 0; {
		f := &stack[len(stack)-1]
		if f.next < len(pred[f.node]) {
			p := pred[f.node][f.next]
			f.next++
			if !seen[p] {
				seen[p] = true
				stack = append(stack, frame{p, 0})
			}
			continue
		}
		post = append(post, f.node)
		order[f.node] = len(post)
		stack = stack[:len(stack)-1]
	}
	idom := make([]int, n+1)
	for i := range idom {
		idom[i] = -1
	}
	idom[n] = n
	for changed := true; changed; {
		changed = false
		for i := len(post) - 2; i >= 0; i-- {
			k, to := post[i], -1
			for _, s := range succ(k) {
				if !counts(k, s) || idom[s] < 0 {
					continue
				}
				if to < 0 {
					to = s
					continue
				}
				for a := s; a != to; {
					for order[a] < order[to] {
						a = idom[a]
					}
					for order[to] < order[a] {
						to = idom[to]
					}
				}
			}
			if idom[k] != to {
				idom[k], changed = to, true
			}
		}
	}
	for k := range n {
		if idom[k] >= 0 && idom[k] < n {
			g.blocks[k].join = idom[k]
		}
	}
}

type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (s bitset) has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }
func (s bitset) set(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s bitset) clear(i int)    { s[i>>6] &^= 1 << (i & 63) }
func (s bitset) each(f func(int)) {
	for w, x := range s {
		for ; x != 0; x &= x - 1 {
			f(w<<6 + bits.TrailingZeros64(x))
		}
	}
}

// liveness gives for each block the registers that are alive at its end.
func (g *graph) liveness(code []flat, regs int) []bitset {
	in, out := make([]bitset, len(g.blocks)), make([]bitset, len(g.blocks))
	gen, kill := make([]bitset, len(g.blocks)), make([]bitset, len(g.blocks))
	for k := range g.blocks {
		in[k], out[k], gen[k], kill[k] = newBitset(regs), newBitset(regs), newBitset(regs), newBitset(regs)
		for i := g.blocks[k].from; i < g.blocks[k].to; i++ {
			for _, r := range code[i].uses {
				if !kill[k].has(r) {
					gen[k].set(r)
				}
			}
			if !code[i].in.Guard.On {
				for _, r := range code[i].defs {
					kill[k].set(r)
				}
			}
		}
	}
	todo := make([]bool, len(g.blocks))
	for i := range todo {
		todo[i] = true
	}
	for changed := true; changed; {
		changed = false
		for k := len(g.blocks) - 1; k >= 0; k-- {
			if !todo[k] {
				continue
			}
			todo[k] = false
			for _, s := range g.blocks[k].succ {
				for w, x := range in[s] {
					out[k][w] |= x
				}
			}
			more := false
			for w := range in[k] {
				x := gen[k][w] | out[k][w]&^kill[k][w]
				more = more || x != in[k][w]
				in[k][w] = x
			}
			if more {
				changed = true
				for _, p := range g.blocks[k].pred {
					todo[p] = true
				}
			}
		}
	}
	return out
}
