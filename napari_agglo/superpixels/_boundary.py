"""Check the boundary map and turn it into levels: smoothed, in 16 bits, slab by slab.

Eight bits are too few to flood by: on a large stack they moved 1.9 bits of variation of
information between the regions, sixteen bits 0.05. So this does not go through the quantised cues,
but it asks the same of its input in the same words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels._grid import Array
from napari_agglo.superpixels._slices import Tick

OVERSHOOT = 1e-6  # of the range: what rounding adds to a probability; clipped, not refused
TOP_LEVEL = 65535
_SLAB = 1 << 21  # voxels converted and smoothed at a time: some 0.1 s
_TRUNCATE = 4.0  # the kernel ends at so many sigmas, as scipy's does


def check_range(value_range: Sequence[float] | None, dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return (low, high) of a boundary map of type `dtype`; only floats need not declare it.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.superpixels._boundary import check_range
    >>> check_range(None, np.dtype("float32")), check_range((255, 0), np.dtype("uint8"))
    ((0.0, 1.0), (255.0, 0.0))
    """
    if dtype == np.bool_:
        raise InvalidInput(
            "`boundary` must be a map of values, not a bool mask; "
            "if this is what you mean, pass mask.astype('float32')."
        )
    if dtype.kind not in "iuf":
        raise InvalidInput(f"`boundary` must hold real numbers, not {dtype}.")
    if value_range is not None:
        try:
            low, high = (float(value) for value in value_range)
        except (TypeError, ValueError):
            low = high = math.nan
        if not (math.isfinite(low) and math.isfinite(high)) or low == high:
            raise InvalidInput(
                "`value_range` must be two different numbers (low, high), "
                f"not {value_range!r}; e.g. (0, 255)."
            )
        return low, high
    if dtype.kind == "f":
        return 0.0, 1.0
    if dtype.itemsize > 2:
        raise InvalidInput(
            f"`boundary` is {dtype} and looks like a label image, not like a map of values in "
            "[0, 1]; pass the probability map, or declare the range of its values, "
            "e.g. value_range=(0, 255)."
        )
    top = 255 if dtype.itemsize == 1 else 65535
    raise InvalidInput(
        f"`boundary` is {dtype}, whose range is not known (values in [0, 1] are expected); if "
        f"these are intensities or probabilities, declare it, e.g. value_range=(0, {top}), or "
        f"value_range=({top}, 0) if dark is boundary."
    )


def check_values(boundary: Array, limits: tuple[float, float], declared: bool, tick: Tick) -> None:
    """Refuse a map with values that are not finite or not within `limits`.

    A good map is read once, for its extremes; only a bad one is looked at more closely.
    """
    slack = OVERSHOOT * abs(limits[1] - limits[0])
    bottom, top = min(limits) - slack, max(limits) + slack
    shape = boundary.shape
    for start, stop in slabs(shape):
        slab = boundary[start:stop]
        tick("checking", start, shape[0])
        if not (bottom <= slab.min() and slab.max() <= top):  # so that NaN is caught as well
            break
    else:
        return
    finite = np.isfinite(boundary)
    if not finite.all():
        raise InvalidInput(
            f"`boundary` has {int((~finite).sum())} values that are NaN or infinite, the first "
            f"at index {_first(~finite)}; replace them, e.g. with 1 to count them as boundary."
        )
    outside = (boundary < bottom) | (boundary > top)
    lowest, highest = float(boundary[outside].min()), float(boundary[outside].max())
    said = (
        f"`boundary` must be in [{min(limits):g}, {max(limits):g}], but {int(outside.sum())} "
        f"values are outside (from {lowest:g} to {highest:g}, the first at index "
        f"{_first(outside)})"
    )
    if declared:
        raise InvalidInput(f"{said}; declare the range that its values have.")
    if lowest >= 0 and highest <= 65535:
        full = 255 if highest <= 255 else 65535
        raise InvalidInput(
            f"{said}; if these are probabilities in 0 to {full}, declare it: "
            f"value_range=(0, {full}), or value_range=({full}, 0) if dark is boundary."
        )
    raise InvalidInput(
        f"{said}; declare the range of its values, e.g. "
        f"value_range=({math.floor(boundary.min()):g}, {math.ceil(boundary.max()):g})."
    )


def _first(where: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(where.argmax()), where.shape))


def write_levels(
    boundary: Array, limits: tuple[float, float], sigmas: Sequence[float], out: Array, tick: Tick
) -> None:
    """Write the smoothed map to `out` as 0..65535, the whole of `limits`.

    Parameters
    ----------
    boundary : ndarray
        Any real type, values checked, at least one axis.
    sigmas
        Standard deviation of the Gaussian in voxels, an axis each; 0: not smoothed. The edge voxel
        is repeated beyond the border.
    out : ndarray of uint16
        Of the same shape. Slabs overlap as far as the Gaussian reaches, so that the result does not
        depend on them.
    """
    from scipy import ndimage  # takes 0.1 s to import

    reach = int(_TRUNCATE * sigmas[0] + 0.5)
    length = boundary.shape[0]
    for start, stop in slabs(boundary.shape):
        above, below = max(0, start - reach), min(length, stop + reach)
        slab = _unit(boundary[above:below], limits)
        for axis, sigma in enumerate(sigmas):
            if sigma > 0:
                slab = ndimage.gaussian_filter1d(
                    slab, sigma, axis=axis, mode="nearest", truncate=_TRUNCATE
                )
        core = slab[start - above : stop - above] * np.float32(TOP_LEVEL)
        out[start:stop] = np.clip(np.rint(core, out=core), 0, TOP_LEVEL, out=core)
        tick("smoothing", stop, length)


def slabs(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield ranges of planes that hold about 2 million voxels each, at least one plane."""
    step = max(1, _SLAB // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        yield start, min(start + step, shape[0])


def _unit(values: Array, limits: tuple[float, float]) -> Array:
    """Return `values` as float32 in [0, 1], a new array."""
    low, high = limits
    if values.dtype == np.float32 and limits == (0.0, 1.0):
        return np.clip(values, 0, 1)
    # in float64, so that integers of 32 bits and a small range far from 0 keep their differences
    wide = (values.astype(np.float64) - low) / (high - low)
    return np.clip(wide, 0, 1).astype(np.float32)
