"""Evaluation: the errors of one segmentation, and of every merge of a tree."""

from __future__ import annotations

import numpy as np

import napari_agglo as agglo
from benchmarks import volumes
from benchmarks.results import OURS, Table, below, faster, short
from benchmarks.timing import cpu_seconds, interleaved, least
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
        OURS: lambda: agglo.split_vi(labels, gold),
        "scikit-image": lambda: variation_of_information(gold, labels),
    }
    split, merge = entries["scikit-image"]()
    assert np.allclose(entries[OURS](), (merge, split)), "not the same errors"
    times = interleaved(entries, runs=2, warm=False)
    goals = faster(times, 4, "scikit-image")
    table.compare("overlaps and VI", times, labels.size / 1e6, "Mvox", goals)
    took = least(lambda: agglo.metrics(labels, gold), runs=2)
    table.add("all measures of one segmentation", took)


def bench_curve(table: Table, tree: agglo.MergeTree, gold: np.ndarray) -> None:
    """Compute VI, Rand index and covering at every merge, overlaps included."""
    from skimage.metrics import variation_of_information

    took = least(lambda: agglo.merge_curve(tree, gold))
    task = f"all measures at every merge, {tree.n_superpixels:,} superpixels"
    table.add(task, took, f"{short(tree.n_merges / took)} merges/s", goals=below(took, 1))
    cuts = np.linspace(0, tree.n_merges, SAMPLED, dtype=int)
    theirs = cpu_seconds(
        lambda: [variation_of_information(gold, tree.segment(merges=int(k))) for k in cuts]
    )
    theirs *= 100 / SAMPLED
    ratio = f"ours {theirs / took:,.0f} x as fast, at every merge"
    table.add(f"VI at 100 thresholds ({SAMPLED} timed)", theirs, "", ratio, library="scikit-image")


def run(table: Table, small: bool = False) -> None:
    """Measure all of the above."""
    labels, boundary = volumes.tiled((32, 128, 128) if small else SHAPE)
    graph = agglo.region_graph(labels, boundary, statistics="mean")
    tree = agglo.agglomerate(graph)
    gold = gold_of(graph, boundary)
    overlaps = contingency(tree.superpixels, gold).counts.size
    size = " x ".join(map(str, labels.shape))
    segments = f"{np.unique(gold).size:,} gold segments"
    table.note(f"Volume: {size}, {segments}, {overlaps:,} overlaps with superpixels.")
    bench_overlaps(table, tree.segment(0.3), gold)
    bench_curve(table, tree, gold)
