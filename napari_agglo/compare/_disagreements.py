"""Disagreements of two segmentations: a code for each pixel, and the largest differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import kernel
from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration._merge_tree import map_labels
from napari_agglo.compare._matching import Overlaps, match_largest, overlaps
from napari_agglo.errors import InvalidInput, check_choice, check_whole
from napari_agglo.evaluate._label_runs import boxes_of, code_image, coordinate_sums, nearest_voxels
from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import (
    Contingency,
    DenseLabels,
    check_same_shape,
    contingency,
    dense_labels,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Side:
    """Overlaps as parts of their segments on one side.

    Attributes
    ----------
    main : ndarray of int64, shape (k,)
        The largest overlap of the same segment, of ties the first; every other overlap is a part
        that the other segmentation has elsewhere.
    bits : ndarray of float64, shape (k,)
        Contribution of the overlap to the conditional entropy of the other side, with its share of
        the contribution of the main one; 0 for main ones, so that the parts sum to the whole.
    """

    main: NDArray[np.int64]
    bits: NDArray[np.float64]

    def parts(self) -> NDArray[np.bool_]:
        """Return a mask of the overlaps that are not the main ones of their segments."""
        return np.asarray(self.main != np.arange(len(self.main)))


def side(names: NDArray[np.int64], n_names: int, sizes: NDArray[np.int64]) -> Side:
    """Group overlaps by their segment.

    Examples
    --------
    Segment 1 is halved: one half is the main part, the other accounts for the whole bit.

    >>> halves = side(np.array([1, 1]), 2, np.array([8, 8]))
    >>> halves.main, halves.bits
    (array([0, 0]), array([0., 1.]))
    """
    best = np.full(n_names, -1, np.int64)
    total = np.zeros(n_names, np.int64)
    _main_kernel(names, sizes, best, total)
    main = best[names]
    own = sizes * np.log2(total[names] / sizes) if len(sizes) else np.zeros(0)
    rest = total[names] - sizes[main]
    bits = np.zeros(len(names))
    part = main != np.arange(len(names))
    bits[part] = own[part] + own[main[part]] * (sizes[part] / rest[part])
    return Side(main, bits / max(int(sizes.sum()), 1))


def codes_of(pairs: Overlaps) -> NDArray[np.uint8]:
    """Return the code of each overlap: 1 a part of its first segment, 2 of its second, 3 of both.

    Examples
    --------
    >>> from napari_agglo.compare import overlaps
    >>> codes_of(overlaps([1, 1, 2], [1, 2, 2], [5, 4, 3]))
    array([0, 1, 2], dtype=uint8)
    """
    codes = np.full(len(pairs), 3, np.uint8)
    for bit, names, n in ((1, pairs.first, pairs.n_first), (2, pairs.second, pairs.n_second)):
        best, total = np.full(n, -1, np.int64), np.zeros(n, np.int64)
        _main_kernel(names, pairs.sizes, best, total)
        codes[best[best >= 0]] &= np.uint8(3 - bit)  # main overlaps are not parts
    return codes


@kernel
def _main_kernel(names: Any, sizes: Any, best: Any, total: Any) -> None:
    """Find the largest overlap and the pixels of each name. Nothing is checked."""
    for i in range(names.size):
        name = names[i]
        total[name] += sizes[i]
        if best[name] < 0 or sizes[i] > sizes[best[name]]:
            best[name] = i


Kind = Literal["merged", "split"]
Places = Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True, eq=False)
class Disagreements:
    """Differences of segmentation a and segmentation b.

    A segment of a that b divides has a main part, the largest, on which both agree; its other parts
    are *merged* (with the main part) in a and split in b. Parts of a segment of b are *split* in a
    and merged in b.

    Attributes
    ----------
    codes : ndarray of uint8
        Code of each pixel, or each superpixel: 0 agree, 1 merged in a, 2 split in a, 3 both. Pixels
        without a segment in either have 0.
    overlaps : Overlaps
        The pairs of segments, by dense names.
    """

    codes: NDArray[np.uint8]
    overlaps: Overlaps
    _ids: tuple[NDArray[np.uint64], NDArray[np.uint64]]
    _places: Places

    def __repr__(self) -> str:
        merged, split = (int(one.parts().sum()) for one in self._sides)
        return (
            f"Disagreements({merged} parts merged in a, {self.merged_bits:.3f} bits; "
            f"{split} split in a, {self.split_bits:.3f} bits)"
        )

    @property
    def merged_bits(self) -> float:
        """H(b|a): the false merges of a, if b is the gold standard."""
        return float(self._sides[0].bits.sum())

    @property
    def split_bits(self) -> float:
        """H(a|b): the false splits of a, if b is the gold standard."""
        return float(self._sides[1].bits.sum())

    def largest(self, n: int = 20, *, kind: Kind | None = None, min_size: int = 1) -> pd.DataFrame:
        """Return the `n` differences that contribute most to the VI of a and b, largest first.

        Parameters
        ----------
        n : int
            Number of rows, at most.
        kind : {"merged", "split"}, optional
            Only parts merged in a, or only parts split in a.
        min_size : int
            Least number of pixels of a part.

        Returns
        -------
        pandas.DataFrame
            One row for each part: ``kind``; ``whole``, the segment that has it, of a if it is
            merged, of b if it is split; ``part`` and ``main``, the segments of the other one that
            hold the part and the main part; ``size`` of the part in pixels; ``bits`` of VI, which
            sum to the VI over all rows; ``voxel_0``, ..., a voxel of the part near its middle; and
            ``box_start_0``, ``box_stop_0``, ..., its bounding box.
        """
        import pandas as pd

        check_whole("n", n, 0)
        check_choice("kind", kind, (*get_args(Kind), None))
        check_whole("min_size", min_size, 0)
        rows, kinds = self._ranked(n, kind, min_size)
        columns: dict[str, Any] = {"kind": np.array(get_args(Kind))[kinds]}
        names = (self._ids[0][self.overlaps.first], self._ids[1][self.overlaps.second])
        mains = np.where(kinds == 0, self._sides[0].main[rows], self._sides[1].main[rows])
        merged = kinds == 0
        columns["whole"] = np.where(merged, names[0][rows], names[1][rows])
        columns["part"] = np.where(merged, names[1][rows], names[0][rows])
        columns["main"] = np.where(merged, names[1][mains], names[0][mains])
        columns["size"] = self.overlaps.sizes[rows]
        columns["bits"] = np.where(merged, self._sides[0].bits[rows], self._sides[1].bits[rows])
        voxels, boxes = self._places(rows)
        for axis in range(voxels.shape[1]):
            columns[f"voxel_{axis}"] = voxels[:, axis]
        for axis in range(voxels.shape[1]):
            columns[f"box_start_{axis}"] = boxes[:, 0, axis]
            columns[f"box_stop_{axis}"] = boxes[:, 1, axis]
        return pd.DataFrame(columns)

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        pairs = self.overlaps
        return (
            side(pairs.first, pairs.n_first, pairs.sizes),
            side(pairs.second, pairs.n_second, pairs.sizes),
        )

    def _ranked(
        self, n: int, kind: Kind | None, min_size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the overlaps to list, and the kind of each: merged (0) or split (1) in a."""
        large = self.overlaps.sizes >= min_size
        rows = [
            np.flatnonzero(one.parts() & large & (kind in (None, name)))
            for one, name in zip(self._sides, get_args(Kind), strict=True)
        ]
        kinds = np.repeat([0, 1], [len(part) for part in rows])
        bits = np.concatenate([one.bits[part] for one, part in zip(self._sides, rows, strict=True)])
        order = np.argsort(-bits, kind="stable")[:n]
        return np.concatenate(rows)[order], kinds[order]


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
        The segments of `other`. Pairs are matched one to one, the largest overlap first; of ties
        the smaller ids. A segment without a partner gets the smallest label that no segment of the
        reference and no other one has. Of the type of the reference, or a wider one.

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
    if dtype.kind == "f":  # numpy promotes int64 and uint64 to float64
        dtype = np.dtype(np.uint64)
    out = np.empty(theirs.image.shape, dtype.newbyteorder("="))
    map_labels(theirs.image.reshape(-1), labels.astype(out.dtype), out.reshape(-1))
    return out


