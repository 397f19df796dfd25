"""The merge loop alone, in a process of its own.

After a run on 67 million voxels the memory of a process is in pieces, and whoever comes next waits
for it; so large graphs are handed to a fresh process, which times all rivals in turn.
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
from benchmarks.timing import Table, cpu_seconds, interleaved
from napari_agglo.graph import RegionGraph


def run(table: Table, graph: RegionGraph) -> None:
    """Time a graph of a million superpixels, and stars, in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.npz"
        np.savez(path, edges=graph.edges, sums=graph.boundaries[:, 1], faces=graph.boundaries[:, 0])
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.bench_large", str(path)],
            cwd=Path(__file__).resolve().parent.parent, capture_output=True, text=True, check=True,
        )  # fmt: skip
    said = json.loads(done.stdout.splitlines()[-1])
    table.add_rivals(
        f"the same, {graph.n_regions:,} superpixels, {graph.n_boundaries:,} boundaries",
        said["large"], said["merges"], "merges", ">= 2.5 x bioimage-cpp",
    )  # fmt: skip
    table.add(f"lut(t), {graph.n_regions:,} superpixels", "napari-agglo", said["lut"], "", "",
              "< 10 ms")  # fmt: skip
    before = 0.0
    for leaves, took in said["stars"]:
        growth = f"{took / before:.2f} x for twice the leaves" if before else ""
        table.add(f"star of {leaves:,} leaves", "napari-agglo", took, "", growth, "<= 2.3 x")
        before = took
    if "star_bic" in said:
        table.add("star of 40,000 leaves", "bioimage-cpp (1 run)", said["star_bic"])


def main() -> None:
    """Be the fresh process: print the times as one line of JSON."""
    agglo.agglomerate(volumes.star(10))  # compile, or load
    with np.load(sys.argv[1]) as file:
        graph = volumes.bare_graph(file["edges"], file["sums"], file["faces"])
    entries = {"napari-agglo": lambda: agglo.agglomerate(graph)}
    if peers.bic:
        rag = peers.bic_plain_graph(graph)
        entries["bioimage-cpp"] = lambda: peers.bic_merge_all(rag, graph)
    said: dict[str, object] = {"large": interleaved(entries, runs=3, warm=False)}
    tree = agglo.agglomerate(graph)
    said["merges"] = tree.n_merges
    said["lut"] = interleaved({"lut": lambda: tree.lut(0.5)}, runs=20)["lut"]
    stars = []
    for leaves in (10_000, 20_000, 40_000, 80_000):
        one = volumes.star(leaves)
        took = interleaved({"star": lambda one=one: agglo.agglomerate(one)}, runs=9)["star"]
        stars.append((leaves, took))
    said["stars"] = stars
    if peers.bic:
        one = volumes.star(40_000)
        rag = peers.bic_plain_graph(one)
        said["star_bic"] = cpu_seconds(lambda: peers.bic_merge_all(rag, one))
    print(json.dumps(said))


if __name__ == "__main__":
    main()
