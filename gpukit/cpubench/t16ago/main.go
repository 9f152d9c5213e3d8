// Command t16ago is t16a in plain Go.
package main

import (
	"fmt"
	"time"
)

func main() {
	multBy, discount := make([]float64, 20000), make([]float64, 2000000)
	for i := range multBy {
		multBy[i] = float64(i)
	}
	for i := range discount {
		discount[i] = float64(i)
	}
	start := time.Now()
	cv := make([]float64, len(discount))
	for d := 0; d < 100; d++ {
		for id := 0; id < 4000; id++ {
			for num := 0; num < 5; num++ {
				cv[(d*4000+id)*5+num] = multBy[id*5+num] * discount[(d*4000+id)*5+num]
			}
		}
	}
	fmt.Println(time.Since(start), cv[len(cv)-1])
}
