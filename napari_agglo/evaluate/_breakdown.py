"""The breakdown of the variation of information: which segment is to blame for how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.evaluate._runs import coordinate_sums, nearest_voxels
from napari_agglo.volumes import DenseLabels, contingency, dense_labels

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Breakdown:
    """What each segment and each gold segment contributes to the variation of information.

    Attributes
    ----------
    gold : pandas.DataFrame
        By id of the gold segment: ``voxels``; ``share``, P(u); ``entropy``, H(S|U=u) in bits;
        ``contribution``, their product, which sums to the false splits; ``pieces``, the number of
        segments that it is split into; ``centroid_0``, ... in pixels, and ``voxel_0``, ..., the
        voxel of it that is nearest to the centroid (a centroid may lie outside).
    segments : pandas.DataFrame
        The same for each segment: P(s), H(U|S=s), the product, which sums to the false merges; here
        ``pieces`` is the number of gold segments that it merges. Voxels that are not annotated
        count nowhere.
    overlaps : pandas.DataFrame
        One row for each pair that overlaps: ``segment``, ``gold``, ``voxels``, centroid, voxel.
    """

    gold: pd.DataFrame
    segments: pd.DataFrame
    overlaps: pd.DataFrame

    def pieces(self, gold_id: int) -> pd.DataFrame:
        """Return the segments that a gold segment is split into, the largest piece first.

        Columns: ``id`` of the segment, ``voxels`` of the piece, ``fraction`` of the gold segment,
        centroid and voxel of the piece.
        """
        return self._partners(gold_id, "gold", "segment", self.gold)

    def merged(self, segment_id: int) -> pd.DataFrame:
        """Return the gold segments that a segment merges, the largest part first, as `pieces`."""
        return self._partners(segment_id, "segment", "gold", self.segments)

    def worst(self, n: int = 10) -> pd.DataFrame:
        """Return the `n` largest contributions of both kinds, the largest first.

        Columns: ``kind`` ("false split" of a gold segment or "false merge" by a segment), ``id``,
        ``contribution`` (bits), ``voxels``, ``partners`` (the ids of the pieces, the largest
        first), centroid and voxel.
        """
        import pandas as pd

        if not (is_whole(n) and n >= 0):
            raise InvalidInput(f"`n` must be a whole number, 0 or more, got {n!r}.")
        found = pd.concat(
            [
                self.gold.assign(kind="false split").reset_index(),
                self.segments.assign(kind="false merge").reset_index(),
            ],
            ignore_index=True,
        )
        found = found[found["contribution"] > 0]
        order = ["contribution", "kind", "id"]
        found = found.sort_values(order, ascending=[False, True, True], ignore_index=True).head(n)
        partners = {
            kind: self._all_partners(by, other, found.loc[found["kind"] == kind, "id"])
            for kind, by, other in (
                ("false split", "gold", "segment"),
                ("false merge", "segment", "gold"),
            )
        }
        found["partners"] = [
            partners[kind][one] for kind, one in zip(found["kind"], found["id"], strict=True)
        ]
        places = [name for name in found.columns if str(name).startswith(("centroid", "voxel_"))]
        return found[["kind", "id", "contribution", "voxels", "partners", *places]]

    def _all_partners(self, by: str, other: str, ids: Any) -> dict[Any, list[int]]:
        """Return the ids of the parts of many, the largest first, from one look at the table."""
        rows = self.overlaps[self.overlaps[by].isin(ids)]
        rows = rows.sort_values(["voxels", other], ascending=[False, True])
        return {one: part[other].tolist() for one, part in rows.groupby(by)}

    def _partners(self, one: int, by: str, other: str, table: pd.DataFrame) -> pd.DataFrame:
        if not is_whole(one) or one not in table.index:
            raise InvalidInput(
                f"There is no {'gold segment' if by == 'gold' else 'segment'} {one!r} where there "
                f"is a gold standard; choose one of the {len(table)} ids of the table "
                f"`{'gold' if by == 'gold' else 'segments'}`."
            )
        found = self.overlaps[self.overlaps[by] == np.uint64(one)].drop(columns=by)
        found = found.rename(columns={other: "id"})
        found = found.sort_values(["voxels", "id"], ascending=[False, True], ignore_index=True)
        found.insert(2, "fraction", found["voxels"] / found["voxels"].sum())
        return found


def breakdown(
    labels: Any,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> Breakdown:
    """Say which segments the error comes from, what they share it with, and where they are.

    Parameters
    ----------
    labels : array of int
        The segmentation.
    gold : array of int, same shape
        The gold standard; voxels of 0 are not annotated and are left out.
    ignore_labels : bool
        Leave out voxels whose label is 0 too; otherwise label 0 counts as one segment.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    Breakdown

    Examples
    --------
    >>> import numpy as np
    >>> found = breakdown(np.array([3, 3, 4, 4, 5, 5]), np.array([1, 1, 1, 1, 2, 2]))
    >>> found.gold[["voxels", "entropy", "contribution", "pieces"]]
        voxels  entropy  contribution  pieces
    id
    1        4      1.0      0.666667       2
    2        2      0.0      0.000000       1
    >>> found.pieces(1)
       id  voxels  fraction  centroid_0  voxel_0
    0   3       2       0.5         0.5        0
    1   4       2       0.5         2.5        2
    """
    import pandas as pd

    one = labels if isinstance(labels, DenseLabels) else dense_labels(labels, "labels")
    two = gold if isinstance(gold, DenseLabels) else dense_labels(gold, "gold")
    table = contingency(one, two, ignore_labels=ignore_labels, progress=progress)
    sums = coordinate_sums(table, one, two, progress)

    def places(groups: NDArray[np.int64], n: int) -> dict[str, NDArray[Any]]:
        centroids = _group_sums(groups, sums, n) / _group_sums(groups, table.counts[:, None], n)
        voxels = nearest_voxels(table, one, two, groups, centroids, progress)
        return {f"centroid_{axis}": column for axis, column in enumerate(centroids.T)} | {
            f"voxel_{axis}": column for axis, column in enumerate(voxels.T)
        }

    def side(dense: NDArray[np.int64], ids: NDArray[np.uint64]) -> pd.DataFrame:
        seen, groups = np.unique(dense, return_inverse=True)
        voxels = _group_sums(groups, table.counts, seen.size)
        lost = np.zeros(seen.size)
        np.add.at(lost, groups, table.counts * np.log2(voxels[groups] / table.counts))
        columns = {
            "voxels": voxels,
            "share": voxels / max(table.total, 1),
            "entropy": lost / voxels,
            "contribution": lost / max(table.total, 1),
            "pieces": np.bincount(groups, minlength=seen.size),
        }
        index = pd.Index(ids[seen], name="id")
        return pd.DataFrame(columns | places(groups, seen.size), index=index)

    k = table.counts.size
    overlaps = pd.DataFrame(
        {
            "segment": table.row_ids[table.rows],
            "gold": table.column_ids[table.columns],
            "voxels": table.counts,
        }
        | places(np.arange(k), k)
    )
    return Breakdown(side(table.columns, two.ids), side(table.rows, one.ids), overlaps)


def _group_sums(groups: NDArray[np.int64], values: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Integer sums by group, of numbers or of rows."""
    sums = np.zeros((n, *values.shape[1:]), np.int64)
    np.add.at(sums, groups, values)
    return sums


# The breakdown at any threshold from that of the superpixels, without looking at the images.


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
