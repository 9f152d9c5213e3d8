package main

// What the threads print: nvprof's figures on a Quadro K2000 and a GeForce GTX 970.

// kernelRow is a launch of a thread.
type kernelRow struct {
	id, card  string
	thread    string // rows of one thread are compared in order
	seconds   float64
	registers int // 0: not printed
	digest    string
}

var kernelRows = []kernelRow{
	{"t14", "quadro-k2000", "guvectorize", 1.22538, 63, "b1f8a3a022963e39"},
	{"t15", "quadro-k2000", "guvectorize", 842.49e-6, 13, "0786e50f2e2d20f8"},
	{"t16", "quadro-k2000", "guvectorize", 47.398e-3, 63, "b1f8a3a022963e39"},
	{"t17", "quadro-k2000", "guvectorize", 8.9961e-3, 63, "dc84579c26216530"},
	{"t38", "quadro-k2000", "mesh", 5.8727e-3, 0, ""},
	{"t39", "quadro-k2000", "mesh", 8.4679e-3, 0, ""},
	{"t40", "quadro-k2000", "mesh", 10.364e-3, 0, ""},
	{"t14", "gtx-970", "guvectorize, the other machine", 657.28e-3, 40, "b1f8a3a022963e39"},
}

// copyRow is a kind of copy: all of one size and direction on a machine.
type copyRow struct {
	card    string
	bytes   int
	back    bool // from the device
	seconds []float64
}

var copyRows = []copyRow{
	{"quadro-k2000", 8, false, []float64{1.2160e-6, 1.0880e-6, .896e-6, 1.3440e-6, .896e-6, 1.1840e-6, 1.0880e-6}},
	{"quadro-k2000", 160000, false, []float64{27.392e-6, 27.392e-6, 27.392e-6}},
	{"quadro-k2000", 16000000, false, []float64{5.8696e-3, 6.2729e-3, 5.7101e-3, 5.9293e-3, 6.0208e-3}},
	{"quadro-k2000", 16000000, true, []float64{7.1816e-3, 7.1528e-3, 7.3799e-3, 7.2772e-3}},
	{"quadro-k2000", 8000000, false, []float64{2.8544e-3}}, // nvprof's mean of four
	{"quadro-k2000", 8000000, true, []float64{3.2521e-3, 3.1459e-3, 3.3446e-3}},
	{"gtx-970", 8, false, []float64{1.28e-6, .992e-6, .64e-6}},
	{"gtx-970", 160000, false, []float64{14.591e-6}},
	{"gtx-970", 16000000, false, []float64{2.5868e-3}},
	{"gtx-970", 16000000, true, []float64{3.5128e-3}},
}

// The listing of t14's kernel in the first thread, counted.
var listing = struct{ instructions, parameters, read int }{147, 58, 34}

func mean(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += v
	}
	return s / float64(len(x))
}
