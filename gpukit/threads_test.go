package gpukit

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"gpunotes/gpukit/simt"
)

// What threads do together, against values worked out by hand.

func tShuffles(x []int32, idx, up, down, xor []int32, wide []float64) {
	i := simt.Grid1()
	v := x[i]
	idx[i] = simt.ShuffleInt32(v, 5)
	up[i] = simt.ShuffleUpInt32(v, 3)
	down[i] = simt.ShuffleDownInt32(v, 4)
	xor[i] = simt.ShuffleXorInt32(v, 17)
	wide[i] = simt.ShuffleXorFloat64(float64(v)+0.1, 1)
}

func tVotes(x []int32, any, all []bool, ballot []uint32) {
	i := simt.Grid1()
	any[i] = simt.Any(x[i] == 40)
	all[i] = simt.All(x[i] != 40)
	ballot[i] = simt.Ballot(x[i]%3 == 0)
}

// tWarps lets the lanes of each warp exchange through shared and global memory.
func tWarps(x, out []int32) {
	var part [64]int32
	simt.Shared(&part)
	t, lane := simt.ThreadIdx().X, simt.LaneID()
	i := simt.Grid1()
	part[t] = x[i]
	for h := 16; h > 0; h /= 2 {
		simt.SyncWarp()
		v := int32(0)
		if lane < h {
			v = part[t+h]
		}
		simt.SyncWarp()
		part[t] += v
	}
	simt.SyncWarp()
	out[i] = part[t-lane]
	simt.SyncWarp()
	x[i] = out[i^1] + 1
}

// tEarly lets threads leave before the others meet.
func tEarly(n int, out []int32, ballot []uint32, here, gone []int32) {
	i := simt.Grid1()
	if i%4 == 3 {
		return
	}
	var part [64]int32
	simt.Shared(&part)
	t := simt.ThreadIdx().X
	part[t] = int32(i + 1)
	simt.SyncThreads()
	s := int32(0)
	for k := 0; k < n; k++ {
		if k%4 != 3 {
			s += part[k]
		}
	}
	out[i] = s
	ballot[i] = simt.Ballot(true)
	here[i] = simt.ShuffleDownInt32(int32(i), 8)
	gone[i] = simt.ShuffleInt32(int32(i), 3)
}

// tPingPong lets neighbours exchange values several times through shared memory.
func tPingPong(rounds int, x []int64) {
	var a, b [128]int64
	simt.Shared(&a)
	simt.Shared(&b)
	t := simt.ThreadIdx().X
	n := simt.BlockDim().X
	i := simt.Grid1()
	a[t] = x[i]
	for r := 0; r < rounds; r++ {
		simt.SyncThreads()
		b[t] = a[(t+1)%n] + 1
		simt.SyncThreads()
		a[t] = b[(t+n-2)%n]
	}
	x[i] = a[t]
}

func tTranspose(x, y [][]float32) {
	var tile [8][9]float32
	simt.Shared(&tile)
	t, b := simt.ThreadIdx(), simt.BlockIdx()
	tile[t.Y][t.X] = x[b.Y*8+t.Y][b.X*8+t.X]
	simt.SyncThreads()
	y[b.X*8+t.Y][b.Y*8+t.X] = tile[t.X][t.Y]
}

func tAtomics(n int, i32 []int32, i64 []int64, u32 []uint32, u64 []uint64, f32 []float32, f64 []float64) {
	i := simt.Grid1()
	if i >= n {
		return
	}
	simt.AddInt32(&i32[0], int32(i))
	simt.MinInt32(&i32[1], int32(50-i))
	simt.MaxInt32(&i32[2], int32(i%77))
	atomic.AddInt32(&i32[3], -1)
	simt.AddInt64(&i64[0], int64(i)<<32)
	simt.MinInt64(&i64[1], -int64(i)<<40)
	simt.MaxInt64(&i64[2], int64(i)<<40)
	atomic.AndInt64(&i64[3], ^(int64(1) << (i % 60)))
	simt.AddUint32(&u32[0], uint32(i))
	simt.MinUint32(&u32[1], uint32(1000-i))
	simt.MaxUint32(&u32[2], uint32(i)+0x80000000)
	atomic.OrUint32(&u32[3], 1<<(i%30))
	simt.AddUint64(&u64[0], 1<<63)
	simt.MinUint64(&u64[1], uint64(1)<<63+uint64(i))
	simt.MaxUint64(&u64[2], uint64(1)<<63+uint64(i))
	atomic.OrUint64(&u64[3], 1<<(i%60))
	simt.AddFloat32(&f32[0], 0.5)
	simt.AddFloat64(&f64[0], 0.25)
}

