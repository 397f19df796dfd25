"""Learned policies: agglomeration by a forest, and training.

    python -m benchmarks.bench_learning [SAMPLE]

trains by each strategy on an embedded sample, and prints the seconds for each thousand boundaries,
by which the dock of comparisons says about how long a training takes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import napari_agglo as agglo
from benchmarks import lessons, volumes
from benchmarks.results import OURS, Goal, Table, below
from benchmarks.timing import cpu_seconds, interleaved
from napari_agglo.agglomeration import merge_greedily
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import ForestSettings

EAGER = "every changed boundary by all trees"
TREES = (200, 100)  # the default, and the number for which the goals were set
SECONDS = {"neuropil2d": 15, "snemi": 8, "fib25": 8}  # goals of a training with the defaults


def lazy_and_eager(graph: RegionGraph, policy: agglo.LearnedPolicy) -> dict[str, float]:
    """Return the least seconds of two interleaved runs of each loop; their merges are the same."""
    trees: dict[str, list[agglo.MergeTree]] = {OURS: [], EAGER: []}

    def eager() -> None:
        merges = merge_greedily(graph, policy, rescore=True)
        trees[EAGER] = [
            agglo.MergeTree(
                graph.superpixels, merges.winners, merges.losers, merges.priorities, graph.sizes
            )
        ]

    def ours() -> None:
        trees[OURS] = [agglo.agglomerate(graph, policy)]

    times = interleaved({OURS: ours, EAGER: eager}, runs=2, warm=False)
    (one,), (other,) = trees.values()
    for name in ("winners", "losers", "priorities"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), "not the same merges"
    return times


def bench_forest(table: Table, graph: RegionGraph, policy: agglo.LearnedPolicy) -> None:
    """Agglomerate to the last merge, lazily and with all trees for each changed boundary."""
    times, merges = lazy_and_eager(graph, policy), graph.n_regions - 1
    goals = (Goal(times[EAGER] / times[OURS], ">=", 2.5, f"x {EAGER}"),)
    if graph.n_regions < 2000:
        goals += below(times[OURS], 0.5)
    else:
        goals += (Goal(merges / times[OURS], ">=", 1000, "merges/s"),)
    task = f"agglomerate by {len(policy.model.roots)} trees, {graph.n_regions:,} superpixels"
    table.compare(task, times, merges, "merges", goals)


def bench_training(table: Table, name: str, bound: float) -> None:
    """Train with the defaults on the training part of a volume, and watch its progress."""
    training, _ = lessons.lessons()[name]()
    agglo.train(*sample_2d(64), epochs=1)  # compiles
    reports = [time.perf_counter()]
    fits = 0.0

    def watch(progress: agglo.Progress) -> None:
        nonlocal fits
        reports.append(time.perf_counter())
        if progress.stage == "fit":
            fits += reports[-1] - reports[-2]

    policy = agglo.train(*training, progress=watch)
    reports.append(time.perf_counter())
    took = reports[-1] - reports[0]
    rate = f"{policy.record['examples']:,} examples; {took / fits:.2f} x the fits in it"
    goals = (*below(took, bound), Goal(took / fits, "<=", 1.5, "x the fits in it"))
    table.add(f"train, agglo, 5 epochs, {name} (wall)", took, rate, goals=goals)
    gap = float(np.max(np.diff(reports)))
    task = f"longest time between two reports of progress, {name} (wall)"
    table.add(task, gap, goals=below(gap, 0.2))


def run_training(table: Table, small: bool = False) -> None:
    """Train on bins with few early trees, as by default, and with exact trees."""
    exact = ForestSettings(trees=100, pooled_epochs=1, early_trees=100, exact=True)
    chosen = {"default": ForestSettings(), "exact, 100 trees each epoch": exact}
    agglo.train(*sample_2d(64), epochs=1)  # compiles
    parts = {"neuropil2d": sample_2d(96 if small else None)}
    if not small:
        parts |= {name: make()[0] for name, make in lessons.lessons().items()}
    for name, training in parts.items():
        times = {}
        for words, settings in chosen.items():
            policies: list[agglo.LearnedPolicy] = []
            times[words] = cpu_seconds(
                lambda training=training, settings=settings, policies=policies: policies.append(
                    agglo.train(*training, settings=settings)
                )
            )
            examples = f"{policies[0].record['examples']:,} examples"
            is_default = words == "default"
            ratio = "" if is_default else f"{times[words] / times['default']:.1f} x the default"
            goals = below(times[words], SECONDS[name]) if is_default and name in SECONDS else ()
            task = f"train, agglo, 5 epochs, {name}, {words}"
            table.add(task, times[words], examples, ratio, goals)
    bench_relearning(table, parts["neuropil2d"])


def bench_relearning(table: Table, training: lessons.Lesson, merges: int = 10) -> None:
    """Learn from merges in a session: the wait until its new segments are there."""
    graph, _ = training
    with tempfile.TemporaryDirectory() as folder:
        session = agglo.Session.create(Path(folder) / "a.agglo", graph, agglo.train(*training))
        session.threshold = 0.5
        for _ in range(merges):
            segment = session.segments.ids()[0]
            session.merge(segment, session.segments.neighbours(segment)[0])
        start, wall = time.process_time(), time.perf_counter()
        session.relearn([training])
        took = time.perf_counter() - wall
        cpu = f"{time.process_time() - start:.1f} s of CPU"
        table.add(f"relearn from {merges} merges, neuropil2d (wall)", took, cpu,
                  goals=below(took, 3, "s"))  # fmt: skip
        session.close()


def sample_2d(side: int | None) -> lessons.Lesson:
    """Return the graph and the gold standard of the first rows and columns of neuropil2d."""
    sample = agglo.sample("neuropil2d")
    part = (slice(0, side),) * 2
    cues = {name: np.ascontiguousarray(cue[part]) for name, cue in sample.cues.items()}
    superpixels = agglo.oversegment(cues["boundary"])
    return agglo.region_graph(superpixels, cues), np.ascontiguousarray(sample.gold[part])


def run(table: Table, small: bool = False) -> None:
    """Agglomerate by a forest of the usual size, and train on two volumes."""
    superpixels, boundary, source = volumes.crop()
    graph = agglo.region_graph(superpixels, boundary)
    tree = agglo.agglomerate(graph)
    # Any gold will do to grow a forest of the usual size: a cut of the mean hierarchy.
    gold = tree.segment(float(np.quantile(tree.heights, 0.95)))
    large = agglo.region_graph(*volumes.tiled((32, 256, 256) if small else (256, 256, 256)))
    for trees in TREES:
        policy = agglo.train(graph, gold, strategy="flat", settings=ForestSettings(trees=trees))
        nodes = len(policy.model.nodes) / trees
        table.note(f"Forest of {trees} trees, {nodes:.0f} nodes each; {source}.")
        if trees == TREES[0]:
            agglo.agglomerate(graph, policy)  # compiles
            merge_greedily(graph, policy, rescore=True)
        for one in (graph, large):
            bench_forest(table, one, policy)
    for name, bound in (("fibsem", 3), ("snemi", 20)):
        if name in lessons.lessons():
            bench_training(table, name, bound)


def main(kind: str = "neuropil3d") -> None:
    """Train by each strategy on a sample, once its kernels are compiled, and print the times."""
    sample = agglo.sample(kind)
    superpixels = agglo.oversegment(sample.cues["boundary"], spacing=sample.spacing)
    graph = agglo.region_graph(superpixels, sample.cues, spacing=sample.spacing)
    few, few_gold = sample_2d(64)
    n = graph.n_boundaries
    for strategy in ("flat", "agglo", "lash", "mixed"):
        agglo.train(few, few_gold, strategy=strategy, epochs=1)  # compiles
        took = cpu_seconds(lambda s=strategy: agglo.train(graph, sample.gold, strategy=s))
        print(f"{strategy}: {took:.1f} s of the processor for {n:,} boundaries, "
              f"{1000 * took / n:.2f} s for each thousand", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:2])
