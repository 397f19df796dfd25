"""Graph, merge loop, tree and the whole pipeline, compared with other libraries."""

from __future__ import annotations

import numpy as np

import napari_agglo as agglo
from benchmarks import bench_large, peers, volumes
from benchmarks.results import OURS, Goal, Table, always_faster, below, faster
from benchmarks.timing import cpu_seconds, interleaved, least, rounds
from napari_agglo.agglomeration._merge_tree import map_labels
from napari_agglo.graph import RegionGraph

SHAPE = (256, 512, 512)
THRESHOLD = 0.3


def bench_graph(table: Table, labels: np.ndarray, boundary: np.ndarray) -> RegionGraph:
    """Compute the graph and all statistics of one cue; graphs of peers have fewer features."""
    entries = {OURS: lambda: agglo.region_graph(labels, boundary)}
    if peers.bic:
        entries["bioimage-cpp, mean"] = lambda: peers.bic_graph(labels, boundary, full=False)
        entries["bioimage-cpp, 12 features"] = lambda: peers.bic_graph(labels, boundary, full=True)
    times = interleaved(entries)
    amount = labels.size / 1e6
    goal = Goal(amount / times[OURS], ">=", 35, "Mvox/s")
    table.compare("graph and all statistics", times, amount, "Mvox", (goal,))
    return agglo.region_graph(labels, boundary)


def bench_merging(table: Table, graph: RegionGraph) -> None:
    """Agglomerate an existing graph by the mean, to the last merge."""
    entries = {OURS: lambda: agglo.agglomerate(graph)}
    if peers.bic:
        rag = peers.bic_plain_graph(graph)
        entries["bioimage-cpp"] = lambda: peers.bic_merge_all(rag, graph)
    times = interleaved(entries, runs=5)
    if peers.higra:
        times["higra (1 run)"] = cpu_seconds(lambda: peers.higra_merge_all(graph))
    work = f"mean agglomeration, {graph.n_regions:,} superpixels"
    goals = faster(times, 1.1, "bioimage-cpp")
    table.compare(work, times, graph.n_regions - 1, "merges", goals)


def bench_end_to_end(table: Table, labels: np.ndarray, boundary: np.ndarray) -> None:
    """Compute labels at a threshold from superpixels and a boundary map, by its mean alone.

    All get the map on 256 levels, as a graph keeps it; partitions may differ by ties.
    """
    boundary = (np.round(255 * boundary) / 255).astype(np.float32)

    def ours() -> np.ndarray:
        graph = agglo.region_graph(labels, boundary, statistics="mean")
        return agglo.agglomerate(graph).segment(THRESHOLD)

    entries = {OURS: ours}
    if peers.bic:
        entries["bioimage-cpp"] = lambda: peers.bic_end_to_end(labels, boundary, THRESHOLD)
    if peers.waterz:
        affinity = peers.affinities(boundary)
        entries["waterz"] = lambda: peers.waterz_labels(affinity, labels, [THRESHOLD])
    times = rounds(entries)
    goals = (*always_faster(times, 2.2, "bioimage-cpp"), *always_faster(times, 3, "waterz"))
    task = "superpixels to labels at a threshold"
    table.compare_rounds(task, times, labels.size / 1e6, "Mvox", goals)
    reference = ours()
    for name, work in list(entries.items())[1:]:
        vi = sum(agglo.split_vi(work(), reference))
        table.note(f"Labels at a threshold: VI of {name} to ours {vi:.4f} bits, because of ties.")
        assert vi < 0.02, "not the same partition, even up to ties"


def bench_tree(table: Table, graph: RegionGraph) -> None:
    """Look up a partition in the tree."""
    tree = agglo.agglomerate(graph)
    took = least(lambda: tree.lut(0.5), runs=20)
    table.add(f"lut(t), {graph.n_regions:,} superpixels", took, goals=below(took, 1, "ms"))


def bench_slice(table: Table, graph: RegionGraph) -> None:
    """Map one slice through a table, and compute it from the tree at a threshold."""
    tree = agglo.agglomerate(graph)
    lut = tree.lut(0.5)
    middle = graph.superpixels.image.shape[0] // 2
    plane = graph.superpixels.image[middle]
    out = np.empty(plane.size, lut.dtype)
    times = interleaved(
        {
            OURS: lambda: map_labels(plane.reshape(-1), lut, out),
            "numpy": lambda: lut[plane],
        },
        runs=50,
    )
    task = f"map a slice of {plane.shape[0]} x {plane.shape[1]}"
    table.compare(task, times, plane.size / 1e6, "Mpix", below(times[OURS], 0.5, "ms"))
    took = least(lambda: tree.segment(0.5, index=middle), runs=50)
    table.add("segment(t, index=z), lut(t) included", took)


def bench_oversegment(table: Table, boundary: np.ndarray) -> None:
    """Make superpixels, seeds included; `bench_superpixels` compares the parts with peers."""
    cube = np.ascontiguousarray(boundary[:, :256, :256])
    took, amount = least(lambda: agglo.oversegment(cube)), cube.size / 1e6
    task = f"oversegment {cube.shape[0]} x {cube.shape[1]} x {cube.shape[2]}, noisy"
    goals = (Goal(amount / took, ">=", 6, "Mvox/s"),)
    table.add(task, took, f"{amount / took:,.3g} Mvox/s", goals=goals)


def volume(table: Table, small: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the superpixels and the boundary map of the volume of all parts, and note its size."""
    labels, boundary = volumes.tiled((32, 256, 256) if small else SHAPE)
    size, source = " x ".join(map(str, labels.shape)), volumes.crop()[2]
    table.note(f"Volume: {size}, {labels.max():,} superpixels, tiled from the {source}.")
    return labels, boundary


def run(table: Table, small: bool = False) -> None:
    """Measure the graph, the merge loop and the tree."""
    graph = bench_graph(table, *volume(table, small))
    bench_merging(table, graph)
    bench_tree(table, graph)
    bench_slice(table, graph)


def run_large(table: Table, small: bool = False) -> None:
    """Measure the merge loop on a graph of eight times the volume, and on stars."""
    bench_large.run(table, volumes.eight_times(agglo.region_graph(*volume(table, small))))


def run_end_to_end(table: Table, small: bool = False) -> None:
    """Measure the way from superpixels to labels."""
    bench_end_to_end(table, *volume(table, small))


def run_oversegment(table: Table, small: bool = False) -> None:
    """Measure the way from a noisy boundary map to superpixels."""
    bench_oversegment(table, volume(table, small)[1])
