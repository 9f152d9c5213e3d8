"""The thread's last program: one call of a gufunc on the CPU. bench.py measures it from start to exit."""
import time

import numpy as np
from numba import guvectorize


@guvectorize(["void(float64[:,:], float64[:,:], int64, int64, float64[:,:])"], "(m,o),(m,o),(),() -> (m,o)", nopython=True)
def vest(multBy, discount, n, countCol, cv):
    for ID in range(0, countCol):
        for num in range(0, n):
            cv[ID][num] = multBy[ID][num] * discount[ID][num]


multBy = np.float64(np.arange(20000).reshape(4000, 5))
discount = np.float64(np.arange(2000000).reshape(100, 4000, 5))
start = time.time()
cv = vest(multBy, discount, np.int64(5), np.int64(4000))
print(time.time() - start, cv[99, 3999, 4])
