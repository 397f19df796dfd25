"""The Data step as a widget: what is there, what it is used for, and the regions made of it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from napari.layers import Image
from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QFrame,
    QLabel,
    QPushButton,
    QSizePolicy,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)
from superqt import QCollapsible

from napari_agglo.superpixels import CueKind, boundary_cue
from napari_agglo.widgets._jobs import RunRow
from napari_agglo.widgets._napari import role
from napari_agglo.widgets._project import Project, Regions
from napari_agglo.widgets._qt import close_up, link, per_viewer, tell_error
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.data._check import Trouble
from napari_agglo.widgets.data._cue_table import CueTable
from napari_agglo.widgets.data._guess_roles import BOUNDARY
from napari_agglo.widgets.data._layers import data_of, is_rgb, placement_of
from napari_agglo.widgets.data._plane_preview import PREVIEW, preview_plane, remove_preview
from napari_agglo.widgets.data._selection import Selection
from napari_agglo.widgets.data._training_set import TrainingPart

# A box to choose a layer from, or none.


class LayerBox(QComboBox):
    """Choose one of some layers; what it shows is set from outside."""

    picked = Signal(object)  # the layer that the user chose, or None

    def __init__(self, name: str, none: str, tooltip: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(name)
        self.setToolTip(tooltip)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(12)  # long names of layers do not widen the dock
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._none = none
        self._layers: list[Any] = [None]
        self.activated.connect(lambda index: self.picked.emit(self._layers[index]))
        self.show_layers([], None)

    def show_layers(self, layers: Sequence[Any], chosen: Any) -> None:
        """Offer these layers, and none; show the chosen one."""
        self._layers = [None, *layers]
        names = [self._none, *(str(layer.name) for layer in layers)]
        if names != [self.itemText(k) for k in range(self.count())]:
            self.clear()
            self.addItems(names)
        at = next((k for k, layer in enumerate(self._layers) if layer is chosen), 0)
        self.setCurrentIndex(at)

    def pick(self, layer: Any) -> None:
        """Choose a layer, as the user would."""
        index = next(k for k, one in enumerate(self._layers) if one is layer)
        self.setCurrentIndex(index)
        self.activated.emit(index)


# What stands in the way, in the widget, with a button that mends it where one can.


class TroublePart(QFrame):
    """A box with the trouble; not there if there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("trouble")
        self.setStyleSheet("QFrame#trouble { border: 1px solid #d97706; border-radius: 4px; }")
        self._trouble: Trouble | None = None
        self.words = QLabel()
        self.words.setWordWrap(True)
        self.words.setObjectName("trouble words")
        self.button = QPushButton()
        self.button.setObjectName("mend")
        self.button.setToolTip("Do this, so that the layers can be used together")
        self.button.clicked.connect(self._mend)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 4, 6, 4)
        layout.addWidget(self.words)
        layout.addWidget(self.button)

    def show_trouble(self, trouble: Trouble | None) -> None:
        """Show it, or go away."""
        self._trouble = trouble
        self.setVisible(trouble is not None)
        if trouble is not None:
            self.words.setText(str(trouble))
            self.button.setText(trouble.button)
            self.button.setVisible(bool(trouble.button))

    def _mend(self) -> None:
        trouble = self._trouble
        if trouble is not None and trouble.mend is not None:
            try:
                trouble.mend()
            except Exception as error:
                tell_error(error)


# One click: a boundary cue from the bare image.


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


# What is seldom needed, folded away: NaN, a segmentation to start from, further volumes.


class More(QCollapsible):
    """Folded until somebody opens it, or something in it is set."""

    def __init__(self, selection: Selection) -> None:
        super().__init__("More")
        self.setObjectName("more data")
        self.setToolTip("Segments of other tools to start from, NaN, several volumes to train on")
        self.setDuration(0)
        self._selection = selection
        self.start = LayerBox(
            "start from",
            "single superpixels",
            "Proofread the segmentation of another tool: no superpixel crosses its borders, and a "
            "session begins with its segments.",
        )
        self.start.picked.connect(lambda layer: selection.choose("start", layer))
        self.nan = QCheckBox("NaN is boundary")
        self.nan.setObjectName("nan is boundary")
        self.nan.setToolTip(
            "Take values of a cue that are not numbers for boundary, as outside of a specimen; "
            "otherwise they are refused."
        )
        self.nan.clicked.connect(lambda on: selection.set_option("nan_is_boundary", bool(on)))
        self.training = TrainingPart(selection.project)
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        form = QFormLayout()
        form.addRow("Start from", self.start)
        form.addRow("", self.nan)
        column.addLayout(form)
        column.addWidget(self.training)
        self.setContent(inner)
        close_up(self)
        used = selection.start is not None or bool(selection.project.training)
        (self.expand if used else self.collapse)(animate=False)

    def follow(self) -> None:
        """Show what the selection and the project hold."""
        chosen = self._selection
        self.start.show_layers(chosen.label_images(), chosen.start)
        self.nan.setChecked(chosen.nan_is_boundary)
        self.training.follow()


