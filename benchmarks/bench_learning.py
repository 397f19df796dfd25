"""Learned policies: agglomeration with a forest inside the loop, and training."""

from __future__ import annotations

import time

import numpy as np

import napari_agglo as agglo
from benchmarks import lessons, volumes
from benchmarks.timing import Table, interleaved
from napari_agglo.agglomeration import merge_greedily
from napari_agglo.graph import RegionGraph


def bench_forest(table: Table, graph: RegionGraph, policy: agglo.LearnedPolicy, goal: str) -> None:
    """Grow the whole hierarchy, and again with all trees for each boundary of a changed region."""
    works = {
        "lazy": lambda: agglo.agglomerate(graph, policy),
        "eager": lambda: merge_greedily(graph, policy, rescore=True),
    }
    took, eager = interleaved(works, runs=2).values()
    work = f"agglomerate by forest, {graph.n_regions:,} superpixels"
    speed = f"{(graph.n_regions - 1) / took:,.0f} merges/s"
    table.add(work, "napari-agglo", took, speed, f"{eager / took:.2f} x all trees", goal)


def bench_training(table: Table, name: str, goal: str) -> None:
    """Five epochs of agglo on the training part of a volume."""
    training, _ = lessons.lessons()[name]()
    said = [time.perf_counter()]
    fitting = 0.0

    def watch(progress: agglo.Progress) -> None:
        nonlocal fitting
        said.append(time.perf_counter())
        if progress.stage == "fit":
            fitting += said[-1] - said[-2]

    policy = agglo.train(*training, progress=watch)
    said.append(time.perf_counter())
    took = said[-1] - said[0]
    table.add(
        f"train, agglo, 5 epochs, {name} (wall)", "napari-agglo", took,
        f"{policy.record['examples']:,} examples; {took / fitting:.2f} x its fits", "",
        f"{goal}, <= 1.5 x its fits",
    )  # fmt: skip
    silence = float(np.max(np.diff(said)))
    table.add(f"longest silence of that progress, {name} (wall)", "napari-agglo", silence, "", "",
              "< 0.2 s")  # fmt: skip


def run(table: Table) -> None:
    """All of the above."""
    superpixels, boundary, source = volumes.crop()
    graph = agglo.region_graph(superpixels, boundary)
    tree = agglo.agglomerate(graph)
    # Any gold will do to grow a forest of the usual size: a cut of the mean hierarchy.
    gold = tree.segment(float(np.quantile(tree.heights, 0.95)))
    policy = agglo.train(graph, gold, strategy="flat")
    nodes = len(policy.model.nodes) / len(policy.model.roots)
    print(f"(forest of {len(policy.model.roots)} trees, {nodes:.0f} nodes each; {source})")
    bench_forest(table, graph, policy, "< 0.5 s, >= 2.5 x")
    labels, noisy = volumes.tiled((256, 256, 256))
    bench_forest(table, agglo.region_graph(labels, noisy), policy, ">= 1,000 merges/s, >= 2.5 x")
    for name, goal in (("fibsem", "< 3 s"), ("snemi", "< 20 s")):
        if name in lessons.lessons():
            bench_training(table, name, goal)
