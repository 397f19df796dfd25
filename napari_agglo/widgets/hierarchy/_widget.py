"""The Hierarchy step as a widget."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any, get_args

from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QFileDialog,
    QGridLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QSlider,
    QWidget,
)

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.policy import MeanPolicy
from napari_agglo.session import export_kinds
from napari_agglo.session._exports import Exporter, ExportOption
from napari_agglo.volumes import write_labels
from napari_agglo.widgets._colours import theme_colours
from napari_agglo.widgets._jobs import RunRow
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import (
    button,
    check_box,
    column,
    label,
    link,
    link_viewer,
    per_viewer,
    row,
    tell,
)
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._session_worker import LOOK
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.hierarchy._build_tree import Plan, build, show
from napari_agglo.widgets.hierarchy._threshold import Scale, ThresholdKeys

# Export of the visible segments and of the merges.


JOB = "export"
_LABELS = (
    "TIFF (*.tif *.tiff);;OME-Zarr (*.ome.zarr);;HDF5 (*.h5);;NumPy (*.npz *.npy);;PNG (*.png)"
)


class Export(QWidget):
    """Buttons that write the labels at this threshold, or the table of merges."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        now = "Write the segments that are seen now as a label image"
        self.labels = button("Save labels…", now, self._on_labels, "save labels")
        merges = "Write all merges, in order and with their priorities, as a table"
        self.tree = button("Save merges…", merges, self._on_tree, "save merges")
        any_kind = "Write any kind of export of the open session"
        self.more = button("Export…", any_kind, name="export")
        self.menu = QMenu(self.more)
        self.menu.aboutToShow.connect(self.list_kinds)
        self.more.setMenu(self.menu)
        column(self, row(self.labels, self.tree, self.more))
        link(self, project.hierarchy_changed, self._follow)
        link(self, project.jobs.changed, self._follow)
        self._follow()

    def write_labels(self, path: str) -> None:
        """Write the label image in a worker."""
        project = self._project
        session, tree, at, placement = (
            project.session, project.tree, project.threshold, project.placement
        )  # fmt: skip
        spacing = None if placement is None else tuple(abs(one) for one in placement.scale)

        def work(progress: ProgressCallback) -> Path:
            report(progress, "labels", 0, 2)
            if session is not None:
                return session.export(path, "labels", overwrite=True, progress=progress)
            assert tree is not None
            labels = tree.segment(at)
            report(progress, "writing", 1, 2)
            return write_labels(path, labels, spacing=spacing)

        project.worker.run(JOB, "Saving labels", work, _told)

    def write_tree(self, path: str) -> None:
        """Write the merges in a worker."""
        session, tree = self._project.session, self._project.tree

        def work(progress: ProgressCallback) -> Path:
            if session is not None:
                return session.export(path, "tree", overwrite=True, progress=progress)
            report(progress, "merges", 0, 1)
            assert tree is not None
            return tree.to_csv(path)

        self._project.worker.run(JOB, "Saving merges", work, _told)

    def list_kinds(self) -> None:
        """Fill the menu with every export kind, those of other packages too."""
        self.menu.clear()
        for kind in export_kinds():
            action = self.menu.addAction(f"{kind.label}…")
            action.setObjectName(f"export {kind.name}")
            action.triggered.connect(lambda _=False, kind=kind: self._on_kind(kind))

    def write_kind(self, kind: Exporter, path: str, **options: Any) -> None:
        """Write one kind of export of the session in a worker."""
        session = self._project.session
        assert session is not None

        def work(progress: ProgressCallback) -> Path:
            return session.export(path, kind.name, overwrite=True, progress=progress, **options)

        self._project.worker.run(JOB, f"Exporting: {kind.label}", work, _told)

    def _on_kind(self, kind: Exporter) -> None:
        suffix = kind.suffixes[0] if kind.suffixes else ""
        patterns = f"{kind.label} ({' '.join(f'*{s}' for s in kind.suffixes) or '*'})"
        name = f"{kind.name}{suffix}"
        path, _ = QFileDialog.getSaveFileName(self, kind.label, name, patterns)
        options = ask_options(self, kind) if path else None
        if options is not None:
            self.write_kind(kind, path, **options)

    def _on_labels(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, "Save labels", "segments.tif", _LABELS)
        if path:
            self.write_labels(path)

    def _on_tree(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, "Save merges", "merges.csv", "CSV (*.csv)")
        if path:
            self.write_tree(path)

    def _follow(self, _: Any = None) -> None:
        ready = self._project.has_hierarchy and self._project.jobs[JOB] is None
        self.labels.setEnabled(ready)
        self.tree.setEnabled(ready)
        self.more.setEnabled(ready and self._project.session is not None)


