"""Panel of the pixel classifier: its classes, what is painted of each, and the buttons."""

# In its own file: the controls of `Painter`, which works without them.

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from napari.utils.notifications import show_info
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor, QIcon, QPixmap
from qtpy.QtWidgets import QColorDialog, QFileDialog, QListWidget, QListWidgetItem, QWidget

from napari_agglo.errors import InvalidInput
from napari_agglo.pixels import FilterBank, train_pixels
from napari_agglo.widgets._forms import Form, descriptions
from napari_agglo.widgets._progress_row import RunRow
from napari_agglo.widgets._qt import (
    button,
    check_box,
    column,
    guarded,
    label,
    link,
    named,
    per_viewer,
    row,
)
from napari_agglo.widgets.data._gold_volumes import GoldVolumes
from napari_agglo.widgets.data._layers import STROKES
from napari_agglo.widgets.data._paint_classes import PIXELS, Painter

_FILTER = "Pixel classifiers (*.npz)"
_GOLD = "Learn from gold"
_PLANES = (
    "Filter each plane by itself, for thick planes. An image of one plane has no other features."
)


class FeatureForm(Form):
    """The features of the classifier, folded away: scales, structure tensor, planes."""

    def __init__(self, painter: Painter) -> None:
        tips = descriptions(train_pixels)
        structure = {"label": "Structure tensor", "tooltip": tips["structure"].text}
        planes = {"label": "Filter each plane by itself", "tooltip": _PLANES}
        scales = {"label": "Scales", "tooltip": tips["scales"].text}
        table = {
            "structure": Annotated[bool, structure],
            "per_plane": Annotated[bool, planes],
            "scales": Annotated[str, scales],
        }
        super().__init__(table=table, first=(), more="Features")
        self._painter = painter
        self.line: Any = self["scales"].native
        self.line.editingFinished.connect(self._on_scales)
        self.changed.connect(self._on_tick)

    def follow(self) -> None:
        """Show the features in use, unless the scales are being typed."""
        bank = self._painter.bank
        self.show_values({"structure": bank.structure, "per_plane": bank.axes == 2})
        self["per_plane"].enabled = self._painter.has_planes
        if not (self.line.hasFocus() and self.line.isModified()):
            self.show_values({"scales": _scales_text(bank.scales)})

    def _on_tick(self, name: str) -> None:
        if name == "structure":
            guarded(lambda: self._painter.set_features(structure=self[name].value))
        elif name == "per_plane":
            guarded(lambda: self._painter.set_features(per_plane=self[name].value))

    def _on_scales(self) -> None:
        text = str(self["scales"].value)
        if text == _scales_text(self._painter.bank.scales):
            return
        self.line.setModified(False)
        guarded(lambda: self._painter.set_features(scales=_scales_of(text)))
        self.follow()


def _scales_text(scales: Sequence[float]) -> str:
    return ", ".join(f"{one:g}" for one in scales)


def _scales_of(text: str) -> tuple[float, ...]:
    """Return scales as they are typed.

    >>> _scales_of("1, 2.5 4")
    (1.0, 2.5, 4.0)
    """
    try:
        return tuple(float(one) for one in re.split(r"[,;\s]+", text.strip()))
    except ValueError as error:
        raise InvalidInput(
            f"The scales must be numbers, not “{text}”",
            argument="scales",
            remedy=f"type for example {_scales_text(FilterBank.scales)}",
        ) from error


