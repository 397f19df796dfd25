"""Kernels of the merge tree: all linear, none recursive."""

from __future__ import annotations

from typing import Any

from napari_agglo._jit import kernel


@kernel
def pass_names(
    winners: Any, losers: Any, sizes: Any, name: Any, kept: Any, given_up: Any, from_loser: Any
) -> None:
    """Write which name each merge keeps, that of the larger region. No bounds checking.

    `sizes` and `name` come in as those of the superpixels; of two equal ones the winner's is kept.
    """
    for k in range(winners.size):
        u = winners[k]
        v = losers[k]
        from_loser[k] = sizes[v] > sizes[u]
        kept[k] = name[v] if from_loser[k] else name[u]
        given_up[k] = name[u] if from_loser[k] else name[v]
        name[u] = kept[k]
        sizes[u] += sizes[v]


@kernel
def fill_lut(kept: Any, given_up: Any, n_merges: Any, table: Any) -> None:
    """Set ``table[id]`` to the name of `id` after `n_merges` merges. No bounds checking.

    `table` comes in as 0, 1, 2, ... Read backwards, a merge finds the fate of the name that it
    keeps known, and a name is given up once: one step a merge, no union-find.
    """
    for k in range(n_merges - 1, -1, -1):
        table[given_up[k]] = table[kept[k]]


@kernel
def count_labels(labels: Any, counts: Any) -> None:
    """Add the pixels of each label to `counts`; all flat. No bounds checking."""
    for i in range(labels.size):
        counts[labels[i]] += 1


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
