"""Build a hierarchy in a worker: superpixels and graph if there are none, merges, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo._progress import Progress, ProgressCallback
from napari_agglo.agglomeration import MergeTree, agglomerate
from napari_agglo.errors import AggloError, Cancelled, InvalidInput
from napari_agglo.evaluate import minimum, vi_curve
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import MeanPolicy, Policy
from napari_agglo.widgets._dataset import Material
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.hierarchy._threshold import Ticks, knee

if TYPE_CHECKING:
    import pandas as pd

_SCALE = 1000  # steps of a whole run


@dataclass(frozen=True, eq=False)
class Plan:
    """What a run begins with, taken on the main thread."""

    material: Material | None
    graph: RegionGraph | None
    policy: Policy
    gold: Any

    @classmethod
    def of(cls, project: Project) -> Plan:
        """Take what there is; a graph of other data than those chosen now is not used."""
        material, graph = project.material, project.built
        if material is None:
            return cls(project.graph_of, graph or project.graph, project.policy, project.gold)
        current = graph if material is project.graph_of else None
        return cls(material, current, project.policy, material.gold)


@dataclass(frozen=True, eq=False)
class Built:
    """What a run made."""

    material: Material | None
    graph: RegionGraph
    policy: Policy
    tree: MergeTree
    gold: Any
    curve: pd.DataFrame | None
    trouble: AggloError | None = None  # why there is no curve

    def begin_at(self) -> float:
        """Return the threshold to look at first.

        A learned policy gives probabilities, and 0.5 is natural. Of another it is where the VI is
        least, or without gold where merges begin to be costly.
        """
        if self.policy.probabilistic:
            return 0.5
        ticks = Ticks(self.tree.heights)
        if self.curve is not None:
            return ticks.threshold(ticks.merges(minimum(self.curve)["threshold"]))
        return ticks.threshold(knee(self.tree.heights))


def build(plan: Plan, progress: ProgressCallback) -> Built:
    """Do it."""
    material, graph = plan.material, plan.graph
    if graph is None:
        if material is None:
            raise AggloError("There are no data yet; choose them in step 1, Data.")
        material = material.oversegmented(_part(progress, 0.0, 0.35))
        graph = material.graph(_part(progress, 0.35, 0.6))
    policy = fitting(plan.policy, graph)
    tree = agglomerate(graph, policy, progress=_part(progress, 0.6, 0.85))
    tree.heritage  # noqa: B018 - computed here, not at the first tick of the slider
    curve, trouble = None, None
    if plan.gold is not None:
        try:
            gold = np.asarray(plan.gold)
            curve = vi_curve(tree, gold, progress=_part(progress, 0.85, 1.0))
        except Cancelled:
            raise
        except AggloError as error:
            trouble = error
    return Built(material, graph, policy, tree, plan.gold, curve, trouble)


def fitting(policy: Policy, graph: RegionGraph) -> Policy:
    """Return the policy, or the mean of the first cue where the one it names is not there."""
    if policy.name == MeanPolicy.name and graph.cue_names:
        try:
            policy.check(graph)
        except InvalidInput:
            return MeanPolicy(graph.cue_names[0])
    return policy


def show(project: Project, built: Built) -> None:
    """Take what was built: the viewer shows it."""
    if built.graph is not project.built and built.material is not None:
        project.set_graph(built.graph, built.material)
    both_mean = built.policy.name == project.policy.name == MeanPolicy.name
    if both_mean and built.policy is not project.policy:  # of another cue, that is there
        project.set_policy(built.policy)
    gold = built.gold if built.trouble is None else None
    project.set_tree(built.tree, built.graph, built.policy, gold)
    project.threshold = built.begin_at()
    if built.curve is not None:
        project.set_curve(built.curve)
    if built.trouble is not None:
        raise built.trouble


def _part(progress: ProgressCallback, begin: float, end: float) -> ProgressCallback:
    """Return a callback for one stage of several: its whole is a part of the bar."""

    def tell(inner: Progress) -> None:
        done = begin + (end - begin) * min(max(inner.fraction, 0.0), 1.0)
        progress(Progress(inner.stage, round(_SCALE * done), _SCALE))

    return tell
