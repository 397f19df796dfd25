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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel

Array = NDArray[np.float32]
_TRUNCATE = 4.0  # sigmas, as in scipy
_OUTER = 0.5  # sigmas: width of the mean that the structure tensor takes, as in ilastik
_PIECE = 128  # voxels of a line whose features are in the fastest memory at a time


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


def smooth(
    source: Array,
    sigmas: Sequence[float],
    margins: Sequence[int],
    cut: Sequence[int] = (0, 0, 0),
    out: Array | None = None,
) -> Array:
    """Return the middle of a smoothed block: `margins` voxels less on both sides of each axis.

    `source` has three axes; a margin is at least the reach of the Gaussian along its axis. `cut` is
    the number of voxels on both sides of each axis that are not read at all. The result is in
    `out`, if that is given.
    """
    if out is None:
        if not any(margins) and not any(cut) and not any(sigmas):
            return source
        less = [2 * (m + c) for m, c in zip(margins, cut, strict=True)]
        out = np.empty([n - one for n, one in zip(source.shape, less, strict=True)], np.float32)
    # Between two axes there are one page and one line: only the result is in new memory.
    _smooth_block(
        np.ascontiguousarray(source), gaussian(sigmas[0]), gaussian(sigmas[1]),
        gaussian(sigmas[2]), np.array(margins),
        np.array(cut), np.empty(source.shape[1:] if sigmas[0] > 0 else (1, 1), np.float32),
        np.empty(source.shape[2], np.float32), out,
    )  # fmt: skip
    return out


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

    Examples
    --------
    >>> bank = FilterBank(scales=(1.0, 2.0), axes=2)
    >>> bank.width, bank.names[:2]
    (10, ('value at 1', 'gradient at 1'))
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
        """Return a scale in voxels of each axis; 0 for axes that are not filtered along.

        Parameters
        ----------
        scale : float
            In units of the finest spacing.
        spacing : sequence of float
            Distance between voxels along each axis.

        Returns
        -------
        tuple of float
            A standard deviation for each axis.
        """
        fine = min(spacing[3 - self.axes :])
        skipped = 3 - self.axes
        return (0.0,) * skipped + tuple(scale * fine / one for one in spacing[skipped:])

    def reach(self, spacing: Sequence[float]) -> tuple[int, ...]:
        """Return the distance along each axis up to which voxels count for a feature.

        Parameters
        ----------
        spacing : sequence of float
            Distance between voxels along each axis.

        Returns
        -------
        tuple of int
            A number of voxels for each axis.
        """
        needs = [self._needs(self.sigmas(scale, spacing)) for scale in self.scales]
        return tuple(
            max(gauss + margin for gauss, margin in axis) for axis in zip(*needs, strict=True)
        )

    def apply(self, block: Array, spacing: Sequence[float], pool: Executor) -> FilteredBlock:
        """Smooth a block, (channel, plane, row, column) with its `reach` on all sides.

        Parameters
        ----------
        block : ndarray
            The voxels of the block and of its margin.
        spacing : sequence of float
            Distance between voxels along each axis.
        pool : Executor
            Runs the filters side by side.

        Returns
        -------
        FilteredBlock
            The smoothed block, from which the features are computed.
        """
        reach = self.reach(spacing)
        inner = [n - 2 * r for n, r in zip(block.shape[1:], reach, strict=True)]
        sigmas = np.array([self.sigmas(scale, spacing) for scale in self.scales])
        n = self.channels * len(self.scales)
        rings = [2 * int(sigma > 0) for sigma in sigmas[0]]
        products = self.axes * (self.axes + 1) // 2 if self.structure else 0
        filtered = FilteredBlock(
            self, (inner[0], inner[1], inner[2]),
            np.empty((n, *(a + b for a, b in zip(inner, rings, strict=True))), np.float32),
            np.tile(sigmas, (self.channels, 1)),
            np.empty((n, products, *(inner if products else (1, 1, 1))), np.float32),
        )  # fmt: skip
        tasks = [
            pool.submit(self._apply_scale, channel, reach, filtered, c * len(self.scales) + k)
            for c, channel in enumerate(block)
            for k in range(len(self.scales))
        ]
        for task in tasks:
            task.result()
        return filtered

    def _needs(self, sigmas: Sequence[float]) -> list[tuple[int, int]]:
        """Return the reach of the Gaussian along each axis, and the margin to leave around."""
        return [
            (len(gaussian(sigma)) - 1,
             int(sigma > 0) + (len(gaussian(_OUTER * sigma)) - 1 if self.structure else 0))
            for sigma in sigmas
        ]  # fmt: skip

    def _apply_scale(
        self, channel: Array, reach: tuple[int, ...], filtered: FilteredBlock, k: int
    ) -> None:
        """Write one scale of a channel, the number `k` of all, into a block."""
        sigmas = tuple(float(sigma) for sigma in filtered.sigmas[k])
        needs = self._needs(sigmas)
        gauss = [one for one, _ in needs]
        margins = [margin for _, margin in needs]
        cut = [r - g - m for r, g, m in zip(reach, gauss, margins, strict=True)]
        if not self.structure:
            smooth(channel, sigmas, gauss, cut, filtered.values[k])
            return
        wide = smooth(channel, sigmas, gauss, cut)
        ring = np.array([int(sigma > 0) for sigma in sigmas])
        shape = tuple(n - 2 * int(r) for n, r in zip(wide.shape, ring, strict=True))
        products = np.empty((filtered.parts.shape[1], *shape), np.float32)
        _multiply_slopes(wide, np.array(sigmas), ring, products)
        outer = [_OUTER * sigma for sigma in sigmas]
        less = [m - int(r) for m, r in zip(margins, ring, strict=True)]
        for product, part in zip(products, filtered.parts[k], strict=True):
            smooth(product, outer, less, out=part)
        middle = tuple(slice(one, n - one) for one, n in zip(less, wide.shape, strict=True))
        filtered.values[k] = wide[middle]


