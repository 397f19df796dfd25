"""Filters of the boundary cue: ridges, edges, or brightness, slab by slab."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from napari_agglo._numba import kernel
from napari_agglo.superpixels._flood_queue import Array

LEAST_SIGMA = 0.5  # in voxels: a coarser axis is not filtered along
SURROUNDINGS = 8  # scales: width of the surroundings that "bright" and "dark" compare with
_TRUNCATE = 4.0
_SAMPLE = 1 << 22  # voxels of a quantile: accurate to 0.01 % of the voxels


def largest_eigenvalue(parts: Array, axes: int) -> Array:
    """Return the largest eigenvalue of each matrix, as float32.

    Parameters
    ----------
    parts : ndarray of float32, shape (axes * (axes + 1) / 2, ...)
        The upper triangles, row by row: for three axes 00, 01, 02, 11, 12, 22.
    axes : int
        Rows of a matrix.
    """
    shape = parts.shape[1:]
    out = np.empty(shape, np.float32)
    if axes <= 3:
        _largest(parts.reshape(len(parts), -1), axes, out.reshape(-1))
        return out
    upper = np.triu_indices(axes)
    matrices = np.empty((*shape, axes, axes), np.float32)
    for part, row, column in zip(parts, *upper, strict=True):
        matrices[..., row, column] = matrices[..., column, row] = part
    out[...] = np.linalg.eigvalsh(matrices)[..., -1]
    return out


@kernel
def _largest(parts: Any, axes: int, out: Any) -> None:
    """Write closed forms for one to three axes. No bounds checking is performed.

    Three axes: the trigonometric solution of the characteristic equation (Smith, 1961), in
    double precision; eight times as fast as a general solver.
    """
    for voxel in range(out.size):
        a = np.float64(parts[0, voxel])
        if axes == 1:
            out[voxel] = a
            continue
        b = np.float64(parts[1, voxel])
        if axes == 2:
            d = np.float64(parts[2, voxel])
            out[voxel] = (a + d) / 2 + math.hypot((a - d) / 2, b)
            continue
        c = np.float64(parts[2, voxel])
        d = np.float64(parts[3, voxel])
        e = np.float64(parts[4, voxel])
        f = np.float64(parts[5, voxel])
        mean = (a + d + f) / 3
        a, d, f = a - mean, d - mean, f - mean
        spread = math.sqrt((a * a + d * d + f * f + 2 * (b * b + c * c + e * e)) / 6)
        if spread == 0:
            out[voxel] = mean
            continue
        determinant = a * (d * f - e * e) - b * (b * f - e * c) + c * (b * e - d * c)
        cosine = determinant / (2 * spread * spread * spread)
        angle = math.acos(min(1.0, max(-1.0, cosine))) / 3
        out[voxel] = mean + 2 * spread * math.cos(angle)


@dataclass(frozen=True)
class Filter:
    """Filter of one kind, with its sigma in voxels along each axis."""

    kind: str
    sigmas: tuple[float, ...]

    @classmethod
    def at(
        cls, kind: str, scale: float, spacings: tuple[float, ...], shape: tuple[int, ...]
    ) -> Filter:
        """Return a filter of `scale` voxels of the finest axis; 0 along coarse axes."""
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
        """Axes along which the image is filtered."""
        return [axis for axis, sigma in enumerate(self.sigmas) if sigma > 0]

    @property
    def reach(self) -> int:
        """Number of planes beyond a slab that its response depends on."""
        wide = SURROUNDINGS if self.kind in ("bright", "dark") else 1
        return int(_TRUNCATE * wide * self.sigmas[0] + 0.5) + 2 if self.sigmas[0] else 0

    def response(self, channels: Array) -> Array:
        """Return the response of a slab of shape (channel, axis 0, ...), float32."""
        responses: dict[str, Callable[[Array], Array]] = {
            "dark_ridges": lambda c: self._curvature(c[0]),
            "bright_ridges": lambda c: self._curvature(-c[0]),
            "dark": lambda c: self._brightness(-c[0]),
            "bright": lambda c: self._brightness(c[0]),
            "gradient": self._gradient,
            "colour": self._gradient,
        }
        return responses[self.kind](channels)

    def _curvature(self, image: Array) -> Array:
        """Return the largest upward curvature of the image, over all directions.

        The largest eigenvalue of the Hessian, in units of the scale: large at the bottom of a dark
        line or sheet of any direction. Differences of neighbours are taken after smoothing: sampled
        derivatives of a narrow Gaussian do not add up to 0.
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

    def _gradient(self, channels: Array) -> Array:
        """Return the largest gradient of all channels together, over all directions.

        The largest eigenvalue of the sum over the channels of the products of their slopes (Di
        Zenzo, 1986): slopes in opposite directions in two channels add up, whereas they would
        cancel in a mean slope. For one channel it is the length of its gradient.
        """
        axes = self.axes
        parts = np.zeros((len(axes) * (len(axes) + 1) // 2, *channels.shape[1:]), np.float32)
        for channel in channels:
            smooth = self._smoothed(channel, 1)
            slopes = {axis: np.gradient(smooth, axis=axis) * self.sigmas[axis] for axis in axes}
            for part, (one, two) in zip(parts, combinations_with_replacement(axes, 2), strict=True):
                part += slopes[one] * slopes[two]
        return np.sqrt(np.maximum(largest_eigenvalue(parts, len(axes)), 0))

    def _brightness(self, image: Array) -> Array:
        """Return the brightness of each voxel less that of its surroundings."""
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
    """Return the quantile that a `share` of the voxels reaches, of a sample if there are many."""
    flat = response.reshape(-1)
    if flat.size > _SAMPLE:
        flat = flat[np.random.default_rng(0).integers(0, flat.size, _SAMPLE)]
    return float(np.quantile(flat, 1 - share)) if flat.size else math.nan
