"""The layers of a project in its viewer: the segmentation, outlines, previews.

The scene owns a few layers. A user may rename, hide, reorder or delete them at any time: a deleted
layer is added again when it is needed, and no other layer is changed.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Labels
from napari.utils.notifications import show_info
from numpy.typing import NDArray
from psygnal import Signal
from superqt.utils import qdebounced

from napari_agglo.volumes import DenseLabels, is_on_disk
from napari_agglo.widgets._colours import (
    CUT_PREVIEW,
    CUT_PREVIEW_OPACITY,
    MARKS,
    SUPERPIXEL_OPACITY,
    direct_colours,
    segment_colours,
)
from napari_agglo.widgets._dataset import AffinityArray, Placement, identity_of
from napari_agglo.widgets._layer_levels import (
    EMPTY_3D,
    LazyArray,
    coarser,
    is_empty_in_3d,
    level_steps,
)
from napari_agglo.widgets._lut_array import LutArray, Patch, Patched, Table
from napari_agglo.widgets._napari import (
    KEY,
    add_inactive,
    camera,
    draw_in_own_window,
    view_size,
)
from napari_agglo.widgets._project import Project, Regions
from napari_agglo.widgets._qt import per_viewer

if TYPE_CHECKING:
    from napari.layers import Layer


_ROOM = 4096  # entries of a table after the last superpixel: for parts in the preview of a cut


def own_ids(project: Project) -> LutArray:
    """Return the current segments, with the ids and the type of the project's superpixels."""
    graph = project.graph
    assert graph is not None
    labels = graph.superpixels
    names = project.table()
    table = np.zeros(len(names) + _ROOM, labels.dtype)
    table[: len(names)] = graph.ids[names].astype(labels.dtype)
    # A session draws divisions into its image; a copy does not change with it.
    image = labels.image if project.session is None else labels.image.copy()
    return LutArray(image, table, source=project)


def current_project(data: Any) -> Project | None:
    """Return the project whose segments an array of `own_ids` shows, if they are still the same."""
    if not isinstance(data, LutArray) or data.source is None or data.source.graph is None:
        return None
    project: Project = data.source
    now = data.source.graph.ids[project.table()]
    shown = data.table.values
    same = len(now) + _ROOM == len(shown) and np.array_equal(now, shown[: len(now)])
    return project if same else None


def give_own_ids(layer: Labels, project: Project) -> None:
    """Let napari save and duplicate a layer of the project's segments with the user's ids.

    The layer itself holds dense numbers, only the visible segments and, of a large volume, a
    coarser level beside the full one. napari gets the data to save from one method, replaced here.
    """
    as_shown = layer.as_layer_data_tuple

    def as_layer_data_tuple() -> tuple[Any, dict[str, Any], str]:
        data, state, kind = as_shown()
        if not project.has_hierarchy or project.graph is None:
            return data, state, kind
        # Features and metadata are those of dense numbers.
        state |= {"multiscale": False, "features": {}, "metadata": {}}
        return own_ids(project), state, kind

    # A method of the object: napari can neither save nor duplicate a subclass of Labels.
    layer.as_layer_data_tuple = as_layer_data_tuple


# Roles of the scene's layers.
SEGMENTATION = "Segmentation"
OUTLINE = "Selected"
PREVIEW = "Cut preview"
SUPERPIXELS = "Superpixel outlines"
PAIR = "Same object?"
SEEDS = "Seeds"
_OF_EDITS = (OUTLINE, PREVIEW, SEEDS, PAIR)  # hidden during a comparison


_SHARE = 0.45  # of the canvas, for the box; the rest shows its surroundings
_AROUND = 40  # visible pixels on either side of the position of a question


def fly_to(viewer: Any, placement: Placement, index: Any, box: Any = None) -> None:
    """Centre the view on a pixel, and zoom to `box` (first, past the last) with a margin."""
    at = placement.to_world(index)
    shown = viewer.dims.displayed
    offset = viewer.dims.ndim - len(at)
    for axis in range(viewer.dims.ndim):
        if axis >= offset and axis not in shown:
            viewer.dims.set_point(axis, at[axis - offset])
    lens = camera(viewer)
    lens.center = tuple(at[axis - offset] for axis in shown if axis >= offset)
    if box is not None:
        spans = np.abs((np.asarray(box[1]) - np.asarray(box[0])) * placement.scale)
        extent = max(float(spans[axis - offset]) for axis in shown if axis >= offset)
        if extent > 0:
            lens.zoom = _SHARE * min(view_size(viewer)) / extent


