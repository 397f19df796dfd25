"""One repair: the arrays that its kernels share, and the loop that notices a cancel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.agglomeration import policy_scoring
from napari_agglo.features import FeatureState
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import LearnedPolicy, Policy, no_features
from napari_agglo.session._repair._bags import empty_bags, fill_bags
from napari_agglo.session._repair._constraints import Constraints
from napari_agglo.session._repair._ground import Ground
from napari_agglo.session._repair._growth import (
    N_ASKED,
    N_KNOWN,
    N_LOGGED,
    N_NODES,
    roll_back,
)
from napari_agglo.session._repair._happening import Happening
from napari_agglo.session._repair._nodes import Nodes
from napari_agglo.session._repair._queue import empty_queue
from napari_agglo.session._repair._replay import finish_replay, replay, start_replay
from napari_agglo.session._repair._working import Working

# Boundaries to ask a policy about, and steps to take, between two looks at the world: a tenth of a
# second or so.
_ASKED, _STEPS = 20_000, 100_000


@dataclass(frozen=True, eq=False)
class Known:
    """What the policy said of boundaries between nodes that live where the record ends."""

    pairs: NDArray[np.int64]
    priorities: NDArray[np.float64]

    @classmethod
    def nothing(cls) -> Known:
        return cls(np.zeros((0, 2), np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Changes:
    """What a repair changed in the nodes: enough to put it back."""

    log: NDArray[np.int64]
    logged: NDArray[np.float64]
    count: int  # nodes before


class Asker:
    """A policy ready to be asked by kernels, about graphs of any size."""

    def __init__(self, graph: RegionGraph, policy: Policy) -> None:
        self.layout = graph.layout
        self.scoring = policy_scoring(graph, policy)
        self.features = policy.features if isinstance(policy, LearnedPolicy) else None
        spacing = np.asarray(graph.spacing)
        self.scale = np.stack([spacing, graph.face_areas()])

    def arrays(self, n_slots: int, n_edges: int) -> tuple[Any, ...]:
        """Return a `Scoring` and a `FeatureState` for so many regions and boundaries."""
        layout = self.layout
        regions = np.zeros((n_slots, layout.region_width), np.int64)
        boxes = np.zeros((n_slots, 2, layout.ndim), np.int32)
        boundaries = np.zeros((n_edges, layout.boundary_width), np.int64)
        features = self.features
        if features is None:
            return (*self.scoring, *no_features(regions, boxes, boundaries, layout.ndim))
        numbers = [layout.ndim, layout.n_cues, layout.powers, layout.bins]
        numbers += [features.histogram, len(features.quantiles), features.orientation]
        state = FeatureState(
            regions=regions,
            boxes=boxes,
            boundaries=boundaries,
            layout=np.array(numbers, np.int64),
            quantiles=np.array(features.quantiles),
            scale=self.scale,
            node_block=np.zeros((n_slots, features.block_width), np.float32),
            edge_block=np.zeros((n_edges, features.block_width), np.float32),
            entropy=np.zeros((n_slots, layout.n_cues)),
            axis=np.zeros((n_slots, layout.ndim)),
        )
        return (*self.scoring, *state)


def repair(
    nodes: Nodes,
    ground: Ground,
    constraints: Constraints,
    asker: Asker,
    work: Working,
    happening: Happening,
    known: Known,
    target: float,
    holder: int = -1,
    progress: ProgressCallback | None = None,
) -> tuple[Changes, Known, int]:
    """Repair `nodes` from where `work` starts up to `target`.

    Returns what changed, what the policy said of boundaries at the end, and how many boundaries it
    was asked about. When it is cancelled, nothing has changed.
    """
    n_slots = len(work.slots)
    n_edges = len(work.info)
    nodes.make_room(n_slots)
    state = np.zeros(8, np.int64)
    state[N_NODES] = before = nodes.count
    # A merge logs nine changes at most, and the end two for each region.
    log = np.zeros((12 * n_slots + 16, 3), np.int64)
    logged = np.zeros(len(log))
    bags = empty_bags(n_slots, constraints.incidences(work.members))
    fill_bags(
        work.members, work.places.slot_of, constraints.heads, constraints.pool,
        constraints.scales, nodes.sizes, nodes.leaves, *bags,
    )  # fmt: skip
    arrays = (
        nodes.arrays,
        (work.slots, work.levels, work.ids, work.places.slot_of, work.places.leaf_next),
        work.graph,
        (work.info, work.priority, work.chain),
        empty_queue(n_edges + n_slots),
    )
    rest = (
        (*bags, constraints.scales),
        ground.arrays,
        asker.arrays(n_slots, n_edges),
        (log, logged, state),
        tuple(np.zeros(max(n_slots, n_edges), kind) for kind in (np.int64, np.int64, np.float64)),
    )
    what = (happening.table, happening.scales, happening.members)
    start_replay(known.pairs, known.priorities, *arrays)
    try:
        while True:
            report(progress, "repair", int(state[N_NODES] - before), n_slots)
            if replay(target, _ASKED, _STEPS, *what, *arrays, *rest):
                break
    except BaseException:
        roll_back(nodes.links, nodes.scales, log, logged, state[N_LOGGED])
        raise
    found = Known(np.zeros((n_edges, 2), np.int64), np.zeros(n_edges))
    finish_replay(target, holder, found.pairs, found.priorities, *arrays[:4], rest[3])
    nodes.count = int(state[N_NODES])
    n = int(state[N_LOGGED])
    m = int(state[N_KNOWN])
    return (
        Changes(log[:n].copy(), logged[:n].copy(), before),
        Known(found.pairs[:m].copy(), found.priorities[:m].copy()),
        int(state[N_ASKED]),
    )
