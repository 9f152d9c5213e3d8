package sim

import "math/bits"

// cache is a set-associative sector cache that replaces the least recently used line of a set.
type cache struct {
	ways   int
	sets   divisor
	chunks []*chunk
}

// chunk holds some sets; it is made when one of them is first used, so that a small kernel costs little.
type chunk [chunkSets]cacheSet

const chunkSets = 32

// cacheSet is one set. The lines stay in their ways; order has the ways in 4 bits each, the last used lowest, against
// identity so that zero is a valid beginning. short has a byte of a hash for each way, to find a line in few steps.
type cacheSet struct {
	order uint64
	short [2]uint64
	tags  [maxWays]uint64 // line + 1; 0 is free
	state [maxWays]uint8  // sectors that are there, and above them those that are dirty
}

const (
	identity = 0xfedcba9876543210
	eachByte = 0x0101010101010101
	eachWay  = 0x1111111111111111
)

func (c *cache) init(size, ways int) {
	c.ways = ways
	c.sets = newDivisor(max(1, size/(ways<<lineBits)))
	c.chunks = make([]*chunk, (c.sets.by+chunkSets-1)/chunkSets)
}

// find returns the state of a line, which it brings in if need be; then old is the line that had to go and dirty its
// dirty sectors.
func (c *cache) find(line uint64) (state *uint8, old uint64, dirty uint8) {
	_, set := c.sets.div(uint64(uint32(line ^ line>>7 ^ line>>15)))
	k := c.chunks[set/chunkSets]
	if k == nil {
		k = new(chunk)
		c.chunks[set/chunkSets] = k
	}
	s := &k[set%chunkSets]
	key := line + 1
	order := s.order ^ identity
	if w := order % maxWays; s.tags[w] == key {
		return &s.state[w], 0, 0
	}
	short := line * 0x9e3779b97f4a7c15 >> 56
	for half := range s.short {
		// Bytes of the word that are equal to short, and perhaps others; the tag decides.
		x := s.short[half] ^ short*eachByte
		for z := (x - eachByte) &^ x & (eachByte << 7); z != 0; z &= z - 1 {
			w := uint64(half<<3|bits.TrailingZeros64(z)>>3) % maxWays
			if s.tags[w] != key {
				continue
			}
			// Move the way to the front of the order: the lowest zero below is its place.
			y := order ^ w*eachWay
			at := bits.TrailingZeros64((y-eachWay)&^y&(eachWay<<3)) &^ 3
			before := uint64(1)<<at - 1
			s.order = (order&^(before<<4|15) | order&before<<4 | w) ^ identity
			return &s.state[w], 0, 0
		}
	}
	w := order >> (4 * (c.ways - 1)) % maxWays
	if s.tags[w] != 0 {
		old, dirty = s.tags[w]-1, s.state[w]>>sectorsPerLine
	}
	if c.ways < maxWays {
		low := uint64(1)<<(4*c.ways) - 1
		order = order&^low | order<<4&low | w
	} else {
		order = order<<4 | w
	}
	s.order = order ^ identity
	s.tags[w], s.state[w] = key, 0
	shift := w % 8 * 8
	s.short[w/8] = s.short[w/8]&^(0xff<<shift) | short<<shift
	return &s.state[w], old, dirty
}

// flush calls write for the dirty sectors of every line, set by set, the least recently used first, and makes them clean.
func (c *cache) flush(write func(line uint64, dirty uint8)) {
	for _, k := range c.chunks {
		if k == nil {
			continue
		}
		for i := range k {
			s := &k[i]
			for at := c.ways - 1; at >= 0; at-- {
				w := (s.order ^ identity) >> (4 * at) % maxWays
				if d := s.state[w] >> sectorsPerLine; d != 0 {
					s.state[w] &= 1<<sectorsPerLine - 1
					write(s.tags[w]-1, d)
				}
			}
		}
	}
}

// divisor divides numbers below 2^56 by a small one without a division.
type divisor struct{ by, recip uint64 }

func newDivisor(by int) divisor { return divisor{uint64(by), ^uint64(0)/uint64(by) + 1} }

func (d *divisor) div(x uint64) (quotient, rest uint64) {
	if d.by == 1 {
		return x, 0
	}
	q, _ := bits.Mul64(x, d.recip)
	return q, x - q*d.by
}

// dram counts row activations. Neighbouring blocks of ChannelBytes lie in different channels; a channel looks at
// ReorderWindow requests together and serves those to one row one after the other; each of its banks keeps its last row
// open.
type dram struct {
	window      int
	blockBits   uint
	channels    []channel
	count       divisor // of channels
	banks       divisor
	blocksInRow divisor
	activations uint64
}

type channel struct {
	waiting int
	rows    []uint64 // different rows of those that wait, in the order in which they came
	open    []uint64 // by bank, row + 1
}

func (d *dram) init(c *Card) {
	d.window = c.ReorderWindow
	d.blockBits = uint(bits.Len(uint(c.ChannelBytes)) - 1)
	d.channels = make([]channel, c.MemoryChannels)
	d.count, d.banks = newDivisor(c.MemoryChannels), newDivisor(c.Banks)
	d.blocksInRow = newDivisor(c.RowBytes / c.ChannelBytes)
}

// request sends n bursts of one line to its channel.
func (d *dram) request(line uint64, n int) {
	block := line << lineBits >> d.blockBits
	_, at := d.count.div(block ^ block>>4 ^ block>>9)
	c := &d.channels[at]
	row, _ := d.count.div(block)
	row, _ = d.blocksInRow.div(row)
	for n > 0 {
		known := false
		for i := len(c.rows) - 1; i >= 0 && !known; i-- {
			known = c.rows[i] == row
		}
		if !known {
			c.rows = append(c.rows, row)
		}
		k := min(n, d.window-c.waiting)
		c.waiting += k
		n -= k
		if c.waiting == d.window {
			d.serve(c)
		}
	}
}

func (d *dram) serve(c *channel) {
	if c.open == nil {
		c.open = make([]uint64, d.banks.by)
	}
	for _, row := range c.rows {
		_, bank := d.banks.div(row ^ row>>4)
		if c.open[bank] != row+1 {
			c.open[bank] = row + 1
			d.activations++
		}
	}
	c.rows, c.waiting = c.rows[:0], 0
}

func (d *dram) drain() {
	for i := range d.channels {
		d.serve(&d.channels[i])
	}
}
