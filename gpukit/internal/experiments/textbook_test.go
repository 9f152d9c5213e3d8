package main

import (
	"testing"

	"gpunotes/gpukit"
	"gpunotes/gpukit/simt"
	"gpunotes/gpukit/trace"
)

// Kernels of the textbooks, each made faster step by step.

func copyDown(in, out [][]float64) {
	x, y := simt.Grid2()
	if y < len(in[0]) && x < len(in) {
		out[x][y] = in[x][y]
	}
}

func copyAcross(in, out [][]float64) {
	x, y := simt.Grid2()
	if y < len(in) && x < len(in[0]) {
		out[y][x] = in[y][x]
	}
}

func transpose(in, out [][]float64) {
	x, y := simt.Grid2()
	if y < len(in) && x < len(in[0]) {
		out[x][y] = in[y][x]
	}
}

func transposeTile(in, out [][]float64) {
	var tile [32][32]float64
	simt.Shared(&tile)
	t, b := simt.ThreadIdx(), simt.BlockIdx()
	x, y := simt.Grid2()
	if y < len(in) && x < len(in[0]) {
		tile[t.Y][t.X] = in[y][x]
	}
	simt.SyncThreads()
	x, y = 32*b.Y+t.X, 32*b.X+t.Y
	if y < len(out) && x < len(out[0]) {
		out[y][x] = tile[t.X][t.Y]
	}
}

func transposePadded(in, out [][]float64) {
	var tile [32][33]float64
	simt.Shared(&tile)
	t, b := simt.ThreadIdx(), simt.BlockIdx()
	x, y := simt.Grid2()
	if y < len(in) && x < len(in[0]) {
		tile[t.Y][t.X] = in[y][x]
	}
	simt.SyncThreads()
	x, y = 32*b.Y+t.X, 32*b.X+t.Y
	if y < len(out) && x < len(out[0]) {
		out[y][x] = tile[t.X][t.Y]
	}
}

func transpose32Tile(in, out [][]float32) {
	var tile [32][32]float32
	simt.Shared(&tile)
	t, b := simt.ThreadIdx(), simt.BlockIdx()
	x, y := simt.Grid2()
	if y < len(in) && x < len(in[0]) {
		tile[t.Y][t.X] = in[y][x]
	}
	simt.SyncThreads()
	x, y = 32*b.Y+t.X, 32*b.X+t.Y
	if y < len(out) && x < len(out[0]) {
		out[y][x] = tile[t.X][t.Y]
	}
}

func transpose32Padded(in, out [][]float32) {
	var tile [32][33]float32
	simt.Shared(&tile)
	t, b := simt.ThreadIdx(), simt.BlockIdx()
	x, y := simt.Grid2()
	if y < len(in) && x < len(in[0]) {
		tile[t.Y][t.X] = in[y][x]
	}
	simt.SyncThreads()
	x, y = 32*b.Y+t.X, 32*b.X+t.Y
	if y < len(out) && x < len(out[0]) {
		out[y][x] = tile[t.X][t.Y]
	}
}

func sumDivergent(x, sum []int64) {
	var part [256]int64
	simt.Shared(&part)
	t, i := simt.ThreadIdx().X, simt.Grid1()
	part[t] = x[i]
	simt.SyncThreads()
	for s := 1; s < 256; s *= 2 {
		if t&(2*s-1) == 0 {
			part[t] += part[t+s]
		}
		simt.SyncThreads()
	}
	if t == 0 {
		simt.AddInt64(&sum[0], part[0])
	}
}

func sumConflicts(x, sum []int64) {
	var part [256]int64
	simt.Shared(&part)
	t, i := simt.ThreadIdx().X, simt.Grid1()
	part[t] = x[i]
	simt.SyncThreads()
	for s := 1; s < 256; s *= 2 {
		if k := 2 * s * t; k < 256 {
			part[k] += part[k+s]
		}
		simt.SyncThreads()
	}
	if t == 0 {
		simt.AddInt64(&sum[0], part[0])
	}
}

func sumHalves(x, sum []int64) {
	var part [256]int64
	simt.Shared(&part)
	t, i := simt.ThreadIdx().X, simt.Grid1()
	part[t] = x[i]
	simt.SyncThreads()
	for s := 128; s > 0; s >>= 1 {
		if t < s {
			part[t] += part[t+s]
		}
		simt.SyncThreads()
	}
	if t == 0 {
		simt.AddInt64(&sum[0], part[0])
	}
}

func sumStrided(x, sum []int64) {
	var part [256]int64
	simt.Shared(&part)
	t, v := simt.ThreadIdx().X, int64(0)
	for i := simt.Grid1(); i < len(x); i += simt.GridDim().X * simt.BlockDim().X {
		v += x[i]
	}
	part[t] = v
	simt.SyncThreads()
	for s := 128; s > 0; s >>= 1 {
		if t < s {
			part[t] += part[t+s]
		}
		simt.SyncThreads()
	}
	if t == 0 {
		simt.AddInt64(&sum[0], part[0])
	}
}

func matrixProduct(a, b, c [][]float32) {
	x, y := simt.Grid2()
	s := float32(0)
	for k := 0; k < len(b); k++ {
		s += float32(a[y][k] * b[k][x])
	}
	c[y][x] = s
}

