"""Held-out parts: the error of a policy on a part of the gold standard that did not teach it.

Strategy: superpixels are divided into parts by planes across one axis. A superpixel that a plane
of the held-out part crosses, or nearly touches, is neither in it nor in the training data, so that
both lie apart. A policy learns from all other parts, and merges the held-out one alone: boundaries
to other superpixels are left out of its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import (
    Progress,
    ProgressCallback,
    WorkClock,
    check_progress,
)
from napari_agglo.agglomeration import merge_tree
from napari_agglo.errors import InvalidInput, check_whole
from napari_agglo.evaluate._benchmark import CrossValidation, curve_errors, training_plans
from napari_agglo.evaluate._metrics import split_vi
from napari_agglo.evaluate._optimal_agglomeration import best_point
from napari_agglo.evaluate._vi_curve import vi_curve
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import assign, train, training_pairs
from napari_agglo.policy import LearnedPolicy, as_policy

if TYPE_CHECKING:
    import pandas as pd

_GAP = 0.01  # share of the annotated extent that stays free on each side of a plane
# Gold segments that a part needs: below, trees are not bagged by segment, and an error is chance.
LEAST_SEGMENTS = 8

Pair = tuple[RegionGraph, list[Any]]  # a graph and its gold standards


@dataclass(frozen=True, eq=False)
class Fold:
    """A division of volumes into training data and one held-out part."""

    number: int | None  # of the held-out part; None if the training data are tested
    training: list[Pair]
    test: list[Pair]
    names: list[str]  # of the held-out part, for each volume in `test`


@dataclass(frozen=True, eq=False)
class _Slabs:
    """Slabs between planes across an axis, with a margin; one number if a volume is a part."""

    axis: int
    planes: NDArray[np.float64]  # -inf, the planes, inf
    margin: float
    number: int | None = None

    def sides(
        self, graph: RegionGraph, part: int
    ) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """Return masks of superpixels and of pixels: inside a part, and outside of it.

        A pixel without a superpixel is on the side of its plane.
        """
        image = graph.superpixels.image
        if self.number is not None:
            masks = [np.full(len(graph.boxes), (part == self.number) == side) for side in (1, 0)]
            return [(mask, np.broadcast_to(mask[0], image.shape)) for mask in masks]
        low, high = self.planes[part : part + 2]
        first, last = graph.boxes[:, 0, self.axis], graph.boxes[:, 1, self.axis]
        inside = (first >= low + self.margin) & (last <= high - self.margin)
        outside = (last <= low - self.margin) | (first >= high + self.margin)
        places = np.arange(image.shape[self.axis]) + 0.5
        places = places.reshape([-1 if k == self.axis else 1 for k in range(image.ndim)])
        within = np.broadcast_to((low <= places) & (places < high), image.shape)
        return [
            (regions, np.where(image == 0, pixels, regions[image]))
            for regions, pixels in ((inside, within), (outside, ~within))
        ]


def folds_of(volumes: list[Pair], folds: int) -> list[Fold]:
    """Divide volumes into `folds` parts, and return the folds; one fold is a half against a half.

    Several volumes are parts themselves, if there are as many; fewer are cut across an axis.

    Raises
    ------
    InvalidInput
        If a part would have too few gold segments.
    """
    n_parts = max(folds, 2)
    if len(volumes) >= n_parts:
        none = np.array([-np.inf, np.inf])
        slabs = [_Slabs(0, none, 0.0, k % n_parts) for k in range(len(volumes))]
    else:
        slabs = [_cut(graph, golds[0], n_parts) for graph, golds in volumes]
    divided = [_fold(volumes, slabs, part) for part in range(n_parts)]
    segments = [sum(_n_segments(*pair) for pair in fold.test) for fold in divided]
    if folds == 1:
        divided, segments[0] = divided[1:], sum(_n_segments(*one) for one in divided[1].training)
    if min(segments) < LEAST_SEGMENTS:
        raise InvalidInput(
            f"A held-out part needs {LEAST_SEGMENTS} gold segments of two superpixels or more; of "
            f"{n_parts} parts the smallest has {min(segments)}",
            argument="folds",
            remedy="annotate more segments, or train without a held-out part"
            if n_parts == 2
            else "choose fewer folds, or annotate more segments",
        )
    return divided


def _cut(graph: RegionGraph, gold: Any, n_parts: int) -> _Slabs:
    """Divide a volume across the axis that leaves most gold segments in one part, and few out."""
    owners = assign(graph, gold)
    known = np.flatnonzero(owners)
    if not known.size:
        raise InvalidInput(
            "`gold` annotates no superpixel", argument="gold", remedy="annotate some"
        )
    candidates = []
    for axis in range(graph.superpixels.image.ndim):
        low, high = graph.boxes[known, 0, axis], graph.boxes[known, 1, axis]
        cuts = np.quantile((low + high) / 2, np.arange(1, n_parts) / n_parts)
        margin = _GAP * float(high.max() - low.min())
        slabs = _Slabs(axis, np.concatenate([[-np.inf], cuts, [np.inf]]), margin)
        crossed = np.any([(low < cut + margin) & (high > cut - margin) for cut in cuts], axis=0)
        part = np.searchsorted(cuts, (low + high)[~crossed] / 2)
        segments = owners[known[~crossed]].astype(np.int64)
        places = len(np.unique(np.stack([segments, part]), axis=1).T)
        shared = 1 - len(np.unique(segments)) / max(places, 1)
        candidates.append((shared + float(crossed.mean()), axis, slabs))
    return min(candidates, key=lambda one: one[:2])[2]


def _n_segments(graph: RegionGraph, golds: list[Any]) -> int:
    """Return the number of gold segments with two superpixels or more."""
    owners = assign(graph, golds[0])
    return int((np.unique(owners[owners > 0], return_counts=True)[1] > 1).sum())


def _fold(volumes: list[Pair], slabs: list[_Slabs], part: int) -> Fold:
    training, test, names = [], [], []
    for number, ((graph, golds), one) in enumerate(zip(volumes, slabs, strict=True)):
        inside, outside = one.sides(graph, part)
        if outside[0][1:].any():
            training.append(_restrict(graph, golds, *outside))
        if inside[0][1:].any():
            test.append(_restrict(graph, golds, *inside))
            names.append(f"part {part}" + (f" of volume {number}" if len(volumes) > 1 else ""))
    return Fold(part, training, test, names)


def _restrict(
    graph: RegionGraph, golds: list[Any], inside: NDArray[np.bool_], pixels: NDArray[np.bool_]
) -> Pair:
    """Return the graph with the boundaries between superpixels `inside`, and the gold of `pixels`.

    The other superpixels stay as regions without neighbours, which nothing annotates.
    """
    kept = inside[graph.edges].all(axis=1)
    part = replace(graph, edges=graph.edges[kept], boundaries=graph.boundaries[kept])
    return part, [np.where(pixels, gold, 0) for gold in golds]


_BAR = 1000  # steps of a bar over several trainings and tests


class _Steps:
    """Progress of several trainings and tests, as one bar with an estimate of the time left."""

    def __init__(self, progress: ProgressCallback | None, total: float) -> None:
        self.progress = progress
        self.total = total
        self.done = 0.0
        self._clock = WorkClock()
        self._latest: Progress | None = None
        self._share = 0.0

    def step(self, words: str, size: float, *, name_stages: bool = True) -> ProgressCallback | None:
        """Return the callback of the next step, of a share `size` of the total.

        The words follow the name of each stage of the step, unless `name_stages` is false.
        """
        if self.progress is None:
            return None
        begin, self.done = self.done, self.done + size

        def forward(inner: Progress) -> None:
            # a stage of a test begins at 0, and the bar must not move back
            self._share = max(self._share, (begin + size * min(inner.whole, 1.0)) / self.total)
            share = self._share
            spent = self._clock.seconds()
            left = spent * (1 - share) / share if share > 0.02 else None
            stage = f"{inner.stage} {words}" if name_stages else words
            self._latest = replace(inner, stage=stage, share=share, seconds_left=left)
            assert self.progress is not None
            self.progress(self._latest)

        return forward

    def hold(self, _: Progress) -> None:
        """Report the latest state again, so that a test of an epoch can be cancelled."""
        if self.progress is not None and self._latest is not None:
            self.progress(self._latest)


EachEpoch = Callable[[int | None, int, float, float], object]


def hold_out(
    graph: Any,
    gold: Any = None,
    policies: Mapping[str, Any] | None = None,
    *,
    folds: int = 1,
    seed: int = 0,
    each_epoch: EachEpoch | None = None,
    progress: ProgressCallback | None = None,
) -> CrossValidation:
    """Estimate the error on other data: learn from parts of the gold standard, test on the others.

    Parts are divided by planes across an axis, with a gap between them, or are the volumes if there
    are enough.

    Parameters
    ----------
    graph, gold
        As for `train`.
    policies : dict of name to options, optional
        As for `cross_validate`; by default agglo, flat and mean.
    folds : int
        1: learn from one half and test on the other. More: the number of parts; each is tested
        after learning from all others.
    seed : int
        Seed of every training.
    each_epoch : callable, optional
        Called after each epoch of a training with the number of the held-out part, the number of
        the epoch, and false merge and false split at 0.5 on the held-out part.
    progress : callable, optional
        Called several times a second with a `Progress` over all the work, of a training a
        `Progress`; raise `Cancelled` in it to stop.

    Returns
    -------
    CrossValidation
        With a row for each policy and held-out part.

    Raises
    ------
    InvalidInput
        If a part would have fewer than 8 gold segments of two superpixels or more.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> sample = agglo.sample("neuropil2d")
    >>> superpixels = agglo.oversegment(sample.cues["boundary"])
    >>> graph = agglo.region_graph(superpixels, sample.cues)
    >>> result = hold_out(graph, sample.gold, {"flat": {"preset": "minimal"}, "mean": None})
    >>> result.table[["policy", "train", "test"]]
      policy           train    test
    0   flat  all but part 1  part 1
    1   mean            None  part 1
    """
    check_whole("folds", folds, 1, 100)
    check_progress(progress)
    plans = training_plans(
        {"agglo": {}, "flat": {}, "mean": None} if policies is None else policies
    )
    divided = folds_of(training_pairs(graph, gold), folds)
    size = sum(_size(fold, plans) for fold in divided)
    return _validate(divided, plans, seed, each_epoch, _Steps(progress, size))


_TEST = 0.15  # work of a test, in trainings on all the gold


def _size(fold: Fold, plans: Mapping[str, Any]) -> float:
    """Return the work of a fold: of a training its share of boundaries, and of each test."""
    boundaries = [
        sum(graph.n_boundaries for graph, _ in part) for part in (fold.training, fold.test)
    ]
    share = boundaries[0] / max(sum(boundaries), 1)
    return sum(_TEST + share * isinstance(plan, dict) for plan in plans.values())


def _validate(
    folds: list[Fold],
    plans: Mapping[str, Any],
    seed: int,
    each_epoch: EachEpoch | None,
    steps: _Steps,
) -> CrossValidation:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    curves: dict[tuple[str, Any, Any], pd.DataFrame] = {}
    trained: dict[tuple[str, Any], LearnedPolicy] = {}
    best: dict[str, dict[str, float]] = {}
    for fold in folds:
        best |= {name: best_point(*pair) for name, pair in zip(fold.names, fold.test, strict=True)}
        for name, plan in plans.items():
            learned_from, policy = None, plan
            size = _size(fold, {name: plan})
            if isinstance(plan, dict):
                words = "without the held-out part"
                learned_from = f"all but part {fold.number}"
                policy = trained[name, learned_from] = train(
                    fold.training,
                    **{"seed": seed, **plan},
                    each_epoch=_epoch_errors(fold, each_epoch, steps),
                    progress=steps.step(words, size - _TEST),
                )
            forward = steps.step(f"testing {name} on the held-out part", _TEST, name_stages=False)
            for on, (graph, golds) in zip(fold.names, fold.test, strict=True):
                tree = merge_tree(graph, as_policy(policy, seed), progress=forward)
                curve = vi_curve(tree, golds, progress=forward)
                curves[name, learned_from, on] = curve
                row = {"policy": name, "train": learned_from, "test": on, **curve_errors(curve)}
                rows.append({**row, "vi_best": best[on]["vi"]})
    table = pd.DataFrame(rows)
    table["train"] = pd.Series([row["train"] for row in rows], dtype=object)
    points = pd.DataFrame(best.values(), index=pd.Index(list(best), name="volume"))
    return CrossValidation(table, curves, points, trained)


def _epoch_errors(
    fold: Fold, each_epoch: EachEpoch | None, steps: _Steps
) -> Callable[[int, LearnedPolicy], None] | None:
    if each_epoch is None:
        return None

    def measure(epoch: int, policy: LearnedPolicy) -> None:
        errors = [
            split_vi(merge_tree(graph, policy, progress=steps.hold).segment(0.5), gold)
            for graph, golds in fold.test
            for gold in golds
        ]
        merge, split = np.mean(errors, axis=0)
        each_epoch(fold.number, epoch, float(merge), float(split))

    return measure


def train_and_hold_out(
    graph: Any,
    gold: Any = None,
    *,
    folds: int = 1,
    compare: tuple[str, ...] = ("mean",),
    each_epoch: EachEpoch | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> LearnedPolicy:
    """Train a policy on all the gold standard, with an estimate of its error on other data.

    The estimate is that of `hold_out`, with policies that learned from parts of the gold standard.
    The policy itself learns from all of it.

    Parameters
    ----------
    graph, gold, progress
        As for `hold_out`.
    folds : int
        As for `hold_out`; 0 trains without an estimate.
    compare : tuple of str
        Further policies to test on the held-out parts, such as "mean" and "flat".
    each_epoch : callable, optional
        As for `hold_out`; without held-out parts the errors are those on the training data, and the
        number of the part is None.
    **options
        Options of `train`.

    Returns
    -------
    LearnedPolicy
        Its ``record["estimate"]`` has ``folds`` and ``policies``: for the strategy and each of
        `compare` the mean of ``vi_at_half``, ``false_merge_at_half``, ``false_split_at_half``,
        ``vi_min`` and ``vi_best``. Where the gold standard is too small, it has ``refusal``, a
        sentence, instead.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> sample = agglo.sample("neuropil2d")
    >>> superpixels = agglo.oversegment(sample.cues["boundary"])
    >>> graph = agglo.region_graph(superpixels, sample.cues)
    >>> policy = train_and_hold_out(graph, sample.gold, strategy="flat", preset="minimal")
    >>> list(policy.record["estimate"]["policies"])
    ['flat', 'mean']
    """
    check_whole("folds", folds, 0, 100)
    check_progress(progress)
    strategy = options.get("strategy", "agglo")
    # a policy to compare has the options of the training, but for its strategy
    plans = training_plans(
        {strategy: options}
        | {
            name: None if name == "mean" else {**options, "strategy": name}
            for name in compare
            if name != strategy
        }
    )
    volumes = training_pairs(graph, gold)
    divided: list[Fold] = []
    estimate: dict[str, Any] = {"folds": folds}
    if folds:
        try:
            divided = folds_of(volumes, folds)
        except InvalidInput as error:
            estimate["refusal"] = error.problem
    steps = _Steps(progress, 1 + sum(_size(fold, plans) for fold in divided))
    if divided:
        result = _validate(divided, plans, options.get("seed", 0), each_epoch, steps)
        estimate["policies"] = _means(result)
        each_epoch = None
    policy = train(
        volumes,
        **options,
        each_epoch=_epoch_errors(Fold(None, volumes, volumes, []), each_epoch, steps),
        progress=steps.step("with all the gold" + (", second pass" if divided else ""), 1.0),
    )
    return replace(
        policy, record={**policy.record, "estimate": estimate} if folds else policy.record
    )


_MEASURES = (
    "vi_at_half",
    "false_merge_at_half",
    "false_split_at_half",
    "vi_min",
    "vi_best",
)


def _means(result: CrossValidation) -> dict[str, dict[str, float]]:
    grouped = result.table.groupby("policy", sort=False)[list(_MEASURES)].mean()
    return {
        str(name): {column: round(float(row[column]), 4) for column in _MEASURES}
        for name, row in grouped.iterrows()
    }
