"""The policy as a file: load one, save one, or do without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QFileDialog, QHBoxLayout, QPushButton, QWidget

from napari_agglo.policy import LearnedPolicy, MeanPolicy, load_policy
from napari_agglo.widgets._notices import tell, tell_error
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.train._teacher import Teacher

FILES = "policy file"  # the name of the job
_FILTER = "Agglo policy (*.npz)"


class FilesPart(QWidget):
    """Three buttons."""

    def __init__(self, project: Project, teacher: Teacher) -> None:
        super().__init__()
        self._project, self._teacher = project, teacher
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
        learned = isinstance(self._project.policy, LearnedPolicy)
        self.save.setEnabled(learned)
        self.mean.setEnabled(learned)

    def _load(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Load a policy", "", _FILTER)
        if path:
            self._run("Reading the policy", lambda: load_policy(path), self._take)

    def _take(self, policy: Any) -> None:
        self._teacher.forget()
        self._project.set_policy(policy)

    def _save(self) -> None:
        policy = self._project.policy
        if not isinstance(policy, LearnedPolicy):
            return
        path, _ = QFileDialog.getSaveFileName(self, "Save the policy", "policy.npz", _FILTER)
        if path:
            target = Path(path) if path.endswith(".npz") else Path(f"{path}.npz")
            self._run("Saving the policy", lambda: policy.save(target), _say_saved)

    def _mean(self) -> None:
        self._teacher.forget()
        self._project.set_policy(MeanPolicy())

    def _run(self, title: str, work: Any, done: Any) -> None:
        self._project.jobs.start(FILES, title, lambda _: work(), done, tell_error)


def _say_saved(path: Path) -> None:
    tell(f"The policy is saved: {path}")


def _button(text: str, tip: str) -> QPushButton:
    button = QPushButton(text)
    button.setObjectName(text.strip("…").lower())
    button.setToolTip(tip)
    return button
