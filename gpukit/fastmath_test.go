package gpukit

import (
	"fmt"
	"testing"
	"time"
)

func fastSum(x []float64, out []float64) {
	s := 0.0
	for i := 0; i < len(x); i++ {
		s += x[i]
	}
	out[0] = s
}

func launchTime(t *testing.T, d *Device, call func(d *Device)) time.Duration {
	t.Helper()
	call(d)
	d.StartTrace()
	call(d)
	var sum time.Duration
	for _, r := range d.StopTrace().Records {
		if r.Name == "fastSum" {
			sum += r.Duration
		}
	}
	return sum
}

func TestX(t *testing.T) {
	d := MustOpen("sim:quadro-k2000")
	defer d.Close()
	x := Must(d.Put(Zeros(64, 4096)))
	call := func(d *Device) { Must(d.GUVectorize(fastSum, "(n)->()", x)) }
	a, b := launchTime(t, d, call), launchTime(t, d.With(FastMath()), call)
	fmt.Println(a, b)
}

func TestXcode(t *testing.T) {
	d := MustOpen("sim:quadro-k2000")
	defer d.Close()
	p, err := d.With(FastMath()).ExplainGU(fastSum, "(n)->()", Zeros(64, 4096))
	fmt.Println(p.IR, err)
}
