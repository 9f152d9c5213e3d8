package simt

// ShuffleFloat32 gives the v of lane `lane`, or the thread\'s own v if no
// thread is there.
func ShuffleFloat32(v float32, lane int) float32 { return outside[float32]("ShuffleFloat32") }

// ShuffleFloat64 gives the v of lane `lane`, or the thread\'s own v if no
// thread is there.
func ShuffleFloat64(v float64, lane int) float64 { return outside[float64]("ShuffleFloat64") }

// ShuffleInt32 gives the v of lane `lane`, or the thread\'s own v if no
// thread is there.
func ShuffleInt32(v int32, lane int) int32 { return outside[int32]("ShuffleInt32") }

// ShuffleInt64 gives the v of lane `lane`, or the thread\'s own v if no
// thread is there.
func ShuffleInt64(v int64, lane int) int64 { return outside[int64]("ShuffleInt64") }

// ShuffleUpFloat32 gives the v of the lane that is delta lower, or the
// thread\'s own v if no thread is there.
func ShuffleUpFloat32(v float32, delta int) float32 { return outside[float32]("ShuffleUpFloat32") }

// ShuffleUpFloat64 gives the v of the lane that is delta lower, or the
// thread\'s own v if no thread is there.
func ShuffleUpFloat64(v float64, delta int) float64 { return outside[float64]("ShuffleUpFloat64") }

// ShuffleUpInt32 gives the v of the lane that is delta lower, or the
// thread\'s own v if no thread is there.
func ShuffleUpInt32(v int32, delta int) int32 { return outside[int32]("ShuffleUpInt32") }

// ShuffleUpInt64 gives the v of the lane that is delta lower, or the
// thread\'s own v if no thread is there.
func ShuffleUpInt64(v int64, delta int) int64 { return outside[int64]("ShuffleUpInt64") }

// ShuffleDownFloat32 gives the v of the lane that is delta higher, or the
// thread\'s own v if no thread is there.
func ShuffleDownFloat32(v float32, delta int) float32 { return outside[float32]("ShuffleDownFloat32") }

// ShuffleDownFloat64 gives the v of the lane that is delta higher, or the
// thread\'s own v if no thread is there.
func ShuffleDownFloat64(v float64, delta int) float64 { return outside[float64]("ShuffleDownFloat64") }

// ShuffleDownInt32 gives the v of the lane that is delta higher, or the
// thread\'s own v if no thread is there.
func ShuffleDownInt32(v int32, delta int) int32 { return outside[int32]("ShuffleDownInt32") }

// ShuffleDownInt64 gives the v of the lane that is delta higher, or the
// thread\'s own v if no thread is there.
func ShuffleDownInt64(v int64, delta int) int64 { return outside[int64]("ShuffleDownInt64") }

// ShuffleXorFloat32 gives the v of the lane whose number is LaneID() ^ mask, or
// the thread\'s own v if no thread is there.
func ShuffleXorFloat32(v float32, mask int) float32 { return outside[float32]("ShuffleXorFloat32") }

// ShuffleXorFloat64 gives the v of the lane whose number is LaneID() ^ mask, or
// the thread\'s own v if no thread is there.
func ShuffleXorFloat64(v float64, mask int) float64 { return outside[float64]("ShuffleXorFloat64") }

// ShuffleXorInt32 gives the v of the lane whose number is LaneID() ^ mask, or
// the thread\'s own v if no thread is there.
func ShuffleXorInt32(v int32, mask int) int32 { return outside[int32]("ShuffleXorInt32") }

// ShuffleXorInt64 gives the v of the lane whose number is LaneID() ^ mask, or
// the thread\'s own v if no thread is there.
func ShuffleXorInt64(v int64, mask int) int64 { return outside[int64]("ShuffleXorInt64") }

// Any reports whether v holds for some thread of the warp that has not left the
// kernel.
func Any(v bool) bool { return outside[bool]("Any") }

// All reports whether v holds for every thread of the warp that has not left the
// kernel.
func All(v bool) bool { return outside[bool]("All") }

// Ballot has bit i set if v holds for the thread in lane i; the bits of lanes without
// a thread, and of threads that have left the kernel, are 0.
func Ballot(v bool) uint32 { return outside[uint32]("Ballot") }
