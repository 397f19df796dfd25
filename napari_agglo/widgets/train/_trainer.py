"""Training of the policy of a project: options, worker and errors by epoch."""

# In its own file: the work of a thread and its state, without Qt.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from psygnal import Signal

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import AggloError
from napari_agglo.evaluate import train_and_hold_out
from napari_agglo.policy import LearnedPolicy
from napari_agglo.widgets._dataset import Dataset
from napari_agglo.widgets._napari import setting
from napari_agglo.widgets._project import Project, Regions, Trained
from napari_agglo.widgets._qt import per_viewer

TRAIN = "train"  # the name of the job
Result = tuple[LearnedPolicy, list[Regions]]  # the policy, and its training volumes


@dataclass(frozen=True)
class EpochError:
    """The errors of an epoch, in bits at the threshold 0.5; the mean over held-out parts."""

    epoch: int
    false_merge: float
    false_split: float
    held_out: bool = False  # False: on the training volumes


def train_policy(
    volumes: list[Regions | Dataset],
    options: Mapping[str, Any],
    report_errors: Callable[[list[EpochError]], object],
    progress: ProgressCallback,
) -> Result:
    """Build missing regions, train and estimate the error; report the errors by epoch."""
    if not volumes:
        raise AggloError("No gold labels are chosen to train on; choose them in step 1, Data.")
    whole = [
        volume if isinstance(volume, Regions) else Regions.of(volume, progress)
        for volume in volumes
    ]
    pairs = [(one.graph, one.dataset.training_gold) for one in whole]
    errors: dict[int, list[tuple[float, float]]] = {}

    def each_epoch(part: int | None, epoch: int, false_merge: float, false_split: float) -> None:
        errors.setdefault(epoch, []).append((false_merge, false_split))
        means = {number: np.mean(rows, axis=0).tolist() for number, rows in errors.items()}
        report_errors([EpochError(n, m, s, part is not None) for n, (m, s) in means.items()])

    policy = train_and_hold_out(pairs, **options, each_epoch=each_epoch, progress=progress)
    return policy, whole


class Trainer:
    """The training on the volumes of a project."""

    changed = Signal()

    def __init__(self, viewer: Any) -> None:
        self._project = per_viewer(viewer, Project)
        self.options: dict[str, Any] = {"epochs": int(setting("training", "epochs")), "folds": 1}
        self.errors: list[EpochError] = []  # of the training that runs or ran last
        self._reported: list[list[EpochError]] = []  # the worker adds, the main thread copies
        self._regions: list[Regions] = []  # of the last training, to use them again

    def start(self) -> None:
        """Train in a worker."""
        project = self._project
        current, volumes, strokes = project.dataset, self._volumes(project), project.strokes
        reported: list[list[EpochError]] = []
        options = dict(self.options)

        def work(progress: Any) -> Result:
            return train_policy(volumes, options, reported.append, progress)

        def done(result: Result) -> None:
            self._copy_errors()
            self._adopt(current, *result, strokes)

        job = project.jobs.start(TRAIN, "Training", work, done)
        if job is not None:
            self._reported, self.errors = reported, []
            job.progressed.connect(lambda _: self._copy_errors())
            self.changed.emit()

    def _volumes(self, project: Project) -> list[Regions | Dataset]:
        """Return the chosen volume, if it has gold, and the kept volumes, with known regions."""
        current = project.dataset
        datasets = [] if current is None or current.gold is None else [current]
        golds = [one.gold for one in datasets]
        datasets += [one for one in project.training if not any(one.gold is g for g in golds)]
        return [self._known_regions(project, one) or one for one in datasets]

    def _known_regions(self, project: Project, dataset: Dataset) -> Regions | None:
        regions = project.regions
        if regions is not None and dataset is regions.dataset:
            return regions
        for one in self._regions:
            if dataset is one.dataset or dataset is one.dataset.origin:
                return one
        return None

    def _adopt(
        self, current: Dataset | None, policy: LearnedPolicy, volumes: list[Regions], strokes: int
    ) -> None:
        """Give the project the policy, and the regions of the chosen volume."""
        project, on = self._project, None
        self._regions = volumes
        for regions in volumes:
            origin = regions.dataset.origin or regions.dataset
            if current is not None and (current is regions.dataset or current is origin):
                if project.regions is None or project.regions.graph is not regions.graph:
                    project.regions = regions
                on = project.regions
        project.trained = Trained(policy, on, strokes)

    def _copy_errors(self) -> None:
        """Copy the new errors from the worker."""
        if self._reported and self._reported[-1] != self.errors:
            self.errors = self._reported[-1]
            self.changed.emit()

    def clear_errors(self) -> None:
        """Remove the errors, for another policy."""
        self._reported, self.errors = [], []
        self.changed.emit()
