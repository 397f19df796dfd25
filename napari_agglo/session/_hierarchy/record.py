"""The recorded tree with all that belongs to it: what edits and repairs read and change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._edits import Cut, Edit, Ids, Lock, Merge, Unlock, as_ids
from napari_agglo.session._hierarchy.events import Happening, happening_within
from napari_agglo.session._hierarchy.fences import Constraints, Entered
from napari_agglo.session._hierarchy.nodes import (
    BIRTH,
    FIRST,
    LEVEL,
    LOW,
    MARK,
    N_LOGGED,
    N_NODES,
    PARENT,
    PEAK,
    UNTIL,
    Nodes,
    first_leaf,
    join_nodes,
    region_at,
    regions_at,
    roll_back,
    set_free,
    subtree,
)
from napari_agglo.session._hierarchy.replay import Asker, Changes, Known, before_crossing, repair
from napari_agglo.session._hierarchy.working_graph import (
    Ground,
    Places,
    Working,
    claim_leaves,
    working_graph,
)

# A superpixel in pieces: what follows it (leaves, rows, neighbours, edits), and the way back.


if TYPE_CHECKING:
    pass


@dataclass(frozen=True, eq=False)
class Divided:
    """What a division changed, to take it back."""

    n: int  # superpixels before
    superpixel: int
    leaf: int
    row: int
    around: NDArray[np.int64]  # superpixels whose neighbours changed, and where these were
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    adjacent: int
    rows: tuple[int, int]
    count: int
    pooled: int
    parts: dict[int, tuple[Ids, ...]]


def divide(record: Record, division: Division) -> Divided:
    """Put the pieces of a superpixel in its place: each a leaf of which nothing is recorded.

    What older edits say of the superpixel they say of each piece; an anchor stays with the largest,
    which keeps the id.
    """
    nodes, ground, constraints = record.nodes, record.ground, record.constraints
    s = division.superpixel
    pieces = division.members
    around = np.unique(division.new.edges)
    old = around[around < len(nodes.leaves)]
    concerned = [(edit, k) for edit, k in constraints.entries(s) if k >= 0]
    divided = Divided(
        n=len(nodes.leaves) - 1,
        superpixel=s,
        leaf=int(nodes.leaves[s]),
        row=int(ground.row_of[s]),
        around=old,
        start=ground.start[old],
        stop=ground.stop[old],
        adjacent=ground.n_adjacent,
        rows=(len(ground.more_regions), len(ground.more_boundaries)),
        count=nodes.count,
        pooled=constraints.pooled,
        parts={edit: constraints.parts[edit] for edit, _ in concerned},
    )
    n = divided.n + len(pieces) - 1
    resize(record, n)
    ground.divide(division)
    nodes.make_room(len(pieces))
    rows = np.arange(nodes.count, nodes.count + len(pieces))
    nodes.links[rows] = -1
    nodes.links[rows, MARK] = 0
    nodes.links[rows, PEAK] = rows
    nodes.links[rows, LOW] = pieces
    nodes.links[rows, PARENT] = divided.leaf
    nodes.scales[rows] = np.inf
    nodes.scales[rows, BIRTH] = nodes.scales[rows, LEVEL] = nodes.scales[rows, UNTIL] = -np.inf
    nodes.sizes[rows] = division.new.regions[:, 0]
    nodes.leaves[pieces] = rows
    nodes.count += len(pieces)
    for edit, k in concerned:
        parts = list(constraints.parts[edit])
        parts[k] = as_ids(np.concatenate([parts[k], pieces[1:]]))
        constraints.parts[edit] = tuple(parts)
        constraints.enter_again(pieces[1:], edit, k)
    return divided


def make_whole(record: Record, divided: Divided) -> None:
    """Take a division back, the last one."""
    nodes, ground, constraints = record.nodes, record.ground, record.constraints
    s = divided.superpixel
    resize(record, divided.n)
    nodes.leaves[s] = divided.leaf
    nodes.count = divided.count
    ground.start[divided.around] = divided.start
    ground.stop[divided.around] = divided.stop
    ground.row_of[s] = divided.row
    ground.n_adjacent = divided.adjacent
    ground.more_regions = ground.more_regions[: divided.rows[0]]
    ground.more_boundaries = ground.more_boundaries[: divided.rows[1]]
    constraints.pooled = divided.pooled
    for edit, parts in divided.parts.items():
        constraints.parts[edit] = parts


def resize(record: Record, n: int) -> None:
    """Make every table of superpixels one of 1..`n`."""
    record.names.extend(n)
    for owner, attribute, value in (
        (record.nodes, "leaves", 0),
        (record.ground, "start", 0),
        (record.ground, "stop", 0),
        (record.ground, "row_of", 0),
        (record.constraints, "heads", -1),
        (record.constraints, "lock_of", 0),
        (record.places, "slot_of", -1),
        (record.places, "leaf_next", 0),
    ):
        table = getattr(owner, attribute)[: n + 1]
        more = np.full(n + 1 - len(table), value, table.dtype)
        setattr(owner, attribute, np.concatenate([table, more]))


# Names of regions: stable while one moves the threshold, merges and cuts.
#
# A region is named by one of its superpixels, so no two regions of a partition have one name: that
# of the larger of the two regions that it was made of, or where a user merged that of the one that
# was active. A cut gives the name of the whole to its largest part, by letting two superpixels
# within it change names.


Swap = tuple[int, int]


class Names:
    """The name of each superpixel, and the superpixel of each name.

    Examples
    --------
    >>> names = Names(3)
    >>> names.swap((1, 3))
    >>> names.of_superpixel.tolist(), int(names.superpixel_of[3])
    ([0, 3, 2, 1], 1)
    """

    def __init__(self, n: int) -> None:
        self.of_superpixel = np.arange(n + 1, dtype=np.uint32)
        self.superpixel_of = np.arange(n + 1, dtype=np.uint32)

    def extend(self, n: int) -> None:
        """Make it names of superpixels 1..`n`: further ones have their own, of the last none."""
        for attribute in ("of_superpixel", "superpixel_of"):
            names = getattr(self, attribute)
            more = np.arange(len(names), n + 1, dtype=np.uint32)
            setattr(self, attribute, np.concatenate([names[: n + 1], more]))

    def swap(self, swap: Swap) -> None:
        """Let two superpixels change names; again, and they have their own."""
        a, b = swap
        name_a, name_b = self.of_superpixel[a], self.of_superpixel[b]
        self.of_superpixel[a], self.of_superpixel[b] = name_b, name_a
        self.superpixel_of[name_a], self.superpixel_of[name_b] = b, a


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


# What each kind of edit does to the record. Whether a user may do it is decided elsewhere.


def apply(
    record: Record,
    edit: Edit,
    step: Step,
    divisions: Sequence[Division] = (),
    progress: ProgressCallback | None = None,
) -> None:
    """Let an edit happen at its scale, which the horizon reaches; the horizon then ends there.

    A cut may come with `divisions` of superpixels of the segment that is cut, each made on the
    graph after the one before; its parts then name the pieces.
    """
    match edit:
        case Merge():
            _merge(record, edit, step)
        case Cut():
            _cut(record, edit, step, divisions, progress)
        case Lock():
            _lock(record, edit, step)
        case Unlock():
            _unlock(record, edit, step)
    record.horizon = min(record.horizon, edit.scale)


def _merge(record: Record, edit: Merge, step: Step) -> None:
    index = len(record.constraints.edits)
    for a, b in edit.pairs:
        u, v = (record.region(superpixel, edit.scale) for superpixel in (a, b))
        if u != v:
            record.join([u, v], edit.scale, index, step)
    step.entered = record.constraints.enter(edit)


def _cut(
    record: Record,
    edit: Cut,
    step: Step,
    divisions: Sequence[Division],
    progress: ProgressCallback | None,
) -> None:
    anchor = divisions[0].superpixel if divisions else int(edit.parts[0][0])
    node = record.region(anchor, edit.scale)
    naming = record.naming(node)
    members = np.concatenate(edit.parts)
    for division in divisions:
        step.divided.append(divide(record, division))
    slot_of = record.places.slot_of
    try:
        slot_of[members] = np.repeat(np.arange(len(edit.parts)), [len(p) for p in edit.parts])
        order = record.subtree(node)
        links = record.nodes.links
        leaves = links[order[links[order, FIRST] < 0], LOW]
        leaves = np.concatenate([leaves, *(division.members[1:] for division in divisions)])
        if len(leaves) != len(members) or (slot_of[leaves] < 0).any():
            raise InvalidInput(
                "`parts` must be disjoint and make up one segment: give each of its superpixels "
                "once."
            )
        if not divisions:
            alive, lowest = before_crossing(record.nodes, order, slot_of)
        else:  # all that holds the superpixels is gone, so the run begins where nothing is merged
            alive, lowest = record.nodes.leaves[members].astype(np.int64), -np.inf
        if lowest < np.inf:
            _run_within(record, edit, node, members, alive, lowest, step, progress)
    finally:
        slot_of[members] = -1
    step.entered = record.constraints.enter(edit, edit.parts)
    sizes, leaf_of = record.nodes.sizes, record.nodes.leaves
    heir = max(edit.parts, key=lambda part: sizes[leaf_of[part]].sum())
    if edit.heir is not None:
        heir = edit.parts[edit.heir]
    _pass_name(record, naming, record.region(int(heir[0]), edit.scale), step)


def _run_within(
    record: Record,
    cut: Cut,
    node: int,
    members: NDArray[np.int32],
    alive: NDArray[np.int64],
    lowest: float,
    step: Step,
    progress: ProgressCallback | None,
) -> None:
    """Run again within each part, from what lives before the first merge that crosses."""
    slot_of = record.places.slot_of
    groups = slot_of[record.nodes.links[alive, LOW]].astype(np.int64)
    inside = np.zeros(len(members), np.int32)
    stack = np.zeros(len(members) + 1, np.int64)
    claim_leaves(alive, record.nodes.links, stack, slot_of, inside)
    happening = happening_within(record.constraints, inside, slot_of, lowest, cut)
    work = record.working(inside, alive, groups)
    record.repair(work, happening, cut.scale, step, node, progress)


def _lock(record: Record, edit: Lock, step: Step) -> None:
    node = record.region(int(edit.members[0]), edit.scale)
    record.set_free(node, edit.scale, step)
    step.entered = record.constraints.enter(edit, locked=edit.members, lock=node)


def _unlock(record: Record, edit: Unlock, step: Step) -> None:
    node = int(record.constraints.lock_of[edit.superpixel])
    naming = record.naming(node)
    members = record.members(node)
    links, scales, _ = record.nodes.arrays
    if scales[node, BIRTH] > edit.scale:  # below, it is no more than its pieces: put together here
        order = record.subtree(node, np.nextafter(edit.scale, np.inf))
        pieces = order[(links[order, FIRST] < 0) | (scales[order, BIRTH] <= edit.scale)]
        pieces = pieces[np.argsort(links[pieces, LOW])]
        index = len(record.constraints.edits)
        node = record.join(pieces.tolist(), edit.scale, index, step, is_active=False)
    record.set_free(node, edit.scale, step)
    step.entered = record.constraints.enter(edit, (members,), locked=members)
    _pass_name(record, naming, node, step)


def _pass_name(record: Record, naming: int, heir: int, step: Step) -> None:
    """Let a region go on under the name of a superpixel of what it was part of."""
    own = record.naming(heir)
    if own != naming:
        step.swap = (naming, own)
        record.names.swap(step.swap)
