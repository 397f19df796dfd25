"""The plot of the VI breakdown: segments and gold objects with most errors."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPointF, QSize, Signal
from qtpy.QtGui import QAction, QResizeEvent
from qtpy.QtWidgets import QBoxLayout, QWidget

from napari_agglo.plots._figure_style import need
from napari_agglo.widgets.plots._drawn_curve import short
from napari_agglo.widgets.plots._plot import Canvas, Plot, export
from napari_agglo.widgets.plots._plot_style import LogAxis, faint, key, mark, pen, swatch

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.evaluate import Breakdown


Kind = Literal["false merge", "false split"]
_PARTNERS = 4  # in the text of a dot


def describe_row(result: Breakdown, kind: Kind, table: pd.DataFrame, row: int) -> str:
    """Return the id, size and bits of a row of `table`, and its largest partners.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import breakdown
    >>> result = breakdown(np.array([3, 3, 4, 4]), np.array([1, 1, 1, 1]))
    >>> print(describe_row(result, "false split", result.gold, 0))
    Gold object 1: 4 voxels, 1 bits
    split into 3 (50 %), 4 (50 %)
    """
    split = kind == "false split"
    one, entry = int(table.index[row]), table.iloc[row]
    parts = result.pieces(one) if split else result.merged(one)
    largest = parts.head(_PARTNERS)
    partners = [
        f"{partner} ({100 * float(part):.3g} %)"
        for partner, part in zip(largest["id"], largest["fraction"], strict=True)
    ]
    more = f", and {len(parts) - len(partners):,} more" if len(parts) > len(partners) else ""
    title, verb = ("Gold object", "split into") if split else ("Segment", "merges gold")
    return (
        f"{title} {one}: {int(entry['voxels']):,} voxels, {short(entry['contribution'])} bits\n"
        f"{verb} {', '.join(partners)}{more}"
    )


Line = NDArray[np.float64]


def equal_contribution(most: float, low: float, high: float) -> tuple[Line, Line]:
    """Return three curves size * entropy = value, over logarithms of sizes from `low` to `high`.

    `most` is the largest contribution, in bits. The values are the power of ten below it, a tenth
    and a hundredth of that, with a NaN between two curves; there are none if it is 0.

    Examples
    --------
    >>> x, y = equal_contribution(0.05, -2.0, 0.0)
    >>> float(y[0]), float(y[79])
    (0.01, 0.0001)
    """
    if not most > 0:
        return np.zeros(0), np.zeros(0)
    top = 10.0 ** math.floor(math.log10(most))
    x = np.append(np.linspace(low, high, 80), math.nan)
    return np.tile(x, 3), np.concatenate([value / 10**x for value in (top / 100, top / 10, top)])


Measure = Literal["entropy", "contribution"]
_LARGE = 500  # dots drawn by size; the others are small and faint
_NEAR = 5.0  # pixels from a dot that still hit it


class DotsPlot(Plot):
    """A plot of the error of each segment, or gold object, against its size.

    The product is its part of the VI. `picked` gives the kind and the id of a clicked dot.
    """

    picked = Signal(str, object)
    picks = True

    def __init__(self, kind: Kind) -> None:
        self.kind, self._split = kind, kind == "false split"
        self._measure: Measure = "entropy"
        whose = "gold object" if self._split else "segment"
        self._name_axes()
        super().__init__(
            "False splits" if self._split else "False merges",
            f"Each dot is a {whose}: its error against its size. Click a dot to go there.",
            "Choose gold labels in step 1 and build a hierarchy to see "
            + ("split gold objects." if self._split else "segments that merge gold objects."),
            axes={"bottom": LogAxis("bottom")},
        )
        self._breakdown: Breakdown | None = None
        self._table: pd.DataFrame | None = None
        self._selected: Any = None

    def furnish(self, canvas: Canvas) -> None:
        self._specks, self._dots = mark("o", 4, 1.0), mark("o", 6, 2.0)
        self._ring = mark("o", 16, 3.0)
        self._contours = pg.PlotCurveItem(connect="finite")
        for item in (self._contours, self._specks, self._dots, self._ring):
            canvas.addItem(item, ignoreBounds=True)

    def set_breakdown(self, result: Breakdown | None) -> None:
        """Draw one half of a breakdown, or nothing; the selection is reset."""
        self._breakdown, self._table, self._selected = result, None, None
        if result is None:
            self.show_empty()
            return
        table = result.gold if self._split else result.segments
        need(table, ("voxels", "share", "entropy", "contribution"), "breakdown")
        wrong = table[(table["contribution"] > 0) & (table["share"] > 0)]
        if len(wrong) == 0:
            whose = "gold object is split" if self._split else "segment merges two gold objects"
            self.show_empty(f"No {whose}.")
            return
        self._table = wrong.sort_values("contribution", kind="stable", ascending=False)
        self.draw()

    def set_measure(self, measure: Measure) -> None:
        """Show on the y-axis bits per voxel ("entropy"), or in total ("contribution")."""
        self._measure = measure
        self._name_axes()
        self._paint()
        self.show_all()
        self.redraw()

    def select(self, one: int | None) -> None:
        """Ring the dot of an id, if it has one."""
        self._selected = one
        if self.furnished:
            self._place_ring()

    def show_all(self) -> None:
        if self._table is None:
            return
        x, y = self._points()
        low, high = float(x.min()) - 0.2, min(0.0, float(x.max()) + 0.4)
        low = min(low, high - 1)
        self.canvas.setRange(
            xRange=(low, high + 0.03 * (high - low)), yRange=(0, 1.12 * float(y.max())), padding=0
        )

    def redraw(self) -> None:
        if self._table is None:
            return
        colours, (x, y) = self.colours, self._points()
        colour = colours.split if self._split else colours.merge
        large, rest = slice(0, _LARGE), slice(_LARGE, None)
        self._specks.setData(x[rest], y[rest], brush=faint(colour, 0.35), pen=None)
        self._dots.setData(
            x[large], y[large], size=self._sizes()[large], brush=faint(colour, 0.75),
            pen=pen(colours.paper),
        )  # fmt: skip
        most = float(self._table["contribution"].max()) if self._measure == "entropy" else 0.0
        low, high = self.canvas.box.viewRange()[0]
        self._contours.setData(
            *equal_contribution(most, low, high),
            pen=pen(colours.muted, opacity=0.5),
            antialias=True,
        )
        self._place_ring()
        part = float(self._table["contribution"].sum())
        title = "False splits" if self._split else "False merges"
        whose = "gold objects" if self._split else "segments"
        self.key.setText(
            key(
                f'<b style="color:{colours.ink}">{title}</b>',
                swatch(colour, "●", f"{len(self._table):,} {whose}, {short(part)} bits",
                       colours.muted),
            )
        )  # fmt: skip

    def click(self, at: QPointF) -> bool:
        row = self._at(at)
        if row is None or self._table is None:
            return False
        self.select(self._table.index[row])
        self.picked.emit(self.kind, int(self._table.index[row]))
        return True

    def text_at(self, at: QPointF) -> str:
        row = self._at(at)
        return "" if row is None else self.describe(row)

    def describe(self, row: int) -> str:
        """Return the text of a dot; row 0 is the worst."""
        if self._table is None or self._breakdown is None:
            return ""
        return describe_row(self._breakdown, self.kind, self._table, row)

    def menu_actions(self) -> list[QAction]:
        other: Measure = "contribution" if self._measure == "entropy" else "entropy"
        titles = {"entropy": "Show bits per voxel", "contribution": "Show bits of the whole VI"}
        action = QAction(titles[other], self)
        action.triggered.connect(lambda: self.set_measure(other))
        return [action]

    def _name_axes(self) -> None:
        whose = "gold object, P(u)" if self._split else "segment, P(s)"
        bits = "H(S|U=u) (bits)" if self._split else "H(U|S=s) (bits)"
        self.axes_names = (
            f"size of the {whose}", bits if self._measure == "entropy" else "part of VI (bits)"
        )  # fmt: skip

    def _points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self._table is not None
        return (
            np.log10(self._table["share"].to_numpy(float)),
            self._table[self._measure].to_numpy(float),
        )

    def _sizes(self) -> NDArray[np.float64]:
        """Return diameters of dots whose areas are proportional to contributions."""
        assert self._table is not None
        part = self._table["contribution"].to_numpy(float)
        return np.asarray(4 + 12 * np.sqrt(part / part.max()))

    def _at(self, at: QPointF) -> int | None:
        """Return the row of the dot at a pixel; of several, that with the nearest centre."""
        if self._table is None:
            return None
        away = self.canvas.box.pixels(*self._points()) - (at.x(), at.y())
        beyond = np.hypot(away[:, 0], away[:, 1]) - self._sizes() / 2
        row = int(np.hypot(away[:, 0], away[:, 1]).argmin())
        inside = np.flatnonzero(beyond <= _NEAR)
        return row if row in inside else int(inside[-1]) if len(inside) else None

    def _place_ring(self) -> None:
        at = None
        if self._table is not None and self._selected in self._table.index:
            at = int(np.flatnonzero(self._table.index == self._selected)[0])
        if at is None:
            self._ring.setData([], [])
            return
        (x, y), size = self._points(), self._sizes()[at] + 6
        self._ring.setData([x[at]], [y[at]], size=size, brush=None, pen=pen(self.colours.ink, 2))


_WIDE = 520  # least width in pixels for plots side by side


class BreakdownPlot(QWidget):
    """False merges of segments and false splits of gold objects, above or beside each other.

    `picked` gives ``"false merge"`` and the id of a segment, or ``"false split"`` and that of a
    gold object.
    """

    picked = Signal(str, object)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName("VI breakdown")
        self.merges, self.splits = DotsPlot("false merge"), DotsPlot("false split")
        self._row = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(4)
        for half in (self.merges, self.splits):
            self._row.addWidget(half)
            half.picked.connect(self._pick)

    def sizeHint(self) -> QSize:
        return QSize(280, 410)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 250)

    def set_breakdown(self, result: Breakdown | None) -> None:
        """Draw a breakdown, or nothing."""
        self.merges.set_breakdown(result)
        self.splits.set_breakdown(result)

    def select(self, kind: str, one: int | None) -> None:
        """Ring the dot of an id, and none of the other kind."""
        self.merges.select(one if kind == "false merge" else None)
        self.splits.select(one if kind == "false split" else None)

    def set_theme(self, background: str, foreground: str) -> None:
        """Use the colours of a theme."""
        self.merges.set_theme(background, foreground)
        self.splits.set_theme(background, foreground)

    def export(self, path: str | Path) -> None:
        """Write both plots to one file, .png or .svg."""
        export(self, path)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        down = self.width() < _WIDE
        way = QBoxLayout.Direction.TopToBottom if down else QBoxLayout.Direction.LeftToRight
        self._row.setDirection(way)
        super().resizeEvent(event)

    def _pick(self, kind: str, one: object) -> None:
        self.select(kind, one)  # type: ignore[arg-type]
        self.picked.emit(kind, one)
