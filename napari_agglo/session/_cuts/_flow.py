"""Minimum cut between two sets of nodes, by maximum flow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# scipy counts flow in 32 bits: all capacities together stay below this, so that no sum overflows.
_MOST = 2**30


def whole_capacities(cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return costs as whole numbers, at least 1, that together fit in 32 bits.

    None is 0, so that both sides of a minimum cut are connected when both sets of terminals are: a
    piece apart from them would be cheaper on the other side.
    """
    total = float(cost.sum())
    # Shares first: the inverse of a very small total is infinite.
    share = cost / total if total > 0 else np.zeros(len(cost))
    return np.maximum(np.floor(share * (_MOST - len(cost))).astype(np.int64), 1)


def minimum_cut(
    n_nodes: int,
    ends: NDArray[np.int64],
    capacity: NDArray[np.int64],
    source: NDArray[np.int64],
    sink: NDArray[np.int64],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int]:
    """Return the least and the largest source side of a minimum cut, and its value.

    Terminals become one node each. Where several cuts have the same value, the two sides differ.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    node = np.full(n_nodes, -1, np.int64)
    node[source] = 0
    node[sink] = 1
    free = node < 0
    node[free] = np.arange(2, 2 + int(free.sum()))
    u, v = node[ends[:, 0]], node[ends[:, 1]]
    apart = u != v
    u, v, weight = u[apart], v[apart], capacity[apart]
    n = 2 + int(free.sum())
    both = (np.concatenate([u, v]), np.concatenate([v, u]))
    matrix = coo_array((np.concatenate([weight, weight]), both), shape=(n, n)).tocsr()
    matrix = _in_32_bits(matrix)
    result = maximum_flow(matrix, 0, 1)
    left = matrix - result.flow
    left.eliminate_zeros()
    least = _reached(left, 0)
    largest = ~_reached(left.T.tocsr(), 1)
    return least[node], largest[node], int(result.flow_value)


def _in_32_bits(matrix: Any) -> Any:
    matrix.data = matrix.data.astype(np.int32)
    matrix.indices = matrix.indices.astype(np.int32)
    matrix.indptr = matrix.indptr.astype(np.int32)
    return matrix


def _reached(matrix: Any, start: int) -> NDArray[np.bool_]:
    from scipy.sparse.csgraph import breadth_first_order

    reached = np.zeros(matrix.shape[0], np.bool_)
    reached[breadth_first_order(matrix, start, return_predecessors=False)] = True
    return reached
