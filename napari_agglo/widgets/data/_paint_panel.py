"""Panel of the pixel classifier: its classes, what is painted of each, and the buttons."""

# In its own file: the controls of `Painter`, which works without them.

from __future__ import annotations

from pathlib import Path
from typing import Any

from napari.utils.notifications import show_info
from qtpy.QtCore import Qt
from qtpy.QtGui import QColor, QIcon, QPixmap
from qtpy.QtWidgets import QColorDialog, QFileDialog, QListWidget, QListWidgetItem, QWidget

from napari_agglo.widgets._jobs import RunRow
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
from napari_agglo.widgets.data._paint_classes import PIXELS, Painter

# What is said of the classifier until the next stroke, by its teacher.
_TEACHERS = {
    "file": "The opened classifier is used as it is.",
    "gold": "The classifier has learned from the gold labels.",
}
_FILTER = "Pixel classifiers (*.npz)"


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
        self.load = button("Open…", again, self._load, "open classifier")
        gold = (
            "Learn the boundary from the borders of the gold labels, in place of strokes. To learn "
            "from several volumes, use the command: napari-agglo pixels train --gold"
        )
        self.gold = button(
            "Learn from gold", gold, lambda: guarded(painter.learn_from_gold), "learn from gold"
        )
        self.parts = (self.list, self.add, self.remove, self.colour, self.live, self.run, self.save)
        column(
            self, self.list, row(self.add, self.remove, self.colour, self.live), self.line,
            self.run, row(self.begin, self.save, self.load), self.gold,
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
        self.gold.setVisible(has_image and painter.selection.gold is not None)
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
        given = painter.classifier is not None and painter.teacher in _TEACHERS
        text = _TEACHERS[painter.teacher] if given else f"Pixels: {painted}."
        self.line.setText(f"{text} {painter.remarks}".strip())
        ready = given or sum(n > 0 for n in counts) == len(counts)
        self.run.set_ready(ready, "Paint at least one stroke of each class.")

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
