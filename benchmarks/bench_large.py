"""The merge loop alone, in a process of its own.

After a run on 67 million voxels the memory of a process is fragmented, which slows what follows; so
large graphs are given to a new process, which times all libraries in turn.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import napari_agglo as agglo
from benchmarks import peers, volumes
from benchmarks.results import OURS, Goal, Table, always_faster, below
from benchmarks.timing import cpu_seconds, least, rounds
from napari_agglo.graph import RegionGraph


def run(table: Table, graph: RegionGraph) -> None:
    """Time a graph of a million superpixels, and stars, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        np.savez(path, edges=graph.edges, sums=graph.boundaries[:, 1], faces=graph.boundaries[:, 0])
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.bench_large", str(path)],
            cwd=Path(__file__).resolve().parent.parent, capture_output=True, text=True, check=True,
        )  # fmt: skip
    result = json.loads(done.stdout.splitlines()[-1])
    times, size = result["large"], f"{graph.n_regions:,} superpixels"
    task = f"mean agglomeration, {size}, {graph.n_boundaries:,} boundaries"
    goals = always_faster(times, 2.6, "bioimage-cpp")
    table.compare_rounds(task, times, result["merges"], "merges", goals)
    table.add(f"lut(t), {size}", result["lut"], goals=below(result["lut"], 10, "ms"))
    before = 0.0
    for leaves, took in result["stars"]:
        goals = (Goal(took / before, "<=", 2.3, "x for twice the leaves"),) if before else ()
        growth = f"{took / before:.2f} x for twice the leaves" if before else ""
        table.add(f"star of {leaves:,} leaves", took, ratio=growth, goals=goals)
        before = took
    if "star_bic" in result:
        table.add("star of 40,000 leaves", result["star_bic"], library="bioimage-cpp (1 run)")


def main() -> None:
    """Print the times as one line of JSON: the work of the new process."""
    agglo.agglomerate(volumes.star(10))  # compile, or load
    with np.load(sys.argv[1]) as file:
        graph = volumes.bare_graph(file["edges"], file["sums"], file["faces"])
    entries = {OURS: lambda: agglo.agglomerate(graph)}
    if peers.bic:
        rag = peers.bic_plain_graph(graph)
        entries["bioimage-cpp"] = lambda: peers.bic_merge_all(rag, graph)
    result: dict[str, object] = {"large": rounds(entries, warm=False)}
    tree = agglo.agglomerate(graph)
    result["merges"] = tree.n_merges
    result["lut"] = least(lambda: tree.lut(0.5), runs=20)
    stars = []
    for leaves in (10_000, 20_000, 40_000, 80_000):
        one = volumes.star(leaves)
        stars.append((leaves, least(lambda one=one: agglo.agglomerate(one), runs=9)))
    result["stars"] = stars
    if peers.bic:
        one = volumes.star(40_000)
        rag = peers.bic_plain_graph(one)
        result["star_bic"] = cpu_seconds(lambda: peers.bic_merge_all(rag, one))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
