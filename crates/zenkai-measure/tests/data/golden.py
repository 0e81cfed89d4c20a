#!/usr/bin/env python3
"""Makes golden.json out of the reference implementation of the statistics in Python (numpy, scipy), which is kept
outside this repository; docs/statistics.md has the formulas it implements.

Usage: python3 golden.py PATH/TO/ab_power_sim.py > golden.json

Residuals, the part that is taken off, ranks and T come from the reference's own functions; the exact p-value counts
all orders of the block law; theta is bisected as in the reference but to 48 steps instead of 16, from both sides.
"""
import importlib.util, itertools, json, sys
import numpy as np
from scipy import stats

spec = importlib.util.spec_from_file_location("reference", sys.argv[1])
ref = importlib.util.module_from_spec(spec); spec.loader.exec_module(ref)

FOURS = ["AABB", "ABAB", "ABBA", "BBAA", "BABA", "BAAB"]

def part(y):
    """The b of the reference's local_resid, found by its result."""
    e = ref.local_resid(y[None])[0]
    T = len(y); k = min(4, (T - 1) // 2)
    c = y - np.median(y); nb = np.median(c[ref.nbr(T, k)], axis=1)
    for b in (0, 0.25, 0.5, 0.75, 1.0):
        r = c - b * nb
        if b: r = r - np.median(r)
        if np.allclose(r, e, atol=1e-14, rtol=0): return b, e
    raise SystemExit("part not found")

def root(y, x):
    """theta at which the rank sum crosses zero: lar_root of the reference with 48 steps."""
    lo, hi = -0.5, 0.5
    for _ in range(48):
        th = (lo + hi) / 2
        rk = stats.rankdata(ref.local_resid((y + th * x)[None]), axis=1)[0] - (len(y) + 1) / 2
        if (rk * x).sum() > 0: hi = th
        else: lo = th
    return (lo + hi) / 2

def exact_p(rk, x):
    n = len(x) // 4
    obs = abs((rk * x).sum()); hits = 0
    for blocks in itertools.product(FOURS, repeat=n):
        z = np.array([c == "B" for c in "".join(blocks)])
        hits += abs((rk * z).sum()) >= obs - 1e-9
    return hits / 6 ** n

cases = []
for name, gen in ref.NOISE.items():
    for pairs in (6, 10, 20, 40):
        g = np.random.default_rng(1000 + pairs)
        y = gen(g, 1, 2 * pairs)[0] + 1.5; x = ref.o_pb4(g, 1, pairs)[0]
        y = y - 0.03 * x
        cases.append((f"{name} {pairs}", y, x))
g = np.random.default_rng(5)                       # ties: exact in binary, so that no rounding decides
cases.append(("ties", g.integers(0, 6, 24) / 64.0, ref.o_pb4(g, 1, 12)[0]))

out = []
for name, y, x in cases:
    b, e = part(y)
    rk = stats.rankdata(e) - (len(y) + 1) / 2
    # The effect on y: minus the reference's theta, the middle of what is found from either side.
    theta = None if name == "ties" else (-root(y, x) + root(y, ~x)) / 2
    out.append(dict(name=name, y=[float(v) for v in y], order="".join("B" if v else "A" for v in x), part=b,
                    residuals=[float(v) for v in e], ranks=[float(v) for v in rk], t=float((rk * x).sum()),
                    theta=theta, p=exact_p(rk, x) if len(y) <= 20 else None))
print('{"made_by": "golden.py beside this file, numpy %s", "cases": [' % np.__version__)
print(",\n".join(json.dumps(case) for case in out))
print("]}")
