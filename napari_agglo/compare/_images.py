"""Two label images: one renumbered like the other, and where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.compare._disagreements import Disagreements
from napari_agglo.compare._greedy import match_largest
from napari_agglo.compare._overlaps import Overlaps
from napari_agglo.compare._parts import codes_of
from napari_agglo.compare._voxels import boxes_of, code_image
from napari_agglo.evaluate._where import coordinate_sums, nearest_voxels
from napari_agglo.tree._kernels import map_labels
from napari_agglo.volumes import (
    Contingency,
    DenseLabels,
    check_same_shape,
    contingency,
    dense_labels,
)


def matched(
    reference: Any, other: Any, *, progress: ProgressCallback | None = None
) -> NDArray[Any]:
    """Renumber a segmentation so that segments that overlap most share the label of the reference.

    Parameters
    ----------
    reference, other : array of int, same shape
        Label images; 0 is no segment, in both.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    ndarray
        The segments of `other`. One to one: of all pairs the one with the largest overlap is
        matched, then the largest of the rest, and so on; of equals the smaller ids. A segment
        without a partner gets the smallest label that neither a segment of the reference nor
        another one has. Of the type of the reference, or a wider one if labels do not fit.

    Examples
    --------
    >>> matched(np.array([7, 7, 7, 9, 9]), np.array([1, 1, 2, 2, 3]))
    array([7, 7, 9, 9, 1])
    """
    ours, theirs = _both(reference, other, "reference", "other")
    table = contingency(ours, theirs, ignore_labels=True, progress=progress)
    partners = match_largest(_pairs(table))
    labels = ours.ids[partners]
    alone = np.flatnonzero(partners == 0)[1:]
    candidates = np.arange(1, ours.ids.size + alone.size, dtype=np.uint64)
    labels[alone] = np.setdiff1d(candidates, ours.ids)[: alone.size]
    dtype = np.promote_types(ours.dtype, np.min_scalar_type(int(labels.max())))
    if dtype.kind == "f":  # numpy's way to hold int64 and uint64 both
        dtype = np.dtype(np.uint64)
    out = np.empty(theirs.image.shape, dtype.newbyteorder("="))
    map_labels(theirs.image.reshape(-1), labels.astype(out.dtype), out.reshape(-1))
    return out


def disagreements(a: Any, b: Any, *, progress: ProgressCallback | None = None) -> Disagreements:
    """Find where two segmentations differ: what one has merged and the other split.

    Parameters
    ----------
    a, b : array of int, same shape
        Label images; pixels that are 0 in either are left out.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    Disagreements
        With a code for each pixel.

    Examples
    --------
    >>> found = disagreements(np.array([5, 5, 5, 8, 8]), np.array([1, 1, 2, 3, 3]))
    >>> found.codes
    array([0, 0, 1, 0, 0], dtype=uint8)
    >>> found.largest()[["kind", "whole", "part", "main", "size", "voxel_0"]]
         kind  whole  part  main  size  voxel_0
    0  merged      5     2     1     1        2
    """
    one, two = _both(a, b, "a", "b")
    table = contingency(one, two, ignore_labels=True, progress=progress)
    pairs = _pairs(table)
    codes = code_image(table, one, two, codes_of(pairs), progress)

    def places(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        asked, back = np.unique(rows, return_inverse=True)
        some = Contingency(
            table.rows[asked], table.columns[asked], table.counts[asked], one.ids, two.ids
        )
        middles = coordinate_sums(some, one, two) / some.counts[:, None]
        voxels = nearest_voxels(some, one, two, np.arange(asked.size), middles)
        return voxels[back], boxes_of(some, one, two)[back]

    return Disagreements(codes, pairs, (one.ids, two.ids), places)


def _both(a: Any, b: Any, first: str, second: str) -> tuple[DenseLabels, DenseLabels]:
    one = a if isinstance(a, DenseLabels) else dense_labels(a, first)
    two = b if isinstance(b, DenseLabels) else dense_labels(b, second)
    check_same_shape(one.image, two.image, first, second)
    return one, two


def _pairs(table: Contingency) -> Overlaps:
    return Overlaps(
        table.rows, table.columns, table.counts, np.arange(table.counts.size), table.row_ids.size,
        table.column_ids.size,
    )  # fmt: skip
