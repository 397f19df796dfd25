"""Statistics and graph of superpixels from blocks: partial tables, their reduction, the whole.

A block reads its voxels and one plane above them along each axis (two where dams count): a face
belongs to its lower voxel, so every face is counted in one block. Rows are whole numbers, and the
sum of the rows of all blocks is, bit for bit, that of `region_graph` on the whole volume. It is in
its own file because it knows neither files of a run nor plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.blocks._block_grid import Slices, lengths
from napari_agglo.blocks._tables import Table
from napari_agglo.graph import Layout, Window, add_contact, add_rows, scan
from napari_agglo.volumes import DenseLabels, check_cues, dense_labels

Arrays = dict[str, NDArray[Any]]
_NOWHERE = np.iinfo(np.int32).max


def partial_graph(
    labels: NDArray[Any] | DenseLabels,
    cues: Mapping[str, NDArray[Any]],
    core: Slices,
    whole: tuple[int, ...],
    layout: Layout,
    *,
    ranges: Mapping[str, tuple[float, float]],
    nan: Any,
    dams: bool,
    progress: ProgressCallback | None = None,
) -> Arrays:
    """Return the table of a block: its regions and boundaries, as far as the block has them.

    `labels` and `cues` are the block and the planes above it; `core` is the place of the block in
    the volume. Regions are in ascending order of their ids, and boundaries name two of their rows.
    """
    dense = dense_labels(labels, "block", progress=progress)
    checked = check_cues(cues, dense.image.shape, ranges, nan=nan, progress=progress)
    window = Window(tuple(s.start for s in core), lengths(core), whole)
    edges, regions, boundaries, boxes = scan(
        dense.image, checked.values, layout, len(dense.ids), dams, progress, window
    )
    # Labels of the planes above of which nothing belongs to this block.
    present: NDArray[np.bool_] = np.any(regions, axis=1)
    present[edges.reshape(-1)] = True
    present[0] = False
    kept = np.flatnonzero(present)
    number = np.cumsum(present) - 1
    low = boxes[:, 0].copy()
    low[regions[:, 0] == 0] = _NOWHERE
    return {
        "ids": dense.ids[kept],
        "low": low[kept],
        "high": boxes[kept, 1],
        "edges": number[edges],
        "regions": regions[kept],
        "boundaries": boundaries,
    }


def added(paths: Sequence[Path], layout: Layout) -> Arrays:
    """Return the sum of partial tables: the table of all their blocks together.

    Only one table at a time is in memory beside the sum.
    """
    tables = [Table(path) for path in paths]
    each = [table.read("ids") for table in tables]
    ids = union_of(each) if each else np.zeros(0, np.uint64)
    rows = [np.searchsorted(ids, one) for one in each]
    n = np.int64(max(len(ids), 1))
    keys = []
    for table, row in zip(tables, rows, strict=True):
        pairs = row[table.read("edges")]
        keys.append(pairs[:, 0] * n + pairs[:, 1])
    unique = union_of(keys) if keys else np.zeros(0, np.int64)
    out: Arrays = {
        "ids": ids,
        "low": np.full((len(ids), layout.ndim), _NOWHERE, np.int32),
        "high": np.zeros((len(ids), layout.ndim), np.int32),
        "edges": np.stack(np.divmod(unique, n), axis=1),
        "regions": np.zeros((len(ids), layout.region_width), np.int64),
        "boundaries": np.zeros((len(unique), layout.boundary_width), np.int64),
    }
    for table, row, key in zip(tables, rows, keys, strict=True):
        at = np.searchsorted(unique, key)
        for name, into in (("regions", row), ("boundaries", at)):
            for start, piece in table.pieces(name):
                add_rows(piece, into[start : start + len(piece)], out[name])
        # ids are unique in a table, so no row is named twice
        out["low"][row] = np.minimum(out["low"][row], table.read("low"))
        out["high"][row] = np.maximum(out["high"][row], table.read("high"))
    return out


def union_of(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the distinct numbers of arrays, best of ascending ones, ascending.

    A stable sort merges runs that are sorted already, in a fraction of the time of `np.unique`.
    """
    every = np.concatenate(parts)
    every.sort(kind="stable")
    is_new = np.ones(len(every), np.bool_)
    np.not_equal(every[1:], every[:-1], out=is_new[1:])
    return every[is_new]


def whole_graph(table: Arrays, layout: Layout) -> Arrays:
    """Return the arrays of a `RegionGraph` from the table of all blocks."""
    n = len(table["ids"])
    ids = np.zeros(n + 1, np.uint64)
    ids[1:] = table["ids"]
    regions = np.zeros((n + 1, layout.region_width), np.int64)
    regions[1:] = table["regions"]
    boxes = np.zeros((n + 1, 2, layout.ndim), np.int32)
    boxes[1:, 0], boxes[1:, 1] = table["low"], table["high"]
    edges = table["edges"] + 1
    add_contact(edges, table["boundaries"], layout, regions)
    return {
        "ids": ids,
        "edges": edges,
        "regions": regions,
        "boundaries": table["boundaries"],
        "boxes": boxes,
    }
