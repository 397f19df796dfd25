"""Buttons of the Hierarchy and Proofread steps that write segments and other results to files."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from napari.utils.notifications import show_info
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QFileDialog, QMenu, QWidget

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.session import export_kinds
from napari_agglo.session._exports import Exporter
from napari_agglo.volumes import write_labels
from napari_agglo.widgets._dataset import length_unit
from napari_agglo.widgets._fit_text import fit_words
from napari_agglo.widgets._forms import Form, ask_form
from napari_agglo.widgets._progress_row import FailureLine
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import button, column, label, link, row
from napari_agglo.widgets._scene import Scene

JOB = "export"
_LABELS = (
    "TIFF (*.tif *.tiff);;OME-Zarr (*.ome.zarr);;HDF5 (*.h5);;NumPy (*.npz *.npy);;PNG (*.png)"
)


def file_stem(name: str) -> str:
    """Return the name of some data as the beginning of the name of a file.

    Examples
    --------
    >>> file_stem("my stack/1.tif"), file_stem("mystack")
    ('my stack 1', 'mystack')
    """
    return re.sub(r'[<>:"/\\|?*\x00-\x1f]+', " ", name.removesuffix(".tif")).strip(" .")[:80]


class Export(QWidget):
    """Buttons that write the labels at this threshold, the table of merges, or any other kind.

    In the Proofread step, without the merges: they are those before the edits.
    """

    def __init__(self, project: Project, scene: Scene, *, merges: bool = True) -> None:
        super().__init__()
        self._project, self._scene = project, scene
        now = "Write the visible segments as a label image, such as TIFF, without further questions"
        self.labels = button("Save labels…", now, self._on_labels, "save labels")
        table = "Write all merges, in order and with their priorities, as a table"
        self.tree = button("Save merges…", table, self._on_tree, "save merges")
        self.more = button("Export…", "", name="export")
        self.menu = QMenu(self.more)
        self.menu.aboutToShow.connect(self.list_kinds)
        self.more.setMenu(self.menu)
        self.failure = FailureLine(project, JOB)
        self.saved = label("saved file")  # of the last export, until the next or another tree
        self._file: Path | None = None
        self._ignore_edits: Callable[[], None] = lambda: None
        self._saved_edits: set[int] = set()  # the numbers of those in the file
        self.saved.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if merges:
            column(self, row(self.labels, self.tree), self.more, self.saved, self.failure)
        else:
            column(self, row(self.labels, self.more), self.saved, self.failure)
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
        # The session makes no edit between the end of the export and this call.
        self._file, self._saved_edits = file, self._edits()
        self._ignore_edits = link(self._count_newer, self._project.edited)
        self.saved.setText(fit_words(f"Saved {file.name} in {file.parent}."))
        self.saved.setToolTip(str(file))
        self.saved.setVisible(True)
        show_info(f"Saved {file}.")

    def _count_newer(self) -> None:
        """Show the number of edits that were made or undone since the file was written."""
        if self._file is None:
            return
        newer = len(self._edits() ^ self._saved_edits)
        text = f"Saved {self._file.name} in {self._file.parent}."
        if newer:
            text = f"Saved {self._file.name}; {newer} {'edit' if newer == 1 else 'edits'} since."
        self.saved.least = self.saved.minimumHeight()  # what is below stays where it is
        self.saved.setText(fit_words(text))

    def _edits(self) -> set[int]:
        """Return the numbers of the edits of the session that are not undone."""
        session = self._project.session
        items = () if session is None else session.history
        return {item.number for item in items if item.is_edit and not item.undone}

    def _forget_saved(self) -> None:
        self._ignore_edits()
        self._file = None
        self.saved.least = 0
        self.saved.setText("")
        self.saved.setToolTip("")
        self.saved.setVisible(False)

    def _proposed(self, ending: str) -> str:
        """Return a path for a new file, by the name and in the folder of the data."""
        regions, folder = self._project.shown_regions, self._scene.input_folder()
        stem = "" if regions is None else file_stem(regions.dataset.name)
        name = f"{stem}_{ending}" if stem else ending
        return name if folder is None else str(folder / name)

    def list_kinds(self) -> None:
        """Fill the menu with every kind of export, including those of other packages."""
        self.menu.clear()
        graph = self._project.graph
        is_3d = graph is not None and graph.superpixels.image.ndim == 3
        for kind in [one for one in export_kinds() if is_3d or not one.in_3d]:
            more = " with options" if kind.name == "labels" else ""  # else as Save labels
            action = self.menu.addAction(f"{kind.label}{more}…")
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
        names = [option.name for option in kind.options]
        empty = {"unit": {"automatic": "empty: as in the data"}}
        table = {name: options for name, options in empty.items() if name in names}
        form = Form(kind.write, only=names, table=table)
        if form.fields:
            ask_form(self, kind.label, form, "Export", partial(self.write_kind, kind, path))
        else:
            self.write_kind(kind, path)

    def _on_labels(self) -> None:
        # Two names, so that segments without edits do not replace those of a session.
        edited = self._project.session is not None
        proposed = self._proposed("labels.tif" if edited else "merged.tif")
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
        self.more.setText("Export…" if has_session else "Export… needs a session (step 5)")
        self.more.setToolTip(
            "Write another kind of export of the open session"
            if has_session
            else "More kinds of export need a session; start one in step 5, Proofread"
        )
