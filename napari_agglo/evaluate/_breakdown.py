"""Breakdown of the variation of information: the contribution of each segment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput, check_whole, is_whole
from napari_agglo.evaluate._label_runs import coordinate_sums, nearest_voxels
from napari_agglo.evaluate._metrics import dense_gold
from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import Contingency, contingency, dense_labels

if TYPE_CHECKING:
    import pandas as pd

# Function of groups of overlaps and of their voxels: the columns of centroids and voxels.
Places = Callable[[NDArray[np.int64], NDArray[np.int64]], dict[str, NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class Breakdown:
    """Contribution of each segment and each gold segment to the variation of information.

    Attributes
    ----------
    gold : pandas.DataFrame
        By id of the gold segment: ``voxels``; ``share``, P(u); ``entropy``, H(S|U=u) in bits;
        ``contribution``, their product, which sums to the false splits; ``pieces``, the number of
        segments that it is split into; ``centroid_0``, ... in pixels, and ``voxel_0``, ..., its
        voxel nearest to the centroid (a centroid may lie outside).
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

    def __repr__(self) -> str:
        merge, split = (one["contribution"].sum() for one in (self.segments, self.gold))
        wrong = [int((one["contribution"] > 0).sum()) for one in (self.segments, self.gold)]
        return (
            f"Breakdown({merge:.3f} bits by false merges, {wrong[0]} of {len(self.segments)} "
            f"segments; {split:.3f} bits by false splits, {wrong[1]} of {len(self.gold)} gold "
            "segments)"
        )

    def pieces(self, gold_id: int) -> pd.DataFrame:
        """Return the segments that a gold segment is split into, the largest piece first.

        Columns: ``id`` of the segment, ``voxels`` of the piece, ``fraction`` of the gold segment,
        centroid and voxel of the piece.

        Parameters
        ----------
        gold_id : int
            The id of a gold segment.

        Returns
        -------
        DataFrame
            A row for each piece.
        """
        return self._partners(gold_id, "gold", "segment", self.gold)

    def merged(self, segment_id: int) -> pd.DataFrame:
        """Return the gold segments that a segment merges, the largest part first, as `pieces`.

        Parameters
        ----------
        segment_id : int
            The id of a segment.

        Returns
        -------
        DataFrame
            A row for each gold segment in it.
        """
        return self._partners(segment_id, "segment", "gold", self.segments)

    def worst(self, n: int = 10) -> pd.DataFrame:
        """Return the `n` largest contributions of both kinds, the largest first.

        Columns: ``kind`` ("false split" of a gold segment or "false merge" by a segment), ``id``,
        ``contribution`` (bits), ``voxels``, ``partners`` (ids of the pieces, the largest first),
        centroid and voxel.

        Parameters
        ----------
        n : int
            The number of rows.

        Returns
        -------
        DataFrame
            A row for each contribution.
        """
        import pandas as pd

        check_whole("n", n, 0)
        errors = pd.concat(
            [
                self.gold.assign(kind="false split").reset_index(),
                self.segments.assign(kind="false merge").reset_index(),
            ],
            ignore_index=True,
        )
        errors = errors[errors["contribution"] > 0]
        order = ["contribution", "kind", "id"]
        errors = errors.sort_values(order, ascending=[False, True, True], ignore_index=True).head(n)
        partners = {
            kind: self._all_partners(by, other, errors.loc[errors["kind"] == kind, "id"])
            for kind, by, other in (
                ("false split", "gold", "segment"),
                ("false merge", "segment", "gold"),
            )
        }
        errors["partners"] = [
            partners[kind][one] for kind, one in zip(errors["kind"], errors["id"], strict=True)
        ]
        places = [name for name in errors.columns if str(name).startswith(("centroid", "voxel_"))]
        return errors[["kind", "id", "contribution", "voxels", "partners", *places]]

    def _all_partners(self, by: str, other: str, ids: Any) -> dict[Any, list[int]]:
        """Return the partners of each of `ids`, the largest overlap first."""
        rows = self.overlaps[self.overlaps[by].isin(ids)]
        rows = rows.sort_values(["voxels", other], ascending=[False, True])
        return {one: part[other].tolist() for one, part in rows.groupby(by)}

    def _partners(self, one: int, by: str, other: str, table: pd.DataFrame) -> pd.DataFrame:
        if not is_whole(one) or one not in table.index:
            noun, attribute = ("gold segment", "gold") if by == "gold" else ("segment", "segments")
            raise InvalidInput(
                f"There is no {noun} {one!r} with annotated voxels",
                argument=f"{by}_id",
                remedy=f"choose one of the {len(table)} ids in the index of `{attribute}`",
            )
        rows = self.overlaps[self.overlaps[by] == np.uint64(one)].drop(columns=by)
        rows = rows.rename(columns={other: "id"})
        rows = rows.sort_values(["voxels", "id"], ascending=[False, True], ignore_index=True)
        rows.insert(2, "fraction", rows["voxels"] / rows["voxels"].sum())
        return rows


