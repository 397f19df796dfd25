"""The minimum cut: the cut between groups of seeds whose boundaries cost least in total."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, as_policy, is_informative, stretched
from napari_agglo.session._cut_methods.cut_registry import CutProblem, cut_method
from napari_agglo.session._cut_methods.segment_graph import (
    Group,
    SegmentGraph,
    attached,
    induced,
    pieces_of,
    segment_with_seeds,
)


def widened(
    n_nodes: int, ends: NDArray[np.int64], cost: NDArray[np.float64], groups: list[Group]
) -> list[Group]:
    """Return each group with the nodes that join its seeds; no two groups share a node.

    The seeds of a group are joined along the shortest paths, a boundary being as long as its cost
    is low. Paths avoid the seeds and the paths of other groups. A group without a path is first in
    another round; if it has none even then, there is none, or the paths of two groups cross.
    """
    # A boundary of cost 0 is very long, but passable.
    least = cost[cost > 0].min(initial=np.inf)
    length = 1.0 / np.maximum(cost, least / 1e6 if np.isfinite(least) else 1.0)
    order = list(range(len(groups)))
    for _ in range(len(groups) + 1):
        trees: dict[int, Group] = {}
        failed = None
        for k in order:
            closed = np.zeros(n_nodes, np.bool_)
            for other, seeds in enumerate(groups):
                if other != k:
                    closed[trees.get(other, seeds)] = True
            tree = _steiner_tree(n_nodes, ends, length, groups[k], closed)
            if tree is None:
                failed = k
                break
            trees[k] = tree
        if failed is None:
            return [trees[k] for k in range(len(groups))]
        if order[0] == failed:
            break
        order.remove(failed)
        order.insert(0, failed)
    first = order[0]
    closed = np.zeros(n_nodes, np.bool_)
    closed[np.concatenate([seeds for k, seeds in enumerate(groups) if k != first])] = True
    if _steiner_tree(n_nodes, ends, length, groups[first], closed) is None:
        raise InvalidInput(
            f"The seeds of group {first + 1} cannot be joined within the segment without passing "
            "through another group",
            argument="seeds",
            remedy="make the seeds on the far side a group of their own, or cut in several steps",
        )
    raise InvalidInput(
        f"The seeds of group {first + 1} cannot be joined without crossing the paths that join "
        "those of another group",
        argument="seeds",
        remedy="put more seeds along the path that each group should take, or cut in several steps",
    )


def _steiner_tree(
    n_nodes: int,
    ends: NDArray[np.int64],
    length: NDArray[np.float64],
    seeds: Group,
    closed: NDArray[np.bool_],
) -> Group | None:
    """Return the nodes of a short tree that joins the seeds and avoids closed nodes.

    After Mehlhorn (1988): one search from all seeds, and a spanning tree over the boundaries where
    their basins meet. Its time hardly grows with the number of seeds.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

    if len(seeds) == 1:
        return seeds
    is_open = ~closed[ends].any(axis=1)
    u, v, w = ends[is_open, 0], ends[is_open, 1], length[is_open]
    matrix = coo_array((w, (u, v)), shape=(n_nodes, n_nodes)).tocsr()
    far, previous, source = dijkstra(
        matrix, directed=False, indices=seeds, min_only=True, return_predecessors=True
    )
    # For each pair of seeds, the shortest path through the boundary between their basins.
    met = np.isfinite(far[u]) & np.isfinite(far[v]) & (source[u] != source[v])
    u, v, w = u[met], v[met], far[u[met]] + w[met] + far[v[met]]
    low = np.searchsorted(seeds, np.minimum(source[u], source[v]))
    high = np.searchsorted(seeds, np.maximum(source[u], source[v]))
    order = np.lexsort((v, u, w, high, low))
    key = low[order] * len(seeds) + high[order]
    order = order[np.unique(key, return_index=True)[1]]
    shape = (len(seeds), len(seeds))
    # Ranks for lengths: all different and none 0, which a sparse matrix takes for no entry.
    rank = np.empty(len(order))
    rank[np.argsort(w[order], kind="stable")] = np.arange(1, len(order) + 1)
    tree = minimum_spanning_tree(coo_array((rank, (low[order], high[order])), shape=shape).tocsr())
    if tree.nnz < len(seeds) - 1:
        return None
    bridges = order[np.isin(rank, tree.data)]
    nodes = set(seeds.tolist())
    for start in (*u[bridges].tolist(), *v[bridges].tolist()):
        node = start
        while node not in nodes:
            nodes.add(node)
            node = int(previous[node])
    return np.array(sorted(nodes), np.int64)


