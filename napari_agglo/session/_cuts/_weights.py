"""What it costs to cut a boundary: the evidence that it is none, times its area.

A boundary that is wrong to merge across with probability p (the policy's word, or the mean of the
cue) is a surprise of -log(p) if there is none after all. Surprise times area alone still makes a
wide boundary that is almost sure dearer than the few faces around one small superpixel, and the cut
chops that off; a higher power is sharp enough to follow the boundary instead. Measured against gold
(two touching objects as one segment, a seed in each, the mean of the cue), the share of pixels on
the wrong side for powers 1 to 4 (``python -m benchmarks.bench_cuts quality``):

    SNEMI3D mini   0.120  0.068  0.078  0.074
    neuropil3d     0.071  0.053  0.048  0.039
    neuropil2d     0.050  0.043  0.036  0.037
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import LearnedPolicy, MeanPolicy, Policy, as_policy
from napari_agglo.session._cuts._segment import Segment, induced

# A cue is known to one part in 255: nothing is surer than half of that, either way.
_LEAST = 1 / 512
_POWER = 3  # of the surprise; see above


@dataclass(frozen=True, eq=False)
class Costs:
    """Of each boundary of a segment: what cutting it costs, and how probably it is a boundary."""

    cost: NDArray[np.float64]
    wrong: NDArray[np.float64] | None  # None where only costs were given
    area: NDArray[np.float64]


def boundary_costs(
    graph: RegionGraph, segment: Segment, weights: Policy | str | Costs | NDArray[Any]
) -> Costs:
    """Return the costs of the boundaries of a segment.

    Parameters
    ----------
    graph : RegionGraph
        The graph.
    segment : Segment
        The segment, as of `segment_of`.
    weights : Policy, str, Costs or ndarray of float, shape (m,)
        A policy (or ``"mean"``), whose opinion of each boundary gives the cost; what this function
        returned for the same segment; or the costs themselves, one for each boundary of `graph`,
        finite and not negative.
    """
    if isinstance(weights, Costs):
        if len(weights.cost) != len(segment.rows):
            raise InvalidInput(
                f"`weights` are costs of {len(weights.cost)} boundaries, but the segment has "
                f"{len(segment.rows)}; take those of this segment."
            )
        return weights
    local = induced(graph, segment)
    area = local.contact_area()
    if isinstance(weights, np.ndarray):
        return Costs(_given_costs(graph, segment, weights), None, area)
    wrong = probabilities(local, as_policy(weights))
    surprise = -np.log(np.clip(wrong, _LEAST, 1 - _LEAST))
    return Costs(area * surprise**_POWER, wrong, area)


def probabilities(graph: RegionGraph, policy: Policy) -> NDArray[np.float64]:
    """Return how probably a merge across each boundary is wrong; one half if nothing is known."""
    if isinstance(policy, LearnedPolicy):
        return policy.score(graph)
    if isinstance(policy, MeanPolicy):
        return graph.boundary_mean(policy.cue)
    return np.full(graph.n_boundaries, 0.5)


def _given_costs(
    graph: RegionGraph, segment: Segment, weights: NDArray[Any]
) -> NDArray[np.float64]:
    if weights.shape != (graph.n_boundaries,) or weights.dtype.kind not in "iuf":
        raise InvalidInput(
            f"`weights` must be a policy, or a number for each of the {graph.n_boundaries} "
            f"boundaries; got {weights.dtype} of shape {weights.shape}."
        )
    cost = weights[segment.rows].astype(np.float64)
    if not (np.isfinite(cost) & (cost >= 0)).all():
        raise InvalidInput("`weights` must be finite and not negative.")
    return cost
