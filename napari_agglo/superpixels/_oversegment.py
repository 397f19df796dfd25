"""Superpixels: a seeded watershed of a boundary map, in any number of dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels._block import Recipe, segment_block
from napari_agglo.superpixels._boundary import check_range, check_values
from napari_agglo.superpixels._grid import Array
from napari_agglo.superpixels._slices import Tick
from napari_agglo.volumes import (
    check_labels,
    check_mask,
    check_same_shape,
    check_same_spacing,
    check_spacing,
)
from napari_agglo.volumes._arrays import is_lazy, slabs, unwrap
from napari_agglo.volumes._memory import require_memory

DEFAULT_SIGMA = 0.5  # of the smallest spacing; docs/superpixels.md has the measurements
DEFAULT_SIDE = 5  # a superpixel of fewer than 5**axes voxels is a speck; see there too
LEAST_SIGMA = 0.3  # in voxels: below this a Gaussian is a single voxel to within 1 %
_BYTES_PER_VOXEL = 16  # levels 2, state 4, queue 4, seen 1, result 4, and the wall
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
        far apart, where a process may not overlap itself from one plane to the next.
    sigma : float, optional
        Standard deviation of the Gaussian, in the unit of `spacing`; half the smallest spacing by
        default. Along an axis where that is less than 0.3 voxels, and across planes with
        `per_plane`, nothing is smoothed. 0 turns it off.
    min_size : int, optional
        Superpixels of fewer voxels are dissolved, smallest first, and their voxels flooded from
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
    >>> oversegment(np.uint8([[9, 0, 9], [0, 9, 9]]), value_range=(9, 0), sigma=0, per_plane=True,
    ...             min_size=1)
    array([[1, 1, 2],
           [3, 3, 3]], dtype=uint32)
    """
    data = unwrap(boundary, "boundary")
    shape = tuple(int(length) for length in data.shape)
    if not shape:
        raise InvalidInput("`boundary` must have at least one axis, not be a single number.")
    limits = check_range(value_range, np.dtype(data.dtype))
    if spacing is None:
        spacing = check_same_spacing({"boundary": boundary, "mask": mask, "seeds": seeds})
    spacings = check_spacing(spacing, len(shape))
    connected = [length > 1 for length in shape]
    if per_plane:
        connected[0] = False
    sigmas = _sigmas(sigma, spacings, connected)
    least = _min_size(min_size, sum(connected), seeds is not None)
    inside = None if mask is None else check_mask(mask, shape)
    start = None if seeds is None else _check_seeds(seeds, shape, inside)
    labels = np.zeros(shape, np.uint32)
    if labels.size == 0:
        return labels
    require_memory(data, "boundary", _BYTES_PER_VOXEL)
    values = _in_memory(data, progress)
    check_values(values, limits, value_range is not None, partial(report, progress))

    # axes of length 1 only stand in the way of slabs and walls
    drop = tuple(axis for axis in range(1 if per_plane else 0, len(shape)) if shape[axis] == 1)
    drop = drop[1:] if len(drop) == len(shape) else drop
    keep = [axis for axis in range(len(shape)) if axis not in drop]
    recipe = Recipe(
        limits, [sigmas[axis] for axis in keep], [connected[axis] for axis in keep], least
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


def _in_memory(data: Any, progress: ProgressCallback | None) -> Array:
    """Read a lazy array in its own type, chunk by chunk; an array in memory is left as it is."""
    if not is_lazy(data):
        return np.asarray(data)
    values = np.empty(data.shape, np.dtype(data.dtype).newbyteorder("="))
    flat = values.reshape(-1)
    for start, stop, slab in slabs(data):
        flat[start:stop] = slab.reshape(-1)
        report(progress, "reading boundary", stop, flat.size)
    return values


def _sigmas(
    sigma: float | None, spacings: tuple[float, ...], connected: list[bool]
) -> tuple[float, ...]:
    if sigma is None:
        sigma = DEFAULT_SIGMA * min(spacings)
    try:
        width = float(sigma)
    except (TypeError, ValueError):
        width = math.nan
    if not (math.isfinite(width) and width >= 0):
        raise InvalidInput(
            f"`sigma` must be a number of 0 or more, in the unit of `spacing`, not {sigma!r}; "
            "0 turns the smoothing off."
        )
    voxels = [width / spacing for spacing in spacings]
    return tuple(
        one if touches and one >= LEAST_SIGMA else 0.0
        for one, touches in zip(voxels, connected, strict=True)
    )


def _min_size(min_size: int | None, axes: int, seeded: bool) -> int:
    if min_size is None:
        return 1 if seeded else int(DEFAULT_SIDE**axes)
    if isinstance(min_size, bool) or not isinstance(min_size, int | np.integer) or min_size < 0:
        raise InvalidInput(
            f"`min_size` must be a whole number of voxels, 0 or more, not {min_size!r}; "
            "1 keeps every superpixel."
        )
    return int(min_size)


def _check_seeds(seeds: object, shape: tuple[int, ...], mask: Array | None) -> Array:
    array = check_labels(seeds, "seeds")
    check_same_shape(array, shape, "seeds", "boundary")
    if array.size and not (array.any() if mask is None else (array != 0)[mask].any()):
        where = "" if mask is None else " inside the mask"
        raise InvalidInput(
            f"`seeds` must hold at least one label above 0{where}, but all are 0; "
            "leave it out to flood from the minima of the map."
        )
    return array
