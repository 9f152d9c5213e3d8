package cpu

import (
	"flag"
	"fmt"
	"testing"

	"gpunotes/gpukit/internal/ir"
	"gpunotes/gpukit/internal/ir/irtest"
)

var randomPrograms = flag.Int("random", 400, "how many random programs TestRandom runs")

// TestRandom compares random functions on random launches with the evaluator,
// each twice: a plan and its machines must not remember.
func TestRandom(t *testing.T) {
	defer func(ns float64) { pollEvery = ns }(pollEvery)
	faulted := 0
	for seed := range uint64(*randomPrograms) {
		d := newDice(seed)
		f := irtest.Random(d.Rand, fmt.Sprint("random", seed), irtest.Options{Faults: seed%2 == 0})
		p := compile(t, f)
		if seed%3 == 0 { // what the product runs
			p = compile(t, ir.Optimize(f))
		}
		pollEvery = []float64{10e3, 1}[seed/2%2] // 1: all goroutines start at once
		for k := range 3 {
			l := d.launch(f, d.shape())
			want := evaluate(f, &l)
			if want.worker >= 0 {
				faulted++
			}
			for range 2 {
				if err := compare(p, l, want); err != nil {
					t.Fatalf("seed %d, launch %d, shape %v, %d goroutines: %v\n%v\n%s", seed, k, l.Shape, l.Goroutines, err, f, p.Describe(&l))
				}
			}
		}
	}
	if *randomPrograms >= 400 && faulted < 20 {
		t.Errorf("only %d launches faulted", faulted)
	}
}

// TestRandomMemory is TestRandom for functions with memories and with threads
// that meet.
func TestRandomMemory(t *testing.T) {
	defer func(ns float64) { pollEvery = ns }(pollEvery)
	for k, o := range []irtest.Options{{Memory: true}, {Memory: true, Faults: true}, {Memory: true, Threads: true}, {Memory: true, Threads: true, Faults: true}} {
		faulted := 0
		for seed := range uint64(*randomPrograms / 10) {
			d := newDice(1000*uint64(k) + seed)
			f := irtest.Random(d.Rand, fmt.Sprint("random", seed), o)
			p := compile(t, f)
			if seed%3 == 0 {
				p = compile(t, ir.Optimize(f))
			}
			pollEvery = []float64{10e3, 1}[seed/2%2]
			for i, group := range []int{1, 2 + d.IntN(29), []int{31, 32, 33}[d.IntN(3)], 65 + d.IntN(300)} {
				in := irtest.NewInputs(d.Rand, f, 1+d.IntN([]int{200, 20, 9, 4}[i]), group)
				want := in.Evaluate(f)
				if want.Err != nil {
					faulted++
				}
				for j := range 2 {
					l, run := d.blocks(f, in, j == 1)
					if err := want.Compare(f, run(p)); err != nil {
						t.Fatalf("%+v, seed %d, %d blocks of %d, shape %v, %d goroutines: %v\n%v\n%s", o, seed, in.Groups, group, l.Shape, l.Goroutines, err, f, p.Describe(&l))
					}
				}
			}
		}
		if o.Faults && *randomPrograms >= 400 && faulted < 10 {
			t.Errorf("%+v: only %d launches faulted", o, faulted)
		}
	}
}
