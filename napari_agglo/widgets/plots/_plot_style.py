"""Colours, pens, marks, keys and axes of interactive plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

import pyqtgraph as pg
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor

from napari_agglo.plots import DARK, LIGHT, Colours
from napari_agglo.widgets.plots._drawn_curve import Curve

_TEXT = 4.5  # least contrast of text (WCAG 2.1, AA)
_LINES = 3.0  # least contrast of lines and dots (WCAG 2.1, AA)


def palette(background: str, foreground: str) -> Colours:
    """Return the colours of the plots in files, adapted to a background and a colour of text.

    The colours are hexadecimal. One too faint on the background is moved towards the foreground.

    Examples
    --------
    >>> palette("#ffffff", "#000000").series[0], palette("#262930", "#f0f1f2").series[0]
    ('#0072b2', '#4ba6e8')
    """
    paper, ink = QColor(background), QColor(foreground)
    base = LIGHT if _luminance(paper) > _luminance(ink) else DARK

    def lines(colour: str) -> str:
        return _readable(QColor(colour), paper, ink, _LINES)

    def text(colour: str) -> str:
        return _readable(QColor(colour), paper, ink, _TEXT)

    return replace(
        base,
        ink=ink.name(),
        paper=paper.name(),
        muted=text(_mixed(ink, paper, 0.4).name()),
        merge=lines(base.merge),
        split=lines(base.split),
        series=tuple(map(lines, base.series)),
        text=tuple(map(text, base.text)),
    )


def contrast(one: str, two: str) -> float:
    """Return the contrast of two colours, 1 (the same) to 21 (black on white).

    Examples
    --------
    >>> round(contrast("#000000", "#ffffff"), 1)
    21.0
    """
    low, high = sorted([_luminance(QColor(one)), _luminance(QColor(two))])
    return (high + 0.05) / (low + 0.05)


def _readable(colour: QColor, paper: QColor, ink: QColor, least: float) -> str:
    """Return the colour, moved towards the ink until it has the least contrast."""
    for part in range(21):
        moved = _mixed(colour, ink, part / 20)
        if contrast(moved.name(), paper.name()) >= least:
            return moved.name()
    return ink.name()


def _mixed(one: QColor, two: QColor, part: float) -> QColor:
    a, b = one.getRgb()[:3], two.getRgb()[:3]
    return QColor(
        *(round((1 - part) * (x or 0) + part * (y or 0)) for x, y in zip(a, b, strict=True))
    )


def _luminance(colour: QColor) -> float:
    """Return the relative luminance of WCAG, from 0 (black) to 1 (white)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (colour.redF(), colour.greenF(), colour.blueF())
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


_STYLES = {
    "-": Qt.PenStyle.SolidLine,
    "--": Qt.PenStyle.DashLine,
    ":": Qt.PenStyle.DotLine,
    "-.": Qt.PenStyle.DashDotLine,
}


def pen(colour: str, width: float = 1.0, dashes: str = "-", opacity: float = 1.0) -> Any:
    """Return a pen."""
    return pg.mkPen(faint(colour, opacity), width=width, style=_STYLES[dashes])


def faint(colour: str, opacity: float) -> QColor:
    """Return a translucent colour."""
    clear = QColor(colour)
    clear.setAlphaF(opacity)
    return clear


class Marks(pg.ScatterPlotItem):
    """Marks that leave clicks to the plot."""

    def mouseClickEvent(self, ev: Any) -> None:
        ev.ignore()


def mark(symbol: str, size: float, z: float = 10.0) -> Marks:
    """Return a mark without points yet."""
    marks = Marks(symbol=symbol, size=size, pxMode=True)
    marks.setZValue(z)
    return marks


def swatch(colour: str, sign: str, title: str, text: str) -> str:
    """Return the entry of a key: a coloured sign and a title that does not wrap."""
    line = escape(title).replace(" ", "&nbsp;").replace("-", "\N{NON-BREAKING HYPHEN}")
    return (
        f'<span style="color:{colour}">{sign}</span>&nbsp;<span style="color:{text}">{line}</span>'
    )


def key(*entries: str) -> str:
    """Return the entries of a key, joined."""
    return " &nbsp; ".join(entry for entry in entries if entry)


_ROOM = 48  # pixels from one label to the next


class LogAxis(pg.AxisItem):
    """An axis of logarithms to base 10, labelled with the numbers themselves."""

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        decades = range(math.floor(low), math.ceil(high) + 1)
        room = max(size, 1) / max(high - low, 1e-9)  # pixels for one power of ten
        step = max(1, math.ceil(_ROOM / room))
        parts = (1, 2, 5) if room > 4 * _ROOM else (1, 3) if room > 2.5 * _ROOM else (1,)
        values = [k + math.log10(p) for k in decades if k % step == 0 for p in parts]
        return [(1.0, [value for value in values if low <= value <= high])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [f"{10.0**value:g}" for value in values]


class WholeAxis(pg.AxisItem):
    """An axis with ticks at whole numbers only."""

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        first, last = math.ceil(low), math.floor(high)
        step = max(1, math.ceil((last - first + 1) * 25 / max(size, 1)))
        return [(float(step), [float(k) for k in range(first, last + 1) if k % step == 0])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [f"{value:.0f}" for value in values]


class MergesAxis(pg.AxisItem):
    """An axis of numbers of merges, labelled with their thresholds; plain without a curve."""

    curve: Curve | None = None

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        if self.curve is None:
            levels: list[tuple[float, list[float]]] = super().tickValues(low, high, size)
            return levels[:1] if len(levels[0][1]) > 2 else levels[:2]
        n = max(1, int(size // _ROOM))
        return [((high - low) / n, [low + k * (high - low) / n for k in range(n + 1)])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        if self.curve is None:
            return list(super().tickStrings(values, scale, spacing))
        at = [self.curve.threshold_of(self.curve.row_after(value)) for value in values]
        return [f"{t:.2g}" if abs(t) >= 1e-3 else f"{round(t, 4) + 0.0:g}" for t in at]
