"""A few words beside the mouse, in the colours of the plot."""

from __future__ import annotations

from qtpy.QtCore import QPoint, Qt
from qtpy.QtWidgets import QLabel, QWidget

from napari_agglo.plots import Colours

_APART = 12  # pixels between the mouse and the words


class Readout(QLabel):
    """Words that float over a plot, never under the mouse and never beyond the edge.

    A tool tip of Qt comes late, goes by itself, and has the colours of another theme.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.hide()

    def paint(self, colours: Colours) -> None:
        self.setStyleSheet(
            f"QLabel {{ color: {colours.ink}; background: {colours.paper}; font-size: 11px; "
            f"border: 1px solid {colours.muted}; border-radius: 3px; padding: 3px; }}"
        )

    def say(self, text: str, at: QPoint) -> None:
        """Show words beside a point of the parent, or nothing if there are none."""
        if not text:
            self.hide()
            return
        room = self.parentWidget().rect()
        self.setWordWrap(False)
        self.setText(text)
        self.adjustSize()
        if self.width() > room.width() - 4:
            self.setWordWrap(True)
            self.resize(room.width() - 4, self.heightForWidth(room.width() - 4))
        left = at.x() + _APART
        if left + self.width() > room.right():
            left = max(at.x() - _APART - self.width(), room.right() - self.width())
        top = at.y() + _APART
        if top + self.height() > room.bottom():
            top = at.y() - _APART - self.height()
        self.move(max(left, 0), max(top, 0))
        self.raise_()
        self.show()
