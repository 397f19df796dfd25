"""How wrong each pixel is, and which plane of a volume shows most of it.

A voxel of segment s and gold segment u is wrong by 1 - p(u|s), the share of its segment that
belongs to other gold segments (false merge), and by 1 - p(s|u), the share of its gold segment that
lies in other segments (false split). The mean of -log2 of both p over all voxels is the VI: where
these shares are large is what counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.evaluate import Contingency

_LOOKED_AT = 40  # planes among which the worst is sought


def wrong_shares(
    table: Contingency, labels: NDArray[Any], gold: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return for each pixel the share of its segment, and of its gold segment, that is elsewhere.

    Parameters
    ----------
    table : Contingency
        Of the whole images.
    labels, gold : ndarray of int, same shape
        A part of them. Where gold is 0, both shares are 0.

    Returns
    -------
    merge, split : ndarray of float, from 0 to 1

    Examples
    --------
    >>> from napari_agglo.evaluate import contingency
    >>> labels, gold = np.array([1, 1, 1, 2]), np.array([7, 7, 7, 7])
    >>> wrong_shares(contingency(labels, gold), labels, gold)[1].tolist()
    [0.25, 0.25, 0.25, 0.75]
    """
    row = np.searchsorted(table.row_ids, labels.astype(np.uint64))
    column = np.searchsorted(table.column_ids, gold.astype(np.uint64))
    width = table.column_ids.size
    keys = table.rows * width + table.columns
    known = gold != 0
    at = np.searchsorted(keys, (row * width + column)[known])
    shared = table.counts[at]
    merge, split = np.zeros(labels.shape), np.zeros(labels.shape)
    merge[known] = 1 - shared / table.row_sums()[row[known]]
    split[known] = 1 - shared / table.column_sums()[column[known]]
    return merge, split


def worst_plane(table: Contingency, labels: NDArray[Any], gold: NDArray[Any]) -> tuple[int, ...]:
    """Return the index, along all axes but the last two, of a plane with much error.

    Examples
    --------
    >>> from napari_agglo.evaluate import contingency
    >>> gold = np.ones((3, 2, 2), int)
    >>> labels = gold.copy()
    >>> labels[2, 0] = 5
    >>> worst_plane(contingency(labels, gold), labels, gold)
    (2,)
    """
    leading = labels.shape[:-2]
    planes = int(np.prod(leading))
    best, most = np.unravel_index(planes // 2, leading) if leading else (), 0.0
    n = min(planes, _LOOKED_AT)
    for k in ((np.arange(n) + 0.5) * planes / n).astype(int):
        index = np.unravel_index(k, leading) if leading else ()
        step = max(1, max(labels.shape[-2:]) // 256)
        some = (*index, slice(None, None, step), slice(None, None, step))
        merge, split = wrong_shares(table, labels[some], gold[some])
        amount = float(merge.sum() + split.sum())
        if amount > most:
            best, most = index, amount
    return tuple(int(i) for i in best)


def check_plane(plane: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the index of a plane along all axes but the last two, or say what is wrong with it.

    Examples
    --------
    >>> check_plane([4], (10, 64, 64))
    (4,)
    """
    leading = tuple(shape[:-2])
    index = tuple(plane)
    if len(index) != len(leading) or not all(
        is_whole(i) and 0 <= i < n for i, n in zip(index, leading, strict=True)
    ):
        expected = "; ".join(f"0 to {n - 1} along axis {axis}" for axis, n in enumerate(leading))
        raise InvalidInput(
            f"`plane` must have {len(leading)} indices, one for each axis but the last two"
            f"{f' ({expected})' if expected else ''}, got {index}."
        )
    return tuple(int(i) for i in index)
