"""Widget of the Hierarchy step: build, threshold, view and exports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from napari.utils.notifications import show_info
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFileDialog, QGridLayout, QLabel, QMenu, QSlider, QWidget
from superqt.utils import signals_blocked

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.partition import METHODS, build_tree
from napari_agglo.policy import MeanPolicy
from napari_agglo.session import export_kinds
from napari_agglo.session._exports import Exporter
from napari_agglo.volumes import write_labels
from napari_agglo.widgets._dataset import length_unit
from napari_agglo.widgets._forms import Form, ask_form
from napari_agglo.widgets._jobs import FailureLine, RunRow
from napari_agglo.widgets._project import Project
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
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import LOOK
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.hierarchy._build_tree import OtherData, Plan, build, show
from napari_agglo.widgets.hierarchy._threshold import Scale, ThresholdKeys

JOB = "export"
_LABELS = (
    "TIFF (*.tif *.tiff);;OME-Zarr (*.ome.zarr);;HDF5 (*.h5);;NumPy (*.npz *.npy);;PNG (*.png)"
)


class Export(QWidget):
    """Buttons that write the labels at this threshold, the table of merges, or any other kind."""

    def __init__(self, project: Project, scene: Scene) -> None:
        super().__init__()
        self._project, self._scene = project, scene
        now = "Write the visible segments as a label image"
        self.labels = button("Save labels…", now, self._on_labels, "save labels")
        merges = "Write all merges, in order and with their priorities, as a table"
        self.tree = button("Save merges…", merges, self._on_tree, "save merges")
        self.more = button("Export…", "", name="export")
        self.menu = QMenu(self.more)
        self.menu.aboutToShow.connect(self.list_kinds)
        self.more.setMenu(self.menu)
        self.failure = FailureLine(project, JOB)
        self.saved = label("saved file")  # of the last export, until the next or another tree
        self.saved.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column(self, row(self.labels, self.tree), self.more, self.saved, self.failure)
        link(self._follow, project.hierarchy_changed, project.jobs.changed)
        link(self._forget_saved, project.hierarchy_changed)
        self._forget_saved()
        self._follow()

    def write_labels(self, path: str) -> None:
        """Write the label image in a worker."""
        project = self._project
        tree, at, placement = project.tree, project.threshold, project.placement
        spacing = None if placement is None else tuple(abs(one) for one in placement.scale)
        unit = None if placement is None else length_unit(placement.units)

        def write() -> Path:
            assert tree is not None
            return write_labels(path, tree.segment(at), spacing=spacing, unit=unit)

        self._write("Saving labels", path, "labels", write, unit=unit or "")

    def write_tree(self, path: str) -> None:
        """Write the merges in a worker."""
        tree = self._project.tree
        assert tree is not None
        self._write("Saving merges", path, "tree", lambda: tree.to_csv(path))

    def write_kind(self, kind: Exporter, path: str, **options: Any) -> None:
        """Write one kind of export of the session in a worker."""
        self._write(f"Exporting: {kind.label}", path, kind.name, **options)

    def _write(
        self,
        title: str,
        path: str,
        kind: str,
        without_session: Callable[[], Path] | None = None,
        **options: Any,
    ) -> None:
        session = self._project.session

        def work(progress: ProgressCallback) -> Path:
            if session is not None:
                return session.export(path, kind, overwrite=True, progress=progress, **options)
            assert without_session is not None
            report(progress, "writing", 0, 1)
            return without_session()

        self._forget_saved()
        self._project.worker.run(JOB, title, work, self._show_saved)

    def _show_saved(self, file: Path) -> None:
        self.saved.setText(f"Saved {file.name} in {file.parent}.")
        self.saved.setVisible(True)
        show_info(f"Saved {file}.")

    def _forget_saved(self) -> None:
        self.saved.setText("")
        self.saved.setVisible(False)

    def _proposed(self, name: str) -> str:
        """Return a path for a new file: in the folder of the data, if they are of a file."""
        folder = self._scene.input_folder()
        return name if folder is None else str(folder / name)

    def list_kinds(self) -> None:
        """Fill the menu with every kind of export, including those of other packages."""
        self.menu.clear()
        graph = self._project.graph
        is_3d = graph is not None and graph.superpixels.image.ndim == 3
        for kind in [one for one in export_kinds() if is_3d or not one.in_3d]:
            action = self.menu.addAction(f"{kind.label}…")
            action.setObjectName(f"export {kind.name}")
            action.triggered.connect(lambda _=False, kind=kind: self._on_kind(kind))

    def _on_kind(self, kind: Exporter) -> None:
        suffix = kind.suffixes[0] if kind.suffixes else ""
        patterns = f"{kind.label} ({' '.join(f'*{s}' for s in kind.suffixes) or '*'})"
        proposed = self._proposed(f"{kind.name}{suffix}")
        path, _ = QFileDialog.getSaveFileName(self, kind.label, proposed, patterns)
        if not path:
            return
        # Arrays cannot be typed, so they keep their defaults.
        form = Form(kind.write, only=[option.name for option in kind.options])
        if form.fields:
            ask_form(self, kind.label, form, "Export", partial(self.write_kind, kind, path))
        else:
            self.write_kind(kind, path)

    def _on_labels(self) -> None:
        proposed = self._proposed("segments.tif")
        path, _ = QFileDialog.getSaveFileName(self, "Save labels", proposed, _LABELS)
        if path:
            self.write_labels(path)

    def _on_tree(self) -> None:
        proposed = self._proposed("merges.csv")
        path, _ = QFileDialog.getSaveFileName(self, "Save merges", proposed, "CSV (*.csv)")
        if path:
            self.write_tree(path)

    def _follow(self) -> None:
        ready = self._project.has_hierarchy and self._project.jobs[JOB] is None
        self.labels.setEnabled(ready)
        self.tree.setEnabled(ready)
        has_session = self._project.session is not None
        self.more.setEnabled(ready and has_session)
        self.more.setToolTip(
            "Write another kind of export of the open session"
            if has_session
            else "More kinds of export need a session; start one in step 5, Proofread"
        )


class RepairLine(QWidget):
    """A line with a button to cancel, visible only while a repair runs."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self.label = label("repair")
        self.label.setText("Repairing the hierarchy above your edits…")
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
        self.add(self.run, self.options, self.scale, self.repair, self.view, self.export)
        per_viewer(self.viewer, ThresholdKeys)
        self.follow_theme(self.scale.slider.marks)
        self.start()

    def build(self) -> None:
        """Build the hierarchy; if that closes a session, ask first."""
        build_hierarchy(self.project, self.options["method"].value)

    @staticmethod
    def idle_status(project: Project) -> Status:
        if project.built is not None:
            if project.shows_another_volume:
                return Status.READY
            return Status.STALE if project.hierarchy_is_stale else Status.DONE
        has_data = project.dataset is not None or project.regions is not None
        return Status.READY if has_data else Status.EMPTY

    def hint_for(self, status: Status) -> str:
        """Return the next thing to do."""
        built, chosen = self.project.built, self.project.dataset
        if status is Status.READY and built is not None and chosen is not None:
            shown = built.regions.dataset.name
            return f"The hierarchy on the screen is that of {shown}. Build that of {chosen.name}."
        if status is Status.READY and self.project.policy.name != MeanPolicy.name:
            return "Build the hierarchy: regions merge by the policy of step 2."
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        again = self.project.has_hierarchy and status is not Status.READY
        self.run.set_text("Build again" if again else "Build hierarchy")
        self.run.set_ready(status is not Status.EMPTY, self.project.trouble or self.hint.text())
        for part in (self.scale, self.view, self.export):
            part.setVisible(self.project.has_hierarchy)
