"""The Hierarchy step as a widget."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QMessageBox

from napari_agglo.policy import MeanPolicy
from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets._step_widget import StepWidget
from napari_agglo.widgets._steps import Status, Step
from napari_agglo.widgets._theme import theme_colours
from napari_agglo.widgets._viewer_links import link_viewer
from napari_agglo.widgets.hierarchy._build import Plan, build, show
from napari_agglo.widgets.hierarchy._export import Export
from napari_agglo.widgets.hierarchy._keys import bind_keys
from napari_agglo.widgets.hierarchy._repairing import Repairing
from napari_agglo.widgets.hierarchy._scale import Scale
from napari_agglo.widgets.hierarchy._view import View


class HierarchyWidget(StepWidget):
    """Merge superpixels, and scrub the result from fine to coarse."""

    step = Step.HIERARCHY
    hints = {  # noqa: RUF012
        Status.EMPTY: "Choose an image with a boundary cue in step 1, Data.",
        Status.READY: "Build the hierarchy. Without a trained policy, regions merge across the "
        "weakest mean boundary first.",
        Status.RUNNING: "",
        Status.DONE: "Drag the slider from fine to coarse, or press A and D on the canvas.",
        Status.STALE: "Data or policy have changed since. Build again to see it.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.run = RunRow(
            self.project,
            self.step.value,
            "Build hierarchy",
            "Merge all regions, the most alike first; superpixels are computed if there are none",
            self.build,
        )
        self.scale = Scale(self.project)
        self.repairing = Repairing(self.project)
        self.view = View(self.viewer, self.project, self.scene)
        self.export = Export(self.project)
        for part in (self.run, self.scale, self.repairing, self.view, self.export):
            self.body.addWidget(part)
        self.scale.slider.moved.connect(lambda _: self.scene.show())  # it may have been deleted
        bind_keys(self.viewer)
        link_viewer(self, self.viewer.events.theme, self._paint)
        self._paint()
        self.start()

    def build(self) -> None:
        """Build the hierarchy in a worker, and show it."""
        if self.project.session is not None and not self._may_close():
            return
        plan, project = Plan.of(self.project), self.project
        self.project.jobs.start(
            self.step.value,
            "Building the hierarchy",
            lambda progress: build(plan, progress),
            lambda built: show(project, built),
        )

    def hint_for(self, status: Status) -> str:
        """Say what to do next."""
        if status is Status.READY and not isinstance(self.project.policy, MeanPolicy):
            return "Build the hierarchy: regions merge as the policy of step 2 says."
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        self.run.set_text("Build again" if self.project.has_hierarchy else "Build hierarchy")
        self.run.set_ready(status is not Status.EMPTY, self.project.trouble or self.hint.text())
        for part in (self.scale, self.view, self.export):
            part.setVisible(self.project.has_hierarchy)

    def _paint(self) -> None:
        self.scale.paint(theme_colours(self.viewer)[1])

    def _may_close(self) -> bool:
        """Ask before an open session goes; nothing of it is lost."""
        answer = QMessageBox.question(
            self,
            "Close the session?",
            "A new hierarchy closes the open session. Your edits are saved, to be opened again.",
        )
        return bool(answer == QMessageBox.StandardButton.Yes)
