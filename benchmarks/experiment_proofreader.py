"""Error after each answer, by the order of the questions: the tables and plot of docs/queue.md.

    python -m benchmarks.experiment_proofreader [--seeds 5] [--decisions 200] [--every 50]
        [--exact] [--only NAME,...] [-o DIR]

A policy is trained on the training part of each volume, a session is made of the test part at 0.5,
and the questions are answered by the gold standard: in the order of `Session.queue`, in random
order, the largest boundary first, and in the order of the queue with a refit after so many answers.
Each seed is another training and another random order.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import napari_agglo as agglo
from benchmarks.lessons import Lesson, lessons
from benchmarks.proofreader import proofread
from napari_agglo.evaluate import best_point
from napari_agglo.learning import ForestSettings

Runs = dict[str, NDArray[np.float64]]  # order to VI, shape (seeds, decisions + 1)
RELEARN = "queue, relearning"
MARKS = (0, 10, 25, 50, 100, 200)
MEMBRANE = {"snemi": 1}  # annotated as a body of its own, which no proofreader would look at


def neuropil2d() -> tuple[Lesson, Lesson]:
    """Return a quarter of the sample in a plane by its three cues, seeds 0 and 1."""
    out = []
    for seed in (0, 1):
        sample = agglo.sample("neuropil2d", seed=seed)
        part = np.s_[:192, :192]
        cues = {name: np.ascontiguousarray(cue[part]) for name, cue in sample.cues.items()}
        graph = agglo.region_graph(agglo.oversegment(cues["boundary"]), cues)
        out.append((graph, np.ascontiguousarray(sample.gold[part])))
    return out[0], out[1]


def volumes() -> dict[str, Callable[[], tuple[Lesson, Lesson]]]:
    """Return the volumes: name to a function that gives (training, test)."""
    return {**lessons(), "neuropil2d": neuropil2d}


def experiment(
    training: Lesson, test: Lesson, seeds: int, decisions: int, every: int, exact: bool
) -> Runs:
    """Return VI by decisions for each order."""
    found: dict[str, list[NDArray[np.float64]]] = {}
    for seed in range(seeds):
        policy = agglo.train(*training, seed=seed, settings=ForestSettings(exact=exact))
        ways: dict[str, tuple[Any, dict[str, Any]]] = {
            "queue": ("queue", {}),
            "random": ("random", {}),
            "largest boundary": ("largest boundary", {}),
            RELEARN: ("queue", {"relearn_every": every, "volumes": [training]}),
        }
        for name, (order, options) in ways.items():
            vi = proofread(*test, policy, order, decisions, seed=seed, **options)
            found.setdefault(name, []).append(vi)
            print(".", end="", flush=True)
    return {name: np.array(runs) for name, runs in found.items()}


def table(runs: Runs, best: float) -> str:
    """Return VI after some decisions, mean and standard deviation over seeds, as Markdown."""
    length = len(next(iter(runs.values()))[0])
    marks = [mark for mark in MARKS if mark < length]
    lines = [
        "| order | " + " | ".join(f"{mark}" for mark in marks) + " | mean of all |",
        "|---" * (len(marks) + 2) + "|",
    ]
    for name, vi in runs.items():
        cells = [f"{vi[:, k].mean():.3f} ± {vi[:, k].std():.3f}" for k in marks]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {vi.mean():.3f} |")
    lines.append(f"\nThe best that these superpixels can give is {best:.3f}.")
    queue = runs["queue"].mean(axis=1)
    for name in ("random", "largest boundary", RELEARN):
        wins = int((queue < runs[name].mean(axis=1)).sum())
        lines.append(f"The queue is below «{name}», in the mean of all, in {wins} of {len(queue)}.")
    return "\n".join(lines)


def plot(found: dict[str, tuple[Runs, float]], path: Path, every: int) -> None:
    """Draw VI by decisions, the mean over seeds, and from the least to the most."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from napari_agglo.plots import LIGHT

    figure = Figure((4.2 * len(found), 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, (runs, best)) in zip(
        figure.subplots(1, len(found), squeeze=False)[0], found.items(), strict=True
    ):
        for k, (way, vi) in enumerate(runs.items()):
            colour, _, _ = LIGHT.line(k)
            x = np.arange(vi.shape[1])
            axes.fill_between(x, vi.min(axis=0), vi.max(axis=0), color=colour, alpha=0.13, lw=0)
            axes.plot(x, vi.mean(axis=0), color=colour, lw=1.8, label=way)
        axes.axhline(best, color=LIGHT.muted, lw=1, ls=":")
        axes.set(xlabel="decisions", ylabel="VI (bits)", title=name, xlim=(0, vi.shape[1] - 1))
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, title=f"relearning every {every}", title_fontsize=8)
    figure.savefig(path, dpi=72)


def main() -> None:
    """Run the experiment, print the tables, write the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--decisions", type=int, default=200)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--exact", action="store_true", help="train with exact trees")
    parser.add_argument("--only")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-output"))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in given.only.split(",") if given.only else volumes():
        training, (graph, gold) = volumes()[name]()
        if name in MEMBRANE:
            gold = np.where(gold == MEMBRANE[name], 0, gold)
        print(f"{name}: {graph}", flush=True)
        runs = experiment(
            training, (graph, gold), given.seeds, given.decisions, given.every, given.exact
        )
        found[name] = runs, float(best_point(graph, gold)["vi"])
        print(f"\n\n**{name}**\n\n{table(*found[name])}\n", flush=True)
        plot(found, given.output / "queue.png", given.every)


if __name__ == "__main__":
    main()
