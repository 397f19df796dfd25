"""Errors of learned policies: the tables and plots of docs/learning.md.

    python -m benchmarks.experiment_learning [--seeds 5] [--epochs 8] [--only NAME,...]
        [--no-near-misses] [--exact] [-o DIR]

Trains on the training part of each volume and tests on the test part, once for each seed, with the
same defaults for all. Volumes of the data folder are left out where it is absent.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.lessons import Lesson, lessons
from napari_agglo.evaluate import best_point, mean_curve, minimum, state_at, vi_curve
from napari_agglo.learning import ForestSettings

STRATEGIES = ("flat", "agglo", "lash", "mixed")
# The membrane of SNEMI3D is annotated as a body of its own: judged with it, and without.
MEMBRANE = {"snemi": 1}


def judge(lesson: Lesson, policy: Any) -> dict[str, Any]:
    """Return VI at 0.5, at the best threshold, and the curve."""
    graph, gold = lesson
    curve = vi_curve(agglo.agglomerate(graph, policy), gold)
    best = minimum(curve)
    return {
        "at_half": state_at(curve, 0.5)["vi"],
        "best": best["vi"],
        "threshold": best["threshold"],
        "curve": curve,
    }


def experiment(
    training: Lesson, tests: dict[str, Lesson], seeds: int, options: dict[str, Any]
) -> pd.DataFrame:
    """Return a row for each policy, seed and test."""
    found = [{"policy": "mean", "seed": 0, "test": test, **judge(lesson, "mean")}
             for test, lesson in tests.items()]  # fmt: skip
    for strategy in STRATEGIES:
        for seed in range(seeds):
            policy = agglo.train(*training, strategy=strategy, seed=seed, **options)
            found += [
                {"policy": strategy, "seed": seed, "test": test, **judge(lesson, policy)}
                for test, lesson in tests.items()
            ]
            print(".", end="", flush=True)
    return pd.DataFrame(found)


def by_epoch(
    training: Lesson, test: Lesson, seeds: int, epochs: int, options: dict[str, Any]
) -> pd.DataFrame:
    """Return VI after each epoch of agglo."""
    found: list[dict[str, float]] = []

    def note(epoch: int, policy: Any) -> None:
        result = judge(test, policy)
        found.append({"epoch": epoch, "vi_at_half": result["at_half"], "vi_min": result["best"]})

    for seed in range(seeds):
        agglo.train(*training, epochs=epochs, seed=seed, each_epoch=note, **options)
        print(".", end="", flush=True)
    return pd.DataFrame(found)


def table(runs: pd.DataFrame, best: dict[str, float]) -> str:
    """Return means and standard deviations over seeds, as Markdown."""
    lines = ["| policy | VI at 0.5 | VI at best | best threshold |", "|---|---|---|---|"]
    for policy, rows in runs.groupby("policy", sort=False):
        cells = [f"{rows[c].mean():.3f} ± {rows[c].std(ddof=0):.3f}"
                 for c in ("at_half", "best", "threshold")]  # fmt: skip
        lines.append(f"| {policy} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, f"| best possible (A*) | | {best['vi']:.3f} | |"])


def plot(name: str, runs: pd.DataFrame, epochs: pd.DataFrame, best: Any, folder: Path) -> None:
    """Draw VI by threshold, split VI and VI by epoch; over seeds the mean and its error."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from napari_agglo.plots import plot_split_vi, plot_vi_by_epoch, plot_vi_by_threshold

    curves = {}
    for policy, rows in runs[runs["policy"] != "mixed"].groupby("policy", sort=False):
        each = dict(zip(rows["seed"].astype(str), rows["curve"], strict=True))
        curves[str(policy)] = mean_curve(each) if len(each) > 1 else rows["curve"].iloc[0]
    figure = Figure((15, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3)
    plot_vi_by_threshold(curves, axes=left)
    plot_split_vi(curves, best=best, axes=middle)
    plot_vi_by_epoch(epochs, axes=right)
    figure.suptitle(name)
    figure.savefig(folder / f"learning_{name}.png", dpi=72)


def main() -> None:
    """Run the experiments, print the tables, write the plots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--only")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-output"))
    parser.add_argument("--near-misses", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--exact", action="store_true", help="exact trees, 100 in each epoch")
    given = parser.parse_args()
    settings = (
        ForestSettings(trees=100, pooled_epochs=1, early_trees=100, exact=True)
        if given.exact
        else ForestSettings()
    )
    options = {"near_misses": given.near_misses, "settings": settings}
    given.output.mkdir(parents=True, exist_ok=True)
    for name in given.only.split(",") if given.only else lessons():
        training, test = lessons()[name]()
        tests = {name: test}
        if name in MEMBRANE:
            bodies = np.where(test[1] == MEMBRANE[name], 0, test[1])
            tests[f"{name}, judged without the membrane"] = (test[0], bodies)
        print(f"{name}: {training[0]} -> {test[0]}", flush=True)
        runs = experiment(training, tests, given.seeds, options)
        epochs = by_epoch(training, test, min(given.seeds, 3), given.epochs, options)
        best = {key: best_point(*lesson) for key, lesson in tests.items()}
        for key in tests:
            print(f"\n\n**{key}**\n\n" + table(runs[runs["test"] == key], best[key]))
        means = epochs.groupby("epoch").mean()
        for column, words in (("vi_at_half", "at 0.5"), ("vi_min", "at best")):
            print(f"\nVI {words} by epoch:", " ".join(f"{v:.3f}" for v in means[column]))
        print(flush=True)
        plot(name, runs[runs["test"] == name], epochs, best[name], given.output)


if __name__ == "__main__":
    main()
