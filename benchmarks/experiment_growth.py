"""Time against the number of superpixels: a table, and the plot growth.png.

Samples of different seeds stand side by side; longer and longer pieces of that row are agglomerated
to the last merge, by the mean and by forests that were trained on another sample. The exponent is
the slope of the line through the logarithms. The two longest pieces are agglomerated with all trees
for every changed boundary, too, as `bench_learning` does with other volumes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks.bench_learning import EAGER, TREES, lazy_and_eager
from benchmarks.results import OURS, Goal, Table
from benchmarks.timing import least
from napari_agglo.agglomeration import merge_greedily
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import ForestSettings

# Small superpixels, so that a hundred thousand of them need not many voxels.
MIN_SIZE = 30


def row_of_samples(most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return superpixels and boundary map of samples side by side, at least `most` superpixels."""
    labels: list[np.ndarray] = []
    boundaries: list[np.ndarray] = []
    total = 0
    seed = 1
    while total < most:
        boundary = agglo.sample("neuropil3d", seed=seed).cues["boundary"]
        superpixels = agglo.oversegment(boundary, min_size=MIN_SIZE).astype(np.int64)
        labels.append(np.where(superpixels > 0, superpixels + total, 0))
        boundaries.append(boundary)
        total += int(superpixels.max())
        seed += 1
    return np.concatenate(labels, axis=-1), np.concatenate(boundaries, axis=-1)


def piece(labels: np.ndarray, boundary: np.ndarray, wanted: int) -> RegionGraph:
    """Return the graph of the first columns, about `wanted` superpixels of them."""
    columns = max(2, round(labels.shape[-1] * wanted / int(labels.max())))
    window = (..., slice(0, columns))
    return agglo.region_graph(
        np.ascontiguousarray(labels[window]), np.ascontiguousarray(boundary[window])
    )


def learned() -> dict[str, agglo.LearnedPolicy]:
    """Return forests trained on the sample of seed 0, by the boundary cue alone."""
    sample = agglo.sample("neuropil3d")
    superpixels = agglo.oversegment(sample.cues["boundary"], min_size=MIN_SIZE)
    graph = agglo.region_graph(superpixels, sample.cues["boundary"])
    return {
        f"{trees} trees": agglo.train(
            graph, sample.gold, strategy="flat", settings=ForestSettings(trees=trees)
        )
        for trees in TREES
    }


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of log seconds over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def plot(sizes: list[int], took: dict[str, list[float]], path: Path) -> None:
    """Draw seconds against superpixels, both on logarithmic axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((6, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots()
    colours = ("#888888", "#c8553d", "#e8a48f")
    for (name, seconds), colour in zip(took.items(), colours, strict=True):
        label = f"{name}: exponent {exponent(sizes, seconds):.2f}"
        axes.loglog(sizes, seconds, "o-", color=colour, label=label)
    axes.set(xlabel="superpixels", ylabel="CPU seconds, whole hierarchy")
    axes.grid(alpha=0.25, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=80)


def run(table: Table, small: bool = False) -> None:
    """Add a row for each size and policy, with the exponents, and draw the plot."""
    most = 5_000 if small else 100_000
    policies: dict[str, Any] = {"mean": "mean", **learned()}
    few = piece(*row_of_samples(1), 500)
    for policy in policies.values():
        agglo.agglomerate(few, policy)  # compiles
    merge_greedily(few, policies[f"{TREES[0]} trees"], rescore=True)
    labels, boundary = row_of_samples(most)
    sizes: list[int] = []
    took: dict[str, list[float]] = {name: [] for name in policies}
    for wanted in np.geomspace(1000, most, 5).round().astype(int):
        graph = piece(labels, boundary, int(wanted))
        sizes.append(graph.n_regions)
        size = f"{graph.n_regions:,} superpixels, {graph.n_boundaries:,} boundaries"
        for name, policy in policies.items():
            goals: tuple[Goal, ...] = ()
            if name != "mean" and wanted > 0.3 * most:
                times = lazy_and_eager(graph, policy)
                goals = (Goal(times[EAGER] / times[OURS], ">=", 5, f"x {EAGER}"),)
                seconds = times[OURS]
            else:
                seconds = least(
                    lambda graph=graph, policy=policy: agglo.agglomerate(graph, policy),
                    runs=2, warm=False,
                )  # fmt: skip
            took[name].append(seconds)
            rate = f"{(graph.n_regions - 1) / seconds:,.0f} merges/s"
            table.add(f"agglomerate by {name}, {size}", seconds, rate, goals=goals)
    for name, seconds_of in took.items():
        power = exponent(sizes, seconds_of)
        table.note(f"By {name}, the time grows as the superpixels to the power {power:.2f}.")
        # The goal of the exponent stands with the longest piece.
        last = [
            k for k, row in enumerate(table.rows) if row.task.startswith(f"agglomerate by {name},")
        ][-1]
        goal = Goal(power, "<=", 1.1, "as the power of the superpixels")
        table.rows[last] = replace(table.rows[last], goals=(*table.rows[last].goals, goal))
    plot(sizes, took, table.folder / "growth.png")
