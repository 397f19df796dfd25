"""Controls of the threshold: slider, number, segments, keys, player."""

# In its own file: one control of the dock, which a user can name.

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from qtpy.QtCore import QTimer
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import QDoubleSpinBox, QFormLayout, QSpinBox, QWidget
from superqt.utils import signals_blocked

from napari_agglo.evaluate import minimum
from napari_agglo.widgets._keys import KeyBindings
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import column, combo_box, link, named, per_viewer, row, tool_button
from napari_agglo.widgets.hierarchy._slider import Mark, MarkedSlider, Ticks

_PLAY = "Play: merge step by step, from here to the end"
_SPEEDS = {"slow": 200, "normal": 80, "fast": 30}  # milliseconds between two steps


class Player(QWidget):
    """A button that goes step by step to the end, and a choice of how fast."""

    def __init__(self, project: Project, step: Callable[[int], object]) -> None:
        super().__init__()
        self._project, self._step = project, step
        self.button = tool_button("▶", _PLAY, "play", checkable=True)
        self.button.toggled.connect(self._on_toggled)
        self.speed = combo_box("speed", "How fast to play", _SPEEDS)
        self.speed.setCurrentText("normal")
        self._timer = QTimer(self)
        self.speed.currentTextChanged.connect(lambda t: self._timer.setInterval(_SPEEDS[t]))
        self._timer.timeout.connect(self._on_tick)
        column(self, row(self.button, self.speed))

    @property
    def playing(self) -> bool:
        """Whether it runs."""
        return self._timer.isActive()

    def stop(self) -> None:
        """Stop it, if it runs."""
        self.button.setChecked(False)

    def hideEvent(self, event: QHideEvent | None) -> None:
        """Stop when the step is closed: nobody could stop it there."""
        self.stop()
        super().hideEvent(event)

    def _ticks(self) -> Ticks | None:
        tree = self._project.tree
        return None if tree is None else Ticks(tree.heights)

    def _on_toggled(self, on: bool) -> None:
        self.button.setText("⏸" if on else "▶")
        self.button.setToolTip("Pause" if on else _PLAY)
        if not on:
            self._timer.stop()
            return
        ticks = self._ticks()
        if ticks is not None and ticks.merges(self._project.threshold) >= ticks.last:
            self._project.threshold = ticks.threshold(0)  # from the beginning again
        self._timer.start(_SPEEDS[self.speed.currentText()])

    def _on_tick(self) -> None:
        ticks = self._ticks()
        if ticks is None or ticks.merges(self._project.threshold) >= ticks.last:
            self.stop()
        elif self._project.worker.settled:  # not while the way above edits is being repaired
            self._step(+1)


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
        done = "The threshold: merges of a priority up to this are done"
        self.threshold = named(QDoubleSpinBox(), "threshold", done)
        self.threshold.setDecimals(4)
        self.threshold.setSingleStep(0.01)
        self.threshold.setKeyboardTracking(False)
        self.threshold.valueChanged.connect(partial(setattr, project, "threshold"))
        count = "How many segments there are; type a number to go there"
        self.segments = named(QSpinBox(), "segments", count)
        self.segments.setKeyboardTracking(False)
        self.segments.setGroupSeparatorShown(True)
        self.segments.valueChanged.connect(self._on_segments_typed)
        self.player = Player(project, self.step)
        lines = QFormLayout()
        lines.setContentsMargins(0, 0, 0, 0)
        lines.setSpacing(4)
        for title, control in (
            ("Threshold", self.threshold), ("Segments", self.segments), ("Play", self.player)
        ):  # fmt: skip
            lines.addRow(title, control)
        column(self, self.slider, lines)
        link(self._on_hierarchy, project.hierarchy_changed)
        link(self._set_marks, project.curve_changed)
        link(self._follow, project.threshold_changed)
        link(self._show_segments, project.edited)
        self._on_hierarchy()

    def paint(self, foreground: str) -> None:
        """Draw the marks in the colour of words."""
        self.slider.marks.set_colour(foreground)

    def step(self, direction: int, *, single: bool = False) -> None:
        """Go a step up or down, or a single merge."""
        if self._ticks is not None:
            step(self._project, self._ticks, direction, single=single)

    # From the project to the controls.

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
        self.slider.set_value(self._ticks.merges(self._project.threshold))
        with signals_blocked(self.threshold):
            self.threshold.setValue(self._project.threshold)
        self._show_segments()

    def _show_segments(self) -> None:
        n = self._project.n_segments
        with signals_blocked(self.segments):
            self.segments.setMaximum(max(n, self.segments.maximum()))  # some may be divided
            self.segments.setValue(n)

    # From the controls to the project.

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

    def _on_segments_typed(self, n_segments: int) -> None:
        tree = self._project.tree
        if self._ticks is not None and tree is not None:
            merges = tree.n_superpixels - n_segments
            self._project.threshold = self._ticks.threshold(merges)
            self._follow()  # within a plateau the number that was typed cannot be had


def step(project: Project, ticks: Ticks, direction: int, *, single: bool = False) -> None:
    """Move the threshold of a project by a step of merges, up (+1) or down (-1)."""
    by = direction * (1 if single else ticks.step)
    project.threshold = ticks.threshold(ticks.moved(ticks.merges(project.threshold), by))


class ThresholdKeys:
    """Keys that move the threshold, from wherever the mouse is on the canvas; one per viewer."""

    def __init__(self, viewer: Any) -> None:
        self._project = per_viewer(viewer, Project)
        # The keys are never given back, so that nothing holds the viewer.
        KeyBindings().bind(
            viewer,
            {
                "step down": lambda: self._move(-1),
                "step up": lambda: self._move(+1),
                "merge down": lambda: self._move(-1, single=True),
                "merge up": lambda: self._move(+1, single=True),
            },
        )

    def _move(self, direction: int, single: bool = False) -> None:
        tree = self._project.tree
        if tree is not None:
            step(self._project, Ticks(tree.heights), direction, single=single)
