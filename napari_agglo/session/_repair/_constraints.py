"""Live edits, and which of them concern a superpixel: anchors of merges, parts of cuts, locks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo.session._edits import Edit, Ids, Merge


@dataclass(frozen=True, eq=False)
class Entered:
    """What entering an edit changed, to take it back."""

    superpixels: NDArray[np.int32]
    heads: NDArray[np.int32]
    locked: Ids
    locks: NDArray[np.int32]
    pooled: int


_NONE = np.zeros(0, np.int32)


class Constraints:
    """The live edits, oldest first, and a list of those that concern each superpixel.

    An entry of `pool` is (edit, part, next), the part being -1 - k for an anchor of its pair k.
    What was locked and is unlocked at t is from then on a part of one: apart up to t, whole at t.
    """

    def __init__(self, n: int) -> None:
        self.edits: list[Edit] = []
        self.parts: list[tuple[Ids, ...]] = []  # of cuts, and of what was unlocked
        self.scales = np.zeros(16)
        self.heads = np.full(n + 1, -1, np.int32)
        self.pool = np.zeros((64, 3), np.int32)
        self.pooled = 0
        self.lock_of = np.zeros(n + 1, np.int32)  # node of the locked segment

    def enter(
        self,
        edit: Edit,
        parts: tuple[Ids, ...] = (),
        locked: Ids | None = None,
        lock: int = 0,
    ) -> Entered:
        """Enter an edit; `locked` are superpixels that it locks with `lock`, or unlocks with 0."""
        index = len(self.edits)
        if index == len(self.scales):
            self.scales = np.concatenate([self.scales, np.zeros(index)])
        self.scales[index] = edit.scale
        self.edits.append(edit)
        self.parts.append(parts)
        named = list(parts)
        labels = list(range(len(parts)))
        if isinstance(edit, Merge):
            named = [np.array(pair, np.int32) for pair in edit.pairs]
            labels = [-1 - k for k in range(len(named))]
        superpixels = np.concatenate(named) if named else _NONE
        entered = Entered(
            superpixels=superpixels,
            heads=self.heads[superpixels],
            locked=_NONE if locked is None else locked,
            locks=_NONE if locked is None else self.lock_of[locked],
            pooled=self.pooled,
        )
        if len(superpixels):
            self._make_room(len(superpixels))
            which = np.repeat(np.array(labels, np.int32), [len(ids) for ids in named])
            _link(superpixels, which, index, self.pooled, self.heads, self.pool)
            self.pooled += len(superpixels)
        if locked is not None:
            self.lock_of[locked] = lock
        return entered

    def take_back(self, entered: Entered) -> None:
        """Take the last edit back."""
        self.edits.pop()
        self.parts.pop()
        # A superpixel that is named twice has its oldest head first, which must win.
        self.heads[entered.superpixels[::-1]] = entered.heads[::-1]
        self.lock_of[entered.locked] = entered.locks
        self.pooled = entered.pooled

    def incidences(self, members: NDArray[np.int32]) -> int:
        """Return how many entries there are for these superpixels."""
        if not self.pooled:
            return 0
        return int(_count(members, self.heads, self.pool))

    def concerning(
        self, members: NDArray[np.int32], low: float, high: float
    ) -> list[tuple[int, int]]:
        """Return the edits at scales `low` to `high`, and which pair or part, of these."""
        found = np.zeros((self.incidences(members), 2), np.int32)
        if not len(found):
            return []
        seen = np.zeros(len(self.edits), np.int64)
        n = _collect(members, low, high, self.scales, self.heads, self.pool, seen, found)
        return sorted({(edit, k if k >= 0 else -1 - k) for edit, k in found[:n].tolist()})

    def entries(self, superpixel: int) -> list[tuple[int, int]]:
        """Return the edits that concern a superpixel, the newest first, and which part."""
        found = []
        at = int(self.heads[superpixel])
        while at >= 0:
            found.append((int(self.pool[at, 0]), int(self.pool[at, 1])))
            at = int(self.pool[at, 2])
        return found

    def enter_again(self, superpixels: NDArray[np.int64], edit: int, part: int) -> None:
        """Let an older edit concern further superpixels, which are of this part."""
        self._make_room(len(superpixels))
        which = np.full(len(superpixels), part, np.int32)
        _link(superpixels.astype(np.int32), which, edit, self.pooled, self.heads, self.pool)
        self.pooled += len(superpixels)

    def _make_room(self, n: int) -> None:
        if self.pooled + n > len(self.pool):
            more = np.zeros((max(len(self.pool), n), 3), np.int32)
            self.pool = np.concatenate([self.pool, more])


@kernel
def _link(superpixels: Any, which: Any, index: Any, first: Any, heads: Any, pool: Any) -> None:
    """Put an entry before those that each superpixel has. No bounds checking."""
    for k in range(superpixels.size):
        at = first + k
        pool[at, 0] = index
        pool[at, 1] = which[k]
        pool[at, 2] = heads[superpixels[k]]
        heads[superpixels[k]] = at


@kernel
def _count(members: Any, heads: Any, pool: Any) -> Any:
    """Count the entries of superpixels. No bounds checking."""
    n = 0
    for k in range(members.size):
        at = heads[members[k]]
        while at >= 0:
            n += 1
            at = pool[at, 2]
    return n


@kernel
def _collect(
    members: Any, low: Any, high: Any, scales: Any, heads: Any, pool: Any, seen: Any, out: Any
) -> Any:
    """List the entries of superpixels, few of them twice, and return how many. No bounds checking.

    `seen` is a zeroed buffer of edits: a bit for each of the first parts.
    """
    n = 0
    for k in range(members.size):
        at = heads[members[k]]
        while at >= 0:
            edit = pool[at, 0]
            part = np.int64(pool[at, 1])
            new = low <= scales[edit] <= high
            if new and 0 <= part < 62:
                new = seen[edit] >> part & 1 == 0
                seen[edit] |= np.int64(1) << part
            if new:
                out[n, 0] = edit
                out[n, 1] = part
                n += 1
            at = pool[at, 2]
    return n
