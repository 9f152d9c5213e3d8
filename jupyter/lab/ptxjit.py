#!/usr/bin/env python3
"""ptxas in the driver: takes the arguments of NVIDIA's assembler, compiles with the library that the driver itself uses.

    ptxjit.py -arch=sm_61 [-v] [-lineinfo] [-O1] [-c] -o OUT FILE.ptx
    ptxjit.py --help       also lists the architectures that the library knows
    ptxjit.py --library    which library that is; exit status 1 if there is none

The library is libnvidia-ptxjitcompiler.so.1, which comes with every driver and needs no GPU, or the one that
GPUNOTES_PTXJIT names: that may also be libnvJitLink.so of a toolkit or of PyPI.
"""

import ctypes
import os
import re
import subprocess
import sys

PROBE = b".version 6.0\n.target sm_30\n.address_size 64\n.visible .entry k()\n{\n\tret;\n}\n"
ARCHITECTURES = (30, 35, 37, 50, 52, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 120)
JITLINK_PTX = 2  # NVJITLINK_INPUT_PTX


class Failed(Exception):
    pass


def path():
    return os.environ.get("GPUNOTES_PTXJIT") or "libnvidia-ptxjitcompiler.so.1"


class Compiler:
    """What both libraries are alike in; call(name, ...) calls one of its functions."""

    def fetch(self, handle, what):
        n = ctypes.c_size_t()
        self.call("Get%sSize" % what, handle, ctypes.byref(n))
        data = ctypes.create_string_buffer(n.value)
        if n.value:
            self.call("Get" + what, handle, data)
        return data.raw

    def said(self, handle):
        return "".join(self.fetch(handle, log).split(b"\0")[0].decode(errors="replace") for log in ("InfoLog", "ErrorLog"))


class Driver(Compiler):
    """nvPTXCompiler*, documented as the PTX Compiler API."""

    def __init__(self, lib):
        self.lib = lib

    def call(self, name, *args):
        status = getattr(self.lib, "nvPTXCompiler" + name)(*args)
        if status:
            raise Failed("nvPTXCompiler%s: error %d" % (name, status))

    def version(self):
        major, minor = ctypes.c_uint(), ctypes.c_uint()
        self.call("GetVersion", ctypes.byref(major), ctypes.byref(minor))
        return "CUDA %d.%d" % (major.value, minor.value)

    def compile(self, text, options):
        """The machine code, and what the compiler said."""
        handle = ctypes.c_void_p()
        # The text is a C string to some releases, and length bytes to others.
        self.call("Create", ctypes.byref(handle), ctypes.c_size_t(len(text)), ctypes.c_char_p(text))
        try:
            status = self.lib.nvPTXCompilerCompile(handle, ctypes.c_int(len(options)), (ctypes.c_char_p * len(options))(*options))
            said = self.said(handle)
            if status:
                raise Failed(said or "nvPTXCompilerCompile: error %d" % status)
            return self.fetch(handle, "CompiledProgram"), said
        finally:
            self.lib.nvPTXCompilerDestroy(ctypes.byref(handle))


class Toolkit(Compiler):
    """nvJitLink*, whose exported names carry the release."""

    def __init__(self, lib, release):
        self.lib, self.release = lib, release

    def call(self, name, *args):
        return getattr(self.lib, "__nvJitLink%s_%d_%d" % ((name,) + self.release))(*args)

    def version(self):
        return "nvJitLink %d.%d" % self.release

    def compile(self, text, options):
        options = [o for o in options if o != b"--compile-only"]
        handle = ctypes.c_void_p()
        given = [o.replace(b"--gpu-name", b"-arch").replace(b"--generate-line-info", b"-lineinfo").replace(b"--opt-level=", b"-O").replace(b"--verbose", b"-verbose") for o in options]
        status = self.call("Create", ctypes.byref(handle), ctypes.c_uint32(len(given)), (ctypes.c_char_p * len(given))(*given))
        if status:
            raise Failed("nvJitLinkCreate%s: error %d" % (given, status))
        try:
            status = self.call("AddData", handle, ctypes.c_int(JITLINK_PTX), text, ctypes.c_size_t(len(text)), b"ptx") or self.call("Complete", handle)
            said = self.said(handle)
            if status:
                raise Failed(said or "nvJitLink: error %d" % status)
            return self.fetch(handle, "LinkedCubin"), said
        finally:
            self.call("Destroy", ctypes.byref(handle))


def compiler():
    try:
        lib = ctypes.CDLL(path())
    except OSError as e:
        raise Failed(str(e))
    if hasattr(lib, "nvPTXCompilerCompile"):
        return Driver(lib)
    for release in sorted(((major, minor) for major in range(12, 16) for minor in range(10)), reverse=True):
        if hasattr(lib, "__nvJitLinkCreate_%d_%d" % release):
            return Toolkit(lib, release)
    raise Failed("%s has neither nvPTXCompilerCompile nor nvJitLinkCreate" % path())


def known():
    """What the library takes. Each is tried in a process of its own: an old library may end it."""
    for sm in ARCHITECTURES:
        tried = subprocess.run([sys.executable, __file__, "--probe", str(sm)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if tried.returncode == 0:
            yield "'sm_%d'" % sm


def main(args):
    if args == ["--library"]:
        c = compiler()
        print("%s (%s)" % (path(), c.version()))
        return 0
    if args in (["--help"], ["-h"]):
        print(__doc__)
        print("%s, %s\nAllowed values for -arch: %s" % (path(), compiler().version(), ",".join(known())))
        return 0
    if args[:1] == ["--probe"]:
        compiler().compile(PROBE + b"\0", [b"--gpu-name=sm_" + args[1].encode()])
        return 0
    options, out, files = [], None, []
    rest = list(args)
    while rest:
        a = rest.pop(0)
        if a == "-o" and rest:
            out = rest.pop(0)
        elif a.startswith("-arch="):
            options.append(b"--gpu-name=" + a[6:].encode())
        elif a == "-v":
            options.append(b"--verbose")
        elif a == "-lineinfo":
            options.append(b"--generate-line-info")
        elif a == "-c":
            options.append(b"--compile-only")
        elif re.fullmatch("-O[0-3]", a):
            options.append(b"--opt-level=" + a[2:].encode())
        elif a.startswith("-"):
            raise Failed("ptxjit.py has no option %s" % a)
        else:
            files.append(a)
    if len(files) != 1 or out is None:
        raise Failed("usage: ptxjit.py -arch=sm_NN -o OUT FILE.ptx")
    with open(files[0], "rb") as f:
        text = f.read()
    code, said = compiler().compile(text + b"\0", options)
    sys.stderr.write(said)
    with open(out, "wb") as f:
        f.write(code)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as e:
        print(str(e).rstrip(), file=sys.stderr)
        sys.exit(255 if len(sys.argv) > 2 else 1)