def ask_options(parent: QWidget, kind: Exporter) -> dict[str, Any] | None:
    """Ask for the options of an export kind; return those that were set, None if cancelled.

    Arrays cannot be typed, so they keep their defaults.
    """
    from magicgui.widgets import Dialog, create_widget

    fields = [
        create_widget(
            value=option.default, annotation=_field_type(option), name=option.name,
            options={"tooltip": option.help, "nullable": option.default is None},
        )
        for option in kind.options
        if _field_type(option) is not None
    ]  # fmt: skip
    if not fields:
        return {}
    dialog = Dialog(widgets=fields, labels=True)
    dialog.native.setWindowTitle(kind.label)
    if not dialog.exec():
        return None
    values: dict[str, Any] = dialog.asdict()
    return {name: value for name, value in values.items() if value is not None}


def _field_type(option: ExportOption) -> type | None:
    """Return the type of the control for an option; None if there is none."""
    kinds = (option.type, *get_args(option.type))
    return next((kind for kind in (bool, int, float, Path, str) if kind in kinds), None)


def _told(path: Path) -> None:
    tell(f"Saved {path}.")


# A notice while the hierarchy above edits is being repaired.


class RepairLine(QWidget):
    """A line that is there only while a repair runs, with a button to stop it."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self.label = label("repair")
        self.label.setText("Repairing the hierarchy above your edits…")
        back = "Stop, and go back to the threshold seen before"
        self.cancel = button("Cancel", back, lambda: project.jobs.cancel(LOOK), "cancel repair")
        line = row(self.label, self.cancel)
        line.setStretch(0, 1)
        column(self, line)
        link(self, project.jobs.changed, self._follow)
        self._follow(LOOK)

    def _follow(self, name: str) -> None:
        if name == LOOK:
            self.setVisible(self._project.jobs[LOOK] is not None)


# The look of the segmentation: contours, outlines, opacity, 3-D, selected segments only.


_CONTOUR = 2  # pixels


class View(QWidget):
    """Switches of the layer that shows the segments; napari's own controls work beside them."""

    def __init__(self, viewer: Any, project: Project, scene: Scene) -> None:
        super().__init__()
        self._viewer = weakref.ref(viewer)
        self._project, self._scene = project, scene
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
        self.solid = check_box("3-D", "Look at the volume in 3-D", "3-d", self._set_solid)
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setObjectName("opacity")
        self.opacity.setRange(0, 100)
        self.opacity.setToolTip("How much of the image the segments hide")
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
        link(self, project.hierarchy_changed, self._follow)
        link_viewer(self, viewer.dims.events.ndisplay, self._follow)
        self._follow()

    def _follow(self) -> None:
        """Show how the layer is, whoever made it so."""
        self.setEnabled(self._project.has_hierarchy)
        layer, viewer = self._scene.segmentation, self._viewer()
        for switch in (self.contours, self.isolate, self.solid, self.opacity):
            switch.blockSignals(True)
        if layer is not None:
            self.contours.setChecked(layer.contour > 0)
            self.opacity.setValue(round(100 * layer.opacity))
        self.isolate.setChecked(self._scene.isolated)
        if viewer is not None:
            graph = self._project.graph
            deep = graph is not None and graph.superpixels.image.ndim > 2
            self.solid.setVisible(deep)
            self.solid.setChecked(viewer.dims.ndisplay == 3)
        for switch in (self.contours, self.isolate, self.solid, self.opacity):
            switch.blockSignals(False)

    def _set_contours(self, on: bool) -> None:
        layer = self._scene.show()
        if layer is not None:
            layer.contour = _CONTOUR if on else 0

    def _set_opacity(self, percent: int) -> None:
        layer = self._scene.show()
        if layer is not None:
            layer.opacity = percent / 100

    def _set_solid(self, on: bool) -> None:
        viewer = self._viewer()
        if viewer is not None:
            viewer.dims.ndisplay = 3 if on else 2


class HierarchyWidget(StepWidget):
    """Merge superpixels, and scrub the result from fine to coarse."""

    key = "hierarchy"
    title = "Hierarchy"
    purpose = "merge superpixels, and scrub the result from fine to coarse."
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
            self.key,
            "Build hierarchy",
            "Merge all regions, the most alike first; superpixels are computed if there are none",
            self.build,
        )
        self.scale = Scale(self.project)
        self.repair = RepairLine(self.project)
        self.view = View(self.viewer, self.project, self.scene)
        self.export = Export(self.project)
        for part in (self.run, self.scale, self.repair, self.view, self.export):
            self.body.addWidget(part)
        per_viewer(self.viewer, ThresholdKeys)
        link_viewer(self, self.viewer.events.theme, self._paint)
        self._paint()
        self.start()

    def build(self) -> None:
        """Build the hierarchy in a worker, and show it."""
        if self.project.session is not None and not self._may_close():
            return
        plan, project = Plan.of(self.project), self.project
        self.project.jobs.start(
            self.key,
            "Building the hierarchy",
            lambda progress: build(plan, progress),
            lambda result: show(project, *result),
        )

    @staticmethod
    def idle_status(project: Project) -> Status:
        if project.built is not None:
            return Status.STALE if project.hierarchy_is_stale else Status.DONE
        has_data = project.dataset is not None or project.regions is not None
        return Status.READY if has_data else Status.EMPTY

    def hint_for(self, status: Status) -> str:
        """Say what to do next."""
        if status is Status.READY and self.project.policy.name != MeanPolicy.name:
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
