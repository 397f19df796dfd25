"""Search in the edges of a graph, which are in lexicographic order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel


def edge_positions(edges: NDArray[np.int64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of each pair in `edges`, as `searchsorted` does.

    Parameters
    ----------
    edges : ndarray of int64, shape (m, 2)
        In lexicographic order, as in a `RegionGraph`.
    pairs : ndarray of int64, shape (k, 2)
        Pairs to find.

    Examples
    --------
    >>> import numpy as np
    >>> edges = np.array([[1, 2], [1, 5], [3, 4]])
    >>> edge_positions(edges, np.array([[1, 5], [2, 9], [7, 8]]))
    array([1, 2, 3])
    """
    out = np.empty(len(pairs), np.int64)
    _find_all(edges, pairs, out)
    return out


def edges_within(edges: NDArray[np.int64], members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of `edges` with both ends in `members`, ascending.

    The time depends on the members and their boundaries, not on the size of the graph.

    Parameters
    ----------
    edges : ndarray of int64, shape (m, 2)
        In lexicographic order, as in a `RegionGraph`.
    members : ndarray of int64, shape (k,)
        Dense ids, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> edges_within(np.array([[1, 2], [1, 5], [2, 5], [3, 4]]), np.array([1, 2, 5]))
    array([0, 1, 2])
    """
    n_rows = _rows_within(edges, members, np.empty(0, np.int64))
    out = np.empty(n_rows, np.int64)
    _rows_within(edges, members, out)
    return out


@inlined
def first_row(edges: Any, u: Any, v: Any) -> Any:
    """Return the first row of `edges` that is not before (`u`, `v`)."""
    low = 0
    high = edges.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if edges[middle, 0] < u or (edges[middle, 0] == u and edges[middle, 1] < v):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def first_place(values: Any, at: Any, value: Any) -> Any:
    """Return the first place from `at` on of ascending `values` that is not before `value`."""
    high = values.size
    while at < high:
        middle = (at + high) >> 1
        if values[middle] < value:
            at = middle + 1
        else:
            high = middle
    return at


@kernel
def _find_all(edges: Any, pairs: Any, out: Any) -> None:
    """Write the position of each pair to `out`. No bounds checking."""
    for k in range(pairs.shape[0]):
        out[k] = first_row(edges, pairs[k, 0], pairs[k, 1])


@kernel
def _rows_within(edges: Any, members: Any, out: Any) -> int:
    """Count the rows between members; write them if `out` has space. No bounds checking."""
    n = 0
    for k in range(members.size):
        row = first_row(edges, np.int64(members[k]), np.int64(0))
        at = k + 1  # u < v in an edge, and both lists ascend: the search never goes back
        while row < edges.shape[0] and edges[row, 0] == members[k]:
            v = edges[row, 1]
            at = first_place(members, at, v)
            if at < members.size and members[at] == v:
                if n < out.size:
                    out[n] = row
                n += 1
            row += 1
    return n
