"""One panel, pixel by pixel: colours over the image, thin outlines, and what flashes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.plots import DARK, shown

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont


# Panels, their captions and a time line, put together to one frame.


_GAP, _CAPTION, _LINE = 8, 46, 4  # pixels
_NAME, _SAID, _LEAST = 17, 14, 8  # sizes of type


def compose(
    pictures: Sequence[NDArray[np.uint8]],
    captions: Sequence[tuple[str, str]],
    share: float,
) -> NDArray[np.uint8]:
    """Return one frame.

    Parameters
    ----------
    pictures : sequence of ndarray of uint8, shape (rows, columns, 3)
        One to four panels of one size: side by side; four of them two by two.
    captions : sequence of (str, str)
        The name of each, and what there is to say.
    share : float
        How much of the movie is over, 0 to 1, for the line below.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        Height and width are even, as video needs them.

    Examples
    --------
    >>> compose([np.zeros((100, 200, 3), np.uint8)] * 2, [("mean", "1 segment")] * 2, 0.5).shape
    (166, 424, 3)
    """
    from PIL import Image, ImageDraw

    rows, columns = pictures[0].shape[:2]
    across = 2 if len(pictures) == 4 else len(pictures)
    down = -(-len(pictures) // across)
    width = across * columns + (across + 1) * _GAP
    height = down * (rows + _CAPTION + _GAP) + _GAP + _LINE
    canvas = Image.new("RGB", (width + width % 2, height + height % 2), DARK.paper)
    pen = ImageDraw.Draw(canvas)
    for k, (picture, (name, said)) in enumerate(zip(pictures, captions, strict=True)):
        left = _GAP + k % across * (columns + _GAP)
        top = k // across * (rows + _CAPTION + _GAP)
        _write(pen, (left, top + 4), shown(name, 40), _NAME, columns, DARK.ink)
        _write(pen, (left, top + 25), said, _SAID, columns, DARK.muted)
        canvas.paste(Image.fromarray(picture), (left, top + _CAPTION))
    end = _GAP + round(share * (width - 2 * _GAP))
    pen.rectangle((_GAP, height - _LINE - 2, width - _GAP, height - 3), fill="#2a3038")
    if end > _GAP:
        pen.rectangle((_GAP, height - _LINE - 2, end, height - 3), fill=DARK.series[0])
    return np.asarray(canvas, np.uint8)


def _write(
    pen: Any, place: tuple[int, int], words: str, size: int, width: int, colour: str
) -> None:
    """Write a line, in smaller type where it would not fit, cut off where it never does."""
    while size > _LEAST and _font(size).getlength(words) > width:
        size -= 1
    while words and _font(size).getlength(words) > width:
        words = words[:-2] + "…" if len(words) > 2 else ""
    pen.text(place, words, font=_font(size), fill=colour)


@cache
def _font(size: int) -> FreeTypeFont:
    """Return the font that comes with matplotlib: the same everywhere."""
    import matplotlib
    from PIL import ImageFont

    path = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return ImageFont.truetype(str(path), size)


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
