package libm

import "math"

// The multipliers and the Weyl increments of the keys of Philox4x32: Salmon,
// Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC11).
const (
	philoxM0 = 0xD2511F53
	philoxM1 = 0xCD9E8D57
	philoxW0 = 0x9E3779B9
	philoxW1 = 0xBB67AE85
)

// Philox4x32 is the counter-based generator Philox4x32-10: four random words
// for each counter and key, the same on every device.
func Philox4x32(counter [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := counter[0], counter[1], counter[2], counter[3]
	k0, k1 := key[0], key[1]
	for round := 0; round < 10; round++ {
		p0 := uint64(philoxM0) * uint64(c0)
		p1 := uint64(philoxM1) * uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += philoxW0
		k1 += philoxW1
	}
	return [4]uint32{c0, c1, c2, c3}
}

func draw(seed, index uint64) [4]uint32 {
	return Philox4x32([4]uint32{uint32(index), uint32(index >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
}

// unit makes a multiple of 2^-53 in [0, 1) of two random words.
func unit(hi, lo uint32) float64 {
	return float64(float64((uint64(hi)<<32|uint64(lo))>>11) * 0x1p-53)
}

// UniformFloat64 is random number index of the sequence that seed names,
// uniform in [0, 1): a multiple of 2^-53.
func UniformFloat64(seed, index uint64) float64 {
	r := draw(seed, index)
	return unit(r[0], r[1])
}

// NormFloat64 is random number index of the sequence that seed names, normal
// with mean 0 and standard deviation 1 (Box and Muller 1958).
func NormFloat64(seed, index uint64) float64 {
	r := draw(seed, index)
	return float64(math.Sqrt(-2*Log(1-unit(r[0], r[1]))) * Cos(2*math.Pi*unit(r[2], r[3])))
}
