"""How good learned policies are: the tables and plots of docs/learning.md.

    python -m benchmarks.experiment_learning [--seeds 5] [--epochs 8] [--only NAME,...] [-o DIR]

Learns on the training part of each volume and judges on the test part, once for each seed, with the
same defaults for all. Volumes of the data folder are left out where it is absent.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks.lessons import Lesson, lessons
from napari_agglo.evaluate import state_at

STRATEGIES = ("flat", "agglo", "lash", "mixed")
COLOURS = {"mean": "#888888", "flat": "#2a6f97", "agglo": "#c8553d", "lash": "#6a994e",
           "mixed": "#7b4397"}  # fmt: skip


def judge(lesson: Lesson, policy: Any) -> dict[str, Any]:
    """Return VI at 0.5, at the best threshold, and the curve."""
    graph, gold = lesson
    curve = agglo.vi_curve(agglo.agglomerate(graph, policy), gold)
    best = curve.loc[curve["vi"].idxmin()]
    return {
        "at_half": float(state_at(curve, 0.5)["vi"]),
        "best": float(best["vi"]),
        "threshold": float(best["threshold"]),
        "curve": curve,
    }


def experiment(name: str, seeds: int, epochs: int) -> dict[str, Any]:
    """Return the figures of one pair of volumes."""
    training, test = lessons()[name]()
    print(f"{name}: {training[0]} -> {test[0]}", flush=True)
    figures: dict[str, Any] = {"mean": [judge(test, "mean")]}
    for strategy in STRATEGIES:
        figures[strategy] = []
        for seed in range(seeds):
            start = time.perf_counter()
            policy = agglo.train(*training, strategy=strategy, seed=seed)
            took = time.perf_counter() - start
            figures[strategy].append({**judge(test, policy), "seconds": took,
                                      "accuracy": policy.record["accuracy"]})  # fmt: skip
        print(row(strategy, figures[strategy]), flush=True)
    by_epoch: list[list[tuple[float, float]]] = []
    for seed in range(min(seeds, 3)):
        found: list[tuple[float, float]] = []

        def note(epoch: int, policy: Any, found: Any = found) -> None:
            said = judge(test, policy)
            found.append((said["at_half"], said["best"]))

        agglo.train(*training, epochs=epochs, seed=seed, each_epoch=note)
        by_epoch.append(found)
    figures["by_epoch"] = by_epoch
    return figures


def row(strategy: str, runs: list[dict[str, Any]]) -> str:
    """Return a line of the table: mean and standard deviation over seeds."""

    def both(key: str) -> str:
        values = [run[key] for run in runs]
        return f"{np.mean(values):.3f} ± {np.std(values):.3f}"

    seconds = f"{np.mean([run['seconds'] for run in runs]):.1f}" if "seconds" in runs[0] else ""
    return f"| {strategy} | {both('at_half')} | {both('best')} | {both('threshold')} | {seconds} |"


def plot(name: str, figures: dict[str, Any], folder: Path) -> None:
    """Draw VI by threshold, split VI and VI by epoch."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((13, 4), layout="constrained")
    FigureCanvasAgg(figure)
    by_threshold, split, by_epoch = figure.subplots(1, 3)
    for strategy in ("mean", "flat", "agglo", "lash"):
        run = figures[strategy][0]
        curve, colour = run["curve"], COLOURS[strategy]
        half = state_at(curve, 0.5)
        by_threshold.step(
            curve["threshold"], curve["vi"], where="post", color=colour, label=strategy
        )
        by_threshold.plot(run["threshold"], run["best"], "*", color=colour, ms=11)
        by_threshold.plot(0.5, run["at_half"], "o", color=colour, ms=6)
        split.plot(curve["false_merge"], curve["false_split"], color=colour, label=strategy)
        best = curve.loc[curve["vi"].idxmin()]
        split.plot(best["false_merge"], best["false_split"], "*", color=colour, ms=11)
        split.plot(half["false_merge"], half["false_split"], "o", color=colour, ms=6)
    limit = 2.2 * figures["agglo"][0]["at_half"]
    by_threshold.set(xlabel="threshold", ylabel="VI (bits)", xlim=(0, 1), ylim=(0, 2 * limit))
    split.set(xlabel="false merge H(U|S) (bits)", ylabel="false split H(S|U) (bits)",
              xlim=(0, limit), ylim=(0, limit))  # fmt: skip
    values = np.array(figures["by_epoch"])
    at = np.arange(values.shape[1])
    for k, label, style in ((0, "at 0.5", "o-"), (1, "best threshold", "*--")):
        mean = values[:, :, k].mean(axis=0)
        by_epoch.plot(at, mean, style, color=COLOURS["agglo"], label=label)
        by_epoch.fill_between(at, values[:, :, k].min(axis=0), values[:, :, k].max(axis=0),
                              color=COLOURS["agglo"], alpha=0.15, lw=0)  # fmt: skip
    by_epoch.set(
        xlabel="epochs of agglomerative learning (0 is flat)", ylabel="VI (bits)", ylim=(0, None)
    )
    for axes in (by_threshold, split, by_epoch):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.suptitle(f"{name}: star at the least VI, circle at 0.5")
    figure.savefig(folder / f"learning_{name}.png", dpi=80)


def main() -> None:
    """Run the experiments, print the tables, write the plots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--only")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-output"))
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    names = arguments.only.split(",") if arguments.only else list(lessons())
    for name in names:
        figures = experiment(name, arguments.seeds, arguments.epochs)
        print("\n| policy | VI at 0.5 | VI at best | best threshold | seconds |")
        print("|---|---|---|---|---|")
        for strategy in ("mean", *STRATEGIES):
            print(row(strategy, figures[strategy]))
        values = np.array(figures["by_epoch"]).mean(axis=0)
        print("\nVI by epoch at 0.5:", " ".join(f"{v:.3f}" for v in values[:, 0]))
        print("VI by epoch at best:", " ".join(f"{v:.3f}" for v in values[:, 1]), "\n", flush=True)
        plot(name, figures, arguments.output)
        plain = {k: [{a: b for a, b in run.items() if a != "curve"} for run in runs]
                 for k, runs in figures.items() if k != "by_epoch"}  # fmt: skip
        plain["by_epoch"] = figures["by_epoch"]
        (arguments.output / f"learning_{name}.json").write_text(json.dumps(plain, indent=1))


if __name__ == "__main__":
    main()
