"""How the segmentation is looked at: contours, outlines, opacity, 3-D, selected segments only."""

from __future__ import annotations

import weakref
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QCheckBox, QGridLayout, QLabel, QSlider, QWidget

from napari_agglo.widgets._links import link
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets._viewer_links import link_viewer

_CONTOUR = 2  # pixels


class View(QWidget):
    """Switches of the layer that shows the segments; napari's own controls work beside them."""

    def __init__(self, viewer: Any, project: Project, scene: Scene) -> None:
        super().__init__()
        self._viewer = weakref.ref(viewer)
        self._project, self._scene = project, scene
        self.contours = _switch("Contours", "Draw the outlines of segments instead of areas")
        self.superpixels = _switch("Superpixels", "Draw the outlines of superpixels (in 2-D)")
        self.isolate = _switch("Selected only", "Hide all segments but the selected ones")
        self.solid = _switch("3-D", "Look at the volume in 3-D")
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setObjectName("opacity")
        self.opacity.setRange(0, 100)
        self.opacity.setToolTip("How much of the image the segments hide")
        self.contours.toggled.connect(self._set_contours)
        self.superpixels.toggled.connect(scene.outline_superpixels)
        self.isolate.toggled.connect(scene.isolate)
        self.solid.toggled.connect(self._set_solid)
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


def _switch(text: str, tooltip: str) -> QCheckBox:
    box = QCheckBox(text)
    box.setObjectName(text.lower())
    box.setToolTip(tooltip)
    return box
