package simt

import (
	"strings"
	"testing"
)

func TestOutsideAKernel(t *testing.T) {
	for name, f := range map[string]func(){
		"ThreadIdx":   func() { ThreadIdx() },
		"BlockIdx":    func() { BlockIdx() },
		"BlockDim":    func() { BlockDim() },
		"GridDim":     func() { GridDim() },
		"Grid1":       func() { Grid1() },
		"Grid2":       func() { Grid2() },
		"Grid3":       func() { Grid3() },
		"SyncThreads": func() { SyncThreads() },
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.HasPrefix(s, "simt."+name+" was called outside a kernel") {
					t.Errorf("%s: panic %q", name, s)
				}
			}()
			f()
		}()
	}
}
