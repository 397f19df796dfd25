"""Contraction: add the rows of statistics of merged regions and boundaries."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo.graph._region_graph import RegionGraph
from napari_agglo.volumes import DenseLabels, mapped_labels


@inlined
def merge_regions(
    regions: Any, boxes: Any, into: Any, other: Any, boundaries: Any, edge: Any, ndim: Any
) -> None:
    """Add the row of region `other` to `into`, and drop the faces of `edge`, their boundary."""
    for column in range(regions.shape[1]):
        regions[into, column] += regions[other, column]
    for axis in range(ndim):
        regions[into, 1 + 2 * ndim + axis] -= 2 * boundaries[edge, axis]
        boxes[into, 0, axis] = min(boxes[into, 0, axis], boxes[other, 0, axis])
        boxes[into, 1, axis] = max(boxes[into, 1, axis], boxes[other, 1, axis])


@inlined
def merge_boundaries(boundaries: Any, into: Any, other: Any) -> None:
    """Add the row of boundary `other` to `into`."""
    for column in range(boundaries.shape[1]):
        boundaries[into, column] += boundaries[other, column]


@kernel
def add_rows(rows: Any, into: Any, sums: Any) -> None:
    """Add row k to row ``into[k]`` of `sums`, unless it is -1. No bounds checking."""
    for k in range(rows.shape[0]):
        at = into[k]
        if at >= 0:
            for column in range(rows.shape[1]):
                sums[at, column] += rows[k, column]


def contracted(graph: RegionGraph, lut: NDArray[np.uint32]) -> RegionGraph:
    """Return the graph of a coarser partition, by adding rows.

    Parameters
    ----------
    graph : RegionGraph
        A graph of n regions.
    lut : ndarray of int, shape (n + 1,)
        The new region of each dense id, as from `MergeTree.lut`; ``lut[0]`` is 0.

    Returns
    -------
    RegionGraph
        Equal to `region_graph` of the relabelled image.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3)))
    >>> contracted(graph, np.array([0, 1, 1, 3])).sizes
    array([0, 2, 1])
    """
    is_kept = np.zeros(graph.n_regions + 1, np.bool_)
    is_kept[lut] = True
    kept = np.flatnonzero(is_kept)
    new = (np.cumsum(is_kept) - 1)[lut]
    layout = graph.layout
    regions = np.zeros((len(kept), layout.region_width), np.int64)
    add_rows(graph.regions, new, regions)
    boxes = np.zeros((len(kept), 2, layout.ndim), np.int32)
    boxes[:, 0] = np.iinfo(np.int32).max
    np.minimum.at(boxes[:, 0], new, graph.boxes[:, 0])
    np.maximum.at(boxes[:, 1], new, graph.boxes[:, 1])
    boxes[0] = 0
    pairs = np.sort(new[graph.edges], axis=1)
    inside = pairs[:, 0] == pairs[:, 1]
    np.subtract.at(
        regions[:, layout.contact], pairs[inside, 0], 2 * graph.boundaries[inside, layout.faces]
    )
    # Both factors are below 2**31, since their rows fit in memory: no overflow.
    keys = pairs[:, 0] * len(kept) + pairs[:, 1]
    unique, which = np.unique(keys[~inside], return_inverse=True)
    edges = np.stack(np.divmod(unique, len(kept)), axis=1)
    into = np.full(len(pairs), -1, np.int64)
    into[~inside] = which
    boundaries = np.zeros((len(edges), layout.boundary_width), np.int64)
    add_rows(graph.boundaries, into, boundaries)
    superpixels = DenseLabels(
        image=mapped_labels(graph.superpixels.image, new.astype(np.uint32)),
        ids=graph.ids[kept],
        dtype=graph.superpixels.dtype,
    )
    return dataclasses.replace(
        graph,
        superpixels=superpixels,
        edges=edges,
        regions=regions,
        boundaries=boundaries,
        boxes=boxes,
        hulls=None if graph.hulls is None else graph.hulls.merged(new, len(kept)),
    )
