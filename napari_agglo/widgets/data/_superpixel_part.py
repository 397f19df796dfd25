"""Superpixels: computed, with a preview of the plane that is seen, or a layer."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QCheckBox, QFormLayout, QSpinBox, QVBoxLayout, QWidget

from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets.data._layer_box import LayerBox
from napari_agglo.widgets.data._preview import PREVIEW, preview_plane
from napari_agglo.widgets.data._selection import Selection

_LARGEST = 10**7


class SuperpixelPart(QWidget):
    """What superpixels there are to be."""

    def __init__(self, viewer: Any, selection: Selection) -> None:
        super().__init__()
        self._selection = selection
        self.box = LayerBox(
            "superpixels",
            "compute them",
            "Small pieces that are merged: computed from the boundary cue, or labels that you "
            "have, also a segmentation of another tool that is split too finely.",
        )
        self.box.picked.connect(lambda layer: selection.choose("superpixels", layer))
        self.per_plane = QCheckBox("each plane by itself")
        self.per_plane.setObjectName("per plane")
        self.per_plane.setToolTip(
            "For stacks whose planes are much thicker than their pixels: a superpixel that "
            "followed a thin process from plane to plane would leak."
        )
        self.per_plane.clicked.connect(lambda on: selection.set_option("per_plane", bool(on)))
        self.least = QSpinBox()
        self.least.setObjectName("least size")
        self.least.setRange(0, _LARGEST)
        self.least.setSpecialValueText("automatic")
        self.least.setToolTip(
            "Superpixels of fewer pixels are dissolved; automatic: 25 in a plane, 125 in a volume. "
            "Larger ones are fewer and quicker, and lose thin things."
        )
        self.least.setKeyboardTracking(False)
        self.least.valueChanged.connect(lambda n: selection.set_option("min_size", n or None))
        self.preview = RunRow(
            selection.project,
            PREVIEW,
            "Preview this plane",
            "Compute the superpixels of the plane on the screen, and show their outlines.",
            lambda: preview_plane(viewer, selection),
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        self.form = QFormLayout()
        self.form.setContentsMargins(0, 0, 0, 0)
        self.form.addRow("Superpixels", self.box)
        self.form.addRow("Least size", self.least)
        self.form.addRow("", self.per_plane)
        layout.addLayout(self.form)
        layout.addWidget(self.preview)

    def follow(self) -> None:
        """Show what the selection holds."""
        chosen = self._selection
        self.box.show_layers(chosen.label_images(), chosen.superpixels)
        computed = chosen.superpixels is None
        for part in (self.least, self.preview):
            part.setVisible(computed)
        self.form.labelForField(self.least).setVisible(computed)
        ndim = next((len(row.shape) for row in chosen.rows if row.used), 2)
        self.per_plane.setVisible(computed and ndim > 2)
        self.per_plane.setChecked(chosen.per_plane)
        self.least.blockSignals(True)
        self.least.setValue(chosen.min_size or 0)
        self.least.blockSignals(False)
        ready = chosen.trouble is None
        self.preview.set_ready(ready, "" if ready else str(chosen.trouble))
