package cpu

import "syscall"

// adviseHuge asks for huge pages in a block that was not touched yet. A system
// without them says no, and nothing is lost.
func adviseHuge(block []byte) {
	const hugePages = 14 // MADV_HUGEPAGE, which package syscall lacks on some architectures
	_ = syscall.Madvise(block, hugePages)
}
