"""Calls of the functions of feature blocks from kernels, for many boundaries at once.

The columns of a boundary are kept until its row or that of one of its regions changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._numba import inlined, subroutine
from napari_agglo._numba.callbacks import call_python
from napari_agglo.graph import copy_pair


@inlined
def forget_columns(node: Any, edge: Any, versions_read: Any, versions: Any) -> None:
    """Note that the row of a region or of a boundary has changed, if there are further blocks."""
    if node >= 0 and versions.size > 0:
        versions[node] += 1
    if edge >= 0 and versions_read.shape[0] > 0:
        versions_read[edge, 0] = -1


@inlined
def _is_known(edge: Any, u: Any, v: Any, versions_read: Any, versions: Any) -> Any:
    """Return whether the columns of further blocks are those of the present rows.

    Invariant: a row that changes is filled, so that a region gets a new version, and a boundary no
    node; and a region that another was merged into keeps its node with a new version.
    """
    return (
        versions_read[edge, 0] == u
        and versions_read[edge, 1] == v
        and versions_read[edge, 2] == versions[u]
        and versions_read[edge, 3] == versions[v]
    )


@subroutine
def ask_blocks(
    start: Any, n: Any, edges: Any, ends: Any, ids: Any, address: Any, features: Any
) -> None:
    """Compute the columns of ``edges[start : start + n]``, as far as they are not known.

    A call takes a fraction of a millisecond, whether of one boundary or of a hundred: so all of
    them are passed at once, as many as the buffer has room for.
    """
    pairs, columns, more = features.pairs, features.columns, features.more
    versions, versions_read = features.versions, features.versions_read
    waiting: Any = np.int64(0)
    first = np.int64(0)  # of those in the buffer
    for k in range(n):
        edge = edges[start + k]
        u = np.int64(ends[edge, 0])
        v = np.int64(ends[edge, 1])
        if not _is_known(edge, u, v, versions_read, versions):
            id_u, id_v = np.int64(ids[u]), np.int64(ids[v])
            copy_pair(edge, u, v, id_u, id_v, features.regions, features.boundaries, pairs, waiting)
            waiting += 1
        if waiting > 0 and (waiting == pairs.shape[0] or k == n - 1):
            call_python(address, waiting)
            at = np.int64(0)
            for j in range(first, k + 1):
                edge = edges[start + j]
                u = np.int64(ends[edge, 0])
                v = np.int64(ends[edge, 1])
                if not _is_known(edge, u, v, versions_read, versions):
                    for column in range(more.shape[1]):
                        more[edge, column] = columns[at, column]
                    versions_read[edge, 0], versions_read[edge, 1] = u, v
                    versions_read[edge, 2], versions_read[edge, 3] = versions[u], versions[v]
                    at += 1
            waiting = np.int64(0)
            first = np.int64(k + 1)
