"""libcuda.so.1 of the folder MOCK as Python functions: they take integers, bytes and ctypes objects, and return a CUresult."""
import ctypes as C
import os
import threading

lib = C.CDLL(os.path.join(os.environ["MOCK"], "libcuda.so.1"))


class Driver:
    def __getattr__(self, name):
        f = getattr(lib, name)

        def call(*args):
            given = []
            for a in args:
                if isinstance(a, bytes):
                    a = C.c_char_p(a)
                elif isinstance(a, (C.c_uint64, C.c_int, C.c_float)):
                    a = C.byref(a)
                elif isinstance(a, int):
                    a = C.c_uint64(a & (1 << 64) - 1)
                given.append(a)
            return f(*given)

        return call


cu = Driver()


def ok(name, *args):
    r = getattr(cu, name)(*args)
    assert r == 0, "%s%r is %d" % (name, args, r)


def gives(want, name, *args):
    r = getattr(cu, name)(*args)
    assert r == want, "%s%r is %d, want %d" % (name, args, r, want)


def out(name, *args, type=C.c_uint64, at=0):
    """The value that a call writes to argument number at."""
    x = type()
    ok(name, *args[:at], x, *args[at:])
    return x.value


def integer(name, *args, at=0):
    return out(name, *args, type=C.c_int, at=at)


def current(device=0):
    """Makes the primary context of a device current, and returns it."""
    ok("cuInit", 0)
    c = out("cuDevicePrimaryCtxRetain", device)
    ok("cuCtxSetCurrent", c)
    return c


def alloc(n):
    return out("cuMemAlloc_v2", n)


def words(*values):
    return (C.c_uint32 * len(values))(*values)


def put(p, *values):
    ok("cuMemcpyHtoD_v2", p, words(*values), 4 * len(values))


def get(p, n=1):
    w = words(*[0] * n)
    ok("cuMemcpyDtoH_v2", w, p, 4 * n)
    return list(w)


def pinned(n):
    """n words of page-locked memory, and their address."""
    a = out("cuMemHostAlloc", 4 * n, 2)
    return (C.c_uint32 * n).from_address(a), a


def stream(flags=1):
    return out("cuStreamCreate", flags)


def event(flags=0):
    return out("cuEventCreate", flags)


def function(module, name):
    return out("cuModuleGetFunction", module, name.encode())


def launch(f, *params, grid=1, block=1, shared=0, stream=0):
    """params are numbers: 8 bytes each are enough for every parameter."""
    values = [C.c_uint64(p & (1 << 64) - 1) for p in params]
    array = (C.c_void_p * max(len(values), 1))(*[C.addressof(v) for v in values])
    return cu.cuLaunchKernel(f, grid, 1, 1, block, 1, 1, shared, stream, array, 0)


def live():
    b = C.create_string_buffer(300)
    ok("gpunotesMockLive", b, 300)
    return b.value.decode()


def each(n, f):
    """Calls f(i) in n threads at a time."""
    bad = []

    def run(i):
        try:
            f(i)
        except BaseException as e:
            bad.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if bad:
        raise bad[0]


# add(p, v, n): p[i] += v for i < n. spin(word, out): counts until word is not 0, writes the count. store(p): p[0] = 1.
# dynamic(p): uses dynamic shared memory. bounded: at most 64 threads. table: a variable of four words.
KERNELS = b"""
.version 6.0
.target sm_30
.address_size 64
.global .align 4 .b32 table[4] = {1, 2, 3, 4};
.extern .shared .align 8 .b8 room[];
.visible .entry add(.param .u64 p, .param .u32 v, .param .u32 n)
{
	.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
	ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v]; ld.param.u32 %r7, [n];
	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
	mad.lo.s32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r7;
	@%p1 bra DONE;
	mul.wide.u32 %rd2, %r5, 4;
	add.s64 %rd3, %rd1, %rd2;
	ld.global.u32 %r6, [%rd3];
	add.s32 %r6, %r6, %r1;
	st.global.u32 [%rd3], %r6;
DONE:
	ret;
}
.visible .entry spin(.param .u64 word, .param .u64 count)
{
	.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
	ld.param.u64 %rd1, [word]; ld.param.u64 %rd2, [count];
	mov.u32 %r1, 0;
AGAIN:
	add.s32 %r1, %r1, 1;
	ld.volatile.global.u32 %r2, [%rd1];
	setp.eq.s32 %p1, %r2, 0;
	@%p1 bra AGAIN;
	st.global.u32 [%rd2], %r1;
	ret;
}
.visible .entry store(.param .u64 p)
{
	.reg .b32 %r<2>; .reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, 1;
	st.global.u32 [%rd1], %r1;
	ret;
}
.visible .entry dynamic(.param .u64 p)
{
	.reg .b32 %r<3>; .reg .b64 %rd<2>;
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, 7;
	st.shared.u32 [room], %r1;
	ld.shared.u32 %r2, [room];
	st.global.u32 [%rd1], %r2;
	ret;
}
.visible .entry bounded(.param .u64 p)
.maxntid 64, 1, 1
{
	ret;
}
"""


def kernels():
    return out("cuModuleLoadData", KERNELS)
