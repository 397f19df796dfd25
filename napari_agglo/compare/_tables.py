"""Where two partitions of the same superpixels differ, from tables alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.compare._disagreements import Disagreements
from napari_agglo.compare._overlaps import Overlaps, overlaps
from napari_agglo.compare._parts import codes_of
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph


def table_codes(a: ArrayLike, b: ArrayLike, sizes: ArrayLike) -> NDArray[np.uint8]:
    """Return the codes of `table_disagreements` alone: milliseconds, to follow a slider.

    Parameters
    ----------
    a, b : array of int, shape (n + 1,)
        Name of the segment of each superpixel, as of `MergeTree.lut`; 0 is no segment.
    sizes : array of int, shape (n + 1,)
        Pixels of each superpixel, ``graph.sizes``.

    Returns
    -------
    ndarray of uint8, shape (n + 1,)
        0 agree, 1 merged in a but split in b, 2 split in a but merged in b, 3 both.

    Examples
    --------
    >>> table_codes([0, 1, 1, 3], [0, 1, 2, 3], [0, 9, 2, 5])
    array([0, 0, 1, 0], dtype=uint8)
    """
    pairs = overlaps(a, b, sizes)
    return _spread(pairs)


def table_disagreements(a: ArrayLike, b: ArrayLike, graph: RegionGraph) -> Disagreements:
    """Find where two partitions of the superpixels of a graph differ.

    Parameters
    ----------
    a, b : array of int, shape (n + 1,)
        Name of the segment of each superpixel, as of `MergeTree.lut`; 0 is no segment.
    graph : RegionGraph
        The superpixels.

    Returns
    -------
    Disagreements
        With a code for each superpixel, and segments by the user's ids of their names.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[5, 5, 5, 6, 7]]), np.zeros((1, 5)))
    >>> found = table_disagreements([0, 1, 1, 3], [0, 1, 2, 3], graph)
    >>> found
    Disagreements(1 parts merged in a, 0.649 bits; 0 split in a, 0.000 bits)
    >>> found.largest()[["kind", "whole", "part", "main", "size", "voxel_1"]]
         kind  whole  part  main  size  voxel_1
    0  merged      5     6     5     1        3
    """
    pairs = overlaps(a, b, graph.sizes)
    if max(pairs.n_first, pairs.n_second) > len(graph.ids):
        raise InvalidInput(
            f"`a` and `b` must have names of superpixels, 0 to {graph.n_regions}, got "
            f"{max(pairs.n_first, pairs.n_second) - 1}; take tables of this graph."
        )

    def places(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return _places(graph, pairs, rows)

    return Disagreements(_spread(pairs), pairs, (graph.ids, graph.ids), places)


def _spread(pairs: Overlaps) -> NDArray[np.uint8]:
    """Return the code of each piece; the one appended is found at -1, where there is no pair."""
    return np.append(codes_of(pairs), np.uint8(0))[pairs.of_piece]


def _places(
    graph: RegionGraph, pairs: Overlaps, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a voxel and the box of each overlap asked for."""
    ndim = graph.layout.ndim
    voxels = np.zeros((len(rows), ndim), np.int64)
    boxes = np.zeros((len(rows), 2, ndim), np.int64)
    sums = graph.regions[:, graph.layout.coordinates]
    spacing = np.asarray(graph.spacing)
    for k, row in enumerate(rows):
        members = np.flatnonzero(pairs.of_piece == row)
        boxes[k] = graph.boxes[members, 0].min(axis=0), graph.boxes[members, 1].max(axis=0)
        middle = sums[members].sum(axis=0) / graph.sizes[members].sum()
        own = sums[members] / graph.sizes[members, None]
        nearest = int(members[np.argmin((((own - middle) * spacing) ** 2).sum(axis=1))])
        start, stop = graph.boxes[nearest].astype(np.int64)
        window = tuple(slice(a, b) for a, b in zip(start, stop, strict=True))
        inside = np.argwhere(graph.superpixels.image[window] == nearest) + start
        voxels[k] = inside[np.argmin((((inside - middle) * spacing) ** 2).sum(axis=1))]
    return voxels, boxes
