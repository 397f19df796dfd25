"""Filters of the pixel classifier: Gaussians of several scales, and differences of neighbours.

Strategy. Each scale is smoothed from the image itself, axis by axis, on no more voxels than the
next step needs: along an axis that has been smoothed, only the block and a margin of one voxel are
left. (A cascade, each scale from the one before, would save a tenth of the smoothing and nearly
double the reach.)
All derivatives are then differences of neighbours of the smoothed image, taken in one loop that
solves the eigenvalues in closed form and writes the features of a voxel side by side. The results
do not depend on the block that a voxel is in, bit for bit.

Derivatives are in units of the scale: a slope is that over one sigma.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel

Array = NDArray[np.float32]
_TRUNCATE = 4.0  # sigmas, as in scipy
_OUTER = 0.5  # sigmas: width of the mean that the structure tensor takes, as in ilastik


def gaussian(sigma: float) -> Array:
    """Return the weights of a Gaussian from its middle outwards.

    Examples
    --------
    >>> [round(float(weight), 3) for weight in gaussian(0.5)]
    [0.787, 0.106, 0.0]
    """
    if sigma == 0:
        return np.ones(1, np.float32)
    steps = np.arange(int(_TRUNCATE * sigma + 0.5) + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    normalised: Array = (weights / (2 * weights.sum() - weights[0])).astype(np.float32)
    return normalised


def smooth(source: Array, sigmas: Sequence[float], margins: Sequence[int]) -> Array:
    """Return the middle of a smoothed block: `margins` voxels less on both sides of each axis.

    `source` has three axes; a margin is at least the reach of the Gaussian along its axis.
    """
    for axis in range(3):
        n = source.shape[axis] - 2 * margins[axis]
        if n == source.shape[axis] and sigmas[axis] == 0:
            continue
        shape = (*source.shape[:axis], n, *source.shape[axis + 1 :])
        out = np.empty(shape, np.float32)
        _smooth_rows(source.reshape(-1, source.shape[2]), gaussian(sigmas[axis]),
                     np.array(source.shape), axis, margins[axis], out)  # fmt: skip
        source = out
    return source


@dataclass(frozen=True)
class FilterBank:
    """Features of a pixel: their scales, axes and channels.

    Parameters
    ----------
    scales : tuple of float
        Standard deviations in voxels of the finest axis.
    axes : int
        2: each plane by itself; 3: along all axes.
    channels : int
        Channels of the image; each has features of its own.
    structure : bool
        Whether the eigenvalues of the structure tensor are among the features.
    """

    scales: tuple[float, ...] = (0.7, 1.0, 2.0, 4.0)
    axes: int = 3
    channels: int = 1
    structure: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the columns."""
        kinds = ["value", "gradient", "laplacian"]
        for kind in ("hessian", "structure")[: 1 + self.structure]:
            kinds += [f"{kind} {k + 1}" for k in range(self.axes)]
        of = [f" of channel {k}" if self.channels > 1 else "" for k in range(self.channels)]
        return tuple(f"{kind} at {s:g}{c}" for c in of for s in self.scales for kind in kinds)

    @property
    def width(self) -> int:
        """Number of features."""
        return self.channels * len(self.scales) * self.width_of_scale

    @property
    def width_of_scale(self) -> int:
        """Number of features of one scale and channel."""
        return 3 + self.axes * (1 + self.structure)

    def sigmas(self, scale: float, spacing: Sequence[float]) -> tuple[float, ...]:
        """Return a scale in voxels of each axis; 0 for axes that are not filtered along."""
        fine = min(spacing[3 - self.axes :])
        skipped = 3 - self.axes
        return (0.0,) * skipped + tuple(scale * fine / one for one in spacing[skipped:])

    def reach(self, spacing: Sequence[float]) -> tuple[int, ...]:
        """Return the distance along each axis up to which voxels count for a feature."""
        needs = [self._needs(self.sigmas(scale, spacing)) for scale in self.scales]
        return tuple(
            max(gauss + margin for gauss, margin in axis) for axis in zip(*needs, strict=True)
        )

    def apply(self, block: Array, spacing: Sequence[float], pool: Executor) -> FilteredBlock:
        """Smooth a block, (channel, plane, row, column) with its `reach` on all sides."""
        reach = self.reach(spacing)
        tasks = [
            pool.submit(self._apply_scale, channel, self.sigmas(scale, spacing), reach)
            for channel in block
            for scale in self.scales
        ]
        planes, rows, columns = (n - 2 * r for n, r in zip(block.shape[1:], reach, strict=True))
        return FilteredBlock(self, (planes, rows, columns), [task.result() for task in tasks])

    def _needs(self, sigmas: Sequence[float]) -> list[tuple[int, int]]:
        """Return the reach of the Gaussian along each axis, and the margin to leave around."""
        return [
            (len(gaussian(sigma)) - 1,
             int(sigma > 0) + (len(gaussian(_OUTER * sigma)) - 1 if self.structure else 0))
            for sigma in sigmas
        ]  # fmt: skip

    def _apply_scale(
        self, channel: Array, sigmas: tuple[float, ...], reach: tuple[int, ...]
    ) -> FilteredScale:
        needs = self._needs(sigmas)
        gauss = [one for one, _ in needs]
        margins = [margin for _, margin in needs]
        cut = [r - g - m for r, g, m in zip(reach, gauss, margins, strict=True)]
        inside = tuple(slice(c, n - c) for c, n in zip(cut, channel.shape, strict=True))
        values = smooth(np.ascontiguousarray(channel[inside]), sigmas, gauss)
        parts = np.zeros((0, 1, 1, 1), np.float32)
        if self.structure:
            ring = np.array([int(sigma > 0) for sigma in sigmas])
            shape = tuple(n - 2 * int(r) for n, r in zip(values.shape, ring, strict=True))
            products = np.empty((self.axes * (self.axes + 1) // 2, *shape), np.float32)
            _multiply_slopes(values, np.array(sigmas), ring, products)
            outer = [_OUTER * sigma for sigma in sigmas]
            less = [m - int(r) for m, r in zip(margins, ring, strict=True)]
            parts = np.stack([smooth(product, outer, less) for product in products])
        return FilteredScale(values, np.array(margins), np.array(sigmas), parts)


class FilteredScale(NamedTuple):
    """A smoothed channel, as kernels read it.

    Its margins are the voxels around the block along each axis; `parts` are the products of the
    slopes, smoothed (00, 01, 02, 11, 12, 22; two axes: 11, 12, 22), of the block itself.
    """

    values: Array
    margins: NDArray[np.int64]
    sigmas: NDArray[np.float64]
    parts: Array


@dataclass(frozen=True, eq=False)
class FilteredBlock:
    """A block that has been smoothed; it writes the features of any of its rows."""

    bank: FilterBank
    shape: tuple[int, int, int]
    scales: list[FilteredScale]

    def features(self, first: int, stop: int) -> Array:
        """Return the features of the voxels in rows `first` to `stop` - 1, counted over planes."""
        _, rows, columns = self.shape
        out = np.empty(((stop - first) * columns, self.bank.width), np.float32)
        for k, scale in enumerate(self.scales):
            _write_features(scale, rows, columns, first, stop, self.bank.axes,
                            k * self.bank.width_of_scale, out)  # fmt: skip
        return out


@kernel
def _smooth_rows(source: Any, weights: Any, shape: Any, axis: Any, margin: Any, out: Any) -> None:
    """Convolve along an axis with symmetric weights; leave out `margin` voxels at both ends.

    `source` has the rows of a block of `shape`. No bounds checking. Each inner loop runs along
    memory and adds one pair of neighbours to all voxels of a row, which LLVM makes vector code of.
    """
    planes, rows, columns = out.shape
    step = shape[1] if axis == 0 else np.int64(1)
    for plane in range(planes):
        for row in range(rows):
            at = (plane + margin * np.int64(axis == 0)) * shape[1]
            at += row + margin * np.int64(axis == 1)
            line = out[plane, row]
            first = margin if axis == 2 else np.int64(0)
            middle = source[at, first : first + columns]
            for k in range(columns):
                line[k] = weights[0] * middle[k]
            for far in range(1, weights.size):
                weight = weights[far]
                if axis == 2:
                    before = source[at, first - far : first - far + columns]
                    after = source[at, first + far : first + far + columns]
                else:
                    before = source[at - far * step, :]
                    after = source[at + far * step, :]
                for k in range(columns):
                    line[k] += weight * (before[k] + after[k])


@inlined
def _third_of_angle(cosine: Any) -> Any:
    """Return cos(acos(x) / 3), to 3e-8: a polynomial in sqrt((1 + x) / 2), where it is smooth."""
    t = math.sqrt(max(0.0, 0.5 + 0.5 * cosine))
    high = 0.01604728037 + t * (-0.006089345676 + t * 0.001127636238)
    low = -0.1110385112 + t * (0.05284140914 + t * (-0.03023539757 + t * high))
    return 0.500000026 + t * (0.5773469174 + t * low)


@inlined
def _write_eigenvalues(
    a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, axes: Any, row: Any, column: Any, out: Any
) -> None:
    """Write the eigenvalues of [[a, b, c], [b, d, e], [c, e, f]], or of [[d, e], [e, f]].

    The highest comes first. Three axes: the trigonometric solution (Smith, 1961).
    """
    if axes == 2:
        mean = 0.5 * (d + f)
        half = 0.5 * (d - f)
        spread = math.sqrt(half * half + e * e)
        out[row, column] = mean + spread
        out[row, column + 1] = mean - spread
        return
    mean = (a + d + f) / 3.0
    a, d, f = a - mean, d - mean, f - mean
    square = (a * a + d * d + f * f + 2.0 * (b * b + c * c + e * e)) / 6.0
    spread = math.sqrt(square)
    cosine = 0.0
    if spread > 0.0:
        determinant = a * (d * f - e * e) - b * (b * f - e * c) + c * (b * e - d * c)
        cosine = min(1.0, max(-1.0, determinant / (2.0 * square * spread)))
    high = 2.0 * spread * _third_of_angle(cosine)
    low = -2.0 * spread * _third_of_angle(-cosine)
    out[row, column] = mean + high
    out[row, column + 1] = mean - high - low
    out[row, column + 2] = mean + low


@kernel
def _write_features(
    scale: FilteredScale, rows: Any, columns: Any, first: Any, stop: Any, axes: Any, column: Any,
    out: Any,
) -> None:  # fmt: skip
    """Write the features of one scale of rows `first` to `stop` - 1. No bounds checking.

    Double precision, because nearly equal eigenvalues need it. With two axes the planes before and
    after are the plane itself, and what is computed from them is not used.
    """
    values, margins, sigmas, parts = scale
    deep = np.int64(axes == 3)
    sz = np.float64(sigmas[0])
    sy = np.float64(sigmas[1])
    sx = np.float64(sigmas[2])
    to = np.int64(0)
    for line in range(first, stop):
        plane = line // rows
        row = line % rows
        z = plane + margins[0]
        y = row + margins[1]
        here = values[z, y]
        north = values[z, y - 1]
        south = values[z, y + 1]
        over = values[z - deep, y]
        under = values[z + deep, y]
        over_north = values[z - deep, y - 1]
        over_south = values[z - deep, y + 1]
        under_north = values[z + deep, y - 1]
        under_south = values[z + deep, y + 1]
        for k in range(columns):
            x = k + margins[2]
            value = np.float64(here[x])
            up = np.float64(north[x])
            down = np.float64(south[x])
            left = np.float64(here[x - 1])
            right = np.float64(here[x + 1])
            gy = 0.5 * sy * (down - up)
            gx = 0.5 * sx * (right - left)
            yy = sy * sy * (down + up - 2.0 * value)
            xx = sx * sx * (right + left - 2.0 * value)
            yx = (
                0.25
                * sy
                * sx
                * (
                    (np.float64(south[x + 1]) - south[x - 1])
                    - (np.float64(north[x + 1]) - north[x - 1])
                )
            )
            gz = zz = zy = zx = 0.0
            if axes == 3:
                above = np.float64(over[x])
                below = np.float64(under[x])
                gz = 0.5 * sz * (below - above)
                zz = sz * sz * (below + above - 2.0 * value)
                zy = (
                    0.25
                    * sz
                    * sy
                    * (
                        (np.float64(under_south[x]) - under_north[x])
                        - (np.float64(over_south[x]) - over_north[x])
                    )
                )
                zx = (
                    0.25
                    * sz
                    * sx
                    * (
                        (np.float64(under[x + 1]) - under[x - 1])
                        - (np.float64(over[x + 1]) - over[x - 1])
                    )
                )
            out[to, column] = value
            out[to, column + 1] = math.sqrt(gz * gz + gy * gy + gx * gx)
            out[to, column + 2] = zz + yy + xx
            _write_eigenvalues(zz, zy, zx, yy, yx, xx, axes, to, column + 3, out)
            if parts.shape[0] == 6:
                _write_eigenvalues(
                    np.float64(parts[0, plane, row, k]), np.float64(parts[1, plane, row, k]),
                    np.float64(parts[2, plane, row, k]), np.float64(parts[3, plane, row, k]),
                    np.float64(parts[4, plane, row, k]), np.float64(parts[5, plane, row, k]),
                    axes, to, column + 6, out,
                )  # fmt: skip
            elif parts.shape[0] == 3:
                _write_eigenvalues(
                    0.0, 0.0, 0.0, np.float64(parts[0, plane, row, k]),
                    np.float64(parts[1, plane, row, k]), np.float64(parts[2, plane, row, k]),
                    axes, to, column + 5, out,
                )  # fmt: skip
            to += 1


@kernel
def _multiply_slopes(values: Any, sigmas: Any, ring: Any, out: Any) -> None:
    """Write the products of the slopes along each two axes; `out` is smaller by `ring`."""
    products, planes, rows, columns = out.shape
    deep = ring[0]
    for plane in range(planes):
        for row in range(rows):
            z = plane + deep
            y = row + 1
            for k in range(columns):
                x = k + 1
                gz = 0.5 * sigmas[0] * (values[z + deep, y, x] - values[z - deep, y, x])
                gy = 0.5 * sigmas[1] * (values[z, y + 1, x] - values[z, y - 1, x])
                gx = 0.5 * sigmas[2] * (values[z, y, x + 1] - values[z, y, x - 1])
                if products == 6:
                    out[0, plane, row, k] = gz * gz
                    out[1, plane, row, k] = gz * gy
                    out[2, plane, row, k] = gz * gx
                out[products - 3, plane, row, k] = gy * gy
                out[products - 2, plane, row, k] = gy * gx
                out[products - 1, plane, row, k] = gx * gx
