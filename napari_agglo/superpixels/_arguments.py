"""The arguments of `oversegment`: checked, with defaults filled in, in voxels and in memory."""

from __future__ import annotations

import math

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels._grid import Array
from napari_agglo.volumes import check_labels, check_same_shape

DEFAULT_SIGMA = 0.5  # of the smallest spacing; docs/superpixels.md has the measurements
DEFAULT_SIDE = 5  # a superpixel of fewer than 5**axes voxels is a speck; see there too
MOST_SIGMA = 0.25  # of the longest axis: nothing is left of the map, in minutes
MOST_SIGMA_AT_LEAST = 4  # in voxels, for small images
LEAST_SIGMA = 0.3  # in voxels: below this a Gaussian is a single voxel to within 1 %


def sigmas_in_voxels(
    sigma: float | None,
    spacings: tuple[float, ...],
    connected: list[bool],
    shape: tuple[int, ...],
) -> tuple[float, ...]:
    """Return the width of the Gaussian along each axis in voxels, 0 where nothing is smoothed."""
    if sigma is None:
        sigma = DEFAULT_SIGMA * min(spacings)
    try:
        width = float(sigma)
    except (TypeError, ValueError, OverflowError):
        width = math.nan
    if not (math.isfinite(width) and width >= 0):
        raise InvalidInput(
            f"`sigma` must be a number of 0 or more, in the unit of `spacing`, not {sigma!r}; "
            "0 turns the smoothing off."
        )
    voxels = [width / spacing for spacing in spacings]
    smoothed = [axis for axis, touches in enumerate(connected) if touches]
    widest = max((voxels[axis] for axis in smoothed), default=0.0)
    longest = max((shape[axis] for axis in smoothed), default=0)
    if widest > max(MOST_SIGMA_AT_LEAST, MOST_SIGMA * longest):
        axis = voxels.index(widest)
        raise InvalidInput(
            f"`sigma`={width:g} is {widest:.3g} voxels along axis {axis}, whose spacing is "
            f"{spacings[axis]:g}, and would smooth away an image of shape {shape}; `sigma` is in "
            f"the unit of `spacing`: for 1 voxel pass sigma={spacings[axis]:g}."
        )
    return tuple(
        one if touches and one >= LEAST_SIGMA else 0.0
        for one, touches in zip(voxels, connected, strict=True)
    )


def least_size(min_size: int | None, axes: int, seeded: bool) -> int:
    """Return the least number of voxels of a superpixel in an image of so many connected axes."""
    if min_size is None:
        return 1 if seeded else int(DEFAULT_SIDE**axes)
    whole = isinstance(min_size, int | np.integer) and not isinstance(min_size, bool)
    if not whole or not 0 <= min_size < 2**63:
        raise InvalidInput(
            f"`min_size` must be a whole number of voxels, 0 or more and below 2**63, not "
            f"{min_size!r}; 1 keeps every superpixel."
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
