"""Build a hierarchy in a worker: missing superpixels and graph, merges, errors."""

# In its own file: the work of a thread, without Qt.

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, part_of
from napari_agglo.agglomeration import merge_tree
from napari_agglo.errors import AggloError, Cancelled, InvalidInput
from napari_agglo.evaluate import vi_curve
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import MeanPolicy, Policy
from napari_agglo.widgets._dataset import Dataset
from napari_agglo.widgets._project import Built, Project, Regions, Trained
from napari_agglo.widgets._ticks import Ticks, knee


@dataclass(frozen=True, eq=False)
class Plan:
    """The input of a run, copied from the project in the main thread."""

    dataset: Dataset | None
    regions: Regions | None  # None: to be computed from the dataset
    policy: Policy
    gold: Any
    strokes: int

    @classmethod
    def of(cls, project: Project) -> Plan:
        """Return the plan of a project, without regions of a dataset no longer chosen."""
        dataset, regions = project.dataset, project.regions
        if dataset is None:
            return cls(None, regions or project.shown_regions, project.policy, project.gold,
                       project.strokes)  # fmt: skip
        current = regions if regions is not None and regions.dataset is dataset else None
        return cls(dataset, current, project.policy, dataset.gold, project.strokes)


def first_threshold(project: Project, built: Built) -> float:
    """Return the threshold to show first.

    It is 0.5 for a learned policy, which gives probabilities. For any other it is the threshold of
    the least VI, or without gold that where merges begin to be costly.
    """
    if built.policy.probabilistic:
        return 0.5
    least, heights = project.least_vi, built.tree.heights
    return Ticks(heights).threshold(knee(heights)) if least is None else least


def build(plan: Plan, progress: ProgressCallback) -> tuple[Built, AggloError | None]:
    """Build a hierarchy; return it and the error of its comparison with gold, if any."""
    regions = plan.regions
    if regions is None:
        if plan.dataset is None:
            raise AggloError("No data are chosen; choose them in step 1, Data.")
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
    """Return the policy; for the mean of a missing cue, the mean of the first cue."""
    if policy.name == MeanPolicy.name and graph.cue_names:
        try:
            policy.check(graph)
        except InvalidInput:
            return MeanPolicy(graph.cue_names[0])
    return policy


def show(project: Project, built: Built, error: AggloError | None) -> None:
    """Show a new hierarchy; raise the error of its comparison with gold, if any."""
    if built.regions not in (project.regions, project.shown_regions):
        project.regions = built.regions
    both_mean = built.policy.name == project.policy.name == MeanPolicy.name
    if both_mean and built.policy is not project.policy:  # of another cue, which exists
        project.trained = Trained(built.policy)
    project.built = built
    project.threshold = first_threshold(project, built)
    if error is not None:
        raise error
