"""Controls to start, open, copy and close a session, and its saved state."""

# In its own file: the session as a whole, apart from its segments.

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Annotated

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFileDialog, QMenu, QWidget

from napari_agglo.session import Session
from napari_agglo.widgets._colours import NOT_SAVED, SAVED
from napari_agglo.widgets._fit_text import fit_words, show_fitting
from napari_agglo.widgets._forms import Form
from napari_agglo.widgets._progress_row import FailureLine, RunRow
from napari_agglo.widgets._qt import button, column, guarded, label, link, row, shortened
from napari_agglo.widgets._readers import run_folder
from napari_agglo.widgets._steps import Status
from napari_agglo.widgets.data._layers import CONVERT
from napari_agglo.widgets.proofread._correct_labels import correct_labels
from napari_agglo.widgets.proofread._open_run import open_run
from napari_agglo.widgets.proofread._open_session import (
    PROOFREAD,
    create_session,
    free_path,
    is_busy,
    open_session,
    save_as,
    sessions_folder,
)
from napari_agglo.widgets.proofread._proofreader import Proofreader
from napari_agglo.widgets.proofread._recent_sessions import recent_sessions

_SAVE_IN = "Folder of the new session; every edit is saved there at once"


class SessionBar(QWidget):
    """The folder of the session, and commands on it."""

    def __init__(self, proofreader: Proofreader) -> None:
        super().__init__()
        self.proofreader = proofreader
        self.project = proofreader.project
        self._own_path = False  # whether the user has chosen the folder
        self._home: Path | None = None  # the folder of the last session
        self._closed: Path | None = None  # the session that was closed, until another hierarchy
        options = {"label": "Save in", "mode": "w", "filter": "*.agglo", "tooltip": _SAVE_IN}
        self.form = Form(Session.create, only=("path",), table={"path": Annotated[Path, options]})
        self.form.changed.connect(self._on_path)
        self.path = self.form["path"].line_edit.native
        self.path.setObjectName("session path")
        self.run = RunRow(
            self.project, PROOFREAD, "Start proofreading",
            "Create a session of the hierarchy at this threshold",
            lambda: guarded(lambda: create_session(self._viewer, **self.form.values())),
        )  # fmt: skip
        self.correct = button(
            "Correct the selected labels",
            "Start a session from the segments of the layer that is selected in the list of "
            "layers, such as a segmentation by another tool",
            lambda: guarded(lambda: correct_labels(self._viewer, **self.form.values())),
        )
        self.open = button(
            "Open…",
            "Open a recent session, another session folder, NAME.agglo, or the results folder of "
            "napari-agglo blocks",
        )
        self.menu = QMenu(self.open)
        self.menu.setToolTipsVisible(True)
        self.menu.aboutToShow.connect(self.list_recent)
        self.open.setMenu(self.menu)
        self.copy = button("Save as…", "Copy the session, and continue in the copy", self._copy)
        self.close_ = button("Close", "Close the session; everything is saved", self._close)
        self.saved = label("saved")
        self.saved.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.closed = label("closed session")
        again = "Open the session that was closed, with all of its edits"
        self.reopen = button("Reopen", again, self._reopen)
        self._trouble = ""
        buttons = row(self.open, self.copy, self.close_)
        failure = FailureLine(self.project, CONVERT)
        top = (self.saved, self.closed, self.reopen)
        column(self, *top, self.form, self.run, self.correct, failure, buttons)
        link(self._on_trouble, self.project.worker.trouble)
        link(self._forget, self.project.hierarchy_changed)

    def update_state(self, status: Status) -> None:
        """Update the controls from the project."""
        session = self.project.session
        running = status is Status.RUNNING
        self.form.setVisible(session is None)
        self.form.setEnabled(not running)
        self.run.setVisible(session is None or running)
        self.run.set_ready(
            status is not Status.EMPTY, "Build a hierarchy first, in step 3, or open a session"
        )
        self.open.setEnabled(not running)
        self.correct.setVisible(session is None)
        self.correct.setEnabled(not running)
        for one in (self.copy, self.close_):
            one.setVisible(session is not None)
            one.setEnabled(not running)
        if not self._own_path and session is None and not running:
            regions = self.project.regions
            name = "session" if regions is None else regions.dataset.name
            path = free_path(name)
            self.form.show_values({"path": path})
            self.path.setToolTip(f"<qt>{escape(str(path))}<br>{_SAVE_IN}</qt>")
            self.path.setCursorPosition(len(self.path.text()))
        for part in (self.closed, self.reopen):
            part.setVisible(session is None and self._closed is not None)
            part.setEnabled(not running)
        self._show_saved()

    def _show_saved(self) -> None:
        session = self.project.session
        self.saved.setVisible(session is not None)
        if session is None:
            return
        folder = session.path
        name = fit_words(folder.name)
        self.saved.setToolTip(f"{folder}: every edit is saved at once")
        if self._trouble:
            text = f"<b style='color: {NOT_SAVED}'>● NOT SAVED</b> {self._trouble}"
        elif session.read_only:
            text = f"<b>○ read-only</b> {escape(name)}: edits are not possible"
        else:
            text = f"<b style='color: {SAVED}'>● saved</b> {escape(name)}"
        self.saved.setText(text)

    def _on_trouble(self, why: str) -> None:
        self._trouble = why
        self._show_saved()

    def _forget(self) -> None:
        self._trouble, self._own_path, self._closed = "", False, None
        if self.project.session is not None:
            self._home = self.project.session.path.parent

    def _on_path(self) -> None:
        self._own_path = True
        self.path.setToolTip(f"<qt>{escape(self.path.text())}<br>{_SAVE_IN}</qt>")

    def list_recent(self) -> None:
        """Fill the menu with the recent sessions that are still there, but for the open one."""
        session = self.project.session
        self.menu.clear()
        for path in recent_sessions(sessions_folder()):
            if session is None or path != session.path.absolute():
                name = shortened(path.stem, 30).replace("&", "&&")
                action = self.menu.addAction(name)
                action.setToolTip(str(path))
                action.triggered.connect(lambda _=False, path=path: self._open_folder(path))
        self.menu.addSeparator()
        self.menu.addAction("Other folder…").triggered.connect(lambda: self._open())

    def _open(self) -> None:
        home = self._home or sessions_folder()
        chosen = QFileDialog.getExistingDirectory(
            self,
            "Open a session (NAME.agglo) or results of blocks",
            str(home if home.is_dir() else Path.home()),
        )
        if chosen:
            self._open_folder(Path(chosen))

    def _open_folder(self, path: Path) -> None:
        is_run = run_folder(path) is not None
        guarded(lambda: (open_run if is_run else open_session)(self._viewer, path))

    def _copy(self) -> None:
        session = self.project.session
        if session is None:
            return
        suggested = free_path(session.path.stem)
        suggested.parent.mkdir(parents=True, exist_ok=True)
        chosen, _ = QFileDialog.getSaveFileName(
            self, "Save a copy as", str(suggested), "Session (*.agglo)"
        )
        if chosen:
            guarded(lambda: save_as(self._viewer, Path(chosen)))

    def _close(self) -> None:
        session = self.project.session
        if session is None or is_busy(self.project):
            return
        edits = session.history.n_edits
        guarded(self.proofreader.close_session)
        if self.project.session is None:
            self._closed = session.path
            show_fitting(
                self.closed,
                f"{session.path.name} is closed with {edits} {'edit' if edits == 1 else 'edits'}, "
                "all saved. The segments on the canvas are those without edits.",
            )
            self.project.status_changed.emit()

    def _reopen(self) -> None:
        if self._closed is not None:
            self._open_folder(self._closed)

    @property
    def _viewer(self) -> object:
        return self.proofreader.scene.viewer