# A boundary costs its area times a power of -log(p), p being the probability that a merge across it
# is wrong (by the policy, or the mean of the cue). With the first power, a wide and almost certain
# boundary costs more than the few faces around one small superpixel, and the cut isolates that
# superpixel; with a higher power the cut follows the boundary. Share of pixels on the wrong side
# against gold (two touching objects as one segment, a seed in each, the mean of the cue) for powers
# 1 to 4 (``python -m benchmarks.bench_cuts quality``):
#
#     SNEMI3D mini   0.120  0.068  0.078  0.074
#     neuropil3d     0.071  0.053  0.048  0.039
#     neuropil2d     0.050  0.043  0.036  0.037

_POWER = 3
_LEAST = 1 / 512  # bound of p and 1 - p: a cue is known to one part in 255


@dataclass(frozen=True, eq=False)
class Costs:
    """Cost of cutting each boundary of a segment, its probability of being one, and its area."""

    cost: NDArray[np.float64]
    wrong: NDArray[np.float64] | None  # None where only costs are known
    area: NDArray[np.float64]


def boundary_costs(
    graph: RegionGraph,
    segment: SegmentGraph,
    weights: Policy | str | Costs | NDArray[Any],
    power: int = _POWER,
) -> Costs:
    """Return the costs of the boundaries of a segment.

    `weights` is a policy, whose score of each boundary gives the cost; a result of this function
    for the same segment; or the cost of each boundary of `graph`, finite and not negative.
    """
    if isinstance(weights, Costs):
        return weights
    local = induced(graph, segment)
    area = local.contact_area()
    if isinstance(weights, np.ndarray):
        return Costs(weights[segment.rows].astype(np.float64), None, area)
    policy = as_policy(weights)
    wrong = policy.score(local) if is_informative(policy) else np.full(local.n_boundaries, 0.5)
    if policy.probabilistic:
        wrong = stretched(policy, wrong)
    surprise = -np.log(np.clip(wrong, _LEAST, 1 - _LEAST))
    return Costs(area * surprise**power, wrong, area)


_MOST = 2**30  # sum of all capacities: scipy counts flow in 32 bits


