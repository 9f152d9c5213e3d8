//go:build cuda

// One entry point after the other: a jump to what stands in its place of the table. No register but the instruction
// pointer changes, so any parameters pass. Hidden, so that other libraries of the process do not find these.

.text
.set place, 0
.macro entry name
	.globl \name
	.hidden \name
	.type \name, @function
	.p2align 4
\name:
	endbr64
	jmp *(gpunotes_cuda_table + 8*place)(%rip)
	.size \name, . - \name
	.set place, place + 1
.endm

#define SYMBOL(name) entry name
#include "symbols.h"

.section .note.GNU-stack, "", @progbits
