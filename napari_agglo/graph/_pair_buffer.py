"""Buffer of pairs of regions, by which the merge loop passes boundaries to Python functions.

A row has the dense ids of the two regions, the smaller first, the row of statistics of their
boundary, and those of both regions. A kernel copies rows into the buffer (`copy_pair`), and Python
reads the buffer as a small region graph (`graph_of_pairs`), so that a function of a graph serves
both the loop and the whole graph.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import subroutine
from napari_agglo.graph._region_graph import Layout, RegionGraph
from napari_agglo.volumes import DenseLabels


def pair_width(layout: Layout) -> int:
    """Return the number of columns of the buffer."""
    return 2 + layout.boundary_width + 2 * layout.region_width


@subroutine
def copy_pair(
    edge: Any,
    u: Any,
    v: Any,
    id_u: Any,
    id_v: Any,
    regions: Any,
    boundaries: Any,
    out: Any,
    at: Any,
) -> None:
    """Write the row of the boundary `edge` of nodes `u` and `v` to ``out[at]``."""
    if id_v < id_u:
        u, v = v, u
    out[at, 0] = min(id_u, id_v)
    out[at, 1] = max(id_u, id_v)
    column = 2
    for k in range(boundaries.shape[1]):
        out[at, column + k] = boundaries[edge, k]
    column += boundaries.shape[1]
    for k in range(regions.shape[1]):
        out[at, column + k] = regions[u, k]
        out[at, column + regions.shape[1] + k] = regions[v, k]


def graph_of_pairs(graph: RegionGraph, rows: NDArray[np.int64]) -> RegionGraph:
    """Return the graph of the pairs in `rows`: edge k joins regions 2 k + 1 and 2 k + 2.

    A region of several boundaries occurs several times. Ids are those of the smallest superpixel, 0
    for one that `graph` does not have. Boxes are 0, as the loop does not keep them, and the label
    image has one pixel for each region.
    """
    n, layout = len(rows), graph.layout
    column = 2 + layout.boundary_width
    regions = np.zeros((2 * n + 1, layout.region_width), np.int64)
    regions[1:] = rows[:, column:].reshape(2 * n, layout.region_width)
    dense = np.concatenate([np.zeros(1, np.int64), rows[:, :2].reshape(-1)])
    return dataclasses.replace(
        graph,
        superpixels=DenseLabels(
            np.arange(1, 2 * n + 1, dtype=np.uint32),
            graph.ids[np.where(dense < len(graph.ids), dense, 0)],
            graph.superpixels.dtype,
        ),
        edges=np.arange(1, 2 * n + 1, dtype=np.int64).reshape(n, 2),
        regions=regions,
        boundaries=rows[:, 2:column].copy(),
        boxes=np.zeros((2 * n + 1, 2, layout.ndim), np.int32),
        cues=None,
        hulls=None,
    )
