"""Random fields and label images, reproducible to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int32]
Floats = NDArray[np.float32]
# Coarse samples in a correlation length: enough that linear interpolation leaves no facets.
_SAMPLES_PER_SIGMA = 2


def fill_unlabelled(labels: Labels, within: Labels | None = None) -> None:
    """Grow the labels over the zeros, in place, one face at a time.

    Growth through faces keeps each label connected; the nearest label would not. With `within`, a
    label grows only over pixels of the same value there, and zeros may remain. Both arrays are
    C-contiguous.
    """
    flat = labels.reshape(-1)
    bounds = None if within is None else within.reshape(-1)
    strides = [int(np.prod(labels.shape[axis + 1 :])) for axis in range(labels.ndim)]
    empty = np.flatnonzero(flat == 0)
    while empty.size:
        place = np.unravel_index(empty, labels.shape)
        new = np.zeros(empty.size, dtype=labels.dtype)
        for axis, stride in enumerate(strides):
            for step, inside in (
                (-stride, place[axis] > 0),
                (stride, place[axis] < labels.shape[axis] - 1),
            ):
                take = np.flatnonzero(inside & (new == 0))
                there = empty[take] + step
                if bounds is not None:
                    same = bounds[there] == bounds[empty[take]]
                    take, there = take[same], there[same]
                new[take] = flat[there]
        if not new.any():
            return
        flat[empty] = new
        empty = empty[new == 0]


def separate(labels: Labels, min_size: int) -> Labels:
    """Label each connected piece, 1..n; pieces under `min_size` are absorbed by neighbours."""
    pieces = _pieces(labels)
    sizes = np.bincount(pieces.reshape(-1))
    keep = sizes >= min_size
    keep[int(np.argmax(sizes))] = True
    keep[0] = False
    table = np.where(keep, np.cumsum(keep), 0).astype(np.int32)
    result: Labels = np.ascontiguousarray(table[pieces])
    fill_unlabelled(result)
    return result


def edges(labels: Labels, within: Labels | None = None) -> NDArray[np.bool_]:
    """Return the pixels with a face neighbour of another label (and of the same `within`)."""
    result = np.zeros(labels.shape, dtype=bool)
    for axis in range(labels.ndim):
        along = np.moveaxis(labels, axis, 0)
        differ = along[:-1] != along[1:]
        if within is not None:
            beside = np.moveaxis(within, axis, 0)
            differ &= beside[:-1] == beside[1:]
        mark = np.moveaxis(result, axis, 0)
        mark[:-1] |= differ
        mark[1:] |= differ
    return result


def without_edges(labels: Labels, *, neck: int = 3) -> Labels:
    """Return `labels` with 0 (not annotated) at the edges, every label still connected.

    A label that would fall apart at a narrow neck keeps its edge within `neck` pixels of the neck;
    if that is not enough, or nothing else is left of it, everywhere. Detached specks of up to
    ``neck ** ndim`` pixels are dropped.
    """
    from scipy import ndimage

    edge = edges(labels)
    pieces, _ = _large_pieces(np.where(edge, np.int32(0), labels), neck**labels.ndim)
    fill_unlabelled(pieces, within=labels)
    seam = edges(pieces, within=labels)  # where two pieces of one label meet
    edge &= ~ndimage.binary_dilation(seam, iterations=neck)
    thin = np.where(edge, np.int32(0), labels)
    pieces, owner = _large_pieces(thin, neck**labels.ndim)
    whole = np.bincount(owner, minlength=int(labels.max()) + 1) == 1
    return np.where(whole[labels], np.where(pieces > 0, labels, 0), labels)


def _large_pieces(labels: Labels, speck: int) -> tuple[Labels, NDArray[np.int32]]:
    """Return the pieces of more than `speck` pixels (others 0), and the label of each."""
    pieces = _pieces(labels)
    sizes = np.bincount(pieces.reshape(-1))
    owner = np.zeros(sizes.size, dtype=np.int32)
    owner[pieces.reshape(-1)] = labels.reshape(-1)
    keep = (sizes > speck) & (owner > 0)
    return np.ascontiguousarray(np.where(keep[pieces], pieces, 0)), owner[keep]


def _pieces(labels: Labels) -> Labels:
    """Return the connected pieces of equal label as 1..n; 0 stays 0."""
    from skimage import measure

    numbered: Any = measure.label
    pieces = numbered(labels, connectivity=1, background=0)
    return np.ascontiguousarray(pieces, dtype=np.int32)


def generator(kind: int, seed: int) -> np.random.Generator:
    """Return a generator that depends on `kind` and `seed` alone (its algorithm is fixed)."""
    return np.random.Generator(np.random.PCG64([seed, kind]))


def smooth_noise(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> Floats:
    """Return a Gaussian random field of zero mean, unit variance, correlation length `sigma`.

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
    """Interpolate `field` linearly at `position` along one axis."""
    low = position.astype(np.int64)
    column = (-1,) + (1,) * (field.ndim - 1 - axis)
    weight = (position - low).astype(np.float32).reshape(column)
    below = np.take(field, low, axis=axis)
    return below + weight * (np.take(field, low + 1, axis=axis) - below)
