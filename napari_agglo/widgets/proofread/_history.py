"""What was done, in order; a click goes there, by undoing or redoing all that lies between."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtGui import QColor
from qtpy.QtWidgets import (
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from napari_agglo.widgets._links import link
from napari_agglo.widgets.proofread._editor import sentence
from napari_agglo.widgets.proofread._proofreader import Proofreader

_SHOWN = 500  # of a long history: the last


class HistoryList(QWidget):
    """The actions that count, and those that can be redone."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__()
        self.proofreader = proofreader
        self.project = proofreader.project
        self.undo = QPushButton("Undo")
        self.undo.setObjectName("undo")
        self.undo.setToolTip("Take back what was done last (Ctrl + Z)")
        self.undo.clicked.connect(proofreader.acts.undo)
        self.redo = QPushButton("Redo")
        self.redo.setObjectName("redo")
        self.redo.setToolTip("Do again what was undone last (Ctrl + Shift + Z)")
        self.redo.clicked.connect(proofreader.acts.redo)
        self.list = QListWidget()
        self.list.setObjectName("history")
        self.list.setToolTip("Click an action to go back, or forward, to just after it")
        self.list.setMinimumHeight(220)
        self.list.setWordWrap(True)
        self.list.itemClicked.connect(self._go)
        row = QHBoxLayout()
        row.addWidget(self.undo)
        row.addWidget(self.redo)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addLayout(row)
        layout.addWidget(self.list)
        link(self, self.project.edited, self._follow)
        link(self, self.project.hierarchy_changed, self._follow)
        self._follow()

    def showEvent(self, event: object) -> None:
        """Catch up with what was done while nobody looked."""
        super().showEvent(event)  # type: ignore[arg-type]
        self._follow()

    def _follow(self) -> None:
        session = self.project.session
        self.undo.setEnabled(session is not None and session.can_undo)
        self.redo.setEnabled(session is not None and session.can_redo)
        if not self.isVisible():
            return
        self.list.clear()
        if session is None:
            return
        done = [item for item in session.history if not item.undone]
        undone = session.redoable
        first = max(0, len(done) - _SHOWN)
        self._add("Start" if first == 0 else f"… {first} earlier", len(done) - first, False)
        for k, item in enumerate(done[first:], start=first + 1):
            self._add(f"{k}. {sentence(item.words)}", len(done) - k, False)
        for k, item in enumerate(undone, start=1):
            self._add(f"{len(done) + k}. {sentence(item.words)} (undone)", -k, True)
        here = len(done) - first
        self.list.setCurrentRow(here)
        self.list.scrollToItem(self.list.item(here))

    def _add(self, words: str, steps: int, undone: bool) -> None:
        item = QListWidgetItem(words)
        item.setData(Qt.ItemDataRole.UserRole, steps)
        if undone:
            item.setForeground(QColor("#8a8f98"))
            font = item.font()
            font.setItalic(True)
            item.setFont(font)
        self.list.addItem(item)

    def _go(self, item: QListWidgetItem) -> None:
        self.proofreader.acts.go_to(int(item.data(Qt.ItemDataRole.UserRole)))
