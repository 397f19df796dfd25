"""Where two sides of a decision meet: two superpixels that touch, and the place between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph
from napari_agglo.session._suggest._decisions import meeting_boxes


@dataclass(frozen=True)
class Meeting:
    """Two superpixels that touch, and a point on the face between them, in pixel indices."""

    superpixels: tuple[int, int]
    position: tuple[float, ...]


def meeting(
    graph: RegionGraph, sides: NDArray[np.int8], within: NDArray[Any] | None = None
) -> Meeting | None:
    """Find where two sides meet: in the middle of the largest contact of two superpixels.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels.
    sides : ndarray of int8, shape (n + 1,)
        1 for the superpixels of one side, 2 for those of the other, 0 for the rest.
    within : ndarray of int, shape (2, ndim), optional
        A box; only what is in it counts.

    Returns
    -------
    Meeting or None
        None if they do not meet, or not in the box.
    """
    rows = np.flatnonzero(sides[graph.edges[:, 0]])
    ends = sides[graph.edges[rows]]
    rows = rows[ends.sum(axis=1) == 3]
    boxes = meeting_boxes(graph.boxes[graph.edges[rows, 0]], graph.boxes[graph.edges[rows, 1]])
    if within is not None:
        near = overlap(boxes, within)
        rows, boxes = rows[near], boxes[near]
    faces = graph.boundaries[rows][:, graph.layout.faces].sum(axis=1)
    for k in np.argsort(-faces, kind="stable"):
        u, v = graph.edges[rows[k]].tolist()
        point = _middle(graph, u, v, boxes[k], within)
        if point is not None:
            pair = (u, v) if sides[u] == 1 else (v, u)
            return Meeting(pair, point)
    return None


def overlap(boxes: NDArray[Any], box: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which boxes have a pixel in common with `box`."""
    common = (boxes[:, 0] < box[1]) & (box[0] < boxes[:, 1])
    return np.asarray(common.all(axis=1), np.bool_)


def _middle(
    graph: RegionGraph, u: int, v: int, box: NDArray[Any], within: NDArray[Any] | None
) -> tuple[float, ...] | None:
    """Return the face between two superpixels, in a box, that is nearest to the middle of all."""
    image = graph.superpixels.image
    shape = np.array(image.shape)
    start, stop = np.clip(box[0], 0, shape), np.clip(box[1], 0, shape)
    part = image[tuple(slice(a, b) for a, b in zip(start, stop, strict=True))]
    found = []
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
            found.append(points)
    points = np.concatenate(found)
    if within is not None:
        points = points[((points >= within[0]) & (points <= within[1] - 1)).all(axis=1)]
    if not len(points):
        return None
    away = (((points - points.mean(axis=0)) * graph.spacing) ** 2).sum(axis=1)
    return tuple(points[int(np.argmin(away))].tolist())