_IDLE = 250  # milliseconds without a change until the thumbnail is updated


class Scene:
    """The layers of a project in its viewer, updated with it."""

    isolated_changed = Signal()
    suspended_changed = Signal()

    def __init__(self, viewer: Any) -> None:
        self._viewer = weakref.ref(viewer)
        self.project = project = per_viewer(viewer, Project)
        self._table = Table(np.zeros(1, np.uint32))
        self._marks = Table(np.zeros(1, np.uint8))
        self._parts = Table(np.zeros(1, np.uint8))
        self._lines = Table(np.zeros(1, np.uint32))
        self._pair = Table(np.zeros(1, np.uint8))
        self._pair_regions: Regions | None = None
        self._levels: list[Any] = []
        self._shown: DenseLabels | None = None  # the superpixels of the levels
        self._layers: dict[str, Labels] = {}
        self._suspended = False
        self._hidden: list[Any] = []  # layers of edits that a comparison hides
        self._isolated = False
        self._outlined = False
        self._partners: tuple[int, ...] = ()
        self._had_session = False
        self._status = ""  # the last message in the status bar
        self._tidied: Any = None  # the key of the dataset whose cues and gold were hidden
        self._idle = qdebounced(self._settle, timeout=_IDLE)
        self._soon = qdebounced(self._draw, timeout=0)  # in 3-D, one for several ticks
        project.hierarchy_changed.connect(self._on_hierarchy)
        project.threshold_changed.connect(self._on_change)
        project.edited.connect(self._on_change)
        project.selection_changed.connect(self.mark)
        project.worker.message.connect(self._show_status)
        for signal in (project.selection_changed, project.threshold_changed,
                       project.hierarchy_changed):  # fmt: skip
            signal.connect(self._forget_status)
        project.closing.connect(self._close)
        viewer.dims.events.ndisplay.connect(self._on_ndisplay)
        draw_in_own_window(viewer)

    @property
    def viewer(self) -> Any:
        """The viewer, which exists while anything is drawn."""
        viewer = self._viewer()
        if viewer is None:
            raise RuntimeError("the viewer of this scene is closed")
        return viewer

    @property
    def levels(self) -> list[Any]:
        """The superpixels of the hierarchy, the finest level first; none without one."""
        return self._levels

    @property
    def segmentation(self) -> Labels | None:
        """The layer of the segments, if it is in the viewer."""
        return self.layer(SEGMENTATION)

    def layer(self, role: str) -> Labels | None:
        """Return one of the scene's layers by its role, if it is in the viewer."""
        layer = self._layers.get(role)
        return layer if layer is not None and layer in self.viewer.layers else None

    def owns(self, layer: Layer) -> bool:
        """Return whether a layer is one of the scene's, and so no input."""
        return any(layer is one for one in self._layers.values())

    @property
    def suspended(self) -> bool:
        """Whether a comparison uses the canvas: no outlines, seeds, previews or mode."""
        return self._suspended

    @suspended.setter
    def suspended(self, suspended: bool) -> None:
        if suspended == self._suspended:
            return
        self._suspended = suspended
        if self._viewer() is None:
            return
        layers = self.viewer.layers
        if suspended:
            edits = [one for one in layers if one.metadata.get(KEY) in _OF_EDITS and one.visible]
            self._hidden = edits
        for layer in self._hidden:
            if layer in layers:
                layer.visible = not suspended
        if not suspended:
            self._hidden = []
            self.mark(self._partners)
            self._forget_status()
        self.suspended_changed.emit()

    # The segmentation.

    def show(self) -> Labels | None:
        """Show the segmentation; add its layer if it is not in the viewer."""
        if not self.project.has_hierarchy:
            return None
        self._look_up()
        layer = self.layer(SEGMENTATION)
        if layer is None:
            layer = self._add(SEGMENTATION, self._table, colormap=segment_colours())
            layer.features = self._features()
            give_own_ids(layer, self.project)
        return layer

    def isolate(self, only_selected: bool) -> None:
        """Show the selected segments only, or all."""
        self._isolated = only_selected
        self._on_change()
        self.isolated_changed.emit()

    @property
    def isolated(self) -> bool:
        """Whether only the selected segments are visible."""
        return self._isolated

    def outline_superpixels(self, shown: bool) -> None:
        """Show or hide the outlines of superpixels."""
        self._outlined = shown
        layer = self.layer(SUPERPIXELS)
        if layer is None and shown and self._levels:
            white = direct_colours({}, others="white")
            layer = self._add(SUPERPIXELS, self._lines, thickness=1, colormap=white)
            layer.opacity = SUPERPIXEL_OPACITY
        if layer is not None:
            layer.visible = shown and self.viewer.dims.ndisplay == 2

    # Outlines and previews.

    def mark(self, partners: tuple[int, ...] | None = None) -> None:
        """Outline the active segment, the selected ones, and the partners of its error."""
        self._partners = partners or ()
        if not self._levels:
            return
        self._marks.values = self._mark_codes()
        wanted = bool(self._marks.values.any()) and not self.suspended
        layer = self.layer(OUTLINE)
        if layer is None and wanted and self.viewer.dims.ndisplay == 2:
            layer = self._add(OUTLINE, self._marks, thickness=3, colormap=direct_colours(MARKS))
            layer.opacity = 1.0
        if layer is not None:
            visible = wanted and self.viewer.dims.ndisplay == 2
            if layer.visible != visible:
                layer.visible = visible  # napari draws the layer
            else:
                self._refresh(layer)
        if self._isolated:
            self._on_change()

    def _mark_codes(self) -> NDArray[np.uint8]:
        """Return the code of `MARKS` of each dense superpixel."""
        project, names_of = self.project, _roomy(self.project.table())
        codes = np.zeros(len(names_of), np.uint8)
        for code, names in enumerate([(project.active,), project.selected, self._partners], 1):
            for name in names:
                if 0 < name < len(codes):
                    codes[name] = code
        return codes[names_of]

    def preview(self, parts: list[NDArray[Any]] | None, divided: Sequence[Patch] = ()) -> None:
        """Show the parts of a cut, each as its dense superpixels, in a preview; None hides it.

        `divided` has the number of the part of each pixel, from 1, of superpixels to divide.
        """
        layer = self.layer(PREVIEW)
        if parts is None:
            if layer is not None:
                layer.visible = False
            return
        table = np.zeros(len(self._table.values), np.uint8)
        for k, part in enumerate(parts, 1):
            table[np.asarray(part)] = k
        spare = len(table) - _ROOM  # labels from here on stand for the parts of divided superpixels
        table[spare : spare + len(parts)] = np.arange(1, len(parts) + 1)
        self._parts.values = table
        if layer is None:
            layer = self._add(PREVIEW, self._parts, colormap=direct_colours(CUT_PREVIEW))
            layer.opacity = CUT_PREVIEW_OPACITY
        patches = [(box, np.where(inner > 0, inner + (spare - 1), 0)) for box, inner in divided]
        for array, level in zip(_arrays(layer), self._levels, strict=True):
            steps = level_steps(self._levels, level)
            array.superpixels = Patched(level, patches, steps) if patches else level
        layer.visible = True
        self._refresh(layer)

    def show_pair(self, regions: Regions, *sides: NDArray[Any]) -> None:
        """Show two sets of dense superpixels in two colours, of any regions, without hierarchy."""
        layer = self.layer(PAIR)
        if layer is not None and self._pair_regions is not regions:
            self.hide_pair()
            layer = None
        table = np.zeros(regions.graph.n_regions + 1, np.uint8)
        for k, side in enumerate(sides, 1):
            table[side] = k
        self._pair.values = table
        if layer is None:
            self._pair_regions = regions
            colours = direct_colours(CUT_PREVIEW)
            layer = self._add(PAIR, self._pair, regions=regions, colormap=colours)
            layer.opacity = CUT_PREVIEW_OPACITY
        layer.visible = True
        self._refresh(layer)

    def hide_pair(self) -> None:
        """Remove the layer of two sets of superpixels."""
        layer = self.layer(PAIR)
        if layer is not None:
            self.viewer.layers.remove(layer)

    def fly_to(self, index: Any, box: Any = None) -> None:
        """Centre the view on a pixel, and zoom to `box` (first, past the last) with a margin."""
        if self.project.placement is not None:
            fly_to(self.viewer, self.project.placement, index, box)

    def fly_to_question(self, index: Any, placement: Placement | None) -> None:
        """Centre the view on the position of a question, with its surroundings."""
        at = np.asarray(index)
        if placement is not None:
            fly_to(self.viewer, placement, at, (at - _AROUND, at + _AROUND))

    # Updates.

    def _on_hierarchy(self) -> None:
        """Show the superpixels of another tree or session, and all of its segments."""
        was_isolated, self._isolated = self._isolated, False
        graph, placed = self.project.graph, self.project.placement
        if self.project.has_hierarchy and graph is not None and placed is not None:
            shapes = [level.shape for level in self._levels]
            levels = coarser(graph.superpixels.image)
            if shapes != [level.shape for level in levels]:
                self._remove_all()
            self._set_levels(levels)
            for layer in self._present():
                # Setting either draws the layer again.
                if tuple(layer.scale) != tuple(placed.scale):
                    layer.scale = placed.scale
                if tuple(layer.translate) != tuple(placed.translate):
                    layer.translate = placed.translate
                if placed.units and tuple(str(one) for one in layer.units) != placed.units:
                    layer.units = placed.units  # napari warns of layers with others
                self._refresh(layer)
            self.preview(None)
            if self._had_session and self.project.session is None:
                self._remove_of_edits()
            self._had_session = self.project.session is not None
            layer = self.show()
            if layer is not None:
                layer.features = self._features()
            self._hide_inputs()
        elif self._levels:
            self._remove_all()
            self._levels = []
        if was_isolated:
            self.isolated_changed.emit()

    def _remove_of_edits(self) -> None:
        """Remove the layers of edits of a closed session, which show nothing."""
        for role in (PREVIEW, OUTLINE):
            layer = self.layer(role)
            if layer is not None:
                self.viewer.layers.remove(layer)

    def _hide_inputs(self) -> None:
        """Hide cues and gold under the first segmentation of a dataset, which they would tint."""
        regions = self.project.shown_regions
        # A session has a view of its own.
        if regions is None or self.project.session is not None:
            return
        dataset, key = regions.dataset.origin or regions.dataset, regions.dataset.key
        if key != self._tidied:
            self._tidied = key
            cues = [c.array if isinstance(c, AffinityArray) else c for c in dataset.cues.values()]
            inputs = [one for one in (dataset.gold, *dataset.golds, *cues) if one is not None]
            names = {identity_of(one) for one in inputs} - {identity_of(dataset.image)}
            for layer in self.viewer.layers:
                if not self.owns(layer) and identity_of(_pixels(layer)) in names:
                    layer.visible = False

    def input_folder(self) -> Path | None:
        """Return the folder of the file of the image, or else of a cue or of gold; None if none."""
        regions = self.project.shown_regions
        if regions is None:
            return None
        dataset = regions.dataset.origin or regions.dataset
        for array in (dataset.image, *dataset.cues.values(), dataset.gold):
            for layer in self.viewer.layers:
                path = layer.source.path
                if path and array is not None and _pixels(layer) is array:
                    return Path(path).parent
        return None

    def _on_change(self, _: object = None) -> None:
        if not self._levels:
            return
        if self.viewer.dims.ndisplay == 3:
            self._soon()
        else:
            self._draw()
        self._idle()

    def _on_ndisplay(self) -> None:
        """Hide the layers of outlines in 3-D, where they are empty."""
        flat = self.viewer.dims.ndisplay == 2
        if not flat and self._levels and is_empty_in_3d(self._levels):
            show_info(EMPTY_3D)
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
        layer = self.show()
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

    def _look_up(self) -> None:
        names = _roomy(self.project.table())
        if self._isolated:
            selected = np.zeros(len(names), bool)
            selected[[self.project.active, *self.project.selected]] = True
            selected[0] = False
            names = np.where(selected[names], names, np.uint32(0))
        self._table.values = names

    def _set_levels(self, levels: list[Any]) -> None:
        """Show other superpixels in all layers; fit the tables first, as bounds are not checked."""
        self._levels = levels
        self._shown = None if self.project.graph is None else self.project.graph.superpixels
        self._look_up()
        self._lines.values = np.arange(len(self._table.values), dtype=np.uint32)
        self._parts.values = np.zeros(len(self._table.values), np.uint8)
        self._marks.values = self._mark_codes()
        for layer in self._present():
            for array, level in zip(_arrays(layer), levels, strict=True):
                array.superpixels = level

    def _follow_division(self) -> None:
        """Show divided superpixels, or whole ones after an undo."""
        graph = self.project.graph
        if graph is None:
            return
        # Those on disk are another image after each division; one in memory is drawn on.
        other = graph.superpixels is not self._shown and is_on_disk(graph.superpixels.image)
        if other or len(self._table.values) != graph.n_regions + 1 + _ROOM:
            self._set_levels(coarser(graph.superpixels.image))

    def _features(self) -> Any:
        """Return the user's ids, for the status bar, where they are not the dense ones."""
        import pandas as pd

        graph = self.project.graph
        if graph is None or bool((graph.ids == np.arange(len(graph.ids))).all()):
            return pd.DataFrame()
        return pd.DataFrame({"index": np.arange(len(graph.ids)), "id": graph.ids})

    def _add(
        self,
        role: str,
        table: Table,
        thickness: int = 0,
        regions: Regions | None = None,  # by default those of the hierarchy
        **options: Any,
    ) -> Labels:
        levels, placement = self._levels, self.project.placement
        if regions is not None:
            levels = coarser(regions.graph.superpixels.image)
            placement = regions.dataset.placement
        arrays = [LutArray(level, table, thickness=thickness) for level in levels]
        layer = Labels(
            arrays if len(arrays) > 1 else arrays[0],
            multiscale=len(arrays) > 1,
            name=role,
            metadata={"napari_agglo": role},
            **({} if placement is None else placement.keywords()),
            **options,
        )
        layer.editable = False
        self._layers[role] = layer
        if role == SEGMENTATION:
            self.viewer.add_layer(layer)
        else:  # it has no gestures
            add_inactive(self.viewer, layer, self.segmentation)
        return layer

    def _refresh(self, layer: Labels) -> None:
        if layer.visible:
            layer.refresh(thumbnail=False, highlight=False, extent=False)
            layer.events.paint(value=[])  # further views of the same values listen to this

    def _present(self) -> list[Labels]:
        """Return the layers of the hierarchy in the viewer; the pair has regions of its own."""
        present = ((role, self.layer(role)) for role in self._layers)
        return [layer for role, layer in present if layer is not None and role != PAIR]

    def _remove_all(self) -> None:
        for layer in self._present():
            self.viewer.layers.remove(layer)
        self._layers = {role: one for role, one in self._layers.items() if role == PAIR}

    def _show_status(self, message: str) -> None:
        self.viewer.status = self._status = message

    def _forget_status(self) -> None:
        """Remove a message of before from the status bar, as the dock does."""
        if self._status and self._viewer() is not None:
            if self.viewer.status == self._status:
                self.viewer.status = ""
            self._status = ""

    def _close(self) -> None:
        self._idle.cancel()
        self._soon.cancel()


def _pixels(layer: Layer) -> Any:
    """Return the pixels of a layer, not read yet; of a pyramid, the full resolution."""
    data = layer.data[0] if getattr(layer, "multiscale", False) else layer.data
    return data.source if isinstance(data, LazyArray) else data


def _arrays(layer: Labels) -> list[LutArray]:
    return list(layer.data) if layer.multiscale else [layer.data]


def _roomy(table: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return np.concatenate([table, np.zeros(_ROOM, np.uint32)])
