"""Buttons and labels for texts with names of any length, which do not widen a narrow dock."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from qtpy.QtCore import QSize, Qt
from qtpy.QtGui import QPaintEvent
from qtpy.QtWidgets import (
    QLabel,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
)

from napari_agglo.widgets._qt import named, shortened

LONGEST = 26  # letters of a word that a label in the dock has room for
_LEAST = 6  # letters of a button
_SIDES = 16  # pixels beside the text of a button
_WORD = re.compile(r"[^\s/\\-]+")  # Qt breaks lines at slashes and hyphens too


def fit_words(text: str) -> str:
    """Return a text whose words have room in the dock: long ones lose their middle.

    Examples
    --------
    >>> fit_words("Saved stack_of_the_second_animal_labels.tif.")
    'Saved stack_of_the_…_labels.tif.'
    """
    return _WORD.sub(lambda word: shortened(word[0], LONGEST), text)


def show_fitting(label: QLabel, text: str) -> None:
    """Show a text in a label; if a word had to be shortened, the tooltip has all of the text."""
    short = fit_words(text)
    label.setText(short)
    label.setToolTip("" if short == text else f"<qt>{escape(text)}</qt>")


class FittingButton(QPushButton):
    """A button whose text ends in an ellipsis where there is no room for it."""

    def minimumSizeHint(self) -> QSize:
        """Return the size of a few letters."""
        size = super().minimumSizeHint()
        least = self.fontMetrics().averageCharWidth() * _LEAST + _SIDES
        return QSize(min(size.width(), least), size.height())

    def paintEvent(self, _: QPaintEvent | None) -> None:
        """Draw the button as Qt does, with a text that fits."""
        option, painter = QStyleOptionButton(), QStylePainter(self)
        self.initStyleOption(option)
        room = self.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self)
        option.text = self.fontMetrics().elidedText(
            option.text, Qt.TextElideMode.ElideMiddle, room.width()
        )
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)


def fitting_button(
    text: str, tooltip: str, action: Callable[[], object], name: str
) -> FittingButton:
    """Return a button that calls `action`, for a text with names; its tooltip must have them."""
    push = named(FittingButton(text), name, tooltip)
    push.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
    push.clicked.connect(lambda: action())
    return push
