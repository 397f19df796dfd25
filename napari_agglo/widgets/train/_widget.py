"""Widget of the Train step: options, files of policies, and a summary of the training."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Annotated, Any

from napari.utils.notifications import show_info
from qtpy.QtWidgets import QDialog, QFileDialog, QWidget

from napari_agglo.evaluate import train_and_hold_out
from napari_agglo.features import PRESETS, feature_blocks
from napari_agglo.learning import train
from napari_agglo.policy import (
    LearnedPolicy,
    MeanPolicy,
    as_policy,
    load_policy,
    policies,
    policy_record,
    save_policy,
)
from napari_agglo.widgets._fit_text import fitting_button
from napari_agglo.widgets._folded_text import FoldedText
from napari_agglo.widgets._forms import Form, ask_form
from napari_agglo.widgets._progress_row import FailureLine, RunRow
from napari_agglo.widgets._project import Project, Trained
from napari_agglo.widgets._qt import (
    button,
    column,
    combo_box,
    label,
    link,
    per_viewer,
    row,
    shortened,
    tab_widget,
)
from napari_agglo.widgets._remedies import window_sentence
from napari_agglo.widgets._steps import Status, StepWidget
from napari_agglo.widgets.hierarchy._build_tree import cue_mismatch
from napari_agglo.widgets.hierarchy._widget import HIERARCHY, build_hierarchy
from napari_agglo.widgets.plots import EpochPlot, ImportancePlot, ReliabilityPlot
from napari_agglo.widgets.train._question_mode import QuestionMode, TeachPanel
from napari_agglo.widgets.train._trainer import TRAIN, EpochError, Trainer

FILES = "policy file"  # the name of the job
FUNCTION = "a Python function…"
_FILTER = "Agglo policy (*.npz)"


class PolicyFiles(QWidget):
    """Buttons to load and save a policy, or to use the mean or another registered policy."""

    def __init__(self, project: Project, trainer: Trainer) -> None:
        super().__init__()
        self._project, self._trainer = project, trainer
        before = "Load a trained policy with the same cues"
        self.load = button("Load…", before, self._load, "load")
        file = "Write the policy to a file, for other data"
        self.save = button("Save…", file, self._save, "save")
        without = "Merge by the mean of the boundary cue instead of the trained policy"
        self.mean = button(
            "Use the mean", without, lambda: self._take(MeanPolicy()), "use the mean"
        )
        self.former = fitting_button(
            "Take back", "Use the former policy again", self._take_back, "take back the policy"
        )
        untrained = (
            "The policy is the rule that decides which regions merge first; these need no training"
        )
        self.named = combo_box("policy", untrained, [*policies, FUNCTION])
        self.named.textActivated.connect(self._choose)
        self.failure = FailureLine(project, FILES)
        column(
            self, self.former, row(self.load, self.save), row(self.mean, self.named), self.failure
        )

    def follow(self) -> None:
        """Enable the possible buttons."""
        policy = self._project.policy
        self.save.setEnabled(policy_record(policy) is not None)
        self.mean.setEnabled(policy.name != MeanPolicy.name)
        self.named.setPlaceholderText(policy.name)
        self.named.setCurrentIndex(self.named.findText(policy.name))
        former = self._project.former
        self.former.setVisible(former is not None)
        if former is not None:
            self.former.setText(f"Take back: {shortened(_origin(former), _LETTERS)}")
            self.former.setToolTip(
                f"Use the {_origin(former)} again, which is kept until napari is closed; "
                "then it can be saved as well"
            )

    def _load(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Load a policy", "", _FILTER)
        if path:
            self._run("Reading the policy", lambda: load_policy(path), self._take)

    def _take_back(self) -> None:
        if self._project.former is not None:
            self._project.trained = self._project.former

    def _take(self, policy: Any) -> None:
        if policy_record(policy) is not None:  # else the curve of the kept policy is hidden
            self._trainer.clear_errors()
        self._project.trained = Trained(policy)

    def _save(self) -> None:
        policy = self._project.policy
        path, _ = QFileDialog.getSaveFileName(self, "Save the policy", "policy.npz", _FILTER)
        if path:
            target = Path(path) if path.endswith(".npz") else Path(f"{path}.npz")
            done = f"Saved {target}."
            self._run(
                "Saving the policy", lambda: save_policy(policy, target), lambda _: show_info(done)
            )

    def _choose(self, name: str) -> None:
        if name == FUNCTION:
            self.follow()  # the policy stays until a function is chosen
            self.ask_function()
            return
        self._run("Loading the policy", lambda: as_policy(name), self._take)

    def ask_function(self) -> QDialog:
        """Ask for a Python function to merge by."""
        tooltip = "A function from a region graph to the priority of each boundary"
        options = {"label": "Function", "tooltip": tooltip}
        form = Form(table={"name": Annotated[str, options]})
        form.show_values({"name": "module:function"})
        return ask_form(self, "Merge by a function", form, "Use", self._choose)

    def _run(self, title: str, work: Any, done: Any) -> None:
        self._project.jobs.start(FILES, title, lambda _: work(), done)


def _origin(trained: Trained) -> str:
    """Return the name of a kept policy by its training."""
    if trained.on is not None:
        return f"policy trained on {trained.on.dataset.name}"
    strategy = (policy_record(trained.policy) or {}).get("strategy")
    return f"trained policy ({strategy})" if strategy else "trained policy"


def _presets() -> list[tuple[str, str]]:
    """Return the presets of features, each alone and with each registered block."""
    blocks = ("", *(f"+{block}" for block in feature_blocks))
    return [(preset + block, preset + block) for block in blocks for preset in PRESETS]


_HELD_OUT = [("one half", 1), ("each half", 2), ("each fifth", 5), ("nothing", 0)]
_HELD_OUT_TIP = (
    "A part of the gold labels to measure the error on: a policy learns from the rest, and is "
    "tested on this part. The policy that is kept learns from all of the labels. One half takes "
    "1.5 times as long, each half twice as long, and each fifth five times as long."
)


class TrainOptions(Form):
    """A form of the options of a trainer."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__(
            train,
            train_and_hold_out,
            table={
                "folds": {"label": "Hold out", "choices": _HELD_OUT, "tooltip": _HELD_OUT_TIP},
                "start": {"label": "First policy"},
                "preset": {"label": "Features", "name": "preset", "choices": _presets},
            },
            first=("strategy", "epochs", "folds"),
        )
        self._trainer = trainer
        self.changed.connect(self._on_changed)
        self.follow()

    def follow(self) -> None:
        """Show the options of the trainer."""
        self.show_values(self._trainer.options)
        merges = self["strategy"].value != "flat"
        for name in ("epochs", "start", "near_misses"):
            self[name].enabled = merges

    def _on_changed(self) -> None:
        self._trainer.options = self.values()
        self._trainer.changed.emit()


