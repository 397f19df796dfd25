"""Cuts by seeds: agreement with the gold standard, and CPU time.

    python -m benchmarks.bench_cuts [quality|speed]

`quality`: two objects of the gold that touch are made one segment, seeds are put at random in each,
and the segment is cut. The columns are the cuts made and refused, the share of exact ones, and the
mean share of pixels on the wrong side, for several powers of the surprise in the cost of a boundary
(see `napari_agglo/session/_cut_methods/min_cut.py`). `speed`: cuts of a segment of 1,000
superpixels, and the division of a superpixel, in CPU milliseconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import napari_agglo as agglo
from benchmarks.timing import least
from benchmarks.volumes import crop, data_folder
from napari_agglo.graph import RegionGraph, divide, superpixel_pieces
from napari_agglo.session._cut_methods import (
    boundary_costs,
    connected_pieces,
    min_cut,
    seeded,
    segment_of,
)

Cut = Callable[[NDArray[np.int64], list[list[int]]], list[NDArray[np.int64]]]


def samples() -> Iterator[tuple[str, RegionGraph, NDArray[Any]]]:
    """Yield graphs with gold: the embedded samples, and the EM crop if its folder exists."""
    for name in ("neuropil2d", "neuropil3d"):
        drawn = agglo.sample(name)
        superpixels = agglo.oversegment(drawn.cues["boundary"])
        yield name, agglo.region_graph(superpixels, drawn.cues), np.asarray(drawn.gold)
    folder = data_folder()
    if folder is not None:
        import tifffile

        superpixels, boundary, name = crop()
        gold = tifffile.imread(folder / "gala_snemi_mini" / "gt.tif")
        yield name, agglo.region_graph(superpixels, boundary), gold


def owners(graph: RegionGraph, gold: NDArray[Any]) -> NDArray[np.int64]:
    """Return the object that each superpixel overlaps most, from 1; 0 if none."""
    _, numbers = np.unique(np.append(gold.ravel(), 0), return_inverse=True)
    numbers = numbers[:-1]
    width = int(numbers.max()) + 1
    pairs = graph.superpixels.image.ravel().astype(np.int64) * width + numbers
    counts = np.bincount(pairs, minlength=(graph.n_regions + 1) * width).reshape(-1, width)
    counts[:, 0] = 0
    return counts.argmax(axis=1)


def false_merges(
    graph: RegionGraph, owner: NDArray[np.int64], most: int = 200
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield segments of two objects of four superpixels or more, and the first object of each."""
    sides = owner[graph.edges]
    met = np.unique(np.sort(sides[(sides > 0).all(axis=1) & (np.ptp(sides, axis=1) > 0)]), axis=0)
    pairs = met[np.bincount(owner)[met].min(axis=1) >= 4]
    for a, b in np.random.default_rng(0).permutation(pairs)[:most].tolist():
        yield connected_pieces(graph, np.flatnonzero((owner == a) | (owner == b)))[0], owner == a


def judged(graph: RegionGraph, owner: NDArray[np.int64], n_seeds: int, cut: Cut) -> str:
    """Cut all false merges with so many seeds a side; return the columns of the table."""
    rng = np.random.default_rng(1)
    refused, wrong = 0, []
    for members, in_first in false_merges(graph, owner):
        sides = [members[in_first[members]], members[~in_first[members]]]
        if min(map(len, sides)) < n_seeds:
            continue
        seeds = [rng.choice(side, n_seeds, replace=False).tolist() for side in sides]
        try:
            parts = cut(members, seeds)
        except agglo.InvalidInput:
            refused += 1
            continue
        misplaced = [np.setdiff1d(p, s) for p, s in zip(parts, sides, strict=True)]
        pixels = graph.sizes[np.concatenate(misplaced)].sum()
        wrong.append(pixels / graph.sizes[members].sum())
    exact = np.mean(np.array(wrong) == 0)
    return f"{len(wrong):4d} {refused:8d} {exact:7.2f} {np.mean(wrong):7.3f}"


def quality() -> None:
    """Print a line for each volume, number of seeds and method."""
    print(f"{'volume':16s} {'seeds':>5s} {'method':14s} cuts  refused   exact   wrong")
    for name, graph, gold in samples():
        owner = owners(graph, gold)
        for n_seeds in (1, 3):
            methods: dict[str, Cut] = {"seeded": lambda m, s, g=graph: seeded(g, m, s)}
            for power in (1, 2, 3, 4):
                methods[f"min_cut {power}"] = lambda m, s, g=graph, p=power: _with_power(g, m, s, p)
            methods["isolating 3"] = lambda m, s, g=graph: min_cut(g, m, s, isolating=True)
            for method, cut in sorted(methods.items()):
                columns = judged(graph, owner, n_seeds, cut)
                print(f"{name:16s} {n_seeds:5d} {method:14s} {columns}", flush=True)


def _with_power(
    graph: RegionGraph, members: NDArray[np.int64], seeds: list[list[int]], power: int
) -> list[NDArray[np.int64]]:
    costs = boundary_costs(graph, segment_of(graph, members), "mean", power)
    return min_cut(graph, members, seeds, costs)


def speed() -> None:
    """Print CPU milliseconds for a ball of 1,000 superpixels, the least of seven runs."""
    name, graph, gold = list(samples())[1]
    policy = agglo.train(graph, gold, strategy="flat")
    members = ball(graph, 1000)
    seeds = [[int(members[0])], [int(members[500])]]
    order = np.sort(members)
    segment = segment_of(graph, order)
    learned = boundary_costs(graph, segment, policy)
    print(f"{name}: {segment.size} superpixels, {len(segment.rows)} boundaries between them")
    superpixel = int(np.argsort(graph.sizes)[-1])
    pixels = np.argwhere(graph.superpixels.image == superpixel)
    ends = [[tuple(pixels[0].tolist())], [tuple(pixels[-1].tolist())]]
    pieces = superpixel_pieces(graph, superpixel, ends)
    division = divide(graph, superpixel, pieces.labels)
    owned = graph.superpixels.image.copy()
    for label, work in {
        "min_cut, mean": lambda: min_cut(graph, order, seeds),
        "min_cut, learned": lambda: min_cut(graph, order, seeds, policy),
        "min_cut, learned, costs kept": lambda: min_cut(graph, order, seeds, learned),
        "seeded, mean": lambda: seeded(graph, order, seeds),
        "seeded, learned": lambda: seeded(graph, order, seeds, policy),
        f"pieces of {graph.sizes[superpixel]} pixels": lambda: superpixel_pieces(
            graph, superpixel, ends
        ),
        "divide": lambda: divide(graph, superpixel, pieces.labels),
        "apply and revert in place": lambda: division.revert(division.apply(graph, owned), owned),
    }.items():
        print(f"  {label:30s} {1000 * least(work, runs=7):8.1f} ms", flush=True)


def ball(graph: RegionGraph, size: int) -> NDArray[np.int64]:
    """Return the superpixels nearest to the middle one, by boundaries crossed, nearest first."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    n = graph.n_regions + 1
    ones = np.ones(graph.n_boundaries)
    matrix = coo_array((ones, (graph.edges[:, 0], graph.edges[:, 1])), shape=(n, n)).tocsr()
    reached = breadth_first_order(matrix, n // 2, directed=False, return_predecessors=False)
    return reached[:size].astype(np.int64)


if __name__ == "__main__":
    {"quality": quality, "speed": speed}[sys.argv[1] if len(sys.argv) > 1 else "quality"]()
