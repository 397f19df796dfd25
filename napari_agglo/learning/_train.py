"""Training of a policy: strategies, epochs, and the collection of examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Annotated, Any

import numpy as np
from numba.core.event import Listener, register

from napari_agglo._data_warnings import warn_caller
from napari_agglo._progress import Progress, ProgressCallback, WorkClock, check_progress
from napari_agglo.errors import DataWarning, InvalidInput, SetOption, check_choice, check_whole
from napari_agglo.features import FeatureMap, check_blocks, feature_map
from napari_agglo.graph import RegionGraph
from napari_agglo.learning._fit import (
    Examples,
    Fitted,
    ForestSettings,
    fit,
    fit_quality,
    held_out_scores,
    joined,
    pool_fits,
    with_neutral,
)
from napari_agglo.learning._training_volume import TrainingVolume, boundary_labels, training_volume
from napari_agglo.policy import (
    LearnedPolicy,
    MeanPolicy,
    Policy,
    as_policy,
    cue_digests,
    data_profile,
    graph_digest,
)


class _Compilations(Listener):  # type: ignore[misc]
    """Listener of numba that excludes compilation from estimates of the time left."""

    def on_start(self, event: object) -> None:
        WorkClock.begin_compiling()

    def on_end(self, event: object) -> None:
        WorkClock.end_compiling()


register("numba:compile", _Compilations())


def extra_examples(extra: tuple[Any, Any] | None, features: FeatureMap, first: int) -> Examples:
    """Return the examples of the caller, each with its own owner, numbered from `first`.

    Copies have one owner: a tree learns from all of them, or from none.
    """
    if extra is None:
        return joined([], features.width)
    rows, labels = np.asarray(extra[0], np.float32), np.asarray(extra[1])
    if rows.ndim != 2 or rows.shape[1] != features.width or len(rows) != len(labels):
        raise InvalidInput(
            f"`extra` must be rows of the {features.width} features of {features.preset!r} and a "
            f"label for each, got arrays of shape {rows.shape} and {labels.shape}",
            argument="extra",
            remedy="pass rows of feature_matrix(graph, features) and -1 or +1 for each",
        )
    if not (np.isfinite(rows).all() and np.isin(labels, (-1, 1)).all()):
        raise InvalidInput(
            "`extra` must have finite features and labels of -1 (merge) or +1",
            argument="extra",
            remedy="remove other rows",
        )
    owners = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return Examples(rows, labels.astype(np.int8), first + owners)


def training_pairs(graph: Any, gold: Any) -> list[tuple[RegionGraph, list[Any]]]:
    """Return each volume to learn from and the list of its gold standards.

    Parameters
    ----------
    graph : RegionGraph, or iterable of (graph, gold)
        As for `train`.
    gold : array of int, list of these, or None
        As for `train`.

    Returns
    -------
    list of (RegionGraph, list of arrays)
        Each volume with its gold standards, one or several.
    """
    if isinstance(graph, RegionGraph):
        if gold is None:
            raise InvalidInput(
                "`gold` is missing: train(graph, gold) needs a gold standard",
                argument="gold",
                remedy=SetOption("gold"),
            )
        volumes = [(graph, gold)]
    else:
        volumes = list(graph) if isinstance(graph, Iterable) else []
        pairs = all(
            isinstance(one, (tuple, list)) and len(one) == 2 and isinstance(one[0], RegionGraph)
            for one in volumes
        )
        if gold is not None or not volumes or not pairs:
            one_pair = len(volumes) == 2 and isinstance(volumes[0], RegionGraph)
            raise InvalidInput(
                "`graph` must be a RegionGraph with its `gold`, or a list of pairs "
                f"(graph, gold) and no `gold`; got {type(graph).__name__}",
                argument="graph",
                remedy="pass the pair as two arguments, train(graph, gold), or in a list"
                if one_pair
                else "make a graph with region_graph(superpixels, cues)",
            )
    return [
        (one, list(truth) if isinstance(truth, (list, tuple)) else [truth])
        for one, truth in volumes
    ]


def training_volumes(graph: Any, gold: Any, mask: Any) -> list[TrainingVolume]:
    """Return the volumes to learn from, compared with their gold standards."""
    pairs = training_pairs(graph, gold)
    if mask is not None and len(pairs) > 1:
        raise InvalidInput(
            "`mask` is for one volume",
            argument="mask",
            remedy="set gold to 0 where it is not annotated",
        )
    out: list[TrainingVolume] = []
    owners = 0
    for one, golds in pairs:
        first = pairs[0][0]
        if one.cue_names != first.cue_names or one.layout != first.layout:
            raise InvalidInput(
                "All graphs must have the same cues, bins and number of axes; got "
                f"{first.cue_names}, {first.layout} and {one.cue_names}, {one.layout}",
                argument="graph",
                remedy="build all graphs with the same cues and options",
            )
        out.append(training_volume(one, golds, mask, owners))
        owners += out[-1].n_owners
    return out


STRATEGIES = ("flat", "agglo", "lash", "mixed")
# With the values that a control offers.
Epochs = Annotated[int, {"min": 1, "max": 50}]
Seed = Annotated[int, {"min": 0, "max": 2**31 - 1}]
_STARTS = ("flat", "mean", "random")
_CLASSIFIERS = ("forest", "logistic")


def warn_if_inverted(volumes: list[TrainingVolume]) -> None:
    """Warn if the boundary cue is lower on gold borders than inside of gold segments."""
    cue = MeanPolicy.cue
    if cue not in volumes[0].graph.cue_names:
        return
    labels = np.concatenate([boundary_labels(one.graph.edges, one.assigned) for one in volumes])
    means = np.concatenate([one.graph.boundary_mean(cue) for one in volumes])
    keep, merge = means[labels > 0], means[labels < 0]
    if min(len(keep), len(merge)) < _ENOUGH:
        return
    # The share of pairs, one of each kind, in which the boundary to keep is the higher one.
    higher = float(np.searchsorted(np.sort(merge), keep).mean() / len(merge))
    if higher < _INVERTED:
        graph = volumes[0].graph
        limits = graph.cue_ranges[graph.cue_names.index(cue)]
        warn_caller(
            DataWarning(
                f"The cue {cue!r} looks inverted: on gold borders it is {keep.mean():.2f} in the "
                f"mean, and {merge.mean():.2f} between superpixels of one segment",
                argument=f"cues[{cue!r}]",
                remedy=SetOption("ranges", limits[::-1], cue, "and make the superpixels again"),
            )
        )


_ENOUGH = 30  # boundaries of either kind from which an inverted cue can be told from chance
_CHANCE = 0.6  # share of pairs in the right order, below which a fit tells nothing; 0.9 is usual
_INVERTED = 0.35  # share of pairs in the right order, below which a cue is called inverted


def train(
    graph: RegionGraph | Iterable[tuple[RegionGraph, Any]],
    gold: Any = None,
    *,
    strategy: str = "agglo",
    epochs: Epochs = 5,
    start: str = "flat",
    preset: str = "shape",
    classifier: str = "forest",
    settings: ForestSettings | None = None,
    near_misses: bool = True,
    mask: Any = None,
    extra: tuple[Any, Any] | None = None,
    seed: Seed = 0,
    each_epoch: Callable[[int, LearnedPolicy], object] | None = None,
    progress: ProgressCallback | None = None,
) -> LearnedPolicy:
    """Learn a policy of merging from a gold standard.

    Parameters
    ----------
    graph : RegionGraph, or iterable of (RegionGraph, gold)
        The training data: one graph and its `gold`, or several volumes.
    gold : array of int, or list of arrays
        The gold standard, of the shape of the superpixels; 0 is not annotated, and superpixels that
        are wholly 0 there give no examples and are not merged. A list has several gold standards of
        one image: the label of a boundary is that of their majority, and a tie gives no example.
    strategy : {"agglo", "flat", "lash", "mixed"}
        Source of examples. *flat*: the boundaries between superpixels. *agglo*: the same, then in
        each epoch the merges that the present policy suggests; right merges are done, so there are
        examples of every scale. *lash*: every suggested merge is done and labelled by its effect on
        the Rand index; only the last epoch is kept. *mixed*: the examples of agglo and of lash.
    epochs : int
        Epochs of agglomeration.
    start : {"flat", "mean", "random"}
        The policy of the first epoch.
    preset : {"shape", "stack", "em", "minimal", "natural", "angles"}
        The features. *shape*: moments and quantiles of every cue, its contrast at the boundary,
        contact, and the shape of the union. *stack*: shape, and links between planes, for stacks
        whose superpixels were made plane by plane. *em*: moments, quantiles and histograms of every
        cue, sizes and contact, the features of the paper. *minimal*: few features, for quick tests.
        *natural*: em, with more quantiles, the angles of regions, and the share of their convex
        hulls that they fill, for natural images in 2-D. *angles*: natural without the hulls, in any
        dimension. ``"shape+NAME"`` adds the feature block NAME of another package, which
        ``napari-agglo plugins`` lists (docs/extending.md).
    classifier : {"forest", "logistic"}
        The classifier. *forest*: a random forest. *logistic*: logistic regression, small and quick,
        without combinations of features.
    settings : ForestSettings, optional
        Parameters of the forest.
    near_misses : bool
        Whether *agglo* and *mixed* have a further example after each merge: of the boundaries of
        the new region that must stay, the one with the lowest priority. The paper has no such
        examples. Without them, a good policy learns from merges of every scale, but from boundaries
        to keep only of the first and the last scale.
    mask : array of bool, optional
        Pixels where `gold` is reliable; for one volume only.
    extra : (array, array), optional
        More examples: rows of `napari_agglo.features.feature_matrix`, and -1 (should merge) or +1
        for each, for instance decisions of a person. Every fit learns from them, with any strategy;
        copies count as often as they occur.
    seed : int
        Seed of random numbers. The same input and seed give the same policy, bit for bit.
    each_epoch : callable, optional
        Called with the number of each epoch (0 is flat) and the policy of the epochs so far, e.g.
        to plot the error. All but the last have fewer trees; see `ForestSettings`.
    progress : callable, optional
        Called several times a second with a `Progress`; raise `Cancelled` in it to stop.

    Returns
    -------
    LearnedPolicy
        Its `record` has the settings of the training and the accuracy on held-out examples.

    Warns
    -----
    DataWarning
        If the cue "boundary" is lower on gold borders than inside of gold segments; or if the
        policy is no better than chance on boundaries it has not seen, as with gold whose axes are
        exchanged.

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> sample = agglo.sample("neuropil2d")
    >>> superpixels = agglo.oversegment(sample.cues["boundary"])
    >>> graph = agglo.region_graph(superpixels, sample.cues)
    >>> policy = agglo.train(graph, sample.gold, epochs=1, preset="minimal")
    >>> policy
    LearnedPolicy(agglo, forest of 200 trees, minimal features of boundary, cytoplasm, mitochondria)
    """
    check_choice("strategy", strategy, STRATEGIES)
    check_choice("start", start, _STARTS)
    check_choice("classifier", classifier, _CLASSIFIERS)
    check_whole("epochs", epochs, 0, 1000)
    check_whole("seed", seed, 0, 2**32 - 1)
    check_progress(progress)
    volumes = training_volumes(graph, gold, mask)
    warn_if_inverted(volumes)
    features = feature_map(volumes[0].graph, preset)
    check_blocks(volumes[0].graph, features)
    training = _Training(
        volumes,
        features,
        extra_examples(extra, features, sum(one.n_owners for one in volumes)),
        classifier,
        settings or ForestSettings(),
        near_misses,
        int(seed),
        0 if strategy == "flat" else int(epochs),
        each_epoch,
        progress,
    )
    return _learn(training, strategy, start)


def learn_volumes(
    volumes: list[TrainingVolume],
    features: FeatureMap,
    *,
    epochs: int,
    settings: ForestSettings,
    seed: int,
    progress: ProgressCallback | None = None,
) -> LearnedPolicy:
    """Learn a policy by agglo from volumes that are compared with their gold standards already."""
    none = extra_examples(None, features, 0)
    training = _Training(
        volumes, features, none, "forest", settings, True, seed, epochs, None, progress
    )
    return _learn(training, "agglo", "flat")


def _learn(training: _Training, strategy: str, start: str) -> LearnedPolicy:
    fitted, examples = training.run(strategy, start)
    volumes, features, classifier = training.volumes, training.features, training.classifier
    record = {
        "strategy": strategy,
        "epochs": training.epochs,
        "start": start,
        "near_misses": bool(training.near_misses),
        "neutral": training.neutral,
        "classifier": classifier,
        "seed": training.seed,
        "settings": asdict(training.settings) if classifier == "forest" else {},
        "volumes": [
            {
                "superpixels": one.graph.n_regions,
                "boundaries": one.graph.n_boundaries,
                "digest": graph_digest(one.graph),
                "pixels": int(one.graph.superpixels.image.size),
                "cues": cue_digests(one.graph),
            }
            for one in volumes
        ],
        "data": data_profile([one.graph for one in volumes]),
        "examples": len(examples),
        "extra_examples": len(training.extra),
        "to_merge": int((examples.labels < 0).sum()),
        "history": training.history,
        **fit_quality(fitted, examples, features, held_out_scores(fitted, examples)),
    }
    return LearnedPolicy(features, with_neutral(fitted.model, training.neutral), record)


def _warn_of_chance(fitted: Fitted, examples: Examples) -> None:
    """Warn if a fit of initial boundaries tells nothing of those that it has not seen.

    Examples of later epochs follow from the merges of the policy, and are told apart to a part
    also where the gold standard is of another image.
    """
    scores = held_out_scores(fitted, examples)
    wrong = examples.labels > 0
    least = min(int(wrong.sum()), int((~wrong).sum()))
    if scores is None or least < _ENOUGH:
        return
    right, majority = float(((scores > 0.5) == wrong).mean()), 1 - least / len(examples)
    # The share of pairs, one of each kind, in which the wrong merge has the higher score.
    order = float(np.searchsorted(np.sort(scores[~wrong]), scores[wrong]).mean() / (~wrong).sum())
    if right <= majority and order < _CHANCE:
        warn_caller(
            DataWarning(
                f"The policy is no better than chance: of boundaries that it was not fitted to, "
                f"{right:.1%} are right, and {majority:.1%} if all have the same answer",
                argument="gold",
                remedy="check that the gold standard is of this image, and the order of its axes",
            )
        )


class _Training:
    """The epochs of one training, and the state between them."""

    def __init__(
        self,
        volumes: list[TrainingVolume],
        features: FeatureMap,
        extra: Examples,
        classifier: str,
        settings: ForestSettings,
        near_misses: bool,
        seed: int,
        epochs: int,
        each_epoch: Callable[[int, LearnedPolicy], object] | None,
        progress: ProgressCallback | None,
    ) -> None:
        self.volumes = volumes
        self.features = features
        self.extra = extra
        self.classifier = classifier
        self.settings = settings
        self.near_misses = near_misses
        self.seed = seed
        self.epochs = epochs
        self.each_epoch = each_epoch
        self.progress = progress
        self.history: list[dict[str, int]] = []
        self.fits: list[Fitted] = []  # of the epochs whose trees the policy has
        self.n_pooled = max(1, min(settings.pooled_epochs, epochs))
        self.share = settings.trees // self.n_pooled  # trees of each of them; the last has the rest
        self.n_owners = sum(one.n_owners for one in volumes) + len(extra)
        self.neutral = 0.5  # probability that the policy calls 0.5
        self._clock = WorkClock()

    def run(self, strategy: str, start: str) -> tuple[Fitted, Examples]:
        """Return the fits of the last epochs, pooled, and the examples of the last."""
        width = self.features.width
        if strategy == "agglo" and self.epochs and self.near_misses:
            self.neutral = self.settings.neutral
        kept: list[Examples] = []
        policy: Policy = as_policy(start, self.seed) if start != "flat" else MeanPolicy()
        in_bag = np.zeros((0, 0), np.uint8)
        if start == "flat" or not self.epochs:
            kept = [joined((one.flat(self.features) for one in self.volumes), width)]
            examples, fitted = self._learn(kept, 0)
            if not len(self.extra):  # edits may rightly say what gold does not
                _warn_of_chance(fitted, examples)
            policy, in_bag = LearnedPolicy(self.features, fitted.model), fitted.in_bag
        for epoch in range(1, self.epochs + 1):
            last: list[Examples] = []
            if strategy in ("agglo", "mixed"):
                kept.append(self._collect("strict", policy, in_bag, epoch))
            if strategy in ("lash", "mixed"):
                last = [self._collect("loose", policy, in_bag, epoch)]
            examples, fitted = self._learn([*kept, *last] if strategy != "lash" else last, epoch)
            policy, in_bag = LearnedPolicy(self.features, fitted.model), fitted.in_bag
        return pool_fits(self.fits, self.share), examples

    def _learn(self, parts: list[Examples], epoch: int) -> tuple[Examples, Fitted]:
        width = self.features.width
        examples = joined([joined(parts, width).unique(), self.extra], width)
        self.history.append(
            {
                "epoch": epoch,
                "examples": len(examples),
                "to_merge": int((examples.labels < 0).sum()),
            }
        )
        fitted = self._fit(examples, epoch)
        # The fit of the initial boundaries is no part of the pool: it knows no large regions.
        self.fits = [*self.fits, fitted][-self.n_pooled :] if epoch > 1 else [fitted]
        if self.each_epoch is not None:
            model = pool_fits(self.fits, self.share).model
            model = with_neutral(model, self.neutral if epoch else 0.5)
            self.each_epoch(epoch, LearnedPolicy(self.features, model))
        return examples, fitted

    def _collect(self, kind: str, policy: Policy, in_bag: Any, epoch: int) -> Examples:
        parts = []
        for one in self.volumes:

            def tell(merges: int, most: int, examples: int) -> None:
                self._tell("agglomerate", epoch, merges, most, examples)

            if kind == "strict":
                near = self.near_misses
                part = one.strict(self.features, policy, in_bag, tell, near_misses=near)
            else:
                part = one.loose(self.features, policy, in_bag, tell)
            parts.append(part)
        return joined(parts, self.features.width)

    def _fit(self, examples: Examples, epoch: int) -> Fitted:
        def tell(state: Any) -> None:
            self._tell("fit", epoch, state.done, state.total, len(examples))

        most = self.settings.trees
        if epoch < self.epochs:
            pooled = self.share if epoch > self.epochs - self.n_pooled else 0
            trees = max(pooled, min(most, self.settings.early_trees))
        else:
            trees = most - self.share * (self.n_pooled - 1)
        return fit(
            examples,
            self.classifier,
            replace(self.settings, trees=trees),
            self.n_owners,
            self.seed + 1000 * epoch,
            tell,
            "fit",
        )

    def _tell(self, stage: str, epoch: int, done: int, total: int, examples: int) -> None:
        if self.progress is None:
            return
        within = done / total if total else 1.0
        part = (epoch + (0.5 * within if stage == "agglomerate" else 0.5 + 0.5 * within)) / (
            self.epochs + 1
        )
        spent = self._clock.seconds()
        left = spent * (1 - part) / part if part > 0.02 else None
        detail = f"epoch {epoch}, {examples:,} examples"
        self.progress(Progress(stage, done, total, part, left, detail))
