package simt

// AddInt32 adds v to *p and returns the value before.
func AddInt32(p *int32, v int32) int32 { return outside[int32]("AddInt32") }

// AddInt64 adds v to *p and returns the value before.
func AddInt64(p *int64, v int64) int64 { return outside[int64]("AddInt64") }

// AddUint32 adds v to *p and returns the value before.
func AddUint32(p *uint32, v uint32) uint32 { return outside[uint32]("AddUint32") }

// AddUint64 adds v to *p and returns the value before.
func AddUint64(p *uint64, v uint64) uint64 { return outside[uint64]("AddUint64") }

// AddFloat32 adds v to *p and returns the value before. The last bits of a sum
// depend on the order of the threads.
func AddFloat32(p *float32, v float32) float32 { return outside[float32]("AddFloat32") }

// AddFloat64 adds v to *p and returns the value before. The last bits of a sum
// depend on the order of the threads.
func AddFloat64(p *float64, v float64) float64 { return outside[float64]("AddFloat64") }

// MinInt32 makes *p the smaller of *p and v and returns the value before.
func MinInt32(p *int32, v int32) int32 { return outside[int32]("MinInt32") }

// MinInt64 makes *p the smaller of *p and v and returns the value before.
func MinInt64(p *int64, v int64) int64 { return outside[int64]("MinInt64") }

// MinUint32 makes *p the smaller of *p and v and returns the value before.
func MinUint32(p *uint32, v uint32) uint32 { return outside[uint32]("MinUint32") }

// MinUint64 makes *p the smaller of *p and v and returns the value before.
func MinUint64(p *uint64, v uint64) uint64 { return outside[uint64]("MinUint64") }

// MaxInt32 makes *p the larger of *p and v and returns the value before.
func MaxInt32(p *int32, v int32) int32 { return outside[int32]("MaxInt32") }

// MaxInt64 makes *p the larger of *p and v and returns the value before.
func MaxInt64(p *int64, v int64) int64 { return outside[int64]("MaxInt64") }

// MaxUint32 makes *p the larger of *p and v and returns the value before.
func MaxUint32(p *uint32, v uint32) uint32 { return outside[uint32]("MaxUint32") }

// MaxUint64 makes *p the larger of *p and v and returns the value before.
func MaxUint64(p *uint64, v uint64) uint64 { return outside[uint64]("MaxUint64") }

// ExchInt32 puts v into *p and returns the value before.
func ExchInt32(p *int32, v int32) int32 { return outside[int32]("ExchInt32") }

// ExchInt64 puts v into *p and returns the value before.
func ExchInt64(p *int64, v int64) int64 { return outside[int64]("ExchInt64") }

// ExchUint32 puts v into *p and returns the value before.
func ExchUint32(p *uint32, v uint32) uint32 { return outside[uint32]("ExchUint32") }

// ExchUint64 puts v into *p and returns the value before.
func ExchUint64(p *uint64, v uint64) uint64 { return outside[uint64]("ExchUint64") }

// ExchFloat32 puts v into *p and returns the value before.
func ExchFloat32(p *float32, v float32) float32 { return outside[float32]("ExchFloat32") }

// ExchFloat64 puts v into *p and returns the value before.
func ExchFloat64(p *float64, v float64) float64 { return outside[float64]("ExchFloat64") }

// CasInt32 puts v into *p if *p is old, and returns the value before: old says
// that it did.
func CasInt32(p *int32, old, v int32) int32 { return outside[int32]("CasInt32") }

// CasInt64 puts v into *p if *p is old, and returns the value before: old says
// that it did.
func CasInt64(p *int64, old, v int64) int64 { return outside[int64]("CasInt64") }

// CasUint32 puts v into *p if *p is old, and returns the value before: old says
// that it did.
func CasUint32(p *uint32, old, v uint32) uint32 { return outside[uint32]("CasUint32") }

// CasUint64 puts v into *p if *p is old, and returns the value before: old says
// that it did.
func CasUint64(p *uint64, old, v uint64) uint64 { return outside[uint64]("CasUint64") }
