"""The columns of the segment table, computed in a worker from arrays alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import Contingency


@dataclass(frozen=True, eq=False)
class Columns:
    """What is known of the segments, an entry for each in all arrays.

    Attributes
    ----------
    names : ndarray of int64
        Dense names, ascending.
    ids : ndarray of uint64
        The user's.
    sizes : ndarray of int64
        Pixels.
    errors : ndarray of float64 or None
        What each adds to the false merges, in bits; None without gold.
    """

    names: NDArray[np.int64]
    ids: NDArray[np.uint64]
    sizes: NDArray[np.int64]
    errors: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def empty(cls) -> Columns:
        """Return those of no segments."""
        none = np.zeros(0, np.int64)
        return cls(none, none.astype(np.uint64), none)


def columns_of(
    graph: RegionGraph, table: NDArray[np.uint32], overlaps: Contingency | None
) -> Columns:
    """Add up what the superpixels of each segment hold.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[5, 6, 7, 7]]), np.array([[0.0, 0.2, 0.6, 0.8]]))
    >>> found = columns_of(graph, np.array([0, 1, 1, 3], np.uint32), None)
    >>> found.ids, found.sizes
    (array([5, 7], dtype=uint64), array([2, 2]))
    """
    n = graph.n_regions + 1
    held = table[:n]
    pixels = np.zeros(n, np.int64)
    np.add.at(pixels, held, graph.sizes)
    pixels[0] = 0
    names = np.flatnonzero(pixels)
    errors = None
    if overlaps is not None:
        errors = _errors(held, overlaps, n)[names]
    return Columns(names, graph.ids[names], pixels[names], errors)


def _errors(held: NDArray[np.uint32], overlaps: Contingency, n: int) -> NDArray[np.float64]:
    """Return what each segment adds to H(gold | segments): P(s) H(U | S=s)."""
    known = overlaps.rows < len(held)
    segment = held[overlaps.rows[known]].astype(np.int64)
    width = len(overlaps.column_ids)
    keys, which = np.unique(segment * width + overlaps.columns[known], return_inverse=True)
    shared = np.bincount(which, overlaps.counts[known], len(keys))
    owner = keys // width
    whole = np.bincount(owner, shared, n)
    lost = shared * np.log2(whole[owner] / shared)
    return np.bincount(owner, lost, n) / max(overlaps.total, 1)


def box_of(graph: RegionGraph, table: NDArray[np.uint32], name: int) -> NDArray[np.int64]:
    """Return the box of a segment, (first, past the last), from those of its superpixels."""
    members = np.flatnonzero(table[: graph.n_regions + 1] == name)
    boxes = graph.boxes[members]
    return np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])


def middle_of(graph: RegionGraph, table: NDArray[np.uint32], name: int) -> tuple[int, ...]:
    """Return a pixel to look at: near the middle of the superpixel nearest to the centroid."""
    members = np.flatnonzero(table[: graph.n_regions + 1] == name)
    sums = graph.regions[members][:, graph.layout.coordinates].astype(float)
    sizes = graph.sizes[members].astype(float)
    centre = sums.sum(axis=0) / sizes.sum()
    own = sums / sizes[:, None]
    nearest = own[int(np.argmin(((own - centre) ** 2).sum(axis=1)))]
    return tuple(round(float(x)) for x in nearest)
