"""What a training works on: arrays, graphs and options, and never a layer; runs in a worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from napari_agglo._progress import Progress, ProgressCallback, TrainingProgress
from napari_agglo.errors import AggloError
from napari_agglo.evaluate import split_vi
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import train
from napari_agglo.policy import LearnedPolicy
from napari_agglo.tree import agglomerate
from napari_agglo.widgets._material import Material

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

    material: Material
    graph: RegionGraph | None = None

    def ready(self, progress: ProgressCallback) -> Volume:
        """Return it with its graph."""
        if self.graph is not None:
            return self
        whole = self.material.oversegmented(progress)
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
    lessons = [(one.graph, np.asarray(one.material.gold)) for one in ready]
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
