package plots

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"gonum.org/v1/plot/vg"
)

// Names of works lie on no roof and not on each other, as long as there is room.
func TestRooflineNames(t *testing.T) {
	rnd := rand.New(rand.NewSource(3))
	for n := 1; n <= 6; n++ {
		roofs := []Roof{{"a", 1.5e10, 6.4e10}, {"b", 4.9e12, 1.6e12}, {"c", 4.9e12, 1.5e10}}[:1+n%3]
		var works []Work
		for i := range n {
			on := roofs[i%len(roofs)]
			w := Work{fmt.Sprintf("work %d", i), math.Pow(10, float64(i)*0.9-1.9), 0, on.Name}
			if i%2 == 0 {
				w.FLOPS = on.at(w.Intensity) * math.Pow(10, -2*rnd.Float64())
			}
			works = append(works, w)
		}
		f := Roofline(roofs, works...).Size(7, 5)
		texts := ofSize(textsOf(t, f), noteSize)
		if len(texts) != n {
			t.Fatalf("%d names of %d works", len(texts), n)
		}
		keepApart(t, fmt.Sprintf("%d works", n), texts)
		pr := &probe{}
		f.Plot().Add(pr)
		textsOf(t, f)
		trX, trY := pr.p.Transforms(&pr.c)
		for _, s := range texts {
			for _, x := range roofs {
				for e := pr.p.X.Min; e < pr.p.X.Max; e *= 1.01 {
					if p := (vg.Point{X: trX(e), Y: trY(x.at(e))}); p.X > s.where.Min.X && p.X < s.where.Max.X && p.Y > s.where.Min.Y && p.Y < s.where.Max.Y {
						t.Fatalf("%d works: roof %s goes through %q", n, x.Name, s.text)
					}
				}
			}
		}
	}
}

func TestCrosses(t *testing.T) {
	r := vg.Rectangle{Min: vg.Point{X: 0, Y: 0}, Max: vg.Point{X: 10, Y: 4}}
	for _, tt := range []struct {
		line [4]vg.Length
		want bool
	}{
		{[4]vg.Length{-1, -1, 11, 5}, true}, {[4]vg.Length{1, 1, 2, 2}, true}, {[4]vg.Length{-5, 2, 20, 2}, true}, {[4]vg.Length{3, -9, 3, 9}, true},
		{[4]vg.Length{-5, 5, 20, 5}, false}, {[4]vg.Length{11, -9, 11, 9}, false}, {[4]vg.Length{-2, 0, 4, 12}, false}, {[4]vg.Length{-9, 2, -1, 2}, false},
	} {
		line := [2]vg.Point{{X: tt.line[0], Y: tt.line[1]}, {X: tt.line[2], Y: tt.line[3]}}
		if crosses(line, r) != tt.want || crosses([2]vg.Point{line[1], line[0]}, r) != tt.want {
			t.Errorf("%v: want %v", tt.line, tt.want)
		}
	}
}

// Works of one name are told apart in words by their roofs.
func TestRooflineAltNamesRoofs(t *testing.T) {
	roofs := []Roof{{"H200, float64", 4e13, 4e12}, {"A100", 1e13, 1e12}}
	f := Roofline(roofs, Work{"product", 1, 0, "H200, float64"}, Work{"product", 1, 0, "A100"}, Work{"product", 2, 5e11, ""}, Work{"sum", 1, 0, "A100"})
	want := "Roofline. H200, float64: 4e13 operations and 4e12 bytes a second, equal at 10 operations per byte. " +
		"A100: 1e13 operations and 1e12 bytes a second, equal at 10 operations per byte. " +
		"product (H200, float64): 1 operations per byte, 4e12 a second. product (A100): 1 operations per byte, 1e12 a second. " +
		"product: 2 operations per byte, 5e11 a second. sum: 1 operations per byte, 1e12 a second."
	if got := f.Alt(); got != want {
		t.Errorf("Alt is %q, want %q", got, want)
	}
}
