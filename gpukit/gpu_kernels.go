package gpukit

import "gpunotes/gpukit/simt"

// The kernels with which arrays on a GPU are reduced there: along the lines of x,
// a block for 1024 neighbours, in the order of treeSum. out has a column for each
// 1024 of x. A block has 512 threads, or for shorter lines a power of two that is
// half of a line or more. They are compiled from the text of this file.

func sumLines(x, out [][]float64) {
	var s [512]float64
	simt.Shared(&s)
	t, half, groups := simt.ThreadIdx().X, simt.BlockDim().X, len(out[0])
	line, group := simt.BlockIdx().X/groups, simt.BlockIdx().X%groups
	first := group * 1024
	n := min(len(x[line])-first, 1024)
	v := 0.0
	if t < n {
		v = x[line][first+t]
	}
	if t+half < n {
		v += x[line][first+t+half]
	}
	s[t] = v
	simt.SyncThreads()
	n = min(n, half)
	for h := half / 2; h > 0; h /= 2 {
		if t < h && t+h < n {
			s[t] += s[t+h]
		}
		simt.SyncThreads()
		n = min(n, h)
	}
	if t == 0 {
		out[line][group] = s[0]
	}
}

func sumIntegerLines(x, out [][]int64) {
	var s [512]int64
	simt.Shared(&s)
	t, half, groups := simt.ThreadIdx().X, simt.BlockDim().X, len(out[0])
	line, group := simt.BlockIdx().X/groups, simt.BlockIdx().X%groups
	first := group * 1024
	n := min(len(x[line])-first, 1024)
	var v int64
	if t < n {
		v = x[line][first+t]
	}
	if t+half < n {
		v += x[line][first+t+half]
	}
	s[t] = v
	simt.SyncThreads()
	for h := half / 2; h > 0; h /= 2 {
		if t < h {
			s[t] += s[t+h]
		}
		simt.SyncThreads()
	}
	if t == 0 {
		out[line][group] = s[0]
	}
}

func minLines(x, out [][]float64) {
	var s [512]float64
	simt.Shared(&s)
	t, half, groups := simt.ThreadIdx().X, simt.BlockDim().X, len(out[0])
	line, group := simt.BlockIdx().X/groups, simt.BlockIdx().X%groups
	first := group * 1024
	n := min(len(x[line])-first, 1024)
	v := x[line][first]
	if t < n {
		v = x[line][first+t]
	}
	if t+half < n {
		v = min(v, x[line][first+t+half])
	}
	s[t] = v
	simt.SyncThreads()
	for h := half / 2; h > 0; h /= 2 {
		if t < h {
			s[t] = min(s[t], s[t+h])
		}
		simt.SyncThreads()
	}
	if t == 0 {
		out[line][group] = s[0]
	}
}

func maxLines(x, out [][]float64) {
	var s [512]float64
	simt.Shared(&s)
	t, half, groups := simt.ThreadIdx().X, simt.BlockDim().X, len(out[0])
	line, group := simt.BlockIdx().X/groups, simt.BlockIdx().X%groups
	first := group * 1024
	n := min(len(x[line])-first, 1024)
	v := x[line][first]
	if t < n {
		v = x[line][first+t]
	}
	if t+half < n {
		v = max(v, x[line][first+t+half])
	}
	s[t] = v
	simt.SyncThreads()
	for h := half / 2; h > 0; h /= 2 {
		if t < h {
			s[t] = max(s[t], s[t+h])
		}
		simt.SyncThreads()
	}
	if t == 0 {
		out[line][group] = s[0]
	}
}

// The element types, as float64 and, of integers, as int64.

func floatBool(x bool) float64 {
	if x {
		return 1
	}
	return 0
}
func floatInt8(x int8) float64       { return float64(x) }
func floatInt16(x int16) float64     { return float64(x) }
func floatInt32(x int32) float64     { return float64(x) }
func floatInt64(x int64) float64     { return float64(x) }
func floatUint8(x uint8) float64     { return float64(x) }
func floatUint16(x uint16) float64   { return float64(x) }
func floatUint32(x uint32) float64   { return float64(x) }
func floatUint64(x uint64) float64   { return float64(x) }
func floatFloat32(x float32) float64 { return float64(x) }
func floatFloat64(x float64) float64 { return x }

func wideBool(x bool) int64 {
	if x {
		return 1
	}
	return 0
}
func wideInt8(x int8) int64     { return int64(x) }
func wideInt16(x int16) int64   { return int64(x) }
func wideInt32(x int32) int64   { return int64(x) }
func wideInt64(x int64) int64   { return x }
func wideUint8(x uint8) int64   { return int64(x) }
func wideUint16(x uint16) int64 { return int64(x) }
func wideUint32(x uint32) int64 { return int64(x) }
func wideUint64(x uint64) int64 { return int64(x) }
