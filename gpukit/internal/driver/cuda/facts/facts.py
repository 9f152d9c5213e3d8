#!/usr/bin/env python3
"""What an NVIDIA card really does where our PTX relies on it: a table, in markdown.

    facts.py                the table; exit status 1 if the card differs from what we assume, 2 if there is no card
    facts.py --device 1     another card than the first
    facts.py --card         only which card and driver there are
    facts.py --write        makes facts*.ptx anew, of which one is for each level of target that we emit

Needs the driver (libcuda.so.1, or what GPUNOTES_LIBCUDA names) and Python 3.8; no Go, no toolkit. Expected numbers are
computed here with exact fractions. A row says "noted" where our code does not depend on the answer.
"""

import argparse
import ctypes
import datetime
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))

# --- numbers -------------------------------------------------------------------------------------------------------------


class Format:
    def __init__(self, name, exponent, mantissa):
        self.name, self.m, self.e = name, mantissa, exponent
        self.bits = 1 + exponent + mantissa
        self.bias = (1 << exponent - 1) - 1
        self.top = 1 << self.bits - 1
        self.inf = ((1 << exponent) - 1) << mantissa
        self.mask = (1 << self.bits) - 1

    def isnan(self, b):
        return b & (self.top - 1) > self.inf

    def isinf(self, b):
        return b & (self.top - 1) == self.inf

    def sign(self, b):
        return b >> (self.bits - 1)

    def value(self, b):
        e, n = b >> self.m & (1 << self.e) - 1, b & (1 << self.m) - 1
        if e:
            n += 1 << self.m
        x = Fraction(n) * Fraction(2) ** (max(e, 1) - self.bias - self.m)
        return -x if self.sign(b) else x

    def rounded(self, x, sign=0):
        """x to nearest, ties to even, as bits; sign is that of a zero."""
        if x == 0:
            return sign * self.top
        a, s = abs(x), self.top if x < 0 else 0
        e = a.numerator.bit_length() - a.denominator.bit_length()
        if a < Fraction(2) ** e:
            e -= 1
        e = max(e, 1 - self.bias)
        q = a / Fraction(2) ** (e - self.m)
        n, rest = divmod(q.numerator, q.denominator)
        if 2 * rest > q.denominator or 2 * rest == q.denominator and n & 1:
            n += 1
        if n >> self.m + 1:
            n, e = n >> 1, e + 1
        if not n >> self.m:  # denormal, or zero
            return s | n
        if e + self.bias >= (1 << self.e) - 1:
            return s | self.inf
        return s | (e + self.bias) << self.m | n & (1 << self.m) - 1

    def show(self, b):
        if self.isnan(b):
            return "NaN 0x%0*X" % (self.bits // 4, b)
        x = struct.unpack("<d", struct.pack("<Q", b))[0] if self.bits == 64 else struct.unpack("<f", struct.pack("<I", b))[0]
        return "%s (0x%0*X)" % (repr(x) if self.bits == 64 else "%.9g" % x, self.bits // 4, b)

    def of(self, x):
        return struct.unpack("<Q", struct.pack("<d", x))[0] if self.bits == 64 else struct.unpack("<I", struct.pack("<f", x))[0]


F64, F32 = Format("f64", 11, 52), Format("f32", 8, 23)
NAN = "NaN"  # any


def ieee(op, f, a, b=0, c=0):
    """The bits of an operation by IEEE 754, or NAN."""
    n = {"sqrt": 1, "fma": 3}.get(op, 2)
    args = (a, b, c)[:n]
    if any(f.isnan(x) for x in args):
        return NAN
    sa, sb, sc = f.sign(a), f.sign(b), f.sign(c)
    ia, ib, ic = f.isinf(a), f.isinf(b), f.isinf(c)
    zero = lambda x: x & (f.top - 1) == 0
    if op == "sub":
        b ^= f.top
        op, sb = "add", sb ^ 1
    if op == "add":
        if ia or ib:
            return NAN if ia and ib and sa != sb else (a if ia else b)
        return f.rounded(f.value(a) + f.value(b), sa & sb if zero(a) and zero(b) else 0)
    if op == "mul":
        s = sa ^ sb
        if ia or ib:
            return NAN if zero(a) or zero(b) else s * f.top | f.inf
        return f.rounded(f.value(a) * f.value(b), s) | s * f.top
    if op == "div":
        s = sa ^ sb
        if ia:
            return NAN if ib else s * f.top | f.inf
        if zero(b):
            return NAN if zero(a) else s * f.top | f.inf
        if ib:
            return s * f.top
        return f.rounded(f.value(a) / f.value(b), s) | s * f.top
    if op == "sqrt":
        if zero(a):
            return a
        if sa:
            return NAN
        if ia:
            return a
        x, k = f.value(a), 1200  # more bits than any root needs; a last bit stands for the rest
        whole = x * 4 ** k
        r = math.isqrt(whole.numerator // whole.denominator)
        return f.rounded(Fraction(2 * r + (1 if Fraction(r * r) != whole else 0), 2 ** (k + 1)))
    s = sa ^ sb  # fma
    if ia or ib:
        if zero(a) or zero(b) or ic and sc != s:
            return NAN
        return s * f.top | f.inf
    if ic:
        return c
    exact = f.value(a) * f.value(b) + f.value(c)
    both = (zero(a) or zero(b)) and zero(c)
    return f.rounded(exact, s & sc if both else 0)


def extreme(f, greatest, a, b):
    if f.isnan(a) or f.isnan(b):
        return NAN
    x, y = f.value(a), f.value(b)
    if x == y:
        return (a & b if greatest else a | b) if x == 0 else a
    return a if (x > y) == greatest else b


def saturated(f, b, bits, signed):
    """A float as an integer: truncated, clamped, NaN is 0."""
    lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if f.isnan(b):
        return 0
    if f.isinf(b):
        return lo if f.sign(b) else hi
    return min(max(int(f.value(b)), lo), hi)


def whole(f, mode, b):
    """A float rounded to a whole one, as bits."""
    if f.isnan(b):
        return NAN
    if f.isinf(b):
        return b
    x = f.value(b)
    n = {"rzi": int(x), "rmi": x.__floor__(), "rpi": x.__ceil__(), "rni": round(x)}[mode]
    return f.rounded(Fraction(n), f.sign(b))


# --- PTX -----------------------------------------------------------------------------------------------------------------

# One thread computes one case. Values lie in 8 bytes each, in their low bits.
HEAD = """.visible .entry {name}(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out)
{{
	.reg .pred %p<8>;
	.reg .b32 %r<16>;
	.reg .b64 %d<24>;
	.reg .f32 %f<8>;
	.reg .f64 %g<8>;
	mov.u32 %r0, %ctaid.x;
	mov.u32 %r1, %ntid.x;
	mov.u32 %r2, %tid.x;
	mad.lo.u32 %r0, %r0, %r1, %r2;
	mul.wide.u32 %d0, %r0, 8;
	ld.param.u64 %d1, [a];
	ld.param.u64 %d2, [b];
	ld.param.u64 %d3, [c];
	ld.param.u64 %d4, [out];
	add.s64 %d5, %d1, %d0;
	add.s64 %d6, %d2, %d0;
	add.s64 %d7, %d3, %d0;
	add.s64 %d8, %d4, %d0;
"""

CLASS = {"f64": "%g", "f32": "%f", "64": "%d", "32": "%r"}


def entry(name, body, args, result):
    """A kernel around a body, in which {0} {1} {2} are the arguments and {r} is the result."""
    text = HEAD.format(name=name)
    names = []
    for i, t in enumerate(args):
        text += "\tld.global.u64 %%d%d, [%%d%d];\n" % (10 + i, 5 + i)
        if t == "64":
            names.append("%%d%d" % (10 + i))
        elif t == "f64":
            text += "\tmov.b64 %%g%d, %%d%d;\n" % (i, 10 + i)
            names.append("%%g%d" % i)
        else:
            text += "\tcvt.u32.u64 %%r%d, %%d%d;\n" % (4 + i, 10 + i)
            if t == "f32":
                text += "\tmov.b32 %%f%d, %%r%d;\n" % (i, 4 + i)
            names.append(("%%f%d" if t == "f32" else "%%r%d") % (i if t == "f32" else 4 + i))
    r = {"f64": "%g7", "f32": "%f7", "64": "%d14", "32": "%r8"}[result]
    text += "".join("\t%s;\n" % line.strip() for line in body.format(*names, r=r).split(";") if line.strip())
    if result == "f32":
        text += "\tmov.b32 %r8, %f7;\n"
    if result == "f64":
        text += "\tmov.b64 %d14, %g7;\n"
    if result in ("f32", "32"):
        text += "\tcvt.u64.u32 %d14, %r8;\n"
    return text + "\tst.global.u64 [%d8], %d14;\n\tret;\n}\n"


def simple(op, args, result):
    return entry(op.replace(".", "_"), "%s {r}, %s" % (op, ", ".join("{%d}" % i for i in range(len(args)))), args, result)


CLAMP = {  # what our code puts behind a conversion to less than 32 bits
    "s8": "min.s32 {r}, {r}, 127; max.s32 {r}, {r}, -128;",
    "s16": "min.s32 {r}, {r}, 32767; max.s32 {r}, {r}, -32768;",
    "u8": "min.u32 {r}, {r}, 255;",
    "u16": "min.u32 {r}, {r}, 65535;",
}


def atomic(space, op, t, body):
    """A kernel whose body works on a word {w} of each thread's own: of out, or in shared memory."""
    register = {"f32": "f32", "f64": "f64", "u64": "64", "s64": "64", "b64": "64"}.get(t, "32")
    prepare = "" if space == "global" else "mov.u64 %d16, words; mul.wide.u32 %d17, %r2, 8; add.s64 %d16, %d16, %d17;"
    body = prepare + body.format(s=space, t=t, op=op, w="[%d8]" if space == "global" else "[%d16]")
    text = entry("atom_%s_%s_%s" % (space, op, t), body, [register] * (3 if op == "cas" else 2), register)
    return text if space == "global" else text.replace("{\n", "{\n\t.shared .align 8 .b64 words[32];\n", 1)


def level30():
    out = []
    for f in ("f64", "f32"):
        for op in ("add.rn", "sub.rn", "mul.rn", "div.rn", "min", "max"):
            out.append(simple("%s.%s" % (op, f), [f, f], f))
        out.append(simple("fma.rn." + f, [f, f, f], f))
        for op in ("sqrt.rn", "abs", "neg"):
            out.append(simple("%s.%s" % (op, f), [f], f))
        for mode in ("rzi", "rmi", "rpi", "rni"):
            out.append(simple("cvt.%s.%s.%s" % (mode, f, f), [f], f))
        # min and max as Go has them
        b, nan = ("b64", "0d7FF8000000000001") if f == "f64" else ("b32", "0f7FC00000")
        move = "{{t}}".replace("{{t}}", "%d15" if f == "f64" else "%r9")
        for name, cmp, zero in (("min", "lt", "or"), ("max", "gt", "and")):
            other, first, second = ("%g6", "%d16", "%d17") if f == "f64" else ("%f6", "%r10", "%r11")
            out.append(entry("go_%s_%s" % (name, f),
                             "setp.{cmp}.{f} %p0, {{0}}, {{1}}; selp.{f} {{r}}, {{0}}, {{1}}, %p0;"
                             "mov.{b} {x}, {{0}}; mov.{b} {y}, {{1}}; {zero}.{b} {m}, {x}, {y}; mov.{b} {o}, {m};"
                             "setp.eq.{f} %p1, {{0}}, {{1}}; selp.{f} {{r}}, {o}, {{r}}, %p1;"
                             "setp.nan.{f} %p2, {{0}}, {{1}}; selp.{f} {{r}}, {nan}, {{r}}, %p2"
                             .format(cmp=cmp, f=f, b=b, zero=zero, m=move, o=other, x=first, y=second, nan=nan), [f, f], f))
        # two roundings, not one
        out.append(entry("separate_" + f, "mul.rn.{f} {{r}}, {{0}}, {{1}}; add.rn.{f} {{r}}, {{r}}, {{2}}".format(f=f), [f, f, f], f))
        for cmp in ("eq", "ne", "neu", "lt", "le", "gt", "ge", "nan", "num"):
            out.append(entry("setp_%s_%s" % (cmp, f), "setp.%s.%s %%p0, {0}, {1}; selp.b32 {r}, 1, 0, %%p0" % (cmp, f), [f, f], "32"))
        for to in ("s32", "u32", "s64", "u64"):
            out.append(simple("cvt.rzi.%s.%s" % (to, f), [f], "64" if to.endswith("64") else "32"))
            out.append(simple("cvt.rn.%s.%s" % (f, to), ["64" if to.endswith("64") else "32"], f))
        for to in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
            reg = "64" if to.endswith("64") else "32"
            width = to[0] + reg
            out.append(entry("convert_%s_%s" % (to, f),
                             "cvt.rzi.%s.%s {r}, {0}; %s setp.nan.%s %%p0, {0}, {0}; selp.b%s {r}, 0, {r}, %%p0" % (width, f, CLAMP.get(to, ""), f, reg), [f], reg))
        out.append(entry("through_" + f, "mov.%s {r}, {0}" % f, [f], f))
    out.append(simple("cvt.rn.f32.f64", ["f64"], "f32"))
    out.append(simple("cvt.f64.f32", ["f32"], "f64"))
    for t in ("s32", "u32", "s64", "u64"):
        r = t[1:]
        for op in ("div", "rem", "mul.hi"):
            out.append(simple("%s.%s" % (op, t), [r, r], r))
        out.append(simple("shr." + t, [r, "32"], r))
        if t[0] == "s":
            out.append(simple("shl.b" + r, [r, "32"], r))
            for op in ("clz", "popc"):
                out.append(simple("%s.b%s" % (op, r), [r], "32"))
            out.append(simple("brev.b" + r, [r], r))
            b = "%d15" if r == "64" else "%r9"
            out.append(entry("go_div_" + t, "setp.eq.{t} %p0, {{1}}, -1; selp.b{r} {b}, 1, {{1}}, %p0; div.{t} {{r}}, {{0}}, {b}; neg.{t} {b}, {{r}}; selp.b{r} {{r}}, {b}, {{r}}, %p0".format(t=t, r=r, b=b), [r, r], r))
            out.append(entry("go_rem_" + t, "setp.eq.{t} %p0, {{1}}, -1; selp.b{r} {b}, 1, {{1}}, %p0; rem.{t} {{r}}, {{0}}, {b}".format(t=t, r=r, b=b), [r, r], r))
    out.append(simple("prmt.b32", ["32", "32", "32"], "32"))
    # Atomics: {0} is put into a word of the thread's own, then {1} works on it.
    for space in ("global", "shared"):
        for op, t in (("add", "f32"), ("add", "u32"), ("add", "u64"), ("min", "s32"), ("max", "s32")):
            out.append(atomic(space, op, t, "st.{s}.{t} {w}, {{0}}; atom.{s}.{op}.{t} {{r}}, {w}, {{1}}; ld.{s}.{t} {{r}}, {w}"))
        out.append(atomic(space, "cas", "b64", "st.{s}.{t} {w}, {{0}}; atom.{s}.{op}.{t} {{r}}, {w}, {{1}}, {{2}}; ld.{s}.{t} {{r}}, {w}"))
    out += warp("")
    # The host's memory, read until it changes or c[0] rounds are over.
    out.append(""".visible .entry watch(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out)
{
	.reg .pred %p0;
	.reg .b32 %r0;
	.reg .b64 %d<6>;
	ld.param.u64 %d1, [a];
	ld.param.u64 %d2, [c];
	ld.param.u64 %d3, [out];
	ld.global.u64 %d4, [%d2];
	mov.u64 %d5, 0;
LOOP:
	ld.volatile.global.u32 %r0, [%d1];
	add.s64 %d5, %d5, 1;
	setp.ne.s32 %p0, %r0, 0;
	@%p0 bra END;
	setp.lt.u64 %p0, %d5, %d4;
	@%p0 bra LOOP;
END:
	cvt.u64.u32 %d4, %r0;
	st.global.u64 [%d3], %d4;
	st.global.u64 [%d3+8], %d5;
	ret;
}
""")
    # Faults, for a process that may lose its context: a store to a, and one to out + 4.
    for name, kind, at in (("illegal", "a", 0), ("misaligned", "out", 4)):
        out.append(".visible .entry %s(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 out)\n{\n\t.reg .b64 %%d<2>;\n\tld.param.u64 %%d0, [%s];\n\tmov.u64 %%d1, 1;\n\tst.global.u64 [%%d0+%d], %%d1;\n\tret;\n}\n" % (name, kind, at))
    return out


def warp(sync):
    """Votes and shuffles in a warp of which some lanes are not there, and of which some have left. a[0] lanes stay."""
    mask = ", -1" if sync else ""
    out = []
    stay = "ld.global.u64 %d10, [%d1]; cvt.u32.u64 %r4, %d10; setp.ge.u32 %p0, %r2, %r4; @%p0 ret;"
    for name, body in (
        ("ballot", "mov.pred %%p1, 1; vote%s.ballot.b32 {r}, %%p1%s" % (sync, mask)),
        ("all", "mov.pred %%p1, 1; vote%s.all.pred %%p2, %%p1%s; selp.b32 {r}, 1, 0, %%p2" % (sync, mask)),
        ("any", "setp.eq.u32 %%p1, %%r2, 3; vote%s.any.pred %%p2, %%p1%s; selp.b32 {r}, 1, 0, %%p2" % (sync, mask)),
        # from lane + b[lane], clamped as PTX does
        ("shfl_idx", "ld.global.u64 %%d11, [%%d6]; cvt.u32.u64 %%r6, %%d11; add.s32 %%r7, %%r2, 100; shfl%s.idx.b32 {r}, %%r7, %%r6, 31%s" % (sync, mask)),
        ("shfl_up", "add.s32 %%r7, %%r2, 100; shfl%s.up.b32 {r}, %%r7, 2, 0%s" % (sync, mask)),
        ("shfl_down", "add.s32 %%r7, %%r2, 100; shfl%s.down.b32 {r}, %%r7, 2, 31%s" % (sync, mask)),
        # as our code does: a lane that is not there, or has left, gives the thread's own value
        ("shuffle", "ld.global.u64 %%d11, [%%d6]; mov.pred %%p1, 1; vote%s.ballot.b32 %%r5, %%p1%s;"
                    "setp.lt.u64 %%p2, %%d11, 32; cvt.u32.u64 %%r6, %%d11; shr.u32 %%r7, %%r5, %%r6; and.b32 %%r7, %%r7, 1; setp.ne.and.s32 %%p3, %%r7, 0, %%p2;"
                    "mov.u32 %%r9, %%laneid; selp.b32 %%r6, %%r6, %%r9, %%p3; add.s32 %%r7, %%r2, 100; shfl%s.idx.b32 {r}, %%r7, %%r6, 31%s" % (sync, mask, sync, mask)),
    ):
        out.append(entry(name, stay + body, [], "32"))
    return out


def level35():
    out = []
    plain = "st.{s}.{t} {w}, {{0}}; atom.{s}.{op}.{t} {{r}}, {w}, {{1}}; ld.{s}.{t} {{r}}, {w}"
    for op, t in (("min", "s64"), ("max", "s64"), ("min", "u64"), ("max", "u64"), ("and", "b64"), ("or", "b64"), ("xor", "b64")):
        out.append(atomic("global", op, t, plain))
    # All threads at one word, c[0].
    out.append(entry("lowest", "ld.global.u64 %d10, [%d5]; atom.global.min.u64 %d15, [%d3], %d10; bar.sync 0; ld.global.u64 {r}, [%d3]", [], "64"))
    out.append(entry("read_only", "ld.global.nc.u64 {r}, [%d5]", [], "64"))
    return out


def level60():
    return [atomic(space, "add", "f64", "st.{s}.{t} {w}, {{0}}; atom.{s}.{op}.{t} {{r}}, {w}, {{1}}; ld.{s}.{t} {{r}}, {w}") for space in ("global", "shared")]


def level70():
    return warp(".sync") + [entry("barrier", "ld.global.u64 %d10, [%d1]; cvt.u32.u64 %r4, %d10; setp.ge.u32 %p0, %r2, %r4; @%p0 ret; bar.warp.sync -1; mov.u32 {r}, %r2", [], "32")]


LEVELS = ((30, "3.1", level30), (35, "3.1", level35), (60, "5.0", level60), (70, "6.0", level70))


def text_of(level, version, make):
    return ("// What facts.py asks of a card. Made by facts.py --write.\n.version %s\n.target sm_%d\n.address_size 64\n\n" % (version, level)) + "\n".join(make())


def file_of(level):
    return os.path.join(HERE, "facts.ptx" if level == 30 else "facts-%d.ptx" % level)


# --- the driver ----------------------------------------------------------------------------------------------------------

U64 = ctypes.c_uint64


class Refused(Exception):
    def __init__(self, call, code, log=""):
        Exception.__init__(self, call + (": error %d" % code if code else "") + ("\n" + log if log else ""))
        self.code, self.log = code, log


class Card:
    BLOCK = 32

    def __init__(self, device):
        name = os.environ.get("GPUNOTES_LIBCUDA") or "libcuda.so.1"
        try:
            self.lib = ctypes.CDLL(name)
        except OSError as e:
            raise Refused("no driver (%s)" % e, 0)
        self.call("cuInit", ctypes.c_uint(0))
        n, dev, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(n))
        if n.value <= device:
            raise Refused("the driver shows %d devices, there is no number %d" % (n.value, device), 100)
        self.call("cuDeviceGet", ctypes.byref(dev), ctypes.c_int(device))
        text = ctypes.create_string_buffer(200)
        self.call("cuDeviceGetName", text, ctypes.c_int(len(text)), dev)
        self.name = text.value.decode()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.driver = version.value // 1000, version.value % 1000 // 10
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), ctypes.c_int(75), dev)
        self.call("cuDeviceGetAttribute", ctypes.byref(minor), ctypes.c_int(76), dev)
        self.sm = 10 * major.value + minor.value
        context = ctypes.c_void_p()
        self.dev = dev
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), dev)
        self.call("cuCtxSetCurrent", context)
        self.context = context
        self.functions = {}
        self.mock = hasattr(self.lib, "gpunotesMockLive")

    def status(self, call, *args):
        f = getattr(self.lib, call)
        f.restype = ctypes.c_int
        return f(*args)

    def call(self, call, *args):
        status = self.status(call, *args)
        if status:
            raise Refused(call, status)

    def load(self, text):
        """The module of PTX text, and the compiler's log."""
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(5, 6)  # error log, its size
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        data = ctypes.create_string_buffer(text.encode())
        status = self.status("cuModuleLoadDataEx", ctypes.byref(module), data, ctypes.c_uint(2), options, values)
        if status:
            raise Refused("cuModuleLoadDataEx", status, log.value.decode(errors="replace"))
        return module

    def use(self, level, text):
        module = self.load(text)
        for line in text.splitlines():
            if line.startswith(".visible .entry "):
                name = line.split()[2].split("(")[0]
                f = ctypes.c_void_p()
                self.call("cuModuleGetFunction", ctypes.byref(f), module, name.encode())
                self.functions[level, name] = f

    def alloc(self, n):
        p = U64()
        self.call("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(n))
        return p

    def run(self, name, *columns, level=30, threads=None, fill=0):
        """Runs a kernel, a thread for each case; what it wrote, as unsigned numbers of 64 bits."""
        n = max([len(c) for c in columns] + [threads or 1])
        block = threads or self.BLOCK
        rows = (n + block - 1) // block * block
        size = 8 * max(rows, 64)
        buffers = []
        for c in list(columns) + [[]] * (3 - len(columns)) + [[fill & (1 << 64) - 1] * max(rows, 64)]:
            data = (U64 * (size // 8))(*[x & (1 << 64) - 1 for x in c])
            p = self.alloc(size)
            self.call("cuMemcpyHtoD_v2", p, data, ctypes.c_size_t(size))
            buffers.append(p)
        self.launch((level, name), rows // block, block, buffers)
        out = (U64 * (size // 8))()
        self.call("cuMemcpyDtoH_v2", out, buffers[3], ctypes.c_size_t(size))
        for p in buffers:
            self.call("cuMemFree_v2", p)
        return list(out)[:n]

    def launch(self, function, grid, block, buffers, wait=True):
        args = (ctypes.c_void_p * 4)(*[ctypes.addressof(p) for p in buffers])
        one, zero = ctypes.c_uint(1), ctypes.c_uint(0)
        self.call("cuLaunchKernel", self.functions[function], ctypes.c_uint(grid), one, one, ctypes.c_uint(block), one, one, zero, None, args, None)
        if wait:
            self.call("cuCtxSynchronize")


# --- the table -----------------------------------------------------------------------------------------------------------


class Table:
    def __init__(self):
        self.lines, self.different, self.asked = [], 0, 0

    def section(self, title):
        self.lines.append(None)
        self.lines.append(title)

    def row(self, what, assumed, got, same):
        """same is True, False, or None for what is only noted."""
        self.asked += 1
        self.different += same is False
        self.lines.append((what, assumed, got, {True: "same", False: "**DIFFERENT**", None: "noted"}[same]))

    def __str__(self):
        out = []
        for l in self.lines:
            if l is None:
                out.append("")
            elif isinstance(l, str):
                out += ["### " + l, "", "| | what we assume | the card | |", "|---|---|---|---|"]
            else:
                out.append("| %s |" % " | ".join(x.replace("|", "\\|").replace("\n", " ") for x in l))
        return "\n".join(out).strip()


def compare(table, what, assumed, names, got, want, fmt, noted=False):
    """A row for many cases: want holds numbers or NAN; the first difference is shown."""
    wrong = []
    for i, (g, w) in enumerate(zip(got, want)):
        if w == NAN:
            ok = fmt.isnan(g) if isinstance(fmt, Format) else False
        else:
            ok = g == w
        if not ok:
            wrong.append(i)
    show = fmt.show if isinstance(fmt, Format) else lambda b: "0x%X" % b
    if not wrong:
        said = "all %d" % len(want) if len(want) > 1 else show(got[0])
    else:
        i = wrong[0]
        said = "%d of %d otherwise: %s gives %s, not %s" % (len(wrong), len(want), names[i], show(got[i]), want[i] if want[i] == NAN else show(want[i]))
    table.row(what, assumed, said, None if noted else not wrong)


def hard(f, count, seed):
    """Floats of all kinds: special ones, neighbours of powers of two, denormals, any bits."""
    r = random.Random(seed)
    special = [0, f.top, f.inf, f.inf | f.top, f.inf | 1 << f.m - 1, f.inf | 1, 1, 2, 3, f.top | 1, (1 << f.m) - 1, 1 << f.m, (1 << f.m) + 1,
               f.inf - 1, f.inf - 1 | f.top, f.of(1.0), f.of(-1.0), f.of(0.5), f.of(2.0), f.of(3.0), f.of(10.0), f.of(1.0) + 1, f.of(1.0) - 1, f.of(1 / 3), f.of(math.pi)]
    out = list(special)
    while len(out) < count:
        k = r.random()
        if k < 0.3:
            b = r.getrandbits(f.bits)
        elif k < 0.5:  # like sizes: sums and differences that cancel
            b = f.of(1.0) + r.randrange(-(8 << f.m), 8 << f.m)
        elif k < 0.6:  # few bits: ties and exact results
            b = (f.bias + r.randrange(-20, 20)) << f.m | r.getrandbits(4) << f.m - 4
        elif k < 0.75:
            b = r.getrandbits(f.m)  # denormal
        elif k < 0.85:  # about to under- or overflow
            b = r.choice([r.randrange(1, 2 * f.m), 2 * f.bias - r.randrange(f.m)]) << f.m | r.getrandbits(f.m)
        else:
            b = f.rounded(Fraction(r.randrange(1, 1 << 20)) / r.randrange(1, 1 << 20))
        out.append((b ^ (r.getrandbits(1) << f.bits - 1)) & f.mask)
    return out


def pairs(f, count, seed):
    """Pairs of hard floats: of special ones all, and quotients and products that lie close to a tie."""
    a, b = hard(f, count, seed), hard(f, count, seed + 1)
    random.Random(seed + 2).shuffle(b)
    few = a[:17]
    x, y = [p for p in few for q in few], [q for p in few for q in few]
    r = random.Random(seed + 3)
    for _ in range(count // 4):
        # m / n so close to the middle of two floats that only an exact remainder tells: x = q*y +- a tiny rest, q with one bit more
        n = r.getrandbits(f.m) | 1 << f.m
        q = (r.getrandbits(f.m) | 1 << f.m) << 1 | 1
        m = f.rounded(Fraction(n * q, 1 << f.m + 1) + r.choice([-1, 0, 1]))
        x.append(m)
        y.append(f.rounded(Fraction(n)))
    return (x + a)[: count + len(x)], (y + b)[: count + len(y)]


def numbers(card, table, count):
    for f in (F64, F32):
        table.section("Arithmetic, %s: to nearest, ties to even, denormals kept" % f.name)
        x, y = pairs(f, count, 1)
        z = (hard(f, len(x), 9) + [0] * len(x))[: len(x)]
        for i in range(0, len(x), 3):  # an addend that nearly cancels the product
            p = ieee("mul", f, x[i], y[i])
            if p != NAN:
                z[i] = p ^ f.top
        for op in ("add", "sub", "mul", "div"):
            got = card.run("%s_rn_%s" % (op, f.name), x, y)
            names = ["%s(%s, %s)" % (op, f.show(a), f.show(b)) for a, b in zip(x, y)]
            compare(table, "`%s.rn.%s`" % (op, f.name), "IEEE 754, any NaN", names, got, [ieee(op, f, a, b) for a, b in zip(x, y)], f)
        names = ["fma(%s, %s, %s)" % (f.show(a), f.show(b), f.show(c)) for a, b, c in zip(x, y, z)]
        compare(table, "`fma.rn.%s`" % f.name, "IEEE 754, one rounding", names, card.run("fma_rn_" + f.name, x, y, z), [ieee("fma", f, a, b, c) for a, b, c in zip(x, y, z)], f)
        want = []
        for a, b, c in zip(x, y, z):
            p = ieee("mul", f, a, b)
            want.append(NAN if p == NAN else ieee("add", f, p, c))
        compare(table, "`mul.rn.%s`, then `add.rn`" % f.name, "two roundings: nothing fuses them", names, card.run("separate_" + f.name, x, y, z), want, f)
        squares = [f.rounded(f.value(a) ** 2) + d & f.mask for a in x[-count // 2:] if not f.isnan(a) and not f.isinf(a) for d in (0, 1) if 0 < f.rounded(f.value(a) ** 2) < f.inf]
        roots = x + squares[:count]
        compare(table, "`sqrt.rn.%s`" % f.name, "IEEE 754", ["sqrt(%s)" % f.show(a) for a in roots], card.run("sqrt_rn_" + f.name, roots), [ieee("sqrt", f, a) for a in roots], f)
        for mode, name in (("rzi", "Trunc"), ("rmi", "Floor"), ("rpi", "Ceil"), ("rni", "RoundToEven")):
            v = x[:count] + [f.of(h) for h in (0.5, -0.5, 1.5, -1.5, 2.5, -0.25, 0.25, -2.5, 8388607.5, -8388607.5)]
            compare(table, "`cvt.%s.%s.%s`" % (mode, f.name, f.name), "math.%s: the sign of a zero is kept" % name, ["%s(%s)" % (mode, f.show(a)) for a in v],
                    card.run("cvt_%s_%s_%s" % (mode, f.name, f.name), v), [whole(f, mode, a) for a in v], f)
        for op, want in (("abs", lambda a: a & ~f.top), ("neg", lambda a: a ^ f.top)):
            v = [a for a in x if not f.isnan(a)]
            compare(table, "`%s.%s`" % (op, f.name), "only the sign changes, of a zero too", [f.show(a) for a in v], card.run("%s_%s" % (op, f.name), v), [want(a) for a in v], f)
        nan, one, signalling = f.inf | 1 << f.m - 1 | 5, f.of(1.0), f.inf | 3
        ordered = {"eq": lambda a, b: a == b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "ne": lambda a, b: a != b}
        for cmp in ("eq", "ne", "neu", "lt", "le", "gt", "ge", "nan", "num"):
            want = []
            for a, b in zip(x, y):
                n = f.isnan(a) or f.isnan(b)
                if cmp in ("nan", "num"):
                    want.append(int(n == (cmp == "nan")))
                elif n:
                    want.append(int(cmp == "neu"))
                else:
                    inf = lambda v: Fraction(10) ** 400 * (-1 if f.sign(v) else 1) if f.isinf(v) else f.value(v)
                    want.append(int(ordered["ne" if cmp == "neu" else cmp](inf(a), inf(b))))
            compare(table, "`setp.%s.%s`" % (cmp, f.name), "true for NaN" if cmp in ("neu", "nan") else "false for NaN; -0 = +0", ["%s, %s" % (f.show(a), f.show(b)) for a, b in zip(x, y)], card.run("setp_%s_%s" % (cmp, f.name), x, y), want, None)

        table.section("NaN, %s: our code takes any for any, and makes one of them where bits are looked at" % f.name)
        zero, inf = 0, f.inf
        for what, name, args in (("inf - inf", "add_rn", (inf, inf | f.top)), ("0 * inf", "mul_rn", (zero, inf)), ("0 / 0", "div_rn", (zero, zero)), ("sqrt(-1)", "sqrt_rn", (f.of(-1.0),)),
                                 ("NaN(5) + 1", "add_rn", (nan, one)), ("1 + NaN(5)", "add_rn", (one, nan)), ("NaN(5) * 1", "mul_rn", (nan, one)), ("NaN(5) / 1", "div_rn", (nan, one)), ("signalling NaN + 1", "add_rn", (signalling, one)),
                                 ("fma(NaN(5), 1, 1)", "fma_rn", (nan, one, one)), ("sqrt(NaN(5))", "sqrt_rn", (nan,)), ("Trunc(NaN(5))", "cvt_rzi_" + f.name, (nan,))):
            got = card.run("%s_%s" % (name, f.name), *[[a] for a in args])[0]
            table.row(what, "some NaN", f.show(got), f.isnan(got))
        for what, name, args in (("min(NaN(5), 1)", "min", (nan, one)), ("min(1, NaN(5))", "min", (one, nan)), ("max(NaN(5), NaN(5))", "max", (nan, nan)), ("min(+0, -0)", "min", (0, f.top)), ("max(-0, +0)", "max", (f.top, 0)),
                                 ("abs(-NaN(5))", "abs", (nan | f.top,)), ("neg(NaN(5))", "neg", (nan,)), ("mov of a signalling NaN", "through", (signalling,))):
            got = card.run("%s_%s" % (name, f.name), *[[a] for a in args])[0]
            table.row("`%s`" % what if "(" in what else what, "not used for that", f.show(got), None)
        for name, greatest in (("min", False), ("max", True)):
            compare(table, "%s by selects" % name, "NaN if either is; -0 < +0", ["%s(%s, %s)" % (name, f.show(a), f.show(b)) for a, b in zip(x, y)],
                    card.run("go_%s_%s" % (name, f.name), x, y), [extreme(f, greatest, a, b) for a, b in zip(x, y)], f)

    table.section("Denormals")
    for f in (F64, F32):
        for what, name, args, want in (("smallest + smallest", "add_rn", (1, 1), 2), ("smallest * 1", "mul_rn", (1, f.of(1.0)), 1), ("smallest normal / 2", "div_rn", (1 << f.m, f.of(2.0)), 1 << f.m - 1),
                                       ("fma(smallest, 1, smallest)", "fma_rn", (1, f.of(1.0), 1), 2), ("sqrt(smallest)", "sqrt_rn", (1,), None)):
            got = card.run("%s_%s" % (name, f.name), *[[a] for a in args])[0]
            want = ieee("sqrt", f, *args) if want is None else want
            table.row("%s, %s" % (what, f.name), f.show(want), f.show(got), got == want)


def conversions(card, table, count):
    table.section("Floats to integers: truncated, clamped, NaN is 0")
    for f in (F64, F32):
        edges = []
        for n in (7, 8, 15, 16, 31, 32, 63, 64):
            for s in (1, -1):
                base = f.rounded(Fraction(s * (1 << n)))
                edges += [base, base + 1, base - 1] + [f.rounded(Fraction(s * (1 << n)) + Fraction(d, 4)) for d in (-6, -4, -3, -2, -1, 1, 2, 3, 4)]
        v = edges + [f.of(x) for x in (0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.0, -1.0, 1.5, -1.5, 3e38, -3e38)] + [f.inf, f.inf | f.top, f.inf - 1, 1, f.top | 1] + [a for a in hard(f, count, 3) if not f.isnan(a)]
        for to in ("s32", "u32", "s64", "u64"):
            bits = int(to[1:])
            got = card.run("cvt_rzi_%s_%s" % (to, f.name), v)
            compare(table, "`cvt.rzi.%s.%s`" % (to, f.name), "clamped", ["of %s" % f.show(a) for a in v], got, [saturated(f, a, bits, to[0] == "s") & (1 << bits) - 1 for a in v], None)
            nan = card.run("cvt_rzi_%s_%s" % (to, f.name), [f.inf | 1 << f.m - 1])[0]
            table.row("`cvt.rzi.%s.%s` of NaN" % (to, f.name), "not used", "0x%X" % nan, None)
        v += [f.inf | 1 << f.m - 1, f.inf | 1, f.mask]
        for to in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
            bits = int(to[1:])
            reg = max(bits, 32)
            compare(table, "%s to %s, with our selects" % (f.name, to), "as above, NaN is 0", ["of %s" % f.show(a) for a in v], card.run("convert_%s_%s" % (to, f.name), v), [saturated(f, a, bits, to[0] == "s") & (1 << reg) - 1 for a in v], None)

    table.section("Integers to floats, floats to floats: to nearest, ties to even")
    r = random.Random(5)
    for t in ("s32", "u32", "s64", "u64"):
        bits = int(t[1:])
        v = [0, 1, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1]
        for k in range(20, bits):
            v += [(1 << k) + d & (1 << bits) - 1 for d in (-1, 0, 1)] + [(1 << k) + (1 << max(k - 53, 0)) & (1 << bits) - 1, (1 << k) + (1 << k - 20) // 2 & (1 << bits) - 1]
        for k in (24, 53):  # ties
            if k + 2 < bits:
                v += [r.getrandbits(k) * 2 + 1 << r.randrange(1, bits - k) & (1 << bits) - 1 for _ in range(100)]
        v += [r.getrandbits(bits) for _ in range(count // 2)]
        for f in (F64, F32):
            want = [f.rounded(Fraction(a - (1 << bits) if t[0] == "s" and a >> bits - 1 else a)) for a in v]
            compare(table, "`cvt.rn.%s.%s`" % (f.name, t), "nearest", ["of 0x%X" % a for a in v], card.run("cvt_rn_%s_%s" % (f.name, t), v), want, f)
    v = hard(F64, 2 * count, 6)
    v += [F64.rounded(F32.value(b & 0x7F7FFFFF) + F32.value(1 << 0) * Fraction(d, 2)) for b in hard(F32, count, 7) for d in (-1, 1)]
    v += [F64.rounded((F32.value(b) + F32.value(b + 1)) / 2) for b in [a for a in hard(F32, count, 8) if a & F32.inf != F32.inf and (a + 1) & F32.inf != F32.inf]]
    want = [NAN if F64.isnan(a) else (F64.sign(a) * F32.top | F32.inf if F64.isinf(a) else F32.rounded(F64.value(a), F64.sign(a))) for a in v]
    compare(table, "`cvt.rn.f32.f64`", "nearest, denormals kept, any NaN", ["of %s" % F64.show(a) for a in v], card.run("cvt_rn_f32_f64", v), want, F32)
    v = hard(F32, 2 * count, 10)
    want = [NAN if F32.isnan(a) else (F32.sign(a) * F64.top | F64.inf if F32.isinf(a) else F64.rounded(F32.value(a), F32.sign(a))) for a in v]
    compare(table, "`cvt.f64.f32`", "exact, denormals too, any NaN", ["of %s" % F32.show(a) for a in v], card.run("cvt_f64_f32", v), want, F64)


def integers(card, table, count):
    table.section("Integers")
    r = random.Random(11)
    for t in ("s32", "u32", "s64", "u64"):
        bits, signed = int(t[1:]), t[0] == "s"
        mask, lowest = (1 << bits) - 1, 1 << bits - 1
        number = lambda a: a - (1 << bits) if signed and a >> bits - 1 else a
        few = [1, 2, 3, 7, lowest, lowest - 1, lowest + 1, mask, mask - 1, 10]
        x = [a for a in few + [0] for b in few] + [r.getrandbits(r.randrange(1, bits + 1)) for _ in range(count)]
        y = [b for a in few + [0] for b in few] + [r.getrandbits(r.randrange(1, bits + 1)) or 1 for _ in range(count)]

        def quotient(a, b):
            a, b = number(a), number(b)
            q = abs(a) // abs(b)
            q = -q if (a < 0) != (b < 0) else q
            return q & mask, (a - q * b) & mask

        names = ["%d, %d" % (number(a), number(b)) for a, b in zip(x, y)]
        plain = [(a, b) for a, b in zip(x, y) if not (signed and a == lowest and b == mask)]
        px, py = [a for a, b in plain], [b for a, b in plain]
        pn = ["%d, %d" % (number(a), number(b)) for a, b in plain]
        compare(table, "`div.%s`" % t, "truncates", pn, card.run("div_" + t, px, py), [quotient(a, b)[0] for a, b in plain], None)
        compare(table, "`rem.%s`" % t, "has the sign of the dividend", pn, card.run("rem_" + t, px, py), [quotient(a, b)[1] for a, b in plain], None)
        if signed:
            compare(table, "%s / with our selects" % t, "lowest / -1 = lowest", names, card.run("go_div_" + t, x, y), [quotient(a, b)[0] for a, b in zip(x, y)], None)
            compare(table, "%s %% with our selects" % t, "lowest % -1 = 0", names, card.run("go_rem_" + t, x, y), [quotient(a, b)[1] for a, b in zip(x, y)], None)
            for op in ("div", "rem"):
                table.row("`%s.%s` of the lowest by -1" % (op, t), "not used", "0x%X" % card.run("%s_%s" % (op, t), [lowest], [mask])[0], None)
        for op in ("div", "rem"):
            table.row("`%s.%s` of 7 by 0" % (op, t), "not used: a check stands before it", "0x%X" % card.run("%s_%s" % (op, t), [7], [0])[0], None)
        compare(table, "`mul.hi.%s`" % t, "the upper half", names, card.run("mul_hi_" + t, x, y), [number(a) * number(b) >> bits & mask for a, b in zip(x, y)], None)
        counts = [0, 1, bits - 1, bits, bits + 1, 31, 32, 33, 63, 64, 65, 255, 256, 1 << 31, (1 << 32) - 1]
        sx = [a for a in few + [0] for _ in counts]
        sn = [n for _ in few + [0] for n in counts]
        names = ["0x%X by %d" % (a, n) for a, n in zip(sx, sn)]
        compare(table, "`shr.%s`" % t, "by the width and more: all sign bits", names, card.run("shr_" + t, sx, sn), [number(a) >> min(n, bits) & mask for a, n in zip(sx, sn)], None)
        if signed:
            b = "b%d" % bits
            compare(table, "`shl.%s`" % b, "by the width and more: 0", names, card.run("shl_" + b, sx, sn), [a << min(n, bits) & mask for a, n in zip(sx, sn)], None)
            v = x + [0]
            compare(table, "`clz.%s`" % b, "the width for 0", ["0x%X" % a for a in v], card.run("clz_" + b, v), [bits - a.bit_length() for a in v], None)
            compare(table, "`popc.%s`" % b, "how many ones", ["0x%X" % a for a in v], card.run("popc_" + b, v), [bin(a).count("1") for a in v], None)
            compare(table, "`brev.%s`" % b, "bits in reverse", ["0x%X" % a for a in v], card.run("brev_" + b, v), [int(bin(a)[2:].zfill(bits)[::-1], 2) for a in v], None)
    v = [r.getrandbits(32) for _ in range(50)]
    compare(table, "`prmt.b32` by 0x0123", "bytes in reverse", ["0x%X" % a for a in v], card.run("prmt_b32", v, [0] * 50, [0x0123] * 50), [int.from_bytes(a.to_bytes(4, "little"), "big") for a in v], None)


def atomics(card, table, count):
    table.section("Atomics")
    one32 = F32.of(1.0)
    for space in ("global", "shared"):
        got = card.run("atom_%s_add_f32" % space, [1], [1])[0]
        table.row("`atom.%s.add.f32` of denormals" % space, "flushes in global memory: not used", F32.show(got) + (", flushed" if got == 0 else ", kept"), None)
        x, y = hard(F32, count, 21), hard(F32, count, 22)
        keep = [(a, b) for a, b in zip(x, y) if all(q & F32.inf for q in (a, b)) and ieee("add", F32, a, b) != NAN and ieee("add", F32, a, b) & F32.inf]
        compare(table, "`atom.%s.add.f32` of normal numbers" % space, "nearest: only where speed is asked for", ["%s + %s" % (F32.show(a), F32.show(b)) for a, b in keep],
                card.run("atom_%s_add_f32" % space, [a for a, b in keep], [b for a, b in keep]), [ieee("add", F32, a, b) for a, b in keep], F32, noted=True)
        for t, bits in (("u32", 32), ("u64", 64)):
            v = [(1 << bits) - 1, 5, 1 << bits - 1]
            compare(table, "`atom.%s.add.%s`" % (space, t), "wraps around", ["0x%X" % a for a in v], card.run("atom_%s_add_%s" % (space, t), v, v), [2 * a & (1 << bits) - 1 for a in v], None)
        lo = (1 << 32) - 5
        compare(table, "`atom.%s.min.s32` of 3 and -5" % space, "-5", ["3, -5"], card.run("atom_%s_min_s32" % space, [3], [lo]), [lo], None)
        compare(table, "`atom.%s.max.s32` of 3 and -5" % space, "3", ["3, -5"], card.run("atom_%s_max_s32" % space, [3], [lo]), [3], None)
        compare(table, "`atom.%s.cas.b64`" % space, "changes only what is equal", ["equal", "not"], card.run("atom_%s_cas_b64" % space, [1 << 40, 1 << 40], [1 << 40, 1], [7, 7]), [7, 1 << 40], None)
    if (35, "lowest") in card.functions:
        r = random.Random(31)
        x, y = [r.getrandbits(64) for _ in range(100)], [r.getrandbits(64) for _ in range(100)]
        sign = lambda a: a - (1 << 64) if a >> 63 else a
        for t, key in (("s64", sign), ("u64", lambda a: a)):
            for op, pick in (("min", min), ("max", max)):
                compare(table, "`atom.global.%s.%s`" % (op, t), "the %s" % ("lower" if op == "min" else "higher"), ["0x%X, 0x%X" % p for p in zip(x, y)], card.run("atom_global_%s_%s" % (op, t), x, y, level=35), [pick(a, b, key=key) for a, b in zip(x, y)], None)
        for op, f in (("and", lambda a, b: a & b), ("or", lambda a, b: a | b), ("xor", lambda a, b: a ^ b)):
            compare(table, "`atom.global.%s.b64`" % op, "bit by bit", ["0x%X, 0x%X" % p for p in zip(x, y)], card.run("atom_global_%s_b64" % op, x, y, level=35), [f(a, b) for a, b in zip(x, y)], None)
        v = [r.getrandbits(64) for _ in range(256)]
        # The record of a launch begins with all ones.
        compare(table, "`atom.global.min.u64`, 256 threads at a word", "the lowest of all", ["thread %d" % i for i in range(256)], card.run("lowest", v, [], [-1], level=35, threads=256), [min(v)] * 256, None)
    if (60, "atom_global_add_f64") in card.functions:
        x, y = hard(F64, count, 41), hard(F64, count, 42)
        for space in ("global", "shared"):
            compare(table, "`atom.%s.add.f64`" % space, "as `add.rn.f64`, denormals kept", ["%s + %s" % (F64.show(a), F64.show(b)) for a, b in zip(x, y)], card.run("atom_%s_add_f64" % space, x, y, level=60), [ieee("add", F64, a, b) for a, b in zip(x, y)], F64)


def warps(card, table):
    if (35, "read_only") in card.functions:
        table.section("Memory")
        v = [random.Random(51).getrandbits(64) for _ in range(64)]
        compare(table, "`ld.global.nc.u64`", "what is there", ["64 numbers"], card.run("read_only", v, level=35), v, None)
    level = 70 if card.sm >= 70 else 30
    if (level, "ballot") not in card.functions:
        return
    sync = ".sync, all lanes named" if level == 70 else ""
    table.section("Warps of which 20 lanes are there (votes and shuffles%s)" % sync)
    for how, threads, stay in (("the block has 20 threads", 20, 20), ("12 threads have left", 32, 20)):
        def ask(name, b=None):
            return card.run(name, [stay], b or [0] * 32, level=level, threads=threads, fill=-1)[:20]

        compare(table, "`vote.ballot`, %s" % how, "0xFFFFF", ["lane 0"], ask("ballot")[:1], [(1 << 20) - 1], None)
        compare(table, "`vote.all` of what is true on all 20, %s" % how, "true", ["lane 0"], ask("all"), [1] * 20, None)
        compare(table, "`vote.any` of what is true on lane 3, %s" % how, "true", ["lane 0"], ask("any"), [1] * 20, None)
        by = [3, 19, 0, 25, 31, 32, 40, 1 << 40, 5, 20] + list(range(10))
        want = [100 + (b if b < 20 else lane) for lane, b in enumerate(by)]
        compare(table, "a shuffle as we write it, %s" % how, "lanes that are not there give the thread's own value", ["lane %d from %d" % (l, b) for l, b in enumerate(by)], ask("shuffle", by), want, None)
        if level == 70:
            compare(table, "`bar.warp.sync -1`, %s" % how, "goes on", ["lane"], ask("barrier"), list(range(20)), None)
        got = ask("shfl_idx", [25] * 32)
        table.row("`shfl.idx` from lane 25, %s" % how, "not used", str(got[0]), None)
        got = ask("shfl_idx", [40] * 32)
        table.row("`shfl.idx` from lane 40, %s" % how, "not used", str(got[0]), None)
        table.row("`shfl.down` by 2, lanes 17 to 19, %s" % how, "not used", ", ".join(map(str, ask("shfl_down")[17:])), None)
        table.row("`shfl.up` by 2, lanes 0 to 2, %s" % how, "not used", ", ".join(map(str, ask("shfl_up")[:3])), None)


# .version that a release of the driver takes, as NVIDIA's PTX manual lists them.
PTX_OF = {(9, 0): "6.0", (9, 1): "6.1", (9, 2): "6.2", (10, 0): "6.3", (10, 1): "6.4", (10, 2): "6.5", (11, 0): "7.0", (11, 1): "7.1", (11, 2): "7.2", (11, 3): "7.3", (11, 4): "7.4", (11, 5): "7.5",
          (11, 6): "7.6", (11, 7): "7.7", (11, 8): "7.8", (12, 0): "8.0", (12, 1): "8.1", (12, 2): "8.2", (12, 3): "8.3", (12, 4): "8.4", (12, 5): "8.5", (12, 6): "8.5", (12, 7): "8.6", (12, 8): "8.7",
          (12, 9): "8.8", (13, 0): "9.0"}
VERSIONS = ["3.0", "3.1", "3.2", "4.0", "4.1", "4.2", "4.3", "5.0"] + ["6.%d" % i for i in range(6)] + ["7.%d" % i for i in range(9)] + ["8.%d" % i for i in range(9)] + ["9.%d" % i for i in range(10)]
LOWEST = {30: "3.0", 35: "3.1", 50: "4.0", 52: "4.1", 60: "5.0", 61: "5.0", 70: "6.0", 75: "6.3", 80: "7.0", 86: "7.1", 89: "7.8", 90: "7.8", 100: "8.6", 120: "8.7"}


def module(version, target, body="\tret;\n"):
    return ".version %s\n.target sm_%d\n.address_size 64\n.visible .entry k()\n{\n%s}\n" % (version, target, body)


def compiler(card, table):
    table.section("The compiler in the driver")

    def attempt(text):
        try:
            m = card.load(text)
        except Refused as e:
            return e
        card.status("cuModuleUnload", m)
        return None

    for target, version in sorted(LOWEST.items()):
        e = attempt(module(version, target))
        said = "taken" if e is None else "error %d: %s" % (e.code, (e.log.strip().splitlines() or ["no log"])[0])
        if target <= card.sm:
            table.row("`.version %s`, `.target sm_%d`" % (version, target), "taken", said, e is None)
        else:
            table.row("`.version %s`, `.target sm_%d`, above the card" % (version, target), "refused (209, 218 or 222)", said, e is not None and e.code in (209, 218, 222))
    taken = [v for v in VERSIONS if attempt(module(v, 30)) is None]
    newest = taken[-1] if taken else "none"
    expected = PTX_OF.get(card.driver)
    gaps = taken and taken != VERSIONS[: len(taken)]
    table.row("newest `.version`", expected or "not known for this driver", newest + (", with gaps: " + " ".join(taken) if gaps else ""), (newest == expected and not gaps) if expected and not card.mock else None)
    e = attempt(module("99.0", 30))
    table.row("`.version 99.0`", "error 222", "taken" if e is None else "error %d: %s" % (e.code, e.log.strip()), e is not None and e.code == 222)
    e = attempt(module("3.1", 30, "\tadd.s77 %r0, %r0, 1;\n\tret;\n"))
    table.row("what is no PTX", "error 218 and a log that names line 6", "taken" if e is None else "error %d: %s" % (e.code, e.log.strip()), e is not None and e.code == 218 and re.search(r"line 6\b|:6:", e.log) is not None)
    e = attempt(module("3.1", 30) + "\n")
    table.row("after that", "good PTX is taken", "taken" if e is None else "error %d" % e.code, e is None)


def host_memory(card, table):
    table.section("Stopping")
    if card.mock:
        table.row("a kernel sees a word of the host's memory change", "it does", "not tried: a mock runs a kernel whole", None)
        return
    word, address = ctypes.c_void_p(), U64()
    card.call("cuMemHostAlloc", ctypes.byref(word), ctypes.c_size_t(4096), ctypes.c_uint(2))  # mapped
    ctypes.memset(word, 0, 4096)
    card.call("cuMemHostGetDevicePointer_v2", ctypes.byref(address), word, ctypes.c_uint(0))
    rounds, out = card.alloc(8), card.alloc(16)
    limit = U64(1 << 22)  # seconds
    card.call("cuMemcpyHtoD_v2", rounds, ctypes.byref(limit), ctypes.c_size_t(8))
    import time

    card.launch((30, "watch"), 1, 1, [address, address, rounds, out], wait=False)
    time.sleep(0.05)
    ctypes.memset(word, 1, 4)
    began = time.time()
    card.call("cuCtxSynchronize")
    got = (U64 * 2)()
    card.call("cuMemcpyDtoH_v2", got, out, ctypes.c_size_t(16))
    table.row("a kernel sees a word of the host's memory change", "it does, and ends", "after %d looks, %.1f ms later" % (got[1], 1000 * (time.time() - began)) if got[0] else "not in %d looks" % got[1], got[0] != 0)
    card.call("cuMemFreeHost", word)


def fault(device, which):
    """In a process of its own: what a fault does to the context, and whether a reset mends it."""
    card = Card(device)
    with open(file_of(30)) as f:
        text = f.read()
    card.use(30, text)
    said = {}
    good = card.alloc(64)
    try:
        card.launch((30, which), 1, 1, [U64(0x10), good, good, good])
        said["sync"] = 0
    except Refused as e:
        said["sync"] = e.code
    said["alloc"] = card.status("cuMemAlloc_v2", ctypes.byref(U64()), ctypes.c_size_t(64))
    said["again"] = card.status("cuCtxSynchronize")
    card.status("cuDevicePrimaryCtxReset_v2" if hasattr(card.lib, "cuDevicePrimaryCtxReset_v2") else "cuDevicePrimaryCtxReset", card.dev)
    card.functions = {}
    try:
        context = ctypes.c_void_p()
        card.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), card.dev)
        card.call("cuCtxSetCurrent", context)
        card.use(30, text)
        said["reopened"] = card.run("add_rn_f64", [F64.of(1.0)], [F64.of(2.0)])[0] == F64.of(3.0)
    except Refused as e:
        said["reopened"] = str(e)
    print(json.dumps(said))


def faults(table, device):
    table.section("Faults: the context is lost, a new one works")
    for which, code in (("illegal", 700), ("misaligned", 716)):
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--device", str(device), "--fault", which], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        try:
            said = json.loads(done.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            table.row("a store to %s address" % ("an illegal" if which == "illegal" else "a misaligned"), "error %d" % code, "the process ended: %s" % (done.stderr.strip().splitlines() or ["status %d" % done.returncode])[-1], False)
            continue
        name = "a store to %s address" % ("an illegal" if which == "illegal" else "a misaligned")
        table.row(name, "error %d" % code, "error %d" % said["sync"], said["sync"] == code)
        table.row("%s, then an allocation" % name, "the same error again", "error %d" % said["alloc"], said["alloc"] == code)
        table.row("%s, then the context anew" % name, "works", "works" if said["reopened"] is True else str(said["reopened"]), said["reopened"] is True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--card", action="store_true", help="only which card and driver there are")
    parser.add_argument("--write", action="store_true", help="make facts*.ptx anew")
    parser.add_argument("--cases", type=int, default=2000, help="random cases for each operation")
    parser.add_argument("--fault", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        for level, version, make in LEVELS:
            with open(file_of(level), "w") as f:
                f.write(text_of(level, version, make))
        return 0
    if args.fault:
        fault(args.device, args.fault)
        return 0
    try:
        card = Card(args.device)
    except Refused as e:
        print("no card to ask: %s" % e, file=sys.stderr)
        return 2
    about = "%s, compute capability %d.%d, driver of CUDA %d.%d, %s" % (card.name, card.sm // 10, card.sm % 10, card.driver[0], card.driver[1], datetime.date.today())
    if card.mock:
        about += "\n\n**A mock answered: a simulated card behind a made-up libcuda. This is a rehearsal and says nothing of a real card.**"
    if args.card:
        print(about)
        return 0
    table = Table()
    compiler(card, table)
    for level, _, _ in LEVELS:
        if level <= card.sm:
            with open(file_of(level)) as f:
                card.use(level, f.read())
    numbers(card, table, args.cases)
    conversions(card, table, args.cases)
    integers(card, table, args.cases // 4)
    atomics(card, table, args.cases // 4)
    warps(card, table)
    host_memory(card, table)
    faults(table, args.device)
    print("## What %s does\n\n%s\n" % (card.name, about))
    print(table)
    print("\n%d facts, %s" % (table.asked, "%d DIFFERENT" % table.different if table.different else "none different"))
    return 1 if table.different else 0


if __name__ == "__main__":
    sys.exit(main())