_VI_TIP = (
    "<qt>VI, the variation of information between the segments and the gold labels, in bits: lower "
    "is better, 0 is the same. Held-out labels are a part that did not teach the policy: an "
    "estimate of the error on other data.</qt>"
)


class Summary(QWidget):
    """The error on held-out gold labels, a text on the policy, and three plots in tabs."""

    def __init__(self, trainer: Trainer) -> None:
        super().__init__()
        self._trainer = trainer
        self._drawn: list[EpochError] = []
        self._record: Any = None
        self.error = label("held-out error", _VI_TIP)
        self.error.setStyleSheet("font-size: 16px; font-weight: bold;")
        self.text = FoldedText("training summary")
        self.epochs = EpochPlot()
        self.reliability = ReliabilityPlot()
        self.importances = ImportancePlot()
        calibration = "Predicted against observed probability of a merge"
        self.tabs = tab_widget(
            "training plots",
            ("VI by epoch", "Error at 0.5 after each epoch", self.epochs),
            ("Calibration", calibration, self.reliability),
            ("Features", "The features with most influence on the policy", self.importances),
        )
        self.tabs.setFixedHeight(250)
        column(self, self.error, self.text, self.tabs, spacing=6)

    def follow(self, policy: Any, running: bool) -> None:
        """Show the errors by epoch, and the summary of the policy."""
        errors = self._trainer.errors
        if errors[: len(self._drawn)] != self._drawn or len(errors) < len(self._drawn):
            self.epochs.clear()
            self._drawn = []
        for one in errors[len(self._drawn) :]:
            self.epochs.add(one.epoch, one.false_merge, one.false_split, held_out=one.held_out)
        self._drawn = list(errors)
        record = policy_record(policy)
        if record is not self._record:
            self._record = record
            self.reliability.set_record(record)
            self.importances.set_record(record)
        self.text.setText("" if record is None or running else describe(policy, errors))
        self.error.setText("" if running else headline(record))
        for line in (self.error, self.text):
            line.setVisible(bool(line.text()))
        self.tabs.setVisible(running or record is not None)


