"""Differences of two panels: a coloured overlay, and a list with positions."""

# In its own file: the overlay and list of differences, apart from the choice of panels.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtWidgets import QLabel, QWidget
from superqt.utils import signals_blocked

from napari_agglo.widgets._colours import DIFFERENCES
from napari_agglo.widgets._qt import (
    check_box,
    column,
    combo_box,
    link,
    pixel_word,
    read_only_table,
    row,
    single_shot,
    write_row,
)
from napari_agglo.widgets._scene import Scene
from napari_agglo.widgets.compare._comparison import Focus
from napari_agglo.widgets.compare._controller import CompareController

if TYPE_CHECKING:
    import pandas as pd

DIFFER = "differ"  # the name of the job
LISTED = 30  # differences, the largest
_REST = 300  # milliseconds without a move until the list is computed


class Differences(QWidget):
    """The choice of a panel to compare with the first, and the list of differences."""

    def __init__(self, controller: CompareController, scene: Scene) -> None:
        super().__init__()
        self._controller, self._scene = controller, scene
        self._rows: pd.DataFrame | None = None
        self.with_ = combo_box("differ from", "Panel to compare with the first one")
        self.with_.activated.connect(self._on_chosen)
        self.key = QLabel(
            f"<span style='color:{DIFFERENCES[1]}'>■</span> merged in the first, split here<br>"
            f"<span style='color:{DIFFERENCES[2]}'>■</span> split in the first, merged here<br>"
            f"<span style='color:{DIFFERENCES[3]}'>■</span> both"
        )
        self.key.setWordWrap(True)
        self.only = check_box(
            "show it alone in 3-D",
            "In 3-D, hide the segments outside the selected difference",
            "only these",
            lambda _: self._look_at(self.list.currentRow()),
        )
        tooltip = "The largest differences; select one to go there"
        self.list = read_only_table("differences", ("difference", "size", "bits"), tooltip)
        self.list.setMinimumHeight(120)
        self.list.currentCellChanged.connect(lambda row, *_: self.fly_to(row))
        top = row(QLabel("Differences from"), self.with_)
        top.setStretch(1, 1)
        column(self, top, self.key, self.only, self.list)
        self.only.setChecked(True)
        self._rest = single_shot(self._find, _REST)
        self._rest.setParent(self)  # stopped with the widget
        link(self.follow, controller.changed, controller.left)
        self.follow()

    def follow(self) -> None:
        """List the panels, and update the differences."""
        comparison = self._controller.comparison
        names = [] if comparison is None else [panel.name for panel in comparison.panels[1:]]
        shown = [self.with_.itemText(k) for k in range(1, self.with_.count())]
        if names != shown:
            self.with_.clear()
            self.with_.addItems(["nothing", *names])
        on = self._controller.other is not None
        self.key.setVisible(on)
        self.list.setVisible(on)
        ndim = 2 if comparison is None else comparison.pieces.image.ndim
        self.list.setHorizontalHeaderLabels(["difference", pixel_word(ndim), "bits"])
        self.only.setVisible(on and ndim > 2)
        if on:
            self._rest.start()

    def fly_to(self, row: int) -> None:
        """Centre the view on a difference."""
        if self._rows is None or not 0 <= row < len(self._rows):
            return
        one = self._rows.iloc[row]
        at = _voxel(one)
        ndim = len(at)
        box = [[int(one[f"box_{end}_{axis}"]) for axis in range(ndim)] for end in ("start", "stop")]
        half = np.maximum(np.subtract(box[1], box[0]), 24) / 2  # a small one is not enlarged
        self._look_at(row)
        self._scene.fly_to(at, (np.subtract(at, half), np.add(at, half)))

    def _look_at(self, row: int) -> None:
        """Show the segments of a difference alone, if the box is checked."""
        rows, other = self._rows, self._controller.other
        if rows is None or other is None or not 0 <= row < len(rows) or not self.only.isChecked():
            self._controller.look_at(None)
            return
        one = rows.iloc[row]
        self._controller.look_at(Focus(_voxel(one), 0 if one["kind"] == "merged" else other))

    def _on_chosen(self, index: int) -> None:
        self._controller.show_differences(index if index > 0 else None)
        self.follow()

    def _find(self) -> None:
        comparison, other = self._controller.comparison, self._controller.other
        if comparison is None or other is None:
            return
        work = comparison.differences(other)
        job = self._controller.project.jobs.start(
            DIFFER, "Finding differences", lambda p: work(p).largest(LISTED), self._show
        )
        if job is None:  # one runs for an earlier position: try again later
            self._rest.start()

    def _show(self, rows: pd.DataFrame) -> None:
        self._rows = rows
        with signals_blocked(self.list):
            self.list.setRowCount(len(rows))
            for at, one in enumerate(rows.itertuples()):
                text = (
                    f"{one.whole}: {one.part} merged with {one.main}"
                    if one.kind == "merged"
                    else f"{one.whole} here: {one.part} split from {one.main}"
                )
                write_row(self.list, at, (text, f"{one.size:,}", f"{one.bits:.4f}"))
            self.list.setCurrentCell(-1, -1)


def _voxel(one: pd.Series[Any]) -> tuple[int, ...]:
    return tuple(int(one[str(name)]) for name in one.index if str(name).startswith("voxel_"))
