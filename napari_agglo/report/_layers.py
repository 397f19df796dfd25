"""A small picture in a page: pixels below, the borders of labels above as lines that stay sharp."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray


def png_uri(picture: NDArray[np.float64]) -> str:
    """Return RGB from 0 to 1 as a PNG within an address, in 256 colours: a third of the size.

    Examples
    --------
    >>> png_uri(np.zeros((1, 1, 3)))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    pixels = np.round(np.clip(picture, 0, 1) * 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels, "RGB").quantize(256, dither=Image.Dither.NONE).save(
        out, "PNG", optimize=True
    )
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode("ascii")


def border_path(upright: NDArray[np.bool_], level: NDArray[np.bool_]) -> str:
    """Return an SVG path along the sides of pixels.

    Parameters
    ----------
    upright : ndarray of bool, shape (rows, columns - 1)
        Whether there is a border between a pixel and the next in its row.
    level : ndarray of bool, shape (rows - 1, columns)
        Whether there is one between a pixel and the next in its column.

    Examples
    --------
    >>> border_path(np.array([[True, False], [True, False]]), np.zeros((1, 3), bool))
    'M1 0V2'
    """
    parts = [f"M{line + 1} {a}V{b}" for line, a, b in _runs(upright.T)]
    parts += [f"M{a} {line + 1}H{b}" for line, a, b in _runs(level)]
    return "".join(parts)


def _runs(lines: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Return (line, begin, end) of each run of true values along the last axis."""
    change = np.diff(lines.astype(np.int8), axis=1, prepend=0, append=0)
    line, begin = np.nonzero(change > 0)
    _, end = np.nonzero(change < 0)
    return list(zip(line.tolist(), begin.tolist(), end.tolist(), strict=True))


def label_path(labels: NDArray[Any]) -> str:
    """Return the path of the borders between labels.

    Examples
    --------
    >>> label_path(np.array([[1, 2], [1, 2]]))
    'M1 0V2'
    """
    return border_path(labels[:, :-1] != labels[:, 1:], labels[:-1] != labels[1:])


def layered(
    picture: NDArray[np.float64],
    paths: Mapping[str, str],
    said: str,
    spacing: Sequence[float] = (1.0, 1.0),
) -> str:
    """Return an SVG element: the picture, and paths over it, each with a class for its style."""
    rows, columns = picture.shape[:2]
    height, width = rows * spacing[0], columns * spacing[1]
    lines = "".join(
        f'<path class="{escape(name)}" d="{d}" vector-effect="non-scaling-stroke"/>'
        for name, d in paths.items()
        if d
    )
    return (
        f'<svg viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(said)}" class="pixels" style="aspect-ratio:{width:.6g}/{height:.6g}">'
        f'<image href="{png_uri(picture)}" width="{columns}" height="{rows}" '
        f'preserveAspectRatio="none"/>{lines}</svg>'
    )
