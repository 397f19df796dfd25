"""A policy fitted again, with what a person decided among its examples.

A person decides a few dozen times, and a training set has thousands of examples, most of which the
policy gets right anyway; an edit is where it was wrong. So an edit counts for `WEIGHT` examples.
VI at 0.5 of neuropil2d samples unlike the training volume, with the edits of one of them counting
1, 5 and 20 times (``python -m benchmarks.experiment_edits faded``):

    10 edits    0.830 without    0.672  0.632  0.576
    30 edits    0.830 without    0.581  0.509  0.574

Far more than 5 gains while there are few edits and loses when there are more, for all are
exceptions. From the edits alone, without a training set, a policy learns nothing but exceptions:
4.6 and 4.0. All 79 edits, with the corrected segments as gold, gave 0.584.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges, merge_greedily
from napari_agglo.errors import InvalidInput, check_choice, check_whole
from napari_agglo.features import FeatureMap
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import STRATEGIES, ForestSettings, train
from napari_agglo.learning._fit import Examples, fit, held_out_scores, judgement
from napari_agglo.learning._train import extra_examples
from napari_agglo.policy import LearnedPolicy, Logistic, Policy, policy_features, policy_record
from napari_agglo.session._actions import Cut, Edit, Refused
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._relearn.examples import live_examples
from napari_agglo.session._relearn.transfer_edits import transfer_edits
from napari_agglo.session._threshold_view import View

# What a user asks to learn from, and how; refused in words before any work is done.


Volume = tuple[RegionGraph, Any]
Volumes = Volume | Iterable[Volume]

FEW = 100  # examples; of fewer, without a training set, no good policy comes
_MOST = 1000  # times that an edit counts


def check_volumes(volumes: Any) -> list[Volume]:
    """Return what to learn from as pairs of a graph and its gold standard; one pair will do.

    Examples
    --------
    >>> check_volumes([])
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: `volumes` must be pairs of a RegionGraph and its gold ...
    """
    if isinstance(volumes, (tuple, list)) and len(volumes) == 2:
        first, second = volumes
        if isinstance(first, RegionGraph) and not _is_pair(second):
            volumes = [(first, second)]
    if isinstance(volumes, (str, bytes, Mapping, RegionGraph)) or not isinstance(volumes, Iterable):
        raise _no_pairs(type(volumes).__name__)
    pairs = []
    for one in volumes:
        if not _is_pair(one):
            raise _no_pairs(f"{one!r:.80} for one")
        pairs.append((one[0], one[1]))
    if not pairs:
        raise _no_pairs("none")
    return pairs


def _is_pair(one: Any) -> bool:
    if not isinstance(one, (tuple, list)) or len(one) != 2:
        return False
    return isinstance(one[0], RegionGraph) and one[1] is not None


def _no_pairs(came: str) -> InvalidInput:
    return InvalidInput(
        "`volumes` must be pairs of a RegionGraph and its gold standard, [(graph, gold), ...], got "
        f"{came}",
        argument="volumes",
        remedy="pass what the policy was trained on, or leave it out",
    )


def check_options(strategy: Any, weight: Any, seed: Any, others: Mapping[str, Any]) -> None:
    """Refuse a way to learn that there is not."""
    for name in others:
        raise InvalidInput(
            f"`{name}` is no argument of relearn()",
            argument=name,
            remedy="take volumes, strategy, weight, seed or progress",
        )
    if strategy is not None:
        check_choice("strategy", strategy, STRATEGIES)
    check_whole("weight", weight, 1, _MOST)
    check_whole("seed", seed, 0, 2**32 - 1)


WEIGHT = 5  # examples that an edit counts for; see above


def refit(
    policy: Policy,
    rows: Any,
    labels: Any,
    *,
    volumes: Iterable[tuple[RegionGraph, Any]] | None = None,
    strategy: str | None = None,
    features: FeatureMap | None = None,
    weight: int = WEIGHT,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> LearnedPolicy:
    """Fit a policy again with the examples of edits.

    With the volumes that it was trained on, the training is repeated and every fit learns from the
    edits too, each counting for several examples. Who does not have them any more should pass the
    graph of the session with its corrected segments as gold. Without any volume the policy learns
    from the edits alone, and knows where the old one was wrong but not where it was right.

    `rows` are features of two segments as `pair_row` gives them, `labels` -1 if these were merged
    and +1 if they were cut apart; `features` names them for a policy that was not learned.
    Strategy, classifier and settings are read off the record of the policy. The other parameters
    are those of `Session.relearn`. The record of the result has "edits", the number of each kind.
    """
    record = policy_record(policy) or {}
    if features is None:
        features = policy_features(policy)
        if features is None:
            raise InvalidInput(
                "`features` is missing: this policy was not learned, so they cannot be read off it",
                argument="features",
                remedy="pass the feature map that `rows` were made with",
            )
    examples = extra_examples((rows, labels), features, 0)
    to_merge, to_keep = (int((examples.labels == kind).sum()) for kind in (-1, 1))
    settings = _settings(record)
    was = record.get("strategy")
    was = was if was in STRATEGIES else None  # a policy of edits alone has none
    is_logistic = isinstance(getattr(policy, "model", None), Logistic)
    classifier = "logistic" if is_logistic else "forest"
    if volumes is not None:
        volumes = list(volumes)
        _check(volumes, features)
        if not len(examples):
            raise InvalidInput(
                "There is no edit to learn from",
                argument="rows",
                remedy="merge or cut something, or answer suggestions",
            )
        fitted = train(
            volumes,
            strategy=strategy or was or "agglo",
            epochs=record["epochs"] if was not in (None, "flat") else 5,
            start=record.get("start", "flat"),
            preset=features.preset,
            classifier=classifier,
            settings=settings,
            near_misses=record.get("near_misses", True),
            extra=(examples.rows.repeat(weight, axis=0), examples.labels.repeat(weight)),
            seed=seed,
            progress=progress,
        )
    else:
        if not (to_merge and to_keep):
            merges, cuts = (
                f"{n} {kind}{'' if n == 1 else 's'}"
                for n, kind in ((to_merge, "merge"), (to_keep, "cut"))
            )
            raise InvalidInput(
                f"There are {merges} and {cuts} to learn from, and a policy is learned from both",
                argument="volumes",
                remedy=f"{'merge' if to_keep else 'cut'} something that is wrong, answer "
                "suggestions, or pass the training set as `volumes`",
            )
        fitted = _alone(features, examples, classifier, settings, seed, progress)
    edits = {"to_merge": to_merge, "to_keep": to_keep, "weight": 1 if volumes is None else weight}
    return LearnedPolicy(features, fitted.model, {**fitted.record, "edits": edits})


def _check(volumes: list[tuple[RegionGraph, Any]], features: FeatureMap) -> None:
    """Refuse volumes whose features are not those of the edits."""
    for graph, _ in volumes:
        if graph.cue_names != features.cues or graph.layout.bins != features.bins:
            raise InvalidInput(
                f"`volumes` has a graph of {', '.join(graph.cue_names)} in {graph.layout.bins} "
                f"bins, and the edits are of {', '.join(features.cues)} in {features.bins}",
                argument="volumes",
                remedy="build the graphs alike",
            )


def _settings(record: dict[str, Any]) -> ForestSettings:
    """Return how the forest of a record was grown, as far as it says."""
    known = asdict(ForestSettings())
    stored = record.get("settings") or {}
    return ForestSettings(**{name: stored.get(name, known[name]) for name in known})


def _alone(
    features: FeatureMap,
    examples: Examples,
    classifier: str,
    settings: ForestSettings,
    seed: int,
    progress: ProgressCallback | None,
) -> LearnedPolicy:
    """Fit a policy to the edits and nothing else."""
    fitted = fit(examples, classifier, settings, len(examples), seed, progress, "fit")
    record = {
        "strategy": "edits",
        "epochs": 0,
        "classifier": classifier,
        "seed": int(seed),
        "settings": asdict(settings) if classifier == "forest" else {},
        "volumes": [],
        "examples": len(examples),
        "extra_examples": len(examples),
        "to_merge": int((examples.labels < 0).sum()),
        **judgement(fitted, examples, features, held_out_scores(fitted, examples)),
    }
    return LearnedPolicy(features, fitted.model, record)


# Learning from the edits of a session: refit, agglomerate, and replay the edits.


@dataclass(frozen=True, eq=False)
class Relearned:
    """A policy learned from edits, its merges, the edits that follow them, and notes."""

    policy: Policy
    merges: Merges
    edits: tuple[Edit, ...]
    notes: tuple[str, ...]


def learn_from_edits(
    view: View,
    volumes: list[Volume] | None,
    *,
    strategy: str | None,
    weight: int,
    seed: int,
    progress: ProgressCallback | None,
) -> Relearned:
    """Learn from the edits of a session, merge anew, and replay the edits on the new tree."""
    state = view.state
    if state.features is None:
        raise Refused(
            "This session knows only the means of its cues, which is not enough to learn from",
            argument="graph",
            remedy="make one on a graph built with statistics='all'",
        )
    rows, labels = live_examples(view)
    policy = refit(
        state.policy, rows, labels, volumes=volumes, features=state.features,
        strategy=strategy, weight=int(weight), seed=int(seed), progress=progress,
    )  # fmt: skip
    merges = merge_greedily(state.graph, policy, progress=progress)
    trial = Hierarchy(state.graph, policy, merges)
    constraints = state.tree.constraints
    live = [
        Cut(edit.scale, parts) if isinstance(edit, Cut) else edit  # with pieces made since
        for edit, parts in zip(constraints.edits, constraints.parts, strict=True)
    ]
    edits, left = transfer_edits(trial, live, view.threshold, progress, policy)
    notes = [one.words for one in left]
    if volumes is None and len(labels) < FEW:
        examples = "1 example" if len(labels) == 1 else f"{len(labels)} examples"
        notes.insert(
            0,
            f"It was learned from {examples} alone, which is few and may do harm elsewhere; undo "
            "if so, and pass the training set as `volumes`.",
        )
    return Relearned(policy, merges, tuple(edits), tuple(notes))
