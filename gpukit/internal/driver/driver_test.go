package driver

import (
	"errors"
	"fmt"
	"testing"
)

type cause struct{ text string }

func (c *cause) Error() string { return c.text }

func TestErrors(t *testing.T) {
	place := &Place{Kernel: "k", File: "cell 3", Line: 4, Col: 7, PTXLine: 62, Instruction: "trap;", Block: Dim{1, 0, 0}, Thread: Dim{5, 2, 0}}
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{&Error{Call: "cuMemAlloc", Code: OutOfMemory}, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"},
		{&Error{Call: "cuInit", Code: 35}, "cuInit: CUDA error 35"},
		{&Error{Call: "cuLaunchKernel", Code: IllegalAddress, Detail: "address 0x8", Place: place}, "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS: address 0x8, at cell 3:4:7 (PTX line 62: trap;), block (1,0,0), thread (5,2,0)"},
		{&Error{Call: "cuLaunchKernel", Code: LaunchFailed, Detail: "a race, with its place", Place: place, Cause: &cause{"a race, with its place"}}, "cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED: a race, with its place"},
		{&Error{Call: "cuModuleLoadDataEx", Code: InvalidPTX, Log: "line 3: no\n\x00"}, "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX\nline 3: no"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		err := fmt.Errorf("more: %w", c.err)
		var e *Error
		var why *cause
		if !errors.Is(err, c.err.Code) || errors.Is(err, NotFound) || !errors.As(err, &e) || errors.As(err, &why) != (c.err.Cause != nil) {
			t.Errorf("%v is not what it is", err)
		}
	}
	if got := (&Place{Kernel: "k", PTXLine: 3, Instruction: "ret;"}).String(); got != "k, PTX line 3: ret;, block (0,0,0), thread (0,0,0)" {
		t.Error(got)
	}
	for c := range codeNames {
		if fmt.Sprint(c)[:11] != "CUDA_ERROR_" {
			t.Errorf("%d: %v", int(c), c)
		}
	}
}

func TestDim(t *testing.T) {
	for d, want := range map[Dim]int{{2, 3, 4}: 24, {1, 1, 1}: 1, {0, 1, 1}: 0, {5, -1, -1}: 0} {
		if d.Count() != want {
			t.Errorf("%v: %d", d, d.Count())
		}
	}
	if i := (Info{Capability: Version{7, 5}}); i.SM() != 75 || i.Capability.String() != "7.5" {
		t.Error(i.SM(), i.Capability)
	}
	for o := HostToDevice; o <= Kernel; o++ {
		if o.String() == "" {
			t.Errorf("%d has no name", o)
		}
	}
}
