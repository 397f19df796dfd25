"""The split-VI plot: false splits against false merges, with a draggable point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QPointF, Signal
from qtpy.QtGui import QFont

from napari_agglo.agglomeration import threshold_text
from napari_agglo.plots import Colours, shown
from napari_agglo.plots._curve_figures import focus
from napari_agglo.widgets.plots._drawn_curve import Curve, DrawnCurve, distance, thin
from napari_agglo.widgets.plots._plot import Canvas, Plot
from napari_agglo.widgets.plots._plot_style import key, mark, pen, swatch

if TYPE_CHECKING:
    import pandas as pd

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
        """Draw the lines in the visible range."""
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
    """Return at most so many round numbers strictly between two.

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


_NEAR = 14.0  # pixels from a curve that still hit it


class SplitVIPlot(Plot):
    """False splits H(S|U) against false merges H(U|S), a curve for each policy.

    A click on a curve, or a drag along it, chooses a threshold: `threshold_picked` gives the name
    of the curve and the threshold, and the point moves there.
    """

    threshold_picked = Signal(str, float)
    axes_names = ("false merge H(U|S) (bits)", "false split (bits)")
    picks = True

    def __init__(self) -> None:
        super().__init__(
            "Split VI",
            "False splits against false merges at every threshold. Drag along a curve to choose "
            "the threshold. Thin lines join points of equal VI; the star has the least. Ctrl+wheel "
            "zooms, a double click shows all.",
            "Choose gold labels in step 1 and build a hierarchy to see false splits against false "
            "merges at every threshold.",
        )
        self._curves: dict[str, DrawnCurve] = {}
        self._best: tuple[float, float] | None = None
        self._best_mark = mark("+", 11)
        self._dragged = ""

    def furnish(self, canvas: Canvas) -> None:
        self._isolines = Isolines(canvas)
        canvas.addItem(self._best_mark)
        for drawn in self._curves.values():
            for item in drawn.items:
                canvas.addItem(item)
        canvas.box.sigRangeChanged.connect(self._place_marks)

    def set_curve(self, name: str, table: pd.DataFrame, *, pickable: bool = True) -> None:
        """Draw a curve, or replace it; its point stays at its threshold.

        A curve that is not pickable is for comparison, without a point.
        """
        curve = Curve.of(table, name)
        old = self._curves.get(name)
        if old is None:
            taken = {drawn.colour for drawn in self._curves.values()}
            colour = next(k for k in range(len(taken) + 1) if k not in taken)
            old = DrawnCurve(
                curve, colour, pg.PlotCurveItem(), mark("star", 13), mark("o", 9, 11.0)
            )
            for item in old.items if self.furnished else ():
                self.canvas.addItem(item)
            self._curves[name] = old
        old.curve, old.errors, old.pickable = curve, None, pickable
        old.training = bool(table.attrs.get("training"))
        if not pickable:
            old.threshold = None
        self.draw()

    def remove_curve(self, name: str) -> None:
        """Remove a curve, if it is drawn."""
        drawn = self._curves.pop(name, None)
        if drawn is None:
            return
        if self.furnished:
            for item in drawn.items:
                self.canvas.removeItem(item)
            self.redraw()
        if not self._curves:
            self.show_empty()

    def clear(self) -> None:
        """Remove all curves."""
        for name in list(self._curves):
            self.remove_curve(name)
        self.set_best(None)

    def set_point(
        self, name: str, threshold: float, errors: tuple[float, float] | None = None
    ) -> None:
        """Move the point of a curve to a threshold.

        After edits a segmentation lies beside the curve of its hierarchy, at `errors`, its false
        merge and false split in bits.
        """
        drawn = self._curves[name]
        drawn.threshold, drawn.errors = threshold, errors
        if self.furnished:
            self._place_point(drawn)
        self._write_key()

    def set_best(self, errors: Mapping[str, float] | None) -> None:
        """Mark the least possible errors, `best_point` of the superpixels."""
        self._best = None if errors is None else (errors["false_merge"], errors["false_split"])
        self._best_mark.setData(*([[v] for v in self._best] if self._best else ([], [])))
        self._write_key()

    def show_all(self) -> None:
        stars = [(d.curve.false_merge[d.curve.least], d.curve.false_split[d.curve.least])
                 for d in self._curves.values()]  # fmt: skip
        points = [d.place for d in self._curves.values()]
        if stars:
            wanted = [float(v) for star in stars for v in star]
            limit = focus(wanted, [v for point in points if point is not None for v in point])
            span = (-0.03 * limit, limit)  # a mark on an axis is not cut off
            self.canvas.setRange(xRange=span, yRange=span, padding=0)

    def redraw(self) -> None:
        self.show_all()
        (_, right), (_, top) = self.canvas.box.viewRange()
        for drawn in self._curves.values():
            colour, _, dashes = self._style(drawn)
            x, y = drawn.curve.false_merge, drawn.curve.false_split
            kept, least = thin(x, y, right, top), drawn.curve.least
            drawn.line.setData(x[kept], y[kept], pen=pen(colour, 2, dashes), antialias=True)
            drawn.star.setData([x[least]], [y[least]])
            for item in (drawn.star, drawn.point):
                item.setBrush(colour)
                item.setPen(pen(self.colours.paper))
        self._best_mark.setBrush(self.colours.ink)
        self._best_mark.setPen(pen(self.colours.paper))
        self._isolines.paint(self.colours)
        self._place_marks()
        self._write_key()

    def click(self, at: QPointF) -> bool:
        spot = self._nearest(at, pickable=True)
        if spot is not None:
            self._pick(*spot)
        return spot is not None

    def grab_from(self, at: QPointF) -> bool:
        spot = self._nearest(at, pickable=True)
        self._dragged = "" if spot is None else spot[0]
        return spot is not None

    def drag(self, at: QPointF) -> None:
        drawn = self._curves.get(self._dragged)
        if drawn is not None:  # it may be removed during a drag
            row = self._row(drawn.curve, at)
            self._pick(self._dragged, row)
            self._show_text(drawn.curve.text(row), at)

    def text_at(self, at: QPointF) -> str:
        spot = self._nearest(at)
        if spot is None:
            return ""
        name, row = spot
        title = f"{shown(name)}: " if len(self._curves) > 1 else ""
        return title + self._curves[name].curve.text(row)

    def _pick(self, name: str, row: int) -> None:
        drawn = self._curves[name]
        threshold = drawn.curve.threshold_of(row)
        if threshold != drawn.threshold:
            self.set_point(name, threshold)
            self.threshold_picked.emit(name, threshold)

    def _nearest(self, at: QPointF, *, pickable: bool = False) -> tuple[str, int] | None:
        """Return the curve beneath a pixel, and its nearest row."""
        nearest, least = None, _NEAR
        for name, drawn in self._curves.items():
            if pickable and not drawn.pickable:
                continue
            away = distance(self.canvas.box.pixels(*drawn.line.getData()), at)
            if away < least:
                nearest, least = name, away
        return None if nearest is None else (nearest, self._row(self._curves[nearest].curve, at))

    def _row(self, curve: Curve, at: QPointF) -> int:
        spots = self.canvas.box.pixels(curve.false_merge, curve.false_split)
        return int(((spots - (at.x(), at.y())) ** 2).sum(axis=1).argmin())

    def _place_marks(self) -> None:
        for drawn in self._curves.values():
            self._place_point(drawn)
        self._isolines.place()

    def _place_point(self, drawn: DrawnCurve) -> None:
        """Move a point; one beyond the plot is a triangle at the edge."""
        if drawn.place is None:
            drawn.point.setData([], [])
            return
        (x, y), ((_, right), (_, top)) = drawn.place, self.canvas.box.viewRange()
        symbol = "t2" if x > right else "t1" if y > top else "o"
        drawn.point.setData([min(x, right)], [min(y, top)], symbol=symbol)

    def _style(self, drawn: DrawnCurve) -> tuple[str, str, str]:
        """Return the colours and dashes of a curve; one of training data is dotted."""
        colour, text, dashes = self.colours.line(drawn.colour)
        return colour, text, ":" if drawn.training else dashes

    def _write_key(self) -> None:
        entries = []
        for name, drawn in self._curves.items():
            colour, text, dashes = self._style(drawn)
            sign = {"-": "━", "--": "╍", ":": "┅", "-.": "┉"}[dashes]
            at = drawn.threshold
            point = "" if at is None else f" ● {threshold_text(at, drawn.curve.first)}"
            entries.append(swatch(colour, sign, shown(name, 20) + point, text))
        muted = self.colours.muted
        entries.append(swatch(muted, "★", "least VI", muted))
        entries.append("" if self._best is None else swatch(muted, "✚", "best possible", muted))
        self.key.setText(key(*entries))