// tTickets hands every thread another number.
func tTickets(next, taken []int64, lock []int32) {
	k := simt.AddInt64(&next[0], 1)
	simt.AddInt64(&taken[k], 1)
	if simt.CasInt32(&lock[0], 0, 7) == 0 {
		lock[1] = 1
	}
	simt.ExchInt32(&lock[2], 9)
}

func tPlaces(out [][][]int64) {
	x, y, z := simt.Grid3()
	t, b, bd, gd := simt.ThreadIdx(), simt.BlockIdx(), simt.BlockDim(), simt.GridDim()
	out[z][y][x] = int64(((t.Z*10+t.Y)*10+t.X)*1000+(b.Z*10+b.Y)*10+b.X) + int64(bd.X*100000000+bd.Y*10000000+bd.Z*1000000) + int64(gd.X+gd.Y+gd.Z)*1000000000
}

func tRace(x []float64, grid [][]int32) {
	i := simt.Grid1()
	x[7] = float64(i)
	grid[1][2] = int32(i)
}

// Of a race, a simulated GPU names the element.
func TestRaceNamesTheElement(t *testing.T) {
	d := MustOpen("sim:gtx-970")
	defer d.Close()
	x, g := make([]float64, 10), FromFlat(make([]int32, 12), 3, 4)
	err := d.Launch(tRace, Blocks(1), Threads(64), x, g)
	if err == nil || !strings.Contains(err.Error(), "writes x[7]") || strings.Count(err.Error(), "thread (") != 2 {
		t.Errorf("error %v", err) // each of the two threads once
	}
	err = d.Launch(tRaceLater, Blocks(2), Threads(1), Must(d.Put(g)).T())
	if err == nil || !strings.Contains(err.Error(), "writes grid[3][1]") {
		t.Errorf("error %v", err)
	}
}

func tMeet(sum []int64) { simt.AddInt64(&sum[simt.Grid1()%2], 1) }

// A trace counts how often the lanes of a warp wait for each other at an address.
func TestAtomicConflictsAreCounted(t *testing.T) {
	d := MustOpen("sim:gtx-970")
	defer d.Close()
	sum := make([]int64, 2)
	d.StartTrace()
	err := d.Launch(tMeet, Blocks(1), Threads(64), sum)
	if n := d.StopTrace().Counter("atomic conflicts"); err != nil || n != 2*(16-1) || sum[0] != 32 || sum[1] != 32 {
		t.Errorf("%d conflicts, sums %v, error %v", n, sum, err)
	}
}

func tRaceLater(grid [][]int32) { grid[3][1] = 5 }

func upTo[T int32 | int64](n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(i)
	}
	return x
}

func each[T any](n int, f func(i int) T) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = f(i)
	}
	return x
}

