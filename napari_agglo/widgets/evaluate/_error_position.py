"""The place of an error of the breakdown in the viewer."""

# In its own file: computation without Qt.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.evaluate import Breakdown
from napari_agglo.graph import RegionGraph

if TYPE_CHECKING:
    import pandas as pd

_MOST = 12  # outlined partners
_PART = 0.02  # of a segment: a smaller part of a gold object is a ragged border, no merge
_MUCH = 0.1  # of a gold object: a segment with a larger part is a partner


@dataclass(frozen=True, eq=False)
class Place:
    """The place of an error, with dense names of segments."""

    active: int  # the wrong segment, or the largest piece of the gold object
    partners: tuple[int, ...]  # the other pieces of the gold objects concerned
    # A voxel of the second largest part, where the error is visible.
    index: tuple[int, ...]
    box: NDArray[np.int64]  # first and past the last pixel of the segment, or of all pieces


def place_of(
    errors: Breakdown, kind: str, one: int, graph: RegionGraph, table: NDArray[np.uint32]
) -> Place | None:
    """Return the place of the false merge of a segment, or of the false split of a gold object.

    None if it no longer exists: the plot may be older than the segments.
    """
    if kind == "false merge":
        if one not in errors.segments.index:
            return None
        parts = errors.merged(one)
        names = [one, *_others(errors, one, parts)]
    else:
        if one not in errors.gold.index:
            return None
        parts = errors.pieces(one)
        names = parts["id"].tolist()
    dense = _dense(graph, names[: _MOST + 1])
    dense = [name for name in dense if name and bool((table == name).any())]
    if not dense:
        return None
    whole = dense[:1] if kind == "false merge" else dense
    members = np.flatnonzero(np.isin(table, whole))
    boxes = graph.boxes[members]
    box = np.stack([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)]).astype(np.int64)
    return Place(dense[0], tuple(dense[1:]), _voxel(parts), box)


def _others(errors: Breakdown, one: int, parts: pd.DataFrame) -> list[int]:
    """Return the segments with large parts of the objects merged in one, the largest first."""
    merged = parts.loc[parts["fraction"] >= _PART, "id"]
    rows = errors.overlaps[errors.overlaps["gold"].isin(merged)]
    sizes = errors.gold["voxels"].reindex(rows["gold"]).to_numpy()
    much = (rows["voxels"].to_numpy() >= _MUCH * sizes) & (rows["segment"] != np.uint64(one))
    rows = rows[much].sort_values("voxels", ascending=False)
    return list(dict.fromkeys(int(name) for name in rows["segment"]))


def _voxel(parts: pd.DataFrame) -> tuple[int, ...]:
    row: Any = parts.iloc[min(1, len(parts) - 1)]
    names = [str(name) for name in parts.columns if str(name).startswith("voxel_")]
    return tuple(int(row[name]) for name in names)


def _dense(graph: RegionGraph, ids: list[int]) -> list[int]:
    """Return the dense names of segments by the user's ids, in the same order."""
    users = np.array(ids, np.uint64)
    order = np.argsort(graph.ids, kind="stable")
    at = np.minimum(np.searchsorted(graph.ids, users, sorter=order), len(order) - 1)
    names = order[at]
    return [int(name) for name in names[graph.ids[names] == users]]
