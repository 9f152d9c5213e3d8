"""The works of cpubench in numexpr."""
import numexpr
import numpy as np

from peer import discount, market, mesh, serve, work

SQUARES = "sin(0.008726645*(lat2-lat1))**2+cos(0.01745329*lat1)*cos(0.01745329*lat2)*sin(0.008726645*(lon2-lon1))**2"
CUMULATIVE = ("0.39894228040143267793994605993438*exp(-0.5*d*d)*"
              "(k*(0.31938153+k*(-0.356563782+k*(1.781477937+k*(-1.821255978+k*1.330274429)))))")


def evaluate(text, out=None, **values):
    return numexpr.evaluate(text, local_dict=values, out=out)


@work("discount", "expression")
def _(threads):
    m, x, z = discount()
    return lambda: evaluate("m*x", out=z, m=m, x=x), lambda: z


@work("distance", "expression")
def _(threads):
    lat, lon, z = mesh()

    def f():
        a = evaluate(SQUARES, lat1=lat, lon1=lon, lat2=30.0, lon2=101.0)
        evaluate("s*arctan2(a,1-a)", out=z, a=a, s=1.0)
    return f, lambda: z


def cumulative(d):
    k = evaluate("1/(1+0.2316419*abs(d))", d=d)
    return evaluate("where(d>0,1-(%s),%s)" % (CUMULATIVE, CUMULATIVE), d=d, k=k)


@work("options, polynomial", "expression")
def _(threads):
    price, strike, years, both = market()

    def f():
        args = dict(S=price, K=strike, T=years, r=0.02, v=0.3)
        d1 = evaluate("(log(S/K)+(r+0.5*v*v)*T)/(v*sqrt(T))", **args)
        c1, c2 = cumulative(d1), cumulative(evaluate("d1-v*sqrt(T)", d1=d1, **args))
        evaluate("S*c1-K*exp(-r*T)*c2", out=both[0], c1=c1, c2=c2, **args)
        evaluate("K*exp(-r*T)*(1-c2)-S*(1-c1)", out=both[1], c1=c1, c2=c2, **args)
    return f, lambda: both


if __name__ == "__main__":
    serve({"peer": "numexpr", "version": numexpr.__version__, "note": "VML" if numexpr.use_vml else "without VML", "numpy": np.__version__},
          numexpr.set_num_threads)