# Superpixels: computed, with a preview of the plane that is seen, or a layer.


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


class DataWidget(StepWidget):
    """Choose image, cues, gold and superpixels; build the regions."""

    key = "data"
    title = "Data"
    purpose = "choose the image, its boundary cues, and gold labels if you have some."
    hints = {  # noqa: RUF012 - what to do next
        Status.EMPTY: "Open an image, or a sample: File > Open Sample > Agglo.",
        Status.READY: "Ready. Build the regions here, or go on to step 2 or 3, which do it too.",
        Status.RUNNING: "Building the regions.",
        Status.STALE: "The choice below has changed since the regions were built: build them anew.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        selection = per_viewer(
            napari_viewer, Selection
        )  # the first one tells the project what is there
        super().__init__(napari_viewer)
        self.selection = selection
        self.image = LayerBox(
            "image", "none", "The picture. A boundary cue can be made from it if you have none."
        )
        self.image.picked.connect(lambda layer: self.selection.choose("image", layer))
        self.cues = CueTable(self.selection)
        self.make = MakeCue(self.viewer, self.selection)
        self.gold = LayerBox(
            "gold",
            "none",
            "Labels that are right, to learn from and to measure against. They may cover a part "
            "only: 0 is “not annotated”. Not needed to segment by the mean.",
        )
        self.gold.picked.connect(lambda layer: self.selection.choose("gold", layer))
        self.superpixels = SuperpixelPart(self.viewer, self.selection)
        self.trouble = TroublePart()
        self.run = RunRow(
            self.project,
            self.key,
            "Build regions",
            "Compute superpixels and what is known of each and of the boundaries between them.",
            self._build,
        )
        self.found = QLabel()
        self.found.setObjectName("found")
        self.found.setWordWrap(True)
        self.more = More(self.selection)
        self._lay_out()
        link(self, self.selection.changed, self._follow)
        self.start()
        self._follow()

    @staticmethod
    def _status(project: Project) -> Status:
        regions, dataset = project.regions, project.dataset
        if regions is None:
            if dataset is None:
                return Status.EMPTY if project.graph is None else Status.DONE  # an opened session
            return Status.READY
        current = dataset is None or dataset is regions.dataset
        return Status.DONE if current else Status.STALE

    def _lay_out(self) -> None:
        top = QFormLayout()
        top.addRow("Image", self.image)
        top.addRow("Gold", self.gold)
        self.body.addWidget(self.trouble)
        self.body.addLayout(top)
        self.body.addWidget(self.cues)
        self.body.addWidget(self.make)
        self.body.addWidget(self.superpixels)
        self.body.addWidget(self.run)
        self.body.addWidget(self.found)
        self.body.addWidget(self.more)

    def hint_for(self, status: Status) -> str:
        """Say what to do next."""
        if status is Status.EMPTY and self.project.trouble:
            return ""  # the box of the trouble says it
        if status is Status.DONE:
            gold = self.project.dataset is not None and self.project.dataset.gold is not None
            return "Done. Next: " + ("step 2, Train." if gold else "step 3, Hierarchy.")
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        """Follow the project."""
        ready = self.project.dataset is not None
        self.run.set_ready(ready, self.project.trouble)
        graph = None if self.project.regions is None else self.project.regions.graph
        words = "" if graph is None else (
            f"{graph.n_regions:,} superpixels, {graph.n_boundaries:,} boundaries between them."
        )  # fmt: skip
        self.found.setText(words)
        self.found.setVisible(bool(words))
        self.more.follow()

    def _follow(self) -> None:
        chosen = self.selection
        self.image.show_layers(chosen.images(), chosen.image)
        self.gold.show_layers(chosen.label_images(), chosen.gold)
        self.cues.follow()
        self.make.follow()
        self.superpixels.follow()
        self.more.follow()
        self.trouble.show_trouble(chosen.trouble)
        self.cues.setVisible(bool(chosen.rows))

    def _build(self) -> None:
        dataset = self.project.dataset
        if dataset is None:
            return
        project, viewer = self.project, self.viewer

        def work(progress: Any) -> Regions:
            whole = dataset.oversegmented(progress)
            return Regions(whole, whole.graph(progress))

        def done(regions: Regions) -> None:
            remove_preview(viewer)
            project.regions = regions

        project.jobs.start(self.key, "Building regions", work, done, tell_error)
