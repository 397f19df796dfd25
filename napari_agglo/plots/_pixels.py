"""Pictures made of pixels: a grey image, enlarged, with the borders of labels on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RGB = tuple[float, float, float]


def grey(plane: NDArray[Any]) -> NDArray[np.float64]:
    """Return a plane, grey or coloured, as RGB from 0 to 1; values that are no numbers are black.

    Examples
    --------
    >>> grey(np.array([[0, 10]]))[0, :, 0].round().tolist()
    [0.0, 1.0]
    """
    values = np.asarray(plane, float)
    if values.ndim == 2:
        values = np.repeat(values[..., None], 3, axis=2)
    elif values.shape[-1] < 3:
        values = np.repeat(values[..., :1], 3, axis=2)
    finite = values[np.isfinite(values)]
    low, high = np.percentile(finite, [0.5, 99.5]) if finite.size else (0.0, 1.0)
    scaled = (np.nan_to_num(values[..., :3], nan=low, posinf=high, neginf=low) - low) / max(
        float(high - low), 1e-9
    )
    return np.asarray(np.clip(scaled, 0, 1))


def factors(
    shape: Sequence[int], wanted: int = 480, spacing: Sequence[float] = (1.0, 1.0)
) -> tuple[int, int]:
    """Return how often to repeat rows and columns, so that the longer side is about `wanted`.

    Examples
    --------
    >>> factors((100, 160), 480), factors((40, 160), 480, (40.0, 10.0))
    ((3, 3), (12, 3))
    """
    size = [n * distance for n, distance in zip(shape, spacing, strict=True)]
    scale = wanted / max(*size, 1e-12)
    return max(1, round(scale * spacing[0])), max(1, round(scale * spacing[1]))


def enlarged(plane: NDArray[Any], times: tuple[int, int]) -> NDArray[Any]:
    """Repeat pixels, so that an outline one pixel wide is a thin line and hides nothing."""
    return plane.repeat(times[0], axis=0).repeat(times[1], axis=1)


def borders(labels: NDArray[Any], *, width: int = 1) -> NDArray[np.bool_]:
    """Return the pixels at which the label of the next in row or column differs.

    Examples
    --------
    >>> borders(np.array([[1, 1, 2, 2]])).tolist()
    [[False, True, False, False]]
    """
    edge = np.zeros(labels.shape, bool)
    edge[:-1] |= labels[:-1] != labels[1:]
    edge[:, :-1] |= labels[:, :-1] != labels[:, 1:]
    return thickened(edge, width)


def thickened(edge: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Return a line `width` pixels wide where there was one of one pixel."""
    if width <= 1:
        return edge
    from scipy.ndimage import binary_dilation

    return np.asarray(binary_dilation(edge, np.ones((width, width), bool)))


def outlined(
    picture: NDArray[np.float64], edge: NDArray[np.bool_], colour: RGB
) -> NDArray[np.float64]:
    """Return a picture with some of its pixels in one colour."""
    result = picture.copy()
    result[edge] = colour
    return result


def tinted(
    picture: NDArray[np.float64], colour: RGB, strength: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Lay a colour over a picture, from 0, not at all, to 1."""
    return np.asarray(picture * (1 - strength[..., None]) + np.array(colour) * strength[..., None])
