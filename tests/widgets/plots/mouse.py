"""Curves to draw, and a mouse over their plots."""

from __future__ import annotations

import itertools
import math

import pandas as pd
from qtpy.QtCore import QPoint, QPointF, Qt
from qtpy.QtGui import QMouseEvent
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication

DARK, LIGHT = ("#262930", "#f0f1f2"), ("#efebe9", "#3b3a39")


def curve(*states):
    """Make a curve of (threshold, segments, false merge, false split)."""
    table = pd.DataFrame(states, columns=["threshold", "segments", "false_merge", "false_split"])
    return table.assign(vi=table["false_merge"] + table["false_split"])


MEAN = curve(
    (-math.inf, 100, 0.1, 1.2), (0.2, 60, 0.2, 0.8), (0.3, 30, 0.3, 0.4), (0.6, 10, 0.9, 0.3)
)  # fmt: skip
AGGLO = curve((-math.inf, 100, 0.1, 1.2), (0.4, 20, 0.15, 0.2), (0.9, 2, 1.2, 0.0))


class Mouse:
    """A mouse over a plot, at points of the plot; drags have steps, as those of a hand."""

    def __init__(self, plot):
        self.plot = plot
        self.port = plot.canvas.viewport()

    def spot(self, x, y):
        canvas = self.plot.canvas
        return canvas.mapFromScene(canvas.box.mapViewToScene(QPointF(x, y)))

    def click(self, x, y, away=(0, 0)):
        QTest.mouseClick(
            self.port, Qt.MouseButton.LeftButton, pos=self.spot(x, y) + QPoint(*away), delay=20
        )
        QTest.qWait(5)

    def move(self, x, y, away=(0, 0)):
        self._send(QMouseEvent.Type.MouseMove, self.spot(x, y) + QPoint(*away), held=False)

    def drag(self, *points, release=True):
        spots = [self.spot(*point) for point in points]
        self._send(QMouseEvent.Type.MouseButtonPress, spots[0], held=True)
        for start, end in itertools.pairwise(spots):
            for k in range(1, 6):
                self._send(QMouseEvent.Type.MouseMove, start + (end - start) * k / 5, held=True)
        if release:
            self._send(QMouseEvent.Type.MouseButtonRelease, spots[-1], held=False)

    def _send(self, kind, spot, held):
        button = Qt.MouseButton
        moved = kind == QMouseEvent.Type.MouseMove
        event = QMouseEvent(
            kind, QPointF(spot), QPointF(self.port.mapToGlobal(spot)),
            button.NoButton if moved else button.LeftButton,
            button.LeftButton if held else button.NoButton, Qt.KeyboardModifier.NoModifier,
        )  # fmt: skip
        QApplication.sendEvent(self.port, event)
        QTest.qWait(15)  # pyqtgraph takes no more than so many moves a second
