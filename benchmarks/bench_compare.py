"""Comparison of two hierarchies at a threshold, as at each step of a slider.

Two trees (mean, and random) are cut to the same number of segments: the matching, with the matching
of the step before as a hint, and the codes of the differences.
"""

from __future__ import annotations

import napari_agglo as agglo
from benchmarks.results import Table
from benchmarks.timing import least
from benchmarks.volumes import tiled
from napari_agglo.compare import match_tables, table_codes


def run(table: Table, small: bool = False) -> None:
    """Add a row for each number of segments and each of the two tasks."""
    superpixels, boundary = tiled((32, 128, 128) if small else (256, 512, 512))
    graph = agglo.region_graph(superpixels, boundary, statistics="mean")
    one, two = (agglo.agglomerate(graph, policy) for policy in ("mean", "random"))
    for share in (0.0, 0.1, 0.3, 0.6, 0.9, 0.99):
        merges = int(share * min(one.n_merges, two.n_merges))
        a, b = one.lut(merges=merges), two.lut(merges=merges)
        before = match_tables(a, two.lut(merges=max(merges - 100, 0)), graph.sizes)
        size = f"{graph.n_regions - merges:,} segments of {graph.n_regions:,} superpixels"
        match = least(lambda a=a, b=b, hint=before: match_tables(a, b, graph.sizes, hint), runs=15)
        table.add(f"match {size}", match)
        codes = least(lambda a=a, b=b: table_codes(a, b, graph.sizes), runs=15)
        table.add(f"codes of the differences, {size}", codes)
