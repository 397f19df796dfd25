"""A question with a few answers, which does not keep the window waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QApplication, QMessageBox

from napari_agglo.widgets._notices import tell_error

_asked: set[QMessageBox] = set()  # Python would let go of one without a parent at once


def ask(title: str, text: str, choices: dict[str, Callable[[], object]]) -> QMessageBox:
    """Ask; a click on an answer calls what belongs to it, Cancel calls nothing."""
    box = QMessageBox(QMessageBox.Icon.Question, title, text, parent=QApplication.activeWindow())
    box.setObjectName("agglo question")
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    answers: dict[Any, Callable[[], object]] = {}
    for words, action in choices.items():
        button = box.addButton(words, QMessageBox.ButtonRole.AcceptRole)
        button.setObjectName(words)
        answers[button] = action
    box.addButton(QMessageBox.StandardButton.Cancel)

    def answered(button: Any) -> None:
        action = answers.get(button)
        if action is not None:
            try:
                action()
            except Exception as error:
                tell_error(error)

    box.buttonClicked.connect(answered)
    _asked.add(box)
    box.finished.connect(lambda: _asked.discard(box))
    box.open()
    return box
