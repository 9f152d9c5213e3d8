//go:build !linux

package cpu

// adviseHuge does nothing: these systems choose pages themselves.
func adviseHuge([]byte) {}
