"""The threshold slider: its steps in numbers of merges, and marks beneath it to click on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QPoint, QRect, QSize, Qt, Signal
from qtpy.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygon,
)
from qtpy.QtWidgets import QSlider, QStyle, QStyleOptionSlider, QWidget

from napari_agglo.evaluate import shortest_threshold
from napari_agglo.widgets._qt import column, named

SLIDER_STEPS = 200  # from one end to the other, by arrow keys, keys of the canvas or the player
_ROW = 14  # pixels of a row of labels


class Ticks:
    """The states of a hierarchy by the number of merges that they need, from `MergeTree.heights`.

    Equal steps of a slider are equal numbers of merges. Merges of equal height cannot be told apart
    by a threshold: only the state after the last of them can be seen.

    Examples
    --------
    >>> ticks = Ticks(np.array([0.1, 0.3, 0.3, 0.3, 0.8]))
    >>> ticks.merges(0.5), ticks.threshold(4), ticks.threshold(3), ticks.threshold(0)
    (4, 0.3, 0.1, 0.0)
    >>> ticks.moved(1, +1), ticks.moved(4, -1), ticks.moved(5, +1)
    (4, 1, 5)
    """

    def __init__(self, heights: NDArray[np.float64]) -> None:
        self._heights = np.asarray(heights, float)

    @property
    def last(self) -> int:
        """The number of all merges."""
        return len(self._heights)

    @property
    def step(self) -> int:
        """The number of merges in a step of a key or of the player."""
        return max(1, round(self.last / SLIDER_STEPS))

    @property
    def span(self) -> tuple[float, float]:
        """The thresholds between which anything happens; 0 and 1 are within."""
        return min(0.0, self.threshold(0)), max(1.0, self.threshold(self.last))

    def merges(self, threshold: float) -> int:
        """Return how many merges are done at a threshold."""
        return int(np.searchsorted(self._heights, threshold, side="right"))

    def reachable(self, merges: int) -> int:
        """Return the last state that a threshold can give, with so many merges at most."""
        merges = min(max(merges, 0), self.last)
        if merges in (0, self.last) or self._heights[merges] > self._heights[merges - 1]:
            return merges
        return int(np.searchsorted(self._heights, self._heights[merges], side="left"))

    def threshold(self, merges: int) -> float:
        """Return a threshold at which the last reachable state is seen, as short as can be."""
        state = self.reachable(merges)
        above = float(self._heights[state]) if state < self.last else math.inf
        if state > 0:
            return shortest_threshold(float(self._heights[state - 1]), above, decimals=0)
        return 0.0 if above > 0 else float(np.nextafter(above, -math.inf))

    def moved(self, merges: int, by: int) -> int:
        """Return the state so many merges further, or back, but one state at least."""
        state = self.reachable(merges + by)
        if by > 0 and state <= merges < self.last:  # within a plateau: to its end
            return self.merges(float(self._heights[merges]))
        return state


def knee(heights: NDArray[np.float64]) -> int:
    """Return the number of merges after which heights begin to rise steeply.

    It is the merge farthest below the straight line from the first to the last: a guess where to
    begin to look, when there is no gold standard to ask.

    Examples
    --------
    >>> knee(np.array([0.0, 0.0, 0.1, 0.1, 0.9, 1.0]))
    4
    """
    n = len(heights)
    if n < 3 or heights[-1] <= heights[0]:
        return n
    line = np.linspace(heights[0], heights[-1], n)
    return int(np.argmax(line - heights)) + 1


@dataclass(frozen=True)
class Mark:
    """A place on the slider with a name."""

    value: int
    text: str
    tooltip: str


class MarkedSlider(QWidget):
    """A slider over whole numbers; `moved` tells what a person chose, not what a program set."""

    moved = Signal(int)
    marked = Signal(str)  # the text of a mark that was clicked

    def __init__(self) -> None:
        super().__init__()
        self.slider = named(QSlider(Qt.Orientation.Horizontal), "threshold slider")
        self.slider.valueChanged.connect(self._changed)
        self.marks = Marks(self.slider)
        self.marks.clicked.connect(self.marked)
        self._quiet = False
        column(self, self.slider, self.marks, spacing=0)

    def set_range(self, last: int, step: int) -> None:
        """Let the slider go from 0 to `last`; an arrow key moves it by `step`."""
        self._quiet = True
        self.slider.setRange(0, last)
        self.slider.setSingleStep(step)
        self.slider.setPageStep(10 * step)
        self._quiet = False
        self.marks.update()

    def set_value(self, value: int) -> None:
        """Move the slider, without telling."""
        if not self.slider.isSliderDown():  # it stays in the hand that holds it
            self._quiet = True
            self.slider.setValue(value)
            self._quiet = False

    def _changed(self, value: int) -> None:
        if not self._quiet:
            self.moved.emit(value)


class Marks(QWidget):
    """Small triangles beneath a slider, each with a word; a click goes there."""

    clicked = Signal(str)

    def __init__(self, slider: QSlider) -> None:
        super().__init__()
        self.setObjectName("threshold marks")
        self._slider = slider
        self._marks: tuple[Mark, ...] = ()
        self._colour = QColor("#888888")
        self.setMouseTracking(True)

    def sizeHint(self) -> QSize:
        return QSize(100, 6 + _ROW * len(self._marks) if self._marks else 0)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def set_marks(self, *marks: Mark) -> None:
        """Show these, each in a row of its own so that no word covers another."""
        self._marks = marks
        self.updateGeometry()
        self.update()

    def set_colour(self, colour: str) -> None:
        self._colour = QColor(colour)
        self.update()

    def place(self, mark: Mark) -> int:
        """Return where a mark is, in pixels from the left."""
        option = QStyleOptionSlider()
        self._slider.initStyleOption(option)
        style = self._slider.style()
        handle = style.subControlRect(
            QStyle.ComplexControl.CC_Slider, option, QStyle.SubControl.SC_SliderHandle, self._slider
        ).width()
        along = QStyle.sliderPositionFromValue(
            self._slider.minimum(), self._slider.maximum(), mark.value,
            max(1, self._slider.width() - handle),
        )  # fmt: skip
        return along + handle // 2

    def spot(self, mark: Mark) -> QRect:
        """Return where the word of a mark is."""
        # All words on one side, and in the upper rows those of the marks on that side: so no stem
        # crosses a word.
        ordered = sorted(self._marks, key=self.place)
        right = all(self.place(one) + 6 + self._width(one) < self.width() for one in ordered)
        row = (ordered[::-1] if right else ordered).index(mark)
        at, width = self.place(mark), self._width(mark)
        left = at + 6 if right or at - 6 - width < 0 else at - 6 - width
        return QRect(left, 4 + _ROW * row, width, _ROW)

    def _width(self, mark: Mark) -> int:
        return QFontMetrics(self._font()).horizontalAdvance(mark.text)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._font())
        painter.setPen(QPen(self._colour))
        painter.setBrush(self._colour)
        for mark in self._marks:
            x = self.place(mark)
            painter.drawLine(x, 4, x, self.spot(mark).center().y())
            painter.drawPolygon(QPolygon([QPoint(x, 0), QPoint(x - 4, 5), QPoint(x + 4, 5)]))
            painter.drawText(self.spot(mark), Qt.AlignmentFlag.AlignVCenter, mark.text)
        painter.end()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        mark = None if event is None else self._at(event.position().toPoint())
        if mark is not None:
            self.clicked.emit(mark.text)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        mark = None if event is None else self._at(event.position().toPoint())
        self.setToolTip("" if mark is None else mark.tooltip)
        shape = Qt.CursorShape.ArrowCursor if mark is None else Qt.CursorShape.PointingHandCursor
        self.setCursor(shape)

    def _at(self, point: QPoint) -> Mark | None:
        for mark in self._marks:
            near = QRect(self.place(mark) - 5, 0, 11, 8)
            if near.contains(point) or self.spot(mark).adjusted(-8, 0, 4, 0).contains(point):
                return mark
        return None

    def _font(self) -> QFont:
        font = self.font()
        font.setPixelSize(11)
        return font
