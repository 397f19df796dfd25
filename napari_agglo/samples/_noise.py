"""Random numbers and smooth random fields, the same bits on every run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
# Coarse samples in a correlation length: enough that linear interpolation leaves no facets.
_SAMPLES_PER_SIGMA = 2


def generator(kind: int, seed: int) -> np.random.Generator:
    """Return a generator that depends on `kind` and `seed` alone (the bit generator is named)."""
    return np.random.Generator(np.random.PCG64([seed, kind]))


def smooth_noise(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> Floats:
    """Gaussian random field of about zero mean, unit variance and correlation length `sigma`.

    Strategy: draw and smooth on a coarse grid, then interpolate linearly; a wide Gaussian over the
    full grid would take most of the time of a sample.
    """
    from scipy import ndimage

    factor = max(1, int(sigma / _SAMPLES_PER_SIGMA))  # pixels from a coarse sample to the next
    margin = 4  # of coarse pixels, so that the border is no different from the inside
    coarse_shape = tuple(-(-n // factor) + 2 * margin for n in shape)
    coarse = rng.standard_normal(coarse_shape, dtype=np.float32)
    coarse = ndimage.gaussian_filter(coarse, sigma / factor, mode="wrap")
    coarse /= coarse.std()
    for axis, n in enumerate(shape):
        coarse = _interpolate(coarse, margin + np.arange(n) / factor, axis)
    return np.ascontiguousarray(coarse)


def _interpolate(field: Any, position: NDArray[np.float64], axis: int) -> Any:
    """Linear interpolation of `field` at `position` along one axis."""
    low = position.astype(np.int64)
    column = (-1,) + (1,) * (field.ndim - 1 - axis)
    weight = (position - low).astype(np.float32).reshape(column)
    below = np.take(field, low, axis=axis)
    return below + weight * (np.take(field, low + 1, axis=axis) - below)
