"""A slider over whole numbers, with marks beneath it to click on."""

from __future__ import annotations

from dataclasses import dataclass

from qtpy.QtCore import QPoint, QRect, QSize, Qt, Signal
from qtpy.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygon,
)
from qtpy.QtWidgets import QSlider, QStyle, QStyleOptionSlider, QWidget

from napari_agglo.widgets._qt import column, named

_ROW = 14  # pixels of a row of labels


@dataclass(frozen=True)
class Mark:
    """A named position on the slider."""

    value: int
    text: str
    tooltip: str


class MarkedSlider(QWidget):
    """A slider over whole numbers; `moved` is emitted for moves by the user alone."""

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
        """Set the range to 0 to `last`; an arrow key moves the slider by `step`."""
        self._quiet = True
        self.slider.setRange(0, last)
        self.slider.setSingleStep(step)
        self.slider.setPageStep(10 * step)
        self._quiet = False
        self.marks.update()

    def set_value(self, value: int) -> None:
        """Move the slider, without a signal."""
        if not self.slider.isSliderDown():  # while the user drags it, it stays
            self._quiet = True
            self.slider.setValue(value)
            self._quiet = False

    def _changed(self, value: int) -> None:
        if not self._quiet:
            self.moved.emit(value)


class Marks(QWidget):
    """Small triangles with a label beneath a slider; a click or Enter moves the slider there."""

    clicked = Signal(str)

    def __init__(self, slider: QSlider) -> None:
        super().__init__()
        self.setObjectName("threshold marks")
        self._slider = slider
        self._marks: tuple[Mark, ...] = ()
        self._current = 0  # the mark of the keyboard, counted from the left
        self._colour = QColor("#888888")
        self.setMouseTracking(True)

    def sizeHint(self) -> QSize:
        return QSize(100, 6 + _ROW * len(self._marks) if self._marks else 0)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def set_marks(self, *marks: Mark) -> None:
        """Show marks, each in a row of its own so that no label covers another."""
        self._marks = marks
        self._current = 0
        focus = Qt.FocusPolicy.TabFocus if marks else Qt.FocusPolicy.NoFocus
        self.setFocusPolicy(focus)
        self.setAccessibleName("Threshold marks: " + ", ".join(mark.text for mark in marks))
        self.updateGeometry()
        self.update()

    def set_theme(self, background: str, foreground: str) -> None:
        """Draw the marks in the colour of text."""
        self._colour = QColor(foreground)
        self.update()

    def place(self, mark: Mark) -> int:
        """Return the position of a mark, in pixels from the left."""
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
        """Return the rectangle of the label of a mark."""
        # All labels on one side, and in the upper rows those of the marks on that side: so no stem
        # crosses a label.
        ordered = self._ordered()
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
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self.spot(self._ordered()[self._current]).adjusted(-3, 0, 3, -1))
        painter.end()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        """Choose a mark by the arrow keys; go to it by Enter or Space."""
        key = None if event is None else event.key()
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            step = 1 if key == Qt.Key.Key_Right else -1
            self._current = min(max(self._current + step, 0), len(self._marks) - 1)
            self.update()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.clicked.emit(self._ordered()[self._current].text)
        else:
            super().keyPressEvent(event)

    def _ordered(self) -> list[Mark]:
        return sorted(self._marks, key=self.place)

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
