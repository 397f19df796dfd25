"""The threshold slider, with marks beneath it that can be clicked."""

from __future__ import annotations

from dataclasses import dataclass

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
from qtpy.QtWidgets import QSlider, QStyle, QStyleOptionSlider, QVBoxLayout, QWidget

_ROW = 14  # pixels of a row of labels


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
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setObjectName("threshold slider")
        self.slider.valueChanged.connect(self._changed)
        self.marks = Marks(self.slider)
        self.marks.clicked.connect(self.marked)
        self._quiet = False
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.slider)
        column.addWidget(self.marks)

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
        found = None if event is None else self._at(event.position().toPoint())
        if found is not None:
            self.clicked.emit(found.text)

    def mouseMoveEvent(self, event: QMouseEvent | None) -> None:
        found = None if event is None else self._at(event.position().toPoint())
        self.setToolTip("" if found is None else found.tooltip)
        shape = Qt.CursorShape.ArrowCursor if found is None else Qt.CursorShape.PointingHandCursor
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
