// Package ptx is PTX, NVIDIA's virtual instruction set, as a language: a model
// of a module, one table of the instructions, printing, parsing and checking.
// It is what the code generator writes and what the simulator executes; neither
// knows the other. The facts are those of NVIDIA's "Parallel Thread Execution
// ISA"; section names in comments are that document's.
//
// Covered is what nvcc and our generator write for scalar code: integer, f32
// and f64 arithmetic, logic, shifts, comparisons, conversions, memory in all
// spaces, atomics, barriers, shuffles and votes, calls. Not covered: f16 and
// narrower floats, vectors in registers, textures, surfaces, matrix and
// cluster instructions, debug sections.
package ptx
