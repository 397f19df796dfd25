"""The Train step as a widget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)
from superqt import QCollapsible

from napari_agglo.policy import MeanPolicy, load_policy, policy_record, save_policy
from napari_agglo.widgets._jobs import RunRow
from napari_agglo.widgets._project import Project, Trained
from napari_agglo.widgets._qt import (
    close_up,
    link,
    link_viewer,
    per_viewer,
    tell,
    tell_error,
    theme_colours,
)
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.train._summary import Summary
from napari_agglo.widgets.train._trainer import TRAIN, Trainer

# The policy as a file: load one, save one, or do without.


FILES = "policy file"  # the name of the job
_FILTER = "Agglo policy (*.npz)"


class FilesPart(QWidget):
    """Three buttons."""

    def __init__(self, project: Project, trainer: Trainer) -> None:
        super().__init__()
        self._project, self._trainer = project, trainer
        self.load = _button("Load…", "Use a policy that was trained before, on these cues")
        self.save = _button("Save…", "Write the policy to a file, to use it on other data")
        self.mean = _button(
            "Use the mean", "Merge by the mean of the boundary cue, without what was learned"
        )
        self.load.clicked.connect(self._load)
        self.save.clicked.connect(self._save)
        self.mean.clicked.connect(self._mean)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        for button in (self.load, self.save, self.mean):
            row.addWidget(button)

    def follow(self) -> None:
        """Offer what can be done."""
        learned = policy_record(self._project.policy) is not None
        self.save.setEnabled(learned)
        self.mean.setEnabled(learned)

    def _load(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Load a policy", "", _FILTER)
        if path:
            self._run("Reading the policy", lambda: load_policy(path), self._take)

    def _take(self, policy: Any) -> None:
        self._trainer.forget()
        self._project.trained = Trained(policy)

    def _save(self) -> None:
        policy = self._project.policy
        path, _ = QFileDialog.getSaveFileName(self, "Save the policy", "policy.npz", _FILTER)
        if path:
            target = Path(path) if path.endswith(".npz") else Path(f"{path}.npz")
            self._run("Saving the policy", lambda: save_policy(policy, target), _say_saved)

    def _mean(self) -> None:
        self._trainer.forget()
        self._project.trained = Trained(MeanPolicy())

    def _run(self, title: str, work: Any, done: Any) -> None:
        self._project.jobs.start(FILES, title, lambda _: work(), done, tell_error)


def _say_saved(path: Path) -> None:
    tell(f"The policy is saved: {path}")


def _button(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(text.strip("…").lower())
    button.setToolTip(tip)
    return button


# How to learn: what matters first, the rest folded away.


_STRATEGIES = (
    ("agglo", "Learn while merging, epoch by epoch, from regions of every size. The best choice."),
    ("flat", "Learn from the superpixels alone. Quick, and often nearly as good."),
    ("lash", "Learn from every merge that the policy proposes, right or wrong; the last epoch."),
    ("mixed", "The examples of agglo and of lash together."),
)
_PRESETS = (
    ("em", "All features: moments, quantiles and histograms of every cue, shape and contact."),
    ("minimal", "Few features: quick, and enough for a first look."),
    ("natural", "As em, with more quantiles and the angles of regions; for natural images."),
)
_CLASSIFIERS = (
    ("forest", "A random forest. The best choice."),
    ("logistic", "Logistic regression: small and quick, but it knows no combinations."),
)


class OptionsPart(QWidget):
    """Shows the options of a trainer, and lets them be changed."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__()
        self._trainer = trainer
        self.strategy = _box("strategy", "How examples are collected", _STRATEGIES)
        self.epochs = _spin("epochs", 1, 50, "How many times the volume is merged and learned from")
        self.preset = _box("preset", "What the policy looks at", _PRESETS)
        self.classifier = _box("classifier", "What is fitted to the examples", _CLASSIFIERS)
        self.seed = _spin("seed", 0, 2**31 - 1, "Same data and seed, same policy, bit for bit")
        for name in ("strategy", "preset", "classifier"):
            box = getattr(self, name)
            box.currentTextChanged.connect(lambda text, n=name: self._set(n, text))
        for name in ("epochs", "seed"):
            spin = getattr(self, name)
            spin.valueChanged.connect(lambda value, n=name: self._set(n, value))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        first = QFormLayout()
        first.addRow("Strategy", self.strategy)
        first.addRow("Epochs", self.epochs)
        layout.addLayout(first)
        self.more = QCollapsible("More")
        self.more.setObjectName("more training")
        self.more.setToolTip("Features, classifier and seed")
        self.more.setDuration(0)
        inner = QWidget()
        rest = QFormLayout(inner)
        rest.setContentsMargins(0, 0, 0, 0)
        rest.addRow("Features", self.preset)
        rest.addRow("Classifier", self.classifier)
        rest.addRow("Seed", self.seed)
        self.more.setContent(inner)
        close_up(self.more)
        self.more.collapse(animate=False)
        layout.addWidget(self.more)
        self.follow()

    def follow(self) -> None:
        """Show the options."""
        options = self._trainer.options
        for name in ("strategy", "preset", "classifier"):
            getattr(self, name).setCurrentText(getattr(options, name))
        for name in ("epochs", "seed"):
            getattr(self, name).setValue(getattr(options, name))
        self.epochs.setEnabled(options.strategy != "flat")

    def _set(self, name: str, value: Any) -> None:
        if getattr(self._trainer.options, name) != value:
            self._trainer.options = replace(self._trainer.options, **{name: value})
            self._trainer.changed.emit()


