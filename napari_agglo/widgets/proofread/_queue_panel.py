"""The tab of the next probable error: the question, three answers, filters, and how far it is."""

from __future__ import annotations

from typing import Literal

from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_agglo.widgets._links import link
from napari_agglo.widgets.proofread._queue import Filters, Queue

_KINDS: dict[str, Literal["false_split", "false_merge"] | None] = {
    "false merges and false splits": None,
    "false merges only": "false_merge",
    "false splits only": "false_split",
}


class QueuePanel(QWidget):
    """Where to look next."""

    def __init__(self, queue: Queue) -> None:
        super().__init__()
        self.queue = queue
        self.go = QPushButton("Find the next probable error")
        self.go.setObjectName("next error")
        self.go.setToolTip("Fly to the decision that is most worth a look, and ask about it")
        self.go.clicked.connect(self._on_go)
        self.question = _words("question", bold=True)
        self.reason = _words("reason")
        self.line = _words("queue progress")
        self.yes = _button("yes", "Yes (Y)", "It is wrong: merge, or cut, as asked", queue.yes)
        self.no = _button("no", "No (N)", "It is right as it is, and is not asked again", queue.no)
        self.skip = _button(
            "skip", "Skip (S)", "Do not ask this again, without an answer", queue.skip
        )
        answers = QHBoxLayout()
        for button in (self.yes, self.no, self.skip):
            answers.addWidget(button)
        self.kind = QComboBox()
        self.kind.setObjectName("queue kind")
        self.kind.addItems(list(_KINDS))
        self.kind.setToolTip("Which errors to look for")
        self.kind.activated.connect(self._on_filters)
        self.least = QSpinBox()
        self.least.setObjectName("queue size")
        self.least.setRange(1, 10_000_000)
        self.least.setToolTip("Only where both sides have so many pixels")
        self.least.valueChanged.connect(self._on_filters)
        self.view = QCheckBox("in view only")
        self.view.setObjectName("queue view")
        self.view.setToolTip("Only what is on the screen now")
        self.view.toggled.connect(self._on_filters)
        filters = QGridLayout()
        filters.addWidget(self.kind, 0, 0, 1, 3)
        filters.addWidget(QLabel("at least"), 1, 0)
        filters.addWidget(self.least, 1, 1)
        filters.addWidget(self.view, 1, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.go)
        column.addWidget(self.question)
        column.addWidget(self.reason)
        column.addLayout(answers)
        column.addWidget(self.line)
        column.addLayout(filters)
        link(self, queue.changed, self.follow)
        link(self, queue.project.status_changed, self.follow)
        self.follow()

    def follow(self) -> None:
        """Show what is asked now."""
        queue, one = self.queue, self.queue.current
        self.go.setText("Stop" if queue.on else "Find the next probable error")
        for button in (self.yes, self.no, self.skip):
            button.setEnabled(one is not None)
        if not queue.on:
            self.question.setText("")
            self.reason.setText("Goes to where the policy doubts most what matters most.")
        elif one is not None:
            self.question.setText(one.question)
            self.reason.setText(one.reason)
        elif not queue.seeking:
            self.question.setText("Nothing more to ask")
            self.reason.setText("All doubtful decisions at this threshold were answered.")
        else:
            self.question.setText("Looking…")
            self.reason.setText("")
        self.line.setText(self._progress())

    def _progress(self) -> str:
        queue = self.queue
        if not queue.on or queue.effort is None:
            return ""
        left = queue.effort
        said = f"{queue.answered} answered · about {left.merges + left.cuts:.0f} edits left here"
        said += f" ({left.merges:.0f} merges, {left.cuts:.0f} cuts)"
        return said

    def _on_go(self) -> None:
        if self.queue.on:
            self.queue.stop()
        else:
            self.queue.start()

    def _on_filters(self) -> None:
        kind = _KINDS[self.kind.currentText()]
        self.queue.set_filters(Filters(kind, self.least.value(), self.view.isChecked()))


def _words(name: str, bold: bool = False) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    if bold:
        label.setStyleSheet("font-weight: bold;")
    return label


def _button(name: str, text: str, tooltip: str, action: object) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(name)
    button.setToolTip(tooltip)
    button.clicked.connect(lambda: action())  # type: ignore[operator]
    return button
