"""What is seen at the threshold: the segment of each superpixel, kept up to date edit by edit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session._boundary_scores import Between
from napari_agglo.session._edits import Cut, Edit, Merge, Override, Up, fingerprint
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._state import State

# What is seen at a scale when some segments were moved up or down their own branch.


class BranchEnds(InvalidInput):
    """A segment cannot be moved further; the words go on after its name."""


class View:
    """The frontier of a tree at one scale, changed by overrides in the order they were made.

    A pure function of the tree and of the overrides made at this scale; those of other scales do
    not show here.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> from napari_agglo.policy import MeanPolicy
    >>> from napari_agglo.session._edits import Down
    >>> row = np.array([[1, 2, 3, 4]])
    >>> tree = Hierarchy(region_graph(row, np.array([[0.0, 0.2, 0.6, 0.8]])), MeanPolicy())
    >>> view = View(tree, 0.5, [Down(0.5, 1)])
    >>> [tree.members(view.shown(superpixel)).tolist() for superpixel in (1, 3)]
    [[1, 2], [3]]
    """

    def __init__(self, tree: Hierarchy, scale: float, overrides: Iterable[Override] = ()) -> None:
        self.tree = tree
        self.scale = scale
        self._raised: dict[int, int] = {}  # region of the frontier: what is shown in its place
        self._opened: set[int] = set()  # what is shown in pieces
        for override in overrides:
            if override.scale == scale:
                self.apply(override)

    def shown(self, superpixel: int) -> int:
        """Return the node that is shown where a superpixel is."""
        base = self.tree.region(superpixel, self.scale)
        node = self._raised.get(base, base)
        while node in self._opened:
            (node,) = [c for c in self.tree.children(node) if superpixel in self.tree.members(c)]
        return node

    def is_moved(self, superpixel: int) -> bool:
        """Return whether another node is shown there than the one of this scale."""
        return self.shown(superpixel) != self.tree.region(superpixel, self.scale)

    def moved(self) -> set[int]:
        """Return the nodes that are shown though they are not of this scale."""
        found = set(self._raised.values())
        for node in self._opened:
            found |= {child for child in self.tree.children(node) if child not in self._opened}
        return found

    def apply(self, override: Override) -> None:
        """Move the segment that is shown at a superpixel; refuse where its branch ends.

        Refused too where another segment is shown there than the one that was moved, or where it is
        locked.
        """
        node = self.shown(override.superpixel)
        if self.tree.record.constraints.lock_of[override.superpixel]:
            raise BranchEnds("is locked, and so it is whole and alone at every scale; unlock it.")
        if override.of and override.of != fingerprint(self.tree.members(node)):
            raise BranchEnds("is another one than was moved here.")
        if isinstance(override, Up):
            self._up(node, override.superpixel)
        else:
            self._down(node)

    def _up(self, node: int, superpixel: int) -> None:
        base = self.tree.region(superpixel, self.scale)
        top = self._raised.get(base, base)
        if node != top:  # it is a piece: show the whole of which it is one
            while node not in (children := self.tree.children(top)):
                (top,) = [c for c in children if superpixel in self.tree.members(c)]
            self._close(top)
            return
        parent = self.tree.parent(node)
        if parent is None:
            raise BranchEnds(
                "becomes part of nothing larger: nothing that it touches may merge with it. Merge "
                "it by hand."
            )
        self._close(parent)
        for piece in self.tree.pieces(parent, self.scale):
            self._raised[piece] = parent

    def _down(self, node: int) -> None:
        children = self.tree.children(node)
        if not children:
            raise BranchEnds(
                "is a single superpixel, which has nothing below it; place seeds in it to cut it."
            )
        if node not in self._raised.values():
            self._opened.add(node)
            return
        for child in children:
            for piece in self.tree.pieces(child, self.scale):
                if piece == child:
                    del self._raised[piece]
                else:
                    self._raised[piece] = child

    def _close(self, node: int) -> None:
        """Show nothing within a node in pieces any more."""
        inside = set(self.tree.record.subtree(node).tolist())
        self._opened -= inside

    def making_real(self, superpixel: int) -> Edit | None:
        """Return the edit after which what is shown at a superpixel is so at this scale."""
        base = self.tree.region(superpixel, self.scale)
        if base in self._raised:
            return self._as_merge(self._raised[base])
        if base in self._opened:
            return self._as_cut(base)
        return None

    def _as_merge(self, node: int) -> Merge:
        """Return the merge of all that a node holds at this scale, paired as in the tree."""
        naming = self.tree.record.naming
        pairs: list[tuple[int, int]] = []
        pieces = set(self.tree.pieces(node, self.scale))
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at not in pieces:
                first, *others = self.tree.children(at)
                pairs += [(naming(first), naming(other)) for other in others]
                waiting += [first, *others]
        return Merge(self.scale, tuple(reversed(pairs)))

    def _as_cut(self, node: int) -> Cut:
        """Return the cut of a region of the frontier into what is shown of it."""
        parts = []
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at in self._opened:
                waiting += self.tree.children(at)
            else:
                parts.append(self.tree.members(at))
        parts.sort(key=lambda part: int(part[0]))
        # The names that are seen stay: that of the whole is seen on the part that it comes from.
        naming = self.tree.record.naming(node)
        (heir,) = [k for k, part in enumerate(parts) if naming in part]
        return Cut(self.scale, tuple(parts), heir)


# Who has not asked for so many edits what moved is told that anything may have.
_REMEMBERED = 1000


class Seen:
    """The segments at a threshold, by name: the dense id of one of their superpixels.

    A name is looked up again only where an edit was made; what was done at another scale is looked
    at when one looks.
    """

    def __init__(self, state: State, threshold: float) -> None:
        self.state = state
        self._threshold = threshold
        self._names: NDArray[np.uint32] | None = None
        self._table: NDArray[Any] | None = None
        self._view: tuple[int, View] | None = None
        self.version = 0  # another number whenever what is seen may have changed
        self.between = Between()
        self.cut_pairs: dict[int, tuple[Any, NDArray[np.int64]]] = {}  # of parts, across cuts
        self._moves: list[tuple[int, NDArray[np.int32]]] = []  # by version ...
        self._since = 0  # ... and from which on they are known

    @property
    def threshold(self) -> float:
        """The scale that is looked at."""
        return self._threshold

    @threshold.setter
    def threshold(self, threshold: float) -> None:
        if threshold != self._threshold:
            self._threshold = threshold
            self.forget()

    def forget(self) -> None:
        """Look everything up again, when it is asked for."""
        self._names = self._table = self._view = None
        self.version += 1
        self._moves, self._since = [], self.version

    @property
    def view(self) -> View:
        """What is shown, with the overrides of this scale that still lead somewhere."""
        if self._view is None or self._view[0] != self.state.version:
            made = view_of(self.state.tree, self._threshold, self.state.overrides)
            self._view = self.state.version, made
        return self._view[1]

    def names(self, progress: ProgressCallback | None = None) -> NDArray[np.uint32]:
        """Return the name of the segment of each superpixel; it is not to be changed."""
        if self._names is None:
            tree = self.state.tree
            tree.look(self._threshold, progress)
            view = self.view
            names = tree.table(self._threshold)
            for node in view.moved():
                names[tree.members(node)] = tree.name(node)
            self._names = names
        return self._names

    def naming(self) -> NDArray[np.bool_]:
        """Return which superpixels segments are named by, one of each segment."""
        found: NDArray[np.bool_] = self.names() == self.state.tree.record.names.of_superpixel
        found[0] = False
        return found

    def table(self) -> NDArray[Any]:
        """Return the user's id of the segment of each superpixel; it is not to be changed."""
        if self._table is None:
            labels = self.state.graph.superpixels
            self._table = labels.ids[self.names()].astype(labels.dtype.newbyteorder("="))
        return self._table

    def refresh(self, touched: NDArray[np.int32]) -> None:
        """Look up the segments of some superpixels again: nothing else has changed here."""
        self._table = None
        self.version += 1
        if self._names is None:
            self._moves, self._since = [], self.version
            return
        self._moves.append((self.version, touched))
        if len(self._moves) > _REMEMBERED:
            self._since = self._moves.pop(0)[0]
        n = self.state.graph.n_regions
        if len(self._names) != n + 1:  # some superpixels came, or went
            more = np.zeros(max(0, n + 1 - len(self._names)), np.uint32)
            self._names = np.concatenate([self._names[: n + 1], more])
        tree, left = self.state.tree, touched[touched <= n]
        while len(left):
            node = tree.region(int(left[0]), self._threshold)
            members = tree.members(node)
            self._names[members] = tree.name(node)
            left = np.setdiff1d(left, members, assume_unique=True)

    def moved_since(self, version: int) -> NDArray[np.int64] | None:
        """Return which superpixels may have moved since a version; None: any."""
        if version < self._since:
            return None
        newer = [np.zeros(0, np.int64)]
        for number, touched in reversed(self._moves):
            if number <= version:
                break
            newer.append(touched.astype(np.int64))
        return np.unique(np.concatenate(newer))

    def node(self, name: int) -> int | None:
        """Return the node that is shown under a name, if there is one."""
        record = self.state.tree.record
        superpixel = int(record.names.superpixel_of[name])
        node = self.view.shown(superpixel)
        return node if record.naming(node) == superpixel else None


def view_of(tree: Hierarchy, scale: float, overrides: tuple[Override, ...]) -> View:
    """Return what is shown at a scale; a way along a branch that ends sooner is left out."""
    view = View(tree, scale)
    for override in overrides:
        if override.scale == scale:
            try:
                view.apply(override)
            except InvalidInput:
                continue
    return view


def moved_sets(view: View) -> set[bytes]:
    """Return what is shown though it is not of this scale, as sets of superpixels."""
    return {view.tree.members(node).tobytes() for node in view.moved()}
