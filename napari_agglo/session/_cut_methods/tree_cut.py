"""The cut along the merge tree: undo the merges that brought the groups together, and no others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._cut_methods.cut_registry import CutProblem, cut_method
from napari_agglo.session._cut_methods.min_cut import Costs, boundary_costs, widened
from napari_agglo.session._cut_methods.segment_graph import (
    attached,
    pieces_of,
    segment_with_seeds,
)

Children = Callable[[int], Sequence[int]]  # nodes that a node was made of, none for a superpixel


def by_tree(
    graph: RegionGraph,
    members: Any,
    seeds: Sequence[Sequence[int]],
    node: int,
    children: Children,
    weights: Policy | str | Costs | NDArray[Any] = "mean",
) -> list[NDArray[np.int64]]:
    """Cut a segment into the coarsest nodes of the merge tree that separate the groups.

    Between two seeds, that undoes the merge at their lowest common ancestor. A node without a seed
    goes to the part of its strongest tie.

    `node` is the segment in the tree; the node of a superpixel is its dense id. The other
    parameters are those of `min_cut`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.0, 0.0, 0.9, 1.0]]))
    >>> tree = {7: (6, 4), 6: (1, 5), 5: (2, 3)}
    >>> parts = by_tree(graph, [1, 2, 3, 4], [[1], [3]], 7, lambda node: tree.get(node, ()))
    >>> [part.tolist() for part in parts]
    [[1], [2, 3, 4]]
    """
    segment, groups = segment_with_seeds(graph, members, seeds)
    group_of = {int(segment.members[at]): k for k, group in enumerate(groups) for at in group}
    number = np.full(segment.size, -1, np.int64)
    for k, leaves in enumerate(separating_nodes(node, children, group_of)):
        number[np.searchsorted(segment.members, leaves)] = k
    # A node in pieces that do not touch is taken piece by piece: parts must be connected.
    within = number[segment.ends[:, 0]] == number[segment.ends[:, 1]]
    n_units, unit = pieces_of(segment.size, segment.ends[within])
    costs = boundary_costs(graph, segment, weights)
    between, strength = _quotient(unit[segment.ends[~within]], costs.cost[~within], n_units)
    try:
        joined = widened(n_units, between, strength, [np.unique(unit[group]) for group in groups])
    except InvalidInput as refusal:
        raise InvalidInput(
            f"{refusal.problem}, if only whole nodes of the merge tree are joined",
            argument="seeds",
            remedy=f"{refusal.remedy}; or use the method 'min_cut' or 'seeded' on the same seeds",
        ) from None
    owner = np.full(n_units, -1, np.int64)
    for part, units in enumerate(joined):
        owner[units] = part
    owner = attached(between, strength, np.arange(n_units), owner)
    return segment.parts(owner[unit], len(groups))


def separating_nodes(
    node: int, children: Children, group_of: Mapping[int, int]
) -> list[NDArray[np.int64]]:
    """Return the leaves of the coarsest nodes under `node` that hold seeds of one group at most.

    The result is unique: a node stays whole if it can, and otherwise its children are examined.
    """
    order: list[int] = []  # parents before children
    parent: list[int] = []
    stack = [(node, -1)]
    while stack:
        here, above = stack.pop()
        under = list(children(here))
        stack.extend((child, len(order)) for child in under)
        order.append(here)
        parent.append(above)
    has_children = [False] * len(order)
    for above in parent[1:]:
        has_children[above] = True
    groups_under = [0] * len(order)  # the groups under each node, a bit each
    for k in range(len(order) - 1, -1, -1):
        if not has_children[k]:
            group = group_of.get(order[k])
            groups_under[k] = 0 if group is None else 1 << group
        if k:
            groups_under[parent[k]] |= groups_under[k]
    top = [0] * len(order)  # the separating node above each node, or itself
    leaves: dict[int, list[int]] = {}
    for k in range(len(order)):
        above = parent[k]
        is_mixed = groups_under[k].bit_count() > 1
        top[k] = -1 if is_mixed else top[above] if k and top[above] >= 0 else k
        if not has_children[k]:
            leaves.setdefault(top[k], []).append(order[k])
    return [np.array(sorted(members), np.int64) for members in leaves.values()]


def pruned(node: int, children: Children, leaves: Collection[int]) -> Children:
    """Return a function to the children of a node, without those that hold none of the `leaves`.

    Examples
    --------
    >>> tree = {7: (6, 4), 6: (1, 5), 5: (2, 3)}
    >>> children = pruned(7, lambda node: tree.get(node, ()), {1, 4})
    >>> children(7), children(6)
    ([6, 4], [1])
    """
    under: dict[int, list[int]] = {}
    waiting = [node]
    while waiting:
        here = waiting.pop()
        under[here] = list(children(here))
        waiting += under[here]
    alive: dict[int, bool] = {}
    for here in reversed(under):  # children come after their parent
        inner = under[here]
        alive[here] = any(alive[k] for k in inner) if inner else here in leaves
    return lambda here: [child for child in under[here] if alive[child]]


def _quotient(
    pairs: NDArray[np.int64], cost: NDArray[np.float64], n_units: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return one boundary for each pair of units that touch, and the sum of its costs."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    keys, which = np.unique(low * n_units + high, return_inverse=True)
    strength = np.zeros(len(keys))
    np.add.at(strength, which, cost)
    return np.stack([keys // n_units, keys % n_units], axis=1), strength


@cut_method("tree", label="undo merges (tree)")
def _method(problem: CutProblem) -> list[NDArray[np.int64]]:
    node, children = problem.branches()
    children = pruned(node, children, set(problem.members.tolist()))
    return by_tree(problem.graph, problem.members, problem.seeds, node, children, problem.policy)
