"""The recorded tree with all that belongs to it: what edits and repairs read and change."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._edits import Ids, as_ids
from napari_agglo.session._repair._constraints import Constraints, Entered
from napari_agglo.session._repair._divide import Divided, make_whole
from napari_agglo.session._repair._ground import Ground
from napari_agglo.session._repair._growth import (
    N_LOGGED,
    N_NODES,
    join_nodes,
    roll_back,
    set_free,
)
from napari_agglo.session._repair._happening import Happening
from napari_agglo.session._repair._names import Names, Swap
from napari_agglo.session._repair._nodes import (
    FIRST,
    LOW,
    Nodes,
    first_leaf,
    region_at,
    regions_at,
    subtree,
)
from napari_agglo.session._repair._run import Asker, Changes, Known, repair
from napari_agglo.session._repair._working import Places, Working, working_graph


@dataclass(eq=False)
class Step:
    """What an edit or a look changed, and what was before it."""

    horizon: float
    known: Known
    changes: list[Changes] = field(default_factory=list)
    entered: Entered | None = None  # None for a look
    divided: list[Divided] = field(default_factory=list)
    swap: Swap | None = None


class Record:
    """Nodes, superpixels, live edits and names; true up to the scale `horizon`."""

    def __init__(self, graph: RegionGraph, policy: Policy, merges: Merges) -> None:
        n = graph.n_regions
        self.nodes = Nodes(graph.sizes, len(merges.winners))
        self.nodes.record(merges.winners, merges.losers, merges.priorities)
        self.ground = Ground.of(graph)
        self.constraints = Constraints(n)
        self.names = Names(n)
        self.asker = Asker(graph, policy)
        self.asked = 0  # boundaries that the policy was asked about in all
        self.horizon = np.inf
        self.known = Known.nothing()
        self.places = Places(np.full(n + 1, -1, np.int32), np.zeros(n + 1, np.int32))

    # Reading, at scales up to the horizon.

    def region(self, superpixel: int, scale: float) -> int:
        """Return the node that holds a superpixel at a scale."""
        lock = self.constraints.lock_of[superpixel]
        if lock:
            return int(lock)
        return int(region_at(self.nodes.leaves[superpixel], scale, *self.nodes.arrays))

    def regions(self, scale: float) -> NDArray[np.int64]:
        """Return the node of every superpixel at a scale, as a table over 0..n."""
        out = np.zeros(len(self.nodes.leaves), np.int64)
        top = np.empty(self.nodes.count, np.int32)
        regions_at(self.nodes.leaves, scale, self.nodes.links, self.nodes.scales, top, out)
        lock_of = self.constraints.lock_of
        np.copyto(out, lock_of, where=lock_of > 0)
        return out

    def subtree(self, node: int, births_from: float = -np.inf) -> NDArray[np.int64]:
        """Return a node and what it is made of, not looking into what was born earlier."""
        room = 256
        while True:
            out = np.zeros(room, np.int64)
            stack = np.zeros(room, np.int64)
            n = int(subtree(node, births_from, self.nodes.links, self.nodes.scales, stack, out))
            if n <= room:
                return out[:n]
            room *= 4

    def members(self, node: int) -> Ids:
        """Return the superpixels of a node, ascending."""
        order = self.subtree(node)
        leaf = self.nodes.links[order, FIRST] < 0
        return as_ids(self.nodes.links[order[leaf], LOW])

    def naming(self, node: int) -> int:
        """Return the superpixel after which a node is named."""
        return int(first_leaf(node, self.nodes.links))

    # Changing. What changed is noted in a step.

    def begin(self) -> Step:
        """Return a step that nothing has been changed in."""
        return Step(self.horizon, self.known)

    def join(
        self, pieces: list[int], scale: float, edit: int, step: Step, is_active: bool = True
    ) -> int:
        """Join regions at a scale as an edit does and return the node.

        The first gives its name, if it `is_active`, else that of the larger is kept at each step.
        """
        self.nodes.make_room(len(pieces))
        log, logged, state = self._log(10 * len(pieces))
        whole = pieces[0]
        for piece in pieces[1:]:
            whole = int(
                join_nodes(
                    whole, piece, scale, edit, is_active, *self.nodes.arrays, log, logged, state
                )
            )
        self._keep(log, logged, state, step)
        return whole

    def set_free(self, node: int, scale: float, step: Step) -> None:
        """From `scale` on nothing is recorded of a node, nor of what it may become."""
        log, logged, state = self._log(2)
        set_free(node, scale, self.nodes.links, self.nodes.scales, log, logged, state)
        self._keep(log, logged, state, step)

    def working(
        self, members: Ids, slot_nodes: NDArray[np.int64], groups: NDArray[np.int64]
    ) -> Working:
        """Return the graph of some regions, whose slots are in `places`."""
        locked = self.constraints.lock_of[self.nodes.links[slot_nodes, LOW]] > 0
        return working_graph(
            self.nodes, self.ground, self.places, members, slot_nodes, groups, locked
        )

    def repair(
        self,
        work: Working,
        happening: Happening,
        target: float,
        step: Step,
        holder: int = -1,
        progress: ProgressCallback | None = None,
    ) -> None:
        """Repair from where `work` starts up to `target`, within `holder` if that is cut."""
        changes, known, asked = repair(
            self.nodes, self.ground, self.constraints, self.asker, work, happening, self.known,
            target, holder, progress,
        )  # fmt: skip
        step.changes.append(changes)
        self.asked += asked
        if holder < 0:
            self.known = known

    def put_back(self, step: Step) -> None:
        """Make everything as it was before a step, the last one."""
        for changes in reversed(step.changes):
            n = len(changes.log)
            roll_back(self.nodes.links, self.nodes.scales, changes.log, changes.logged, n)
            self.nodes.count = changes.count
        self.horizon = step.horizon
        self.known = step.known
        if step.swap is not None:
            self.names.swap(step.swap)
        if step.entered is not None:
            self.constraints.take_back(step.entered)
        for divided in reversed(step.divided):
            make_whole(self, divided)

    def _log(self, room: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        state = np.zeros(8, np.int64)
        state[N_NODES] = self.nodes.count
        return np.zeros((room, 3), np.int64), np.zeros(room), state

    def _keep(
        self,
        log: NDArray[np.int64],
        logged: NDArray[np.float64],
        state: NDArray[np.int64],
        step: Step,
    ) -> None:
        n = int(state[N_LOGGED])
        step.changes.append(Changes(log[:n].copy(), logged[:n].copy(), self.nodes.count))
        self.nodes.count = int(state[N_NODES])
