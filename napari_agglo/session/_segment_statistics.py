"""Statistics of segments: the sums of the rows of their superpixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.graph import RegionGraph


@dataclass(frozen=True, eq=False)
class SegmentStatistics:
    """Statistics of the segments of a partition: a row for each segment, by ascending id."""

    graph: RegionGraph
    ids: NDArray[np.uint64]
    number: NDArray[np.int64]  # row of the segment that holds superpixel 1, 2, ..., shape (n,)
    superpixels: NDArray[np.int64]  # number of superpixels
    sizes: NDArray[np.int64]  # in pixels
    border_faces: NDArray[np.int64]  # number of faces on the border of the volume
    centroids: NDArray[np.float64]  # mean pixel index
    boxes: NDArray[np.int32]  # bounding boxes, shape (s, 2, ndim)
    cue_means: NDArray[np.float64]  # 0..1, shape (s, number of cues)

    def boundaries(self) -> Boundaries:
        """Return the boundaries between segments, as sums over those of their superpixels."""
        graph, layout = self.graph, self.graph.layout
        pairs = np.sort(self.number[graph.edges - 1], axis=1)
        between = pairs[:, 0] != pairs[:, 1]
        n = max(len(self.ids), 1)
        keys, which = np.unique(pairs[between, 0] * n + pairs[between, 1], return_inverse=True)
        starts, order = _groups(which, len(keys))
        columns = [layout.boundary_sums(cue).start for cue in range(layout.n_cues)]
        rows = graph.boundaries[between][order]
        faces, sums = rows[:, layout.faces], rows[:, columns]
        if len(keys):  # reduceat needs a group
            faces, sums = np.add.reduceat(faces, starts), np.add.reduceat(sums, starts)
        samples = 2 * 255.0 * (faces @ (layout.source_table()[:, 2:] >= 0).T)
        means = np.full(sums.shape, 0.5)  # of a boundary without a value
        np.divide(sums, samples, out=means, where=samples > 0)
        return Boundaries(np.stack(np.divmod(keys, n), axis=1), faces, means)


@dataclass(frozen=True, eq=False)
class Boundaries:
    """Boundaries between segments: numbers of both, faces along each axis, mean of each cue."""

    pairs: NDArray[np.int64]
    faces: NDArray[np.int64]
    cue_means: NDArray[np.float64]


def segments_of(graph: RegionGraph, lut: ArrayLike) -> SegmentStatistics:
    """Return the statistics of segments, as sums over superpixels; no pixel is read."""
    table = np.asarray(lut, np.uint64)
    layout = graph.layout
    ids, number, counts = np.unique(table[1:], return_inverse=True, return_counts=True)
    starts, order = _groups(number, len(ids))
    cues = [layout.region_sums(cue).start for cue in range(layout.n_cues)]
    wanted = [0, *_columns(layout.border), *_columns(layout.coordinates), *cues]
    rows = graph.regions[1:, wanted][order]
    boxes = graph.boxes[1:][order]
    if len(ids):  # reduceat needs a group
        rows = np.add.reduceat(rows, starts)
        boxes = np.stack(
            [np.minimum.reduceat(boxes[:, 0], starts), np.maximum.reduceat(boxes[:, 1], starts)],
            axis=1,
        )
    sizes, d = rows[:, 0], layout.ndim
    return SegmentStatistics(
        graph=graph,
        ids=ids,
        number=number.astype(np.int64),
        superpixels=counts,
        sizes=sizes,
        border_faces=rows[:, 1 : 1 + d].sum(axis=1),
        centroids=rows[:, 1 + d : 1 + 2 * d] / sizes[:, None],
        boxes=boxes,
        cue_means=rows[:, 1 + 2 * d :] / (255.0 * sizes[:, None]),
    )


def _columns(part: slice) -> range:
    return range(part.start, part.stop)


def _groups(number: NDArray[np.intp], n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the start of each of `n` groups in sorted order, none of them empty, and the order."""
    order = np.argsort(number, kind="stable")
    return np.searchsorted(number[order], np.arange(n)), order
