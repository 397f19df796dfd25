"""One panel, pixel by pixel: colours over the image, thin outlines, and what flashes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_COLOURS = 4096
_FLASH = np.array([1.0, 0.95, 0.45], np.float32)
_TINT, _LIT = 0.42, 0.25  # strength of a colour, and what a flash adds to it


@cache
def palette() -> NDArray[np.float32]:
    """Return colours for labels, modulo their number; close labels are far apart in hue."""
    from matplotlib.colors import hsv_to_rgb

    i = np.arange(_COLOURS)
    # The golden ratio spreads hues evenly; the other two vary to tell close hues apart.
    hsv = np.stack([i * 0.618034 % 1, 0.55 + 0.4 * (i * 0.4142 % 1), 0.75 + 0.25 * (i * 0.732 % 1)])
    return np.asarray(hsv_to_rgb(hsv.T), np.float32)


def draw_panel(
    backdrop: NDArray[np.float32], labels: NDArray[Any], flashing: NDArray[np.float32] | None = None
) -> NDArray[np.uint8]:
    """Return a picture of labels over an image.

    Parameters
    ----------
    backdrop : ndarray of float32, shape (rows, columns, 3)
        0 to 1.
    labels : ndarray of int, shape (rows, columns)
        Where it is 0 the image stays bare.
    flashing : ndarray of float32, shape (rows, columns), optional
        How brightly each pixel flashes, 0 to 1.

    Examples
    --------
    >>> draw_panel(np.zeros((2, 3, 3), np.float32), np.array([[1, 1, 2]] * 2)).shape
    (2, 3, 3)
    """
    lit = np.zeros(labels.shape, np.float32) if flashing is None else flashing
    alpha = np.where(labels > 0, _TINT + _LIT * lit, 0).astype(np.float32)[..., None]
    picture = backdrop * (1 - alpha) + palette()[labels % _COLOURS] * alpha
    edge, bright = _edges(labels, lit)
    picture[edge] *= 0.3
    strength = bright[..., None]
    picture = picture * (1 - strength) + _FLASH * strength
    return np.asarray(np.rint(np.clip(picture, 0, 1) * 255), np.uint8)


def _edges(
    labels: NDArray[Any], lit: NDArray[np.float32]
) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """Return where labels border on each other, and how brightly the outlines of flashes shine."""
    from scipy.ndimage import maximum_filter

    edge = np.zeros(labels.shape, np.bool_)
    bright = np.zeros(labels.shape, np.float32)
    for one, two in (
        (np.s_[:-1], np.s_[1:]),
        (np.s_[:, :-1], np.s_[:, 1:]),
    ):
        border = labels[one] != labels[two]
        edge[one] |= border
        shining = np.where(border, np.maximum(lit[one], lit[two]), 0)
        bright[one] = np.maximum(bright[one], shining)
    if bright.any():
        bright = maximum_filter(bright, 3)  # three pixels wide, to be seen beside thin outlines
    return edge, bright
