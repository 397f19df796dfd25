"""Superpixels: a seeded watershed of a boundary map, in any number of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels._arguments import check_seeds, least_size, sigmas_in_voxels
from napari_agglo.superpixels._block import Recipe, segment_block
from napari_agglo.superpixels._boundary import check_values
from napari_agglo.superpixels._grid import Array
from napari_agglo.superpixels._slices import Tick
from napari_agglo.volumes import (
    ValueGate,
    check_mask,
    check_nan,
    check_same_spacing,
    check_spacing,
    in_memory,
    is_lazy,
    refuse_colours,
    require_memory,
    unwrap,
)

_BYTES_PER_VOXEL = 14  # levels 2, state 4, queue 4, result 4; measured 12, as not all at once
_BLOCK = 1 << 19  # voxels of the planes that are done at once: they should stay in the cache


def oversegment(
    boundary: object,
    *,
    spacing: Sequence[float] | None = None,
    per_plane: bool = False,
    sigma: float | None = None,
    min_size: int | None = None,
    mask: object | None = None,
    seeds: object | None = None,
    value_range: Sequence[float] | None = None,
    nan: Literal["refuse", "boundary"] = "refuse",
    progress: ProgressCallback | None = None,
) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Divide an image into superpixels: the basins of its boundary map.

    The map is smoothed a little, each regional minimum becomes a seed, and the seeds are flooded,
    lowest level first, until the whole image (or mask) is covered. Superpixels that are too small
    are dissolved. The same input gives the same labels, bit for bit.

    Parameters
    ----------
    boundary : array or Volume, 1-D or more
        High on boundaries. Floats in [0, 1], or any real type with `value_range`.
    spacing : sequence of float, optional
        Distance between voxels along each axis (plane, row, column); 1 by default, or that of the
        Volume.
    per_plane : bool
        Segment each plane along axis 0 by itself, with ids of its own: for stacks whose planes are
        far apart, where a process may not overlap itself from one plane to the next. Needs three
        axes or more.
    sigma : float, optional
        Standard deviation of the Gaussian, in the unit of `spacing`; half the smallest spacing by
        default. Along an axis where that is less than 0.3 voxels, and across planes with
        `per_plane`, nothing is smoothed. 0 turns it off. More than a quarter of the longest axis
        is refused.
    min_size : int, optional
        Superpixels of fewer voxels are dissolved, small ones first, and their voxels flooded from
        the neighbours; one that touches no other stays. By default 5 to the power of the number
        of connected axes (125 in a volume, 25 in a plane), or 1 if there are `seeds`.
    mask : array of bool, optional
        Where to segment. The values outside still take part in the smoothing.
    seeds : array of int, optional
        Where to flood from, instead of the minima: 0 is no seed; each connected piece of one label
        is a seed. A part of the mask that no seed can reach becomes one superpixel.
    value_range : (float, float), optional
        The values that mean "no boundary" and "boundary", e.g. ``(0, 255)``; descending if dark is
        boundary. Values outside are refused.
    nan : {"refuse", "boundary"}
        What to do with values that are not finite: refuse them, or take them for boundary. Outside
        the mask they are always taken for boundary.
    progress : callable, optional
        Called several times a second with a `Progress`; cancels by raising `Cancelled`.

    Returns
    -------
    ndarray of uint32
        Labels 1 to n in raster order of their first voxel, each face-connected; 0 only outside the
        mask.

    Notes
    -----
    Levels are 16 bits of the declared range, neighbours are those that share a face, and of equal
    levels the first to be reached is flooded first.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.superpixels import oversegment
    >>> oversegment(np.array([0.1, 0.0, 0.2, 0.9, 0.3, 0.1]), sigma=0, min_size=1)
    array([1, 1, 1, 1, 2, 2], dtype=uint32)
    >>> stack = np.array([[[9, 0, 9]], [[0, 9, 9]]])
    >>> oversegment(stack, value_range=(9, 0), sigma=0, per_plane=True, min_size=1).tolist()
    [[[1, 1, 2]], [[3, 3, 3]]]
    """
    data = unwrap(boundary, "boundary")
    shape = tuple(int(length) for length in data.shape)
    if not shape:
        raise InvalidInput("`boundary` must have at least one axis, not be a single number.")
    check_nan(nan)
    refuse_colours(data, "boundary")
    gate = ValueGate.of(data.dtype, value_range, "boundary", "value_range")
    if per_plane and len(shape) < 3:
        raise InvalidInput(f"`boundary` (shape {shape}) has only one plane; leave `per_plane` out.")
    if spacing is None:
        spacing = check_same_spacing({"boundary": boundary, "mask": mask, "seeds": seeds})
    spacings = check_spacing(spacing, len(shape))
    connected = [length > 1 for length in shape]
    if per_plane:
        connected[0] = False
    sigmas = sigmas_in_voxels(sigma, spacings, connected, shape)
    least = least_size(min_size, sum(connected), seeds is not None)
    inside = None if mask is None else check_mask(mask, shape)
    start = None if seeds is None else check_seeds(seeds, shape, inside)
    labels = np.zeros(shape, np.uint32)
    if labels.size == 0:
        return labels
    extra = labels.itemsize if per_plane else _BYTES_PER_VOXEL
    present = 0 if is_lazy(data) else np.dtype(data.dtype).itemsize
    require_memory(data, "boundary", extra - present)
    values = in_memory(data, "boundary", progress)
    not_finite = check_values(values, gate, nan, inside, partial(report, progress))

    # axes of length 1 only stand in the way of slabs and walls
    drop = tuple(axis for axis in range(1 if per_plane else 0, len(shape)) if shape[axis] == 1)
    drop = drop[1:] if len(drop) == len(shape) else drop
    keep = [axis for axis in range(len(shape)) if axis not in drop]
    recipe = Recipe(
        gate.limits,
        not not_finite,
        [sigmas[axis] for axis in keep],
        [connected[axis] for axis in keep],
        least,
    )
    task = _Task(
        values.squeeze(drop),
        None if inside is None else inside.squeeze(drop),
        None if start is None else start.squeeze(drop),
        labels.squeeze(drop),
        recipe,
    )
    if per_plane:
        _segment_planes(task, progress)
    else:
        task.run(slice(None), 1, partial(report, progress))
    return labels


@dataclass(frozen=True)
class _Task:
    """The images of one call, all of one shape, and what is done to them; fills `out`."""

    values: Array
    mask: Array | None
    seeds: Array | None
    out: Array
    recipe: Recipe

    def run(self, where: slice, first: int, tick: Tick) -> int:
        """Segment the planes `where` with labels from `first` on; return how many there are."""
        mask = None if self.mask is None else self.mask[where]
        seeds = None if self.seeds is None else self.seeds[where]
        return segment_block(
            self.values[where], mask, seeds, self.recipe, first, self.out[where], tick
        )


def _segment_planes(task: _Task, progress: ProgressCallback | None) -> None:
    """Segment as many planes at once as stay in the cache; planes know nothing of each other."""
    planes = task.values.shape[0]
    step = max(1, _BLOCK // math.prod(task.values.shape[1:]))
    first = 1
    for start in range(0, planes, step):
        tick = _planes_done(progress, start, planes)
        first += task.run(slice(start, start + step), first, tick)
    report(progress, "segmenting planes", planes, planes)


def _planes_done(progress: ProgressCallback | None, done: int, planes: int) -> Tick:
    def tick(_stage: str, _done: int, _total: int) -> None:
        report(progress, "segmenting planes", done, planes)

    return tick
