//go:build cuda

package main

import (
	"bytes"
	gocontext "context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gpunotes/gpukit/internal/driver/sim"
)

// The oracle of these tests is NVIDIA's documentation of the driver API. They drive the library as a foreign program does,
// through Python's ctypes (testdata/cuda.py).

// built is the folder with the library, made once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mock")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "run", "-tags", "cuda", ".", "-o", dir).CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("%v\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := built(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// script runs lines of Python, and returns what they print.
func script(t *testing.T, env string, lines string) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := gocontext.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-B", "-c", "from cuda import *\n"+lines)
	cmd.WaitDelay = 5 * time.Second
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "CUDA_VISIBLE_DEVICES=") && !strings.HasPrefix(e, "GPUNOTES_MOCK") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, "PYTHONPATH="+here, "MOCK="+dir)
	cmd.Env = append(cmd.Env, strings.Split(env, ";")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s\n%s\n%v\n%s%s", env, lines, err, stdout.String(), stderr.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("%s\n%s\nstandard error: %s", env, lines, stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

func TestSymbols(t *testing.T) {
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(filepath.Join(dir, "libcuda.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF {
			continue
		}
		has[s.Name] = true
		if !strings.HasPrefix(s.Name, "cu") && s.Name != "gpunotesMockLive" {
			t.Errorf("the library exports %s, which may be somebody else's name", s.Name)
		}
	}
	if so, err := f.DynString(elf.DT_SONAME); err != nil || !slices.Equal(so, []string{"libcuda.so.1"}) {
		t.Errorf("soname %v, %v", so, err)
	}
	text, err := os.ReadFile("../shim/symbols.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(text))
	if len(want) < 100 {
		t.Errorf("%d symbols in shim", len(want))
	}
	for _, n := range want {
		if !has[n] {
			t.Errorf("the library has no %s; add it to unsupported.txt", n)
		}
	}
	for _, n := range strings.Fields(unsupported) {
		if _, ok := entries[n]; ok {
			t.Errorf("unsupported.txt lists %s, which is supported", n)
		}
	}
	for n := range entries {
		if len(n) >= nameBytes {
			t.Errorf("%s has %d bytes", n, len(n))
		}
	}
}

func TestCards(t *testing.T) {
	all, err := readSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	uuid := all.cards[1].name()
	if len(uuid) != 40 || uuid[:10] == all.cards[0].name()[:10] {
		t.Fatalf("UUIDs %s and %s", all.cards[0].name(), uuid)
	}
	for _, c := range []struct{ name, value, want string }{
		{"X", "", "h200 quadro-k2000"},
		{"GPUNOTES_MOCK_CARDS", "gtx-970", "gtx-970"},
		{"GPUNOTES_MOCK_CARDS", "h200, h200", "h200 h200"},
		{"GPUNOTES_MOCK_CARDS", "", ""},
		{"CUDA_VISIBLE_DEVICES", "", ""},
		{"CUDA_VISIBLE_DEVICES", "-1", ""},
		{"CUDA_VISIBLE_DEVICES", "1", "quadro-k2000"},
		{"CUDA_VISIBLE_DEVICES", "1, 0", "quadro-k2000 h200"},
		{"CUDA_VISIBLE_DEVICES", "1,2,0", "quadro-k2000"},
		{"CUDA_VISIBLE_DEVICES", "0,-1,1", "h200"},
		{"CUDA_VISIBLE_DEVICES", "0,,1", "h200"},
		{"CUDA_VISIBLE_DEVICES", "0,0", ""},
		{"CUDA_VISIBLE_DEVICES", "0000:01:00.0", ""},
		{"CUDA_VISIBLE_DEVICES", uuid, "quadro-k2000"},
		{"CUDA_VISIBLE_DEVICES", uuid[:10] + ",0", "quadro-k2000 h200"},
		{"CUDA_VISIBLE_DEVICES", uuid + "0", ""},
		{"CUDA_VISIBLE_DEVICES", "GPU-", ""},
		{"CUDA_VISIBLE_DEVICES", uuid[4:], ""},
	} {
		s, err := readSettings(func(n string) (string, bool) { return c.value, n == c.name })
		if err != nil {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
			continue
		}
		var got []string
		for _, d := range s.cards {
			got = append(got, d.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s=%s: %v, want %s", c.name, c.value, got, c.want)
		}
	}
	const names = `
r = cu.cuInit(0)
n = []
if r == 0:
    for i in range(integer("cuDeviceGetCount")):
        b = C.create_string_buffer(50)
        ok("cuDeviceGetName", b, 50, integer("cuDeviceGet", i))
        n.append(b.value.decode())
print(r, n)
`
	for _, c := range []struct{ env, want string }{
		{"CUDA_VISIBLE_DEVICES=" + uuid, "0 ['" + all.cards[1].Title + "']"},
		{"GPUNOTES_MOCK_INIT=803", "803 []"},
		{"CUDA_VISIBLE_DEVICES=", "100 []"},
	} {
		if got := script(t, c.env, names); got != c.want {
			t.Errorf("%s: %s, want %s", c.env, got, c.want)
		}
	}
}

func TestAttributes(t *testing.T) {
	all, err := readSettings(func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"h200", "quadro-k2000"} {
		c, _ := sim.LookupCard(name)
		info := c.Info()
		got := script(t, "", fmt.Sprintf(`
current()
print([integer("cuDeviceGetAttribute", a, %d) for a in (1, 2, 5, 8, 10, 13, 16, 36, 39, 75, 76, 81, 82, 97, 106)], out("cuDeviceTotalMem_v2", %[1]d))
gives(1, "cuDeviceGetAttribute", C.c_int(), 9999, 0)
gives(101, "cuDeviceGetAttribute", C.c_int(), 1, 2)
b = C.create_string_buffer(20)
ok("cuDeviceGetPCIBusId", b, 20, %[1]d)
u = C.create_string_buffer(16)
ok("cuDeviceGetUuid", u, %[1]d)
print(b.value.decode(), integer("cuDeviceGetByPCIBusId", b.value), u.raw.hex())
`, i))
		want := strings.ReplaceAll(fmt.Sprint([]int{info.MaxThreadsPerBlock, info.MaxBlock.X, info.MaxGrid.X, info.SharedPerBlock, info.WarpSize, int(info.Clock / 1e3),
			info.Multiprocessors, int(info.MemoryClock / 1e3), info.MaxThreadsPerMP, info.Capability.Major, info.Capability.Minor, info.SharedPerMP, info.RegistersPerMP,
			info.SharedPerBlockOptIn, info.MaxBlocksPerMP}), " ", ", ") + fmt.Sprintf(" %d\n0000:%02x:00.0 %d %x", info.Memory, i+1, i, all.cards[i].uuid)
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// Each case is a program whose own assertions are the test.
func TestDriver(t *testing.T) {
	for _, c := range []struct{ name, env, lines string }{
		{"before cuInit", "GPUNOTES_MOCK_DRIVER=11040", `
assert integer("cuDriverGetVersion") == 11040
gives(3, "cuDeviceGetCount", C.c_int())
gives(3, "cuCtxSynchronize")
gives(1, "cuInit", 1)
gives(3, "cuMemAlloc_v2", C.c_uint64(), 8)
`},
		{"a driver without a card", "GPUNOTES_MOCK_CARDS=", `
gives(100, "cuInit", 0)
gives(3, "cuDeviceGetCount", C.c_int())
ok("cuDriverGetVersion", C.c_int())
`},
		{"error texts", "", `
p = out("cuGetErrorString", 700, at=1)
assert C.string_at(p) == b"an illegal memory access was encountered", C.string_at(p)
p = out("cuGetErrorName", 2, at=1)
assert C.string_at(p) == b"CUDA_ERROR_OUT_OF_MEMORY"
gives(1, "cuGetErrorName", 12345, C.c_uint64())
`},
		{"a context is current in one thread", "", `
c = current()
p = alloc(8)
def other(i):
    gives(201, "cuMemAlloc_v2", C.c_uint64(), 8)
    gives(201, "cuCtxSynchronize")
    assert out("cuCtxGetCurrent") == 0
    ok("cuCtxPushCurrent_v2", c)
    assert out("cuCtxGetCurrent") == c
    assert get(alloc(8), 2) is not None
    assert out("cuCtxPopCurrent_v2") == c
    gives(201, "cuCtxSynchronize")
    gives(201, "cuCtxPopCurrent_v2", C.c_uint64())
each(3, other)
ok("cuCtxSetCurrent", 0)
gives(201, "cuMemFree_v2", p)
gives(201, "cuCtxSetCurrent", 123456)
`},
		{"primary contexts", "", `
def state(): 
    flags, active = C.c_int(), C.c_int()
    ok("cuDevicePrimaryCtxGetState", 0, flags, active)
    return flags.value, active.value
ok("cuInit", 0)
ok("cuDevicePrimaryCtxSetFlags_v2", 0, 4)
assert state() == (4, 0)
c = current()
assert state() == (4, 1) and integer("cuCtxGetFlags") == 4
assert out("cuDevicePrimaryCtxRetain", 0) == c
ok("cuDevicePrimaryCtxRelease_v2", 0)
p = alloc(100); s = stream(); e = event(); m = kernels(); h = pinned(4)
assert live() == "allocations 1 (100 bytes), pinned 1, modules 1, streams 1, events 1, contexts 1", live()
ok("cuDevicePrimaryCtxRelease_v2", 0)
assert live() == "allocations 0 (0 bytes), pinned 0, modules 0, streams 0, events 0, contexts 0", live()
assert state() == (4, 0)
gives(709, "cuCtxSynchronize")
gives(201, "cuDevicePrimaryCtxRelease_v2", 0)
assert current() == c
gives(1, "cuMemFree_v2", p)
gives(400, "cuStreamQuery", s)
d = out("cuCtxCreate_v2", 0, 1)
assert out("cuCtxGetCurrent") == d and integer("cuCtxGetDevice") == 1
ok("cuCtxDestroy_v2", d)
assert out("cuCtxGetCurrent") == c and integer("cuCtxGetDevice") == 0
gives(201, "cuCtxDestroy_v2", c)
gives(201, "cuCtxSetCurrent", d)
`},
		{"PTX that is refused", "GPUNOTES_MOCK_DRIVER=11040;GPUNOTES_MOCK_CARDS=gtx-970", `
current()
def load(text, room=200):
    error, info = C.create_string_buffer(b"?" * room, room), C.create_string_buffer(b"?" * 50, 50)
    options = (C.c_int * 6)(5, 6, 3, 4, 12, 2)
    values = (C.c_uint64 * 6)(C.addressof(error), room, C.addressof(info), 50, 1, 0)
    r = cu.cuModuleLoadDataEx(C.c_uint64(), text, 6, options, values)
    assert info.value == b"" and values[3] == 0
    assert values[1] == len(error.value), (values[1], error.value)
    return r, error.value.decode()
r, log = load(b".version 7.4\n.target sm_52\n.address_size 64\n")
assert (r, log) == (0, ""), (r, log)
r, log = load(b".version 7.5\n.target sm_52\n.address_size 64\n")
assert r == 222 and "Unsupported .version 7.5; current version is '7.4'" in log, (r, log)
r, log = load(b".version 7.4\n.target sm_80\n.address_size 64\n")
assert r == 209, (r, log)
r, log = load(b".version 6.0\n.target sm_35\n.address_size 64\n.visible .entry f() { mov.u99 %r1, 0; ret; }\n")
assert r == 218 and "u99" in log, (r, log)
r, log = load(b".version 6.0\n.target sm_35\n.address_size 64\n.visible .entry f() { mov.u99 %r1, 0; ret; }\n", 11)
assert r == 218 and len(log) == 10, (r, log)
assert load(b"\x7fELF\1\1\1")[0] == 209
assert load(b"")[0] == 200
gives(218, "cuModuleLoadData", C.c_uint64(), b"nonsense")
gives(301, "cuModuleLoad", C.c_uint64(), b"/no/such/file")
assert ", modules 1, " in live()  # the one that was taken
`},
		{"modules", "", `
current()
m = kernels()
gives(500, "cuModuleGetFunction", C.c_uint64(), m, b"nothing")
gives(500, "cuModuleGetGlobal_v2", C.c_uint64(), C.c_uint64(), m, b"nothing")
p, n = C.c_uint64(), C.c_uint64()
ok("cuModuleGetGlobal_v2", p, n, m, b"table")
assert n.value == 16 and get(p.value, 4) == [1, 2, 3, 4]
put(p.value + 4, 9)
assert get(p.value, 4) == [1, 9, 3, 4]
gives(1, "cuMemFree_v2", p.value)
gives(1, "cuMemcpyHtoD_v2", p.value + 8, words(1, 2, 3), 12)
f = function(m, "add")
assert f == function(m, "add") and f != function(m, "spin")
a = [integer("cuFuncGetAttribute", i, f) for i in range(9)]
assert 0 < a[0] <= 1024 and a[1:4] == [0, 0, 0] and 0 < a[4] < 32 and a[5] == 60 and a[6] == 90 and a[8] == 48 << 10, a
assert integer("cuFuncGetAttribute", 0, function(m, "bounded")) == 64
assert integer("cuOccupancyMaxActiveBlocksPerMultiprocessor", f, 1024, 0) == 2
grid, block = C.c_int(), C.c_int()
ok("cuOccupancyMaxPotentialBlockSize", grid, block, f, 0, 0, 0)
assert block.value == 1024 and grid.value == 264, (grid, block)
ok("cuModuleUnload", m)
gives(400, "cuModuleUnload", m)
gives(400, "cuModuleGetFunction", C.c_uint64(), m, b"add")
assert launch(f, 0, 0, 0) == 400
gives(1, "cuMemcpyDtoH_v2", words(0), p.value, 4)
`},
		{"launches that a card does not take", "", `
for device in 0, 1:
    current(device)
    m = kernels()
    f, d, b = function(m, "add"), function(m, "dynamic"), function(m, "bounded")
    p = alloc(4000)
    assert launch(f, p, 1, 0, block=1025) == 1
    assert launch(f, p, 1, 0, block=0) == 1
    assert launch(f, p, 1, 0, grid=0) == 1
    assert launch(b, p, block=64) == 0 and launch(b, p, block=65) == 1
    assert cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) == 1
    assert launch(f, p, 1, 0, stream=12345) == 400
    assert launch(12345, p) == 400
    assert launch(d, p, shared=48 << 10) == 0
    assert launch(d, p, shared=(48 << 10) + 4) == 1
    if device == 0:
        ok("cuFuncSetAttribute", d, 8, 100 << 10)
        assert launch(d, p, shared=100 << 10) == 0
        assert launch(d, p, shared=(100 << 10) + 4) == 1
        ok("cuFuncSetAttribute", d, 8, 227 << 10)
    gives(1, "cuFuncSetAttribute", d, 8, (227 << 10) + 1)
    gives(1, "cuFuncSetAttribute", d, 77, 1)
    ok("cuCtxSynchronize")
    assert get(p) == [7]
    s = stream()
    ok("cuCtxSetCurrent", out("cuDevicePrimaryCtxRetain", 1 - device))
    assert launch(f, p, 1, 0) == 201
`},
		{"a kernel", "", `
current()
f = function(kernels(), "add")
p = alloc(4000)
put(p, *range(1000))
for i in range(3):
    assert launch(f, p, 1 << 32 | 5, 990, grid=4, block=256) == 0
assert get(p, 1000) == [i + 15 if i < 990 else i for i in range(1000)]
`},
		{"memory", "GPUNOTES_MOCK_MEMORY=1000000", `
current()
free, total = C.c_uint64(), C.c_uint64()
def left():
    ok("cuMemGetInfo_v2", free, total)
    return free.value
before = left()
assert before == total.value == 1000000 == out("cuDeviceTotalMem_v2", 0)
p = alloc(600000)
assert p % 256 == 0 and left() <= 400000
gives(2, "cuMemAlloc_v2", C.c_uint64(), 600000)
gives(2, "cuMemAllocAsync", C.c_uint64(), 600000, 0)
gives(1, "cuMemAlloc_v2", C.c_uint64(), 0)
gives(1, "cuMemAlloc_v2", 0, 8)
gives(1, "cuMemFree_v2", p + 256)
b, n = C.c_uint64(), C.c_uint64()
ok("cuMemGetAddressRange_v2", b, n, p + 1000)
assert (b.value, n.value) == (p, 600000)
assert get(p, 2) != [0, 0] or True
big = C.create_string_buffer(600000)
gives(1, "cuMemcpyHtoD_v2", p + 1, big, 600000)
gives(1, "cuMemcpyDtoH_v2", big, p + 599999, 2)
gives(1, "cuMemcpyDtoH_v2", big, 4096, 2)
gives(1, "cuMemcpyHtoD_v2", p, 0, 2)
gives(1, "cuMemcpyDtoD_v2", p, p + 4, 8)
ok("cuMemcpyDtoD_v2", p, p + 8, 8)
ok("cuMemcpyDtoD_v2", p, p, 0)
ok("cuMemFree_v2", p)
gives(1, "cuMemFree_v2", p)
ok("cuMemFree_v2", 0)
assert left() == before
p = alloc(40)
assert get(p, 2) == [0xa5a5a5a5] * 2
ok("cuMemsetD8_v2", p, 0x1ff, 40)
ok("cuMemsetD32_v2", p + 4, 0x01020304, 3)
ok("cuMemsetD16_v2", p + 16, 0x0506, 2)
ok("cuMemsetD32Async", p + 20, 7, 1, 0)
gives(1, "cuMemsetD32_v2", p + 2, 0, 1)
gives(1, "cuMemsetD32_v2", p, 0, 11)
assert get(p, 7) == [0xffffffff, 0x01020304, 0x01020304, 0x01020304, 0x05060506, 7, 0xffffffff]
s = stream()
q = out("cuMemAllocAsync", 400, s)
put(q, 5)
assert get(q) == [5]
ok("cuMemFreeAsync", q, s)
gives(1, "cuMemFreeAsync", q, s)
gives(1, "cuMemFree_v2", q)
ok("cuStreamSynchronize", s)
ok("cuMemPoolTrimTo", out("cuDeviceGetDefaultMemPool", 0), 0)
ok("cuMemFree_v2", p)
assert left() == before
`},
		{"page-locked memory is read late, other memory during the call", "", `
current()
s = stream()
h, a = pinned(1)
p, q = alloc(4), alloc(4)
put(p, 0); put(q, 0)
w = words(1)
h[0] = 1
ok("cuMemcpyHtoDAsync_v2", p, a, 4, s)
ok("cuMemcpyHtoDAsync_v2", q, w, 4, s)
h[0] = w[0] = 2
ok("cuStreamSynchronize", s)
assert get(p) == [2] and get(q) == [1]
h[0] = 9
ok("cuMemcpyDtoHAsync_v2", a, q, 4, s)
assert h[0] == 9
gives(600, "cuStreamQuery", s)
ok("cuStreamSynchronize", s)
assert h[0] == 1
w[0] = 9
ok("cuMemcpyDtoHAsync_v2", w, p, 4, s)
assert w[0] == 2
h[0] = 5
ok("cuMemcpyHtoD_v2", p, a, 4)
h[0] = 6
assert get(p) == [5]
# memory of others, registered
w = words(1, 2)
ok("cuMemHostRegister_v2", w, 8, 2)
gives(712, "cuMemHostRegister_v2", C.addressof(w) + 4, 8, 0)
ok("cuMemcpyHtoDAsync_v2", p, C.addressof(w) + 4, 4, s)
w[1] = 3
ok("cuMemHostUnregister", w)
gives(713, "cuMemHostUnregister", w)
w[1] = 4
ok("cuStreamSynchronize", s)
assert get(p) == [3]
gives(1, "cuMemFreeHost", w)
h[0] = 8
ok("cuMemcpyHtoDAsync_v2", p, a, 4, s)
ok("cuMemFreeHost", a)
assert get(p) == [8]
gives(1, "cuMemFreeHost", a)
gives(1, "cuMemHostAlloc", C.c_uint64(), 0, 0)
assert "pinned 0" in live()
`},
		{"the default stream waits for blocking streams, and they for it", "", `
current()
f = function(kernels(), "add")
p = alloc(4)
s, t = stream(0), stream(0)
h, a = pinned(1)
want = 0
put(p, 0)
for i in range(20):
    # each step copies the sum out and in again, so the order shows
    for x in s, 0, t, 0:
        ok("cuMemcpyDtoHAsync_v2", a, p, 4, x)
        ok("cuMemcpyHtoDAsync_v2", p, a, 4, x)
        assert launch(f, p, 1, 1, stream=x) == 0
        want += 1
assert get(p) == [want], (get(p), want)
assert integer("cuStreamGetFlags", s, at=1) == 0 and integer("cuStreamGetFlags", stream(1), at=1) == 1
gives(1, "cuStreamCreate", C.c_uint64(), 2)
ok("cuStreamDestroy_v2", s)
gives(400, "cuStreamDestroy_v2", s)
gives(400, "cuStreamQuery", s)
gives(400, "cuStreamDestroy_v2", 0)
# what is in a destroyed stream is still done
assert launch(f, p, 1, 1, stream=t) == 0
ok("cuStreamDestroy_v2", t)
assert get(p) == [want + 1]
# the copy out of the default stream is not behind a stream that does not block
n = stream(1)
assert launch(f, p, 1, 1, stream=n) == 0
x = get(p)
ok("cuCtxSynchronize")
assert get(p) == [want + 2] and x in ([want + 1], [want + 2])
`},
		{"asking comes to an end", "", `
current()
f = function(kernels(), "add")
p = alloc(4)
put(p, 0)
s = stream()
e = event()
ok("cuEventQuery", e)
ok("cuStreamQuery", s)
for i in range(5):
    assert launch(f, p, 1, 1, stream=s) == 0
ok("cuEventRecord", e, s)
n = 0
while cu.cuEventQuery(e) == 600: n += 1
assert n > 0
ok("cuStreamQuery", s)
assert get(p) == [5]
`},
		{"a kernel sees what the program writes while it runs", "", `
import time
current()
f = function(kernels(), "spin")
h, a = pinned(2)
h[0] = h[1] = 0
d = out("cuMemHostGetDevicePointer_v2", a, 0)
s = stream()
for round in range(3):
    h[0] = h[1] = 0
    assert launch(f, d, d + 4, stream=s) == 0
    for i in range(20):
        gives(600, "cuStreamQuery", s)
        time.sleep(0.001)
    assert h[1] == 0
    h[0] = 1
    while cu.cuStreamQuery(s) == 600: time.sleep(0.001)
    ok("cuStreamSynchronize", s)
    assert h[1] > 100, h[1]
assert get(d, 2) == [1, h[1]]
gives(1, "cuMemHostGetDevicePointer_v2", C.c_uint64(), a + 8, 0)
`},
		{"a kernel that does not end goes with its context", "", `
import time
current()
f = function(kernels(), "spin")
p = alloc(8)
put(p, 0, 0)
assert launch(f, p, p + 4) == 0
gives(600, "cuStreamQuery", 0)
time.sleep(0.02)
gives(600, "cuStreamQuery", 0)
ok("cuDevicePrimaryCtxReset_v2", 0)
current()
assert get(alloc(4)) is not None
`},
		{"events", "", `
current()
f = function(kernels(), "add")
p = alloc(4000)
s = stream()
a, b, plain = event(), event(), event(2)
x = C.c_float()
gives(400, "cuEventElapsedTime", x, a, b)
ok("cuEventRecord", a, s)
assert launch(f, p, 1, 1000, grid=4, block=256, stream=s) == 0
ok("cuEventRecord", b, s)
ok("cuEventRecord", plain, s)
gives(600, "cuEventElapsedTime", x, a, b)
ok("cuEventSynchronize", b)
ok("cuEventElapsedTime", x, a, b)
assert 0.001 < x.value < 1, x
ok("cuEventElapsedTime_v2", x, b, a)
assert x.value < 0
ok("cuStreamSynchronize", s)
gives(400, "cuEventElapsedTime", x, a, plain)
gives(400, "cuEventRecord", 77, s)
gives(1, "cuEventCreate", C.c_uint64(), 16)
ok("cuEventDestroy_v2", a)
gives(400, "cuEventQuery", a)
`},
		{"a fault stays until the context is reset", "", `
c = current(1)
other = current(0)
m = kernels()
f, g = function(m, "store"), function(m, "add")
p = alloc(4)
s = stream()
e = event()
assert launch(f, p, stream=s) == 0
assert launch(f, 16, stream=s) == 0  # no address of anything
assert launch(g, p, 1, 1, stream=s) == 0
ok("cuEventRecord", e, s)
gives(700, "cuStreamSynchronize", s)
for r in (cu.cuStreamSynchronize(s), cu.cuStreamQuery(s), cu.cuEventSynchronize(e), cu.cuEventQuery(e), cu.cuCtxSynchronize(), launch(g, p, 1, 1), cu.cuMemFree_v2(p), cu.cuMemAlloc_v2(C.c_uint64(), 8),
          cu.cuMemcpyDtoH_v2(words(0), p, 4), cu.cuModuleUnload(m)):
    assert r == 700, r
ok("cuCtxSetCurrent", c)
put(alloc(4), 1)
ok("cuCtxSynchronize")
ok("cuCtxSetCurrent", other)
gives(700, "cuCtxSynchronize")
ok("cuDevicePrimaryCtxReset_v2", 0)
gives(709, "cuCtxSynchronize")
assert current(0) == other
f = function(kernels(), "store")
p = alloc(8)
assert launch(f, p) == 0
assert get(p) == [1]
assert launch(f, p + 2) == 0  # not a multiple of 4
gives(716, "cuCtxSynchronize")
gives(716, "cuMemGetInfo_v2", C.c_uint64(), C.c_uint64())
ok("cuDevicePrimaryCtxReset_v2", 0)
current(0)
f = function(kernels(), "store")
p = alloc(4)
ok("cuMemFree_v2", p)
assert launch(f, p) == 0  # was freed
gives(700, "cuCtxSynchronize")
`},
		{"injected errors", "GPUNOTES_MOCK_FAIL=cuMemAlloc_v2:3=2,cuLaunchKernel:1=719,cuStreamCreate:2=1", `
current()
f = function(kernels(), "add")
p = alloc(4); alloc(4)
gives(2, "cuMemAlloc_v2", C.c_uint64(), 4)
put(alloc(4), 1)
stream()
gives(1, "cuStreamCreate", C.c_uint64(), 1)
stream()
assert launch(f, p, 1, 1) == 719
gives(719, "cuMemAlloc_v2", C.c_uint64(), 4)
gives(719, "cuCtxSynchronize")
ok("cuDevicePrimaryCtxReset_v2", 0)
current()
ok("cuCtxSynchronize")
`},
		{"what is missing, or never was there", "GPUNOTES_MOCK_MISSING=cuMemAllocAsync,cuMemFreeAsync", `
current()
gives(801, "cuMemAllocAsync", C.c_uint64(), 8, 0)
gives(801, "cuMemFreeAsync", 8, 0)
gives(801, "cuGraphCreate", C.c_uint64(), 0)
gives(801, "cuMemAllocManaged", C.c_uint64(), 8, 1)
alloc(8)
`},
		{"many threads", "", `
c = current()
f = function(kernels(), "add")
def work(i):
    ok("cuCtxSetCurrent", c)
    s = stream()
    p = alloc(400)
    h, a = pinned(100)
    for r in range(10):
        for k in range(100): h[k] = i * r
        ok("cuMemcpyHtoDAsync_v2", p, a, 400, s)
        assert launch(f, p, i, 100, grid=4, block=32, stream=s) == 0
        ok("cuMemcpyDtoHAsync_v2", a, p, 400, s)
        ok("cuStreamSynchronize", s)
        assert list(h) == [i * r + i] * 100
    ok("cuMemFreeHost", a)
    ok("cuMemFree_v2", p)
    ok("cuStreamDestroy_v2", s)
for i in range(3): each(12, work)
assert live() == "allocations 0 (0 bytes), pinned 0, modules 1, streams 0, events 0, contexts 1", live()
`},
		{"the checker is on", "GPUNOTES_MOCK_CARDS=gtx-970", `
current()
m = out("cuModuleLoadData", b".version 6.0\n.target sm_35\n.address_size 64\n.shared .align 4 .b32 x;\n.visible .entry f(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; ld.shared.u32 %r1, [x]; st.global.u32 [%rd1], %r1; ret; }")
p = alloc(4)
assert launch(function(m, "f"), p) == 0
gives(719, "cuCtxSynchronize")
`},
		{"fast: the checker is off", "GPUNOTES_MOCK_CARDS=gtx-970;GPUNOTES_MOCK_FAST=1", `
current()
m = out("cuModuleLoadData", b".version 6.0\n.target sm_35\n.address_size 64\n.shared .align 4 .b32 x;\n.visible .entry f(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; ld.shared.u32 %r1, [x]; st.global.u32 [%rd1], %r1; ret; }")
p = alloc(4)
assert launch(function(m, "f"), p) == 0
ok("cuCtxSynchronize")
`},
		{"strict", "GPUNOTES_MOCK_STRICT=1", `
current()
m = out("cuModuleLoadData", b".version 6.0\n.target sm_35\n.address_size 64\n.visible .entry f(.param .u64 p, .param .u32 q) { .reg .b32 %r<3>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [q]; div.u32 %r2, %r1, %r1; st.global.u32 [%rd1], %r2; ret; }")
p = alloc(4)
assert launch(function(m, "f"), p, 0) == 0
assert cu.cuCtxSynchronize() != 0
`},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) { script(t, c.env, c.lines) })
	}
}

// Without an event between streams the result is wrong for some order of work, and with one for none.
func TestStreamsMeetOnlyAtEvents(t *testing.T) {
	const lines = `
current()
f = function(kernels(), "add")
p = alloc(4)
for wait in False, True:
    wrong = 0
    for i in range(30):
        put(p, 0)
        ok("cuCtxSynchronize")
        h, a = pinned(1)
        h[0] = 5
        s, t = stream(), stream()
        e = event(2)
        ok("cuMemcpyHtoDAsync_v2", p, a, 4, s)
        ok("cuEventRecord", e, s)
        if wait: ok("cuStreamWaitEvent", t, e, 0)
        assert launch(f, p, 1, 1, stream=t) == 0
        ok("cuStreamSynchronize", t)
        ok("cuCtxSynchronize")
        wrong += get(p) != [6]
        ok("cuStreamDestroy_v2", s); ok("cuStreamDestroy_v2", t); ok("cuEventDestroy_v2", e); ok("cuMemFreeHost", a)
    print(wrong)
`
	seen := map[string]bool{}
	for _, seed := range []string{"1", "2"} {
		got := strings.Fields(script(t, "GPUNOTES_MOCK_SEED="+seed, lines))
		if len(got) != 2 || got[0] == "0" || got[0] == "30" || got[1] != "0" {
			t.Errorf("seed %s: wrong results without and with a wait: %v", seed, got)
		}
		seen[strings.Join(got, " ")] = true
	}
}

// The server must not outlive the program, however that ends.
func TestServerEndsWithTheProgram(t *testing.T) {
	for _, end := range []string{"pass", "import os; os._exit(0)", "launch(f, p, p + 4); cu.cuStreamQuery(0); import os; os.kill(os.getpid(), 9)"} {
		dir, err := built()
		if err != nil {
			t.Fatal(err)
		}
		here, _ := filepath.Abs("testdata")
		cmd := exec.Command("python3", "-B", "-c", `
from cuda import *
current()
f = function(kernels(), "spin")
p = alloc(8)
put(p, 0, 0)
print(open("/proc/self/task/%d/children" % os.getpid()).read(), flush=True)
`+end)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+here, "MOCK="+dir, "CUDA_VISIBLE_DEVICES=0")
		var out bytes.Buffer
		cmd.Stdout = &out
		cmd.Run() // one of them is killed
		pid := strings.TrimSpace(out.String())
		if pid == "" || strings.Contains(pid, " ") {
			t.Fatalf("children of the program: %q", pid)
		}
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			text, err := os.ReadFile("/proc/" + pid + "/stat")
			if err != nil || bytes.Contains(text, []byte(") Z ")) {
				break // a zombie waits for who started it
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the server still runs", end)
			}
		}
	}
}

func TestBadSettings(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"GPUNOTES_MOCK_CARDS", "h200,h300", `GPUNOTES_MOCK_CARDS: there is no card "h300"`},
		{"GPUNOTES_MOCK_DRIVER", "12.4", `GPUNOTES_MOCK_DRIVER="12.4" is no number`},
		{"GPUNOTES_MOCK_FAIL", "cuInit", `GPUNOTES_MOCK_FAIL: "cuInit" is not of the form`},
		{"GPUNOTES_MOCK_MEMORY", "-1", `GPUNOTES_MOCK_MEMORY="-1" is no number`},
	} {
		_, err := readSettings(func(n string) (string, bool) { return c.value, n == c.name })
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %s", c.name, c.value, err, c.want)
		}
	}
}

