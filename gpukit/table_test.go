package gpukit

import (
	"errors"
	"testing"
)

var tableOdd = [...]float64{1, 3, 5, 7}

var tableChanged = [...]float64{1, 3, 5, 7}

func changeTable() { tableChanged[1] = 4 }

func fromTable(i int) float64 { return tableOdd[i] * 2 }

func fromChangedTable(i int) float64 { return tableChanged[i] * 2 }

// TestTables: a package-level array of compiled Go is constant data if nothing
// in the package assigns to it, else it is refused.
func TestTables(t *testing.T) {
	changeTable()
	d := MustOpen("cpu")
	z, err := d.Vectorize(fromTable, []int{3, 0, 2})
	if err != nil {
		t.Fatal(err)
	}
	if got := z.Float64s(); got[0] != 14 || got[1] != 2 || got[2] != 10 {
		t.Errorf("%v", got)
	}
	var ce *CompileError
	if _, err := d.Vectorize(fromChangedTable, []int{1}); !errors.As(err, &ce) {
		t.Errorf("a table that is assigned to: %v", err)
	}
	var we *WorkerError
	if _, err := d.Vectorize(fromTable, []int{1, 9}); !errors.As(err, &we) || we.Index[0] != 1 {
		t.Errorf("out of range: %v", err)
	}
}
