"""How plots on the screen draw lines and marks."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor

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
    """Return a colour that lets through what is behind it."""
    found = QColor(colour)
    found.setAlphaF(opacity)
    return found


class Marks(pg.ScatterPlotItem):
    """Marks that leave the mouse to the plot, which knows what lies beneath them as well."""

    def mouseClickEvent(self, ev: Any) -> None:
        ev.ignore()


def mark(symbol: str, size: float, z: float = 10.0) -> Marks:
    """Return a mark that is not to be seen until it has a place."""
    found = Marks(symbol=symbol, size=size, pxMode=True)
    found.setZValue(z)
    return found


def swatch(colour: str, sign: str, words: str, text: str) -> str:
    """Return the entry of a key: a coloured sign and words that do not break."""
    from html import escape

    said = escape(words).replace(" ", "&nbsp;").replace("-", "\N{NON-BREAKING HYPHEN}")
    return (
        f'<span style="color:{colour}">{sign}</span>&nbsp;<span style="color:{text}">{said}</span>'
    )


def key(*entries: str) -> str:
    """Return the entries of a key in one line, or as many as it needs."""
    return " &nbsp; ".join(entry for entry in entries if entry)