func TestNewestPTX(t *testing.T) {
	for _, c := range []struct {
		version string
		want    [2]int
	}{{"7000", [2]int{5, 0}}, {"10020", [2]int{6, 5}}, {"11040", [2]int{7, 4}}, {"12020", [2]int{8, 2}}, {"12040", [2]int{8, 4}}, {"12060", [2]int{8, 5}}, {"13000", [2]int{9, 0}}} {
		s, err := readSettings(func(n string) (string, bool) { return c.version, n == "GPUNOTES_MOCK_DRIVER" })
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{s.cards[0].PTXMajor, s.cards[0].PTXMinor}; got != c.want {
			t.Errorf("driver %s takes PTX %v, want %v", c.version, got, c.want)
		}
	}
}

func TestParameterSizes(t *testing.T) {
	const text = `
// .entry f(.param .u8 comment)
.visible .entry ff(.param .u8 other) { ret; }
.visible .entry f (
	.param .u64 f_param_0, /* , .param .u8 */
	.param .f32 f_param_1,
	.param .u64 .ptr .global .align 8 f_param_2,
	.param .align 8 .b8 f_param_3[24],
	.param .b16 u8,
	.param .s8 last
)
.maxntid 64
{ ret; }
.entry g() { ret; }
.entry h { ret; }
.entry i(.param.b32 x,.param	.f64	y) { ret; }
`
	for _, c := range []struct {
		name string
		want []int
	}{{"f", []int{8, 4, 8, 24, 2, 1}}, {"ff", []int{1}}, {"g", nil}, {"h", nil}, {"i", []int{4, 8}}} {
		if got := parameterSizes(text, c.name); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
