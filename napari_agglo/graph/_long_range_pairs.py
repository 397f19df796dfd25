"""Pairs of regions at the two ends of long-range affinities, whether they touch or not."""

# In its own file: it is read by the mutex watershed, and is no statistic of a boundary.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.graph._region_graph import RegionGraph

_SLAB = 1 << 21  # pairs of voxels compared at a time


@dataclass(frozen=True, eq=False)
class FarPairs:
    """Long-range evidence between regions, as whole numbers that add.

    Attributes
    ----------
    pairs : ndarray of int64, shape (k, 2)
        Dense ids (u, v) of two regions, u < v, in lexicographic order.
    counts : ndarray of int64, shape (k,)
        Pairs of voxels with one end in each region.
    sums : ndarray of int64, shape (k,)
        Sum of their values, each 0 (one object) to 255 (boundary).
    """

    pairs: NDArray[np.int64]
    counts: NDArray[np.int64]
    sums: NDArray[np.int64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean value of each pair of regions, 0 to 1: 1 minus the mean affinity."""
        return self.sums / (255.0 * self.counts)


def far_pairs(graph: RegionGraph, progress: ProgressCallback | None = None) -> FarPairs:
    """Return the pairs of regions that the long-range affinities of a graph relate.

    A value relates a voxel and the one at its offset. It counts for the regions that these two are
    in, unless they are one region, or one of them is in none.

    Parameters
    ----------
    graph : RegionGraph
        With cues from `affinities`, some of whose offsets are longer than one voxel; otherwise
        there are no pairs.
    progress : callable, optional
        Called several times a second; it may raise `Cancelled`.

    Returns
    -------
    FarPairs
        The pairs, their numbers of values, and the sums of these.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> array = np.ones((2, 5))
    >>> array[1, 3] = 0.2  # of the voxels 1 and 3, whose regions do not touch
    >>> cues = {"affinity": agglo.affinities(array, [[-1], [-2]])}
    >>> far = far_pairs(agglo.region_graph(np.array([1, 1, 2, 3, 3]), cues))
    >>> far.pairs.tolist(), far.counts.tolist(), far.means.tolist()
    ([[1, 2], [1, 3], [2, 3]], [1, 1, 1], [0.0, 0.8, 0.0])
    """
    image, n = graph.superpixels.image, len(graph.ids)
    keys: list[Any] = []
    counts: list[Any] = []
    sums: list[Any] = []
    total = max(len(graph.far) * image.shape[0], 1)
    for k, (offset, channel) in enumerate(graph.far):
        for done, here, there in _overlapping(image.shape, offset):
            report(progress, "long-range affinities", k * image.shape[0] + done, total)
            u, v = image[here], image[there]
            at = np.flatnonzero((u != v) & (u > 0) & (v > 0))
            u, v = u.reshape(-1)[at].astype(np.int64), v.reshape(-1)[at].astype(np.int64)
            values = channel[here].reshape(-1)[at].astype(np.int64)
            _collect(np.minimum(u, v) * n + np.maximum(u, v), np.ones_like(u), values,
                     keys, counts, sums)  # fmt: skip
    report(progress, "long-range affinities", total, total)
    if not keys:
        none = np.zeros(0, np.int64)
        return FarPairs(none.reshape(0, 2), none, none)
    every: Any = [np.concatenate(part) for part in (keys, counts, sums)]
    keys, counts, sums = [], [], []
    _collect(*every, keys, counts, sums)
    return FarPairs(np.stack(np.divmod(keys[0], n), axis=1), counts[0], sums[0])


def _overlapping(
    shape: tuple[int, ...], offset: tuple[int, ...]
) -> Iterator[tuple[int, tuple[slice, ...], tuple[slice, ...]]]:
    """Yield windows of voxels and of those at an offset, slab by slab; first, the slab's start."""
    if any(abs(n) >= size for n, size in zip(offset, shape, strict=True)):
        return
    starts = [max(0, -n) for n in offset]
    stops = [size - max(0, n) for n, size in zip(offset, shape, strict=True)]
    step = max(1, _SLAB // max(int(np.prod(shape[1:])), 1))
    for start in range(starts[0], stops[0], step):
        first = [start, *starts[1:]]
        last = [min(start + step, stops[0]), *stops[1:]]
        here = tuple(map(slice, first, last))
        there = tuple(slice(a + n, b + n) for a, b, n in zip(first, last, offset, strict=True))
        yield start, here, there


def _collect(keys: Any, counts: Any, sums: Any, *out: list[Any]) -> None:
    """Append each key once, ascending, with its total count and sum."""
    unique, inverse = np.unique(keys, return_inverse=True)
    totals = np.zeros((2, len(unique)), np.int64)
    np.add.at(totals[0], inverse, counts)
    np.add.at(totals[1], inverse, sums)
    for part, new in zip(out, (unique, *totals), strict=True):
        part.append(new)
