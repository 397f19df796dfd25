"""Learn from edits: a refit in a worker, shown beside the former segments."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from psygnal import Signal
from qtpy.QtWidgets import QWidget

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session import Change, Session
from napari_agglo.widgets._forms import Form
from napari_agglo.widgets._progress_row import RunRow
from napari_agglo.widgets._qt import button, column, label, link, per_viewer, row, tell_error
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import EDIT, Edit
from napari_agglo.widgets.compare._choices import Choice, PanelSource
from napari_agglo.widgets.compare._controller import CompareController
from napari_agglo.widgets.proofread._commands import Commands


class Relearn:
    """The policy learned from edits, and its comparison; one object per viewer."""

    changed = Signal()

    def __init__(self, scene: Scene, commands: Commands) -> None:
        self.scene, self.commands = scene, commands
        self.project = scene.project
        self.result = ""  # a sentence on the change
        self.deciding = False  # while both states are on the screen
        self.project.hierarchy_changed.connect(self._forget)

    def learn(self, **options: Any) -> None:
        """Refit the policy with the edits, merge again, replay the edits, and show the change.

        The options are those of `Session.relearn`.
        """
        project, session = self.project, self.project.session
        if session is None or not project.worker.settled:
            project.worker.message.emit(
                "No session is open, or a task is running; try again when it has finished."
            )
            return
        volumes = self._volumes()
        if not volumes:
            tell_error(
                InvalidInput(
                    "Learning from edits needs gold labels too, because edits alone are too few",
                    argument="volumes",
                    remedy="choose gold in step 1, Data, or add a volume to the training set there",
                )
            )
            return
        before = np.array(project.table())
        error = self._vi(session)

        def act(live: Session, progress: ProgressCallback | None) -> Change:
            pairs = [
                (dataset.graph(progress) if graph is None else graph, gold)
                for graph, dataset, gold in volumes
            ]
            return live.relearn(pairs, progress=progress, **options)

        then = partial(self._compare, before, error)
        project.worker.edit(Edit("Learning from your edits", act, then, long=True))

    def keep(self) -> None:
        """Keep the new policy and segments."""
        self._leave()

    def go_back(self) -> None:
        """Undo the change of policy and segments."""
        self._leave()
        self.commands.undo()

    def _compare(self, before: Any, error: float | None, change: Change) -> None:
        project, session = self.project, self.project.session
        if session is None or project.graph is None:
            return
        tables = {"before": before, "after": np.array(project.table())}
        panels = [PanelSource(Choice(name, "table"), table=one) for name, one in tables.items()]
        now = self._vi(session)
        self.result = str(change)
        if error is not None and now is not None:
            self.result += f" VI {error:.3f} before, {now:.3f} after."
        self.deciding = True
        per_viewer(self.scene.viewer, CompareController).show(panels, project.graph)
        self.changed.emit()

    def _leave(self) -> None:
        self.deciding = False
        per_viewer(self.scene.viewer, CompareController).leave()
        self.changed.emit()

    def _forget(self) -> None:
        self.deciding, self.result = False, ""
        self.changed.emit()

    def _vi(self, session: Session) -> float | None:
        return session.errors.vi if session.errors.has_gold else None

    def _volumes(self) -> list[tuple[Any, Any, Any]]:
        """Return the training volumes beside the edits: graph (if known), dataset and gold."""
        project = self.project
        volumes: list[tuple[Any, Any, Any]] = [
            (None, one, one.gold) for one in project.training if one.gold is not None
        ]
        regions = project.regions
        if regions is not None and regions.dataset.gold is not None:
            volumes.append((regions.graph, regions.dataset, regions.dataset.gold))
        return volumes


class RelearnPanel(QWidget):
    """The button that learns from edits, and the choice to keep or undo the result."""

    def __init__(self, relearn: Relearn) -> None:
        super().__init__()
        self.relearn = relearn
        self.run = RunRow(
            relearn.project,
            EDIT,
            "Learn from my edits",
            "Fit the policy again with your edits, merge again, and replay the edits",
            lambda: relearn.learn(**self.options.values()),
        )
        self.options = Form(
            Session.relearn,
            table={
                "strategy": {"automatic": "as before"},
                "weight": {"label": "Weight of edits"},
            },
            first=(),
            more="Options",
        )
        self.result = label("learned")
        self.keep = button("Keep", "Keep the new policy and segments", relearn.keep, "keep")
        undone = "Restore the former policy and segments"
        self.back = button("Go back", undone, relearn.go_back, "go back")
        column(self, self.run, self.options, self.result, row(self.keep, self.back), top=8)
        link(self.follow, relearn.changed)
        self.follow()

    def follow(self) -> None:
        """Show the result."""
        self.result.setText(self.relearn.result)
        self.result.setVisible(bool(self.relearn.result))
        for choice in (self.keep, self.back):
            choice.setVisible(self.relearn.deciding)
