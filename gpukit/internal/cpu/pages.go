package cpu

import (
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"unsafe"
)

// Large arrays. The first touch of a page costs more than most kernels do for its
// elements; and Go clears what it gives a second time. So large arrays lie on huge
// pages, where the system has them, and those that nobody refers to any more are
// given out again as they are: the garbage collector hands them over (a finalizer of
// the memory itself, which every slice of it keeps alive), and what nobody wants for
// two of its cycles it gets back.
//
// Memory that waits would count for the collector as in use, so it would come ever
// later while ever more waits. It is therefore called when it would come if nothing
// waited.

const (
	largeFrom = 1 << 20   // bytes
	hugeFrom  = 4 << 20   // bytes from which on aligned blocks pay
	hugePage  = 2 << 20   // of amd64 and arm64
	mostSpare = 256 << 20 // bytes that wait for another use
	maxAge    = 2         // cycles that they wait
	leastHeap = 4 << 20   // bytes that Go takes for in use at least
)

// block is memory of its own for one array: words of no pointers.
type block struct {
	first *uint64
	words int
	age   int
}

// pages are the blocks that wait.
var pages struct {
	sync.Mutex
	spare   map[int][]block // by words, the last one the youngest
	total   int             // bytes
	waiting bool            // for the end of a cycle

	since  uint64 // bytes given out in this cycle of the collector
	held   uint64 // bytes that waited when it began
	cycles uint64 // the number of it
	called bool   // it was called
	facts  []metrics.Sample
}

// MakeArray makes n elements for a result. dirty says that they are not zeros, but
// what another array has left there.
func MakeArray[T element](n int) (s []T, dirty bool) {
	var x T
	size := n * int(unsafe.Sizeof(x))
	if size < largeFrom {
		return make([]T, n), false
	}
	align, class := 1, 1<<(bitLen(size)-4) // at most an eighth is not used
	if size >= hugeFrom {
		align, class = hugePage, max(class, hugePage)
	}
	class = (size + class - 1) &^ (class - 1)
	words := (class + align - 1) / 8
	b, dirty := takeBlock(words)
	if !dirty {
		b = block{first: &make([]uint64, words)[0], words: words}
	}
	runtime.SetFinalizer(b.first, func(first *uint64) { keepBlock(block{first: first, words: words}) })
	at := unsafe.Add(unsafe.Pointer(b.first), -uintptr(unsafe.Pointer(b.first))&uintptr(align-1))
	if !dirty && align > 1 {
		adviseHuge(unsafe.Slice((*byte)(at), class&^(hugePage-1)))
	}
	return unsafe.Slice((*T)(at), n), dirty
}

func bitLen(n int) (k int) {
	for ; n > 0; n >>= 1 {
		k++
	}
	return k
}

// callCollector calls the garbage collector if it would be time, did no block wait:
// once as much was given out as was in use in the cycle before, or what GOGC says.
func callCollector(size uint64) {
	if pages.facts == nil {
		pages.facts = []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	}
	metrics.Read(pages.facts)
	cycles, live, percent := pages.facts[0].Value.Uint64(), pages.facts[1].Value.Uint64(), pages.facts[2].Value.Uint64()
	if cycles != pages.cycles {
		pages.cycles, pages.since, pages.held, pages.called = cycles, 0, uint64(pages.total), false
	}
	pages.since += size
	used := max(live-min(live, pages.held), leastHeap)
	if pages.called || percent > 10_000 || pages.since < used/100*percent {
		return
	}
	pages.called = true
	go runtime.GC()
}

// takeBlock takes a block that waits; ok is false if there is none.
func takeBlock(words int) (b block, ok bool) {
	pages.Lock()
	defer pages.Unlock()
	callCollector(8 * uint64(words))
	list := pages.spare[words]
	if len(list) == 0 {
		return block{}, false
	}
	b = list[len(list)-1]
	pages.spare[words] = slices.Delete(list, len(list)-1, len(list))
	pages.total -= 8 * words
	return b, true
}

// keepBlock takes a block that nobody refers to.
func keepBlock(b block) {
	pages.Lock()
	defer pages.Unlock()
	if pages.total+8*b.words > mostSpare {
		return
	}
	if pages.spare == nil {
		pages.spare = map[int][]block{}
	}
	pages.spare[b.words] = append(pages.spare[b.words], b)
	pages.total += 8 * b.words
	if !pages.waiting {
		pages.waiting = true
		awaitCycle()
	}
}

// cycle is garbage, of which the collector tells at the end of a cycle.
type cycle struct{ _ *cycle }

func awaitCycle() {
	runtime.SetFinalizer(&cycle{}, func(*cycle) {
		pages.Lock()
		defer pages.Unlock()
		for words, list := range pages.spare {
			for i := range list {
				list[i].age++
			}
			left := slices.DeleteFunc(list, func(b block) bool { return b.age > maxAge })
			pages.total -= 8 * words * (len(list) - len(left))
			if pages.spare[words] = left; len(left) == 0 {
				delete(pages.spare, words)
			}
		}
		if pages.waiting = len(pages.spare) > 0; pages.waiting {
			awaitCycle()
		}
	})
}

// DropPages lets the garbage collector have all blocks that wait, and reports
// whether there were any.
func DropPages() bool {
	pages.Lock()
	defer pages.Unlock()
	had := pages.total > 0
	pages.spare, pages.total = nil, 0
	return had
}
