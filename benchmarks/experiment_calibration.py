"""Thresholds chosen from the training volume, against a fixed one, on the sources of the judge.

    python -m benchmarks.experiment_calibration [--seed 0] [--only fib25,...]

For each direction a policy of agglo learns from one side. Three ways give a threshold without the
other side: 0.5; the best one of the two halves of the training side, each merged by a policy of the
other half; and the best one of the whole training side, each boundary scored by the trees that did
not learn from its gold segment. The other side tells how far above the best VI each of them is.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.judge import THRESHOLDS, sides, sources
from benchmarks.lessons import Lesson
from napari_agglo.agglomeration import MergeTree
from napari_agglo.agglomeration._agglomerate import _run
from napari_agglo.agglomeration._rescoring import merge_by_rescoring
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import hold_out, state_at, vi_curve
from napari_agglo.features import feature_map
from napari_agglo.learning import ForestSettings, _train
from napari_agglo.learning._fit import with_neutral
from napari_agglo.policy import LearnedPolicy


def by_threshold(curves: list[pd.DataFrame]) -> Any:
    """Return the mean VI of curves at each threshold."""
    return np.mean([[state_at(curve, t)["vi"] for t in THRESHOLDS] for curve in curves], axis=0)


def from_halves(training: list[Lesson], seed: int) -> Any:
    """Return VI by threshold on the halves of the training side, or None if they are too small."""
    try:
        result = hold_out(training, policies={"agglo": {}}, folds=2, seed=seed)
    except InvalidInput:
        return None
    return by_threshold(list(result.curves.values()))


def learn(training: list[Lesson], seed: int) -> tuple[LearnedPolicy, Any]:
    """Return a policy, and VI by threshold of the training side by trees that did not see it."""
    settings = ForestSettings()
    volumes = _train.training_volumes(training, None, None)
    features = feature_map(volumes[0].graph)
    none = _train.extra_examples(None, features, 0)
    run = _train._Training(
        volumes, features, none, "forest", settings, True, seed, 5, None, None
    )  # fmt: skip
    fitted, _ = run.run("agglo", "flat")
    policy = LearnedPolicy(features, with_neutral(fitted.model, settings.neutral))
    if not fitted.in_bag.size:
        return policy, None
    curves = []
    for one, (graph, gold) in zip(volumes, training, strict=True):
        every = np.ones(graph.n_boundaries, bool)
        state = one._start(features, policy, fitted.in_bag, every, ~every)
        merges = _run(graph, merge_by_rescoring, state, None)
        tree = MergeTree._of(
            graph.superpixels, merges.winners, merges.losers, merges.priorities, graph.sizes
        )
        curves.append(vi_curve(tree, gold))
    return policy, by_threshold(curves)


def main() -> None:
    """Print the best threshold of each direction, and the three that were chosen without it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(one for one in sources() if one != "bsds"))
    given = parser.parse_args()
    rows = []
    for source in given.only.split(","):
        for side in (0, 1):
            training, test = sides(source, "boundary")[side], sides(source, "boundary")[1 - side]
            policy, unseen = learn(training, given.seed)
            trees = [agglo.agglomeration.merge_tree(graph, policy) for graph, _ in test]
            curves = [vi_curve(tree, gold) for tree, (_, gold) in zip(trees, test, strict=True)]
            vi = by_threshold(curves)
            row = {"source": source, "side": side, "best": vi.min(), "at": THRESHOLDS[vi.argmin()]}
            chosen = {"0.5": abs(THRESHOLDS - 0.5), "halves": from_halves(training, given.seed),
                      "unseen": unseen}  # fmt: skip
            for name, values in chosen.items():
                k = None if values is None else int(np.argmin(values))
                row[name] = np.nan if k is None else THRESHOLDS[k]
                row[f"{name}: above"] = np.nan if k is None else vi[k] - vi.min()
            rows.append(row)
    table = pd.DataFrame(rows)
    print(table.to_string(index=False, float_format="%.3f"))
    known = table.dropna()
    print(f"\nmeans of {len(known)} directions with all of them:")
    print(known.filter(like="above").mean().to_string(float_format="%.3f"))


if __name__ == "__main__":
    main()
