"""Long text of the dock, of which two lines are shown until a click on *more*."""

from __future__ import annotations

import re
from html import escape

from qtpy.QtCore import QEvent, QPoint, Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QLabel, QToolButton, QWidget

from napari_agglo.widgets._qt import FoldedLabel, column, named

_SPACE = "\N{NO-BREAK SPACE}"
_WORD = re.compile(r"(?:<[^>]*>|[^\s<])+")  # tags stay with their word
_ENDS = ".,;:"  # left out before an ellipsis


class FoldedText(QWidget):
    """Text that is cut after some lines, with a button that shows all of it, or less again.

    The button lies on the end of the last line. Of a text that fits there is no button.
    """

    def __init__(self, name: str, tooltip: str = "", *, lines: int = 2, rich: bool = False) -> None:
        super().__init__()
        self._lines, self._rich = lines, rich
        self._text = ""
        self._laid: object = None  # text, width and state of the last layout
        self.label = named(FoldedLabel(), name, tooltip)
        self.label.setWordWrap(True)
        self.label.setTextFormat(Qt.TextFormat.RichText)
        # Measures texts that are not shown, in the style and font of the label.
        self._probe = QLabel(self)
        self._probe.setWordWrap(True)
        self._probe.setTextFormat(Qt.TextFormat.RichText)
        self._probe.hide()
        column(self, self.label)
        self.button = named(QToolButton(self), f"more of {name}", "Show all of the text")
        self.button.setCheckable(True)
        self.button.setStyleSheet(
            "QToolButton, QToolButton:checked, QToolButton:hover { background: none; border: none; "
            "padding: 0; margin: 0; text-decoration: underline; }"
        )
        self.button.setCursor(Qt.CursorShape.PointingHandCursor)
        self.button.toggled.connect(lambda _: self._lay_out())
        self.button.hide()

    def text(self) -> str:
        """Return the whole text."""
        return self._text

    def setText(self, text: str) -> None:
        """Show a text, or as much of it as fits."""
        self._text = text
        self._lay_out()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """Cut the text for the new width."""
        super().resizeEvent(event)
        self._lay_out()

    def changeEvent(self, event: QEvent | None) -> None:
        """Cut the text again in another font or style."""
        super().changeEvent(event)
        kinds = (QEvent.Type.FontChange, QEvent.Type.StyleChange)
        if event is not None and event.type() in kinds:
            self._laid = None
            self._lay_out()

    def _lay_out(self) -> None:
        state = (self._text, self.width(), self.button.isChecked())
        if state == self._laid:
            return
        self._laid = state
        words = _WORD.findall(self._text if self._rich else escape(self._text, quote=False))
        whole = " ".join(words)
        room = self._height("<br>".join("x" * self._lines))
        is_long = self._height(whole) > room
        self.button.setVisible(is_long)
        if is_long:
            is_open = self.button.isChecked()
            self.button.setText("less" if is_open else "more")
            self.button.setAccessibleName(f"{self.button.text()} of {self.label.objectName()}")
            line = self.label.fontMetrics().lineSpacing()
            self.button.setFixedSize(self.button.sizeHint().width(), line)
            whole = self._with_place(whole) if is_open else self._cut_at(words, room)
        self.label.setText(whole)
        self._place()

    def _height(self, text: str) -> int:
        self._probe.ensurePolished()
        self._probe.setText(text)
        return self._probe.heightForWidth(max(self.width(), 1))

    def _with_place(self, text: str) -> str:
        """Return a text with a gap for the button after its last word."""
        space = max(self.label.fontMetrics().horizontalAdvance(_SPACE), 1)
        return text + _SPACE * (2 + self.button.width() // space)

    def _cut_at(self, words: list[str], room: int) -> str:
        """Return as many words as there is room for, with an ellipsis and a gap for the button."""

        def first(n: int) -> str:
            return self._with_place(" ".join(words[:n]).rstrip(_ENDS) + "…")

        low, high = 1, len(words)
        while low < high:
            middle = (low + high + 1) // 2
            if self._height(first(middle)) <= room:
                low = middle
            else:
                high = middle - 1
        return first(low)

    def _place(self) -> None:
        """Put the button on the end of the last line."""
        inside = self.label.contentsRect()
        height = self.label.heightForWidth(self.width())
        pad = (self._height("x") - self.label.fontMetrics().lineSpacing()) // 2
        corner = QPoint(inside.right() - self.button.width(), height - pad - self.button.height())
        self.button.move(self.label.pos() + corner)
        self.button.raise_()
