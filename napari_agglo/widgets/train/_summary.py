"""Summary of a training: a few sentences, and plots."""

# In its own file: one panel of the dock, which a user can name.

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QWidget

from napari_agglo.policy import LearnedPolicy, policy_record
from napari_agglo.widgets._qt import column, label, tab_widget
from napari_agglo.widgets.plots import EpochPlot, ImportancePlot, ReliabilityPlot
from napari_agglo.widgets.train._trainer import EpochError, Trainer


class Summary(QWidget):
    """A few lines, and three plots behind tabs."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__()
        self._trainer = trainer
        self._drawn: list[EpochError] = []
        self._record: Any = None
        self.words = label("training summary")
        self.epochs = EpochPlot()
        self.reliability = ReliabilityPlot()
        self.importances = ImportancePlot()
        calibration = "Predicted against observed probability of a merge"
        self.tabs = tab_widget(
            "training plots",
            ("VI by epoch", "Error at 0.5, on the volumes of the training", self.epochs),
            ("Calibration", calibration, self.reliability),
            ("Features", "The features with most influence on the policy", self.importances),
        )
        self.tabs.setFixedHeight(250)
        column(self, self.words, self.tabs, spacing=6)

    def follow(self, policy: Any, running: bool) -> None:
        """Show the errors so far, or the summary of the policy."""
        errors = self._trainer.errors
        if errors[: len(self._drawn)] != self._drawn or len(errors) < len(self._drawn):
            self.epochs.clear()
            self._drawn = []
        for one in errors[len(self._drawn) :]:
            self.epochs.add(one.epoch, one.false_merge, one.false_split)
        self._drawn = list(errors)
        record = policy_record(policy)
        if record is not self._record:
            self._record = record
            self.reliability.set_record(record)
            self.importances.set_record(record)
        self.words.setText("" if record is None or running else describe(policy, errors))
        self.words.setVisible(bool(self.words.text()))
        self.tabs.setVisible(running or record is not None)

    def set_theme(self, background: str, foreground: str) -> None:
        """Follow napari's colours."""
        for plot in (self.epochs, self.reliability, self.importances):
            plot.set_theme(background, foreground)


def describe(policy: LearnedPolicy, errors: list[EpochError]) -> str:
    """Return sentences on a policy: its training, its features, its accuracy.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> features = SimpleNamespace(preset="em", cues=("boundary",))
    >>> record = {"strategy": "flat", "classifier": "forest", "examples": 1200, "accuracy": 0.93,
    ...           "held_out": True}
    >>> print(describe(SimpleNamespace(features=features, record=record), []))
    flat, forest, em features of boundary. 1,200 examples. 93.0 % of held-out examples right.
    """
    record = policy.record
    epochs = record.get("epochs")
    how = f"{record.get('strategy', 'learned')}"
    many = "" if epochs == 1 else "s"
    how += f" ({epochs} epoch{many})" if epochs else ""
    cues = ", ".join(policy.features.cues)
    lines = [
        f"{how}, {record.get('classifier', 'classifier')}, {policy.features.preset} features of "
        f"{cues}."
    ]
    if "examples" in record:
        lines.append(f"{record['examples']:,} examples.")
    if "accuracy" in record:
        whose = "held-out" if record.get("held_out") else "training"
        lines.append(f"{100 * record['accuracy']:.1f} % of {whose} examples right.")
    if errors:
        last = errors[-1]
        vi = last.false_merge + last.false_split
        lines.append(
            f"VI at 0.5 where it was trained, which flatters: {vi:.2f} bits "
            f"({last.false_merge:.2f} false merge, {last.false_split:.2f} false split)."
        )
    return " ".join(lines)
