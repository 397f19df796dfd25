"""The graph under contraction."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from napari_agglo.agglomeration import link


@pytest.mark.compiled
@pytest.mark.parametrize("n_edges", [0, 1])
def test_one_kernel_serves_graphs_of_any_size(n_edges):
    # Numba compiles once for each type, and the type of an array says whether it is contiguous.
    chain = np.array([(k, k + 1) for k in range(9)], np.int64)
    small, large = link(chain[:n_edges], 10), link(chain, 10)
    assert numba.typeof(small) == numba.typeof(large)
