// Command t16a is the thread's last program, through gpukit: 100 slices of a
// discount, times one factor. It prints the time of the call. bench.py measures
// it from start to exit.
package main

import (
	"fmt"
	"os"
	"time"

	"gpunotes/gpukit"
)

func vest(multBy, discount [][]float64, n, countCol int64, cv [][]float64) {
	for id := 0; id < int(countCol); id++ {
		for num := 0; num < int(n); num++ {
			cv[id][num] = multBy[id][num] * discount[id][num]
		}
	}
}

func main() {
	multBy := gpukit.Arange(20000).Reshape(4000, 5)
	discount := gpukit.Arange(2000000).Reshape(100, 4000, 5)
	if len(os.Args) > 1 && os.Args[1] == "slices" { // the arguments in memory, as other languages have them
		multBy, discount = inMemory(multBy), inMemory(discount)
	}
	gpu := gpukit.MustOpen("cpu")
	start := time.Now()
	cv, err := gpu.GUVectorize(vest, "(m,o),(m,o),(),() -> (m,o)", multBy, discount, 5, 4000)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(time.Since(start), cv.At(99, 3999, 4))
}

func inMemory(a *gpukit.Array) *gpukit.Array {
	x := make([]float64, a.Size())
	for i := range x {
		x[i] = float64(i)
	}
	return gpukit.FromFlat(x, a.Shape()...)
}
