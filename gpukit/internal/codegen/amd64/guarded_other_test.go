//go:build !linux

package amd64_test

import (
	"testing"

	"gpunotes/gpukit/internal/ir"
)

// guarded is n elements.
func guarded(_ *testing.T, typ ir.Type, n int, _ bool) elements { return newElements(typ, n) }
