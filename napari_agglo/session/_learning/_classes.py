"""Sets of superpixels that are to be together, and into which parts of cuts each reaches."""

from __future__ import annotations

Reach = dict[int, set[int]]  # of each cut, the parts reached into


class Classes:
    """Disjoint sets of superpixels, each named after its smallest.

    Examples
    --------
    >>> classes = Classes()
    >>> classes.reach[8] = {0: {1}}
    >>> classes.unite(8, 3)
    3
    >>> classes.members(classes.find(8)), classes.reach[3]
    ([3, 8], {0: {1}})
    """

    def __init__(self) -> None:
        self.reach: dict[int, Reach] = {}
        self.locked: set[int] = set()  # classes that are to stay alone
        self._parent: dict[int, int] = {}
        self._members: dict[int, list[int]] = {}

    def find(self, superpixel: int) -> int:
        """Return the class of a superpixel."""
        parent = self._parent
        at = superpixel
        while at in parent:
            at = parent[at]
        while superpixel != at:
            parent[superpixel], superpixel = at, parent[superpixel]
        return at

    def members(self, name: int) -> list[int]:
        """Return the superpixels of a class."""
        return self._members.get(name, [name])

    def several(self) -> list[list[int]]:
        """Return the classes of two superpixels or more."""
        return list(self._members.values())

    def add_reach(self, superpixel: int, cut: int, part: int) -> None:
        """Note that a superpixel is in a part of a cut."""
        self.reach.setdefault(self.find(superpixel), {}).setdefault(cut, set()).add(part)

    def unite(self, a: int, b: int) -> int:
        """Make the classes of two superpixels one, and return it."""
        a, b = sorted((self.find(a), self.find(b)))
        if a != b:
            few, many = self.members(b), self.members(a)
            if len(few) > len(many):
                few, many = many, few
            self._members[a] = [*many] if len(many) == 1 else many
            self._members[a] += few
            self._members.pop(b, None)
            self._parent[b] = a
            self.reach[a] = _both(self.reach.get(a, {}), self.reach.pop(b, {}))
            if b in self.locked:
                self.locked.remove(b)
                self.locked.add(a)
        return a


def _both(a: Reach, b: Reach) -> Reach:
    """Return the reach of both together; the longer of the two is used up."""
    if len(b) > len(a):
        a, b = b, a
    for cut, parts in b.items():
        a[cut] = a.get(cut, set()) | parts
    return a