@dataclass(frozen=True, eq=False)
class FilteredBlock:
    """A block that has been smoothed; it writes the features of any of its rows.

    Attributes
    ----------
    values : ndarray
        (scale, plane, row, column), with one voxel more on both sides of each axis that is
        filtered along; all scales of the first channel come first.
    sigmas : ndarray
        (scale, axis), in voxels.
    parts : ndarray
        (scale, product, plane, row, column): the products of the slopes, smoothed (00, 01, 02, 11,
        12, 22; two axes: 11, 12, 22). None without the structure tensor.
    """

    bank: FilterBank
    shape: tuple[int, int, int]
    values: Array
    sigmas: NDArray[np.float64]
    parts: Array

    def features(self, first: int, stop: int, buffer: Array | None = None) -> Array:
        """Return the features of the voxels in rows `first` to `stop` - 1, counted over planes.

        They are in `buffer`, if there is one that has as many rows or more: to write to memory that
        is new takes as long as to compute them.
        """
        _, rows, columns = self.shape
        n = (stop - first) * columns
        if buffer is None or len(buffer) < n:
            buffer = np.empty((n, self.bank.width), np.float32)
        out = buffer[:n]
        line_of = np.empty((self.bank.width, min(columns, _PIECE)), np.float32)
        _write_features(self.values, self.sigmas, self.parts, rows, columns, first, stop,
                        None if self.bank.axes == 2 else 1, line_of, out)  # fmt: skip
        return out


@inlined
def _add_neighbours(
    source: Any,
    row: Any,
    step: Any,
    start: Any,
    shift: Any,
    weights: Any,
    n: Any,
    line: Any,
    to: Any,
) -> None:
    """Convolve a line with symmetric weights: write ``line[to:to + n]``.

    The middle is ``source[row, start:]``; the neighbours are `step` rows or `shift` columns apart.
    Each inner loop runs along memory and adds four pairs of neighbours to all voxels of the line,
    which LLVM makes vector code of; what is left over is added pair by pair.
    """
    middle = source[row, start : start + n]
    target = line[to : to + n]
    for k in range(n):
        target[k] = weights[0] * middle[k]
    far = 1
    while far + 3 < weights.size:
        w0 = weights[far]
        w1 = weights[far + 1]
        w2 = weights[far + 2]
        w3 = weights[far + 3]
        at = start - far * shift
        b0 = source[row - far * step, at : at + n]
        at = start + far * shift
        a0 = source[row + far * step, at : at + n]
        at = start - (far + 1) * shift
        b1 = source[row - (far + 1) * step, at : at + n]
        at = start + (far + 1) * shift
        a1 = source[row + (far + 1) * step, at : at + n]
        at = start - (far + 2) * shift
        b2 = source[row - (far + 2) * step, at : at + n]
        at = start + (far + 2) * shift
        a2 = source[row + (far + 2) * step, at : at + n]
        at = start - (far + 3) * shift
        b3 = source[row - (far + 3) * step, at : at + n]
        at = start + (far + 3) * shift
        a3 = source[row + (far + 3) * step, at : at + n]
        for k in range(n):
            sums = target[k] + w0 * (b0[k] + a0[k])
            sums = sums + w1 * (b1[k] + a1[k])
            sums = sums + w2 * (b2[k] + a2[k])
            target[k] = sums + w3 * (b3[k] + a3[k])
        far += 4
    while far < weights.size:
        w0 = weights[far]
        at = start - far * shift
        b0 = source[row - far * step, at : at + n]
        at = start + far * shift
        a0 = source[row + far * step, at : at + n]
        for k in range(n):
            target[k] = target[k] + w0 * (b0[k] + a0[k])
        far += 1


