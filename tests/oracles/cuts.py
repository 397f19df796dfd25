"""Cuts as one would explain them: look at all of them and take the best."""

from __future__ import annotations

import itertools


def is_connected(nodes, edges):
    """Whether a set of nodes is one piece."""
    nodes = set(nodes)
    reached = set()
    todo = [min(nodes)]
    while todo:
        here = todo.pop()
        if here in reached:
            continue
        reached.add(here)
        todo += [b for edge in edges for a, b in (edge, edge[::-1]) if a == here and b in nodes]
    return reached == nodes


def cost_of(owner, edges, costs):
    """Sum of the costs of the edges between different parts; `owner` is a dict."""
    return sum(c for (u, v), c in zip(edges, costs, strict=True) if owner[u] != owner[v])


def cheapest_partition(nodes, edges, costs, seeds):
    """Return the least cost of parts, connected or not, each of which holds its seeds."""
    fixed = {seed: k for k, group in enumerate(seeds) for seed in group}
    free = [node for node in nodes if node not in fixed]
    best = float("inf")
    for choice in itertools.product(range(len(seeds)), repeat=len(free)):
        owner = {**fixed, **dict(zip(free, choice, strict=True))}
        best = min(best, cost_of(owner, edges, costs))
    return best


def leaves_under(node, children):
    """All leaves of a node, itself if it has no children."""
    under = children(node)
    return {leaf for child in under for leaf in leaves_under(child, children)} or {node}


def covers(node, children):
    """All sets of nodes that hold every leaf of `node` once."""
    yield [node]
    under = children(node)
    if under:
        for choice in itertools.product(*(list(covers(child, children)) for child in under)):
            yield [chosen for part in choice for chosen in part]


def coarsest_separation(node, children, group_of):
    """Return the leaves of the fewest nodes that hold seeds of one group each at most."""

    def separates(cover):
        return all(
            len({group_of[leaf] for leaf in leaves_under(n, children) if leaf in group_of}) <= 1
            for n in cover
        )

    valid = [cover for cover in covers(node, children) if separates(cover)]
    fewest = min(len(cover) for cover in valid)
    (best,) = [cover for cover in valid if len(cover) == fewest]  # there is but one
    return {frozenset(leaves_under(n, children)) for n in best}
