//go:build !amd64 || !(linux || darwin || freebsd)

package cpu

import (
	"errors"

	"gpunotes/gpukit/internal/codegen/amd64"
	"gpunotes/gpukit/internal/ir"
)

// MachineTargets lists the instruction sets that this machine runs: none here.
func MachineTargets() []amd64.Target { return nil }

// ErrMachineFault says that a worker failed.
var ErrMachineFault = errors.New("a worker failed in machine code")

// MachineCode does not exist here.
type MachineCode struct{}

// LoadMachineCode refuses.
func LoadMachineCode(*ir.Func, amd64.Target, []bool) (*MachineCode, error) {
	return nil, errors.New("this machine does not run machine code made at run time")
}

// Code is nil here.
func (m *MachineCode) Code() *amd64.Code { return nil }

// SetBudget does nothing here.
func (m *MachineCode) SetBudget(uint64) {}

// Run refuses.
func (m *MachineCode) Run(int, []any, []any, func() bool) error {
	return errors.New("this machine does not run machine code made at run time")
}
