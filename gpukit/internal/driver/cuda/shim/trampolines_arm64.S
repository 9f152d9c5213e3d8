//go:build cuda

// As for amd64. x16 may be changed between a call and the function that it calls (AAPCS64, IP0).
// Assembled, but never run.

.text
.set place, 0
.macro entry name
	.globl \name
	.hidden \name
	.type \name, %function
	.p2align 4
\name:
	hint #34 // bti c
	adrp x16, gpunotes_cuda_table + 8*place
	ldr x16, [x16, #:lo12:gpunotes_cuda_table + 8*place]
	br x16
	.size \name, . - \name
	.set place, place + 1
.endm

#define SYMBOL(name) entry name
#include "symbols.h"

.section .note.GNU-stack, "", %progbits
