"""The Proofread step as a widget."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtGui import QKeySequence, QShortcut
from qtpy.QtWidgets import QTabWidget, QWidget

from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import check_box, column, label, link, per_viewer
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.proofread._error_queue import QueuePanel
from napari_agglo.widgets.proofread._open_session import PROOFREAD
from napari_agglo.widgets.proofread._proofreader import Proofreader
from napari_agglo.widgets.proofread._relearn import RelearnPanel
from napari_agglo.widgets.proofread._seeded_cut import CutPanel
from napari_agglo.widgets.proofread._segment_panel import Details, HistoryList, Scores
from napari_agglo.widgets.proofread._segment_table import SegmentList
from napari_agglo.widgets.proofread._session_bar import SessionBar


class ProofreadWidget(StepWidget):
    """Merge and cut segments by hand; every edit is saved at once and can be undone."""

    key = PROOFREAD
    title = "Proofread"
    purpose = "merge and cut by hand, at any scale. Every edit is saved at once."
    hints = {  # noqa: RUF012
        Status.EMPTY: "Build a hierarchy first, in step 3, or open a session of yours.",
        Status.READY: "Start proofreading: merge and cut what is wrong, at any threshold.",
        Status.RUNNING: "The session is being made ready.",
        Status.DONE: "Click a segment; Shift + click merges another with it; Ctrl + click places "
        "seeds for a cut. Ctrl + Z undoes. Right-click selects several.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.proofreader = per_viewer(self.viewer, Proofreader)
        self.strip = label("mode", "What clicks on the canvas do now")
        self.strip.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.message = label("message", "What became of the last click or key")
        self.bar = SessionBar(self.proofreader)
        self.scores = Scores(self.project)
        self.isolate = check_box(
            "Show the selected segments only", "Hide all other segments", "isolate",
            self._on_isolate,
        )  # fmt: skip
        alone = "Look at the selected segments alone, in 3-D"
        self.in_3d = check_box("in 3-D", alone, "selected in 3-D", self._on_3d)
        self.tabs = QTabWidget()
        self.tabs.setObjectName("proofread tabs")
        self.details = Details(self.proofreader)
        self.cut = CutPanel(self.proofreader)
        self.segments = SegmentList(self.proofreader)
        self.history = HistoryList(self.proofreader)
        self.queue = QueuePanel(self.proofreader.queue)
        self.relearn = RelearnPanel(self.proofreader.relearn)
        for title, tooltip, parts in (
            ("Edit", "The active segment, and cuts by seeds", (self.details, self.cut)),
            ("Next", "The next probable error; learning from edits", (self.queue, self.relearn)),
            ("Segments", "All segments: sort, find, select", (self.segments,)),
            ("History", "What was done; click to go there", (self.history,)),
        ):
            tab = QWidget()
            inner = column(tab, *parts, spacing=6)
            inner.setContentsMargins(4, 4, 4, 4)
            if self.queue in parts:
                inner.addStretch(1)
            self.tabs.addTab(tab, title)
            self.tabs.setTabToolTip(self.tabs.count() - 1, tooltip)
        shown = (self.scores, self.isolate, self.in_3d, self.tabs)
        self.session_parts = (self.strip, self.message, *shown)
        for part in (self.strip, self.message, self.bar, *shown):
            self.body.addWidget(part)
        for keys, action in (
            ("Ctrl+Z", self.proofreader.commands.undo),
            ("Ctrl+Shift+Z", self.proofreader.commands.redo),
        ):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(action)
        link(self, self.proofreader.mode.changed, self._show_mode)
        link(self, self.project.worker.message, self._show_message)
        self.start()

    @staticmethod
    def idle_status(project: Project) -> Status:
        if project.session is not None:
            return Status.DONE
        return Status.EMPTY if project.built is None else Status.READY

    def update_state(self, status: Status) -> None:
        """Show the parts that make sense now."""
        session = self.project.session
        for part in self.session_parts:
            part.setVisible(session is not None)
        graph = self.project.graph
        deep = graph is not None and graph.superpixels.image.ndim > 2
        self.in_3d.setVisible(session is not None and deep)
        self.message.setVisible(session is not None and bool(self.message.text()))
        self.bar.update_state(status)
        self._show_mode()
        if session is None and self.isolate.isChecked():
            self.isolate.setChecked(False)

    def _show_mode(self) -> None:
        mode = self.proofreader.mode
        self.strip.setText(mode.words)
        self.strip.setStyleSheet(
            f"background: {mode.colour}; color: white; padding: 4px; border-radius: 3px; "
            "font-weight: bold;"
        )

    def _show_message(self, words: str) -> None:
        self.message.setText(words)
        self.message.setVisible(self.project.session is not None)

    def _on_isolate(self, on: bool) -> None:
        self.scene.isolate(on)
        if not on and self.in_3d.isChecked():
            self.in_3d.setChecked(False)

    def _on_3d(self, on: bool) -> None:
        if on:
            self.isolate.setChecked(True)
        self.viewer.dims.ndisplay = 3 if on else 2
