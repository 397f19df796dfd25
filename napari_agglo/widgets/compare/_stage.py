"""Panels in napari's grid, each with the image below; leaving restores the viewer as it was."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.experimental import link_layers
from napari.layers import Image, Labels, Layer
from napari.utils.colormaps import label_colormap
from psygnal import Signal

from napari_agglo.widgets._colours import COLOURS, direct_colours
from napari_agglo.widgets._lut_array import LutArray, Table
from napari_agglo.widgets._material import Placement
from napari_agglo.widgets._napari import camera, grid
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.compare._comparison import Comparison, Panel
from napari_agglo.widgets.compare._pieces import Pieces

PER_PANEL = 3  # image, segments, and what is pointed out above them
# Merged in the first panel but split here, the other way round, both, and just merged.
CODES = {1: "#e69f00", 2: "#56b4e9", 3: "#cc79a7", 4: "#ffffff"}
_LOOK = ("enabled", "stride", "shape", "spacing")


@dataclass(eq=False)
class Cell:
    """The layers of one panel."""

    panel: Panel
    segments: Labels
    above: Labels
    codes: Table
    image: Image | None

    @property
    def layers(self) -> list[Layer]:
        """From the bottom to the top."""
        own = [layer for layer in (self.image, self.segments, self.above) if layer is not None]
        return own


class Stage:
    """Shows a comparison in a viewer, and can leave it as it was."""

    left = Signal()

    def __init__(self, viewer: Any, scene: Scene) -> None:
        self._viewer = weakref.ref(viewer)
        self._scene = scene
        self.cells: list[Cell] = []
        self._before: dict[str, Any] = {}
        self._busy = False

    @property
    def viewer(self) -> Any:
        """The viewer."""
        return self._viewer()

    def enter(self, comparison: Comparison, placement: Placement, image: Image | None) -> None:
        """Show the panels side by side, over the same image."""
        viewer = self.viewer
        if self.cells:
            self._remove()
        else:
            self._remember()
        self._busy = True
        try:
            self._scene.held = True
            for layer in viewer.layers:
                layer.visible = False
            self.cells = [_cell(panel, placement, image) for panel in comparison.panels]
            for cell in reversed(self.cells):  # the grid counts from the top of the list
                for layer in cell.layers:
                    viewer.add_layer(layer)
                cell.segments.name_overlay.visible = True
            link_layers([cell.segments for cell in self.cells], ("opacity", "contour"))
            look = grid(viewer)
            stride = PER_PANEL if image is not None else PER_PANEL - 1
            n = len(self.cells)
            look.stride = -stride
            look.shape = (1, n) if n < 4 else (2, 2)
            look.spacing = 4
            look.enabled = True
            viewer.layers.selection.active = self.cells[0].segments
        finally:
            self._busy = False
        viewer.layers.events.removed.connect(self._on_removed)
        viewer.layers.events.inserted.connect(self._on_inserted)

    def leave(self) -> None:
        """Put everything back."""
        if not self.cells:
            return
        viewer = self.viewer
        self._remove()
        self._scene.held = False
        if viewer is None:
            return
        look = grid(viewer)
        for name in _LOOK:
            setattr(look, name, self._before[name])
        for layer, visible in self._before["visible"]:
            if layer in viewer.layers:
                layer.visible = visible
        active = self._before["active"]
        if active is not None and active in viewer.layers:
            viewer.layers.selection.active = active
        viewer.dims.ndisplay = self._before["ndisplay"]
        viewer.dims.point = self._before["point"]
        lens = camera(viewer)
        lens.center, lens.zoom = self._before["center"], self._before["zoom"]
        lens.angles = self._before["angles"]
        self._scene.mark()
        self.left.emit()

    def refresh(self) -> None:
        """Show what the tables say now."""
        for cell in self.cells:
            if cell.segments.visible:
                cell.segments.refresh(thumbnail=False, highlight=False, extent=False)

    def point_out(self, which: int, pieces: Pieces | None, codes: Any = None) -> None:
        """Colour the pieces of a panel by codes (see `CODES`); None for nothing."""
        cell = self.cells[which]
        array: LutArray = cell.above.data
        if pieces is None:
            # Hidden it would be laid out anew each time, which takes longer than to draw nothing.
            if not cell.codes.values.any():
                return
            cell.codes.values = np.zeros_like(cell.codes.values)
        else:
            room = np.zeros(len(pieces.sizes), np.uint8)
            room[: len(codes)] = codes
            # No slice is ever read with a table that is too short for its pieces.
            cell.codes.values = np.zeros(max(len(room), len(cell.codes.values)), np.uint8)
            if array.superpixels is not pieces.image:
                array.superpixels = pieces.image
            cell.codes.values = room
        cell.above.refresh(thumbnail=False, highlight=False, extent=False)

    def _remember(self) -> None:
        viewer = self.viewer
        look, lens = grid(viewer), camera(viewer)
        self._before = {name: getattr(look, name) for name in _LOOK}
        self._before |= {
            "visible": [(layer, layer.visible) for layer in viewer.layers],
            "active": viewer.layers.selection.active,
            "ndisplay": viewer.dims.ndisplay,
            "point": viewer.dims.point,
            "center": lens.center,
            "zoom": lens.zoom,
            "angles": lens.angles,
        }

    def _remove(self) -> None:
        viewer = self.viewer
        cells, self.cells = self.cells, []
        if viewer is None:
            return
        viewer.layers.events.removed.disconnect(self._on_removed)
        viewer.layers.events.inserted.disconnect(self._on_inserted)
        for cell in cells:
            for layer in cell.layers:
                if layer in viewer.layers:
                    viewer.layers.remove(layer)

    def _on_removed(self, event: Any) -> None:
        """Leave when a panel was deleted: what is left would no longer be what it says."""
        if not self._busy and any(event.value in cell.layers for cell in self.cells):
            self.leave()

    def _on_inserted(self, event: Any) -> None:
        """Keep the panels on top: the grid counts from there."""
        if self._busy or self.viewer is None:
            return
        layers = self.viewer.layers
        own = sum(len(cell.layers) for cell in self.cells)
        if own and not any(event.value in cell.layers for cell in self.cells):
            self._busy = True
            try:
                layers.move(layers.index(event.value), len(layers) - own - 1)
            finally:
                self._busy = False


def _cell(panel: Panel, placement: Placement, image: Image | None) -> Cell:
    place = placement.keywords()
    segments = Labels(
        LutArray(panel.base.image, panel.shown),
        name=panel.name,
        colormap=label_colormap(COLOURS),
        opacity=0.6,
        metadata={"napari_agglo": "panel"},
        **place,
    )
    codes = Table(np.zeros(len(panel.pieces.sizes), np.uint8))
    above = Labels(
        LutArray(panel.pieces.image, codes),
        name=f"{panel.name}: pointed out",
        colormap=direct_colours(CODES),
        opacity=0.75,
        metadata={"napari_agglo": "panel"},
        **place,
    )
    for layer in (segments, above):
        layer.editable = False
    below = None
    if image is not None:
        data, options, _ = image.as_layer_data_tuple()
        options |= {"name": f"{panel.name}: image", "visible": True, "opacity": 1.0}
        options["metadata"] = {"napari_agglo": "panel"}
        below = Image(data, **options)
    return Cell(panel, segments, above, codes, below)
