"""Time of the merge loop by the mean against the numbering of the regions.

Grids of regions with random weights are numbered in raster order, along a Morton curve, which keeps
neighbours near in memory, and at random::

    python -m benchmarks.experiment_numbering

The table is kept for ``python -m benchmarks --write``.
"""

from __future__ import annotations

import numpy as np

import napari_agglo as agglo
from benchmarks.experiment_growth import exponent
from benchmarks.results import keep_text, line
from benchmarks.timing import interleaved

SIDES = (11, 22, 46)


def grid_edges(side: int) -> np.ndarray:
    """Return the pairs of regions of a cube that touch: by faces, and by some of the edges."""
    ids = np.arange(side**3).reshape((side,) * 3)
    steps = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 1))
    pairs = []
    for step in steps:
        here = ids[tuple(slice(0, side - k) for k in step)]
        pairs.append(np.stack([here.ravel(), ids[tuple(slice(k, None) for k in step)].ravel()], 1))
    return np.concatenate(pairs)


def morton(side: int) -> np.ndarray:
    """Return the number of each region along a Morton curve."""
    key = np.zeros(side**3, np.int64)
    for axis, place in enumerate(np.unravel_index(np.arange(side**3), (side,) * 3)):
        for bit in range(side.bit_length()):
            key |= (place >> bit & 1) << (3 * bit + 2 - axis)
    numbers = np.empty(side**3, np.int64)
    numbers[np.argsort(key)] = np.arange(side**3)
    return numbers


def main() -> None:
    """Print the times and the exponents of growth."""
    took: dict[str, list[float]] = {}
    for side in SIDES:
        rng = np.random.default_rng(0)
        edges = grid_edges(side)
        weights = rng.random(len(edges))
        works = {}
        orders = {"raster": np.arange(side**3), "Morton": morton(side)}
        for name, numbers in (orders | {"random": rng.permutation(side**3)}).items():
            pairs = np.sort(numbers[edges], axis=1)
            order = np.lexsort((pairs[:, 1], pairs[:, 0]))
            graph = agglo.RegionGraph.from_edges(pairs[order] + 1, weights[order])
            works[name] = lambda graph=graph: agglo.agglomerate(graph)
        for name, seconds in interleaved(works, runs=5).items():
            print(f"{side**3:,} regions, {name}: {1e3 * seconds:.1f} ms", flush=True)
            took.setdefault(name, []).append(seconds)
    sizes = [side**3 for side in SIDES]
    header = ["numbers", *(f"{size:,} regions" for size in sizes), "exponent"]
    lines = [line(header), "|---" * len(header) + "|"]
    for name, seconds_of in took.items():
        times = [f"{1e3 * seconds:.1f} ms" for seconds in seconds_of]
        lines.append(line([name, *times, f"{exponent(sizes, seconds_of):.2f}"]))
    print("\n".join(lines))
    keep_text("numbering", "\n".join(lines))


if __name__ == "__main__":
    main()
