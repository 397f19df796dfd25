"""What edits ask for at one scale: which superpixels together, which apart; later wins.

Edits of all scales are read as if made at one. Going from the newest to the oldest, each wish is
taken up unless it contradicts those already taken up: the two anchors of a merge are to be
together, superpixels of different parts of a cut apart, a locked segment whole and alone. So a
merge sets aside a pair of parts of an older cut, and a cut an older merge; never the other way
round. What was unlocked again asks for nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from napari_agglo.session._edits import Cut, Edit, Ids, Lock, Merge, Unlock
from napari_agglo.session._learning._classes import Classes, Reach


@dataclass(frozen=True)
class NotReplayed:
    """A wish of an edit that newer ones do not allow.

    Parameters
    ----------
    index : int
        Which of the edits.
    edit : Edit
        The edit itself.
    which : tuple of int
        Of a merge the number of the pair, of a cut those of two parts, of a lock nothing.
    words : str
        What was not done again, and why, in the user's ids.
    """

    index: int
    edit: Edit
    which: tuple[int, ...]
    words: str


class Wishes:
    """The wishes of live edits, oldest first, that can be fulfilled together."""

    def __init__(self, edits: Sequence[Edit], ids: NDArray[np.uint64]) -> None:
        self.edits = list(edits)
        self.pairs: dict[int, list[tuple[int, int]]] = {}  # of each merge
        self.cuts: dict[int, tuple[Ids, ...]] = {}
        self.joined: dict[int, set[tuple[int, int]]] = {}  # of each cut, parts that may touch
        self.locks: dict[int, Ids] = {}
        self.not_replayed: list[NotReplayed] = []
        self.together = Classes()
        self._ids = ids
        live = _live_locks(edits)
        # Of superpixels that are to be together one must know the reach; of others, not yet.
        self._is_anchor = np.zeros(len(ids), np.bool_)
        for edit in edits:
            if isinstance(edit, Merge):
                self._is_anchor[[s for pair in edit.pairs for s in pair]] = True
            elif isinstance(edit, Lock):
                self._is_anchor[edit.members] = True
        for index in range(len(edits) - 1, -1, -1):
            edit = edits[index]
            if isinstance(edit, Merge):
                self._take_merge(index, edit)
            elif isinstance(edit, Cut):
                self._take_cut(index, edit)
            elif isinstance(edit, Lock) and index in live:
                self._take_lock(index, edit)
        self.not_replayed.sort(key=lambda one: (one.index, one.which))

    def keeps_apart(self, cut: int, a: set[int], b: set[int]) -> bool:
        """Whether a cut keeps what reaches into parts `a` from what reaches into parts `b`."""
        joined = self.joined[cut]
        return any(i != j and (min(i, j), max(i, j)) not in joined for i in a for j in b)

    def parted_by(self, a: Reach, b: Reach) -> int | None:
        """Return a cut that keeps apart what reaches so far, or None."""
        if len(b) < len(a):
            a, b = b, a
        for cut, parts in a.items():
            if cut in b and self.keeps_apart(cut, parts, b[cut]):
                return cut
        return None

    def may_unite(self, classes: Classes, a: int, b: int) -> bool:
        """Whether two classes may be in one segment."""
        if a in classes.locked or b in classes.locked:
            return a == b
        return self.parted_by(classes.reach.get(a, {}), classes.reach.get(b, {})) is None

    def _take_merge(self, index: int, edit: Merge) -> None:
        together = self.together
        kept = []
        for k in range(len(edit.pairs) - 1, -1, -1):
            a, b = (together.find(superpixel) for superpixel in edit.pairs[k])
            if a == b or self.may_unite(together, a, b):
                together.unite(a, b)
                kept.append(edit.pairs[k])
                continue
            newer = "lock" if together.locked & {a, b} else "cut"
            u, v = (self._ids[superpixel] for superpixel in edit.pairs[k])
            self._set_aside(
                index, (k,), f"Superpixels {u} and {v} are not merged: a newer {newer} forbids it."
            )
        if kept:
            self.pairs[index] = kept[::-1]

    def _take_cut(self, index: int, edit: Cut) -> None:
        reached: dict[int, set[int]] = {}
        for k, part in enumerate(edit.parts):
            for superpixel in part[self._is_anchor[part]].tolist():
                self.together.add_reach(superpixel, index, k)
                reached.setdefault(self.together.find(superpixel), set()).add(k)
        joined = {
            pair for parts in reached.values() for pair in itertools.combinations(sorted(parts), 2)
        }
        self.cuts[index], self.joined[index] = edit.parts, joined
        for i, j in sorted(joined):
            u, v = (self._ids[edit.parts[k][0]] for k in (i, j))
            self._set_aside(
                index,
                (i, j),
                f"The parts of superpixels {u} and {v} are not cut apart: a newer edit joins them.",
            )

    def _take_lock(self, index: int, edit: Lock) -> None:
        together = self.together
        inside = set(edit.members.tolist())
        reach: Reach = {}
        is_free = True
        for name in {together.find(superpixel) for superpixel in inside}:
            is_free &= name not in together.locked and inside.issuperset(together.members(name))
            for cut, parts in together.reach.get(name, {}).items():
                reach[cut] = reach.get(cut, set()) | parts
        if is_free and not any(self.keeps_apart(cut, p, p) for cut, p in reach.items()):
            first = min(inside)
            for superpixel in inside:
                together.unite(first, superpixel)
            together.locked.add(together.find(first))
            self.locks[index] = edit.members
            return
        segment = self._ids[edit.members[0]]
        self._set_aside(
            index,
            (),
            f"The segment of superpixel {segment} is not locked: newer edits differ.",
        )

    def _set_aside(self, index: int, which: tuple[int, ...], words: str) -> None:
        self.not_replayed.append(NotReplayed(index, self.edits[index], which, words))


def _live_locks(edits: Sequence[Edit]) -> set[int]:
    """Return the indices of the locks that nothing has unlocked since."""
    live: dict[int, Ids] = {}
    for index, edit in enumerate(edits):
        if isinstance(edit, Lock):
            live[index] = edit.members
        elif isinstance(edit, Unlock):
            for k in [k for k, members in live.items() if (members == edit.superpixel).any()]:
                del live[k]
    return set(live)
