"""Drawing of frames: panels with colours and outlines, captions, a time line.

In its own file because it only draws arrays: states of trees are chosen in `_frames.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.plots import DARK, label_colours, shown
from napari_agglo.plots._raster_pictures import NEXT, borders

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont


_GAP, _CAPTION, _LINE = 8, 46, 4  # pixels
_NAME, _DETAILS, _LEAST = 17, 14, 8  # sizes of type
_COLOURS = 4096  # labels are coloured modulo this number
_FLASH = np.array([1.0, 0.95, 0.45], np.float32)
_TINT, _LIT = 0.42, 0.25  # strength of a colour, and the addition of a flash to it


def compose(
    pictures: Sequence[NDArray[np.uint8]],
    captions: Sequence[tuple[str, str]],
    share: float,
) -> NDArray[np.uint8]:
    """Compose one to four panels, captions and the time line into one RGB frame.

    Panels are of one size: side by side, four of them two by two. A caption is a name and details;
    `share` is the position in the movie, 0 to 1. Height and width are even, as video needs them.

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
    for k, (picture, (name, details)) in enumerate(zip(pictures, captions, strict=True)):
        left = _GAP + k % across * (columns + _GAP)
        top = k // across * (rows + _CAPTION + _GAP)
        _write(pen, (left, top + 4), shown(name, 40), _NAME, columns, DARK.ink)
        _write(pen, (left, top + 25), details, _DETAILS, columns, DARK.muted)
        canvas.paste(Image.fromarray(picture), (left, top + _CAPTION))
    end = _GAP + round(share * (width - 2 * _GAP))
    pen.rectangle((_GAP, height - _LINE - 2, width - _GAP, height - 3), fill="#2a3038")
    if end > _GAP:
        pen.rectangle((_GAP, height - _LINE - 2, end, height - 3), fill=DARK.series[0])
    return np.asarray(canvas, np.uint8)


def _write(
    pen: Any, place: tuple[int, int], words: str, size: int, width: int, colour: str
) -> None:
    """Write a line in the largest type that fits, or cut it off."""
    while size > _LEAST and _font(size).getlength(words) > width:
        size -= 1
    while words and _font(size).getlength(words) > width:
        words = words[:-2] + "…" if len(words) > 2 else ""
    pen.text(place, words, font=_font(size), fill=colour)


@cache
def _font(size: int) -> FreeTypeFont:
    """Return the font of matplotlib, which is the same on every machine."""
    import matplotlib
    from PIL import ImageFont

    path = Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return ImageFont.truetype(str(path), size)


@cache
def _palette() -> NDArray[np.float32]:
    return label_colours(_COLOURS).astype(np.float32)


def draw_panel(
    backdrop: NDArray[np.float32], labels: NDArray[Any], flashing: NDArray[np.float32] | None = None
) -> NDArray[np.uint8]:
    """Return a picture of labels, without colour where they are 0, over an RGB image from 0 to 1.

    `flashing` is the brightness of the flash at each pixel, 0 to 1.

    Examples
    --------
    >>> draw_panel(np.zeros((2, 3, 3), np.float32), np.array([[1, 1, 2]] * 2)).shape
    (2, 3, 3)
    """
    lit = np.zeros(labels.shape, np.float32) if flashing is None else flashing
    alpha = np.where(labels > 0, _TINT + _LIT * lit, 0).astype(np.float32)[..., None]
    picture = backdrop * (1 - alpha) + _palette()[labels % _COLOURS] * alpha
    picture[borders(labels)] *= 0.3
    strength = _flash_outlines(labels, lit)[..., None]
    picture = picture * (1 - strength) + _FLASH * strength
    return np.asarray(np.rint(np.clip(picture, 0, 1) * 255), np.uint8)


def _flash_outlines(labels: NDArray[Any], lit: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the brightness of the outlines of flashing segments."""
    from scipy.ndimage import maximum_filter

    bright = np.zeros(labels.shape, np.float32)
    for here, there in NEXT:
        border = labels[here] != labels[there]
        outline = np.where(border, np.maximum(lit[here], lit[there]), 0)
        bright[here] = np.maximum(bright[here], outline)
    # Three pixels wide, to stand out from thin outlines.
    return np.asarray(maximum_filter(bright, 3) if bright.any() else bright)
