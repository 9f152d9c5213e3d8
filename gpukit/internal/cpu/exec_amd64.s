//go:build linux || darwin

#include "textflag.h"

// func callMachineCode(entry uintptr, block *[15]uint64)
//
// Ordinary Go assembly calls it, so that all registers are free here. The code
// is a leaf: it never touches the stack.
TEXT ·callMachineCode(SB), NOSPLIT, $0-16
	MOVQ entry+0(FP), R11
	MOVQ block+8(FP), AX
	CALL R11
	RET

// func storeFence()
TEXT ·storeFence(SB), NOSPLIT, $0-0
	SFENCE
	RET

// func cpuid(leaf, sub uint32) (a, b, c, d uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, a+8(FP)
	MOVL BX, b+12(FP)
	MOVL CX, c+16(FP)
	MOVL DX, d+20(FP)
	RET

// func xgetbv() (low uint32)
TEXT ·xgetbv(SB), NOSPLIT, $0-4
	XORL CX, CX
	XGETBV
	MOVL AX, low+0(FP)
	RET
