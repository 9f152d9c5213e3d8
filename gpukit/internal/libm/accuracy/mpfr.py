"""True values of mathematical functions from MPFR, for the program in this directory.

Reads jobs from standard input, each a line "name arguments points" and then the arguments as float64, one array after the
other. Answers with three arrays: the true value t rounded to float64, (t - rounded) / ulp and, as int32, the exponent of
ulp, the distance of float64 numbers at t (2**-1074 where t is subnormal).
"""

import sys
from array import array
from functools import cache, partial

import gmpy2
from gmpy2 import mpfr

MAX = sys.float_info.max

# An ulp is 2**-52 of the value or less: some 2**-30 of it is left after the subtractions below.
gmpy2.get_context().precision = 100

TWO_OVER_SQRT_PI = 2 / gmpy2.sqrt(gmpy2.const_pi())


def slope(y):
    """The derivative of erf."""
    return TWO_OVER_SQRT_PI * gmpy2.exp(-y * y)


def newton(y, step):
    for _ in range(10):
        d = step(y)
        y -= d
        if abs(d) <= abs(y) * 2.0**-45:
            return y
    return gmpy2.nan()


def erfcinv(x, start):
    """The inverse of erfc, by Newton's method from a start nearby. Of erf and erfc it takes the one that is further from 1."""
    if x < 0 or x > 2:
        return gmpy2.nan()
    if x == 2:
        return -gmpy2.inf()
    if 0.5 < x < 1.5:
        return newton(start, lambda y: (gmpy2.erf(y) - (1 - x)) / slope(y))
    if x >= 1.5:
        return -tail(2 - x, -start)
    return tail(x, start)


def tail(x, start):
    """erfcinv for small x. log(erfc) is almost straight, so that any start will do."""
    if not start.is_finite():
        start = gmpy2.sqrt(-gmpy2.log(x))
    log = gmpy2.log(x)

    def step(y):
        e = gmpy2.erfc(y)
        return (log - gmpy2.log(e)) * e / slope(y)

    return newton(start, step)


def erfinv(x, start):
    if abs(x) == 1:
        return x * gmpy2.inf()
    if abs(x) < 0.5:
        return newton(start, lambda y: (gmpy2.erf(y) - x) / slope(y))
    return tail(1 - x, start) if x > 0 else -tail(1 + x, -start)


def besseln(f, f0, f1, n, x):
    """MPFR is slow where x is much greater than n, and there the recurrence is stable."""
    n = int(n)
    if abs(x) <= abs(n) or not x.is_finite():
        return f(n, x)
    a, b = f0(x), f1(x)
    if n == 0:
        return a
    for k in range(1, abs(n)):
        a, b = b, 2 * k / x * b - a
    return -b if n < 0 and n % 2 else b


# The rest have the names of gmpy2.
FUNCTIONS = {
    "lgamma": lambda x: gmpy2.lgamma(x)[0],
    "jn": partial(besseln, gmpy2.jn, gmpy2.j0, gmpy2.j1),
    "yn": partial(besseln, gmpy2.yn, gmpy2.y0, gmpy2.y1),
    "exp10": cache(lambda n: gmpy2.exp10(gmpy2.trunc(n))),
    "hypot": gmpy2.hypot,
    "pow": lambda x, y: x**y,
    "erfinv": erfinv,
    "erfcinv": erfcinv,
}

SCALE = {e: gmpy2.exp2(-e) for e in range(-1074, 972)}


def answer(name, arguments):
    f = FUNCTIONS.get(name) or getattr(gmpy2, name)
    rounded, rest, exponent = array("d"), array("d"), array("i")
    for args in zip(*arguments):
        t = f(*map(mpfr, args))
        r, q, e = 0.0, 0.0, -1074
        if not t.is_finite():
            r = float(t)
            if t.is_infinite():
                r, q, e = (MAX, 1e300, 971) if t > 0 else (-MAX, -1e300, 971)
        elif t == 0:
            r = float(t)
        else:
            e = min(max(gmpy2.get_exp(t) - 53, -1074), 971)
            r = min(max(float(t), -MAX), MAX)
            q = float((t - r) * SCALE[e])
        rounded.append(r)
        rest.append(q)
        exponent.append(e)
    return rounded, rest, exponent


def main():
    while line := sys.stdin.buffer.readline():
        name, count, points = line.split()
        arguments = []
        for _ in range(int(count)):
            a = array("d")
            a.frombytes(sys.stdin.buffer.read(8 * int(points)))
            arguments.append(a)
        for a in answer(name.decode(), arguments):
            sys.stdout.buffer.write(a.tobytes())
        sys.stdout.buffer.flush()


main()
