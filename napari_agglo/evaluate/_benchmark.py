"""Benchmarks: agreement of gold standards, a measure over a set of images, cross-validation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo._progress import Progress, ProgressCallback, part_of, report
from napari_agglo.agglomeration import merge_tree
from napari_agglo.errors import InvalidInput, SetOption, check_choice
from napari_agglo.evaluate._boundary import Matches
from napari_agglo.evaluate._metrics import dense_gold, metrics
from napari_agglo.evaluate._optimal_agglomeration import best_point
from napari_agglo.evaluate._vi_curve import (
    all_thresholds,
    check_curves,
    mean_curve,
    minimum,
    rows_at,
    state_at,
    vi_curve,
)
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import STRATEGIES, train
from napari_agglo.policy import LearnedPolicy, as_policy

if TYPE_CHECKING:
    import pandas as pd


_MEASURES = ["vi", "false_merge", "false_split", "rand", "covering"]


def human_agreement(
    golds: Sequence[Any], *, progress: ProgressCallback | None = None
) -> pd.DataFrame:
    """Compare each gold standard of an image with each of the others.

    Parameters
    ----------
    golds : list of arrays of int
        Two or more gold standards of one image; 0 is not annotated, in both of a pair.
    progress : callable, optional
        Called with a `Progress` at each pair; it may raise `Cancelled`.

    Returns
    -------
    pandas.DataFrame
        A row for each ordered pair: ``labels``, the number of the gold standard in the place of the
        segmentation, ``gold``, the number of the other one, and ``vi``, ``false_merge``,
        ``false_split``, ``rand``, ``covering``.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = human_agreement([np.array([1, 1, 1, 1]), np.array([1, 1, 2, 2])])
    >>> pairs[["labels", "gold", "false_merge", "false_split"]]
       labels  gold  false_merge  false_split
    0       0     1          1.0          0.0
    1       1     0          0.0          1.0
    """
    import pandas as pd

    if not isinstance(golds, (list, tuple)) or len(golds) < 2:
        raise InvalidInput(
            "`golds` must be a list of two or more gold standards of one image",
            argument="golds",
            remedy="compare the annotation of one person with that of another",
        )
    dense = [dense_gold(one, f"golds[{number}]") for number, one in enumerate(golds)]
    pairs = [(a, b) for a in range(len(dense)) for b in range(len(dense)) if a != b]
    rows = []
    for done, (a, b) in enumerate(pairs):
        report(progress, "agreement", done, len(pairs))
        scores = metrics(dense[a], dense[b], ignore_labels=True)
        rows.append({"labels": a, "gold": b} | scores[_MEASURES].to_dict())
    report(progress, "agreement", len(pairs), len(pairs))
    return pd.DataFrame(rows)


# measures that are best where they are lowest, and where they are highest
_LOWER = ("vi", "false_merge", "false_split")
_HIGHER = ("rand", "covering", "f")
_COUNTS = ("drawn", "right", "true", "recalled")


@dataclass(frozen=True, eq=False)
class OverSet:
    """One measure over a set of images.

    Attributes
    ----------
    quantity : str
        The measure.
    threshold : float
        The threshold that is best for all images together.
    ods : float
        The mean at that threshold ("optimal dataset scale").
    ois : float
        The mean when each image has its own best threshold ("optimal image scale").
    best : float or None
        The mean of the bounds that no threshold can surpass; None if `best` was not passed.
    images : pandas.DataFrame
        By name: ``ods``, ``ois``, ``threshold`` (its own best), ``best``.
    """

    quantity: str
    threshold: float
    ods: float
    ois: float
    best: float | None
    images: pd.DataFrame


def over_set(
    curves: Mapping[Any, pd.DataFrame],
    quantity: str = "vi",
    *,
    best: Mapping[Any, float] | None = None,
) -> OverSet:
    """Summarise a measure over a set of images, as the Berkeley benchmark does.

    Parameters
    ----------
    curves : dict of name to curve
        A `vi_curve`, or for "f" a `boundary_curve`, of each image.
    quantity : {"vi", "false_merge", "false_split", "rand", "covering", "f"}
        The first three are best where they are lowest, the others where they are highest. For "f"
        the boundary pixels of all images are pooled, rather than averaged.
    best : dict of name to float, optional
        Bounds that no threshold can surpass: ``best_point(graph, gold)["vi"]``, or
        ``best_covering(tree, gold)``.

    Returns
    -------
    OverSet

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"threshold": [0.0, 0.4, 0.6], "vi": [3.0, 1.0, 2.0]})
    >>> two = pd.DataFrame({"threshold": [0.0, 0.5, 0.7], "vi": [3.0, 2.0, 0.0]})
    >>> scores = over_set({"one": one, "two": two})
    >>> scores.threshold, scores.ods, scores.ois
    (0.7, 1.0, 0.5)
    """
    import pandas as pd

    check_choice("quantity", quantity, _LOWER + _HIGHER)
    check_curves(curves, "threshold", quantity)
    if best is not None and set(best) != set(curves):
        raise InvalidInput(
            "`best` must have a value for each of `curves`, by the same names",
            argument="best",
            remedy="leave it out, or compute it for the same images",
        )
    sign = 1.0 if quantity in _LOWER else -1.0
    grid = all_thresholds(curves)
    pooled = quantity == "f" and all(set(_COUNTS) <= set(one.columns) for one in curves.values())
    names = _COUNTS if pooled else (quantity,)
    sums = {name: np.zeros(grid.size) for name in names}
    for curve in curves.values():
        rows = rows_at(curve, grid)
        for name in names:
            sums[name] += curve[name].to_numpy()[rows]
    own = {name: int((sign * one[quantity].to_numpy()).argmin()) for name, one in curves.items()}
    if pooled:
        at_all = np.array([_pooled_f(*counts) for counts in zip(*sums.values(), strict=True)])
        ois = _pooled_f(
            *(sum(int(one[name].iloc[own[key]]) for key, one in curves.items()) for name in names)
        )
    else:
        at_all = sums[quantity] / len(curves)
        ois = float(np.mean([one[quantity].iloc[own[name]] for name, one in curves.items()]))
    best_row = int((sign * at_all).argmin())
    images = pd.DataFrame(
        {
            "ods": [state_at(one, grid[best_row])[quantity] for one in curves.values()],
            "ois": [float(one[quantity].iloc[own[name]]) for name, one in curves.items()],
            "threshold": [float(one["threshold"].iloc[own[name]]) for name, one in curves.items()],
            "best": [math.nan if best is None else float(best[name]) for name in curves],
        },
        index=pd.Index(list(curves), name="image"),
    )
    return OverSet(
        quantity,
        float(grid[best_row]),
        float(at_all[best_row]),
        ois,
        None if best is None else float(images["best"].mean()),
        images,
    )


def _pooled_f(drawn: float, right: float, true: float, recalled: float) -> float:
    return Matches(int(drawn), int(right), int(true), int(recalled)).f


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Errors of policies on volumes that they have not learned from.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each test: ``policy``, ``train`` (the training volume; None if nothing is
        learned), ``test``, ``vi_at_half`` and its ``false_merge_at_half``, ``false_split_at_half``
        (cut at 0.5), ``vi_min`` with ``threshold_min``, ``false_merge_min``, ``false_split_min``,
        ``rand_max``, ``covering_max``, and ``vi_best``, of the optimal agglomeration.
    curves : dict
        The `vi_curve` of each test, by (policy, train, test).
    best : pandas.DataFrame
        The `best_point` of each volume, by name.
    trained : dict
        The policies learned, by (policy, train).
    """

    table: pd.DataFrame
    curves: dict[tuple[str, Any, Any], pd.DataFrame]
    best: pd.DataFrame
    trained: dict[tuple[str, Any], LearnedPolicy]

    def mean_curve(self, policy: str) -> pd.DataFrame:
        """Return the `mean_curve` of all tests of a policy.

        Parameters
        ----------
        policy : str
            The name of a policy.

        Returns
        -------
        DataFrame
            The columns of `vi_curve`, as means over the tests.
        """
        return mean_curve({key: one for key, one in self.curves.items() if key[0] == policy})

    def summary(self) -> pd.DataFrame:
        """Return the mean of each measure by policy, its standard error, and ``n``, the tests.

        Returns
        -------
        DataFrame
            A row for each policy.
        """
        import pandas as pd

        grouped = self.table.drop(columns=["train", "test"]).groupby("policy", sort=False)
        errors = grouped.sem().add_suffix("_sem")
        return pd.concat([grouped.mean(), errors, grouped.size().rename("n")], axis=1)


