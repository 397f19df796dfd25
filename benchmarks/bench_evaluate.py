"""Evaluation: the table of overlaps with the errors, and the whole curve of a tree.

python -m benchmarks.bench_evaluate
"""

from __future__ import annotations

import numpy as np

import napari_agglo as agglo
from benchmarks import volumes
from benchmarks.timing import Table, cpu_seconds, interleaved
from napari_agglo.evaluate import contingency

SHAPE = (256, 512, 512)
SAMPLED = 3  # thresholds at which scikit-image is timed, to be multiplied to 100


def gold_of(graph: agglo.RegionGraph, boundary: np.ndarray) -> np.ndarray:
    """Return a gold standard that is near the tree, but has errors of both kinds everywhere.

    Another hierarchy, of a noisier map, cut at 3 % of its regions, and moved by two voxels so that
    superpixels cross its borders.
    """
    rng = np.random.default_rng(1)
    noisy = np.clip(boundary + rng.normal(0, 0.2, boundary.shape).astype(np.float32), 0, 1)
    other = agglo.region_graph(graph.superpixels.image, noisy, statistics="mean")
    tree = agglo.agglomerate(other)
    return np.roll(tree.segment(merges=int(0.97 * tree.n_merges)), 2, axis=-1)


def bench_overlaps(table: Table, labels: np.ndarray, gold: np.ndarray) -> None:
    """Count overlaps and compute both errors, from two label images."""
    from skimage.metrics import variation_of_information

    entries = {
        "napari-agglo": lambda: agglo.split_vi(labels, gold),
        "scikit-image": lambda: variation_of_information(gold, labels),
    }
    split, merge = entries["scikit-image"]()
    assert np.allclose(entries["napari-agglo"](), (merge, split)), "not the same errors"
    times = interleaved(entries, runs=2, warm=False)
    table.add_rivals("overlaps and VI", times, labels.size / 1e6, "Mvox", ">= 4 x scikit-image")
    times = interleaved({"all": lambda: agglo.metrics(labels, gold)}, runs=2)
    table.add("all measures of one segmentation", "napari-agglo", times["all"])


def bench_curve(table: Table, tree: agglo.MergeTree, gold: np.ndarray) -> None:
    """Compute VI, Rand index and covering at every merge, overlaps included."""
    from skimage.metrics import variation_of_information

    took = interleaved({"curve": lambda: agglo.merge_curve(tree, gold)}, runs=3)["curve"]
    work = f"all measures at every merge, {tree.n_superpixels:,} superpixels"
    table.add(work, "napari-agglo", took, f"{tree.n_merges / took:,.3g} merges/s", "", "< 1 s")
    cuts = np.linspace(0, tree.n_merges, SAMPLED, dtype=int)
    theirs = cpu_seconds(
        lambda: [variation_of_information(gold, tree.segment(merges=int(k))) for k in cuts]
    )
    theirs *= 100 / SAMPLED
    table.add(
        f"VI at 100 thresholds ({SAMPLED} timed)", "scikit-image", theirs, "",
        f"ours {theirs / took:,.0f} x as fast, at every merge",
    )  # fmt: skip


def run(table: Table) -> None:
    """All of the above."""
    labels, boundary = volumes.tiled(SHAPE)
    graph = agglo.region_graph(labels, boundary, statistics="mean")
    tree = agglo.agglomerate(graph)
    gold = gold_of(graph, boundary)
    overlaps = contingency(tree.superpixels, gold).counts.size
    print(f"({np.unique(gold).size:,} gold segments, {overlaps:,} overlaps with superpixels)")
    bench_overlaps(table, tree.segment(0.3), gold)
    bench_curve(table, tree, gold)


if __name__ == "__main__":
    print(Table.header())
    run(Table())