func matrixProductTiled(a, b, c [][]float32) {
	var ta, tb [16][16]float32
	simt.Shared(&ta)
	simt.Shared(&tb)
	t := simt.ThreadIdx()
	x, y := simt.Grid2()
	s := float32(0)
	for k := 0; k < len(b); k += 16 {
		ta[t.Y][t.X], tb[t.Y][t.X] = a[y][k+t.X], b[k+t.Y][x]
		simt.SyncThreads()
		for j := 0; j < 16; j++ {
			s += float32(ta[t.Y][j] * tb[j][t.X])
		}
		simt.SyncThreads()
	}
	c[y][x] = s
}

func countBins(x, bins []int32) {
	i := simt.Grid1()
	if i < len(x) {
		simt.AddInt32(&bins[int(x[i])], 1)
	}
}

func countBinsShared(x, bins []int32) {
	var own [64]int32
	simt.Shared(&own)
	t := simt.ThreadIdx().X
	if t < 64 {
		own[t] = 0
	}
	simt.SyncThreads()
	for i := simt.Grid1(); i < len(x); i += simt.GridDim().X * simt.BlockDim().X {
		simt.AddInt32(&own[int(x[i])], 1)
	}
	simt.SyncThreads()
	if t < 64 {
		simt.AddInt32(&bins[t], own[t])
	}
}

// Every step of the textbooks is a step in predicted time, too.
func TestTextbookSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for some seconds")
	}
	wide, tall, other := gpukit.Zeros(512, 1024), gpukit.Zeros(1024, 512), gpukit.Zeros(512, 1024)
	wide32, tall32 := wide.As(gpukit.Float32), tall.As(gpukit.Float32)
	a, b := gpukit.Zeros(128, 128).As(gpukit.Float32), gpukit.Zeros(128, 128).As(gpukit.Float32)
	x, sum := gpukit.Arange(1<<16).As(gpukit.Int64), gpukit.Zeros(1).As(gpukit.Int64)
	values := make([]float64, 1<<16)
	for i := range values {
		values[i] = float64(i * 2654435761 >> 7 & 63)
	}
	data, bins := gpukit.FromSlice(values).As(gpukit.Int32), gpukit.Zeros(64).As(gpukit.Int32)
	square, line := gpukit.Threads(32, 32), gpukit.Threads(256)
	type step struct {
		name   string
		kernel any
		grid   gpukit.Grid
		block  gpukit.Block
		args   []any
	}
	arrays := func(x ...any) []any { return x }
	steps := [][]step{
		{{"copy, columns", copyDown, gpukit.Blocks(16, 32), square, arrays(wide, other)},
			{"copy, rows", copyAcross, gpukit.Blocks(32, 16), square, arrays(wide, other)}},
		{{"transpose", transpose, gpukit.Blocks(32, 16), square, arrays(wide, tall)},
			{"transpose by padded tiles", transposePadded, gpukit.Blocks(32, 16), square, arrays(wide, tall)}},
		{{"transpose by tiles", transposeTile, gpukit.Blocks(32, 16), square, arrays(wide, tall)},
			{"transpose by padded tiles", transposePadded, gpukit.Blocks(32, 16), square, arrays(wide, tall)}},
		{{"transpose float32 by tiles", transpose32Tile, gpukit.Blocks(32, 16), square, arrays(wide32, tall32)},
			{"transpose float32 by padded tiles", transpose32Padded, gpukit.Blocks(32, 16), square, arrays(wide32, tall32)}},
		{{"sum, divergent", sumDivergent, gpukit.Blocks(256), line, arrays(x, sum)},
			{"sum by halves", sumHalves, gpukit.Blocks(256), line, arrays(x, sum)}},
		{{"sum, bank conflicts", sumConflicts, gpukit.Blocks(256), line, arrays(x, sum)},
			{"sum by halves", sumHalves, gpukit.Blocks(256), line, arrays(x, sum)},
			{"sum, grid stride", sumStrided, gpukit.Blocks(16), line, arrays(x, sum)}},
		{{"matrix product", matrixProduct, gpukit.Blocks(8, 8), gpukit.Threads(16, 16), arrays(a, a, b)},
			{"matrix product by tiles", matrixProductTiled, gpukit.Blocks(8, 8), gpukit.Threads(16, 16), arrays(a, a, b)}},
		{{"histogram", countBins, gpukit.Blocks(256), line, arrays(data, bins)},
			{"histogram in shared memory", countBinsShared, gpukit.Blocks(16), line, arrays(data, bins)}},
	}
	for i, card := range cards {
		d := gpukit.MustOpen("sim:" + card)
		chosen := steps
		if i > 0 {
			chosen = steps[2:4] // the arrays of the others are too small to fill a larger card
		}
		for _, s := range chosen {
			before := 0.0
			for k, x := range s {
				d.StartTrace()
				err := d.Launch(x.kernel, x.grid, x.block, x.args...)
				took := d.StopTrace().Time(trace.Launch).Seconds()
				if err != nil {
					t.Fatal(err)
				}
				if k > 0 && took >= before {
					t.Errorf("%s: %q is predicted to take %s, and %q %s", card, s[k-1].name, seconds(before), x.name, seconds(took))
				}
				before = took
			}
		}
		d.Close()
	}
}
