package host_test

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"gpunotes/gpukit"
	"gpunotes/gpukit/host"
)

func endless(n float64) float64 {
	x := 0.0
	for i := 0.0; x <= i; i++ {
		x = i * n
		if x < 0 {
			break
		}
	}
	return x
}

// A program with a Stop button of its own: calls ask for it often, and end.
func ExampleAttach() {
	old := host.Current()
	defer host.Attach(old)
	pressed := time.Now().Add(50 * time.Millisecond)
	host.Attach(host.Host{Interrupted: func() bool { return time.Now().After(pressed) }})

	gpu := gpukit.MustOpen("cpu")
	_, err := gpu.Vectorize(endless, 0.5)
	fmt.Println(errors.Is(err, gpukit.ErrInterrupted))
	// Output:
	// true
}

// What is attached can be put aside for a while, field by field.
func ExampleCurrent() {
	old := host.Current()
	quiet := old
	quiet.Progress = nil
	host.Attach(quiet)
	fmt.Println(host.Current().Progress == nil)
	host.Attach(old)
	// Output:
	// true
}

// An interpreter gives its globals by name, and records the text of each cell that it
// executed. Then its functions are kernels: here scaled, whose value an interpreter
// would have made from the second cell.
func ExampleNewNotebook() {
	scale := 2.5
	globals := map[string]interface{}{"scale": scale, "scaled": func(x float64) float64 { return scale * x }}
	nb := host.NewNotebook(func(name string) (reflect.Value, bool) {
		v, ok := globals[name]
		return reflect.ValueOf(v), ok
	})
	old := host.Current()
	defer host.Attach(old)
	host.Attach(host.Host{Source: nb})
	fmt.Println(nb.Record(1, 1, "scale := 2.5"))
	fmt.Println(nb.Record(2, 1, "func scaled(x float64) float64 { return scale * x }"))

	gpu := gpukit.MustOpen("cpu")
	z, err := gpu.Vectorize(globals["scaled"], []float64{1, 2, 4})
	fmt.Println(z.Float64s(), err)
	// Output:
	// <nil>
	// <nil>
	// [2.5 5 10] <nil>
}
