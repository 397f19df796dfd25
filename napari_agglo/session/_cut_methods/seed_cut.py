"""The seeded cut: the segment is agglomerated again, groups of seeds never merging."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import merge_tree
from napari_agglo.graph import RegionGraph, contracted
from napari_agglo.policy import Policy, as_policy
from napari_agglo.session._cut_methods.cut_registry import CutProblem, cut_method
from napari_agglo.session._cut_methods.min_cut import boundary_costs, widened
from napari_agglo.session._cut_methods.segment_graph import induced, segment_with_seeds


def seeded(
    graph: RegionGraph,
    members: Any,
    seeds: Sequence[Sequence[int]],
    policy: Policy | str = "mean",
) -> list[NDArray[np.int64]]:
    """Cut a segment by agglomerating it again, seeds of different groups never merging.

    The seeds of a group are joined along the shortest paths and start as one region. All other
    superpixels merge by the policy, until each region holds a group. `members` and `seeds` are as
    for `min_cut`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.0, 0.0, 0.9, 1.0]]))
    >>> [part.tolist() for part in seeded(graph, [1, 2, 3, 4], [[1], [4]])]
    [[1, 2, 3], [4]]
    """
    policy = as_policy(policy)
    segment, groups = segment_with_seeds(graph, members, seeds)
    if max(len(group) for group in groups) > 1:  # else save the costs, most of the time
        costs = boundary_costs(graph, segment, policy)
        groups = widened(segment.size, segment.ends, costs.cost, groups)
    lut = np.arange(segment.size + 1)
    for group in groups:
        lut[group + 1] = group[0] + 1
    started = contracted(induced(graph, segment), lut.astype(np.uint32))
    region = np.unique(lut, return_inverse=True)[1]  # of each position + 1, as in `started`
    seats = [int(region[group[0] + 1]) for group in groups]
    apart = [
        (int(started.ids[a]), int(started.ids[b])) for a, b in itertools.combinations(seats, 2)
    ]
    tree = merge_tree(started, policy, cannot_link=apart)
    final = tree.lut(merges=tree.n_merges)[region]
    owner = np.full(segment.size, -1, np.int64)
    for part, group in enumerate(groups):
        owner[final[1:] == final[group[0] + 1]] = part
    return segment.parts(owner, len(groups))


@cut_method("seeded", label="merge from the seeds (seeded)")
def _method(problem: CutProblem) -> list[NDArray[np.int64]]:
    return seeded(problem.graph, problem.members, problem.seeds, problem.policy)
