"""The breakdown at any threshold from that of the superpixels, without looking at the images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate._breakdown import Breakdown

if TYPE_CHECKING:
    import pandas as pd


def merged_breakdown(
    superpixels: Breakdown, lut: NDArray[np.integer[Any]], ids: NDArray[np.integer[Any]]
) -> Breakdown:
    """Return the `breakdown` of segments that are unions of superpixels.

    It takes milliseconds where the images would take seconds, so that it can follow a slider.

    Parameters
    ----------
    superpixels : Breakdown
        Of the superpixels, against the gold standard.
    lut : ndarray of int, shape (n + 1,)
        Dense name of the segment of each dense superpixel, `MergeTree.lut`.
    ids : ndarray of int, shape (n + 1,)
        The user's id of each dense id, ``graph.ids``.

    Returns
    -------
    Breakdown
        As from the images, but that a voxel lies in the superpixel whose centroid is the nearest
        to that of the whole; it is not the nearest of all voxels.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> image, gold = np.array([1, 1, 2, 2, 3, 3]), np.array([1, 1, 1, 1, 2, 2])
    >>> graph = agglo.region_graph(image, np.zeros(6))
    >>> found = agglo.breakdown(image, gold)
    >>> merged = merged_breakdown(found, np.array([0, 1, 2, 2]), graph.ids)
    >>> merged.segments[["voxels", "contribution", "pieces"]]
        voxels  contribution  pieces
    id
    1        2      0.000000       1
    2        4      0.666667       2
    """
    import pandas as pd

    rows = superpixels.overlaps
    if len(lut) != len(ids):
        raise InvalidInput(
            f"`lut` (of {len(lut)}) and `ids` (of {len(ids)}) must be of one length; take both "
            "from the same graph."
        )
    order = np.argsort(ids, kind="stable")
    found = rows["segment"].to_numpy()
    at = np.searchsorted(ids, found, sorter=order)
    dense = order[np.minimum(at, len(ids) - 1)]
    if (ids[dense] != found).any():
        raise InvalidInput("`superpixels` must be the breakdown of superpixels that `ids` has.")
    segment = np.asarray(lut)[dense].astype(np.int64)
    gold_ids, gold = np.unique(rows["gold"].to_numpy(), return_inverse=True)
    keys, pair = np.unique(segment * max(len(gold_ids), 1) + gold, return_inverse=True)
    parts = _Parts(rows)
    shared = parts.sums(pair, len(keys))
    segment_of, gold_of = np.divmod(keys, max(len(gold_ids), 1))
    total = max(int(shared.sum()), 1)

    def side(dense_ids: NDArray[np.int64], groups: NDArray[np.int64]) -> dict[str, Any]:
        """Entropies by one side: `dense_ids` of each pair, `groups` of each overlap."""
        seen, of_pair = np.unique(dense_ids, return_inverse=True)
        voxels = np.bincount(of_pair, shared, len(seen)).astype(np.int64)
        lost = np.bincount(of_pair, shared * np.log2(voxels[of_pair] / shared), len(seen))
        return {
            "seen": seen,
            "columns": {
                "voxels": voxels,
                "share": voxels / total,
                "entropy": lost / voxels,
                "contribution": lost / total,
                "pieces": np.bincount(of_pair, minlength=len(seen)),
            }
            | parts.places(np.searchsorted(seen, groups), voxels),
        }

    golds, segments = side(gold_of, gold), side(segment_of, segment)
    overlaps = {"segment": ids[segment_of], "gold": gold_ids[gold_of], "voxels": shared}
    return Breakdown(
        pd.DataFrame(golds["columns"], index=pd.Index(gold_ids[golds["seen"]], name="id")),
        pd.DataFrame(segments["columns"], index=pd.Index(ids[segments["seen"]], name="id")),
        pd.DataFrame(overlaps | parts.places(pair, shared)),
    )


class _Parts:
    """Voxels and places of the overlaps that are merged."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self._voxels = rows["voxels"].to_numpy(np.int64)
        axes = range(sum(str(name).startswith("voxel_") for name in rows.columns))
        self._centroids = [rows[f"centroid_{axis}"].to_numpy(float) for axis in axes]
        self._at = [rows[f"voxel_{axis}"].to_numpy(np.int64) for axis in axes]

    def sums(self, groups: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        return np.bincount(groups, self._voxels, n).astype(np.int64)

    def places(
        self, groups: NDArray[np.int64], voxels: NDArray[np.int64]
    ) -> dict[str, NDArray[Any]]:
        """Return the centroid of each group, and a voxel of its part that is nearest to it."""
        n = len(voxels)
        means = [np.bincount(groups, c * self._voxels, n) / voxels for c in self._centroids]
        away = np.zeros(len(groups))
        for own, mean in zip(self._centroids, means, strict=True):
            away += (own - mean[groups]) ** 2
        order = np.lexsort((away, groups))
        nearest = order[np.searchsorted(groups[order], np.arange(n))]
        return {f"centroid_{axis}": mean for axis, mean in enumerate(means)} | {
            f"voxel_{axis}": at[nearest] for axis, at in enumerate(self._at)
        }
