"""Kernels of the merge tree: all linear, none recursive."""

from __future__ import annotations

from typing import Any

from napari_agglo._jit import kernel


@kernel
def fill_lut(winners: Any, losers: Any, n_merges: Any, table: Any) -> None:
    """Set ``table[id]`` to the region of `id` after `n_merges` merges. No bounds checking.

    `table` comes in as 0, 1, 2, ... Read backwards, a merge finds its winner's fate known: one step
    a merge, no union-find.
    """
    for k in range(n_merges - 1, -1, -1):
        table[losers[k]] = table[winners[k]]


@kernel
def map_labels(labels: Any, table: Any, out: Any) -> None:
    """Write ``table[labels]`` to `out`; all flat. No bounds checking."""
    for i in range(labels.size):
        out[i] = table[labels[i]]


@kernel
def common_ancestor(parents: Any, first: Any, second: Any) -> Any:
    """Lowest node above both, or -1. A parent has a higher number than its children."""
    while first != second:
        if first < second:
            first = parents[first]
            if first < 0:
                return first
        else:
            second = parents[second]
            if second < 0:
                return second
    return first


@kernel
def leaf_intervals(parents: Any, n_leaves: Any, order: Any, start: Any, stop: Any) -> None:
    """Order the leaves so that those of each node are neighbours: ``order[start[n]:stop[n]]``.

    No bounds checking. Children come before parents in the numbering, so sizes are summed in
    ascending order and places are given in descending order; `stop` first holds the sizes, then
    where the next child of a node begins, and at the end the ends.
    """
    for node in range(1, parents.size):
        if node <= n_leaves:
            stop[node] = 1
        if parents[node] >= 0:
            stop[parents[node]] += stop[node]
    place = 0
    for node in range(parents.size - 1, 0, -1):
        size = stop[node]
        parent = parents[node]
        if parent < 0:
            start[node] = place
            place += size
        else:
            start[node] = stop[parent]
            stop[parent] += size
        stop[node] = start[node]
        if node <= n_leaves:
            order[start[node]] = node
            stop[node] += 1