class PaintPanel(QWidget):
    """The classes, the live switch, and the button that makes cues of the classes."""

    def __init__(self, viewer: Any) -> None:
        super().__init__()
        self.painter = painter = per_viewer(viewer, Painter)
        tip = "Add a layer for strokes on the image, and paint a few pixels of each class"
        self.begin = button("Paint classes…", tip, lambda: guarded(painter.start), "paint classes")
        self.list = named(QListWidget(), "pixel classes", "Choose the class to paint with; "
                          "double-click to rename it")  # fmt: skip
        self.list.setFixedHeight(92)
        self.list.currentRowChanged.connect(self._on_row)
        self.list.itemChanged.connect(self._on_renamed)
        more = "Add a class, such as mitochondria"
        self.add = button("Add", more, lambda: guarded(painter.add_class), "add class")
        less = "Remove the chosen class, after a question if it has strokes"
        self.remove = button("Remove", less, lambda: guarded(painter.remove_class), "remove class")
        self.colour = button(
            "Colour…", "Change the colour of the class", self._pick, "class colour"
        )
        follow = "Classify the plane in view after each stroke"
        self.live = check_box("Live", follow, "live", painter.set_live)
        self.live.setChecked(painter.is_live)
        self.line = label("strokes")
        self.run = RunRow(
            painter.project,
            PIXELS,
            "Make cues of the classes",
            "Classify the whole image, block by block, and use the probability of each class as a "
            "cue; the class “boundary” makes the superpixels.",
            painter.make_cues,
        )
        kept = "Write the classifier to a file, for other images and the command line"
        self.save = button("Save…", kept, self._save, "save classifier")
        again = "Open a saved classifier with its classes"
        self.load = button("Open classifier…", again, self._load, "open classifier")
        self.features = FeatureForm(painter)
        gold = (
            "Learn the boundary from the borders of the gold labels, in place of strokes: of the "
            "volume chosen above, and of all “Further volumes to train on”, under More"
        )
        self.gold = button(_GOLD, gold, lambda: guarded(painter.learn_from_gold), "learn from gold")
        self.parts = (self.list, self.add, self.remove, self.colour, self.live, self.run, self.save,
                      self.features)  # fmt: skip
        column(
            self, self.list, row(self.add, self.remove, self.colour, self.live), self.line,
            self.run, row(self.begin, self.save, self.load), self.gold, self.features,
        )  # fmt: skip
        link(self.follow, painter.changed)
        self.follow()

    def follow(self) -> None:
        """Show the classes, the number of their pixels, and what is missing."""
        painter = self.painter
        on = painter.strokes is not None
        for part in self.parts:
            part.setVisible(on)
        has_image = painter.selection.image is not None
        self.begin.setVisible(not on)
        self.begin.setEnabled(has_image)
        self.load.setEnabled(has_image)
        self.line.setVisible(on)
        self.follow_gold()
        if not on:
            return
        counts = painter.counts()
        self.list.blockSignals(True)
        while self.list.count() > len(painter.classes):
            self.list.takeItem(self.list.count() - 1)
        for k, one in enumerate(painter.classes):
            item = self.list.item(k)
            if item is None:
                item = QListWidgetItem()
                item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
                self.list.addItem(item)
            square = QPixmap(14, 14)
            square.fill(QColor(one.colour))
            icon = QIcon(square)
            icon.addPixmap(square, QIcon.Mode.Selected)  # else tinted in the chosen row
            item.setIcon(icon)
            item.setText(one.name)
            item.setToolTip(f"{counts[k]:,} pixels; double-click to rename")
        self.list.setCurrentRow(painter.chosen)
        self.list.blockSignals(False)
        self.remove.setEnabled(len(painter.classes) > 2)
        self.save.setEnabled(painter.classifier is not None)
        painted = ", ".join(
            f"{n:,} {one.name}" for one, n in zip(painter.classes, counts, strict=False)
        )
        self.features.follow()
        given = painter.classifier is not None and painter.source != STROKES
        text = painter.source_text if given else f"Pixels: {painted}."
        self.line.setText(f"{text} {painter.remarks}".strip())
        ready = given or sum(n > 0 for n in counts) == len(counts)
        self.run.set_ready(ready, "Paint at least one stroke of each class.")

    def follow_gold(self) -> None:
        """Offer to learn from gold, if there is some, and tell of how many volumes."""
        selection = self.painter.selection
        n = len(GoldVolumes.of(selection).volumes)
        self.gold.setVisible(selection.image is not None and n > 0)
        self.gold.setText(f"{_GOLD} of {n} volumes" if n > 1 else _GOLD)

    def _on_row(self, number: int) -> None:
        if 0 <= number != self.painter.chosen:
            self.painter.choose(number)

    def _on_renamed(self, item: QListWidgetItem) -> None:
        guarded(lambda: self.painter.change_class(self.list.row(item), name=item.text()))

    def _pick(self) -> None:
        number = self.painter.chosen
        colour = QColorDialog.getColor(QColor(self.painter.classes[number].colour), self)
        if colour.isValid():
            self.painter.change_class(number, colour=colour.name())

    def _save(self) -> None:
        path, _ = QFileDialog.getSaveFileName(self, "Save the classifier", "pixels.npz", _FILTER)
        if path:
            target = Path(path).with_suffix(".npz")
            guarded(lambda: self.painter.save(target))
            show_info(f"Saved {target}.")

    def _load(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Open a classifier", "", _FILTER)
        if path:
            guarded(lambda: self.painter.load(Path(path)))
