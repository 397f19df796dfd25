"""Check the boundary map and turn it into levels: smoothed, in 16 bits, slab by slab.

Eight bits are too few to flood by: on a large stack they moved 1.9 bits of variation of
information between the regions, sixteen bits 0.05. So this does not go through the quantised cues,
only through the same gate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from napari_agglo.superpixels._grid import Array
from napari_agglo.superpixels._slices import Tick
from napari_agglo.volumes import Findings, ValueGate

TOP_LEVEL = 65535
_SLAB = 1 << 21  # voxels converted and smoothed at a time: some 0.1 s
_TRUNCATE = 4.0  # the kernel ends at so many sigmas, as scipy's does


def check_values(
    boundary: Array, gate: ValueGate, nan: str, mask: Array | None, tick: Tick
) -> bool:
    """Refuse a map for its values; return whether some of it is not finite and counts as boundary.

    That is allowed outside the mask, and everywhere if `nan` is "boundary".
    """
    shape = boundary.shape
    plane = math.prod(shape[1:])
    total, everywhere = Findings(), 0
    for start, stop in slabs(shape):
        slab = boundary[start:stop]
        found = gate.look_over(slab)
        everywhere += found.not_finite
        if found.not_finite and mask is not None:
            wanted = ~np.isfinite(slab) & mask[start:stop]
            found.not_finite = int(wanted.sum())
            found.first_not_finite = int(wanted.argmax()) if found.not_finite else -1
        total.add(found, start * plane)
        tick("checking", stop, shape[0])
    gate.judge(total, shape, nan)
    return everywhere > 0


def write_levels(
    boundary: Array,
    limits: tuple[float, float],
    finite: bool,
    sigmas: Sequence[float],
    out: Array,
    tick: Tick,
) -> None:
    """Write the smoothed map to `out` as 0..65535, the whole of `limits`.

    Parameters
    ----------
    boundary : ndarray
        Any real type, values checked, at least one axis.
    finite
        Whether all values are finite; those that are not count as boundary.
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
        slab = _unit(boundary[above:below], limits, finite)
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


def _unit(values: Array, limits: tuple[float, float], finite: bool) -> Array:
    """Return `values` as float32 in [0, 1], a new array."""
    low, high = limits
    if not finite:
        values = np.where(np.isfinite(values), values, values.dtype.type(high))
    if values.dtype == np.float32 and limits == (0.0, 1.0):
        return np.clip(values, 0, 1)
    # in float64, so that integers of 32 bits and a small range far from 0 keep their differences
    wide = (values.astype(np.float64) - low) / (high - low)
    return np.clip(wide, 0, 1).astype(np.float32)
