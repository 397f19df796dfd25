"""Training of a project's policy: its options, its worker, its errors; it outlives the widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from psygnal import Signal

from napari_agglo._progress import Progress, ProgressCallback, TrainingProgress
from napari_agglo.agglomeration import agglomerate
from napari_agglo.errors import AggloError
from napari_agglo.evaluate import split_vi
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import train
from napari_agglo.policy import LearnedPolicy
from napari_agglo.widgets._dataset import Dataset
from napari_agglo.widgets._napari import setting
from napari_agglo.widgets._project import Project, Regions, Trained
from napari_agglo.widgets._qt import per_viewer, tell_error

# The worker's part: arrays, graphs and options, never a layer.


TRAIN = "train"  # the name of the job
SCALE = 0.5  # threshold at which the error of an epoch is measured: that of a learned policy


@dataclass(frozen=True, eq=False)
class Volume:
    """One volume to learn from, with its graph once it is built."""

    dataset: Dataset
    graph: RegionGraph | None = None

    def with_graph(self, progress: ProgressCallback) -> Volume:
        """Return the volume with its graph."""
        if self.graph is not None:
            return self
        whole = self.dataset.oversegmented(progress)
        return Volume(whole, whole.graph(progress))


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The policy of a training, and the volumes with their graphs."""

    policy: LearnedPolicy
    volumes: list[Volume]


@dataclass(frozen=True)
class EpochError:
    """Errors of an epoch's policy on its training volumes: bits at the threshold 0.5."""

    epoch: int
    false_merge: float
    false_split: float


def train_policy(
    volumes: list[Volume],
    options: Mapping[str, Any],
    report_error: Callable[[EpochError], object],
    progress: ProgressCallback,
) -> TrainingResult:
    """Build the graphs that are missing, and train; the error of each epoch is reported."""
    if not volumes:
        raise AggloError("There are no gold labels to learn from; choose them in step 1, Data.")
    whole = [volume.with_graph(progress) for volume in volumes]
    pairs = [(one.graph, np.asarray(one.dataset.gold)) for one in whole]
    latest: list[Progress] = []

    def note(one: Progress) -> None:
        latest[:] = [one]
        progress(one)

    def hold_bar(_: Progress) -> None:
        """Let a cancel through while the error is measured; the bar stays where it is."""
        for one in latest:
            if isinstance(one, TrainingProgress):
                progress(replace(one, stage="measuring the error"))

    def each_epoch(epoch: int, policy: LearnedPolicy) -> None:
        errors = np.array([_error(graph, gold, policy, hold_bar) for graph, gold in pairs])
        merge, split = errors.mean(axis=0)
        report_error(EpochError(epoch, float(merge), float(split)))

    policy = train(
        pairs,  # type: ignore[arg-type]
        **options,
        each_epoch=each_epoch,
        progress=note,
    )
    return TrainingResult(policy, whole)


def _error(
    graph: Any, gold: Any, policy: LearnedPolicy, progress: ProgressCallback
) -> tuple[float, float]:
    tree = agglomerate(graph, policy, progress=progress)
    return split_vi(tree.segment(SCALE), gold)


class Trainer:
    """Trains on the volumes of a project.

    Attributes
    ----------
    options : dict
        Keyword arguments of `train`.
    errors : list of EpochError
        Errors of each epoch, of the training that runs or ran last.
    """

    changed = Signal()

    def __init__(self, viewer: Any) -> None:
        self._project = per_viewer(viewer, Project)
        self.options: dict[str, Any] = {"epochs": int(setting("training", "epochs"))}
        self.errors: list[EpochError] = []
        self._reported: list[EpochError] = []  # the worker adds, the main thread copies
        self._graphs: list[Volume] = []  # of further volumes, which are not built twice

    def start(self) -> None:
        """Train in a worker."""
        project = self._project
        current, volumes, strokes = project.dataset, self._volumes(project), project.strokes
        reported: list[EpochError] = []
        options = dict(self.options)

        def work(progress: Any) -> TrainingResult:
            return train_policy(volumes, options, reported.append, progress)

        def done(result: TrainingResult) -> None:
            self._copy_errors()
            self._adopt(current, result, strokes)

        job = project.jobs.start(TRAIN, "Training", work, done, tell_error)
        if job is not None:
            self._reported, self.errors = reported, []
            job.progressed.connect(lambda _: self._copy_errors())
            self.changed.emit()

    def _volumes(self, project: Project) -> list[Volume]:
        """Return the chosen volume, if it has gold, and those that were kept."""
        current = project.dataset
        datasets = [] if current is None or current.gold is None else [current]
        datasets += [one for one in project.training if not _is_listed(one, datasets)]
        return [self._volume(project, one) for one in datasets]

    def _volume(self, project: Project, dataset: Dataset) -> Volume:
        """Return a volume with the graph that it has already, if any."""
        regions = project.regions
        if regions is not None and dataset is regions.dataset:
            return Volume(dataset, regions.graph)
        for one in self._graphs:
            if dataset is one.dataset or dataset is one.dataset.origin:
                return one
        return Volume(dataset)

    def _adopt(self, current: Dataset | None, result: TrainingResult, strokes: int) -> None:
        """Give the project the policy, and the graph of the chosen volume."""
        project, on = self._project, None
        self._graphs = result.volumes
        for volume in result.volumes:
            chosen = volume.dataset is current or volume.dataset.origin is current
            if current is not None and chosen and volume.graph is not None:
                if project.regions is None or project.regions.graph is not volume.graph:
                    project.regions = Regions(volume.dataset, volume.graph)
                on = project.regions
        project.trained = Trained(result.policy, on, strokes)

    def _copy_errors(self) -> None:
        """Copy the errors that the worker has reported since."""
        if len(self._reported) > len(self.errors):
            self.errors = list(self._reported)
            self.changed.emit()

    def clear_errors(self) -> None:
        """Forget the errors: another policy has come."""
        self.errors = []
        self.changed.emit()


def _is_listed(dataset: Dataset, others: list[Dataset]) -> bool:
    return any(dataset.gold is one.gold for one in others)
