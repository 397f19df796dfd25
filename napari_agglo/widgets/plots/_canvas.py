"""Where plots are drawn: axes in the colours of the theme, and a mouse that picks."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPoint, QPointF, QSize, Qt
from qtpy.QtGui import QWheelEvent

from napari_agglo.plots import Colours

_LEFT = Qt.MouseButton.LeftButton


class Target(Protocol):
    """What a plot does with the mouse; positions are pixels of its view box."""

    def click(self, at: QPointF) -> bool:
        """Take a click, or leave it."""

    def grab_from(self, at: QPointF) -> bool:
        """Take a drag that begins here, or leave it, so that it moves the view."""

    def drag(self, at: QPointF) -> None:
        """Follow the drag that was taken."""

    def hover(self, at: QPointF | None) -> None:
        """Follow the mouse, which has gone if there is no place."""

    def show_all(self) -> None:
        """Show the whole plot again."""


class PickBox(pg.ViewBox):
    """A view box that offers each click and drag to its plot before it moves the view."""

    def __init__(self, target: Target) -> None:
        super().__init__(enableMenu=False)
        self._target = target
        self._grabbed = False

    def mouseClickEvent(self, ev: Any) -> None:
        if ev.button() != _LEFT:
            return
        if ev.double():
            self._target.show_all()
            ev.accept()
        elif self._target.click(ev.pos()):
            ev.accept()

    def mouseDragEvent(self, ev: Any, axis: int | None = None) -> None:
        if ev.button() == _LEFT and axis is None:
            if ev.isStart():
                self._grabbed = self._target.grab_from(ev.buttonDownPos())
            if self._grabbed:
                ev.accept()
                self._target.drag(ev.pos())
                self._grabbed = not ev.isFinish()
                return
        super().mouseDragEvent(ev, axis)

    def hoverEvent(self, ev: Any) -> None:
        self._target.hover(None if ev.isExit() else ev.pos())

    def pixels(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where points of the plot lie, in pixels of the box; shape (n, 2)."""
        (x0, x1), (y0, y1) = self.viewRange()
        size = self.rect()
        return np.column_stack(
            [
                (np.asarray(x, float) - x0) / (x1 - x0) * size.width(),
                (y1 - np.asarray(y, float)) / (y1 - y0) * size.height(),
            ]
        )

    def place(self, at: QPointF) -> tuple[float, float]:
        """Return the point of the plot at a pixel of the box."""
        found = self.mapToView(at)
        return float(found.x()), float(found.y())


class Canvas(pg.PlotWidget):
    """Axes that are small enough for a dock.

    The wheel scrolls the dock that the plot is in; with Ctrl it zooms.
    """

    def __init__(self, target: Target, axes: dict[str, pg.AxisItem] | None = None) -> None:
        self.box = PickBox(target)
        super().__init__(viewBox=self.box, axisItems=axes or {})
        self.setMenuEnabled(False)
        self.hideButtons()
        self.box.disableAutoRange()
        for side in ("left", "bottom"):
            axis = self.getAxis(side)
            axis.setStyle(
                tickLength=-4, tickTextOffset=3, maxTickLevel=0, hideOverlappingLabels=False
            )
            axis.enableAutoSIPrefix(False)
        self.plotItem.layout.setContentsMargins(2, 8, 14, 5)  # room for labels at the ends of axes
        self.getAxis("left").setWidth(42)
        self.getAxis("bottom").setHeight(32)

    def sizeHint(self) -> QSize:
        return QSize(280, 200)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 110)

    def wheelEvent(self, ev: QWheelEvent | None) -> None:
        if ev is not None and ev.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().wheelEvent(ev)
        elif ev is not None:
            ev.ignore()

    def paint(self, colours: Colours, x: str, y: str) -> None:
        """Colour background and axes, and name the axes."""
        self.setBackground(colours.paper)
        font = self.font()
        font.setPixelSize(10)
        for side, words in (("left", y), ("bottom", x)):
            axis = self.getAxis(side)
            axis.setPen(pg.mkPen(colours.muted))
            axis.setTextPen(pg.mkPen(colours.ink))
            axis.setTickFont(font)
            axis.setLabel(words, **{"color": colours.ink, "font-size": "11px"})

    def spot(self, x: float, y: float) -> QPoint:
        """Return where a point of the plot lies, in pixels of the viewport."""
        return self.mapFromScene(self.box.mapViewToScene(QPointF(x, y)))
