"""Eigenvectors of a photograph, whose gradients are strong where large parts of it meet.

Strategy (after Arbelaez et al. 2011): two pixels belong together by as much as no boundary lies on
the line between them. The first eigenvectors of the normalised cut of this graph are nearly
constant within large parts of the image, and change where a boundary closes: a line inside of a
texture, however strong, has another way around it. The image is reduced before, and the matrix is
decimated and multiplied with itself (Pont-Tuset et al. 2017), so that its eigenvectors are those of
a graph of some thousand pixels. In its own file because it knows of strengths alone, and nothing of
colours, discs and weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_PIXELS = 1 << 16  # at most, of the reduced image
_REACH = 5  # distance of two pixels that are compared, in pixels of the reduced image
_SOFTNESS = 0.3  # of the strength of a boundary: one of 1 leaves 0.04 of a likeness
_VECTORS = 16
_FEW = 1 << 12  # pixels up to which a matrix is not decimated
_TINY = 1e-6  # least eigenvalue, so that none divides by 0


def spectral_gradients(strength: Floats, directions: int) -> Floats:
    """Return the gradients of the eigenvectors of an image, added up, for each direction of a line.

    Parameters
    ----------
    strength : ndarray of float32, 2-D
        Strength of the boundary at each pixel, 0 to 1.
    directions : int
        Number of directions, as of an `OrientedMap`.

    Returns
    -------
    ndarray of float32, shape (directions, ...)
        0 where no large parts meet, rarely above 10.
    """
    factor = max(2, math.ceil(math.sqrt(strength.size / _PIXELS)))
    small = _reduced(strength, factor)
    if min(small.shape) < 2 or small.size <= 2 * _VECTORS:  # too few pixels to have parts
        return np.zeros((directions, *strength.shape), np.float32)
    vectors, values = _normalised_cuts(likenesses(small), small.shape)
    sums = _gradients(vectors, values, directions)
    return np.stack([_enlarged(plane, strength.shape, factor) for plane in sums])


def _reduced(strength: Floats, factor: int) -> Floats:
    """Return the highest strength in each square of pixels, so that thin boundaries stay closed."""
    rows, columns = (-n % factor for n in strength.shape)
    padded = np.pad(strength, ((0, rows), (0, columns)), mode="edge")
    height, width = (n // factor for n in padded.shape)
    small: Floats = padded.reshape(height, factor, width, factor).max(axis=(1, 3))
    return small


def likenesses(strength: Floats) -> Any:
    """Return the sparse matrix of the likeness of pixels, by the strongest boundary between them.

    The boundary is that of the pixels of the straight line from one to the other, both included.
    """
    from scipy import sparse

    height, width = strength.shape
    numbers = np.arange(strength.size).reshape(strength.shape)
    firsts, seconds, likes = [], [], []
    for down in range(min(_REACH, height - 1) + 1):
        for right in range(-min(_REACH, width - 1), min(_REACH, width - 1) + 1):
            if down**2 + right**2 > _REACH**2 or (down == 0 and right <= 0):
                continue  # a pair is met once
            steps = max(down, abs(right))
            left = max(0, -right)
            rows, columns = height - down, width - abs(right)

            def at(image: NDArray[Any], r: int, c: int, rows: int = rows, columns: int = columns,
                   left: int = left) -> NDArray[Any]:  # fmt: skip
                return image[r : r + rows, left + c : left + c + columns]

            highest = at(strength, 0, 0)
            for step in range(1, steps + 1):
                r, c = round(down * step / steps), round(right * step / steps)
                highest = np.maximum(highest, at(strength, r, c))
            firsts.append(at(numbers, 0, 0).ravel())
            seconds.append(at(numbers, down, right).ravel())
            likes.append(np.exp(highest.ravel() / np.float32(-_SOFTNESS)))
    pairs = np.concatenate(firsts), np.concatenate(seconds)
    half = sparse.coo_array((np.concatenate(likes), pairs), (strength.size,) * 2).tocsr()
    return (half + half.T + sparse.diags_array(np.ones(strength.size, np.float32))).tocsr()


def _normalised_cuts(matrix: Any, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the first eigenvectors, (rows, columns, vector), of variance 1, and their values."""
    from scipy import sparse

    spreads = []  # from the pixels that were kept to all
    kept = shape
    while math.prod(kept) > _FEW:
        grid = np.arange(math.prod(kept)).reshape(kept)[1::2, 1::2]
        rows = matrix[grid.ravel()]
        shares = sparse.diags_array(1.0 / (rows.sum(axis=0) + _TINY))
        spread = (rows @ shares).T.tocsr()
        matrix = rows @ spread
        matrix = (matrix + matrix.T) * 0.5
        spreads.append(spread)
        kept = grid.shape
    scale = 1.0 / np.sqrt(matrix.sum(axis=1) + _TINY)
    vectors, values = _largest(sparse.diags_array(scale) @ matrix @ sparse.diags_array(scale))
    vectors *= scale[:, None]
    for spread in reversed(spreads):
        vectors = spread @ vectors
    vectors -= vectors.mean(axis=0)
    vectors /= np.maximum(vectors.std(axis=0), _TINY)
    return vectors.reshape(*shape, -1), values


def _largest(matrix: Any) -> tuple[Any, Any]:
    """Return the eigenvectors of the largest values but the first, and 1 minus these values."""
    from scipy.sparse.linalg import eigsh

    n = matrix.shape[0]
    start = np.random.default_rng(0).random(n)  # the same image, the same vectors
    values, vectors = eigsh(
        matrix.astype(np.float64), k=_VECTORS + 1, which="LA", v0=start,
        ncv=min(n, 3 * _VECTORS + 20), tol=1e-4,
    )  # fmt: skip
    order = np.argsort(-values)[1:]
    return vectors[:, order], np.maximum(1.0 - values[order], _TINY)


def _gradients(vectors: Any, values: Any, directions: int) -> Floats:
    """Return the sum over vectors of the change across a line, by the root of their values."""
    from scipy import ndimage

    out = np.zeros((directions, *vectors.shape[:2]), np.float32)
    for vector, value in zip(np.moveaxis(vectors, -1, 0), values, strict=True):
        down, right = (
            ndimage.gaussian_filter(vector, 1.0, order=order) / math.sqrt(value)
            for order in ((1, 0), (0, 1))
        )
        for k in range(directions):
            angle = math.pi * k / directions  # of the line, counter-clockwise from a row
            out[k] += np.abs(down * math.cos(angle) + right * math.sin(angle))
    return out


def _enlarged(plane: Floats, shape: tuple[int, ...], factor: int) -> Floats:
    """Return a reduced plane in the size of the image, by linear interpolation."""
    from scipy import ndimage

    at = np.meshgrid(*((np.arange(n) + 0.5) / factor - 0.5 for n in shape), indexing="ij")
    large: Floats = ndimage.map_coordinates(plane, at, order=1, mode="nearest")
    return large
