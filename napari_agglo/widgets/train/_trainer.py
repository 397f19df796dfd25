"""The training of a project: its options, and what came of it. Outlives the widgets."""

from __future__ import annotations

from collections.abc import Callable
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

# What a training works on: arrays, graphs and options, and never a layer; runs in a worker.


TRAIN = "train"  # the name of the job
SCALE = 0.5  # where the error of an epoch is measured: the natural stop of a learned policy


@dataclass(frozen=True)
class Options:
    """How to learn, as `train` takes it."""

    strategy: str = "agglo"
    epochs: int = 5
    preset: str = "em"
    classifier: str = "forest"
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Volume:
    """One volume to learn from, with its graph once it is built."""

    dataset: Dataset
    graph: RegionGraph | None = None

    def ready(self, progress: ProgressCallback) -> Volume:
        """Return it with its graph."""
        if self.graph is not None:
            return self
        whole = self.dataset.oversegmented(progress)
        return Volume(whole, whole.graph(progress))


@dataclass(frozen=True, eq=False)
class Learned:
    """What a training gives."""

    policy: LearnedPolicy
    volumes: list[Volume]


@dataclass(frozen=True)
class EpochError:
    """How wrong the policy of an epoch is, where it was trained: bits at the threshold 0.5."""

    epoch: int
    false_merge: float
    false_split: float


def learn(
    volumes: list[Volume],
    options: Options,
    tell: Callable[[EpochError], object],
    progress: ProgressCallback,
) -> Learned:
    """Build the graphs that are missing, and train; `tell` hears how wrong each epoch is."""
    if not volumes:
        raise AggloError("There are no gold labels to learn from; choose them in step 1, Data.")
    ready = [volume.ready(progress) for volume in volumes]
    lessons = [(one.graph, np.asarray(one.dataset.gold)) for one in ready]
    latest: list[Progress] = []

    def note(one: Progress) -> None:
        latest[:] = [one]
        progress(one)

    def measuring(_: Progress) -> None:
        """Hear a cancel while the error is measured; the bar stays where it is."""
        for one in latest:
            if isinstance(one, TrainingProgress):
                progress(replace(one, stage="measuring the error"))

    def each_epoch(epoch: int, policy: LearnedPolicy) -> None:
        errors = np.array([_error(graph, gold, policy, measuring) for graph, gold in lessons])
        merge, split = errors.mean(axis=0)
        tell(EpochError(epoch, float(merge), float(split)))

    policy = train(
        lessons,  # type: ignore[arg-type]
        strategy=options.strategy,
        epochs=options.epochs,
        preset=options.preset,
        classifier=options.classifier,
        seed=options.seed,
        each_epoch=each_epoch,
        progress=note,
    )
    return Learned(policy, ready)


def _error(
    graph: Any, gold: Any, policy: LearnedPolicy, progress: ProgressCallback
) -> tuple[float, float]:
    tree = agglomerate(graph, policy, progress=progress)
    return split_vi(tree.segment(SCALE), gold)


class Trainer:
    """Trains on the volumes of a project.

    Attributes
    ----------
    options : Options
        How to learn.
    errors : list of EpochError
        How wrong each epoch was, of the training that runs or ran last.
    """

    changed = Signal()

    def __init__(self, viewer: Any) -> None:
        self._project = per_viewer(viewer, Project)
        self.options = Options(epochs=int(setting("training", "epochs")))
        self.errors: list[EpochError] = []
        self._heard: list[EpochError] = []  # the worker adds, the main thread takes
        self._graphs: list[Volume] = []  # of further volumes, which are not built twice

    def start(self) -> None:
        """Train, in a worker."""
        project = self._project
        current, volumes, strokes = project.dataset, self._volumes(project), project.strokes
        heard: list[EpochError] = []
        options = self.options

        def work(progress: Any) -> Learned:
            return learn(volumes, options, heard.append, progress)

        def done(learned: Learned) -> None:
            self._take()
            self._keep(current, learned, strokes)

        job = project.jobs.start(TRAIN, "Training", work, done, tell_error)
        if job is not None:
            self._heard, self.errors = heard, []
            job.progressed.connect(lambda _: self._take())
            self.changed.emit()

    def _volumes(self, project: Project) -> list[Volume]:
        """Return what to learn from: what is chosen now, if it has gold, and what was kept."""
        current = project.dataset
        datasets = [] if current is None or current.gold is None else [current]
        datasets += [one for one in project.training if not _among(one, datasets)]
        return [self._known(project, one) for one in datasets]

    def _known(self, project: Project, dataset: Dataset) -> Volume:
        """Return a volume with the graph that it has already, if any."""
        regions = project.regions
        if regions is not None and dataset is regions.dataset:
            return Volume(dataset, regions.graph)
        for one in self._graphs:
            if dataset is one.dataset or dataset is one.dataset.origin:
                return one
        return Volume(dataset)

    def _keep(self, current: Dataset | None, learned: Learned, strokes: int) -> None:
        project, on = self._project, None
        self._graphs = learned.volumes
        for volume in learned.volumes:
            chosen = volume.dataset is current or volume.dataset.origin is current
            if current is not None and chosen and volume.graph is not None:
                if project.regions is None or project.regions.graph is not volume.graph:
                    project.regions = Regions(volume.dataset, volume.graph)
                on = project.regions
        project.trained = Trained(learned.policy, on, strokes)

    def _take(self) -> None:
        """Take over what the worker has told since."""
        if len(self._heard) > len(self.errors):
            self.errors = list(self._heard)
            self.changed.emit()

    def forget(self) -> None:
        """Another policy has come: what was learned here says nothing of it."""
        self.errors = []
        self.changed.emit()


def _among(dataset: Dataset, others: list[Dataset]) -> bool:
    return any(dataset.gold is one.gold for one in others)
