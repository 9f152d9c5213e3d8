"""Asks numpy what it does with random layouts and shapes; prints numpy.jsonl.

The tests read numpy.jsonl and do not need Python. To make it anew, with any
recent numpy:  python oracle.py > numpy.jsonl
"""
import ctypes
import json
import random
import re
import sys

import numpy as np
import numpy._core._multiarray_umath as umath

# numpy makes a ufunc from a C loop only: entry 31 of its C API table.
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
table = ctypes.cast(pointer(umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
P, I, S = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
make = ctypes.PYFUNCTYPE(ctypes.py_object, P, P, S, I, I, I, I, S, S, I, S)(table[31])
workers = 0
keep = []


@ctypes.CFUNCTYPE(None, P, ctypes.POINTER(ctypes.c_ssize_t), P, P)
def loop(args, dims, steps, data):
    global workers
    workers += dims[0]


def gufunc(layout, nin, nout):
    loops, data = (P * 1)(ctypes.cast(loop, P).value), (P * 1)(None)
    types = bytes([12] * (nin + nout))
    text = layout.encode()
    keep.append((loops, data, types, text))
    return make(ctypes.cast(loops, P), ctypes.cast(data, P), types, 1, nin, nout, -1, b"g", b"", 0, text)


def ask(layout, nin, nout, ins=None, outs=None):
    """The answer to one case; ins None only parses."""
    global workers
    case = {"layout": layout, "nin": nin, "nout": nout}
    try:
        f = gufunc(layout, nin, nout)
        if ins is None:
            case["canonical"] = canonical(layout)
            return case
        case["in"], case["out"] = ins, outs
        workers = 0
        out = tuple(None if o is None else np.zeros(o) for o in outs)
        r = f(*[np.zeros(i) for i in ins], **({"out": out} if any(o is not None for o in outs) else {}))
        case["shapes"] = [np.shape(x) for x in (r if isinstance(r, tuple) else (r,))]
        case["workers"] = workers
    except ValueError as e:
        case["error"] = str(e)
    return case


def canonical(text):
    return re.sub(r"(?<!\w)0+(?=\d)", "", text.replace(" ", "").replace("\t", ""))


def layout(r, nin, nout):
    names = r.choice([["i"], ["i", "j"], ["i", "j", "k?"], ["m?", "n", "p?"], ["i", "3"], ["i?", "j?"], ["i", "2", "_x1"]])
    arg = lambda: "(" + ",".join(r.choice(names) for _ in range(r.choice([0, 1, 1, 2, 2, 3]))) + ")"
    args = lambda n: ",".join(arg() for _ in range(n))
    return args(nin) + "->" + args(nout)


def spoil(r, s):
    for _ in range(r.choice([0, 1, 1, 1, 2])):
        at = r.randrange(len(s) + 1)
        s = s[:at] + r.choice(["", *"()ij3?,- \t>0_"]) + s[at + r.randrange(2):]
    return s


def shapes(r, text, nin, nout):
    """Shapes that nearly fit."""
    size = {n: r.choice([0, 1, 2, 2, 3, 3]) for n in "ijkmnp"} | {"3": 3, "2": 2, "_x1": 2}
    base = [r.choice([0, 1, 2, 3, 3, 4]) for _ in range(r.choice([0, 1, 1, 2, 3]))]
    drop = {n for n in "kmpij" if r.random() < 0.3}
    left, right = text.split("->")
    result = []
    for n, arg in enumerate((left + "," + right)[1:-1].split("),(")):
        output = n >= nin
        lead = base if output else base[r.choice([0, 0, len(base), r.randrange(len(base) + 1)]):]
        s = [1 if r.random() < (0.03 if output else 0.2) else 5 if r.random() < 0.05 else d for d in lead]
        for d in filter(None, arg.split(",")):
            if d[-1] == "?" and d[0] in drop:
                continue
            s.append(r.randrange(4) if r.random() < 0.03 else size[d.rstrip("?")])
        if r.random() < 0.05 and s:
            del s[r.randrange(len(s))]
        if r.random() < 0.05:
            s.insert(0, r.choice([1, 2, 5]))
        result.append(s)
    return result[:nin], [o if r.random() < 0.4 else None for o in result[nin:]]


def main(n):
    r = random.Random(1)
    for _ in range(n):
        nin, nout = r.choice([1, 1, 2, 2, 3]), r.choice([1, 1, 1, 2])
        text = layout(r, nin, nout)
        print(json.dumps(ask(spoil(r, text), nin, nout), separators=(",", ":")))
        ins, outs = shapes(r, text, nin, nout)
        try:
            gufunc(text, nin, nout)
        except ValueError:
            continue
        print(json.dumps(ask(text, nin, nout, ins, outs), separators=(",", ":")))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 420)
