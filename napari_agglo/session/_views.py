"""What is seen at a scale when some segments were moved up or down their own branch."""

from __future__ import annotations

from collections.abc import Iterable

from napari_agglo.errors import InvalidInput
from napari_agglo.session._edits import Cut, Edit, Merge, Override, Up, fingerprint
from napari_agglo.session._repair._hierarchy import Hierarchy


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
