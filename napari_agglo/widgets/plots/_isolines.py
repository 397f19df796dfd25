"""Thin lines of equal VI behind a split-VI plot."""

from __future__ import annotations

import math

import numpy as np
import pyqtgraph as pg
from qtpy.QtGui import QFont

from napari_agglo.plots import Colours
from napari_agglo.widgets.plots._canvas import Canvas
from napari_agglo.widgets.plots._marks import pen

_MOST = 8  # lines


class Isolines:
    """Lines x + y = value, at round values, each with its value at the left or upper edge."""

    def __init__(self, canvas: Canvas) -> None:
        self._box = canvas.box
        self._lines = pg.PlotCurveItem(connect="pairs")
        self._lines.setZValue(-10)
        canvas.addItem(self._lines, ignoreBounds=True)
        font = QFont()
        font.setPixelSize(9)
        self._values = [pg.TextItem(anchor=(0, 0)) for _ in range(_MOST)]
        for item in self._values:
            item.setFont(font)
            item.setZValue(-9)
            canvas.addItem(item, ignoreBounds=True)

    def paint(self, colours: Colours) -> None:
        self._lines.setPen(pen(colours.muted, opacity=0.35))
        for item in self._values:
            item.setColor(colours.muted)

    def place(self) -> None:
        """Draw the lines that cross what is seen."""
        (left, right), (bottom, top) = self._box.viewRange()
        values = round_values(left + bottom, right + top, _MOST)
        x = np.ravel([(v - top, v - bottom) for v in values])
        self._lines.setData(x, np.ravel([(top, bottom)] * len(values)), antialias=True)
        for k, item in enumerate(self._values):
            value = values[k] if k < len(values) else math.nan
            x_at = max(value - top, left)
            near = value - x_at < bottom + 0.1 * (top - bottom) or x_at > right - 0.1 * (
                right - left
            )
            item.setVisible(k < len(values) and not near)
            if item.isVisible():
                item.setText(f"{value:g}")
                item.setPos(x_at, value - x_at)


def round_values(low: float, high: float, most: int) -> list[float]:
    """Return round numbers strictly between two, at most so many.

    Examples
    --------
    >>> round_values(0, 3, 8)
    [0.5, 1.0, 1.5, 2.0, 2.5]
    """
    rough = (high - low) / (most + 1)
    if not 0 < rough < math.inf:
        return []
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * (1 - 1e-9))
    first = math.floor(low / step) + 1
    values = [round(k * step, 12) for k in range(first, first + most)]
    return [value for value in values if value < high - 1e-9 * step]
