"""Widget of the Hierarchy step: build, threshold, view and exports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QGridLayout, QLabel, QSlider, QWidget
from superqt.utils import signals_blocked

from napari_agglo.errors import InvalidInput
from napari_agglo.partition import METHODS, build_tree
from napari_agglo.policy import MeanPolicy
from napari_agglo.widgets._forms import Form
from napari_agglo.widgets._progress_row import RunRow
from napari_agglo.widgets._project import Project, Trained
from napari_agglo.widgets._qt import (
    ask,
    button,
    check_box,
    column,
    label,
    link,
    named,
    per_viewer,
    row,
)
from napari_agglo.widgets._remedies import window_sentence
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import LOOK
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.hierarchy._build_tree import (
    OtherData,
    Plan,
    build,
    cue_mismatch,
    show,
)
from napari_agglo.widgets.hierarchy._save_segments import Export
from napari_agglo.widgets.hierarchy._threshold import Scale, ThresholdKeys


class RepairLine(QWidget):
    """A line with a button to cancel, visible only while a repair runs."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self.label = label("repair")
        self.label.setText("Applying your edits to the hierarchy…")
        back = "Cancel, and return to the former threshold"
        self.cancel = button("Cancel", back, lambda: project.jobs.cancel(LOOK), "cancel repair")
        line = row(self.label, self.cancel)
        line.setStretch(0, 1)
        column(self, line)
        link(self._follow, project.jobs.changed)
        self._follow(LOOK)

    def _follow(self, name: str) -> None:
        if name == LOOK:
            self.setVisible(self._project.jobs[LOOK] is not None)


_CONTOUR = 2  # pixels


class View(QWidget):
    """Switches of the layer of segments, beside napari's own controls."""

    def __init__(self, viewer: Any, project: Project, scene: Scene) -> None:
        super().__init__()
        self._viewer, self._project, self._scene = viewer, project, scene
        self.contours = check_box(
            "Contours", "Draw the outlines of segments instead of areas", "contours",
            self._set_contours,
        )  # fmt: skip
        self.superpixels = check_box(
            "Superpixels", "Draw the outlines of superpixels (in 2-D)", "superpixels",
            scene.outline_superpixels,
        )  # fmt: skip
        self.isolate = check_box(
            "Selected only", "Hide all segments but the selected ones", "selected only",
            scene.isolate,
        )  # fmt: skip
        self.solid = check_box("3-D", "Show the volume in 3-D", "3-d", self._set_solid)
        self.opacity = named(
            QSlider(Qt.Orientation.Horizontal), "opacity", "Opacity of the segments over the image"
        )
        self.opacity.setRange(0, 100)
        self.opacity.valueChanged.connect(self._set_opacity)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(2)
        grid.addWidget(self.contours, 0, 0)
        grid.addWidget(self.superpixels, 0, 1)
        grid.addWidget(self.isolate, 1, 0)
        grid.addWidget(self.solid, 1, 1)
        grid.addWidget(QLabel("Opacity"), 2, 0)
        grid.addWidget(self.opacity, 2, 1)
        grid.setColumnStretch(1, 1)
        ndisplay = viewer.dims.events.ndisplay
        link(self._follow, project.hierarchy_changed, ndisplay, scene.isolated_changed)
        self._follow()

    def _follow(self) -> None:
        """Show the state of the layer, which other parts change too."""
        self.setEnabled(self._project.has_hierarchy)
        layer = self._scene.segmentation
        with ExitStack() as quiet:
            for switch in (self.contours, self.isolate, self.solid, self.opacity):
                quiet.enter_context(signals_blocked(switch))
            if layer is not None:
                self.contours.setChecked(layer.contour > 0)
                self.opacity.setValue(round(100 * layer.opacity))
            self.isolate.setChecked(self._scene.isolated)
            self.solid.setVisible(self._project.is_volume)
            self.solid.setChecked(self._viewer.dims.ndisplay == 3)

    def _set_contours(self, on: bool) -> None:
        layer = self._scene.show()
        if layer is not None:
            layer.contour = _CONTOUR if on else 0

    def _set_opacity(self, percent: int) -> None:
        layer = self._scene.show()
        if layer is not None:
            layer.opacity = percent / 100

    def _set_solid(self, on: bool) -> None:
        self._viewer.dims.ndisplay = 3 if on else 2


def _methods() -> list[tuple[str, str]]:
    return [(name, name) for name in METHODS]


HIERARCHY = "hierarchy"  # the name of the step and of its job


def build_hierarchy(project: Project, method: str = "threshold") -> None:
    """Build the hierarchy of the chosen data in a worker; if that closes a session, ask first."""
    if project.session is None:
        _start_build(project, Plan.of(project, method))
    else:
        ask(
            "Close the session?",
            "A new hierarchy closes the open session. Its edits are saved, and it can be "
            "opened again.",
            {"Close and build": lambda: _start_build(project, Plan.of(project, method))},
        )


