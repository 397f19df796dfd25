"""What is seldom needed, folded away: NaN, a segmentation to start from, further volumes."""

from __future__ import annotations

from qtpy.QtWidgets import QCheckBox, QFormLayout, QVBoxLayout, QWidget
from superqt import QCollapsible

from napari_agglo.widgets._folding import close_up
from napari_agglo.widgets.data._layer_box import LayerBox
from napari_agglo.widgets.data._selection import Selection
from napari_agglo.widgets.data._training_part import TrainingPart


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
