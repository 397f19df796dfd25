"""Compare the mean policy with that of the reference library, which samples boundaries otherwise.

    python -m benchmarks.reference_mean [fib25 fibsem ...]

Ours takes the mean over faces, of the pixels on both sides. The reference takes a pixel once, and
only for the boundaries with its neighbours of the smallest and of the largest label; the outside
of the volume counts as the largest. So its means depend on how superpixels are numbered: besides
the numbers of the file, ten random ones are tried. docs/learning.md gives the figures.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks.judge import sides
from napari_agglo.evaluate import state_at, vi_curve
from napari_agglo.graph import RegionGraph


def reference_graph(graph: RegionGraph, numbers: Any) -> RegionGraph:
    """Return the graph with the boundary sums of the reference; `numbers` renumbers regions.

    A boundary that has no pixel by its rule keeps ours.
    """
    assert graph.cues is not None
    own = graph.superpixels.image.astype(np.int64)
    labels = numbers[own]
    outside = graph.n_regions + 1
    padded = np.pad(labels, 1, constant_values=outside)
    inner = (slice(1, -1),) * labels.ndim
    around = [np.roll(padded, step, a)[inner] for a in range(labels.ndim) for step in (-1, 1)]
    originals = np.argsort(numbers)
    pixels, others = [], []
    for extreme in (np.minimum.reduce([labels, *around]), np.maximum.reduce([labels, *around])):
        pixels.append(np.flatnonzero((extreme != labels) & (extreme != outside) & (extreme > 0)))
        others.append(originals[extreme.ravel()[pixels[-1]]])
    pixel, other = np.concatenate(pixels), np.concatenate(others)
    here = own.ravel()[pixel]
    pairs = np.minimum(here, other) * outside + np.maximum(here, other)
    known = graph.edges.min(axis=1).astype(np.int64) * outside + graph.edges.max(axis=1)
    order = np.argsort(known)
    at = order[np.searchsorted(known[order], pairs).clip(max=len(known) - 1)]
    at, pixel = at[known[at] == pairs], pixel[known[at] == pairs]
    counts = np.bincount(at, minlength=len(known))
    sums = np.bincount(at, graph.cues[graph.cue_index("boundary")].ravel()[pixel], len(known))
    rows = graph.boundaries.copy()
    seen = counts > 0
    # A row has twice as many samples as faces.
    rows[seen, : labels.ndim] = 0
    rows[seen, 0] = counts[seen]
    first = graph.layout.boundary_sums(graph.cue_index("boundary")).start
    rows[seen, first] = 2 * sums[seen].astype(np.int64)
    return replace(graph, boundaries=rows)


def errors(graph: RegionGraph, gold: Any) -> tuple[float, float]:
    """Return VI of the mean policy at 0.5 and at its best."""
    curve = vi_curve(agglo.agglomerate(graph, "mean"), gold)
    return float(state_at(curve, 0.5)["vi"]), float(curve["vi"].min())


def main() -> None:
    """Print VI at 0.5 and best: ours, the reference's, and its range over random numberings."""
    for source in sys.argv[1:] or ["fib25", "fibsem"]:
        for side, lessons in enumerate(sides(source, "boundary")):
            graph, gold = lessons[0]
            numbers = np.arange(graph.n_regions + 1)
            print(f"{source}, part {side}: ours", *(f"{vi:.3f}" for vi in errors(graph, gold)))
            found = errors(reference_graph(graph, numbers), gold)
            print("    reference", *(f"{vi:.3f}" for vi in found))
            drawn = []
            for seed in range(10):
                mixed = 1 + np.random.default_rng(seed).permutation(graph.n_regions)
                drawn.append(errors(reference_graph(graph, np.append(0, mixed)), gold))
            for words, column in zip(("0.5", "best"), np.transpose(drawn), strict=True):
                print(f"    other numbers, {words}: {column.min():.3f} to {column.max():.3f}, "
                      f"mean {column.mean():.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
