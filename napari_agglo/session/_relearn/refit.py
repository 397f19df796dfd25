"""Fit of a policy to its training set and the edits of a session.

There are a few dozen edits and thousands of examples in a training set, most of which the policy
gets right; an edit is an example that it got wrong. So an edit counts for `WEIGHT` examples.
VI at 0.5 of neuropil2d samples unlike the training volume, with the edits of one of them counting
1, 5 and 20 times (``python -m benchmarks.experiment_edits faded``):

    10 edits    0.830 without    0.672  0.632  0.576
    30 edits    0.830 without    0.581  0.509  0.574

A weight far above 5 gains with few edits and loses with more, for all edits are exceptions. A
policy fitted to the edits alone learns nothing but exceptions: 4.6 and 4.0. All 79 edits, with the
corrected segments as gold, gave 0.584.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges, merge_greedily
from napari_agglo.errors import InvalidInput, check_choice, check_whole
from napari_agglo.features import FeatureMap
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import STRATEGIES, ForestSettings, train
from napari_agglo.learning._fit import Examples, fit, fit_quality, held_out_scores
from napari_agglo.learning._train import extra_examples
from napari_agglo.policy import LearnedPolicy, Logistic, Policy, policy_features, policy_record
from napari_agglo.session._actions import Cut, Edit, Refused
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._relearn.examples import live_examples
from napari_agglo.session._relearn.transfer_edits import transfer_edits
from napari_agglo.session._threshold_view import View

Volume = tuple[RegionGraph, Any]
Volumes = Volume | Iterable[Volume]

FEW = 100  # examples without a training set; fewer make no good policy
WEIGHT = 5  # examples that an edit counts for; see above
_MOST = 1000  # the largest weight
Weight = Annotated[int, {"min": 1, "max": _MOST}]


def check_volumes(volumes: Any) -> list[Volume]:
    """Return volumes as a list of pairs of a graph and its gold standard; one pair is accepted too.

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
        remedy="pass the training set of the policy, or leave it out",
    )


def check_options(strategy: Any, weight: Any, seed: Any, others: Mapping[str, Any]) -> None:
    """Refuse options of `Session.relearn` that are unknown or out of range."""
    for name in others:
        raise InvalidInput(
            f"relearn() has no argument `{name}`",
            argument=name,
            remedy="use volumes, strategy, weight, seed or progress",
        )
    if strategy is not None:
        check_choice("strategy", strategy, STRATEGIES)
    check_whole("weight", weight, 1, _MOST)
    check_whole("seed", seed, 0, 2**32 - 1)


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

    With volumes, the training is repeated with the edits among its examples, each counting `weight`
    times; if the training set is lost, the graph of the session with its corrected segments as gold
    may take its place. Without volumes the policy is fitted to the edits alone.

    `rows` are features of two segments as returned by `pair_row`, `labels` -1 if the two were
    merged and +1 if they were cut apart; `features` names the columns for a policy that was not
    learned. Strategy, classifier and settings are read from the record of the policy. The other
    parameters are those of `Session.relearn`. The record of the result has "edits", the number of
    each kind.
    """
    record = policy_record(policy) or {}
    if features is None:
        features = policy_features(policy)
        assert features is not None
    examples = extra_examples((rows, labels), features, 0)
    to_merge, to_keep = (int((examples.labels == kind).sum()) for kind in (-1, 1))
    stored = record.get("settings") or {}
    defaults = asdict(ForestSettings())
    settings = ForestSettings(**{name: stored.get(name, defaults[name]) for name in defaults})
    was = record.get("strategy")
    was = was if was in STRATEGIES else None  # a policy of edits alone has none
    is_logistic = isinstance(getattr(policy, "model", None), Logistic)
    classifier = "logistic" if is_logistic else "forest"
    if volumes is not None:
        volumes = list(volumes)
        for graph, _ in volumes:
            same = (graph.cue_names, graph.word_names) == (features.cues, features.words)
            if not same or graph.layout.bins != features.bins:
                raise InvalidInput(
                    f"`volumes` has a graph of {', '.join(graph.cue_names)} in {graph.layout.bins} "
                    f"bins, and the edits are of {', '.join(features.cues)} in {features.bins}",
                    argument="volumes",
                    remedy="build all graphs with the same cues and bins",
                )
        if not len(examples):
            raise InvalidInput(
                "There is no edit to learn from",
                argument="rows",
                remedy="merge or cut a segment, or answer suggestions",
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
                remedy=f"{'merge' if to_keep else 'cut'} a wrong segment, answer suggestions, or "
                "pass the training set as `volumes`",
            )
        fitted = _alone(features, examples, classifier, settings, seed, progress)
    edits = {"to_merge": to_merge, "to_keep": to_keep, "weight": 1 if volumes is None else weight}
    return LearnedPolicy(features, fitted.model, {**fitted.record, "edits": edits})


def _alone(
    features: FeatureMap,
    examples: Examples,
    classifier: str,
    settings: ForestSettings,
    seed: int,
    progress: ProgressCallback | None,
) -> LearnedPolicy:
    """Fit a policy to the edits alone."""
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
        **fit_quality(fitted, examples, features, held_out_scores(fitted, examples)),
    }
    return LearnedPolicy(features, fitted.model, record)


@dataclass(frozen=True, eq=False)
class Relearned:
    """A policy learned from edits, its merges, the edits to make on its tree, and notes."""

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
    """Learn from the edits of a session, agglomerate, and transfer the edits to the new tree."""
    state = view.state
    if state.features is None:
        raise Refused(
            "The graph of this session has only the means of its cues, too little to learn from",
            argument="graph",
            remedy="create a session on a graph built with statistics='all'",
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
    edits, conflicts = transfer_edits(trial, live, view.threshold, progress, policy)
    notes = [conflict.words for conflict in conflicts]
    if volumes is None and len(labels) < FEW:
        examples = "1 example" if len(labels) == 1 else f"{len(labels)} examples"
        notes.insert(
            0,
            f"The policy was learned from {examples} alone, which may make other segments worse; "
            "undo if so, and pass the training set as `volumes`.",
        )
    return Relearned(policy, merges, tuple(edits), tuple(notes))
