"""The Evaluate step as a widget."""

from __future__ import annotations

from typing import Any

from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QTabWidget, QWidget

from napari_agglo.evaluate import minimum
from napari_agglo.widgets._links import link
from napari_agglo.widgets._notices import tell
from napari_agglo.widgets._run_row import RunRow
from napari_agglo.widgets._step_widget import StepWidget
from napari_agglo.widgets._steps import Status, Step
from napari_agglo.widgets._theme import theme_colours
from napari_agglo.widgets._viewer_links import link_viewer
from napari_agglo.widgets.evaluate._comparison import comparison_of
from napari_agglo.widgets.evaluate._curves import Curves
from napari_agglo.widgets.evaluate._export import Export
from napari_agglo.widgets.evaluate._numbers import Numbers
from napari_agglo.widgets.evaluate._pointing import place_of
from napari_agglo.widgets.plots import BreakdownPlot

_BEFORE = ", before the edits"
_WITHOUT = (
    " The curves are of the hierarchy before the edits; <i>Save</i> writes curves, plots and "
    "report with them."
)
_WITH = " A curve with the edits is drawn, too, until the next one."


class EvaluateWidget(StepWidget):
    """Compare what is seen with gold: how wrong it is, and where."""

    step = Step.EVALUATE
    hints = {  # noqa: RUF012
        Status.EMPTY: "Give gold labels in step 1, Data, and build a hierarchy in step 3 to see "
        "what is wrong, and where.",
        Status.READY: "Compare the hierarchy with the gold labels.",
        Status.STALE: "The gold labels were painted since: compare with them again.",
        Status.DONE: "Drag along a curve to change the threshold. Click a dot of the breakdown to "
        "fly there.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.comparison = comparison_of(self.project)
        self.run = RunRow(
            self.project,
            self.step.value,
            "Compare with gold",
            "Count what segments and gold share; numbers and plots then follow the threshold",
            self.comparison.count,
        )
        self.summary = QLabel()
        self.summary.setObjectName("summary")
        self.summary.setWordWrap(True)
        self.summary.setToolTip("Errors of what is seen now, in bits")
        self.curves = Curves(self.project, self.comparison)
        self.breakdown = BreakdownPlot()
        self.breakdown.picked.connect(self._on_picked)
        self.numbers = Numbers()
        self.tabs = QTabWidget()
        self.tabs.setObjectName("evaluation")
        for name, part in (
            ("Split VI", self.curves.split),
            ("Threshold", self.curves.by_threshold),
            ("Breakdown", self.breakdown),
            ("Numbers", self.numbers),
        ):
            self.tabs.addTab(part, name)
        self.least = QPushButton("Go to least VI")
        self.least.setObjectName("least")
        self.least.setToolTip("Set the threshold where VI against gold is least")
        self.least.clicked.connect(self.curves.go_to_least)
        self.export = Export(
            self.project,
            self.comparison,
            self.curves,
            {
                "split-vi": self.curves.split,
                "vi-by-threshold": self.curves.by_threshold,
                "vi-breakdown": self.breakdown,
            },
        )
        # In a widget of their own: a row of hidden buttons alone would make the step as narrow.
        self.buttons = QWidget()
        row = QHBoxLayout(self.buttons)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.least, 1)
        row.addWidget(self.export)
        for widget in (self.run, self.summary, self.tabs, self.buttons):
            self.body.addWidget(widget)
        link(self, self.project.material_changed, self._on_material)
        for signal in (self.project.hierarchy_changed, self.project.curve_changed):
            link(self, signal, self._on_hierarchy)
        link(self, self.project.threshold_changed, self._follow)
        link(self, self.project.edited, self._follow)
        link(self, self.comparison.changed, self._on_numbers)
        link(self, self.curves.edited_drawn, self._write_summary)
        link_viewer(self, self.viewer.events.theme, self._paint)
        self._paint()
        self._on_hierarchy()
        self._on_numbers()
        self.start()

    def update_state(self, status: Status) -> None:
        known = self.project.curve is not None
        possible = self.project.tree is not None and self.project.gold is not None
        self.run.setVisible(not known or status in (Status.RUNNING, Status.STALE))
        self.run.set_ready(possible, self.hint.text())
        for part in (self.summary, self.tabs, self.buttons):
            part.setVisible(known)

    def hint_for(self, status: Status) -> str:
        """Say what is missing."""
        if status is Status.EMPTY and self.project.tree is not None:
            return "Give gold labels in step 1, Data, to see what is wrong, and where."
        return super().hint_for(status)

    def showEvent(self, event: QShowEvent | None) -> None:
        """Bring it up to date: now it is looked at."""
        super().showEvent(event)
        self._on_material()
        self._follow()

    def _on_material(self) -> None:
        if self.isVisible():
            self.comparison.adopt_gold()

    def _on_hierarchy(self) -> None:
        self.curves.draw()
        self._follow()

    def _follow(self) -> None:
        """Move points and lines at once; numbers and dots follow when it has come to rest."""
        self.curves.follow()
        self._write_summary()
        if self.isVisible():
            self.comparison.want()

    def _on_numbers(self) -> None:
        self.numbers.show_numbers(self.comparison.numbers)
        self.breakdown.set_breakdown(self.comparison.breakdown)
        self.curves.follow()
        self._write_summary()

    def _write_summary(self) -> None:
        errors = self.curves.errors()
        if errors is None or self.project.curve is None:
            self.summary.setText("")
            return
        merge, split = errors
        least = minimum(self.project.curve)["vi"]
        edited = self.curves.edits.there
        text = (
            f"<b>VI {merge + split:.3f}</b> = {merge:.3f} false merge + {split:.3f} false split "
            f"at {self.project.threshold:.4g}. Least by threshold{_BEFORE if edited else ''}: "
            f"{least:.3f}."
        )
        if edited:
            text += _WITH if self.curves.has_edited else _WITHOUT
        self.summary.setText(text)

    def _on_picked(self, kind: str, one: Any) -> None:
        found, graph = self.comparison.breakdown, self.project.graph
        if found is None or graph is None:
            return
        place = place_of(found, kind, int(one), graph, self.project.table())
        if place is None:
            tell("That segment is no longer there; the plot will follow in a moment.")
            return
        self.scene.show()
        self.project.select(place.active)
        self.scene.mark(place.partners)
        self.scene.fly_to(place.index, place.box)

    def _paint(self) -> None:
        colours = theme_colours(self.viewer)
        self.curves.set_theme(*colours)
        self.breakdown.set_theme(*colours)
