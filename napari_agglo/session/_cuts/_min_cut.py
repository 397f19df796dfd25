"""Cutting a segment where the evidence for one is strongest, all boundaries taken together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._cuts._partition import Partition, hops, partition
from napari_agglo.session._cuts._segment import (
    Segment,
    check_seeds,
    require_connected,
    segment_of,
)
from napari_agglo.session._cuts._weights import Costs, boundary_costs
from napari_agglo.session._cuts._widen import widened

# How much dearer a boundary of a seed becomes, halved with each superpixel further away, before a
# cut that chops off nothing but seeds is refused. Tried in turn.
_STRENGTHS = (3.0, 15.0)


def min_cut(
    graph: RegionGraph,
    members: Any,
    seeds: Sequence[Sequence[int]],
    weights: Policy | str | NDArray[Any] = "mean",
    *,
    isolating: bool = False,
) -> list[NDArray[np.int64]]:
    """Cut a segment so that the boundaries cut cost least.

    The seeds of a group are first joined along the cheapest paths. Two groups get a minimum cut,
    exactly; more groups get the cheapest isolating cuts, improved pair by pair until nothing is
    gained.

    A small superpixel is cheap to cut off, so the cheapest cut may part a seed from its own object.
    A part that is nothing but its (joined) seeds is accepted if the policy holds its outline for a
    boundary, or if there are fewer other superpixels than groups. Otherwise cutting near seeds is
    made dearer, and if that does not help, the cut is refused.

    Parameters
    ----------
    graph : RegionGraph
        The graph.
    members : array of int
        The superpixels of the segment, dense ids; they must be connected.
    seeds : list of groups of int
        Two groups or more of superpixels of the segment, dense ids.
    weights : Policy, str or ndarray of float
        A policy (or ``"mean"``): a boundary costs its area times ``-log(p)``, p being the
        probability that a merge across it is wrong. Or the cost of each boundary of `graph`.
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
    if not isolating and _isolated(segment, costs, groups, owner):
        near = 0.5 ** hops(problem)
        for strength in _STRENGTHS:
            dearer = costs.cost * (1 + strength * near)
            owner = partition(Partition(segment.size, segment.ends, dearer, groups))
            alone = _isolated(segment, costs, groups, owner)
            if not alone:
                break
        else:
            _refuse(alone)
    return segment.parts(owner, len(groups))


def _isolated(
    segment: Segment, costs: Costs, groups: list[NDArray[np.int64]], owner: NDArray[np.int64]
) -> list[int]:
    """Return the groups whose part is only their seeds, without need and against the evidence."""
    n_seeds = sum(len(group) for group in groups)
    if segment.size - n_seeds < len(groups):
        return []
    sizes = np.bincount(owner, minlength=len(groups))
    alone = [k for k, group in enumerate(groups) if sizes[k] == len(group)]
    return [k for k in alone if not _is_outlined(segment, costs, owner == k)]


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
