"""The plot of VI by threshold, with a draggable line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, Qt, Signal
from qtpy.QtGui import QAction

from napari_agglo.agglomeration import threshold_phrase, threshold_text
from napari_agglo.plots._curve_figures import focus, rounded_up, steps
from napari_agglo.widgets.plots._drawn_curve import MOST, Curve, thin
from napari_agglo.widgets.plots._plot import Canvas, Plot
from napari_agglo.widgets.plots._plot_style import MergesAxis, key, mark, pen, swatch

if TYPE_CHECKING:
    import pandas as pd

_SNAP = 4.0  # pixels within which the line snaps to 0.5 or to the least VI
_LABELS = {"merges": "threshold, spaced by merges", "threshold": "threshold"}


class ThresholdPlot(Plot):
    """A plot of VI, false merge and false split, with a line at the current threshold.

    A drag or a click anywhere moves the line, and `threshold_dragged` gives the threshold.
    """

    threshold_dragged = Signal(float)
    axes_names = (_LABELS["merges"], "bits")

    def __init__(self) -> None:
        self._axis = MergesAxis("bottom")
        super().__init__(
            "VI by threshold",
            "The variation of information and its two terms at every threshold. Drag the line to "
            "choose the threshold. The star has the least VI, the dotted line is at 0.5.",
            "Choose gold labels in step 1 and build a hierarchy to see the best threshold.",
            axes={"bottom": self._axis},
        )
        self._curve: Curve | None = None
        self._by: Literal["merges", "threshold"] = "merges"
        self._threshold: float | None = None

    def furnish(self, canvas: Canvas) -> None:
        self._lines = {name: pg.PlotCurveItem() for name in ("false_split", "false_merge", "vi")}
        self._half = pg.InfiniteLine(angle=90)
        self._now = pg.InfiniteLine(angle=90)
        self._star = mark("star", 13)
        for item in (*self._lines.values(), self._half, self._now, self._star):
            canvas.addItem(item, ignoreBounds=True)
        canvas.setCursor(Qt.CursorShape.SizeHorCursor)

    def set_curve(self, table: pd.DataFrame | None) -> None:
        """Draw a `vi_curve`, or nothing."""
        self._curve = None if table is None else Curve.of(table)
        if self._curve is None:
            self.show_empty()
            return
        self.draw()

    def set_by(self, by: Literal["merges", "threshold"]) -> None:
        """Space the x-axis by numbers of merges, or by the threshold itself."""
        self._by = by
        self.axes_names = (_LABELS[by], "bits")
        self._paint()
        self.show_all()
        self.redraw()

    def set_threshold(self, threshold: float) -> None:
        """Move the line."""
        self._threshold = threshold
        if self.furnished:
            self._place_line()
            self._write_key()

    def show_all(self) -> None:
        if self._curve is None:
            return
        curve = self._curve
        least, half, start = (float(curve.vi[row]) for row in (curve.least, curve.row(0.5), 0))
        # By merges the curve falls slowly, so all of it is shown; by thresholds it falls steeply.
        top = focus([least], [half]) if self._by == "threshold" else rounded_up(max(start, least))
        self.canvas.setRange(xRange=self._span(curve), yRange=(0, top), padding=0)

    def redraw(self) -> None:
        curve = self._curve
        if curve is None:
            return
        colours = self.colours
        self._axis.curve = curve if self._by == "merges" else None
        self._axis.picture = None  # drawn before the labels changed
        top = self.canvas.box.viewRange()[1][1]
        low, high = self._span(curve)
        paints = {"vi": colours.ink, "false_merge": colours.merge, "false_split": colours.split}
        for name, line in self._lines.items():
            x, y = self._line(curve, getattr(curve, name), low, high, top)
            line.setData(x, y, pen=pen(paints[name], 2), antialias=True)
        self._star.setBrush(colours.ink)
        self._star.setPen(pen(colours.paper))
        self._star.setData([self._x(curve, curve.least)], [curve.vi[curve.least]])
        self._half.setPen(pen(colours.muted, dashes=":"))
        self._half.setPos(0.5 if self._by == "threshold" else curve.merges[curve.row(0.5)])
        self._now.setPen(pen(colours.series[0], 2))
        self._place_line()
        self._write_key()

    def click(self, at: QPointF) -> bool:
        self.drag(at)
        return self._curve is not None

    def grab_from(self, at: QPointF) -> bool:
        return self._curve is not None

    def drag(self, at: QPointF) -> None:
        if self._curve is None:
            return
        threshold = self._threshold_at(self._curve, at)
        if threshold != self._threshold:
            self.set_threshold(threshold)
            self.threshold_dragged.emit(threshold)
        self._show_text(self._curve.text(self._curve.row(threshold)), at)

    def text_at(self, at: QPointF) -> str:
        curve = self._curve
        return "" if curve is None else curve.text(curve.row(self._threshold_at(curve, at)))

    def menu_actions(self) -> list[QAction]:
        other: Literal["merges", "threshold"]
        other = "threshold" if self._by == "merges" else "merges"
        action = QAction(f"Space the x-axis by {other}", self)
        action.triggered.connect(lambda: self.set_by(other))
        return [action]

    def _threshold_at(self, curve: Curve, at: QPointF) -> float:
        """Return the threshold at a pixel, snapped to a near mark."""
        x, _ = self.canvas.box.place(at)
        for place, threshold in (
            (self._half.value(), 0.5),
            (self._x(curve, curve.least), curve.threshold_of(curve.least)),
        ):
            if abs(self.canvas.box.pixels(np.array([place]), np.zeros(1))[0, 0] - at.x()) < _SNAP:
                return threshold
        low, high = self._span(curve)
        if self._by == "threshold":
            return float(np.clip(x, low, high))
        return curve.threshold_of(curve.row_after(x + 0.5))

    def _span(self, curve: Curve) -> tuple[float, float]:
        if self._by == "merges":
            return 0.0, max(float(curve.merges[-1]), 1.0)
        finite = curve.threshold[np.isfinite(curve.threshold)]
        return min([0.0, *finite[:1].tolist()]), max([1.0, *finite[-1:].tolist()])

    def _x(self, curve: Curve, row: int) -> float:
        if self._by == "merges":
            return float(curve.merges[row])
        return max(curve.threshold_of(row), self._span(curve)[0])

    def _line(
        self, curve: Curve, values: NDArray[np.float64], low: float, high: float, top: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self._by == "merges":
            kept = thin(curve.merges.astype(float), values, high, top)
            return curve.merges[kept].astype(float), values[kept]
        kept = thin(np.clip(curve.threshold, low, high), values, high, top, MOST // 2)
        return steps(curve.threshold[kept], values[kept], low, high)

    def _place_line(self) -> None:
        self._now.setVisible(self._threshold is not None)
        if self._threshold is None or self._curve is None:
            return
        curve, at = self._curve, self._threshold
        low, high = self._span(curve)
        place = curve.merges[curve.row(at)] if self._by == "merges" else np.clip(at, low, high)
        self._now.setPos(float(place))

    def _write_key(self) -> None:
        if self._curve is None:
            return
        c = self.colours
        curve, at = self._curve, self._threshold
        least = threshold_phrase(curve.shortest(curve.least))
        now = "" if at is None else threshold_text(at, curve.first)
        self.key.setText(
            key(
                swatch(c.ink, "━", "VI", c.ink),
                swatch(c.merge, "━", "false merge", c.text[4]),
                swatch(c.split, "━", "false split", c.text[0]),
                swatch(c.ink, "★", least, c.muted),
                swatch(c.series[0], "┃", now, c.text[0]) if now else "",
            )
        )
