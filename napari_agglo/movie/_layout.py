"""Panels, their captions and a time line, put together to one frame."""

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
