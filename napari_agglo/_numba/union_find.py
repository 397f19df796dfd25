"""Union-find for kernels: disjoint sets as trees in one array of parents.

A root is its own parent. Every search for a root halves the path to it.
"""

from __future__ import annotations

from typing import Any

from napari_agglo._numba import inlined


@inlined
def find_root(item: Any, parents: Any) -> Any:
    """Return the root of the set of `item`."""
    while parents[item] != item:
        parents[item] = parents[parents[item]]
        item = parents[item]
    return item


@inlined
def join_sets(one: Any, two: Any, parents: Any) -> Any:
    """Join the sets of two items; return whether they were different sets.

    Invariant: the smaller root stays a root, so that the root of a set is its smallest item.
    """
    one = find_root(one, parents)
    two = find_root(two, parents)
    parents[max(one, two)] = min(one, two)
    return one != two
