"""Panels in napari's grid, each over the image; leaving restores the viewer."""

# In its own file: layers and grid of napari, apart from the state of a comparison.

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.experimental import link_layers
from napari.layers import Image, Labels, Layer
from numpy.typing import NDArray
from psygnal import Signal

from napari_agglo.volumes import is_on_disk
from napari_agglo.widgets._colours import DIFFERENCES, direct_colours, segment_colours
from napari_agglo.widgets._dataset import Placement
from napari_agglo.widgets._layer_levels import coarser
from napari_agglo.widgets._lut_array import LutArray, Table
from napari_agglo.widgets._napari import camera, grid, one_update, view_size
from napari_agglo.widgets._qt import shortened
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.compare._comparison import Comparison, Panel, Pieces

PER_PANEL = 3  # layers: image, segments, and an overlay of differences
OPACITY = 0.6  # of segments
_LETTER = 11  # pixels of an average letter of the name in a panel


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
        """The layers from the bottom to the top."""
        return [layer for layer in (self.image, self.segments, self.above) if layer is not None]


class PanelGrid:
    """The panels of a comparison in a viewer, and its former state."""

    left = Signal()

    def __init__(self, viewer: Any, scene: Scene) -> None:
        self._viewer = weakref.ref(viewer)
        self._scene = scene
        self.cells: list[Cell] = []
        self._before: list[tuple[Any, str, Any]] = []  # part of the viewer, attribute, value
        self._visible: list[tuple[Layer, bool]] = []
        self._active: Layer | None = None
        self._busy = False
        self._opacity = OPACITY  # of segments over the image

    @property
    def viewer(self) -> Any:
        """The viewer."""
        return self._viewer()

    def enter(self, comparison: Comparison, placement: Placement, image: Image | None) -> None:
        """Show the panels side by side, over the same image."""
        viewer = self.viewer
        before = view_size(viewer)
        if self.cells:
            self._remove()
        else:
            self._remember()
        self._busy = True
        try:
            self._scene.suspended = True
            for layer in viewer.layers:
                layer.visible = False
            self.cells = [
                _cell(panel, comparison.pieces, placement, image) for panel in comparison.panels
            ]
            for cell in reversed(self.cells):  # the grid counts from the top of the list
                for layer in cell.layers:
                    viewer.add_layer(layer)
                cell.segments.name_overlay.visible = True
            link_layers([cell.segments for cell in self.cells], ("opacity", "contour"))
            self._lay_out(PER_PANEL if image is not None else PER_PANEL - 1, before)
            viewer.layers.selection.active = self.cells[0].segments
        finally:
            self._busy = False
        viewer.layers.events.removed.connect(self._on_removed)
        viewer.layers.events.inserted.connect(self._on_inserted)

    def _lay_out(self, stride: int, before: tuple[float, float]) -> None:
        """Arrange the panels, and zoom out so that each shows the former view."""
        viewer, n = self.viewer, len(self.cells)
        look, lens = grid(viewer), camera(viewer)
        look.stride = -stride
        look.shape = (1, n) if n < 4 else (2, 2)
        look.spacing = 4
        look.enabled = True
        now = view_size(viewer)
        lens.zoom *= min(small / large for small, large in zip(now, before, strict=True))
        for cell in self.cells:
            cell.segments.name = shortened(cell.panel.name, int(now[1] / _LETTER))

    def leave(self) -> None:
        """Restore the former state."""
        if not self.cells:
            return
        viewer = self.viewer
        if viewer is None:
            self.cells = []
            return
        with one_update(viewer):
            self._remove()
            for layer, visible in self._visible:
                if layer in viewer.layers:
                    layer.visible = visible
            if self._active is not None and self._active in viewer.layers:
                viewer.layers.selection.active = self._active
            before, self._before, self._visible = self._before, [], []
            for part, name, value in before:
                setattr(part, name, value)
        self._scene.suspended = False
        self._scene.mark()
        self.left.emit()

    def refresh(self) -> None:
        """Draw the segments from the current tables."""
        for cell in self.cells:
            if cell.segments.visible:
                cell.segments.refresh(thumbnail=False, highlight=False, extent=False)

    def show_alone(self, alone: bool) -> None:
        """Show segments opaque and without the image, which would hide them in 3-D."""
        if alone:
            self._opacity = self.cells[0].segments.opacity
        self.cells[0].segments.opacity = 1.0 if alone else self._opacity  # all are linked
        for cell in self.cells:
            if cell.image is not None:
                cell.image.visible = not alone

    def show_codes(self, which: int, codes: NDArray[np.uint8] | None) -> None:
        """Colour the common pieces in a panel by codes (see `DIFFERENCES`); None for nothing."""
        cell = self.cells[which]
        if codes is None:
            # Hiding the layer would lay out the grid anew, which takes longer than drawing nothing.
            if not cell.codes.values.any():
                return
            codes = np.zeros_like(cell.codes.values)
        cell.codes.values = codes
        cell.above.refresh(thumbnail=False, highlight=False, extent=False)

    def _remember(self) -> None:
        viewer = self.viewer
        self._visible = [(layer, layer.visible) for layer in viewer.layers]
        self._active = viewer.layers.selection.active
        self._before = [
            (part, name, getattr(part, name))
            for part, names in (
                (grid(viewer), ("enabled", "stride", "shape", "spacing")),
                (viewer.dims, ("ndisplay", "order", "point")),
                (camera(viewer), ("center", "zoom", "angles")),
            )
            for name in names
        ]

    def _remove(self) -> None:
        viewer = self.viewer
        cells, self.cells = self.cells, []
        viewer.layers.events.removed.disconnect(self._on_removed)
        viewer.layers.events.inserted.disconnect(self._on_inserted)
        for cell in cells:
            for layer in cell.layers:
                if layer in viewer.layers:
                    viewer.layers.remove(layer)

    def _on_removed(self, event: Any) -> None:
        """Leave when a panel was deleted, as the grid would be misaligned."""
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


def _shown(image: Any, table: Table) -> dict[str, Any]:
    """Return the data of a layer of labels; those on disk have levels."""
    arrays = [LutArray(one, table) for one in (coarser(image) if is_on_disk(image) else [image])]
    several = len(arrays) > 1
    return {"data": arrays if several else arrays[0], "multiscale": several}


def _cell(panel: Panel, pieces: Pieces, placement: Placement, image: Image | None) -> Cell:
    own = {"metadata": {"napari_agglo": "panel"}}
    shared = {**own, **placement.keywords()}
    segments = Labels(
        **_shown(panel.base.image, panel.shown),
        name=panel.name,
        colormap=segment_colours(),
        opacity=OPACITY,
        **shared,
    )
    codes = Table(np.zeros(len(pieces.sizes), np.uint8))
    above = Labels(
        **_shown(pieces.image, codes),
        name=f"{panel.name}: differences",
        colormap=direct_colours(DIFFERENCES),
        opacity=0.75,
        **shared,
    )
    for layer in (segments, above):
        layer.editable = False
    below = None
    if image is not None:
        data, options, _ = image.as_layer_data_tuple()
        options |= {"name": f"{panel.name}: image", "visible": True, "opacity": 1.0, **own}
        below = Image(data, **options)
    return Cell(panel, segments, above, codes, below)
