"""Pictures made of pixels: grey, enlarged, tinted, with borders of labels; colours of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RGB = tuple[float, float, float]

# Pixels and their next ones, along rows and along columns.
NEXT: tuple[tuple[Any, Any], ...] = ((np.s_[:-1], np.s_[1:]), (np.s_[:, :-1], np.s_[:, 1:]))


def grey(plane: NDArray[Any]) -> NDArray[np.float64]:
    """Return a plane, grey or coloured, as RGB from 0 to 1; NaN is black.

    Parameters
    ----------
    plane : ndarray
        Two axes, and a third of three colours if there are any.

    Returns
    -------
    ndarray of float, shape (rows, columns, 3)
        RGB, stretched from the 0.5th to the 99.5th percentile.

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
    shape: Sequence[int], side: int = 480, spacing: Sequence[float] = (1.0, 1.0)
) -> tuple[int, int]:
    """Return the repeats of rows and columns that make the longer side about `side` pixels.

    Examples
    --------
    >>> factors((100, 160), 480), factors((40, 160), 480, (40.0, 10.0))
    ((3, 3), (12, 3))
    """
    size = [n * distance for n, distance in zip(shape, spacing, strict=True)]
    scale = side / max(*size, 1e-12)
    return max(1, round(scale * spacing[0])), max(1, round(scale * spacing[1]))


def enlarged(plane: NDArray[Any], times: tuple[int, int]) -> NDArray[Any]:
    """Repeat pixels, so that an outline one pixel wide is a thin line."""
    return plane.repeat(times[0], axis=0).repeat(times[1], axis=1)


def borders(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the pixels at which the label of the next in row or column differs.

    Examples
    --------
    >>> borders(np.array([[1, 1, 2, 2]])).tolist()
    [[False, True, False, False]]
    """
    edge = np.zeros(labels.shape, bool)
    for here, there in NEXT:
        edge[here] |= labels[here] != labels[there]
    return edge


def thickened(edge: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Return a line one pixel wide as a line of `width` pixels."""
    from scipy.ndimage import binary_dilation

    return np.asarray(binary_dilation(edge, np.ones((width, width), bool)))


def outlined(
    picture: NDArray[np.float64], edge: NDArray[np.bool_], colour: RGB
) -> NDArray[np.float64]:
    """Return a picture with the pixels of `edge` in one colour."""
    result = picture.copy()
    result[edge] = colour
    return result


def tinted(
    picture: NDArray[np.float64], colour: RGB | NDArray[np.float64], strength: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Blend a colour, or one for each pixel, into a picture with a strength from 0 to 1.

    Parameters
    ----------
    picture : ndarray of float, shape (rows, columns, 3)
        RGB from 0 to 1.
    colour : sequence of three floats, or ndarray
        RGB of one colour, or of each pixel.
    strength : ndarray of float
        Of each pixel: 0 leaves it, 1 is the colour.

    Returns
    -------
    ndarray of float
        The blended picture.
    """
    return np.asarray(picture * (1 - strength[..., None]) + np.array(colour) * strength[..., None])


def label_colours(n: int) -> NDArray[np.float64]:
    """Return RGB colours of labels 0 to n - 1, close labels far apart in hue.

    Parameters
    ----------
    n : int
        The number of labels, 0 included.

    Returns
    -------
    ndarray of float, shape (n, 3)
        RGB from 0 to 1.

    Examples
    --------
    >>> label_colours(3).shape
    (3, 3)
    """
    from matplotlib.colors import hsv_to_rgb

    i = np.arange(n)
    # The golden ratio spreads hues evenly for any n; saturation and value vary to tell close hues.
    hsv = np.stack([i * 0.618034 % 1, 0.55 + 0.4 * (i * 0.4142 % 1), 0.75 + 0.25 * (i * 0.732 % 1)])
    return np.asarray(hsv_to_rgb(hsv.T), float)
