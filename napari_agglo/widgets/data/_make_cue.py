"""One click: a boundary cue from the bare image."""

from __future__ import annotations

import weakref
from typing import Any

from napari.layers import Image
from qtpy.QtWidgets import QComboBox

from napari_agglo.superpixels import CueKind, boundary_cue
from napari_agglo.widgets._notices import tell_error
from napari_agglo.widgets._roles import role
from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets.data._guess import BOUNDARY
from napari_agglo.widgets.data._layers import data_of, is_rgb, placement_of
from napari_agglo.widgets.data._selection import Selection

CUE = "cue"  # the name of the job
_KINDS: tuple[tuple[str, CueKind, str], ...] = (
    ("automatic", "auto", "Colour edges if the image is in colours, else the lines that stand out"),
    ("dark lines", "dark_ridges", "Thin and dark, as membranes in electron microscopy"),
    ("bright lines", "bright_ridges", "Thin and bright, as a sharp membrane stain"),
    ("dark walls", "dark", "Dark and thick, or out of focus"),
    ("bright walls", "bright", "Bright and thick, or out of focus"),
    ("edges", "gradient", "Where the grey level changes"),
    ("colour edges", "colour", "Where the colour changes; for images in colours"),
)


class MakeCue(RunRow):
    """The button, and what a boundary looks like."""

    def __init__(self, viewer: Any, selection: Selection) -> None:
        super().__init__(
            selection.project,
            CUE,
            "Make a boundary cue",
            "Find lines or edges in the image and use them as the boundary cue. A map that was "
            "learned for the tissue is better where you have one.",
            self._make,
        )
        self._viewer = weakref.ref(viewer)
        self._selection = selection
        self.kind = QComboBox()
        self.kind.setObjectName("cue kind")
        self.kind.setAccessibleName("what a boundary looks like")
        self.kind.setToolTip("What a boundary looks like in the image")
        for at, (text, _, tip) in enumerate(_KINDS):
            self.kind.addItem(text)
            self.kind.setItemData(at, tip, 3)  # the role of tooltips
        self.row.addWidget(self.kind)

    def follow(self) -> None:
        """Be there to click on, if there is an image."""
        there = self._selection.image is not None
        self.set_ready(there, "Choose the image first.")
        self.kind.setEnabled(there)

    def _make(self) -> None:
        layer = self._selection.image
        if layer is None:
            return
        data, placement, name = data_of(layer), placement_of(layer), str(layer.name)
        axis = -1 if is_rgb(layer) else None
        kind = _KINDS[self.kind.currentIndex()][1]

        def work(progress: Any) -> Any:
            return boundary_cue(
                data,
                kind,
                spacing=tuple(abs(one) for one in placement.scale),
                channel_axis=axis,
                progress=progress,
            )

        viewer, selection = self._viewer, self._selection

        def done(cue: Any) -> None:
            live = viewer()
            if live is None:
                return
            made = Image(
                cue,
                name=f"{name} boundary",
                colormap="magma",
                contrast_limits=(0.0, 1.0),
                blending="additive",
                metadata=role("cue", BOUNDARY),
                **placement.keywords(),
            )
            live.add_layer(made)
            selection.use_as_boundary(made)

        self._selection.project.jobs.start(CUE, "Making a boundary cue", work, done, tell_error)