def _start_build(project: Project, plan: Plan) -> None:
    def done(result: Any) -> None:
        if isinstance(result, OtherData):
            _ask_about(project, result)
        else:
            show(project, *result)

    title = "Building the hierarchy"
    project.jobs.start(HIERARCHY, title, lambda progress: build(plan, progress), done)


def _ask_about(project: Project, other: OtherData) -> None:
    """Ask before a policy is applied to data unlike those that it was trained on."""
    choices: dict[str, Callable[[], object]] = {}
    plan = replace(other.plan, any_data=True)
    if other.adaptable:
        adapt = replace(plan, adapt=True)
        choices["Adapt the cues"] = lambda: _start_build(project, adapt)
    choices["Build anyway"] = lambda: _start_build(project, plan)
    ask("The policy was trained on other data", other.text, choices)


class HierarchyWidget(StepWidget):
    """Merge superpixels to a hierarchy, and choose its threshold."""

    key = HIERARCHY
    title = "Hierarchy"
    purpose = "merge superpixels, and choose a threshold from fine to coarse."
    hints = {  # noqa: RUF012
        Status.EMPTY: "Choose an image with a boundary cue in step 1, Data.",
        Status.READY: "Build the hierarchy. Without a trained policy, regions merge across the "
        "weakest mean boundary first.",
        Status.RUNNING: "",
        Status.DONE: "Drag the slider from fine to coarse, or press A and D on the canvas.",
        Status.STALE: "Data or policy have changed since. Build the hierarchy again.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.run = RunRow(
            self.project,
            self.key,
            "Build hierarchy",
            "Merge all regions, the most similar first; missing superpixels are computed first",
            self.build,
        )
        self.mean = button(
            "Use the mean, and build",
            "Merge by the mean of the boundary cue. The trained policy is kept, and can be taken "
            "back in step 2, Train",
            self._build_by_mean,
            "use the mean instead",
        )
        self.options = Form(
            build_tree,
            only=["method"],
            table={"method": {"label": "Segments by", "choices": _methods}},
            first=(),
        )
        self.scale = Scale(self.project)
        self.repair = RepairLine(self.project)
        self.view = View(self.viewer, self.project, self.scene)
        self.export = Export(self.project, self.scene)
        self.add(self.run, self.mean, self.options, self.scale, self.repair, self.view, self.export)
        per_viewer(self.viewer, ThresholdKeys)
        self.follow_theme(self.scale.slider.marks)
        self.start()

    def build(self) -> None:
        """Build the hierarchy; if that closes a session, ask first."""
        build_hierarchy(self.project, self.options["method"].value)

    def _build_by_mean(self) -> None:
        self.project.trained = Trained(MeanPolicy())
        self.build()

    @staticmethod
    def idle_status(project: Project) -> Status:
        if project.built is not None:
            if project.lacks_data:
                return Status.STALE
            if project.shows_another_volume:
                return Status.READY
            return Status.STALE if project.hierarchy_is_stale else Status.DONE
        has_data = project.dataset is not None or project.regions is not None
        has_data = has_data and not project.lacks_data  # regions of data that were removed
        return Status.READY if has_data else Status.EMPTY

    def hint_for(self, status: Status) -> str:
        """Return the next thing to do."""
        built, chosen = self.project.built, self.project.dataset
        mismatch = self._mismatch()
        if status in (Status.READY, Status.STALE) and mismatch is not None:
            return window_sentence(mismatch)
        if status is Status.STALE and built is not None and self.project.lacks_data:
            shown = built.regions.dataset.name
            return f"The hierarchy on the screen is that of {shown}. For others, complete step 1."
        if status is Status.READY and built is not None and chosen is not None:
            shown = built.regions.dataset.name
            return f"The hierarchy on the screen is that of {shown}. Build that of {chosen.name}."
        if status is Status.READY and self.project.policy.name != MeanPolicy.name:
            return "Build the hierarchy: regions merge by the policy of step 2."
        return super().hint_for(status)

    def _mismatch(self) -> InvalidInput | None:
        return cue_mismatch(self.project.policy, self.project.dataset, here=True)

    def update_state(self, status: Status) -> None:
        fits = status not in (Status.READY, Status.STALE) or self._mismatch() is None
        self.mean.setVisible(not fits)
        again = self.project.has_hierarchy and status is not Status.READY
        self.run.set_text("Build again" if again else "Build hierarchy")
        possible = status is not Status.EMPTY and not self.project.lacks_data and fits
        self.run.set_ready(possible, self.project.trouble or self.hint.text())
        for part in (self.scale, self.view, self.export):
            part.setVisible(self.project.has_hierarchy)