def whole_capacities(cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return costs as whole numbers, at least 1, whose sum fits in 32 bits.

    With capacities above 0, both sides of a minimum cut are connected if both sets of terminals
    are: a piece apart from them would cost less on the other side.
    """
    total = float(cost.sum())
    # Not cost * (_MOST / total), which is infinite if the total is very small.
    share = cost / total if total > 0 else np.zeros(len(cost))
    return np.maximum(np.floor(share * (_MOST - len(cost))).astype(np.int64), 1)


def minimum_cut(
    n_nodes: int,
    ends: NDArray[np.int64],
    capacity: NDArray[np.int64],
    source: NDArray[np.int64],
    sink: NDArray[np.int64],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], int]:
    """Return the least and the largest source side of a minimum cut, and its value.

    Terminals become one node each. Where several cuts have the same value, the two sides differ.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    node = np.full(n_nodes, -1, np.int64)
    node[source] = 0
    node[sink] = 1
    free = node < 0
    node[free] = np.arange(2, 2 + int(free.sum()))
    u, v = node[ends[:, 0]], node[ends[:, 1]]
    apart = u != v
    u, v, weight = u[apart], v[apart], capacity[apart]
    n = 2 + int(free.sum())
    both = (np.concatenate([u, v]), np.concatenate([v, u]))
    matrix = coo_array((np.concatenate([weight, weight]), both), shape=(n, n)).tocsr()
    for name in ("data", "indices", "indptr"):  # as scipy requires
        setattr(matrix, name, getattr(matrix, name).astype(np.int32))
    result = maximum_flow(matrix, 0, 1)
    left = matrix - result.flow
    left.eliminate_zeros()
    least = _reached(left, 0)
    largest = ~_reached(left.T.tocsr(), 1)
    return least[node], largest[node], int(result.flow_value)


def _reached(matrix: Any, start: int) -> NDArray[np.bool_]:
    from scipy.sparse.csgraph import breadth_first_order

    reached = np.zeros(matrix.shape[0], np.bool_)
    reached[breadth_first_order(matrix, start, return_predecessors=False)] = True
    return reached


_ROUNDS = 5  # over all pairs of parts; each lowers the cost or is the last, and a third is rare


@dataclass(frozen=True, eq=False)
class Partition:
    """A connected graph with costs, and two or more disjoint connected groups to separate."""

    n_nodes: int
    ends: NDArray[np.int64]
    cost: NDArray[np.float64]
    groups: list[Group]


def partition(problem: Partition) -> NDArray[np.int64]:
    """Return the part of each node; every part is connected and holds its group.

    For two groups the cut is minimal. For more that is NP-hard, and the isolating cuts, but for the
    most expensive one, cost less than twice the minimum (Dahlhaus et al. 1994); then each two parts
    are cut again as long as that costs less.
    """
    capacity = whole_capacities(problem.cost)
    owner = np.full(problem.n_nodes, -1, np.int64)
    for k, group in enumerate(problem.groups):
        owner[group] = k
    if len(problem.groups) == 2:
        return _recut(problem, capacity, np.where(owner < 0, 0, owner), 0, 1)
    owner = _isolate(problem, capacity, owner)
    for _ in range(_ROUNDS):
        before = owner
        for a, b in itertools.combinations(range(len(problem.groups)), 2):
            owner = _recut(problem, capacity, owner, a, b)
        if np.array_equal(before, owner):
            break
    return owner


def _isolate(
    problem: Partition, capacity: NDArray[np.int64], owner: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cut each group off all others; the group of the most expensive cut gets the rest instead."""
    cuts = []
    for k, group in enumerate(problem.groups):
        others = np.concatenate([g for j, g in enumerate(problem.groups) if j != k])
        inside, _, value = minimum_cut(problem.n_nodes, problem.ends, capacity, group, others)
        cuts.append((value, k, inside))
    cuts.sort(key=lambda cut: cut[:2])
    for _, k, inside in cuts[:-1]:
        owner[inside & (owner < 0)] = k
    owner[owner < 0] = cuts[-1][1]
    # A piece of a part without its group joins the part of its strongest tie.
    within = owner[problem.ends[:, 0]] == owner[problem.ends[:, 1]]
    count, piece = pieces_of(problem.n_nodes, problem.ends[within])
    part = np.full(count, -1, np.int64)
    for k, group in enumerate(problem.groups):
        part[piece[group]] = k
    return attached(problem.ends, problem.cost, piece, part)[piece]


def _recut(
    problem: Partition, capacity: NDArray[np.int64], owner: NDArray[np.int64], a: int, b: int
) -> NDArray[np.int64]:
    """Return the parts with a minimum cut between parts `a` and `b`, if it costs less.

    Of two cuts of the same value, one in which both parts are more than their seeds is preferred.
    """
    inside = (owner == a) | (owner == b)
    node = np.cumsum(inside) - 1
    rows = inside[problem.ends].all(axis=1)
    ends = node[problem.ends[rows]]
    crosses = owner[problem.ends[rows, 0]] != owner[problem.ends[rows, 1]]
    if not crosses.any():
        return owner  # they do not touch
    source, sink = node[problem.groups[a]], node[problem.groups[b]]
    n_nodes = int(inside.sum())
    least, largest, value = minimum_cut(n_nodes, ends, capacity[rows], source, sink)
    if len(problem.groups) > 2 and value >= int(capacity[rows][crosses].sum()):
        return owner
    side = least
    if least.sum() == len(source) and n_nodes - largest.sum() > len(sink):
        side = largest
    out = owner.copy()
    out[inside] = np.where(side, a, b)
    return out


# Number of times that a part of seeds alone takes in a neighbour, and is cut again. Of the false
# merges of SNEMI3D mini, a seed in each object, none is refused then, and 0.078 of the pixels are
# on the wrong side instead of 0.168 (``python -m benchmarks.bench_cuts quality``).
_GROWTHS = 4


def min_cut(
    graph: RegionGraph,
    members: Any,
    seeds: Sequence[Sequence[int]],
    weights: Policy | str | Costs | NDArray[Any] = "mean",
    *,
    isolating: bool = False,
) -> list[NDArray[np.int64]]:
    """Cut a segment so that the boundaries cut cost least.

    The seeds of a group are first joined along the shortest paths. The cut between two groups is
    exactly minimal; more groups get isolating cuts, improved pair by pair until nothing is gained.

    A small superpixel is cheap to cut off, so the minimum cut may separate a seed from its own
    object. A part that is only its (joined) seeds is accepted if its outline is more probably a
    boundary than not, or if there are fewer other superpixels than groups. Otherwise such a group
    takes in the neighbour of the strongest tie, and the segment is cut again; after a few such
    rounds the cut is refused. With `isolating`, every part of seeds alone is accepted.

    `members` are the superpixels of the segment (dense ids), connected; `seeds` are two groups or
    more of them; `weights` are those of `boundary_costs`. Return the superpixels of each group's
    part, ascending: disjoint, connected, together `members`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.0, 0.2, 0.9, 0.1]]))
    >>> [part.tolist() for part in min_cut(graph, [1, 2, 3, 4], [[1], [4]])]
    [[1, 2], [3, 4]]
    """
    segment, groups = segment_with_seeds(graph, members, seeds)
    costs = boundary_costs(graph, segment, weights)
    groups = widened(segment.size, segment.ends, costs.cost, groups)
    problem = Partition(segment.size, segment.ends, costs.cost, groups)
    owner = partition(problem)
    alone = [] if isolating else _isolated(segment, costs, groups, owner)
    for _ in range(_GROWTHS):
        if not alone:
            break
        problem = replace(problem, groups=_grown(problem, alone))
        owner = partition(problem)
        alone = _isolated(segment, costs, problem.groups, owner)
    if alone:
        which = " and ".join(f"group {k + 1}" for k in alone)
        raise InvalidInput(
            f"The minimum cut would separate only the seeds of {which}, and there is no evidence "
            "for a boundary around them",
            argument="seeds",
            remedy="put more seeds into the part to be cut off, use the method 'seeded' or 'tree', "
            "or detach these superpixels if they alone are meant",
        )
    return segment.parts(owner, len(groups))


def _isolated(
    segment: SegmentGraph, costs: Costs, groups: list[Group], owner: NDArray[np.int64]
) -> list[int]:
    """Return the groups whose part is only their seeds, without need and without evidence."""
    if segment.size - sum(len(group) for group in groups) < len(groups):
        return []
    sizes = np.bincount(owner, minlength=len(groups))
    alone = [k for k, group in enumerate(groups) if sizes[k] == len(group)]
    return [k for k in alone if not _is_outlined(segment, costs, owner == k)]


def _grown(problem: Partition, alone: list[int]) -> list[Group]:
    """Return the groups, each of those in `alone` with the free node of its strongest tie."""
    groups = list(problem.groups)
    taken = np.zeros(problem.n_nodes, np.bool_)
    taken[np.concatenate(groups)] = True
    for k in alone:
        inside = np.zeros(problem.n_nodes, np.bool_)
        inside[groups[k]] = True
        tie = np.zeros(problem.n_nodes)
        for here, there in (problem.ends.T, problem.ends.T[::-1]):
            out = inside[here] & ~taken[there]
            np.add.at(tie, there[out], problem.cost[out])
        best = int(tie.argmax())
        if tie[best] > 0:
            taken[best] = True
            groups[k] = np.sort(np.append(groups[k], best))
    return groups


def _is_outlined(segment: SegmentGraph, costs: Costs, inside: NDArray[np.bool_]) -> bool:
    """Return whether the outline of a part is more probably a boundary than not."""
    if costs.wrong is None:
        return False
    cut = inside[segment.ends[:, 0]] != inside[segment.ends[:, 1]]
    area = costs.area[cut]
    return bool((costs.wrong[cut] * area).sum() >= 0.5 * area.sum())


@cut_method("min_cut", label="weakest boundaries (min-cut)")
def _method(problem: CutProblem) -> list[NDArray[np.int64]]:
    graph, members, seeds, policy = problem.graph, problem.members, problem.seeds, problem.policy
    try:
        return min_cut(graph, members, seeds, policy)
    except InvalidInput:
        if not problem.divided:
            raise
        # Points of two groups in one superpixel may ask for no more than its pieces.
        return min_cut(graph, members, seeds, policy, isolating=True)