_HELPED = 0.97  # of the error of the mean policy: a training with a larger one did not help


def own_estimate(record: Any) -> dict[str, float] | None:
    """Return the errors of a policy on held-out parts, by its record; None if there are none."""
    estimate = (record or {}).get("estimate", {}).get("policies", {})
    errors: dict[str, float] | None = estimate.get((record or {}).get("strategy"))
    return errors


def headline(record: Any) -> str:
    """Return the error on held-out gold labels, in few words.

    Examples
    --------
    >>> errors = {"vi_at_half": 0.523}
    >>> headline({"strategy": "agglo", "estimate": {"folds": 1, "policies": {"agglo": errors}}})
    'VI 0.52 on the held-out half'
    """
    errors = own_estimate(record)
    if errors is None:
        return ""
    folds = record["estimate"]["folds"]
    where = "the held-out half" if folds == 1 else f"{folds} held-out parts"
    return f"VI {errors['vi_at_half']:.2f} on {where}"


def describe_estimate(record: Any) -> str:
    """Return sentences on the error on held-out gold labels; or on the reason that there is none.

    Examples
    --------
    >>> errors = {"vi_at_half": 0.5, "false_merge_at_half": 0.2, "false_split_at_half": 0.3,
    ...           "vi_min": 0.4}
    >>> estimate = {"folds": 2, "policies": {"agglo": errors, "mean": {"vi_min": 0.9}}}
    >>> text = describe_estimate({"strategy": "agglo", "estimate": estimate})
    >>> print(text.split("; ")[0])
    Learned from the other parts: 0.20 bits false merge and 0.30 false split at 0.5
    >>> print(text.split("; ")[1].split(". ")[0])
    VI 0.40 at the best threshold, where the mean policy has 0.90
    >>> estimate["policies"]["mean"]["vi_min"] = 0.41
    >>> print(describe_estimate({"strategy": "agglo", "estimate": estimate}).split(" (")[0])
    The training did not help
    """
    estimate, errors = record.get("estimate", {}), own_estimate(record)
    if errors is None:
        refusal = estimate.get("refusal")
        return f"No held-out error: {refusal[0].lower()}{refusal[1:]}." if refusal else ""
    mean = estimate["policies"].get("mean")
    beside = "" if mean is None else f", where the mean policy has {mean['vi_min']:.2f}"
    whose = "the other half" if estimate["folds"] == 1 else "the other parts"
    verdict = ""
    if mean is not None and errors["vi_min"] > _HELPED * mean["vi_min"]:
        verdict = (
            f"The training did not help (best VI {errors['vi_min']:.2f}, the mean policy "
            f"{mean['vi_min']:.2f}): use the mean, or add gold labels or cues. "
        )
    return (
        f"{verdict}Learned from {whose}: {errors['false_merge_at_half']:.2f} bits false merge and "
        f"{errors['false_split_at_half']:.2f} false split at 0.5; VI {errors['vi_min']:.2f} at the "
        f"best threshold{beside}. An estimate: the policy itself learned from all of the gold."
    )


