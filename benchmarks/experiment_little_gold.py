"""Errors of policies that learned from little gold: a table and the plot of docs/learning.md.

    python -m benchmarks.experiment_little_gold [--seeds 3] [--only NAME,...] [-o DIR]

Gold is painted in compact patches, of at most 5 % of the volume each, as a person would: all voxels
within a cube around a random place. Policies learn from the painted part of the training volume and
are tested on the other volume. Volumes of the data folder are left out where it is absent.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import napari_agglo as agglo
from benchmarks.experiment_learning import judge
from benchmarks.lessons import lessons
from napari_agglo.errors import InvalidInput

SHARES = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
PATCH = 0.05  # share of the annotated voxels in one patch, at most
NAMES = {"fib25": "fib25_half", "snemi": "SNEMI-mini", "neuropil": "3-D sample"}


def paint(gold: Any, share: float, spacing: Any, rng: np.random.Generator) -> Any:
    """Return the gold within cubes around random places, 0 elsewhere; so much of all voxels."""
    wanted = round(share * np.count_nonzero(gold))
    painted = np.zeros(gold.shape, bool)
    places = np.indices(gold.shape, np.float32) * np.reshape(spacing, (-1,) + (1,) * gold.ndim)
    while (missing := wanted - np.count_nonzero(painted)) > 0:
        free = np.argwhere((gold > 0) & ~painted)
        centre = free[rng.integers(len(free))] * np.asarray(spacing)
        distances = np.abs(places - centre.reshape((-1,) + (1,) * gold.ndim)).max(axis=0)
        distances[(gold == 0) | painted] = np.inf
        size = min(missing, max(1, round(PATCH * np.count_nonzero(gold))))
        painted.reshape(-1)[np.argpartition(distances, size - 1, axis=None)[:size]] = True
    return np.where(painted, gold, 0)


def experiment(name: str, seeds: int) -> pd.DataFrame:
    """Return a row for each policy, share and seed; VI is missing if nothing could be learned."""
    (graph, gold), test = lessons()[name]()
    rows = [{"set": name, "policy": "mean", "share": s, "seed": 0, **errors(test, "mean")}
            for s in SHARES]  # fmt: skip
    for share in SHARES:
        for seed in range(seeds):
            painted = paint(gold, share, graph.spacing, np.random.default_rng([seed, 7]))
            for policy in ("flat", "agglo"):
                row = {"set": name, "policy": policy, "share": share, "seed": seed}
                row["segments"] = len(np.unique(painted)) - 1
                try:
                    learned = agglo.train(graph, painted, strategy=policy, seed=seed)
                except InvalidInput:  # examples of one kind only
                    rows.append({**row, "at_half": np.nan, "best": np.nan})
                else:
                    rows.append({**row, **errors(test, learned)})
        print(".", end="", flush=True)
    return pd.DataFrame(rows)


def errors(test: Any, policy: Any) -> dict[str, float]:
    """Return VI at 0.5 and at the best threshold."""
    result = judge(test, policy)
    return {"at_half": result["at_half"], "best": result["best"]}


def table(runs: pd.DataFrame) -> str:
    """Return means over seeds as Markdown: VI at 0.5 / at the best threshold, by share."""
    shares = [f"{100 * s:g} %" for s in SHARES]
    lines = ["| | " + " | ".join(shares) + " |", "|---" * (len(shares) + 1) + "|"]
    for (name, policy), rows in runs.groupby(["set", "policy"], sort=False):
        cells = []
        for share in SHARES:
            part = rows[rows["share"] == share]
            failed = part["best"].isna().sum()
            cell = f"{part['at_half'].mean():.2f} / {part['best'].mean():.2f}"
            cells.append(cell + f" ({failed} failed)" * bool(failed))
        if policy == "mean":
            cells = [*cells[:1], *[""] * (len(SHARES) - 1)]
        lines.append(f"| {NAMES[name]}, {policy} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(runs: pd.DataFrame, path: Path) -> None:
    """Draw VI at the best threshold (line) and at 0.5 (dashed) against the share painted."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    sets = list(runs["set"].unique())
    figure = Figure((4.6 * len(sets), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    colours = {"mean": "#0072b2", "flat": "#d55e00", "agglo": "#009e73"}
    for axes, name in zip(np.atleast_1d(figure.subplots(1, len(sets))), sets, strict=True):
        for policy, colour in colours.items():
            rows = runs[(runs["set"] == name) & (runs["policy"] == policy)]
            for column, dashes in (("best", "-"), ("at_half", "--")):
                stats = rows.groupby("share")[column].agg(["mean", "min", "max"])
                label = f"{policy}, {'best' if column == 'best' else 'at 0.5'}"
                x = 100 * stats.index.to_numpy()
                axes.plot(x, stats["mean"], dashes, color=colour, label=label)
                if column == "best" and policy != "mean":
                    axes.fill_between(x, stats["min"], stats["max"], color=colour, alpha=0.15, lw=0)
        axes.set_xscale("log")
        axes.set_xticks([100 * s for s in SHARES], [f"{100 * s:g}" for s in SHARES])
        axes.minorticks_off()
        axes.set_ylim(0, None)
        axes.set_title(NAMES[name])
        axes.set_xlabel("gold painted (%)")
        axes.grid(alpha=0.25)
    axes = figure.axes[0]
    axes.set_ylabel("VI on the other volume (bits)")
    figure.axes[-1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=72)


def main() -> None:
    """Run the experiment, print the table, write the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images"))
    given = parser.parse_args()
    names = given.only.split(",") if given.only else [n for n in NAMES if n in lessons()]
    given.output.mkdir(parents=True, exist_ok=True)
    runs = pd.concat([experiment(name, given.seeds) for name in names])
    print("\n\n" + table(runs))
    plot(runs, given.output / "little_gold.png")


if __name__ == "__main__":
    main()
