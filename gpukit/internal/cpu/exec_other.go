//go:build !amd64 || !(linux || darwin)

package cpu

import (
	"errors"
	"reflect"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// MachineTargets lists the instruction sets that this machine runs: none here.
func MachineTargets() []amd64.Target { return nil }

type codePages struct{}

func mapCode([]byte) (codePages, error) {
	return codePages{}, errors.New("this machine does not run machine code made at run time")
}

func (codePages) entry() uintptr { return 0 }

func (codePages) free() {}

func callMachineCode(uintptr, *[amd64.BlockSize / 8]uint64) {
	panic("cpu: internal error: no machine code here")
}

func addressOf[T element](s []T) uintptr { return reflect.ValueOf(s).Pointer() }

// dataOf is where a slice has its first element, and how many there are.
func dataOf(data any, _ ir.Type) (address uintptr, n int, ok bool) {
	v := reflect.ValueOf(data)
	if v.Kind() != reflect.Slice {
		return 0, 0, false
	}
	return v.Pointer(), v.Len(), true
}

func storeFence() {}
