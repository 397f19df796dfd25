"""Cross-validation: learn from each volume, test on all the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate._curve import vi_curve
from napari_agglo.evaluate._mean_curve import mean_curve
from napari_agglo.evaluate._optimum import best_point
from napari_agglo.evaluate._points import minimum, state_at
from napari_agglo.evaluate._watch import Watch
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import STRATEGIES, train
from napari_agglo.policy import LearnedPolicy, as_policy
from napari_agglo.tree import agglomerate

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """How well policies do on volumes that they have not learned from.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each test: ``policy``, ``train`` (the volume learned from; None if nothing is
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
        """Return the `mean_curve` of all tests of a policy."""
        return mean_curve({key: one for key, one in self.curves.items() if key[0] == policy})

    def summary(self) -> pd.DataFrame:
        """Return the mean of each measure by policy, its standard error, and ``n``, the tests."""
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
        Options are those of `train`, as a dict; one that is named like a strategy needs not repeat
        it. A policy that learns nothing is given as such, or as None if it is named "mean" or
        "random"; it is tested once on each volume. By default agglo, flat and mean.
    ignore_labels : bool
        As for `vi_curve`.
    seed : int
        Of every training and of "random": same input and seed, same result.
    progress : callable, optional
        Called several times a second with a `Progress` over all the work, whose stage says what is
        going on; raise `Cancelled` in it to stop.

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
    >>> found = cross_validate(volumes, {"flat": {"preset": "minimal"}, "mean": None})
    >>> found.table[["policy", "train", "test"]]
      policy  train   test
    0   flat   left  right
    1   flat  right   left
    2   mean   None   left
    3   mean   None  right
    """
    import pandas as pd

    given = dict(volumes) if isinstance(volumes, Mapping) else dict(enumerate(volumes))
    if len(given) < 2:
        raise InvalidInput(
            f"`volumes` must hold two or more, to learn from one and test on another; got "
            f"{len(given)}."
        )
    chosen = _chosen({"agglo": {}, "flat": {}, "mean": None} if policies is None else policies)
    n, learning = len(given), sum(isinstance(one, dict) for one in chosen.values())
    watch = Watch(progress, learning * n * n + (len(chosen) - learning) * n)
    look = watch.part("best of each volume", 0.0, 0.0)
    best = pd.DataFrame(
        [best_point(*one, ignore_labels=ignore_labels, progress=look) for one in given.values()],
        index=pd.Index(list(given), name="volume"),
    )
    rows: list[dict[str, Any]] = []
    curves: dict[tuple[str, Any, Any], pd.DataFrame] = {}
    trained: dict[tuple[str, Any], LearnedPolicy] = {}

    def test(name: str, policy: Any, learned_from: Any, on: Any) -> None:
        graph, gold = given[on]
        stage = f"test {name} on volume {on}"
        tree = agglomerate(graph, policy, seed=seed, progress=watch.part(stage, 0.0, 0.5))
        curve = vi_curve(
            tree, gold, ignore_labels=ignore_labels, progress=watch.part(stage, 0.5, 0.5)
        )
        watch.step()
        curves[name, learned_from, on] = curve
        rows.append({"policy": name, "train": learned_from, "test": on} | _row(curve))
        rows[-1]["vi_best"] = best.loc[on, "vi"]

    for name, how in chosen.items():
        if not isinstance(how, dict):
            for on in given:
                test(name, how, None, on)
            continue
        for learned_from in given:
            stage = f"train {name} on volume {learned_from}"
            policy = train(
                *given[learned_from], **{"seed": seed, **how}, progress=watch.part(stage, 0.0, 1.0)
            )
            watch.step()
            trained[name, learned_from] = policy
            for on in given:
                if on != learned_from:
                    test(name, policy, learned_from, on)
    watch.finish()
    table = pd.DataFrame(rows)
    table["train"] = pd.Series([row["train"] for row in rows], dtype=object)
    return CrossValidation(table, curves, best, trained)


def _chosen(policies: Mapping[str, Any]) -> dict[str, Any]:
    """Return for each name the options of `train`, or a policy to be used as it is."""
    if not policies:
        raise InvalidInput("`policies` must name a policy at least, e.g. {'agglo': {}}.")
    out: dict[str, Any] = {}
    for name, how in policies.items():
        if isinstance(how, Mapping) or (how is None and name in STRATEGIES):
            known = {"strategy": name} if name in STRATEGIES else {}
            out[name] = {**known, **(how or {})}
            _check_options(name, out[name])
        else:
            out[name] = name if how is None else how
            as_policy(out[name])
    return out


def _check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse what `train` does not know: not after all the trainings that come before."""
    known = set(signature(train).parameters) - {"graph", "gold", "progress"}
    wrong = sorted(set(options) - known)
    if wrong:
        raise InvalidInput(
            f"`policies[{name!r}]` must hold options of `train` ({', '.join(sorted(known))}), got "
            f"{', '.join(map(str, wrong))}."
        )
    strategy = options.get("strategy", "agglo")
    if strategy not in STRATEGIES:
        raise InvalidInput(
            f"`policies[{name!r}]` must have one of the strategies {', '.join(STRATEGIES)}, got "
            f"{strategy!r}."
        )


def _row(curve: pd.DataFrame) -> dict[str, float]:
    half, least = state_at(curve, 0.5), minimum(curve)
    errors = ("vi", "false_merge", "false_split")
    return {
        **{f"{name}_at_half": half[name] for name in errors},
        **{f"{name}_min": least[name] for name in (*errors, "threshold")},
        "rand_max": float(curve["rand"].max()),
        "covering_max": float(curve["covering"].max()),
    }
