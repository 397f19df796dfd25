"""The tree under live edits: look at a scale, edit there, take it back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges, merge_greedily
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division, RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._edits import Edit, Ids, Merge, as_ids
from napari_agglo.session._hierarchy.events import happening_between
from napari_agglo.session._hierarchy.nodes import (
    BIRTH,
    EDIT,
    FIRST,
    LOW,
    PARENT,
    SECOND,
    UNTIL,
    names_of,
)
from napari_agglo.session._hierarchy.record import Record, Step, apply
from napari_agglo.session._hierarchy.working_graph import number_regions


class Hierarchy:
    """T(E): the merge tree of a graph, a policy and live edits.

    Everything up to the scale `horizon` is as it should be; above, it is repaired when one looks.
    An edit lowers the horizon to its scale, a look raises it, and taking an edit back restores what
    was before it.

    Parameters
    ----------
    graph : RegionGraph
    policy : Policy
    merges : Merges, optional
        The agglomeration without edits, if it is known.
    progress : callable, optional
        Told how far the agglomeration is; may raise `Cancelled`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> from napari_agglo.policy import MeanPolicy
    >>> row = np.array([[1, 2, 3, 4]])
    >>> tree = Hierarchy(region_graph(row, np.array([[0.0, 0.2, 0.6, 0.8]])), MeanPolicy())
    >>> tree.table(0.3)
    array([0, 1, 1, 3, 4], dtype=uint32)
    >>> tree.do(Merge(0.3, ((4, 3),)))
    >>> tree.table(0.3)
    array([0, 1, 1, 4, 4], dtype=uint32)
    >>> tree.undo()
    Merge(scale=0.3, pairs=((4, 3),))
    """

    def __init__(
        self,
        graph: RegionGraph,
        policy: Policy,
        merges: Merges | None = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        if merges is None:
            merges = merge_greedily(graph, policy, progress=progress)
        self.record = Record(graph, policy, merges)
        self.steps: list[Step] = []  # edits and looks, oldest first

    @classmethod
    def of(cls, record: Record, steps: list[Step]) -> Hierarchy:
        """Return the hierarchy of a record, and of the steps that made it what it is."""
        made = cls.__new__(cls)
        made.record, made.steps = record, steps
        return made

    @property
    def edits(self) -> list[Edit]:
        """The live edits, oldest first."""
        return list(self.record.constraints.edits)

    @property
    def horizon(self) -> float:
        """The scale up to which no repair is needed."""
        return self.record.horizon

    @property
    def asked(self) -> int:
        """How many boundaries repairs have asked the policy about, in all."""
        return self.record.asked

    def look(self, scale: float, progress: ProgressCallback | None = None) -> None:
        """Make the tree true up to a scale; `progress` may cancel, and then nothing has changed."""
        record = self.record
        if scale <= record.horizon:
            return
        regions = record.regions(record.horizon)
        slot_nodes = np.zeros(len(regions), np.int64)
        number = np.zeros(record.nodes.count, np.int32)
        step = record.begin()
        try:
            n = number_regions(regions, number, record.places.slot_of, slot_nodes)
            members = np.arange(1, len(regions), dtype=np.int32)
            work = record.working(members, slot_nodes[:n], np.zeros(n, np.int64))
            happening = happening_between(record.constraints, record.horizon, scale)
            record.repair(work, happening, scale, step, progress=progress)
        finally:
            record.places.slot_of[:] = -1
        record.horizon = scale
        self.steps.append(step)

    def do(
        self,
        edit: Edit,
        progress: ProgressCallback | None = None,
        divisions: Sequence[Division] = (),
    ) -> None:
        """Let an edit happen; whether a user may do that is decided elsewhere.

        A cut may come with `divisions` of superpixels of its segment, each made on the graph after
        the one before, whose pieces are then among its parts; all are undone together.
        """
        self.look(edit.scale, progress)
        step = self.record.begin()
        try:
            apply(self.record, edit, step, divisions, progress)
        except BaseException:
            self.record.put_back(step)
            raise
        self.steps.append(step)

    def undo(self) -> Edit:
        """Take the last edit back, with what was repaired since: all is as it was before it."""
        if not self.record.constraints.edits:
            raise InvalidInput("There is no edit to undo.")
        edit = self.record.constraints.edits[-1]
        while True:
            step = self.steps.pop()
            self.record.put_back(step)
            if step.entered is not None:
                return edit

    def region(self, superpixel: int, scale: float) -> int:
        """Return the node that holds a superpixel at a scale."""
        self.look(scale)
        return self.record.region(superpixel, scale)

    def regions(self, scale: float) -> NDArray[np.int64]:
        """Return the node of every superpixel at a scale, as a table over 0..n."""
        self.look(scale)
        return self.record.regions(scale)

    def members(self, node: int) -> Ids:
        """Return the superpixels of a node, ascending."""
        return self.record.members(node)

    def children(self, node: int) -> list[int]:
        """Return the regions that a node was made of: two, more where an edit joined more."""
        links = self.record.nodes.links
        if links[node, FIRST] < 0:
            return []
        found: list[int] = []
        edit = links[node, EDIT]
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at == node or (edit >= 0 and links[at, EDIT] == edit):
                waiting += [int(links[at, SECOND]), int(links[at, FIRST])]
            else:
                found.append(at)
        return found

    def parent(self, node: int, progress: ProgressCallback | None = None) -> int | None:
        """Return what a region next becomes part of, looking as far up as that takes, or None.

        Where an edit joins several regions, that is all of them together.
        """
        nodes = self.record.nodes
        if node == self.record.constraints.lock_of[nodes.links[node, LOW]]:
            return None
        while True:
            up = int(nodes.links[node, PARENT])
            known = up >= 0 and nodes.scales[node, UNTIL] == np.inf
            if known and nodes.scales[up, BIRTH] <= self.horizon:
                break
            if self.horizon == np.inf:
                return None
            # The record may be wrong, but it is the best guess of how far one must look.
            guess = float(nodes.scales[up, BIRTH]) if up >= 0 else -np.inf
            further = self.horizon + max(0.05, 0.1 * abs(self.horizon))
            self.look(guess if guess > self.horizon else further, progress)
        edit = nodes.links[up, EDIT]
        while edit >= 0:
            above = int(nodes.links[up, PARENT])
            if above < 0 or nodes.scales[up, UNTIL] < np.inf or nodes.links[above, EDIT] != edit:
                break
            up = above
        return up

    def birth(self, node: int) -> float:
        """Return the scale from which a node is seen; -inf for a superpixel."""
        return float(self.record.nodes.scales[node, BIRTH])

    def pieces(self, node: int, scale: float) -> list[int]:
        """Return the regions at a scale that a node, which lives above it, is made of."""
        nodes = self.record.nodes
        order = self.record.subtree(node, np.nextafter(scale, np.inf))
        ends = (nodes.links[order, FIRST] < 0) | (nodes.scales[order, BIRTH] <= scale)
        locks = {int(self.record.constraints.lock_of[nodes.links[at, LOW]]) for at in order[ends]}
        return [int(at) for at in order[ends]] if locks == {0} else [node]

    def neighbours(self, node: int, scale: float) -> list[int]:
        """Return the regions at a scale that touch one of them."""
        ground = self.record.ground
        touched = {
            int(other)
            for superpixel in self.members(node)
            for other in ground.adjacent[ground.start[superpixel] : ground.stop[superpixel], 0]
        }
        found = {self.region(superpixel, scale) for superpixel in touched}
        return sorted(found - {node})

    def table(self, scale: float) -> NDArray[np.uint32]:
        """Return the name of the region of every superpixel at a scale, as a table over 0..n."""
        regions = self.regions(scale)
        nodes = self.record.nodes
        names = np.zeros(len(regions), np.uint32)
        first = np.empty(nodes.count, np.int64)
        names_of(regions, nodes.links, self.record.names.of_superpixel, first, names)
        return names

    def name(self, node: int) -> int:
        """Return the name of a region, a dense id: no other that lives beside it has that."""
        return int(self.record.names.of_superpixel[self.record.naming(node)])

    def named(self, name: int, scale: float) -> int | None:
        """Return the region of that name at a scale, if there is one."""
        superpixel = int(self.record.names.superpixel_of[name])
        node = self.region(superpixel, scale)
        return node if self.record.naming(node) == superpixel else None

    def asleep(self) -> list[tuple[int, int]]:
        """Return which pairs are not together, and which parts not whole, where they were to be.

        Each as the index of the edit, and which of its pairs or parts: a newer edit forbids it.
        """
        constraints = self.record.constraints
        self.look(max((edit.scale for edit in constraints.edits), default=-np.inf))
        found = []
        for index, edit in enumerate(constraints.edits):
            wishes = list(constraints.parts[index])
            if isinstance(edit, Merge):
                wishes = [as_ids(pair) for pair in edit.pairs]
            for k, wish in enumerate(wishes):
                if len({self.record.region(superpixel, edit.scale) for superpixel in wish}) > 1:
                    found.append((index, k))
        return found