def disagreements(a: Any, b: Any, *, progress: ProgressCallback | None = None) -> Disagreements:
    """Find the parts that one segmentation has merged and the other has split.

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
    >>> parts = disagreements(np.array([5, 5, 5, 8, 8]), np.array([1, 1, 2, 3, 3]))
    >>> parts.codes
    array([0, 0, 1, 0, 0], dtype=uint8)
    >>> parts.largest()[["kind", "whole", "part", "main", "size", "voxel_0"]]
         kind  whole  part  main  size  voxel_0
    0  merged      5     2     1     1        2
    """
    one, two = _both(a, b, "a", "b")
    table = contingency(one, two, ignore_labels=True, progress=progress)
    pairs = _pairs(table)
    codes = code_image(table, one, two, codes_of(pairs), progress)

    def places(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        listed, back = np.unique(rows, return_inverse=True)
        some = Contingency(
            table.rows[listed], table.columns[listed], table.counts[listed], one.ids, two.ids
        )
        middles = coordinate_sums(some, one, two) / some.counts[:, None]
        voxels = nearest_voxels(some, one, two, np.arange(listed.size), middles)
        return voxels[back], boxes_of(some, one, two)[back]

    return Disagreements(codes, pairs, (one.ids, two.ids), places)


def _both(a: Any, b: Any, first: str, second: str) -> tuple[DenseLabels, DenseLabels]:
    one, two = dense_labels(a, first), dense_labels(b, second)
    check_same_shape(one.image, two.image, first, second)
    return one, two


def _pairs(table: Contingency) -> Overlaps:
    return Overlaps(
        table.rows, table.columns, table.counts, np.arange(table.counts.size), table.row_ids.size,
        table.column_ids.size,
    )  # fmt: skip


def table_codes(a: ArrayLike, b: ArrayLike, sizes: ArrayLike) -> NDArray[np.uint8]:
    """Return the codes of `table_disagreements` alone, in milliseconds.

    Parameters
    ----------
    a, b : array of int, shape (n + 1,)
        Name of the segment of each superpixel, as of `MergeTree.lut`; 0 is no segment.
    sizes : array of int, shape (n + 1,)
        Pixels of each superpixel, ``graph.sizes``.

    Returns
    -------
    ndarray of uint8, shape (n + 1,)
        0 agree, 1 merged in a but split in b, 2 split in a but merged in b, 3 both.

    Examples
    --------
    >>> table_codes([0, 1, 1, 3], [0, 1, 2, 3], [0, 9, 2, 5])
    array([0, 0, 1, 0], dtype=uint8)
    """
    return _spread(overlaps(a, b, sizes))


def table_disagreements(a: ArrayLike, b: ArrayLike, graph: RegionGraph) -> Disagreements:
    """Find the disagreements of two partitions of the superpixels of a graph.

    Parameters
    ----------
    a, b : array of int, shape (n + 1,)
        Name of the segment of each superpixel, as of `MergeTree.lut`; 0 is no segment.
    graph : RegionGraph
        The superpixels.

    Returns
    -------
    Disagreements
        With a code for each superpixel, and segments by the user's ids of their names.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[5, 5, 5, 6, 7]]), np.zeros((1, 5)))
    >>> parts = table_disagreements([0, 1, 1, 3], [0, 1, 2, 3], graph)
    >>> parts
    Disagreements(1 parts merged in a, 0.649 bits; 0 split in a, 0.000 bits)
    >>> parts.largest()[["kind", "whole", "part", "main", "size", "voxel_1"]]
         kind  whole  part  main  size  voxel_1
    0  merged      5     6     5     1        3
    """
    pairs = overlaps(a, b, graph.sizes)
    if max(pairs.n_first, pairs.n_second) > len(graph.ids):
        raise InvalidInput(
            f"`a` and `b` must have names of superpixels, 0 to {graph.n_regions}, got "
            f"{max(pairs.n_first, pairs.n_second) - 1}",
            argument="a" if pairs.n_first > len(graph.ids) else "b",
            remedy="pass tables of this graph",
        )

    def places(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return _places(graph, pairs, rows)

    return Disagreements(_spread(pairs), pairs, (graph.ids, graph.ids), places)


def _spread(pairs: Overlaps) -> NDArray[np.uint8]:
    """Return the code of each piece; index -1, no pair, has the 0 that is appended."""
    return np.append(codes_of(pairs), np.uint8(0))[pairs.of_piece]


def _places(
    graph: RegionGraph, pairs: Overlaps, rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a voxel and the box of each of the overlaps `rows`."""
    ndim = graph.layout.ndim
    voxels = np.zeros((len(rows), ndim), np.int64)
    boxes = np.zeros((len(rows), 2, ndim), np.int64)
    sums = graph.regions[:, graph.layout.coordinates]
    spacing = np.asarray(graph.spacing)
    for k, row in enumerate(rows):
        members = np.flatnonzero(pairs.of_piece == row)
        boxes[k] = graph.boxes[members, 0].min(axis=0), graph.boxes[members, 1].max(axis=0)
        middle = sums[members].sum(axis=0) / graph.sizes[members].sum()
        own = sums[members] / graph.sizes[members, None]
        nearest = int(members[np.argmin((((own - middle) * spacing) ** 2).sum(axis=1))])
        start, stop = graph.boxes[nearest].astype(np.int64)
        window = tuple(slice(a, b) for a, b in zip(start, stop, strict=True))
        inside = np.argwhere(graph.superpixels.image[window] == nearest) + start
        voxels[k] = inside[np.argmin((((inside - middle) * spacing) ** 2).sum(axis=1))]
    return voxels, boxes
