package sim

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"reflect"
	"strings"
	"sync"

	"gpunotes/gpukit/internal/driver"
)

// Card is what is known of one card. Every number comes from the card's data file in cards, with its source beside it
// or the word "assumed". Latencies are cycles of the multiprocessor's clock; "mp" is a multiprocessor; lanes are results
// per cycle and multiprocessor.
type Card struct {
	Name  string // "quadro-k2000"
	Title string // "Quadro K2000", as the driver gives it
	Chip  string // "GK107"

	CapabilityMajor int `card:"capability_major"`
	CapabilityMinor int `card:"capability_minor"`
	DriverMajor     int `card:"driver_major"` // version of CUDA of the driver
	DriverMinor     int `card:"driver_minor"`
	PTXMajor        int `card:"ptx_major"` // newest PTX that the driver takes
	PTXMinor        int `card:"ptx_minor"`

	Multiprocessors int     `card:"multiprocessors"`
	ClockMHz        float64 `card:"clock_mhz"`

	// Limits of a multiprocessor, a block, a thread and a grid.
	WarpSize            int `card:"warp_size"`
	ThreadsPerMP        int `card:"threads_per_mp"`
	WarpsPerMP          int `card:"warps_per_mp"`
	BlocksPerMP         int `card:"blocks_per_mp"`
	RegistersPerMP      int `card:"registers_per_mp"`
	RegistersPerBlock   int `card:"registers_per_block"`
	RegistersPerThread  int `card:"registers_per_thread"`
	RegisterUnit        int `card:"register_unit"` // registers are handed to a warp in multiples of this
	WarpUnit            int `card:"warp_unit"`     // and to warps in groups of this
	SharedPerMP         int `card:"shared_per_mp"` // bytes, like all of shared memory
	SharedPerBlock      int `card:"shared_per_block"`
	SharedPerBlockOptIn int `card:"shared_per_block_opt_in"`
	SharedUnit          int `card:"shared_unit"`
	SharedReserved      int `card:"shared_reserved"` // per block, for the system
	ThreadsPerBlock     int `card:"threads_per_block"`
	BlockX              int `card:"block_x"`
	BlockY              int `card:"block_y"`
	BlockZ              int `card:"block_z"`
	GridX               int `card:"grid_x"`
	GridY               int `card:"grid_y"`
	GridZ               int `card:"grid_z"`
	LocalPerThread      int `card:"local_per_thread"` // bytes
	ConstantBytes       int `card:"constant_bytes"`

	// Shared memory, caches and memory.
	SharedBanks     int     `card:"shared_banks"`
	BankBytes       int     `card:"bank_bytes"` // width of a bank
	L1Bytes         int     `card:"l1_bytes"`   // per multiprocessor
	L1Ways          int     `card:"l1_ways"`
	L1Global        int     `card:"l1_global"`    // 1: caches loads of global memory
	L1ReadOnly      int     `card:"l1_read_only"` // 1: caches ld.global.nc
	L1Local         int     `card:"l1_local"`     // 1: caches local memory
	L2Bytes         int     `card:"l2_bytes"`
	L2Ways          int     `card:"l2_ways"`
	L2BytesPerClock float64 `card:"l2_bytes_per_clock"`
	MemoryBytes     int     `card:"memory_bytes"`
	MemoryClockMHz  float64 `card:"memory_clock_mhz"`
	BusBits         int     `card:"bus_bits"`
	MemoryGBS       float64 `card:"memory_gb_s"` // 1e9 bytes per second
	MemoryChannels  int     `card:"memory_channels"`
	ChannelBytes    int     `card:"channel_bytes"`  // neighbouring bytes that one channel holds
	RowBytes        int     `card:"row_bytes"`      // of a bank
	Banks           int     `card:"banks"`          // of a channel
	ReorderWindow   int     `card:"reorder_window"` // requests that a channel looks at together
	ActivationNS    float64 `card:"activation_ns"`  // least time between two row activations of a channel

	// Throughput.
	Schedulers           int `card:"schedulers"`
	IssuePerClock        int `card:"issue_per_clock"` // warp instructions per cycle and multiprocessor
	FP32Lanes            int `card:"fp32_lanes"`
	FP64Lanes            int `card:"fp64_lanes"`
	Convert64Lanes       int `card:"convert64_lanes"` // between float64 and integers
	IntegerMultiplyLanes int `card:"integer_multiply_lanes"`
	SpecialFunctionLanes int `card:"special_function_lanes"`

	// Latency.
	ALULatency          int `card:"alu_latency"`
	FP64Latency         int `card:"fp64_latency"`
	Multiply64Slots     int `card:"multiply64_slots"`      // instructions that a 64-bit integer product takes
	Multiply64HalfSlots int `card:"multiply64_half_slots"` // of these, those for a high half that a factor may have
	Multiply64Latency   int `card:"multiply64_latency"`
	TakenBranchLatency  int `card:"taken_branch_latency"`
	LineDelay           int `card:"line_delay"` // a warp is held as long for each further line of an access
	SharedLatency       int `card:"shared_latency"`
	L1Latency           int `card:"l1_latency"`
	L2Latency           int `card:"l2_latency"`
	MemoryLatency       int `card:"memory_latency"`
	BlockCycles         int `card:"block_cycles"` // to start and retire a block

	// What the timing model does not derive.
	SerialFactorAtRegisterCap float64 `card:"serial_factor_at_register_cap"`
	Efficiency                float64 `card:"efficiency"` // part of a peak that can be reached
	OverlapExponent           float64 `card:"overlap_exponent"`
	StartUS                   float64 `card:"start_us"`  // of a kernel, on the device
	LaunchUS                  float64 `card:"launch_us"` // of a launch, on the host

	// Copies.
	LinkGBS           float64 `card:"link_gb_s"`
	LinkEfficiency    float64 `card:"link_efficiency"`
	CopyStartUS       float64 `card:"copy_start_us"`
	StagingBytes      int     `card:"staging_bytes"`
	HostCopyGBS       float64 `card:"host_copy_gb_s"`
	HostCopyBackRatio float64 `card:"host_copy_back_ratio"` // of that rate from device to host

	numbers []Number
}