def cross_validate(
    volumes: Sequence[tuple[RegionGraph, Any]] | Mapping[Any, tuple[RegionGraph, Any]],
    policies: Mapping[str, Any] | None = None,
    *,
    ignore_labels: bool = False,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> CrossValidation:
    """Learn each policy from each volume in turn and test it on all the others.

    Parameters
    ----------
    volumes : list of (graph, gold), or dict of name to (graph, gold)
        Two or more; a gold may be a list of several gold standards. In a list they are named 0, 1,
        ...
    policies : dict of name to options, optional
        Options are those of `train`, as a dict; a policy named like a strategy need not repeat it.
        A policy that learns nothing is passed itself, or as None if its name is "mean" or "random";
        it is tested once on each volume. By default agglo, flat and mean.
    ignore_labels : bool
        As for `vi_curve`.
    seed : int
        Seed of every training and of "random": same input and seed, same result.
    progress : callable, optional
        Called several times a second with a `Progress` over all the work, whose stage names the
        present step; raise `Cancelled` in it to stop.

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> import napari_agglo as agglo
    >>> volumes = {}
    >>> for name, cut in (("left", slice(0, 96)), ("right", slice(96, 192))):
    ...     sample = agglo.sample("neuropil2d")
    ...     cues = {name: cue[:96, cut] for name, cue in sample.cues.items()}
    ...     graph = agglo.region_graph(agglo.oversegment(cues["boundary"]), cues)
    ...     volumes[name] = graph, sample.gold[:96, cut]
    >>> result = cross_validate(volumes, {"flat": {"preset": "minimal"}, "mean": None})
    >>> result.table[["policy", "train", "test"]]
      policy  train   test
    0   flat   left  right
    1   flat  right   left
    2   mean   None   left
    3   mean   None  right
    """
    import pandas as pd

    named = dict(volumes) if isinstance(volumes, Mapping) else dict(enumerate(volumes))
    if len(named) < 2:
        raise InvalidInput(
            f"`volumes` must be two or more, to learn from one and test on another, got "
            f"{len(named)}",
            argument="volumes",
            remedy="cut a volume in two, or add one",
        )
    plans = training_plans(
        {"agglo": {}, "flat": {}, "mean": None} if policies is None else policies
    )
    n, learning = len(named), sum(isinstance(one, dict) for one in plans.values())
    steps, done = learning * n * n + (len(plans) - learning) * n, 0

    def part(stage: str, begin: float, end: float) -> ProgressCallback | None:
        """Return the callback of a part of the present step."""
        return part_of(progress, (done + begin) / steps, (done + end) / steps, stage)

    begin = part("best of each volume", 0.0, 0.0)
    best = pd.DataFrame(
        [best_point(*one, ignore_labels=ignore_labels, progress=begin) for one in named.values()],
        index=pd.Index(list(named), name="volume"),
    )
    rows: list[dict[str, Any]] = []
    curves: dict[tuple[str, Any, Any], pd.DataFrame] = {}
    trained: dict[tuple[str, Any], LearnedPolicy] = {}

    def test(name: str, policy: Any, learned_from: Any, on: Any) -> None:
        nonlocal done
        graph, gold = named[on]
        stage = f"test {name} on volume {on}"
        tree = merge_tree(graph, as_policy(policy, seed), progress=part(stage, 0.0, 0.5))
        curve = vi_curve(tree, gold, ignore_labels=ignore_labels, progress=part(stage, 0.5, 1.0))
        done += 1
        curves[name, learned_from, on] = curve
        rows.append({"policy": name, "train": learned_from, "test": on} | curve_errors(curve))
        rows[-1]["vi_best"] = best.loc[on, "vi"]

    for name, plan in plans.items():
        if not isinstance(plan, dict):
            for on in named:
                test(name, plan, None, on)
            continue
        for learned_from in named:
            stage = f"train {name} on volume {learned_from}"
            policy = train(
                *named[learned_from], **{"seed": seed, **plan}, progress=part(stage, 0.0, 1.0)
            )
            done += 1
            trained[name, learned_from] = policy
            for on in named:
                if on != learned_from:
                    test(name, policy, learned_from, on)
    if progress is not None:
        progress(Progress("done", 1, 1).part(0.0, 1.0))
    table = pd.DataFrame(rows)
    table["train"] = pd.Series([row["train"] for row in rows], dtype=object)
    return CrossValidation(table, curves, best, trained)


def training_plans(policies: Mapping[str, Any]) -> dict[str, Any]:
    """Return for each name the options of `train`, or a policy that learns nothing."""
    given: Any = policies
    if not isinstance(given, Mapping):
        names = [given] if isinstance(given, str) else given
        is_list = isinstance(names, (list, tuple)) and all(isinstance(one, str) for one in names)
        plans: Any = {one: {} if one in STRATEGIES else None for one in names} if is_list else None
        raise InvalidInput(
            "`policies` must be a dict from names to the options of `train` or to policies, got "
            f"{given!r:.60}",
            argument="policies",
            remedy=SetOption("policies", plans or {"agglo": {}, "mean": None}),
        )
    if not policies:
        raise InvalidInput(
            "`policies` is empty", argument="policies", remedy="name one, e.g. {'agglo': {}}"
        )
    out: dict[str, Any] = {}
    for name, plan in policies.items():
        if isinstance(plan, Mapping) or (plan is None and name in STRATEGIES):
            strategy = {"strategy": name} if name in STRATEGIES else {}
            out[name] = {**strategy, **(plan or {})}
            _check_options(name, out[name])
        else:
            out[name] = name if plan is None else plan
            as_policy(out[name])
    return out


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that `train` does not have, before any training begins."""
    known = set(signature(train).parameters) - {"graph", "gold", "progress"}
    wrong = sorted(set(options) - known)
    if wrong:
        raise InvalidInput(
            f"`policies[{name!r}]` must be options of `train`, got {', '.join(map(str, wrong))}",
            argument=f"policies[{name!r}]",
            remedy=f"choose from {', '.join(sorted(known))}",
        )
    strategy = options.get("strategy", "agglo")
    if strategy not in STRATEGIES:
        raise InvalidInput(
            f"`policies[{name!r}]` has no known strategy: {strategy!r}",
            argument=f"policies[{name!r}]",
            remedy=f"choose from {', '.join(STRATEGIES)}",
        )


def curve_errors(curve: pd.DataFrame) -> dict[str, float]:
    """Return the errors of a curve at 0.5 and at its best."""
    half, least = state_at(curve, 0.5), minimum(curve)
    errors = ("vi", "false_merge", "false_split")
    return {
        **{f"{name}_at_half": half[name] for name in errors},
        **{f"{name}_min": least[name] for name in (*errors, "threshold")},
        "rand_max": float(curve["rand"].max()),
        "covering_max": float(curve["covering"].max()),
    }
