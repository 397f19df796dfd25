"""What is seen, and the merges, as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QWidget

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.volumes import write_labels
from napari_agglo.widgets._links import link
from napari_agglo.widgets._notices import tell
from napari_agglo.widgets._project import Project

JOB = "export"
_LABELS = (
    "TIFF (*.tif *.tiff);;OME-Zarr (*.ome.zarr);;HDF5 (*.h5);;NumPy (*.npz *.npy);;PNG (*.png)"
)


class Export(QWidget):
    """Buttons that write the labels at this threshold, or the table of merges."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self.labels = QPushButton("Save labels…")
        self.labels.setObjectName("save labels")
        self.labels.setToolTip("Write the segments that are seen now as a label image")
        self.labels.clicked.connect(self._on_labels)
        self.tree = QPushButton("Save merges…")
        self.tree.setObjectName("save merges")
        self.tree.setToolTip("Write all merges, in order and with their priorities, as a table")
        self.tree.clicked.connect(self._on_tree)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.labels)
        row.addWidget(self.tree)
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

        self._start("Saving labels", work)

    def write_tree(self, path: str) -> None:
        """Write the merges in a worker."""
        session, tree = self._project.session, self._project.tree

        def work(progress: ProgressCallback) -> Path:
            if session is not None:
                return session.export(path, "tree", overwrite=True, progress=progress)
            report(progress, "merges", 0, 1)
            assert tree is not None
            return tree.to_csv(path)

        self._start("Saving merges", work)

    def _start(self, title: str, work: Callable[[ProgressCallback], Path]) -> None:
        """Start a job; meanwhile nobody else asks anything of the session, or the window waits."""
        project = self._project
        job = project.jobs.start(JOB, title, work, _told)
        if job is not None:
            project.hold()
            job.ended.connect(project.release)

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


def _told(path: Path) -> None:
    tell(f"Saved {path}.")
