"""The selected segments as surfaces in 3-D, kept up to date in a worker.

In its own file: the layer of surfaces and its controls, apart from the labels of the scene.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

import numpy as np
from napari.layers import Image, Labels, Surface
from napari.utils.notifications import show_info
from numpy.typing import NDArray
from psygnal import Signal
from qtpy.QtWidgets import QFileDialog, QWidget
from superqt.utils import qdebounced, signals_blocked

from napari_agglo._progress import ProgressCallback, part_of, report
from napari_agglo.graph import RegionGraph
from napari_agglo.shapes import Mesh, mesh_of_regions
from napari_agglo.widgets._napari import add_inactive
from napari_agglo.widgets._progress_row import FailureLine, RunRow
from napari_agglo.widgets._qt import button, check_box, column, link
from napari_agglo.widgets._scene import Scene

SHAPES = "shapes"  # the job that computes surfaces
ROLE = "Surfaces"
_EXPORT = "export"  # the job of all exports
_VOXELS = 1 << 20  # of a box before its surface is coarser: a fifth of a second for each segment
_SOON = 40  # milliseconds from a change to the next computation: one for several ticks
_KEPT = 200  # surfaces in memory, so that a tick back is at once
_FILTERS = "PLY (*.ply);;OBJ (*.obj);;STL (*.stl);;Neuroglancer folder (*)"


class Shapes:
    """The surfaces of the selected segments, in a Surface layer; one object per viewer."""

    changed = Signal()

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.project = project = scene.project
        self.on = False
        self._was_flat = False  # whether the surfaces switched the view to 3-D
        self._layer: Surface | None = None
        self._known: OrderedDict[bytes, Mesh] = OrderedDict()
        self._hidden: list[Any] = []  # layers that are hidden while surfaces are on the screen
        self._replaced = False  # whether the running job was cancelled for a newer one
        self._later = qdebounced(self._update, timeout=_SOON)
        project.hierarchy_changed.connect(self._forget)
        project.closing.connect(self._later.cancel)
        scene.viewer.dims.events.ndisplay.connect(self._on_ndisplay)

    @property
    def possible(self) -> bool:
        """Whether the segments are those of a volume with three axes."""
        graph = self.project.graph
        return graph is not None and graph.superpixels.image.ndim == 3

    @property
    def layer(self) -> Surface | None:
        """The layer of the surfaces, if it is in the viewer."""
        layer = self._layer
        return layer if layer is not None and layer in self.scene.viewer.layers else None

    def hides(self, name: str) -> bool:
        """Return whether a layer of that name is hidden only while surfaces are on the screen."""
        return any(layer.name == name for layer in self._hidden)

    def show(self, on: bool) -> None:
        """Show the surfaces of the selected segments in 3-D, or the slices again."""
        if on == self.on or (on and not self.possible):
            return
        self.on = on
        project = self.project
        for signal in (project.selection_changed, project.edited, project.threshold_changed):
            if on:
                signal.connect(self._follow)
            else:
                signal.disconnect(self._follow, missing_ok=True)
        dims = self.scene.viewer.dims
        if on:
            self._was_flat = dims.ndisplay == 2
            dims.ndisplay = 3
            self.scene.isolate(True)  # clicks choose among the segments that are seen
        else:
            self._later.cancel()
            self.project.jobs.cancel(SHAPES)
            self.scene.isolate(False)
            if self._was_flat:  # not if the user had chosen 3-D before
                dims.ndisplay = 2
        self._update()
        self.changed.emit()

    def _on_ndisplay(self) -> None:
        if self.scene.viewer.dims.ndisplay == 2:
            self.show(False)

    def _forget(self) -> None:
        self._known.clear()
        self.show(False)
        layer = self.layer
        if layer is not None:
            self.scene.viewer.layers.remove(layer)
        self._layer = None

    def _follow(self, _: object = None) -> None:
        self._later()
        self.changed.emit()

    # The surfaces of the selection.

    def _selected(self, graph: RegionGraph) -> dict[int, tuple[bytes, NDArray[np.int64]]]:
        """Return the key and the dense superpixels of each selected segment, by dense name."""
        table, segments = self.project.table(), {}
        for name in dict.fromkeys((self.project.active, *self.project.selected)):
            members = np.flatnonzero(table == name)
            if name and len(members):
                segments[name] = _key(graph, members), members
        return segments

    def _update(self) -> None:
        """Draw the surfaces that are known; compute the others, then draw all."""
        self._hide_others(self.on)
        graph = self.project.graph
        if not self.on or graph is None:
            if self.layer is not None:
                self.layer.visible = False
            return
        selected = self._selected(graph)
        new = {key: members for key, members in selected.values() if key not in self._known}
        self._draw(graph, {name: self._known[key] for name, (key, _) in selected.items()
                           if key in self._known})  # fmt: skip
        if not new:
            return
        if self.project.jobs[SHAPES] is not None:
            self._replaced = True
            self.project.jobs.cancel(SHAPES)
            return
        made: dict[bytes, Mesh] = {}

        def work(progress: ProgressCallback) -> None:
            for k, (key, members) in enumerate(new.items()):
                report(progress, "surfaces", k, len(new))
                own = part_of(progress, k / len(new), (k + 1) / len(new), "surfaces")
                made[key] = mesh_of_regions(graph, members, max_voxels=_VOXELS, progress=own)

        self._replaced = False
        job = self.project.jobs.start(SHAPES, "Surfaces", work, lambda _: None)
        if job is None:
            return

        def ended() -> None:
            if self.project.jobs.closed:
                return
            self._known |= made  # those of a cancelled job, too
            while len(self._known) > max(_KEPT, len(selected)):
                self._known.popitem(last=False)
            if job.cancelled and not self._replaced:
                self.show(False)
            elif self.on and (made or self._replaced):
                self._later()

        job.ended.connect(ended)

    def _draw(self, graph: RegionGraph, meshes: dict[int, Mesh]) -> None:
        layer, labels = self.layer, self.scene.segmentation
        if not meshes or labels is None:
            if layer is not None:
                layer.visible = False
            return
        counts = [len(one.vertices) for one in meshes.values()]
        starts = np.cumsum([0, *counts[:-1]])
        # In pixels: the layer has the placement of the labels, which may be mirrored.
        vertices = np.concatenate([one.vertices for one in meshes.values()]) / graph.spacing
        parts = zip(meshes.values(), starts, strict=True)
        faces = np.concatenate([one.faces + start for one, start in parts])
        colours = np.array([labels.get_color(name) for name in meshes], np.float32)
        vertex_colours = np.repeat(colours, counts, axis=0)
        if layer is None:
            placement = self.project.placement
            layer = self._layer = Surface(
                (vertices, faces), vertex_colors=vertex_colours, shading="smooth", name=ROLE,
                metadata={"napari_agglo": ROLE},
                **({} if placement is None else placement.keywords()),
            )  # fmt: skip
            add_inactive(self.scene.viewer, layer, labels)
            self._look_at(meshes)
        else:
            layer.vertex_colors = None  # of another number of vertices
            layer.data = (vertices, faces)
            layer.vertex_colors = vertex_colours
            layer.visible = True

    def _look_at(self, meshes: dict[int, Mesh]) -> None:
        """Zoom to surfaces that are shown for the first time."""
        graph = self.project.graph
        assert graph is not None
        bounds = [one.bounds / graph.spacing for one in meshes.values()]
        box = np.min([low for low, _ in bounds], axis=0), np.max([high for _, high in bounds], 0)
        self.scene.fly_to((box[0] + box[1]) / 2, box)

    def _hide_others(self, hide: bool) -> None:
        """Hide the volumes that would cover the surfaces, or show them again."""
        if hide and not self._hidden:
            volumes = [one for one in self.scene.viewer.layers if isinstance(one, Image | Labels)]
            self._hidden = [layer for layer in volumes if layer.visible]
            for layer in self._hidden:
                layer.visible = False
        elif not hide:
            for layer in self._hidden:
                layer.visible = True
            self._hidden = []

    # Files.

    def save(self, path: str, *, folder: bool = False) -> None:
        """Write the surfaces of the selected segments, in a worker."""
        project, session = self.project, self.project.session
        names = [one for one in (project.active, *project.selected) if one]
        if session is None or not names:
            project.worker.message.emit("No segment is selected; click one first.")
            return
        ids = [project.id_of(name) for name in names]
        kind = "precomputed_mesh" if folder else "mesh"

        def work(progress: ProgressCallback) -> Any:
            return session.export(path, kind, segments=ids, overwrite=True, progress=progress)

        project.worker.run(
            _EXPORT, "Saving surfaces", work, lambda file: show_info(f"Saved {file}.")
        )


def _key(graph: RegionGraph, members: NDArray[np.int64]) -> bytes:
    """Return a checksum of a segment, which changes if a cut divides one of its superpixels."""
    check = hashlib.blake2b(members.tobytes(), digest_size=16)
    check.update(graph.sizes[members].tobytes())
    check.update(graph.regions[members][:, graph.layout.coordinates].tobytes())
    return check.digest()


class ShapesPanel(QWidget):
    """A box to tick for the surfaces, the progress of their computation, and a button to save."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__()
        self.shapes = shapes
        self.box = check_box(
            "Surfaces in 3-D",
            "Show the active and the selected segments as surfaces, in their colours; they follow "
            "merges, cuts, undo and the threshold",
            "surfaces", shapes.show,
        )  # fmt: skip
        text = "Write the surfaces of the selected segments: PLY, OBJ, STL, or for Neuroglancer"
        self.save = button("Save the shapes…", text, self._save, "save shapes")
        self.run = RunRow(shapes.project, SHAPES, "Surfaces", "", lambda: None)
        self.failure = FailureLine(shapes.project, SHAPES, _EXPORT)
        column(self, self.box, self.save, self.run, self.failure)
        project = shapes.project
        link(self.follow, shapes.changed, project.jobs.changed, project.hierarchy_changed)
        self.follow()

    def follow(self) -> None:
        """Show the state of the surfaces."""
        shapes, project = self.shapes, self.shapes.project
        self.setVisible(project.session is not None and shapes.possible)
        with signals_blocked(self.box):
            self.box.setChecked(shapes.on)
        self.save.setVisible(shapes.on)
        self.save.setEnabled(bool(project.active) and project.jobs[_EXPORT] is None)
        self.run.setVisible(project.jobs[SHAPES] is not None)

    def _save(self) -> None:
        path, chosen = QFileDialog.getSaveFileName(self, "Save the shapes", "shapes.ply", _FILTERS)
        if path:
            self.shapes.save(path, folder=chosen.startswith("Neuroglancer"))
