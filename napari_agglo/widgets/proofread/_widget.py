"""Widget of the Proofread step: session, selection, cuts, tables and history."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtGui import QKeySequence, QShortcut
from qtpy.QtWidgets import QWidget
from superqt.utils import signals_blocked

from napari_agglo.widgets._fixed_label import fixed_label
from napari_agglo.widgets._progress_row import FailureLine
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import check_box, column, link, per_viewer, row, tab_widget
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.hierarchy._save_segments import Export
from napari_agglo.widgets.proofread._correct_labels import APPLY, GOLD, apply_button, gold_button
from napari_agglo.widgets.proofread._error_queue import QueuePanel
from napari_agglo.widgets.proofread._open_session import PROOFREAD
from napari_agglo.widgets.proofread._proofreader import Proofreader
from napari_agglo.widgets.proofread._relearn import RelearnPanel
from napari_agglo.widgets.proofread._seeded_cut import CutPanel
from napari_agglo.widgets.proofread._segment_panel import Details, HistoryList, Scores
from napari_agglo.widgets.proofread._segment_table import SegmentList
from napari_agglo.widgets.proofread._session_bar import SessionBar
from napari_agglo.widgets.proofread._shapes import ShapesPanel


class ProofreadWidget(StepWidget):
    """Merge and cut segments by hand; every edit is saved at once and can be undone."""

    key = PROOFREAD
    title = "Proofread"
    purpose = "merge and cut by hand, at any threshold. Every edit is saved at once."
    hints = {  # noqa: RUF012
        Status.EMPTY: "Build a hierarchy in step 3 first, or open a session.",
        Status.READY: "Start proofreading: merge and cut segments, at any threshold.",
        Status.RUNNING: "The session is being opened.",
        Status.OPEN: "Click a segment; Shift + click merges another; Ctrl + click seeds a cut; "
        "Ctrl + Z undoes.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.proofreader = per_viewer(self.viewer, Proofreader)
        self.strip = fixed_label("mode", padding=5)  # the current mode of the canvas
        self.strip.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.message = fixed_label("message", lines=2)  # the result of the last click or key
        self.bar = SessionBar(self.proofreader)
        self.scores = Scores(self.project)
        self.isolate = check_box(
            "Selected only", "Hide all other segments", "isolate",
            self.scene.isolate,
        )  # fmt: skip
        alone = "Show only the selected segments, in 3-D"
        self.in_3d = check_box("in 3-D", alone, "selected in 3-D", self._on_3d)
        self.shapes = ShapesPanel(self.proofreader.shapes)
        self.details = Details(self.proofreader)
        self.cut = CutPanel(self.proofreader)
        self.segments = SegmentList(self.proofreader)
        self.history = HistoryList(self.proofreader)
        self.gold = gold_button(self.proofreader)
        self.apply = apply_button(self.proofreader)
        self.queue = QueuePanel(self.proofreader.queue)
        self.relearn = RelearnPanel(self.proofreader.relearn)
        self.tabs = tab_widget(
            "proofread tabs",
            ("Edit", "The active segment, and cuts by seeds",
             _tab(self.details, self.cut, stretch=True)),
            ("Next", "The next probable error; learning from edits",
             _tab(self.queue, self.relearn, stretch=True)),
            ("Segments", "All segments: sort, find, select",
             _tab(self.segments, self.gold, FailureLine(self.project, GOLD))),
            ("History", "All actions; click one to go there",
             _tab(self.history, self.apply, FailureLine(self.project, APPLY))),
        )  # fmt: skip
        self.export = Export(self.project, self.scene, merges=False)
        shown = (self.scores, self.export, self.isolate, self.in_3d, self.tabs)
        self.session_parts = (self.strip, self.message, *shown)
        boxes = QWidget()
        boxes.setLayout(row(self.isolate, self.in_3d))
        parts = (self.export, self.scores, boxes, self.shapes, self.tabs)
        self.add(self.strip, self.message, self.bar, *parts)
        for keys, action in (
            ("Ctrl+Z", self.proofreader.commands.undo),
            ("Ctrl+Shift+Z", self.proofreader.commands.redo),
        ):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(action)
        link(self._show_mode, self.proofreader.mode.changed)
        link(self.message.setText, self.project.worker.message)
        project, ndisplay = self.project, self.viewer.dims.events.ndisplay
        link(
            self._forget_message,
            project.selection_changed,
            project.threshold_changed,
            project.hierarchy_changed,
            self.scene.suspended_changed,
            ndisplay,
        )
        link(self._follow_view, self.viewer.dims.events.ndisplay, self.scene.isolated_changed)
        self._follow_view()
        self.start()

    @staticmethod
    def idle_status(project: Project) -> Status:
        if project.session is not None:
            return Status.OPEN
        if project.built is None:
            return Status.EMPTY
        return Status.STALE if project.lacks_data else Status.READY

    def hint_for(self, status: Status) -> str:
        """Return the next thing to do."""
        built, is_idle = self.project.built, status in (Status.READY, Status.STALE)
        if is_idle and built is not None and self.project.shows_another_volume:
            return (
                f"A session would be that of {built.regions.dataset.name}, whose hierarchy is on "
                "the screen. For the data of step 1, build a hierarchy in step 3 first."
            )
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        """Show the controls of the current state."""
        session = self.project.session
        for part in self.session_parts:
            part.setVisible(session is not None)
        self.in_3d.setVisible(session is not None and self.project.is_volume)
        self.shapes.follow()
        self.bar.update_state(status)
        self._show_mode()

    def _show_mode(self) -> None:
        mode = self.proofreader.mode
        self.strip.show_first(mode.text, mode.short)
        self.strip.setStyleSheet(
            f"background: {mode.colour}; color: white; padding: 4px; border-radius: 3px; "
            "font-weight: bold;"
        )

    def _forget_message(self) -> None:
        """Remove a message of before; that of an edit or click comes after its changes."""
        self.message.setText("")

    def _follow_view(self) -> None:
        """Show the state of the view, which other parts change too."""
        with signals_blocked(self.in_3d), signals_blocked(self.isolate):
            self.in_3d.setChecked(self.viewer.dims.ndisplay == 3)
            self.isolate.setChecked(self.scene.isolated)

    def _on_3d(self, on: bool) -> None:
        if on:
            self.isolate.setChecked(True)
        self.viewer.dims.ndisplay = 3 if on else 2


def _tab(*parts: QWidget, stretch: bool = False) -> QWidget:
    """Return parts one below the other, at the top if there is a stretch below them."""
    tab = QWidget()
    inner = column(tab, *parts, spacing=6)
    inner.setContentsMargins(4, 4, 4, 4)
    if stretch:
        inner.addStretch(1)
    return tab
