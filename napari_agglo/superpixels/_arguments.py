"""The arguments of `oversegment`: checked, with defaults filled in, in voxels and in memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels._grid import Array
from napari_agglo.volumes import check_labels, check_same_shape
from napari_agglo.volumes._arrays import is_lazy, slabs

DEFAULT_SIGMA = 0.5  # of the smallest spacing; docs/superpixels.md has the measurements
DEFAULT_SIDE = 5  # a superpixel of fewer than 5**axes voxels is a speck; see there too
LEAST_SIGMA = 0.3  # in voxels: below this a Gaussian is a single voxel to within 1 %


def in_memory(data: Any, progress: ProgressCallback | None) -> Array:
    """Read a lazy array in its own type, chunk by chunk; an array in memory is left as it is."""
    if not is_lazy(data):
        return np.asarray(data)
    values = np.empty(data.shape, np.dtype(data.dtype).newbyteorder("="))
    flat = values.reshape(-1)
    for start, stop, slab in slabs(data):
        flat[start:stop] = slab.reshape(-1)
        report(progress, "reading boundary", stop, flat.size)
    return values


def sigmas_in_voxels(
    sigma: float | None, spacings: tuple[float, ...], connected: list[bool]
) -> tuple[float, ...]:
    """Return the width of the Gaussian along each axis in voxels, 0 where nothing is smoothed."""
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


def least_size(min_size: int | None, axes: int, seeded: bool) -> int:
    """Return the least number of voxels of a superpixel in an image of so many connected axes."""
    if min_size is None:
        return 1 if seeded else int(DEFAULT_SIDE**axes)
    if isinstance(min_size, bool) or not isinstance(min_size, int | np.integer) or min_size < 0:
        raise InvalidInput(
            f"`min_size` must be a whole number of voxels, 0 or more, not {min_size!r}; "
            "1 keeps every superpixel."
        )
    return int(min_size)


def check_seeds(seeds: object, shape: tuple[int, ...], mask: Array | None) -> Array:
    """Return the user's seeds as an array, or say why one cannot flood from them."""
    array = check_labels(seeds, "seeds")
    check_same_shape(array, shape, "seeds", "boundary")
    if array.size and not (array.any() if mask is None else (array != 0)[mask].any()):
        where = "" if mask is None else " inside the mask"
        raise InvalidInput(
            f"`seeds` must hold at least one label above 0{where}, but all are 0; "
            "leave it out to flood from the minima of the map."
        )
    return array