@kernel
def _smooth_block(
    source: Any, along_0: Any, along_1: Any, along_2: Any, margins: Any, cut: Any, page: Any,
    line: Any, out: Any,
) -> None:  # fmt: skip
    """Convolve along all axes, the first one first; leave out `margins` and `cut` at both ends.

    `page` and `line` are buffers of a plane and a row of `source`. No bounds checking.
    """
    planes, rows, columns = out.shape
    deep = along_0.size > 1
    all_rows = source.shape[1]
    whole = source.shape[2] - 2 * cut[2]  # columns that the last axis reads
    flat = source.reshape(-1, source.shape[2])
    lines = line.reshape(1, -1)
    for plane in range(planes):
        at = (plane + margins[0] + cut[0]) * all_rows
        if deep:
            for row in range(cut[1], all_rows - cut[1]):
                _add_neighbours(flat, at + row, all_rows, cut[2], 0, along_0, whole, page[row],
                                cut[2])  # fmt: skip
        for row in range(rows):
            y = row + margins[1] + cut[1]
            if deep:
                _add_neighbours(page, y, 1, cut[2], 0, along_1, whole, line, cut[2])
            else:
                _add_neighbours(flat, at + y, 1, cut[2], 0, along_1, whole, line, cut[2])
            _add_neighbours(lines, 0, 0, margins[2] + cut[2], 1, along_2, columns, out[plane, row],
                            0)  # fmt: skip


@inlined
def _third_of_angle(cosine: Any) -> Any:
    """Return cos(acos(x) / 3), to 3e-8: a polynomial in sqrt((1 + x) / 2), where it is smooth."""
    t = math.sqrt(max(0.0, 0.5 + 0.5 * cosine))
    high = 0.01604728037 + t * (-0.006089345676 + t * 0.001127636238)
    low = -0.1110385112 + t * (0.05284140914 + t * (-0.03023539757 + t * high))
    return 0.500000026 + t * (0.5773469174 + t * low)


@inlined
def _write_eigenvalues(
    a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, deep: Any, first: Any, k: Any, out: Any
) -> None:
    """Write the eigenvalues of [[a, b, c], [b, d, e], [c, e, f]], or of [[d, e], [e, f]].

    They go to ``out[first:, k]``, the highest first. Three axes: the trigonometric solution (Smith,
    1961).
    """
    if deep is None:
        mean = 0.5 * (d + f)
        half = 0.5 * (d - f)
        spread = math.sqrt(half * half + e * e)
        out[first, k] = mean + spread
        out[first + 1, k] = mean - spread
    else:
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
        out[first, k] = mean + high
        out[first + 1, k] = mean - high - low
        out[first + 2, k] = mean + low


