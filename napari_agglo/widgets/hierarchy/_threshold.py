"""Controls of the threshold: slider, spin boxes, keys and a player."""

# In its own file: the threshold control, apart from the view and the exports of the step.

from __future__ import annotations

import math
from functools import partial
from typing import Any

from qtpy.QtCore import QTimer
from qtpy.QtGui import QHideEvent
from qtpy.QtWidgets import QDoubleSpinBox, QFormLayout, QSpinBox, QWidget
from superqt.utils import signals_blocked

from napari_agglo.agglomeration import BEFORE, is_before, threshold_text
from napari_agglo.widgets._key_bindings import KeyBindings
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import column, combo_box, link, named, per_viewer, row, tool_button
from napari_agglo.widgets.hierarchy._slider import Mark, MarkedSlider

_DIGITS = 15  # after the point
_PLAY = "Play the merges step by step, from this threshold to the end"
_SPEEDS = {"slow": 200, "normal": 80, "fast": 30}  # milliseconds between two steps


class Player(QWidget):
    """A button that moves the threshold step by step to the end, and a choice of speed."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self.button = tool_button("▶", _PLAY, "play", checkable=True)
        self.button.toggled.connect(self._on_toggled)
        self.speed = combo_box("speed", "Speed of the player", _SPEEDS)
        self.speed.setCurrentText("normal")
        self._timer = QTimer(self)
        self.speed.currentTextChanged.connect(lambda t: self._timer.setInterval(_SPEEDS[t]))
        self._timer.timeout.connect(self._on_tick)
        column(self, row(self.button, self.speed))

    @property
    def playing(self) -> bool:
        """Whether the player runs."""
        return self._timer.isActive()

    def stop(self) -> None:
        """Stop the player, if it runs."""
        self.button.setChecked(False)

    def hideEvent(self, event: QHideEvent | None) -> None:
        """Stop when the step is closed and the button with it."""
        self.stop()
        super().hideEvent(event)

    def _at_end(self) -> bool:
        ticks = self._project.ticks
        return ticks is None or ticks.merges(self._project.threshold) >= ticks.last

    def _on_toggled(self, on: bool) -> None:
        self.button.setText("⏸" if on else "▶")
        self.button.setToolTip("Pause" if on else _PLAY)
        if not on:
            self._timer.stop()
            return
        ticks = self._project.ticks
        if ticks is not None and self._at_end():
            self._project.threshold = ticks.threshold(0)  # from the beginning again
        self._timer.start(_SPEEDS[self.speed.currentText()])

    def _on_tick(self) -> None:
        if self._at_end():
            self.stop()
        elif self._project.worker.settled:  # not while the hierarchy above edits is repaired
            self._project.step(+1)


class ThresholdBox(QDoubleSpinBox):
    """A number with the digits that tell its state from the next, or the words before any merge."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self.setDecimals(_DIGITS)

    def textFromValue(self, value: float) -> str:
        """Return the text of a number; the box itself knows no number between 0 and below 0."""
        shown, ticks = self._project.threshold, self._project.ticks
        if is_before(shown) and value == 0:
            return BEFORE
        first = -math.inf if ticks is None else ticks.first
        text = threshold_text(round(value, _DIGITS) + 0.0, first)
        return text.replace(".", self.locale().decimalPoint())


HALF, LEAST = "0.5", "least VI"


class Scale(QWidget):
    """Controls of `Project.threshold`, which also follow changes by other parts."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self._project = project
        self.slider = MarkedSlider()
        self.slider.setToolTip(
            "Threshold: fine on the left, coarse on the right. Keys A and D on the canvas move it "
            "by a step, with Shift by one merge."
        )
        self.slider.moved.connect(self._on_slider)
        self.slider.marked.connect(self._on_mark)
        tooltip = "Threshold: regions are merged up to this priority"
        self.threshold = named(ThresholdBox(project), "threshold", tooltip)
        self.threshold.setSingleStep(0.01)
        self.threshold.setKeyboardTracking(False)
        self.threshold.valueChanged.connect(partial(setattr, project, "threshold"))
        count = "Number of segments; type another to change the threshold"
        self.segments = named(QSpinBox(), "segments", count)
        self.segments.setKeyboardTracking(False)
        self.segments.setGroupSeparatorShown(True)
        self.segments.valueChanged.connect(self._on_segments_typed)
        self.player = Player(project)
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

    # From the project to the controls.

    def _on_hierarchy(self) -> None:
        tree, ticks = self._project.tree, self._project.ticks
        self.setEnabled(tree is not None)
        if ticks is None or tree is None:
            self.player.stop()
            return
        self.slider.set_range(ticks.end, ticks.step)
        low, high = ticks.span
        with signals_blocked(self.threshold), signals_blocked(self.segments):
            self.threshold.setRange(low, high)
            self.segments.setRange(0, tree.n_superpixels)
        self._set_marks()
        self._follow()

    def _set_marks(self) -> None:
        ticks, least = self._project.ticks, self._project.least_vi
        if ticks is None:
            return
        half = ticks.place(ticks.merges(0.5))
        marks = [Mark(half, HALF, "Go to 0.5, the threshold of a learned policy")]
        if least is not None:
            there = ticks.place(ticks.merges(least))
            marks.append(Mark(there, LEAST, "Go to the least VI against gold"))
        self.slider.marks.set_marks(*marks)

    def _follow(self) -> None:
        ticks = self._project.ticks
        if ticks is None:
            return
        self.slider.set_value(ticks.place(ticks.merges(self._project.threshold)))
        with signals_blocked(self.threshold):
            self.threshold.setValue(self._project.threshold)
        self._show_segments()

    def _show_segments(self) -> None:
        n = self._project.n_segments
        with signals_blocked(self.segments):
            self.segments.setMaximum(max(n, self.segments.maximum()))  # after divisions
            self.segments.setValue(n)

    # From the controls to the project.

    def _on_slider(self, place: int) -> None:
        ticks = self._project.ticks
        if ticks is not None:
            now, there = ticks.merges(self._project.threshold), ticks.state(place)
            by = place - ticks.place(now)
            if abs(by) == ticks.step:  # probably an arrow key
                there = ticks.stepped(now, 1 if by > 0 else -1)
            self._project.threshold = ticks.threshold(there)

    def _on_mark(self, text: str) -> None:
        at = 0.5 if text == HALF else self._project.least_vi
        if at is not None:
            self._project.threshold = at

    def _on_segments_typed(self, n_segments: int) -> None:
        tree, ticks = self._project.tree, self._project.ticks
        if ticks is not None and tree is not None:
            self._project.threshold = ticks.threshold(tree.n_superpixels - n_segments)
            self._follow()  # within a plateau no threshold has that number


class ThresholdKeys:
    """Keys on the canvas that move the threshold; one object per viewer."""

    def __init__(self, viewer: Any) -> None:
        step = per_viewer(viewer, Project).step
        # The keys are never restored, so that no object refers to the viewer.
        KeyBindings().bind(
            viewer,
            {
                "step down": lambda: step(-1),
                "step up": lambda: step(+1),
                "merge down": lambda: step(-1, single=True),
                "merge up": lambda: step(+1, single=True),
            },
        )
