"""Positions where two groups of regions touch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo.graph._region_graph import RegionGraph


def contact_point(
    graph: RegionGraph, sides: NDArray[np.int8], within: NDArray[Any] | None = None
) -> tuple[tuple[int, int], tuple[float, ...]] | None:
    """Return the two superpixels with the largest contact between two sides, and its middle.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels and their boundaries.
    sides : ndarray of int8, shape (n + 1,)
        1 for the superpixels of one side, 2 for those of the other, 0 for the rest.
    within : ndarray, shape (2, ndim), optional
        The box to look in: first index, and one past the last, along each axis.

    Returns
    -------
    ((int, int), tuple of float) or None
        The superpixels of the first and of the second side, as dense ids, and a position on a face
        between them, near the mean of all; None if the sides do not touch, or not in the box.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[1, 1, 2, 3]] * 3), np.zeros((3, 4)))
    >>> contact_point(graph, np.array([0, 1, 2, 2], np.int8))
    ((1, 2), (1.0, 1.5))
    """
    rows = np.empty(graph.n_boundaries, np.int64)
    rows = rows[: _list_between(graph.edges, sides, rows)]
    boxes = meeting_boxes(graph.boxes[graph.edges[rows, 0]], graph.boxes[graph.edges[rows, 1]])
    if within is not None:
        near = boxes_overlap(boxes, within)
        rows, boxes = rows[near], boxes[near]
    faces = graph.boundaries[rows][:, graph.layout.faces].sum(axis=1)
    for k in np.argsort(-faces, kind="stable"):
        u, v = graph.edges[rows[k]].tolist()
        point = _middle(graph, u, v, boxes[k], within)
        if point is not None:
            return ((u, v) if sides[u] == 1 else (v, u)), point
    return None


def boxes_overlap(boxes: NDArray[Any], box: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the boxes that have a pixel in common with `box`."""
    common = (boxes[:, 0] < box[1]) & (box[0] < boxes[:, 1])
    return np.asarray(common.all(axis=1), np.bool_)


def meeting_boxes(a: NDArray[np.int32], b: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the intersection of bounding boxes, enlarged by a pixel; or the gap between them."""
    start = np.maximum(a[..., 0, :], b[..., 0, :]) - 1
    stop = np.minimum(a[..., 1, :], b[..., 1, :]) + 1
    return np.stack([np.minimum(start, stop - 1), np.maximum(start + 1, stop)], axis=-2)


@kernel
def _list_between(edges: Any, sides: Any, out: Any) -> Any:
    """List the edges between side 1 and side 2; return how many there are. No bounds checking."""
    n = 0
    for edge in range(edges.shape[0]):
        side = sides[edges[edge, 0]]  # 0 for most of them
        if side > 0 and side + sides[edges[edge, 1]] == 3:
            out[n] = edge
            n += 1
    return n


def _middle(
    graph: RegionGraph, u: int, v: int, box: NDArray[Any], within: NDArray[Any] | None
) -> tuple[float, ...] | None:
    """Return the face between two superpixels, in a box, nearest to the mean of all faces."""
    image = graph.superpixels.image
    shape = np.array(image.shape)
    start, stop = np.clip(box[0], 0, shape), np.clip(box[1], 0, shape)
    part = image[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))]
    faces = []
    for axis in range(image.ndim):
        for reach in (1, 2) if graph.dams else (1,):
            lower = np.moveaxis(part, axis, 0)
            a, b = lower[:-reach], lower[reach:]
            facing = ((a == u) & (b == v)) | ((a == v) & (b == u))
            if reach == 2:  # across a dam
                facing &= lower[1:-1] == 0
            at = np.argwhere(np.moveaxis(facing, 0, axis)) + start
            points = at.astype(np.float64)
            points[:, axis] += reach / 2
            faces.append(points)
    points = np.concatenate(faces)
    if within is not None:
        points = points[((points >= within[0]) & (points <= within[1] - 1)).all(axis=1)]
    if not len(points):
        return None
    away = (((points - points.mean(axis=0)) * graph.spacing) ** 2).sum(axis=1)
    return tuple(points[int(np.argmin(away))].tolist())
