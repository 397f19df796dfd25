"""Labels of a fixed number of lines, for messages that come and go."""

from __future__ import annotations

from html import escape

from qtpy.QtCore import QEvent, Qt
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import QLabel, QSizePolicy
from superqt import QElidingLabel

from napari_agglo.widgets._qt import STILL, named


class FixedLabel(QLabel):
    """A text of a fixed number of lines: nothing below it moves, and a tooltip has all of it."""

    lines, padding = 1, 0  # rows of text, and pixels above and below them
    _texts: tuple[str, ...] = ("",)  # the first and longest that fits is shown

    def text(self) -> str:
        """Return the whole text."""
        return self._texts[0]

    def setText(self, text: str | None) -> None:
        """Show a text, as far as there is room."""
        self.show_first(text or "")

    def show_first(self, text: str, *shorter: str) -> None:
        """Show the first of some texts that there is room for; the tooltip has the first."""
        self._texts = (text, *shorter)
        self.setToolTip(f"<qt>{escape(text)}</qt>" if text else "")
        self._fit()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        """Fit the text to the new width."""
        super().resizeEvent(event)
        self._fit()

    def changeEvent(self, event: QEvent | None) -> None:
        """Follow the font of napari's style, which comes after the label is made."""
        super().changeEvent(event)
        self.reserve()
        self._fit()

    def reserve(self) -> None:
        """Take the height of the lines."""
        line = self.fontMetrics().lineSpacing() + 1  # Qt rounds the pitch of several lines up
        height = self.lines * line + 2 * self.padding + 2
        if height != self.maximumHeight():
            self.setFixedHeight(height)

    def _fit(self) -> None:
        width = self.contentsRect().width()
        for text in self._texts:
            shown = QElidingLabel.wrapText(text, width, self.font())
            if len(shown) <= self.lines:
                break
        if len(shown) > self.lines:
            rest = "".join(shown[self.lines - 1 :])
            last = self.fontMetrics().elidedText(rest, Qt.TextElideMode.ElideRight, width)
            shown = [*shown[: self.lines - 1], last]
        text = "\n".join(line.strip() for line in shown)
        if text != super().text():
            super().setText(text)


def fixed_label(name: str, lines: int = 1, padding: int = 0) -> FixedLabel:
    """Return a label for messages that come and go, of so many lines."""
    text = named(FixedLabel(), name)
    text.lines, text.padding = lines, padding
    text.setTextFormat(Qt.TextFormat.PlainText)
    text.setStyleSheet(STILL)
    text.setIndent(0)
    text.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    text.reserve()
    text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
    return text