def _box(name: str, tip: str, choices: tuple[tuple[str, str], ...]) -> QComboBox:
    box = QComboBox()
    box.setObjectName(name)
    box.setAccessibleName(name)
    for at, (text, what) in enumerate(choices):
        box.addItem(text)
        box.setItemData(at, what, Qt.ItemDataRole.ToolTipRole)
    lines = "".join(f"<li><b>{text}</b>: {what}</li>" for text, what in choices)
    box.setToolTip(f"{tip}:<ul>{lines}</ul>")
    return box


def _spin(name: str, low: int, high: int, tip: str) -> QSpinBox:
    spin = QSpinBox()
    spin.setObjectName(name)
    spin.setAccessibleName(name)
    spin.setRange(low, high)
    spin.setToolTip(tip)
    spin.setKeyboardTracking(False)
    return spin


class TrainWidget(StepWidget):
    """Learn from gold labels which regions to merge."""

    key = TRAIN
    title = "Train"
    purpose = "learn from the gold labels which regions to merge. Optional."
    hints = {  # noqa: RUF012 - what to do next
        Status.EMPTY: "Optional. To learn which regions to merge, choose gold labels in step 1, "
        "Data, or load a policy. Without one, step 3 merges by the mean of the boundary cue.",
        Status.READY: "Optional. Train learns from the gold labels which regions to merge; "
        "without it, step 3 merges by the mean of the boundary cue.",
        Status.RUNNING: "Training. The curve shows how wrong the policy is after each epoch.",
        Status.STALE: "The policy was trained on other data than are chosen now. Use it all the "
        "same in step 3, or train again.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.trainer = per_viewer(self.viewer, Trainer)
        self.options = OptionsPart(self.trainer)
        self.run = RunRow(
            self.project,
            self.key,
            "Train",
            "Learn from the gold labels of step 1, Data, and of the volumes kept there.",
            self.trainer.start,
        )
        self.files = FilesPart(self.project, self.trainer)
        self.summary = Summary(self.trainer)
        for part in (self.options, self.run, self.summary, self.files):
            self.body.addWidget(part)
        link(self, self.trainer.changed, self._on_status)
        link(self, self.project.policy_changed, self._on_status)
        link_viewer(self, self.viewer.events.theme, self._paint)
        self._paint()
        self.start()

    @staticmethod
    def _status(project: Project) -> Status:
        if policy_record(project.policy) is not None:
            return Status.STALE if project.policy_is_stale else Status.DONE
        dataset = project.dataset
        ready = (dataset is not None and dataset.gold is not None) or bool(project.training)
        return Status.READY if ready else Status.EMPTY

    def hint_for(self, status: Status) -> str:
        """Say what to do next."""
        if status is Status.DONE:
            anew = ", to merge anew by this policy" if self.project.hierarchy_is_stale else ""
            return f"Done. Next: step 3, Hierarchy{anew}."
        if status is Status.STALE and self.project.is_painted(self.project.trained):
            return "The gold labels were painted since the policy was trained. Train again."
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        """Follow the project."""
        dataset = self.project.dataset
        taught = (dataset is not None and dataset.gold is not None) or self.project.training
        learned = policy_record(self.project.policy) is not None
        if status is not Status.RUNNING:
            self.run.set_text("Train again" if learned else "Train")
        self.run.set_ready(bool(taught), "Choose gold labels in step 1, Data.")
        self.options.follow()
        self.options.setEnabled(status is not Status.RUNNING)
        self.files.follow()
        self.summary.follow(self.project.policy, status is Status.RUNNING)

    def _paint(self) -> None:
        self.summary.set_theme(*theme_colours(self.viewer))
