// Command trimmed is built with -trimpath by a test and prints what it can
// resolve without, and then with, its embedded source.
package main

import (
	"embed"
	"fmt"
	"math"
	"strings"

	"gpunotes/gpukit/internal/source"
)

//go:embed *.go
var sources embed.FS

func add(x float64) float64 { return x + 1 }

func main() {
	lit := func(x float64) float64 {
		return add(x) * 2
	}
	_, err := source.Resolve(add, nil)
	fmt.Println("before:", err)
	if err := source.Embed(sources); err != nil {
		fmt.Println(err)
	}
	for _, fn := range []any{add, lit, math.Sin, strings.ToUpper} {
		if f, err := source.Resolve(fn, nil); err != nil {
			fmt.Println("error:", err)
		} else {
			fmt.Println("found:", f.Name, f.Where, f.Text())
		}
	}
}
