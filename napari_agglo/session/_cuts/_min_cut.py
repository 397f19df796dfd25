"""Cutting a segment where the evidence for one is strongest, all boundaries taken together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._cuts._partition import Partition, partition
from napari_agglo.session._cuts._segment import (
    Group,
    Segment,
    check_seeds,
    require_connected,
    segment_of,
)
from napari_agglo.session._cuts._weights import Costs, boundary_costs
from napari_agglo.session._cuts._widen import widened

# How often a part that is nothing but seeds takes in a neighbour, and is cut anew. Of the false
# merges of SNEMI3D mini, a seed in each object, that leaves none refused, and 0.078 of the pixels
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

    The seeds of a group are first joined along the cheapest paths. Two groups get a minimum cut,
    exactly; more groups get the cheapest isolating cuts, improved pair by pair until nothing is
    gained.

    A small superpixel is cheap to cut off, so the cheapest cut may part a seed from its own object.
    A part that is nothing but its (joined) seeds is accepted if the policy holds its outline for a
    boundary, or if there are fewer other superpixels than groups. Otherwise such a group takes in
    the neighbour that it is tied to most, and the segment is cut anew; if that does not help a few
    times over, the cut is refused.

    Parameters
    ----------
    graph : RegionGraph
        The graph.
    members : array of int
        The superpixels of the segment, dense ids; they must be connected.
    seeds : list of groups of int
        Two groups or more of superpixels of the segment, dense ids.
    weights : Policy, str, Costs or ndarray of float
        A policy (or ``"mean"``): a boundary costs its area times ``(-log p)**3``, p being the
        probability that a merge across it is wrong. Or what `boundary_costs` returned for this
        segment, to cut it again at less cost. Or the cost of each boundary of `graph`.
    isolating : bool
        Whether a part may be nothing but its seeds, whatever the evidence says.

    Returns
    -------
    list of ndarray of int64
        The superpixels of each group's part, ascending: disjoint, connected, together `members`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.0, 0.2, 0.9, 0.1]]))
    >>> [part.tolist() for part in min_cut(graph, [1, 2, 3, 4], [[1], [4]])]
    [[1, 2], [3, 4]]
    """
    segment = segment_of(graph, members)
    groups = check_seeds(graph, segment, seeds)
    require_connected(segment)
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
        _refuse(alone)
    return segment.parts(owner, len(groups))


def _isolated(
    segment: Segment, costs: Costs, groups: list[Group], owner: NDArray[np.int64]
) -> list[int]:
    """Return the groups whose part is only their seeds, without need and against the evidence."""
    if segment.size - sum(len(group) for group in groups) < len(groups):
        return []
    sizes = np.bincount(owner, minlength=len(groups))
    alone = [k for k, group in enumerate(groups) if sizes[k] == len(group)]
    return [k for k in alone if not _is_outlined(segment, costs, owner == k)]


def _grown(problem: Partition, alone: list[int]) -> list[Group]:
    """Return the groups, those that are alone with the free node that they are tied to most."""
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


def _is_outlined(segment: Segment, costs: Costs, inside: NDArray[np.bool_]) -> bool:
    """Whether the policy holds the outline of a part for a boundary rather than not."""
    if costs.wrong is None:
        return False
    cut = inside[segment.ends[:, 0]] != inside[segment.ends[:, 1]]
    area = costs.area[cut]
    return bool((costs.wrong[cut] * area).sum() >= 0.5 * area.sum())


def _refuse(alone: list[int]) -> None:
    which = " and ".join(f"group {k + 1}" for k in alone)
    raise InvalidInput(
        f"The cheapest cut would cut off only the seeds of {which}, and nothing says that a "
        "boundary is there. Put more seeds deeper into what is to come off, use the method "
        "'seeded' or 'tree' on the same seeds, or detach these superpixels if they alone are meant."
    )
