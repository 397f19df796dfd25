"""How long it takes to compare two hierarchies at a threshold, as a slider does at each step.

    python -m benchmarks.bench_compare

Two trees of 119,080 superpixels (mean, and random), both cut to the same number of segments; CPU
milliseconds, the least of 15 runs: matching with a hint, and the codes of where they differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import napari_agglo as agglo
from benchmarks.volumes import tiled
from napari_agglo.compare import match_tables, table_codes


def least(work: Callable[[], object], runs: int = 15) -> float:
    """Return CPU milliseconds of the fastest run."""
    times = []
    for _ in range(runs):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return 1000 * min(times)


def main() -> None:
    """Print a line for each number of segments."""
    superpixels, boundary = tiled((256, 512, 512))
    graph = agglo.region_graph(superpixels, boundary, statistics="mean")
    one, two = (agglo.agglomerate(graph, policy) for policy in ("mean", "random"))
    print(f"{graph.n_regions} superpixels\nsegments  match ms  codes ms")
    for share in (0.0, 0.1, 0.3, 0.6, 0.9, 0.99):
        merges = int(share * min(one.n_merges, two.n_merges))
        a, b = one.lut(merges=merges), two.lut(merges=merges)
        before = match_tables(a, two.lut(merges=max(merges - 100, 0)), graph.sizes)
        match = least(lambda a=a, b=b, hint=before: match_tables(a, b, graph.sizes, hint))
        codes = least(lambda a=a, b=b: table_codes(a, b, graph.sizes))
        print(f"{graph.n_regions - merges:8d} {match:9.2f} {codes:9.2f}", flush=True)


if __name__ == "__main__":
    main()