def breakdown(
    labels: Any,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> Breakdown:
    """Attribute the variation of information to segments, with their partners and places.

    Parameters
    ----------
    labels, gold, ignore_labels, progress
        As for `split_vi`.

    Returns
    -------
    Breakdown

    Examples
    --------
    >>> import numpy as np
    >>> parts = breakdown(np.array([3, 3, 4, 4, 5, 5]), np.array([1, 1, 1, 1, 2, 2]))
    >>> parts
    Breakdown(0.000 bits by false merges, 0 of 3 segments; 0.667 bits by false splits, 1 of 2 gold
    segments)
    >>> parts.gold[["voxels", "entropy", "contribution", "pieces"]]
        voxels  entropy  contribution  pieces
    id
    1        4      1.0      0.666667       2
    2        2      0.0      0.000000       1
    >>> parts.pieces(1)
       id  voxels  fraction  centroid_0  voxel_0
    0   3       2       0.5         0.5        0
    1   4       2       0.5         2.5        2
    """
    one, two = dense_labels(labels, "labels"), dense_gold(gold)
    table = contingency(one, two, ignore_labels=ignore_labels, progress=progress)
    sums = coordinate_sums(table, one, two, progress)

    def places(groups: NDArray[np.int64], voxels: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        centroids = _sums(groups, sums, len(voxels)) / voxels[:, None]
        nearest = nearest_voxels(table, one, two, groups, centroids, progress)
        return _columns("centroid", centroids) | _columns("voxel", nearest)

    return _assembled(table, places)


def table_breakdown(graph: RegionGraph, table: Contingency) -> Breakdown:
    """Return the `breakdown` of superpixels from overlaps that are counted already.

    No image is read, as for a volume that stays on disk: an overlap is said to lie at the centroid
    of its superpixel, and its voxel is the one there, which may belong to a neighbour.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels.
    table : Contingency
        Their overlaps with the gold standard.

    Returns
    -------
    Breakdown
        The contribution of each segment and gold segment.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> image, gold = np.array([1, 1, 2, 2]), np.array([1, 1, 1, 2])
    >>> graph = agglo.region_graph(image, np.zeros(4))
    >>> table_breakdown(graph, contingency(graph.superpixels, gold)).segments["contribution"]
    id
    1    0.0
    2    0.5
    Name: contribution, dtype: float64
    """
    where = np.nan_to_num(graph.centroids())[table.rows]
    weights = table.counts[:, None]

    def places(groups: NDArray[np.int64], voxels: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        means = _sums(groups, where * weights, len(voxels)) / voxels[:, None]
        away = ((where - means[groups]) ** 2).sum(axis=1)
        order = np.lexsort((away, groups))
        nearest = order[np.searchsorted(groups[order], np.arange(len(voxels)))]
        inside = np.floor(where[nearest] + 0.5).astype(np.int64)
        return _columns("centroid", means) | _columns("voxel", inside)

    return _assembled(table, places)


def _assembled(table: Contingency, places: Places) -> Breakdown:
    """Return the breakdown of overlaps, of which a function knows the places."""
    import pandas as pd

    overlaps = {
        "segment": table.row_ids[table.rows],
        "gold": table.column_ids[table.columns],
        "voxels": table.counts,
    }
    return Breakdown(
        _side(table.columns, table.counts, table.column_ids, table.columns, places),
        _side(table.rows, table.counts, table.row_ids, table.rows, places),
        pd.DataFrame(overlaps | places(np.arange(table.counts.size), table.counts)),
    )


def merged_breakdown(
    superpixels: Breakdown, lut: NDArray[np.integer[Any]], ids: NDArray[np.integer[Any]]
) -> Breakdown:
    """Return the `breakdown` of segments that are unions of superpixels.

    The images are not read again: it takes milliseconds, quick enough for a slider.

    Parameters
    ----------
    superpixels : Breakdown
        Breakdown of the superpixels against the gold standard.
    lut : ndarray of int, shape (n + 1,)
        Dense name of the segment of each dense superpixel, `MergeTree.lut`.
    ids : ndarray of int, shape (n + 1,)
        The user's id of each dense id, ``graph.ids``.

    Returns
    -------
    Breakdown
        As from the images, except for the voxels: each lies in the superpixel whose centroid is
        nearest to that of the whole, and need not be the nearest of all voxels.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> image, gold = np.array([1, 1, 2, 2, 3, 3]), np.array([1, 1, 1, 1, 2, 2])
    >>> graph = agglo.region_graph(image, np.zeros(6))
    >>> parts = agglo.breakdown(image, gold)
    >>> merged = merged_breakdown(parts, np.array([0, 1, 2, 2]), graph.ids)
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
            f"`lut` (length {len(lut)}) and `ids` (length {len(ids)}) must be of one length",
            argument="lut",
            remedy="take both from the same graph",
        )
    order = np.argsort(ids, kind="stable")
    names = rows["segment"].to_numpy()
    at = np.searchsorted(ids, names, sorter=order)
    dense = order[np.minimum(at, len(ids) - 1)]
    if (ids[dense] != names).any():
        raise InvalidInput(
            "`superpixels` has ids that are not in `ids`",
            argument="superpixels",
            remedy="pass the breakdown of the superpixels of this graph",
        )
    segment = np.asarray(lut)[dense].astype(np.int64)
    gold_ids, gold = np.unique(rows["gold"].to_numpy(), return_inverse=True)
    keys, pair = np.unique(segment * max(len(gold_ids), 1) + gold, return_inverse=True)
    parts = rows["voxels"].to_numpy(np.int64)
    shared = _sums(pair, parts, len(keys))
    segment_of, gold_of = np.divmod(keys, max(len(gold_ids), 1))
    ndim = sum(str(name).startswith("voxel_") for name in rows.columns)
    centroids, inside = (
        rows[[f"{name}_{axis}" for axis in range(ndim)]].to_numpy()
        for name in ("centroid", "voxel")
    )

    def places(groups: NDArray[np.int64], voxels: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return the centroid of each group, and a voxel of its part that is nearest to it."""
        means = _sums(groups, centroids * parts[:, None], len(voxels)) / voxels[:, None]
        away = ((centroids - means[groups]) ** 2).sum(axis=1)
        order = np.lexsort((away, groups))
        nearest = order[np.searchsorted(groups[order], np.arange(len(voxels)))]
        return _columns("centroid", means) | _columns("voxel", inside[nearest])

    overlaps = {"segment": ids[segment_of], "gold": gold_ids[gold_of], "voxels": shared}
    return Breakdown(
        _side(gold_of, shared, gold_ids, gold, places),
        _side(segment_of, shared, ids, segment, places),
        pd.DataFrame(overlaps | places(pair, shared)),
    )


def _side(
    dense: NDArray[np.int64],
    shared: NDArray[np.int64],
    ids: NDArray[Any],
    members: NDArray[np.int64],
    places: Places,
) -> pd.DataFrame:
    """Return the table of one side, from the pairs that overlap.

    `dense` is the segment of each pair on this side and `shared` its voxels; `members` is the
    segment of each of the parts that `places` gets the groups of.
    """
    import pandas as pd

    present, of_pair = np.unique(dense, return_inverse=True)
    voxels = _sums(of_pair, shared, len(present))
    total = max(int(shared.sum()), 1)
    lost = _sums(of_pair, shared * np.log2(voxels[of_pair] / shared), len(present))
    columns = {
        "voxels": voxels,
        "share": voxels / total,
        "entropy": lost / voxels,
        "contribution": lost / total,
        "pieces": np.bincount(of_pair, minlength=len(present)),
    }
    index = pd.Index(ids[present], name="id")
    return pd.DataFrame(columns | places(np.searchsorted(present, members), voxels), index=index)


def _sums(groups: NDArray[np.int64], values: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the sums by group of numbers or of rows; those of integers are exact."""
    sums = np.zeros((n, *values.shape[1:]), values.dtype)
    np.add.at(sums, groups, values)
    return sums


def _columns(name: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the columns ``name_0``, ... of an array with one column per axis."""
    return {f"{name}_{axis}": column for axis, column in enumerate(values.T)}
