"""The layers of a project in its viewer: the segmentation, outlines, previews.

The scene owns a few layers. A user may rename, hide, reorder or delete them at any time: what was
deleted is made again when it is needed next, and nothing else is touched.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Labels
from napari.utils.colormaps import DirectLabelColormap, label_colormap
from numpy.typing import NDArray
from qtpy.QtCore import QTimer

from napari_agglo.widgets._colours import (
    COLOURS,
    GROUPS,
    MARKS,
    OUTLINE,
    PREVIEW,
    SEGMENTATION,
    SUPERPIXELS,
    direct_colours,
)
from napari_agglo.widgets._flying import fly_to
from napari_agglo.widgets._lut_array import LutArray, Table
from napari_agglo.widgets._own_ids import give_own_ids
from napari_agglo.widgets._patched import Patch, Patched
from napari_agglo.widgets._project import Project, project_of
from napari_agglo.widgets._pyramid import coarse_copy, coarse_step, coarser

if TYPE_CHECKING:
    from napari.layers import Layer

_ROOM = 4096  # entries after the last superpixel: one may be divided while a slice is being read
_IDLE = 250  # milliseconds without a change after which the thumbnail follows


class Scene:
    """Draws a project in a viewer, and keeps up with it."""

    def __init__(self, viewer: Any, project: Project) -> None:
        self._viewer = weakref.ref(viewer)
        self.project = project
        self._table = Table(np.zeros(1, np.uint32))
        self._marks = Table(np.zeros(1, np.uint8))
        self._parts = Table(np.zeros(1, np.uint8))
        self._lines = Table(np.zeros(1, np.uint32))
        self._levels: list[Any] = []
        self._layers: dict[str, Labels] = {}
        self.held = False  # while others have the canvas, nothing is pointed at
        self._isolated = False
        self._outlined = False
        self._partners: tuple[int, ...] = ()
        self._idle = _timer(_IDLE, self._settle)
        self._soon = _timer(0, self._draw)  # in 3-D, several ticks become one
        project.hierarchy_changed.connect(self._on_hierarchy)
        project.threshold_changed.connect(self._on_change)
        project.edited.connect(self._on_change)
        project.selection_changed.connect(self.mark)
        project.closing.connect(self._close)
        viewer.dims.events.ndisplay.connect(self._on_ndisplay)

    @property
    def viewer(self) -> Any:
        """The viewer; it is there while anything is drawn."""
        viewer = self._viewer()
        if viewer is None:
            raise RuntimeError("the viewer of this scene is gone")
        return viewer

    @property
    def segmentation(self) -> Labels | None:
        """The layer that shows the segments, if it is in the viewer."""
        return self.layer(SEGMENTATION)

    def layer(self, role: str) -> Labels | None:
        """Return one of the scene's layers by its role, if it is in the viewer."""
        layer = self._layers.get(role)
        return layer if layer is not None and layer in self.viewer.layers else None

    def owns(self, layer: Layer) -> bool:
        """Return whether a layer is one of the scene's, so no choice for data."""
        return any(layer is one for one in self._layers.values())

    # The segmentation.

    def show(self) -> Labels | None:
        """Show the segmentation: its layer is made, if it is not there."""
        if not self.project.has_hierarchy:
            return None
        self._look_up()
        layer = self.layer(SEGMENTATION)
        if layer is None:
            layer = self._add(SEGMENTATION, self._table, colormap=label_colormap(COLOURS))
            layer.features = self._features()
            give_own_ids(layer, self.project)
        return layer

    def isolate(self, only_selected: bool) -> None:
        """Show the selected segments only, or all."""
        self._isolated = only_selected
        self._on_change()

    @property
    def isolated(self) -> bool:
        """Whether the selected segments only are shown."""
        return self._isolated

    def outline_superpixels(self, shown: bool) -> None:
        """Show the outlines of superpixels, or do not."""
        self._outlined = shown
        layer = self.layer(SUPERPIXELS)
        if layer is None and shown and self._levels:
            self._lines.values = np.arange(len(self._table.values), dtype=np.uint32)
            one_colour = DirectLabelColormap(color_dict={None: "white", 0: "transparent"})
            layer = self._add(SUPERPIXELS, self._lines, thickness=1, colormap=one_colour)
            layer.opacity = 0.35
        if layer is not None:
            layer.visible = shown and self.viewer.dims.ndisplay == 2

    # What is pointed at.

    def mark(self, partners: tuple[int, ...] | None = None) -> None:
        """Outline the active segment, the selected ones, and what it is confused with."""
        self._partners = partners or ()
        if not self._levels:
            return
        project, held = self.project, self._names()
        codes = np.zeros(len(held), np.uint8)
        for code, names in enumerate([(project.active,), project.selected, self._partners], 1):
            for name in names:
                if 0 < name < len(codes):
                    codes[name] = code
        self._marks.values = codes[held]
        wanted = bool(codes.any()) and not self.held
        layer = self.layer(OUTLINE)
        if layer is None and wanted and self.viewer.dims.ndisplay == 2:
            layer = self._add(OUTLINE, self._marks, thickness=3, colormap=direct_colours(MARKS))
            layer.opacity = 1.0
        if layer is not None:
            visible = wanted and self.viewer.dims.ndisplay == 2
            if layer.visible != visible:
                layer.visible = visible  # napari draws it
            else:
                self._refresh(layer)
        if self._isolated:
            self._on_change()

    def preview(self, parts: list[NDArray[Any]] | None, divided: Sequence[Patch] = ()) -> None:
        """Show the parts of a cut before it is made, each by its dense superpixels; None: clear.

        Of superpixels that would be `divided`, the number of the part of each pixel, from 1.
        """
        layer = self.layer(PREVIEW)
        if parts is None:
            if layer is not None:
                layer.visible = False
            return
        table = np.zeros(len(self._table.values), np.uint8)
        for k, part in enumerate(parts, 1):
            table[np.asarray(part)] = k
        spare = len(table) - _ROOM  # in the preview a label of its own stands for each part
        table[spare : spare + len(parts)] = np.arange(1, len(parts) + 1)
        self._parts.values = table
        if layer is None:
            cycle = {k: GROUPS[(k - 1) % len(GROUPS)] for k in range(1, 65)}
            layer = self._add(PREVIEW, self._parts, colormap=direct_colours(cycle))
            layer.opacity = 0.6
        patches = [(box, np.where(inner > 0, inner + (spare - 1), 0)) for box, inner in divided]
        for array, level in zip(_arrays(layer), self._levels, strict=True):
            step = 1 if level is self._levels[0] else coarse_step(self._levels[0].shape)
            array.superpixels = Patched(level, patches, step) if patches else level
        layer.visible = True
        self._refresh(layer)

    def fly_to(self, index: Any, box: Any = None) -> None:
        """Centre the view on a pixel; zoom so that `box` (first, past the last) fits well."""
        if self.project.placement is not None:
            fly_to(self.viewer, self.project.placement, index, box)

    # Keeping up.

    def _on_hierarchy(self) -> None:
        """Another tree or session: the layers show other superpixels."""
        image = self.project.graph.superpixels.image if self.project.graph is not None else None
        if self.project.has_hierarchy and image is not None:
            shapes = [level.shape for level in self._levels]
            self._levels = coarser(image)
            self._look_up()
            if shapes != [level.shape for level in self._levels]:
                self._remove_all()
            for layer in self._present():
                placed = self.project.placement
                if placed is not None:
                    layer.scale, layer.translate = placed.scale, placed.translate
                for array, level in zip(_arrays(layer), self._levels, strict=True):
                    array.superpixels = level
                self._refresh(layer)
            self.preview(None)
            layer = self.show()
            if layer is not None:
                layer.features = self._features()
        elif self._levels:
            self._remove_all()
            self._levels = []

    def _on_change(self, _: object = None) -> None:
        if not self._levels:
            return
        if self.viewer.dims.ndisplay == 3:
            self._soon.start()
        else:
            self._draw()
        self._idle.start()

    def _on_ndisplay(self) -> None:
        """In 3-D there are no outlines: do not draw layers of nothing else."""
        flat = self.viewer.dims.ndisplay == 2
        for role in (OUTLINE, SUPERPIXELS):
            layer = self.layer(role)
            if layer is not None:
                layer.visible = flat and (role == OUTLINE or self._outlined)
        if flat:
            self.mark(self._partners)

    def _draw(self) -> None:
        if self._viewer() is None or not self._levels:
            return
        self._follow_division()
        self._look_up()
        layer = self.layer(SEGMENTATION)
        if layer is not None:
            self._refresh(layer)
        outline = self.layer(OUTLINE)
        if outline is not None and outline.visible and not self._isolated:
            self.mark(self._partners)

    def _settle(self) -> None:
        if self._viewer() is None:
            return
        layer = self.layer(SEGMENTATION)
        if layer is not None and layer.visible:
            layer.refresh(data_displayed=False, highlight=False, extent=False)

    def _names(self) -> NDArray[np.uint32]:
        return _roomy(self.project.table())

    def _look_up(self) -> None:
        names = self._names()
        if self._isolated:
            kept = np.zeros(len(names), bool)
            kept[[self.project.active, *self.project.selected]] = True
            kept[0] = False
            names = np.where(kept[names], names, np.uint32(0))
        self._table.values = names

    def _follow_division(self) -> None:
        """Show superpixels that were divided, or made whole again."""
        graph = self.project.graph
        if graph is None or len(self._table.values) == graph.n_regions + 1 + _ROOM:
            return
        self._look_up()
        image = graph.superpixels.image
        self._levels = [image] if len(self._levels) == 1 else [image, coarse_copy(image)]
        for layer in self._present():
            for array, level in zip(_arrays(layer), self._levels, strict=True):
                array.superpixels = level

    def _features(self) -> Any:
        """Return the user's ids, for the status bar, where they are not the dense ones."""
        import pandas as pd

        graph = self.project.graph
        if graph is None or bool((graph.ids == np.arange(len(graph.ids))).all()):
            return pd.DataFrame()
        return pd.DataFrame({"index": np.arange(len(graph.ids)), "id": graph.ids})

    def _add(self, role: str, table: Table, thickness: int = 0, **options: Any) -> Labels:
        if len(table.values) < len(self._table.values):
            table.values = np.zeros(len(self._table.values), table.values.dtype)
        arrays = [LutArray(level, table, thickness=thickness) for level in self._levels]
        placement = self.project.placement
        layer = Labels(
            arrays if len(arrays) > 1 else arrays[0],
            multiscale=len(arrays) > 1,
            name=role,
            metadata={"napari_agglo": role},
            **({} if placement is None else placement.keywords()),
            **options,
        )
        layer.editable = False
        active = self.viewer.layers.selection.active
        self._layers[role] = layer
        self.viewer.add_layer(layer)
        main = self.layer(SEGMENTATION)
        if role != SEGMENTATION:  # it is not to be worked on: leave the active layer active
            keep = active if active is not None and active in self.viewer.layers else main
            if keep is not None:
                self.viewer.layers.selection.active = keep
        return layer

    def _refresh(self, layer: Labels) -> None:
        if layer.visible:
            layer.refresh(thumbnail=False, highlight=False, extent=False)

    def _present(self) -> list[Labels]:
        return [layer for role in self._layers if (layer := self.layer(role)) is not None]

    def _remove_all(self) -> None:
        for layer in self._present():
            self.viewer.layers.remove(layer)
        self._layers.clear()

    def _close(self) -> None:
        self._idle.stop()
        self._soon.stop()


def _arrays(layer: Labels) -> list[LutArray]:
    return list(layer.data) if layer.multiscale else [layer.data]


def _roomy(table: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return np.concatenate([table, np.zeros(_ROOM, np.uint32)])


def _timer(milliseconds: int, action: Any) -> QTimer:
    timer = QTimer()
    timer.setSingleShot(True)
    timer.setInterval(milliseconds)
    timer.timeout.connect(action)
    return timer


_scenes: weakref.WeakKeyDictionary[Any, Scene] = weakref.WeakKeyDictionary()


def scene_of(viewer: Any) -> Scene:
    """Return the scene of a viewer; there is one for each, made when first asked for."""
    real = getattr(viewer, "__wrapped__", viewer)
    scene = _scenes.get(real)
    if scene is None:
        scene = _scenes[real] = Scene(real, project_of(real))
    return scene
