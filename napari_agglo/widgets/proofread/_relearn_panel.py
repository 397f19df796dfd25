"""The button that learns from the edits, and the choice to keep what was learned."""

from __future__ import annotations

from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_agglo.widgets._links import link
from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets.proofread._editor import EDIT
from napari_agglo.widgets.proofread._relearning import Relearning


class RelearnPanel(QWidget):
    """Learn from my edits."""

    def __init__(self, relearning: Relearning) -> None:
        super().__init__()
        self.relearning = relearning
        self.run = RunRow(
            relearning.project,
            EDIT,
            "Learn from my edits",
            "Fit the policy again with your edits added, merge anew, and do the edits again",
            relearning.learn,
        )
        self.words = QLabel()
        self.words.setObjectName("learned")
        self.words.setWordWrap(True)
        self.keep = QPushButton("Keep")
        self.keep.setObjectName("keep")
        self.keep.setToolTip("Go on with what was learned")
        self.keep.clicked.connect(relearning.keep)
        self.back = QPushButton("Go back")
        self.back.setObjectName("go back")
        self.back.setToolTip("Undo it: policy and segments are as they were")
        self.back.clicked.connect(relearning.go_back)
        row = QHBoxLayout()
        row.addWidget(self.keep)
        row.addWidget(self.back)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 0)
        column.addWidget(self.run)
        column.addWidget(self.words)
        column.addLayout(row)
        link(self, relearning.changed, self.follow)
        self.follow()

    def follow(self) -> None:
        """Show what came of it."""
        self.words.setText(self.relearning.words)
        self.words.setVisible(bool(self.relearning.words))
        for button in (self.keep, self.back):
            button.setVisible(self.relearning.deciding)