// Number is a number of a card with its source: where it is published, or a text that starts with or contains
// "assumed" or "fitted".
type Number struct {
	Key    string
	Value  float64
	Source string
}

// Numbers lists all numbers of the card, in the order of the fields.
func (c *Card) Numbers() []Number { return c.numbers }

//go:embed cards/*.json
var cardFiles embed.FS

var cardNames = []string{"quadro-k2000", "gtx-970", "gtx-1080-ti", "tesla-t4", "a100", "h200"}

var allCards = sync.OnceValue(func() map[string]*Card {
	cards := map[string]*Card{}
	for _, n := range cardNames {
		text, err := cardFiles.ReadFile(path.Join("cards", n+".json"))
		if err == nil {
			cards[n], err = readCard(text)
		}
		if err != nil { // a test loads them all
			panic(fmt.Sprintf("sim: card %s: %v", n, err))
		}
	}
	return cards
})

// CardNames lists the cards, oldest first.
func CardNames() []string { return append([]string(nil), cardNames...) }

// LookupCard returns the card of that name; the error lists those there are. The result must not be changed.
func LookupCard(name string) (*Card, error) {
	if c := allCards()[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("there is no card %q to simulate; there are %s", name, strings.Join(cardNames, ", "))
}

// readCard reads a data file: name, title, chip and numbers, each a pair of value and source.
func readCard(text []byte) (*Card, error) {
	var file struct {
		Name, Title, Chip string
		Numbers           map[string][2]json.RawMessage
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	c := &Card{Name: file.Name, Title: file.Title, Chip: file.Chip}
	if c.Name == "" || c.Title == "" || c.Chip == "" {
		return nil, fmt.Errorf("name, title or chip is missing")
	}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("card")
		if key == "" {
			continue
		}
		pair, ok := file.Numbers[key]
		if !ok {
			return nil, fmt.Errorf("%s is missing", key)
		}
		delete(file.Numbers, key)
		n := Number{Key: key}
		if err := json.Unmarshal(pair[0], &n.Value); err != nil {
			return nil, fmt.Errorf("%s: %v", key, err)
		}
		if err := json.Unmarshal(pair[1], &n.Source); err != nil {
			return nil, fmt.Errorf("%s: source: %v", key, err)
		}
		switch {
		case len(strings.TrimSpace(n.Source)) == 0:
			return nil, fmt.Errorf("%s has no source", key)
		case n.Value < 0 || math.IsInf(n.Value, 0):
			return nil, fmt.Errorf("%s is %v", key, n.Value)
		}
		if f := v.Field(i); f.CanFloat() {
			f.SetFloat(n.Value)
		} else if n.Value != math.Trunc(n.Value) {
			return nil, fmt.Errorf("%s is %v, which is no integer", key, n.Value)
		} else {
			f.SetInt(int64(n.Value))
		}
		c.numbers = append(c.numbers, n)
	}
	for key := range file.Numbers {
		return nil, fmt.Errorf("%s is no number of a card", key)
	}
	return c, nil
}

// SM is the compute capability as in sm_NN.
func (c *Card) SM() int { return c.CapabilityMajor*10 + c.CapabilityMinor }

// Info describes the card as a driver would.
func (c *Card) Info() driver.Info {
	return driver.Info{
		Name: c.Title, Capability: driver.Version{Major: c.CapabilityMajor, Minor: c.CapabilityMinor}, Simulated: true,
		Multiprocessors: c.Multiprocessors, WarpSize: c.WarpSize, Clock: c.ClockMHz * 1e6, MemoryClock: c.MemoryClockMHz * 1e6,
		BusBits: c.BusBits, L2: c.L2Bytes, Memory: uint64(c.MemoryBytes), Constant: c.ConstantBytes,
		MaxThreadsPerBlock: c.ThreadsPerBlock, MaxBlock: driver.Dim{X: c.BlockX, Y: c.BlockY, Z: c.BlockZ},
		MaxGrid:           driver.Dim{X: c.GridX, Y: c.GridY, Z: c.GridZ},
		RegistersPerBlock: c.RegistersPerBlock, RegistersPerThread: c.RegistersPerThread, RegistersPerMP: c.RegistersPerMP,
		SharedPerBlock: c.SharedPerBlock, SharedPerBlockOptIn: c.SharedPerBlockOptIn, SharedPerMP: c.SharedPerMP,
		MaxThreadsPerMP: c.ThreadsPerMP, MaxBlocksPerMP: c.BlocksPerMP, LocalPerThread: c.LocalPerThread,
		UnifiedAddressing: true, Mapped: true,
		Driver: driver.Version{Major: c.DriverMajor, Minor: c.DriverMinor}, PTX: driver.Version{Major: c.PTXMajor, Minor: c.PTXMinor},
		PCI: "0000:00:00.0",
	}
}
