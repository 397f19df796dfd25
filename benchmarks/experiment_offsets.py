"""Compare two readings of long-range affinities on the boundaries of superpixels.

    python -m benchmarks.experiment_offsets [--only snemi,fib25,neuropil3d]

*middle*: each face reads the pair of voxels in whose middle it is, as `affinities` does. *ends*: a
pair of voxels counts for the boundary of the superpixels at its two ends, if there is one. Both are
whole numbers that add. The affinities are made of the boundary map of a source of
`benchmarks.judge`: 1 minus the largest value on the way from one voxel to the other. A row has the
area under the ROC curve of boundaries that are to be kept or not (by the gold of most pixels of the
two superpixels), and the VI at the best threshold of agglomeration by the mean.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import napari_agglo as agglo
from benchmarks.judge import sources
from napari_agglo.evaluate import best_lut, vi_curve
from napari_agglo.graph import far_pairs

OFFSETS = ((0, -3, 0), (0, 0, -3), (0, -9, 0), (0, 0, -9), (-2, 0, 0), (0, -6, -6), (0, -6, 6))


def affinities_of(boundary: Any, offsets: Any = OFFSETS) -> tuple[Any, list[tuple[int, ...]]]:
    """Return affinities of the nearest voxels and of offsets, from a boundary map, and offsets."""
    ndim = boundary.ndim
    nearest = [tuple(-int(a == k) for a in range(ndim)) for k in range(ndim)]
    every = nearest + [offset for offset in offsets if len(offset) == ndim]
    out = np.ones((len(every), *boundary.shape), np.float32)
    for k, offset in enumerate(every):
        steps = max(map(abs, offset))
        for step in range(steps + 1):
            at = [round(n * step / steps) for n in offset]
            moved = np.ones_like(boundary)
            sizes = list(zip(at, boundary.shape, strict=True))
            here = tuple(slice(max(0, -n), min(s, s - n)) for n, s in sizes)
            there = tuple(slice(max(0, n), min(s, s + n)) for n, s in sizes)
            moved[here] = boundary[there]
            np.minimum(out[k], 1 - moved, out=out[k])
    return out, every


def area_under_curve(values: Any, positive: Any) -> float:
    """Return the share of pairs of a positive and a negative that are in the right order."""
    from scipy.stats import rankdata

    ranks, n = rankdata(values), int(positive.sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(values) - n)))


def main() -> None:
    """Print a row for each side of each source."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="snemi,fib25,neuropil3d")
    given = parser.parse_args()
    print("| source | boundaries | nearest AUC, VI | middle AUC, VI | ends AUC, VI | ends known |")
    print("|---|---|---|---|---|---|")
    for source in given.only.split(","):
        for side, (part, *_) in enumerate(sources()[source]()):
            low, high = part.options.get("ranges", (0, 1))
            boundary = ((part.cues["boundary"] - np.float32(low)) / (high - low)).astype("f4")
            array, offsets = affinities_of(boundary)
            cues = {"affinity": agglo.affinities(array, offsets, separate="none")}
            spacing = part.options.get("spacing")
            graph = agglo.region_graph(part.superpixels, cues, spacing=spacing)
            owner = best_lut(graph, part.gold)[graph.edges]
            known = (owner > 0).all(axis=1)
            kept = owner[:, 0] != owner[:, 1]
            far = far_pairs(graph)
            row = {tuple(pair): k for k, pair in enumerate(far.pairs.tolist())}
            at = np.array([row.get(tuple(edge), -1) for edge in graph.edges.tolist()])
            nearest = graph.boundary_mean("affinity")
            ends = np.where(at >= 0, far.means[at], nearest)
            contacts = np.where(at >= 0, far.counts[at], 1)
            cells = []
            middle = graph.boundary_mean("affinity_long")
            ids = graph.ids[graph.edges]
            for values, tree in (
                (nearest, agglo.agglomerate(graph, agglo.MeanPolicy("affinity"))),
                (middle, agglo.agglomerate(graph, agglo.MeanPolicy("affinity_long"))),
                (ends, agglo.agglomerate(agglo.RegionGraph.from_edges(
                    ids, ends, contacts=contacts, superpixels=part.superpixels))),
            ):  # fmt: skip
                vi = vi_curve(tree, part.gold)["vi"].min()
                cells.append(f"{area_under_curve(values[known], kept[known]):.3f}, {vi:.3f}")
            print(f"| {source}{' swapped' * side} | {graph.n_boundaries} | {' | '.join(cells)} | "
                  f"{(at >= 0).mean():.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
