"""What is under the mouse: a pixel and its superpixel, in 2-D and in 3-D."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.widgets._napari import camera
from napari_agglo.widgets._scene import Scene

_STEPS_A_VOXEL = 8  # along a ray: only the very corner of a voxel may be missed


@dataclass(frozen=True)
class Hit:
    """A pixel of the volume, and the dense superpixel there; 0 is no region."""

    index: tuple[int, ...]
    superpixel: int


def pick(scene: Scene, position: Any, direction: Any = None) -> Hit | None:
    """Return what is at a position in the world, as a viewer gives it; None outside the volume.

    In 3-D it is the first superpixel along the line of sight that is shown: not background, and,
    while the selected segments only are shown, one of theirs. `direction` is that of the line, as
    an event of the mouse has it: with perspective it is another one for each pixel of the canvas.
    By default it is that of the camera.
    """
    layer, graph = scene.segmentation, scene.project.graph
    if layer is None or graph is None:
        return None
    image = graph.superpixels.image
    dims = scene.viewer.dims
    displayed = list(dims.displayed)
    if len(displayed) == 3:
        if direction is None:
            direction = camera(scene.viewer).calculate_nd_view_direction(dims.ndim, displayed)
        return _along(scene, layer, image, np.asarray(position), direction, displayed)
    index = np.floor(np.asarray(layer.world_to_data(position)) + 0.5).astype(np.int64)
    if not _inside(index[None], image.shape)[0]:
        return None
    at = tuple(int(i) for i in index)
    return Hit(at, int(image[at]))


def _along(
    scene: Scene, layer: Any, image: Any, position: Any, direction: Any, displayed: list[int]
) -> Hit | None:
    start, end = layer.get_ray_intersections(position, direction, displayed, world=True)
    if start is None or end is None:
        return None
    way = np.asarray(end, float) - np.asarray(start, float)
    n = max(2, int(np.ceil(np.abs(way).max() * _STEPS_A_VOXEL)) + 1)
    points = np.asarray(start) + np.linspace(0, 1, n)[:, None] * way
    index = np.floor(points + 0.5).astype(np.int64)
    index = index[_inside(index, image.shape)]
    if not len(index):
        return None
    found = _values(image, index)
    shown = _shown(scene)[found]
    if not shown.any():
        return Hit(tuple(int(i) for i in index[0]), 0)
    first = int(np.argmax(shown))
    return Hit(tuple(int(i) for i in index[first]), int(found[first]))


def _values(image: Any, index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the image at many pixels; of one on a disk, the box that holds them is read."""
    if isinstance(image, np.ndarray):
        return image[tuple(index.T)].astype(np.int64)
    low, high = index.min(axis=0), index.max(axis=0) + 1
    box = np.asarray(image[tuple(slice(int(a), int(b)) for a, b in zip(low, high, strict=True))])
    return box[tuple((index - low).T)].astype(np.int64)


def _shown(scene: Scene) -> NDArray[np.bool_]:
    """Return which superpixels are shown, by dense id."""
    project = scene.project
    table = project.table()
    if scene.isolated:
        shown = np.asarray(np.isin(table, [project.active, *project.selected]))
    else:
        shown = np.ones(len(table), bool)
    shown[0] = False
    return shown


def _inside(index: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return np.asarray(((index >= 0) & (index < np.asarray(shape))).all(axis=1))
