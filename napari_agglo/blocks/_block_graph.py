"""Statistics and graph of superpixels from blocks: partial tables, their reduction, the whole.

A block reads its voxels and one plane above them along each axis (two where dams count): a face
belongs to its lower voxel, so every face is counted in one block. Rows are whole numbers, and the
sum of the rows of all blocks is, bit for bit, that of `region_graph` on the whole volume. It is in
its own file because it knows neither files of a run nor plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.blocks._block_grid import Slices, lengths
from napari_agglo.blocks._tables import Rows, Table, rows_of_a_piece
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


class TableSum:
    """The sum of partial tables: the table of all their blocks together, rows piece by piece.

    Ids and pairs of all tables are in memory; of the rows of statistics, which are the most, one
    piece of each table and of the sum at a time. The pairs of each table ascend.

    Attributes
    ----------
    ids : ndarray of uint64
        Of the regions, ascending.
    n_boundaries : int
    """

    def __init__(self, paths: Sequence[Path], layout: Layout) -> None:
        self._tables = [Table(path) for path in paths]
        self._layout = layout
        each = [table.read("ids") for table in self._tables]
        self.ids = union_of(each) if each else np.zeros(0, np.uint64)
        self._regions = [np.searchsorted(self.ids, one) for one in each]
        self._n = np.int64(max(len(self.ids), 1))
        keys = [
            np.concatenate([np.zeros(0, np.int64), *self._keys(table, row)])
            for table, row in zip(self._tables, self._regions, strict=True)
        ]
        self._pairs = union_of(keys) if keys else np.zeros(0, np.int64)
        self.n_boundaries = len(self._pairs)
        for k, key in enumerate(keys):  # one after the other, so that each is freed
            keys[k] = np.searchsorted(self._pairs, key)
        self._boundaries = keys

    def _keys(self, table: Table, row: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
        for _, pairs in table.pieces("edges"):
            yield row[pairs[:, 0]] * self._n + row[pairs[:, 1]]

    def edges(self, start: int = 0, stop: int | None = None) -> NDArray[np.int64]:
        """Return the pairs of regions of some boundaries, as rows of `ids`."""
        return np.stack(np.divmod(self._pairs[start:stop], self._n), axis=1)

    def corners(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the lower and the upper corners of all regions."""
        low = np.full((len(self.ids), self._layout.ndim), _NOWHERE, np.int32)
        high = np.zeros((len(self.ids), self._layout.ndim), np.int32)
        for table, row in zip(self._tables, self._regions, strict=True):
            # ids are unique in a table, so no row is named twice
            low[row] = np.minimum(low[row], table.read("low"))
            high[row] = np.maximum(high[row], table.read("high"))
        return low, high

    def regions(self) -> Rows:
        """Return the statistics of all regions."""
        shape = (len(self.ids), self._layout.region_width)
        return Rows(shape, self._summed("regions", self._regions, shape))

    def boundaries(self) -> Rows:
        """Return the statistics of all boundaries."""
        shape = (self.n_boundaries, self._layout.boundary_width)
        return Rows(shape, self._summed("boundaries", self._boundaries, shape))

    def _summed(
        self, name: str, into: Sequence[NDArray[np.int64]], shape: tuple[int, int]
    ) -> Iterator[NDArray[np.int64]]:
        readers = [_Reader(table, name) for table in self._tables]
        step = rows_of_a_piece(shape[1])
        for start in range(0, shape[0], step):
            stop = min(start + step, shape[0])
            out = np.zeros((stop - start, shape[1]), np.int64)
            for reader, at in zip(readers, into, strict=True):
                for first, rows in reader.until(int(np.searchsorted(at, stop))):
                    add_rows(rows, at[first : first + len(rows)] - start, out)
            yield out

    def arrays(self) -> dict[str, NDArray[Any] | Rows]:
        """Return the arrays of the table, to be written."""
        low, high = self.corners()
        return {
            "ids": self.ids, "low": low, "high": high, "edges": self.edges(),
            "regions": self.regions(), "boundaries": self.boundaries(),
        }  # fmt: skip

    def whole(self) -> Arrays:
        """Return the arrays of the table with all rows in memory."""
        return {
            name: _filled(array) if isinstance(array, Rows) else array
            for name, array in self.arrays().items()
        }


class _Reader:
    """Rows of an array of a table from the first to the last, any number at a time."""

    def __init__(self, table: Table, name: str) -> None:
        self._pieces = table.pieces(name)
        self._rows: NDArray[Any] = np.zeros((0, 0), np.int64)
        self._first = self._at = 0

    def until(self, stop: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the rows from the last that was given to `stop`, and the number of the first."""
        while self._at < stop:
            if self._at >= self._first + len(self._rows):
                self._first, self._rows = next(self._pieces)
            rows = self._rows[self._at - self._first : stop - self._first]
            yield self._at, rows
            self._at += len(rows)


def _filled(rows: Rows) -> NDArray[np.int64]:
    out = np.empty(rows.shape, np.int64)
    start = 0
    for piece in rows.pieces:
        out[start : start + len(piece)] = piece
        start += len(piece)
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
    regions = _with_background(table["regions"])
    edges = table["edges"] + 1
    add_contact(edges, table["boundaries"], layout, regions)
    return {
        "ids": _with_background(table["ids"]),
        "edges": edges,
        "regions": regions,
        "boundaries": table["boundaries"],
        "boxes": _boxes(table["low"], table["high"]),
    }


def stream_graph(
    total: TableSum, layout: Layout, save: Callable[[str, NDArray[Any] | Rows], None]
) -> NDArray[np.int64]:
    """Save the arrays of a `RegionGraph`, boundaries piece by piece; return the sizes of regions.

    They are those of `whole_graph`, bit for bit.
    """
    contact = np.zeros((len(total.ids) + 1, layout.ndim), np.int64)
    step = rows_of_a_piece(layout.boundary_width)

    def boundaries() -> Iterator[NDArray[np.int64]]:
        for k, rows in enumerate(total.boundaries().pieces):
            edges = total.edges(k * step, (k + 1) * step) + 1
            faces = np.ascontiguousarray(rows[:, layout.faces])
            for side in (0, 1):
                add_rows(faces, np.ascontiguousarray(edges[:, side]), contact)
            yield rows

    n = total.n_boundaries
    save("boundaries", Rows((n, layout.boundary_width), boundaries()))
    starts = range(0, n, step)
    save("edges", Rows((n, 2), (total.edges(start, start + step) + 1 for start in starts)))
    save("ids", _with_background(total.ids))
    save("boxes", _boxes(*total.corners()))
    regions = np.zeros((len(contact), layout.region_width), np.int64)
    start = 1
    for rows in total.regions().pieces:
        regions[start : start + len(rows)] = rows
        start += len(rows)
    regions[:, layout.contact] += contact
    save("regions", regions)
    return regions[:, 0].copy()


def _with_background(rows: NDArray[Any]) -> NDArray[Any]:
    """Return an array with a first row of zeros, for the label 0."""
    return np.concatenate([np.zeros((1, *rows.shape[1:]), rows.dtype), rows])


def _boxes(low: NDArray[np.int32], high: NDArray[np.int32]) -> NDArray[np.int32]:
    return _with_background(np.stack([low, high], axis=1))
