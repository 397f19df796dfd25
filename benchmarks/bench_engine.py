"""The engine against its peers: graph, merge loop, tree, end to end."""

from __future__ import annotations

import numpy as np

import napari_agglo as agglo
from benchmarks import bench_large, peers, volumes
from benchmarks.timing import Table, cpu_seconds, interleaved
from napari_agglo.agglomeration._merge_tree import map_labels
from napari_agglo.graph import RegionGraph

SHAPE = (256, 512, 512)
THRESHOLD = 0.3


def bench_graph(table: Table, labels: np.ndarray, boundary: np.ndarray) -> RegionGraph:
    """Graph and all statistics of one cue, against graphs with fewer features."""
    entries = {"napari-agglo": lambda: agglo.region_graph(labels, boundary)}
    if peers.bic:
        entries["bioimage-cpp, mean"] = lambda: peers.bic_graph(labels, boundary, full=False)
        entries["bioimage-cpp, 12 features"] = lambda: peers.bic_graph(labels, boundary, full=True)
    times = interleaved(entries)
    table.add_rivals("graph + all statistics", times, labels.size / 1e6, "Mvox", ">= 35 Mvox/s")
    return agglo.region_graph(labels, boundary)


def bench_merging(table: Table, graph: RegionGraph) -> None:
    """Mean agglomeration to the last merge, of a graph that is there already."""
    entries = {"napari-agglo": lambda: agglo.agglomerate(graph)}
    if peers.bic:
        rag = peers.bic_plain_graph(graph)
        entries["bioimage-cpp"] = lambda: peers.bic_merge_all(rag, graph)
    times = interleaved(entries, runs=5)
    if peers.higra:
        times["higra (1 run)"] = cpu_seconds(lambda: peers.higra_merge_all(graph))
    work = f"mean agglomeration, {graph.n_regions:,} superpixels"
    table.add_rivals(work, times, graph.n_regions - 1, "merges", ">= 1.1 x bioimage-cpp")


def bench_end_to_end(table: Table, labels: np.ndarray, boundary: np.ndarray) -> None:
    """Take labels and a boundary map to labels at a threshold, by its mean alone.

    All get the map on 256 levels, as we keep it; partitions may differ where there are ties.
    """
    boundary = (np.round(255 * boundary) / 255).astype(np.float32)

    def ours() -> np.ndarray:
        graph = agglo.region_graph(labels, boundary, statistics="mean")
        return agglo.agglomerate(graph).segment(THRESHOLD)

    entries = {"napari-agglo": ours}
    if peers.bic:
        entries["bioimage-cpp"] = lambda: peers.bic_end_to_end(labels, boundary, THRESHOLD)
    if peers.waterz:
        affinity = peers.affinities(boundary)
        entries["waterz"] = lambda: peers.waterz_labels(affinity, labels, [THRESHOLD])
    times = interleaved(entries, runs=2)
    table.add_rivals("end to end", times, labels.size / 1e6, "Mvox", ">= 2 x both")
    reference = ours()
    for name, work in entries.items():
        false_merge, false_split = agglo.split_vi(work(), reference)
        print(f"(partition of {name} against ours: VI {false_merge:.6f} + {false_split:.6f} bits)")
        assert false_merge + false_split < 0.02, "not the same partition, even up to ties"


def bench_tree(table: Table, graph: RegionGraph, goal: str) -> None:
    """Read a partition off the tree."""
    tree = agglo.agglomerate(graph)
    took = interleaved({"lut": lambda: tree.lut(0.5)}, runs=20)["lut"]
    table.add(f"lut(t), {graph.n_regions:,} superpixels", "napari-agglo", took, "", "", goal)


def bench_slice(table: Table, graph: RegionGraph) -> None:
    """Map one slice through a table, and read it off the tree from a threshold."""
    tree = agglo.agglomerate(graph)
    lut = tree.lut(0.5)
    middle = graph.superpixels.image.shape[0] // 2
    plane = graph.superpixels.image[middle]
    out = np.empty(plane.size, lut.dtype)
    times = interleaved(
        {
            "napari-agglo": lambda: map_labels(plane.reshape(-1), lut, out),
            "numpy": lambda: lut[plane],
        },
        runs=50,
    )
    table.add_rivals("map a 512 x 512 slice", times, plane.size / 1e6, "Mpix", "< 0.5 ms")
    took = interleaved({"segment": lambda: tree.segment(0.5, index=middle)}, runs=50)["segment"]
    table.add("segment(t, index=z), the table made too", "napari-agglo", took)


def bench_oversegment(table: Table, boundary: np.ndarray) -> None:
    """Superpixels, seeds included; `bench_superpixels` compares the parts with the peers."""
    cube = np.ascontiguousarray(boundary[:, :256, :256])
    times = interleaved({"napari-agglo": lambda: agglo.oversegment(cube)}, runs=3)
    table.add_rivals("oversegment 256^3, seeds included", times, cube.size / 1e6, "Mvox",
                     ">= 4 Mvox/s")  # fmt: skip


def run(table: Table) -> None:
    """All of the above on one volume."""
    labels, boundary = volumes.tiled(SHAPE)
    print(f"(volume {SHAPE}, {labels.max():,} superpixels, from the {volumes.crop()[2]})")
    graph = bench_graph(table, labels, boundary)
    bench_merging(table, graph)
    bench_tree(table, graph, "< 1 ms")
    bench_slice(table, graph)
    bench_large.run(table, volumes.eight_times(graph))
    bench_end_to_end(table, labels, boundary)
    bench_oversegment(table, boundary)
