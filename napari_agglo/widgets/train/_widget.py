"""The Train step as a widget."""

from __future__ import annotations

from typing import Any

from napari_agglo.policy import LearnedPolicy
from napari_agglo.widgets._links import link
from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets._step_widget import StepWidget
from napari_agglo.widgets._steps import Status, Step
from napari_agglo.widgets._theme import theme_colours
from napari_agglo.widgets._viewer_links import link_viewer
from napari_agglo.widgets.train._files_part import FilesPart
from napari_agglo.widgets.train._options_part import OptionsPart
from napari_agglo.widgets.train._summary import Summary
from napari_agglo.widgets.train._teacher import teacher_of


class TrainWidget(StepWidget):
    """Learn from gold labels which regions to merge."""

    step = Step.TRAIN
    hints = {  # noqa: RUF012 - what to do next
        Status.EMPTY: "Optional. To learn which regions to merge, choose gold labels in step 1, "
        "Data, or load a policy. Without one, step 3 merges by the mean of the boundary cue.",
        Status.READY: "Optional. Train learns from the gold labels which regions to merge; "
        "without it, step 3 merges by the mean of the boundary cue.",
        Status.RUNNING: "Training. The curve shows how wrong the policy is after each epoch.",
        Status.STALE: "The policy was trained on other data than are chosen now. Use it all the "
        "same in step 3, or train again.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.teacher = teacher_of(self.project)
        self.options = OptionsPart(self.teacher)
        self.run = RunRow(
            self.project,
            self.step.value,
            "Train",
            "Learn from the gold labels of step 1, Data, and of the volumes kept there.",
            self.teacher.start,
        )
        self.files = FilesPart(self.project, self.teacher)
        self.summary = Summary(self.teacher)
        for part in (self.options, self.run, self.summary, self.files):
            self.body.addWidget(part)
        link(self, self.teacher.changed, self._on_status)
        link(self, self.project.policy_changed, self._on_status)
        link_viewer(self, self.viewer.events.theme, self._paint)
        self._paint()
        self.start()

    def hint_for(self, status: Status) -> str:
        """Say what to do next."""
        if status is Status.DONE:
            stale = self.project.status(Step.HIERARCHY) is Status.STALE
            anew = ", to merge anew by this policy" if stale else ""
            return f"Done. Next: step 3, Hierarchy{anew}."
        if status is Status.STALE and self.project.gold_paint.since(self.step.value):
            return "The gold labels were painted since the policy was trained. Train again."
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        """Follow the project."""
        material = self.project.material
        taught = (material is not None and material.gold is not None) or self.project.training
        learned = isinstance(self.project.policy, LearnedPolicy)
        if status is not Status.RUNNING:
            self.run.set_text("Train again" if learned else "Train")
        self.run.set_ready(bool(taught), "Choose gold labels in step 1, Data.")
        self.options.follow()
        self.options.setEnabled(status is not Status.RUNNING)
        self.files.follow()
        self.summary.follow(self.project.policy, status is Status.RUNNING)

    def _paint(self) -> None:
        self.summary.set_theme(*theme_colours(self.viewer))
