//go:build cuda

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"

	"gpunotes/gpukit/internal/driver"
	"gpunotes/gpukit/internal/driver/sim"
)

// settings are what the environment says.
type settings struct {
	cards   []*card // that CUDA_VISIBLE_DEVICES leaves visible
	version int
	init    driver.Code // of cuInit
	fail    map[string]map[int]driver.Code
	missing map[string]bool
	seed    uint64
	options sim.Options
	verbose bool
}

// card is a card of the machine.
type card struct {
	*sim.Card
	number int // on the bus, from 0
	uuid   [16]byte
}

// name of the UUID as nvidia-smi prints it.
func (c *card) name() string {
	u := c.uuid
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func (c *card) bus() string { return fmt.Sprintf("0000:%02x:00.0", c.number+1) }

// newestPTX is the newest PTX that the driver of a CUDA version takes. Source: NVIDIA's PTX ISA, release notes.
var newestPTX = []struct{ cuda, major, minor int }{
	{8000, 5, 0}, {9000, 6, 0}, {9010, 6, 1}, {9020, 6, 2}, {10000, 6, 3}, {10010, 6, 4}, {10020, 6, 5},
	{11000, 7, 0}, {11010, 7, 1}, {11020, 7, 2}, {11030, 7, 3}, {11040, 7, 4}, {11050, 7, 5}, {11060, 7, 6}, {11070, 7, 7}, {11080, 7, 8},
	{12000, 8, 0}, {12010, 8, 1}, {12020, 8, 2}, {12030, 8, 3}, {12040, 8, 4}, {12050, 8, 5}, {12070, 8, 6}, {12080, 8, 7}, {12090, 8, 8},
	{13000, 9, 0},
}

// readSettings reads them; lookup is os.LookupEnv.
func readSettings(lookup func(string) (string, bool)) (*settings, error) {
	get := func(name, otherwise string) string {
		if v, ok := lookup(name); ok {
			return v
		}
		return otherwise
	}
	s := &settings{fail: map[string]map[int]driver.Code{}, missing: map[string]bool{}}
	number := func(name, otherwise string) (n uint64, err error) {
		if n, err = strconv.ParseUint(get(name, otherwise), 10, 63); err != nil {
			err = fmt.Errorf("%s=%q is no number", name, get(name, otherwise))
		}
		return n, err
	}
	version, err := number("GPUNOTES_MOCK_DRIVER", "12040")
	if err != nil {
		return nil, err
	}
	memory, err := number("GPUNOTES_MOCK_MEMORY", "0")
	if err != nil {
		return nil, err
	}
	result, err := number("GPUNOTES_MOCK_INIT", "0")
	if err != nil {
		return nil, err
	}
	if s.seed, err = number("GPUNOTES_MOCK_SEED", "1"); err != nil {
		return nil, err
	}
	s.version, s.init = int(version), driver.Code(result)
	s.options.Strict = get("GPUNOTES_MOCK_STRICT", "") == "1"
	fast := get("GPUNOTES_MOCK_FAST", "") == "1"
	s.options.Unchecked, s.options.Uncounted = fast, fast
	s.options.HostBytes = hostBytes
	s.verbose = get("GPUNOTES_MOCK_VERBOSE", "") == "1"
	for _, n := range list(get("GPUNOTES_MOCK_MISSING", "")) {
		s.missing[n] = true
	}
	for _, f := range list(get("GPUNOTES_MOCK_FAIL", "")) {
		var n, code int
		name, rest, _ := strings.Cut(f, ":")
		if k, err := fmt.Sscanf(rest, "%d=%d", &n, &code); k != 2 || err != nil {
			return nil, fmt.Errorf("GPUNOTES_MOCK_FAIL: %q is not of the form name:3=700", f)
		}
		if s.fail[name] == nil {
			s.fail[name] = map[int]driver.Code{}
		}
		s.fail[name][n] = driver.Code(code)
	}
	var all []*card
	for i, n := range list(get("GPUNOTES_MOCK_CARDS", "h200,quadro-k2000")) {
		from, err := sim.LookupCard(n)
		if err != nil {
			return nil, fmt.Errorf("GPUNOTES_MOCK_CARDS: %v", err)
		}
		c := *from
		if memory > 0 {
			c.MemoryBytes = int(memory)
		}
		c.DriverMajor, c.DriverMinor = s.version/1000, s.version%1000/10
		c.PTXMajor, c.PTXMinor = newestPTX[0].major, newestPTX[0].minor
		for _, p := range newestPTX {
			if p.cuda <= s.version {
				c.PTXMajor, c.PTXMinor = p.major, p.minor
			}
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", n, i))
		all = append(all, &card{&c, i, [16]byte(sum[:])})
	}
	s.cards = all
	if v, ok := lookup("CUDA_VISIBLE_DEVICES"); ok {
		s.cards = visible(all, v)
	}
	return s, nil
}

// visible is what CUDA_VISIBLE_DEVICES leaves: those listed, up to the first entry that is none. A card listed twice
// hides all. Source: CUDA C++ Programming Guide, environment variables.
func visible(all []*card, value string) []*card {
	var out []*card
	seen := map[*card]bool{}
	for _, entry := range strings.Split(value, ",") {
		entry = strings.TrimSpace(entry)
		var found []*card
		if i, err := strconv.Atoi(entry); err == nil {
			if i >= 0 && i < len(all) {
				found = all[i : i+1]
			}
		} else if len(entry) > len("GPU-") && strings.HasPrefix(entry, "GPU-") {
			for _, c := range all {
				if strings.HasPrefix(c.name(), entry) {
					found = append(found, c)
				}
			}
		}
		if len(found) != 1 {
			break
		}
		if seen[found[0]] {
			return nil
		}
		seen[found[0]] = true
		out = append(out, found[0])
	}
	return out
}

func list(s string) (out []string) {
	for _, x := range strings.Split(s, ",") {
		if x = strings.TrimSpace(x); x != "" {
			out = append(out, x)
		}
	}
	return out
}

// hostBytes is how much memory this machine, or the container, has left.
func hostBytes() uint64 {
	have := uint64(1) << 62
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
				if kb, err := strconv.ParseUint(f[1], 10, 52); err == nil {
					have = kb << 10
				}
			}
		}
	}
	if text, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 62); err == nil {
			have = min(have, n)
		}
	}
	return have
}
