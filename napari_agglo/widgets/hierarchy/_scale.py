"""The scale that is looked at: slider, threshold, number of segments, keys, player."""

from __future__ import annotations

from qtpy.QtWidgets import (
    QDoubleSpinBox,
    QGridLayout,
    QLabel,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)
from superqt.utils import signals_blocked

from napari_agglo.evaluate import minimum
from napari_agglo.widgets._links import link
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.hierarchy._player import Player
from napari_agglo.widgets.hierarchy._slider import Mark, MarkedSlider
from napari_agglo.widgets.hierarchy._ticks import Ticks

HALF, LEAST = "0.5", "least VI"


class Scale(QWidget):
    """Controls of `Project.threshold`; all of them follow it, whoever changes it."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self._ticks = Ticks(project.tree.heights) if project.tree is not None else None
        self.slider = MarkedSlider()
        self.slider.setToolTip(
            "How much is merged: fine on the left, coarse on the right. Equal steps are equal "
            "numbers of merges. Keys A and D do the same from the canvas, with Shift one merge "
            "at a time."
        )
        self.slider.moved.connect(self._on_slider)
        self.slider.marked.connect(self._on_mark)
        self.threshold = QDoubleSpinBox()
        self.threshold.setObjectName("threshold")
        self.threshold.setDecimals(4)
        self.threshold.setSingleStep(0.01)
        self.threshold.setKeyboardTracking(False)
        self.threshold.setToolTip("The threshold: merges of a priority up to this are done")
        self.threshold.valueChanged.connect(self._on_threshold_typed)
        self.segments = QSpinBox()
        self.segments.setObjectName("segments")
        self.segments.setKeyboardTracking(False)
        self.segments.setGroupSeparatorShown(True)
        self.segments.setToolTip("How many segments there are; type a number to go there")
        self.segments.valueChanged.connect(self._on_segments_typed)
        self.player = Player(project, self.step)
        self._lay_out()
        link(self, project.hierarchy_changed, self._on_hierarchy)
        link(self, project.curve_changed, self._set_marks)
        link(self, project.threshold_changed, self._follow)
        link(self, project.edited, self._follow)
        self._on_hierarchy()

    def paint(self, foreground: str) -> None:
        """Draw the marks in the colour of words."""
        self.slider.marks.set_colour(foreground)

    def step(self, direction: int, *, single: bool = False) -> None:
        """Go a step up or down, or a single merge."""
        if self._ticks is not None:
            step(self._project, self._ticks, direction, single=single)

    def _lay_out(self) -> None:
        grid = QGridLayout()
        grid.setContentsMargins(0, 0, 0, 0)
        grid.addWidget(QLabel("Threshold"), 0, 0)
        grid.addWidget(self.threshold, 0, 1)
        grid.addWidget(QLabel("Segments"), 1, 0)
        grid.addWidget(self.segments, 1, 1)
        grid.addWidget(self.player, 0, 2, 2, 1)
        grid.setColumnStretch(1, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.slider)
        column.addLayout(grid)

    # What the project says.

    def _on_hierarchy(self) -> None:
        tree = self._project.tree
        self._ticks = None if tree is None else Ticks(tree.heights)
        self.setEnabled(tree is not None)
        if self._ticks is None or tree is None:
            self.player.stop()
            return
        self.slider.set_range(self._ticks.last, self._ticks.step)
        low, high = self._ticks.span
        with signals_blocked(self.threshold), signals_blocked(self.segments):
            self.threshold.setRange(low, high)
            self.segments.setRange(0, tree.n_superpixels)
        self._set_marks()
        self._follow()

    def _set_marks(self) -> None:
        if self._ticks is None:
            return
        marks = [Mark(self._ticks.merges(0.5), HALF, "Go to 0.5, where a learned policy is even")]
        if self._project.curve is not None:
            at = minimum(self._project.curve)["threshold"]
            marks.append(
                Mark(self._ticks.merges(at), LEAST, "Go where the VI against gold is least")
            )
        self.slider.marks.set_marks(*marks)

    def _follow(self) -> None:
        if self._ticks is None:
            return
        at, n = self._project.threshold, self._project.n_segments
        self.slider.set_value(self._ticks.merges(at))
        with signals_blocked(self.threshold), signals_blocked(self.segments):
            self.threshold.setValue(at)
            self.segments.setMaximum(max(n, self.segments.maximum()))  # some may be divided
            self.segments.setValue(n)

    # What a person says.

    def _on_slider(self, merges: int) -> None:
        if self._ticks is not None:
            now = self._ticks.merges(self._project.threshold)
            if abs(merges - now) == self.slider.slider.singleStep():  # an arrow key, maybe
                merges = self._ticks.moved(now, merges - now)
            self._project.threshold = self._ticks.threshold(merges)

    def _on_mark(self, text: str) -> None:
        if text == HALF:
            self._project.threshold = 0.5
        elif self._ticks is not None and self._project.curve is not None:
            at = minimum(self._project.curve)["threshold"]
            self._project.threshold = self._ticks.threshold(self._ticks.merges(at))

    def _on_threshold_typed(self, threshold: float) -> None:
        self._project.threshold = threshold

    def _on_segments_typed(self, wanted: int) -> None:
        tree = self._project.tree
        if self._ticks is not None and tree is not None:
            merges = tree.n_superpixels - wanted
            self._project.threshold = self._ticks.threshold(merges)
            self._follow()  # within a plateau the number that was typed cannot be had


def step(project: Project, ticks: Ticks, direction: int, *, single: bool = False) -> None:
    """Move the threshold of a project by a step of merges, up (+1) or down (-1)."""
    by = direction * (1 if single else ticks.step)
    project.threshold = ticks.threshold(ticks.moved(ticks.merges(project.threshold), by))