def describe(policy: LearnedPolicy, errors: list[EpochError]) -> str:
    """Return sentences on a policy: its training, its features, its accuracy.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> features = SimpleNamespace(preset="shape", cues=("boundary",))
    >>> record = {"strategy": "flat", "classifier": "forest", "examples": 1200, "accuracy": 0.93,
    ...           "held_out": True}
    >>> print(describe(SimpleNamespace(features=features, record=record), []))
    flat, forest, shape features of boundary. 1,200 examples. 93.0 % of held-out examples right.
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
    if "answers" in record:
        lines.append(f"Taught by {record['answers']:,} answers.")
    if "examples" in record:
        lines.append(f"{record['examples']:,} examples.")
    if "accuracy" in record:
        whose = "held-out" if record.get("held_out") else "training"
        lines.append(f"{100 * record['accuracy']:.1f} % of {whose} examples right.")
    estimate = describe_estimate(record)
    if estimate:
        lines.insert(0, estimate)
    if errors and not errors[-1].held_out:
        last = errors[-1]
        vi = last.false_merge + last.false_split
        lines.append(
            f"VI at 0.5 on its own training data: {vi:.2f} bits ({last.false_merge:.2f} false "
            f"merge, {last.false_split:.2f} false split). Expect a larger error on other data."
        )
    return " ".join(lines)


_APPLY_TIP = "Build the hierarchy of the chosen data with this policy, as in step 3"
_LETTERS = 32  # of the name of a volume on a button


class TrainWidget(StepWidget):
    """Train a policy from gold labels, or from answers."""

    key = TRAIN
    title = "Train"
    purpose = "train a policy of merges from gold labels or from answers. Optional."
    hints = {  # noqa: RUF012 - what to do next
        Status.EMPTY: "Optional. To train a policy, choose gold labels in step 1, Data, or teach "
        "it by answering. Without a policy, step 3 merges by the mean of the boundary cue.",
        Status.READY: "Optional. Train a policy from the gold labels; without one, step 3 merges "
        "by the mean of the boundary cue.",
        Status.RUNNING: "Training. The curve shows the error after each epoch.",
        Status.STALE: "The policy was trained on other data than the chosen ones. Use it in step 3 "
        "anyway, or train again.",
    }

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.trainer = per_viewer(self.viewer, Trainer)
        self.options = TrainOptions(self.trainer)
        self.run = RunRow(
            self.project,
            self.key,
            "Train",
            "Train on the gold labels of step 1, Data, and of the volumes kept there.",
            self.trainer.start,
        )
        self.apply = fitting_button("Apply it", _APPLY_TIP, self._apply, "apply policy")
        self.teach = TeachPanel(
            per_viewer(self.viewer, QuestionMode),
            lambda: {name: self.options[name].value for name in ("preset", "seed")},
        )
        self.files = PolicyFiles(self.project, self.trainer)
        self.summary = Summary(self.trainer)
        self.add(self.options, self.run, self.apply, self.teach, self.summary, self.files)
        link(self._on_status, self.trainer.changed)
        plots = self.summary
        self.follow_theme(plots.epochs, plots.reliability, plots.importances)
        self.start()

    def _apply(self) -> None:
        build_hierarchy(self.project)
        self.project.step_requested.emit(HIERARCHY)

    @staticmethod
    def idle_status(project: Project) -> Status:
        if policy_record(project.policy) is not None:
            return Status.STALE if project.policy_is_stale else Status.DONE
        dataset = project.dataset
        ready = (dataset is not None and dataset.gold is not None) or bool(project.training)
        return Status.READY if ready else Status.EMPTY

    def hint_for(self, status: Status) -> str:
        """Return the next thing to do."""
        project, on = self.project, self.project.trained.on
        mismatch = cue_mismatch(project.policy, project.dataset)
        if mismatch is not None and status is not Status.RUNNING:
            return window_sentence(mismatch)
        if status is Status.DONE and on is not None and project.is_elsewhere(on):
            assert project.dataset is not None
            return f"Trained on {on.dataset.name}. Apply it to {project.dataset.name}."
        if status is Status.DONE:
            anew = ", to merge by this policy" if self.project.hierarchy_is_stale else ""
            return f"Done. Next: step 3, Hierarchy{anew}."
        if status is Status.STALE and self.project.is_painted(self.project.trained):
            return "The gold labels have changed since the policy was trained. Train again."
        chosen = project.policy
        own = chosen.name != MeanPolicy.name and policy_record(chosen) is None
        if own and status in (Status.READY, Status.EMPTY):
            return (
                f"Optional. Step 3 merges by the policy {chosen.name}, which is chosen below; one "
                "that is trained here replaces it."
            )
        return super().hint_for(status)

    def update_state(self, status: Status) -> None:
        """Update the controls from the project."""
        dataset = self.project.dataset
        has_gold = (dataset is not None and dataset.gold is not None) or self.project.training
        learned = policy_record(self.project.policy) is not None
        if status is not Status.RUNNING:
            self.run.set_text("Train again" if learned else "Train")
        self.run.set_ready(bool(has_gold), "Choose gold labels in step 1, Data.")
        built, running = self.project.built, self.project.jobs[HIERARCHY] is not None
        applied = built is not None and built.policy is self.project.policy
        elsewhere = built is not None and self.project.is_elsewhere(built.regions)
        fits = learned and dataset is not None and status is not Status.RUNNING
        fits = fits and cue_mismatch(self.project.policy, dataset) is None
        self.apply.setVisible(fits and (not applied or elsewhere))
        self.apply.setEnabled(not running)
        if dataset is not None:
            self.apply.setText(f"Apply it to {shortened(dataset.name, _LETTERS)}")
            self.apply.setToolTip(f"<qt>{_APPLY_TIP}: {escape(dataset.name)}</qt>")
        self.options.follow()
        self.options.setEnabled(status is not Status.RUNNING)
        self.files.follow()
        self.summary.follow(self.project.policy, status is Status.RUNNING)
