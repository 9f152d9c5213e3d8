package gpukit

import (
	"fmt"
	"os"
	"testing"
)

// The tests of this package also run as one program on a machine that has a GPU and
// no Go: `make gpu-bundle` puts it together, with the sources, and with what native
// Go answered here.
func init() {
	if dir := os.Getenv("GPUNOTES_SOURCES"); dir != "" {
		if err := EmbedSource(os.DirFS(dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// onCard runs a test on the card that GPUNOTES_CARD names, as Open takes it.
func onCard(t *testing.T) *Device {
	t.Helper()
	name := os.Getenv("GPUNOTES_CARD")
	if name == "" {
		t.Skip("for a card: set GPUNOTES_CARD, for example to cuda:0")
	}
	d, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// The threads' programs have the values that numpy gives, wherever the arguments
// are.
func TestCardExperiments(t *testing.T) {
	d := onCard(t)
	multBy, discount := Arange(20000).Reshape(4000, 5), Arange(2000000).Reshape(100, 4000, 5)
	for _, where := range []struct {
		name string
		put  func(*Array) *Array
	}{
		{"generated", func(a *Array) *Array { return a }},
		{"host", (*Array).Host},
		{"device", func(a *Array) *Array { return Must(d.Put(a)) }},
	} {
		m, x := where.put(multBy), where.put(discount)
		same(t, where.name+" t14", digest(Must(d.GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", 100, m, x, 5, 4000)).Host()), "b1f8a3a022963e39")
		same(t, where.name+" t14, one worker", digest(Must(d.With(OneWorkerPerSlice()).GUVectorize(cVestDiscount14, "(),(m,o),(n,m,o),(),() -> (n,m,o)", 100, m, x, 5, 4000)).Host()), "b1f8a3a022963e39")
		same(t, where.name+" t15", digest(Must(d.Vectorize(product, where.put(Full(1, 100, 4000, 5)), x)).Host()), "0786e50f2e2d20f8")
		same(t, where.name+" t16", digest(Must(d.GUVectorize(cVestDiscount16, "(m,o),(m,o),(),() -> (m,o)", m, x, 5, 4000)).Host()), "b1f8a3a022963e39")
		same(t, where.name+" t17", digest(Must(d.GUVectorize(cVestDiscount17, "(),(o),(m,o),() -> (m,o)", 100, m, x.Reshape(4000, 100, 5), 5)).Host()), "dc84579c26216530")
		lon, lat := MeshGrid(Linspace(99, 101, 1000), Linspace(29, 31, 1000))
		got := digest(Must(d.Vectorize(dist, where.put(lat), where.put(lon), 30.0, 101.0, 1.0)).Host())
		same(t, where.name+" mesh", got, digest(Must(MustOpen("cpu").Vectorize(dist, lat, lon, 30.0, 101.0, 1.0))))
	}
}

func low8(x float64) uint8 { return uint8(int64(x) & 255) }

// More elements than an int32 counts.
func TestCardManyElements(t *testing.T) {
	d := onCard(t)
	const n = 1<<31 + 1000
	a, err := d.Vectorize(low8, Arange(n), Out(Must(d.Empty(Uint8, n))))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, 1<<31 - 1, 1 << 31, n - 1} {
		if got := a.At(i); got != float64(i&255) {
			t.Errorf("element %d is %v, want %d", i, got, i&255)
		}
	}
	for i := n - 3000; i < n; i += 7 {
		if got := a.At(i); got != float64(i&255) {
			t.Fatalf("element %d is %v, want %d", i, got, i&255)
		}
	}
}
