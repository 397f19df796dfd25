"""Build a hierarchy in a worker: superpixels and graph if there are none, merges, errors."""

# In its own file: the work of a thread, without Qt.

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, part_of
from napari_agglo.agglomeration import merge_tree
from napari_agglo.errors import AggloError, Cancelled, InvalidInput
from napari_agglo.evaluate import minimum, vi_curve
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import MeanPolicy, Policy
from napari_agglo.widgets._dataset import Dataset
from napari_agglo.widgets._project import Built, Project, Regions, Trained
from napari_agglo.widgets.hierarchy._slider import Ticks, knee


@dataclass(frozen=True, eq=False)
class Plan:
    """The input of a run, taken from the project on the main thread."""

    dataset: Dataset | None
    regions: Regions | None  # None: they have to be built of the dataset
    policy: Policy
    gold: Any
    strokes: int

    @classmethod
    def of(cls, project: Project) -> Plan:
        """Take what there is; regions of another dataset than the chosen one are not used."""
        dataset, regions = project.dataset, project.regions
        if dataset is None:
            return cls(None, regions or project.shown_regions, project.policy, project.gold,
                       project.strokes)  # fmt: skip
        current = regions if regions is not None and regions.dataset is dataset else None
        return cls(dataset, current, project.policy, dataset.gold, project.strokes)


def begin_at(built: Built) -> float:
    """Return the threshold to look at first.

    A learned policy gives probabilities, and 0.5 is natural. Of another it is where the VI is
    least, or without gold where merges begin to be costly.
    """
    if built.policy.probabilistic:
        return 0.5
    ticks = Ticks(built.tree.heights)
    if built.curve is not None:
        return ticks.threshold(ticks.merges(minimum(built.curve)["threshold"]))
    return ticks.threshold(knee(built.tree.heights))


def build(plan: Plan, progress: ProgressCallback) -> tuple[Built, AggloError | None]:
    """Build a hierarchy; also return why it could not be compared with gold."""
    regions = plan.regions
    if regions is None:
        if plan.dataset is None:
            raise AggloError("There are no data yet; choose them in step 1, Data.")
        regions = Regions.of(plan.dataset, part_of(progress, 0.0, 0.6))
    policy = fitting(plan.policy, regions.graph)
    tree = merge_tree(regions.graph, policy, progress=part_of(progress, 0.6, 0.85))
    tree.heritage  # noqa: B018 - computed here, not at the first tick of the slider
    built = Built(tree, regions, policy, plan.gold)
    if plan.gold is None:
        return built, None
    try:
        curve = vi_curve(tree, np.asarray(plan.gold), progress=part_of(progress, 0.85, 1.0))
    except Cancelled:
        raise
    except AggloError as error:
        return replace(built, gold=None), error
    return replace(built, curve=curve, strokes=plan.strokes), None


def fitting(policy: Policy, graph: RegionGraph) -> Policy:
    """Return the policy, or the mean of the first cue where the one it names is not there."""
    if policy.name == MeanPolicy.name and graph.cue_names:
        try:
            policy.check(graph)
        except InvalidInput:
            return MeanPolicy(graph.cue_names[0])
    return policy


def show(project: Project, built: Built, trouble: AggloError | None) -> None:
    """Show a hierarchy that was built; raise the trouble with its gold, if there is any."""
    if built.regions not in (project.regions, project.shown_regions):
        project.regions = built.regions
    both_mean = built.policy.name == project.policy.name == MeanPolicy.name
    if both_mean and built.policy is not project.policy:  # of another cue, that is there
        project.trained = Trained(built.policy)
    project.built = built
    project.threshold = begin_at(built)
    if trouble is not None:
        raise trouble
