"""Build a hierarchy in a worker: missing superpixels and graph, merges, errors."""

# In its own file: the work of a thread, without Qt.

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback, part_of
from napari_agglo.errors import AggloError, Cancelled, InvalidInput
from napari_agglo.evaluate import vi_curve
from napari_agglo.graph import RegionGraph
from napari_agglo.partition import build_tree
from napari_agglo.policy import (
    DataDifference,
    MeanPolicy,
    Policy,
    adapt_cues,
    data_differences,
    is_training_data,
    policy_features,
)
from napari_agglo.volumes import Words, is_on_disk
from napari_agglo.widgets._dataset import Dataset
from napari_agglo.widgets._project import Built, Project, Regions, Trained
from napari_agglo.widgets._slider_scale import Ticks, knee


@dataclass(frozen=True, eq=False)
class Plan:
    """The input of a run, copied from the project in the main thread."""

    dataset: Dataset | None
    regions: Regions | None  # None: to be computed from the dataset
    policy: Policy
    gold: Any
    strokes: int
    any_data: bool = False  # whether to merge also if the policy was trained on other data
    adapt: bool = False  # whether to give the cues the values of the training
    method: str = "threshold"  # the choice of the segments

    @classmethod
    def of(cls, project: Project, method: str = "threshold") -> Plan:
        """Return the plan of a project, without regions of a dataset no longer chosen."""
        dataset, regions = project.dataset, project.regions
        if dataset is None:
            return cls(None, regions or project.shown_regions, project.policy, project.gold,
                       project.strokes, method=method)  # fmt: skip
        current = regions if regions is not None and regions.dataset is dataset else None
        return cls(dataset, current, project.policy, dataset.gold, project.strokes, method=method)


def first_threshold(project: Project, built: Built) -> float:
    """Return the threshold to show first.

    It is 0.5 for a learned policy, which gives probabilities, and for segments that are not chosen
    by a threshold. For any other it is the threshold of the least VI, or without gold that where
    merges begin to be costly.
    """
    if built.policy.probabilistic or built.method != "threshold":
        return 0.5
    least, heights = project.least_vi, built.tree.heights
    return Ticks(heights).threshold(knee(heights)) if least is None else least


@dataclass(frozen=True, eq=False)
class OtherData:
    """The regions of a run that was not made: the policy was trained on other data."""

    plan: Plan
    differences: tuple[DataDifference, ...]

    @property
    def adaptable(self) -> bool:
        """Whether other values of the cues would help."""
        return any(one.cue for one in self.differences)

    @property
    def text(self) -> str:
        """The differences, a paragraph each; a button takes the place of the remedy for cues."""
        texts = [one.text.rpartition("; ")[0] if one.cue else one.text for one in self.differences]
        lines = ["<b>The policy was trained on other data.</b>", *(f"{escape(t)}." for t in texts)]
        if self.adaptable:
            lines.append(
                "<i>Adapt the cues</i> gives them the values of the training: it inverts a cue, or "
                "maps its values to the histogram of the training."
            )
        return "".join(f"<p>{line}</p>" for line in lines)


def adapted(
    regions: Regions, policy: Policy, chosen: Dataset | None, progress: ProgressCallback | None
) -> Regions:
    """Return regions whose cues have the values that the policy was trained on.

    Superpixels are computed anew unless the `chosen` dataset has its own. It is the origin of the
    new one, which takes its place in the project.
    """
    given, cues = regions.dataset, dict(adapt_cues(policy, regions.graph))
    computed = chosen is not None and chosen.superpixels is None
    changed = replace(
        given,
        cues=cues,
        ranges={name: (0.0, 1.0) for name, cue in cues.items() if isinstance(cue, np.ndarray)},
        superpixels=None if computed else given.superpixels,
    )
    new = Regions.of(changed, progress)
    return replace(new, dataset=replace(new.dataset, origin=chosen or given))


def build(plan: Plan, progress: ProgressCallback) -> tuple[Built, AggloError | None] | OtherData:
    """Build a hierarchy; return it and the error of its comparison with gold, if any.

    Where the policy was trained on other data, that is returned before anything is merged.
    """
    regions = plan.regions
    if regions is None:
        if plan.dataset is None:
            raise AggloError("No data are chosen; choose them in step 1, Data.")
        mismatch = cue_mismatch(plan.policy, plan.dataset)
        if mismatch is not None:
            raise mismatch
        regions = Regions.of(plan.dataset, part_of(progress, 0.0, 0.6))
    policy = fitting(plan.policy, regions.graph)
    if not plan.any_data and (differences := data_differences(policy, regions.graph)):
        return OtherData(replace(plan, regions=regions), differences)
    if plan.adapt:
        regions = adapted(regions, policy, plan.dataset, part_of(progress, 0.0, 0.6))
    part = part_of(progress, 0.6, 0.85)
    tree = build_tree(regions.graph, policy, plan.method, progress=part)
    tree.name_inheritance  # noqa: B018 - computed here, not at the first tick of the slider
    own = is_training_data(policy, regions.graph)
    built = Built(tree, regions, policy, plan.gold, training=own, method=plan.method)
    if plan.gold is None:
        return built, None
    try:
        # Beside superpixels on disk, gold is read slab by slab.
        on_disk = is_on_disk(regions.graph.superpixels.image)
        gold = plan.gold if on_disk else np.asarray(plan.gold)
        curve = vi_curve(tree, gold, progress=part_of(progress, 0.85, 1.0))
    except Cancelled:
        raise
    except AggloError as error:
        return replace(built, gold=None), error
    curve.attrs["training"] = own
    return replace(built, curve=curve, strokes=plan.strokes), None


def cue_mismatch(
    policy: Policy, dataset: Dataset | None, *, here: bool = False
) -> InvalidInput | None:
    """Return the error of a policy on a dataset without the cues of its features; or None.

    `here` is for the step of the hierarchy itself, whose button is meant.
    """
    features = policy_features(policy)
    if features is None or dataset is None:
        return None
    words = tuple(name for name, cue in dataset.cues.items() if isinstance(cue, Words))
    cues = tuple(name for name in dataset.cues if name not in words)
    wanted, chosen = features.cues + features.words, cues + words
    if wanted == chosen:
        return None
    missing = [name for name in wanted if name not in chosen]
    further = [name for name in chosen if name not in wanted]
    parts = [f"{_names(missing)} missing"] if missing else []
    parts += [f"{_names(further)} not known to it"] if further else []
    mean = "use the mean here" if here else "use the mean in step 3, Hierarchy"
    same = "choose the same cues in step 1, Data"
    again = "train again in step 2, Train"
    return InvalidInput(
        f"The policy was trained with the cues {', '.join(wanted)}. Of those of {dataset.name}, "
        f"{' and '.join(parts) or 'the order is another'}",
        argument="policy",
        remedy=(mean, same) if dataset.gold is None else (again, mean, same),
    )


def _names(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


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
