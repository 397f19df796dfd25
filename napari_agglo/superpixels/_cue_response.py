"""How strongly each voxel looks like a boundary: lines, edges, or brightness; slab by slab."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from napari_agglo.superpixels._cue_eigen import largest_eigenvalue
from napari_agglo.superpixels._grid import Array

LEAST_SIGMA = 0.5  # in voxels: an axis that is coarser than that is not looked along
SURROUNDINGS = 8  # scales: how far "bright" and "dark" look for what they compare with
_TRUNCATE = 4.0


@dataclass(frozen=True)
class Look:
    """How to look at an image: what for, and how finely along each axis (sigma in voxels)."""

    kind: str
    sigmas: tuple[float, ...]

    @classmethod
    def at(
        cls, kind: str, scale: float, spacings: tuple[float, ...], shape: tuple[int, ...]
    ) -> Look:
        """Return a look of `scale` voxels of the finest axis; 0 along an axis not looked along."""
        fine = min(spacings)
        voxels = [scale * fine / spacing for spacing in spacings]
        return cls(
            kind,
            tuple(
                one if one >= LEAST_SIGMA and length > 1 else 0.0
                for one, length in zip(voxels, shape, strict=True)
            ),
        )

    @property
    def axes(self) -> list[int]:
        """The axes that are looked along."""
        return [axis for axis, sigma in enumerate(self.sigmas) if sigma > 0]

    @property
    def reach(self) -> int:
        """How many planes beyond a slab have a say in what is seen in it."""
        wide = SURROUNDINGS if self.kind in ("bright", "dark") else 1
        return int(_TRUNCATE * wide * self.sigmas[0] + 0.5) + 2 if self.sigmas[0] else 0

    def response(self, channels: Array) -> Array:
        """Return the response of a slab of shape (channel, axis 0, ...), float32."""
        see: dict[str, Callable[[Array], Array]] = {
            "dark_ridges": lambda c: self._bend(c[0]),
            "bright_ridges": lambda c: self._bend(-c[0]),
            "dark": lambda c: self._stand_out(-c[0]),
            "bright": lambda c: self._stand_out(c[0]),
            "gradient": self._change,
            "colour": self._change,
        }
        return see[self.kind](channels)

    def _bend(self, image: Array) -> Array:
        """Return how much the image bends upwards across the direction in which it does so most.

        The largest eigenvalue of the Hessian, in units of the scale: large at the bottom of a dark
        line or sheet, whatever way it runs. Differences of neighbours are taken after smoothing:
        sampled derivatives of a narrow Gaussian do not add up to 0.
        """
        smooth = self._smoothed(image, 1)
        axes = self.axes
        slopes = {axis: np.gradient(smooth, axis=axis) for axis in axes[:-1]}
        parts = np.empty((len(axes) * (len(axes) + 1) // 2, *image.shape), np.float32)
        for part, (one, two) in zip(parts, combinations_with_replacement(axes, 2), strict=True):
            if one == two:
                part[...] = _second_difference(smooth, one)
            else:
                part[...] = np.gradient(slopes[one], axis=two)
            part *= self.sigmas[one] * self.sigmas[two]
        return np.maximum(largest_eigenvalue(parts, len(axes)), 0)

    def _change(self, channels: Array) -> Array:
        """Return how fast the channels change together, in the direction in which they do so most.

        The largest eigenvalue of the sum over the channels of the products of their slopes (Di
        Zenzo, 1986). Slopes that point opposite ways in two channels add up; the length of a mean
        slope would lose them. Of one channel it is the length of its gradient.
        """
        axes = self.axes
        parts = np.zeros((len(axes) * (len(axes) + 1) // 2, *channels.shape[1:]), np.float32)
        for channel in channels:
            smooth = self._smoothed(channel, 1)
            slopes = {axis: np.gradient(smooth, axis=axis) * self.sigmas[axis] for axis in axes}
            for part, (one, two) in zip(parts, combinations_with_replacement(axes, 2), strict=True):
                part += slopes[one] * slopes[two]
        return np.sqrt(np.maximum(largest_eigenvalue(parts, len(axes)), 0))

    def _stand_out(self, image: Array) -> Array:
        """Return how much brighter a voxel is than its wider surroundings, negative if darker."""
        out: Array = self._smoothed(image, 1) - self._smoothed(image, SURROUNDINGS)
        return out

    def _smoothed(self, image: Array, times: float) -> Array:
        from scipy import ndimage  # takes 0.1 s to import

        smooth = image
        for axis in self.axes:
            smooth = ndimage.gaussian_filter1d(
                smooth, times * self.sigmas[axis], axis=axis, mode="nearest", truncate=_TRUNCATE
            )
        return smooth


def _second_difference(image: Array, axis: int) -> Array:
    """Return the second difference along an axis; the edge voxel is repeated beyond the border."""
    ends = [(1, 1) if one == axis else (0, 0) for one in range(image.ndim)]
    out: Array = np.diff(np.pad(image, ends, mode="edge"), 2, axis=axis)
    return out


def robust_top(response: Array, share: float) -> float:
    """Return the value that a `share` of the voxels reaches, of a sample if there are many."""
    flat = response.reshape(-1)
    if flat.size > _SAMPLE:
        flat = flat[np.random.default_rng(0).integers(0, flat.size, _SAMPLE)]
    return float(np.quantile(flat, 1 - share)) if flat.size else math.nan


_SAMPLE = 1 << 22  # a quantile of so many is exact enough: 0.01 % of the voxels