@inlined
def _differences_of_line(
    values: Any, sigmas: Any, plane: Any, row: Any, begin: Any, n: Any, deep: Any, line_of: Any
) -> None:
    """Write the features of `n` voxels of a line that are differences of neighbours."""
    sz = np.float64(sigmas[0])
    sy = np.float64(sigmas[1])
    sx = np.float64(sigmas[2])
    # Of a plane, differences of neighbours come first, which are exact or nearly so, and no
    # eigenvalue is a small difference of large numbers: single precision is enough, in half of the
    # time. Squares are halved, as the eigenvalues are mean and spread.
    half_y = np.float32(0.5 * sy)
    half_x = np.float32(0.5 * sx)
    square_y = np.float32(0.5 * sy * sy)
    square_x = np.float32(0.5 * sx * sx)
    square_yx = np.float32(0.25 * sy * sx)
    z = plane if deep is None else plane + deep
    y = row + 1
    # Slices begin one voxel before the line, so that the index of a voxel is one more.
    here = values[z, y, begin : begin + n + 2]
    north = values[z, y - 1, begin : begin + n + 2]
    south = values[z, y + 1, begin : begin + n + 2]
    if deep is not None:
        over = values[z - deep, y, begin : begin + n + 2]
        under = values[z + deep, y, begin : begin + n + 2]
        over_north = values[z - deep, y - 1, begin : begin + n + 2]
        over_south = values[z - deep, y + 1, begin : begin + n + 2]
        under_north = values[z + deep, y - 1, begin : begin + n + 2]
        under_south = values[z + deep, y + 1, begin : begin + n + 2]
    plain = line_of[0]
    slope = line_of[1]
    laplacian = line_of[2]
    for k in range(n):
        plain[k] = here[k + 1]
    if deep is None:
        # A loop for each feature or two: with more arrays LLVM gives up to tell them apart.
        highest = line_of[3]
        lowest = line_of[4]
        for k in range(n):
            gy = half_y * (south[k + 1] - north[k + 1])
            gx = half_x * (here[k + 2] - here[k])
            slope[k] = math.sqrt(gy * gy + gx * gx)
        for k in range(n):
            yy = square_y * ((south[k + 1] - here[k + 1]) + (north[k + 1] - here[k + 1]))
            xx = square_x * ((here[k + 2] - here[k + 1]) + (here[k] - here[k + 1]))
            yx = square_yx * ((south[k + 2] - south[k]) - (north[k + 2] - north[k]))
            spread = math.sqrt((yy - xx) * (yy - xx) + yx * yx)
            highest[k] = (yy + xx) + spread
            lowest[k] = (yy + xx) - spread
        for k in range(n):
            laplacian[k] = highest[k] + lowest[k]
    else:
        for k in range(n):
            value = np.float64(here[k + 1])
            up = np.float64(north[k + 1])
            down = np.float64(south[k + 1])
            above = np.float64(over[k + 1])
            below = np.float64(under[k + 1])
            gz = 0.5 * sz * (below - above)
            gy = 0.5 * sy * (down - up)
            gx = 0.5 * sx * (np.float64(here[k + 2]) - here[k])
            zz = sz * sz * (below + above - 2.0 * value)
            yy = sy * sy * (down + up - 2.0 * value)
            xx = sx * sx * (np.float64(here[k + 2]) + here[k] - 2.0 * value)
            across = np.float64(south[k + 2]) - south[k] - (np.float64(north[k + 2]) - north[k])
            yx = 0.25 * sy * sx * across
            across = np.float64(under_south[k + 1]) - under_north[k + 1]
            zy = 0.25 * sz * sy * (across - (np.float64(over_south[k + 1]) - over_north[k + 1]))
            across = np.float64(under[k + 2]) - under[k]
            zx = 0.25 * sz * sx * (across - (np.float64(over[k + 2]) - over[k]))
            slope[k] = math.sqrt(gz * gz + gy * gy + gx * gx)
            laplacian[k] = zz + yy + xx
            _write_eigenvalues(zz, zy, zx, yy, yx, xx, deep, 3, k, line_of)


@kernel
def _write_features(
    values: Any, sigmas: Any, parts: Any, rows: Any, columns: Any, first: Any, stop: Any,
    deep: Any, line_of: Any, out: Any,
) -> None:  # fmt: skip
    """Write the features of rows `first` to `stop` - 1. No bounds checking.

    `deep` is 1, or None with two axes: the compiler leaves out what is for three then. Three axes
    need double precision, because nearly equal eigenvalues do. The features of a line of voxels are
    computed one after another along memory, in the buffer `line_of` (features, columns), which LLVM
    makes vector code of, and copied to the places of the voxels then: once for all scales, so that
    a line of `out` goes to memory once.
    """
    axes = 2 if deep is None else 3
    scales = values.shape[0]
    each = line_of.shape[0] // scales
    to = np.int64(0)
    for line in range(first, stop):
        plane = line // rows
        row = line % rows
        for begin in range(0, columns, line_of.shape[1]):
            n = min(np.int64(line_of.shape[1]), columns - begin)
            for scale in range(scales):
                own = line_of[scale * each : (scale + 1) * each]
                _differences_of_line(values[scale], sigmas[scale], plane, row, begin, n, deep, own)
                if parts.shape[1] > 0:
                    last = parts.shape[1] - 1
                    part = parts[scale, :, plane, row, begin : begin + n]
                    for k in range(n):
                        d = np.float64(part[last - 2, k])
                        e = np.float64(part[last - 1, k])
                        f = np.float64(part[last, k])
                        if deep is None:
                            _write_eigenvalues(0.0, 0.0, 0.0, d, e, f, deep, 3 + axes, k, own)
                        else:
                            a = np.float64(part[0, k])
                            b = np.float64(part[1, k])
                            c = np.float64(part[2, k])
                            _write_eigenvalues(a, b, c, d, e, f, deep, 3 + axes, k, own)
            for k in range(n):
                for feature in range(line_of.shape[0]):
                    out[to + k, feature] = line_of[feature, k]
            to += n


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