// threadCases are launches, with the arguments as they are made for each engine and
// as they must be afterwards.
var threadCases = []struct {
	name   string
	kernel any
	grid   Grid
	block  Block
	args   func() []any
	want   []any // nil for what is not looked at
}{
	{"shuffles", tShuffles, Blocks(2), Threads(48),
		func() []any {
			return []any{upTo[int32](96), make([]int32, 96), make([]int32, 96), make([]int32, 96), make([]int32, 96), make([]float64, 96)}
		},
		[]any{nil,
			each(96, func(i int) int32 { return int32(i/48*48 + i%48/32*32 + 5) }),
			each(96, func(i int) int32 {
				if i%48%32 < 3 {
					return int32(i)
				}
				return int32(i - 3)
			}),
			// The second warp of a block has 16 lanes.
			each(96, func(i int) int32 {
				if lane := i % 48 % 32; lane+4 > 31 || i%48 >= 32 && lane+4 > 15 {
					return int32(i)
				}
				return int32(i + 4)
			}),
			each(96, func(i int) int32 {
				if i%48 >= 32 {
					return int32(i) // its partner is not there
				}
				return int32(i/48*48 + (i%48 ^ 17))
			}),
			each(96, func(i int) float64 { return float64(i^1) + 0.1 })}},
	{"votes", tVotes, Blocks(1), Threads(80),
		func() []any { return []any{upTo[int32](80), make([]bool, 80), make([]bool, 80), make([]uint32, 80)} },
		[]any{nil,
			each(80, func(i int) bool { return i/32 == 1 }),
			each(80, func(i int) bool { return i/32 != 1 }),
			each(80, func(i int) uint32 { return [...]uint32{0x49249249, 0x92492492, 0x4924}[i/32] })}},
	{"warps", tWarps, Blocks(2), Threads(64),
		func() []any { return []any{upTo[int32](128), make([]int32, 128)} },
		[]any{each(128, func(i int) int32 { return int32(i/32*32*32+31*16) + 1 }), each(128, func(i int) int32 { return int32(i/32*32*32 + 31*16) })}},
	{"threads that leave", tEarly, Blocks(1), Threads(40),
		func() []any {
			return []any{40, make([]int32, 40), make([]uint32, 40), make([]int32, 40), make([]int32, 40)}
		},
		[]any{nil,
			each(40, func(i int) int32 {
				if i%4 == 3 {
					return 0
				}
				return 40*41/2 - (4+40)*10/2
			}),
			each(40, func(i int) uint32 {
				switch {
				case i%4 == 3:
					return 0
				case i >= 32:
					return 0x77
				}
				return 0x77777777
			}),
			each(40, func(i int) int32 {
				switch {
				case i%4 == 3:
					return 0
				case i < 24:
					return int32(i + 8)
				}
				return int32(i) // there is no lane so far up
			}),
			each(40, func(i int) int32 {
				if i%4 == 3 {
					return 0
				}
				return int32(i) // lane 3 has left
			})}},
	{"ping-pong", tPingPong, Blocks(3), Threads(100),
		func() []any { return []any{7, upTo[int64](300)} },
		// Each round moves one place and adds 1.
		[]any{nil, each(300, func(i int) int64 { return int64(i/100*100+(i%100+100-7)%100) + 7 })}},
	{"transpose", tTranspose, Blocks(2, 3), Threads(8, 8),
		func() []any {
			return []any{FromFlat(each(24*16, func(i int) float32 { return float32(i) }), 24, 16), FromFlat(make([]float32, 16*24), 16, 24)}
		},
		[]any{nil, each(16*24, func(i int) float32 { return float32(i%24*16 + i/24) })}},
	{"atomics", tAtomics, Blocks(7), Threads(150),
		func() []any {
			return []any{1000, []int32{1, 100, 5, 0}, []int64{1, 0, 0, -1}, []uint32{0, math.MaxUint32, 0, 0}, []uint64{1, math.MaxUint64, 0, 0}, []float32{1}, []float64{1}}
		},
		[]any{nil,
			[]int32{499501, -949, 76, -1000},
			[]int64{1 + 499500<<32, -999 << 40, 999 << 40, -1 &^ (1<<60 - 1)},
			[]uint32{499500, 1, 0x80000000 + 999, 1<<30 - 1},
			[]uint64{1, 1 << 63, 1<<63 + 999, 1<<60 - 1},
			[]float32{501}, []float64{251}}},
	{"tickets", tTickets, Blocks(5), Threads(64),
		func() []any { return []any{[]int64{0}, make([]int64, 320), []int32{0, 0, 0}} },
		[]any{[]int64{320}, each(320, func(int) int64 { return 1 }), []int32{7, 1, 9}}},
	{"places", tPlaces, Blocks(2, 3, 2), Threads(3, 2, 4),
		func() []any { return []any{FromFlat(make([]int64, 8*6*6), 8, 6, 6)} },
		[]any{each(8*6*6, func(i int) int64 {
			x, y, z := i%6, i/6%6, i/36
			return int64(((z%4*10+y%2)*10+x%3)*1000+(z/4*10+y/2)*10+x/3) + 324000000 + 7000000000
		})}},
}

// TestThreads compares what threads do together with values worked out by hand.
func TestThreads(t *testing.T) {
	eachEngine(t, func(t *testing.T, d *Device) {
		for _, c := range threadCases {
			args := c.args()
			if err := d.Launch(c.kernel, c.grid, c.block, args...); err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			for i, want := range c.want {
				got := args[i]
				if a, ok := got.(*Array); ok {
					got = sliceBehind(a.store)
				}
				if want != nil && !reflect.DeepEqual(got, want) {
					t.Errorf("%s: argument %d is %v, want %v", c.name, i+1, fmt.Sprint(got), want)
				}
			}
		}
	})
}
