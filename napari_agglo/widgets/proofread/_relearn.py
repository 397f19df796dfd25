"""Learn from my edits: a refit in a worker, before and after side by side, to keep or to undo."""

from __future__ import annotations

from typing import Any

import numpy as np
from psygnal import Signal
from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session import Change, Session
from napari_agglo.widgets._jobs import RunRow
from napari_agglo.widgets._qt import link, per_viewer, tell_error
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import EDIT, Editor, Task
from napari_agglo.widgets.compare._choices import Choice, PanelSource
from napari_agglo.widgets.compare._controller import CompareController
from napari_agglo.widgets.proofread._commands import Acts


class Relearning:
    """One for each viewer."""

    changed = Signal()

    def __init__(self, scene: Scene, editor: Editor, acts: Acts) -> None:
        self.scene, self.editor, self.acts = scene, editor, acts
        self.project = scene.project
        self.words = ""  # what came of it
        self.deciding = False  # before and after are on the screen
        self.project.hierarchy_changed.connect(self._forget)

    def learn(self) -> None:
        """Refit the policy with the edits, merge anew, do the edits again, and show the change."""
        project, session = self.project, self.project.session
        if session is None or not project.settled:
            self.editor.said.emit("Start proofreading first, and let what runs come to its end.")
            return
        volumes = self._volumes()
        if not volumes:
            tell_error(
                InvalidInput(
                    "Edits alone are too few to learn from: the policy is fitted again to gold "
                    "labels with the edits added. Give gold in step 1, Data, or add a volume to "
                    "the training set there."
                )
            )
            return
        before = np.array(project.table())
        error = self._vi(session)

        def act(live: Session, progress: ProgressCallback | None) -> Change:
            made = [
                (graph if graph is not None else dataset.graph(progress), gold)
                for graph, dataset, gold in volumes
            ]
            return live.relearn(made, progress=progress)

        self.editor.do(
            Task("Learning from your edits", act, True, lambda c: self._compare(before, error, c))
        )

    def keep(self) -> None:
        """Go on with what was learned."""
        self._leave()

    def go_back(self) -> None:
        """Undo it."""
        self._leave()
        self.acts.undo()

    def _compare(self, before: Any, error: float | None, change: Change) -> None:
        project, session = self.project, self.project.session
        if session is None or project.graph is None:
            return
        after = np.array(project.table())
        names = (
            PanelSource(Choice("before", "table"), table=before),
            PanelSource(Choice("after", "table"), table=after),
        )
        now = self._vi(session)
        self.words = str(change)
        if error is not None and now is not None:
            self.words += f" VI {error:.3f} before, {now:.3f} after."
        self.deciding = True
        per_viewer(self.scene.viewer, CompareController).show(list(names), project.graph)
        self.changed.emit()

    def _leave(self) -> None:
        self.deciding = False
        per_viewer(self.scene.viewer, CompareController).leave()
        self.changed.emit()

    def _forget(self) -> None:
        self.deciding, self.words = False, ""
        self.changed.emit()

    def _vi(self, session: Session) -> float | None:
        return session.errors.vi if session.has_gold else None

    def _volumes(self) -> list[tuple[Any, Any, Any]]:
        """Return what the policy is fitted to beside the edits: graph or dataset, and gold."""
        project = self.project
        found: list[tuple[Any, Any, Any]] = [
            (None, one, one.gold) for one in project.training if one.gold is not None
        ]
        regions = project.regions
        if regions is not None and regions.dataset.gold is not None:
            found.append((regions.graph, regions.dataset, regions.dataset.gold))
        return found


# The button that learns from the edits, and the choice to keep what was learned.


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
