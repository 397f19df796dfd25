"""Widget of the Evaluate step: curves, breakdown and measures against gold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from napari.utils.notifications import show_info
from qtpy.QtGui import QShowEvent
from qtpy.QtWidgets import QTableWidget, QWidget

from napari_agglo.agglomeration import threshold_phrase
from napari_agglo.evaluate import minimum
from napari_agglo.widgets._folded_text import FoldedText
from napari_agglo.widgets._progress_row import FailureLine, RunRow
from napari_agglo.widgets._project import Project
from napari_agglo.widgets._qt import (
    button,
    column,
    link,
    per_viewer,
    read_only_table,
    row,
    tab_widget,
    write_row,
)
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.evaluate._error_curves import Curves
from napari_agglo.widgets.evaluate._error_position import place_of
from napari_agglo.widgets.evaluate._live_errors import EVALUATE, NUMBERS, Comparison
from napari_agglo.widgets.evaluate._save_results import REPORT, Export
from napari_agglo.widgets.plots import BreakdownPlot

if TYPE_CHECKING:
    import pandas as pd

# Title and description of each column of `metrics`.
MEASURES = {
    "vi": ("VI (bits)", "Variation of information: false merge and false split together"),
    "false_merge": ("False merge (bits)", "H(gold | segments): objects merged by mistake"),
    "false_split": ("False split (bits)", "H(segments | gold): objects split by mistake"),
    "adapted_rand_error": ("Adapted Rand error", "1 - F of pairs of voxels; 0 is perfect"),
    "rand": ("Rand index", "Share of pairs of voxels with agreement; 1 is perfect"),
    "adjusted_rand": ("Adjusted Rand index", "Rand index beyond chance; 1 is perfect"),
    "fowlkes_mallows": ("Fowlkes-Mallows", "Mean of precision and recall of pairs; 1 is perfect"),
    "covering": ("Covering", "Overlap of gold objects with their best segments; 1 is perfect"),
    "cremi_score": ("CREMI score", "Score of the CREMI challenge; 0 is perfect"),
    "merges_needed": ("Merges needed", "Merges left for a proofreader"),
    "cuts_needed": ("Cuts needed", "Cuts left for a proofreader"),
    "segments": ("Segments", "In the whole image"),
    "gold_segments": ("Gold objects", "In the whole image"),
    "voxels": ("Voxels compared", "Voxels annotated in gold"),
}
_WHOLE = {"merges_needed", "cuts_needed", "segments", "gold_segments", "voxels"}


def numbers_table() -> QTableWidget:
    """Return a table of two columns: the measure, and its value."""
    tooltip = "All measures at this threshold; hover over one for its description"
    table = read_only_table("numbers", ("Measure", "Value"), tooltip)
    table.setRowCount(len(MEASURES))
    return table


def show_numbers(table: QTableWidget, numbers: pd.Series[float] | None) -> None:
    """Write the values of all measures, or dashes."""
    for at, (key, (name, tooltip)) in enumerate(MEASURES.items()):
        value = "–" if numbers is None else text_of(key, float(numbers[key]))
        write_row(table, at, (name, value), tooltip)


def text_of(key: str, value: float) -> str:
    """Return the text of a value.

    Examples
    --------
    >>> text_of("vi", 0.123456), text_of("voxels", 1234567.0)
    ('0.1235', '1,234,567')
    """
    return f"{value:,.0f}" if key in _WHOLE else f"{value:.4f}"


_OWN = " <b>On its own training data</b>: expect a larger error on other data."
_BEFORE = ", before the edits"
_WITHOUT = (
    " The curves show the hierarchy before the edits; <i>Save</i> writes curves, plots and report "
    "with the edits."
)
_WITH = " The curve with the edits is drawn too, until the next edit."


class EvaluateWidget(StepWidget):
    """Compare the segments with gold: measure the errors and locate them."""

    key = EVALUATE
    title = "Evaluate"
    purpose = "compare with gold labels: measure errors and locate them."
    hints = {  # noqa: RUF012
        Status.EMPTY: "Choose gold labels in step 1, Data, and build a hierarchy in step 3 to "
        "measure errors and locate them.",
        Status.READY: "Compare the hierarchy with the gold labels.",
        Status.STALE: "The gold labels have changed; compare with them again.",
        Status.DONE: "Drag along a curve to change the threshold. Click a dot of the breakdown to "
        "go to that error.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.comparison = per_viewer(self.viewer, Comparison)
        self.run = RunRow(
            self.project,
            self.key,
            "Compare with gold",
            "Count the overlaps of segments and gold; numbers and plots then follow the threshold",
            self.comparison.count,
        )
        tooltip = "Errors of the visible segments, in bits of VI: lower is better"
        self.summary = FoldedText("summary", tooltip, rich=True)
        self.curves = Curves(self.project, self.comparison)
        self.breakdown = BreakdownPlot()
        self.breakdown.picked.connect(self._on_picked)
        self.numbers = numbers_table()
        self.tabs = tab_widget(
            "evaluation",
            ("Split VI", "False merge against false split", self.curves.split),
            ("Threshold", "Errors at every threshold", self.curves.by_threshold),
            ("Breakdown", "The segments and gold objects with most errors", self.breakdown),
            ("Table", "All measures at this threshold", self.numbers),
        )
        least = "Set the threshold of the least VI against gold"
        self.least = button("Go to least VI", least, self.curves.go_to_least, "least")
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
        # In a widget of their own: hidden buttons in a bare row would narrow the step.
        self.buttons = QWidget()
        beside = row(self.least, self.export)
        beside.setStretch(0, 1)
        column(self.buttons, beside)
        self.failure = FailureLine(self.project, REPORT, NUMBERS)
        self.add(self.run, self.summary, self.tabs, self.buttons, self.failure)
        link(self._on_dataset, self.project.dataset_changed)
        link(self._on_hierarchy, self.project.hierarchy_changed, self.project.curve_changed)
        link(self._follow, self.project.threshold_changed, self.project.edited)
        link(self._on_numbers, self.comparison.changed)
        link(self._write_summary, self.curves.edited_drawn)
        self.follow_theme(self.curves.split, self.curves.by_threshold, self.breakdown)
        self._on_hierarchy()
        self._on_numbers()
        self.start()

    @staticmethod
    def idle_status(project: Project) -> Status:
        if project.curve is None:
            return Status.EMPTY if project.gold is None else Status.READY
        if project.is_painted(project.built) or project.lacks_data:
            return Status.STALE
        return Status.READY if project.shows_another_volume else Status.DONE

    def update_state(self, status: Status) -> None:
        known = self.project.curve is not None
        possible = self.project.tree is not None and self.project.gold is not None
        again = status is Status.STALE and not self.project.shows_another_volume
        self.run.setVisible(not known or status is Status.RUNNING or again)
        self.run.set_ready(possible, self.hint.text())
        for part in (self.summary, self.tabs, self.buttons):
            part.setVisible(known)

    def hint_for(self, status: Status) -> str:
        """Return the next thing to do."""
        if status is Status.EMPTY and self.project.tree is not None:
            return "Choose gold labels in step 1, Data, to measure errors and locate them."
        built, chosen = self.project.built, self.project.dataset
        known = self.project.curve is not None and status is not Status.RUNNING
        if known and built is not None and self.project.shows_another_volume:
            anew = "complete step 1" if chosen is None else f"build the hierarchy of {chosen.name}"
            return f"The errors are those of {built.regions.dataset.name}. For others, {anew}."
        return super().hint_for(status)

    def showEvent(self, event: QShowEvent | None) -> None:
        """Update the values that were not computed while the step was hidden."""
        super().showEvent(event)
        self._on_dataset()
        self._follow()

    def _on_dataset(self) -> None:
        if self.isVisible():
            self.comparison.adopt_gold()

    def _on_hierarchy(self) -> None:
        self.curves.draw()
        self._follow()

    def _follow(self) -> None:
        """Move points and lines at once; numbers and dots follow after a pause."""
        self.curves.follow()
        self._write_summary()
        if self.isVisible():
            self.comparison.want()

    def _on_numbers(self) -> None:
        show_numbers(self.numbers, self.comparison.numbers)
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
        edited = self.curves.edits.exists
        ticks = self.project.ticks
        first = -math.inf if ticks is None else ticks.first
        text = (
            f"<b>VI {merge + split:.3f}</b> = {merge:.3f} false merge + {split:.3f} false split "
            f"{threshold_phrase(self.project.threshold, first)}. "
            f"Least by threshold{_BEFORE if edited else ''}: {least:.3f}."
        )
        if self.project.built is not None and self.project.built.training:
            text += _OWN
        if edited:
            text += _WITH if self.curves.has_edited else _WITHOUT
        self.summary.setText(text)

    def _on_picked(self, kind: str, one: Any) -> None:
        errors, graph = self.comparison.breakdown, self.project.graph
        if errors is None or graph is None:
            return
        place = place_of(errors, kind, int(one), graph, self.project.table())
        if place is None:
            show_info("This segment no longer exists; the plot is being updated.")
            return
        self.scene.show()
        self.project.select(place.active)
        self.scene.mark(place.partners)
        self.scene.fly_to(place.index, place.box)
