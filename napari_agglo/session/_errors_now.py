"""The errors of what is seen, against gold, as edits are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import Division
from napari_agglo.session._live_vi import LiveVI
from napari_agglo.session._state import State
from napari_agglo.volumes import contingency


@dataclass(frozen=True)
class Errors:
    """How wrong a segmentation is, in bits.

    Attributes
    ----------
    false_merge : float
        H(gold | segments).
    false_split : float
        H(segments | gold).
    """

    false_merge: float
    false_split: float

    @property
    def vi(self) -> float:
        """Both together: the variation of information."""
        return self.false_merge + self.false_split


class ErrorsNow:
    """Follows what is seen; superpixels that have not moved cost nothing."""

    def __init__(self, state: State, gold: NDArray[Any], names: NDArray[np.uint32]) -> None:
        self._gold = gold
        self._live = LiveVI(contingency(state.graph.superpixels, gold), names)
        self._divisions = list(state.divisions)

    def now(
        self, state: State, names: NDArray[np.uint32], moved: NDArray[np.int64] | None = None
    ) -> Errors:
        """Return the errors of the segments `names`; of these `moved` if only these may have."""
        self._follow(state.divisions)
        if moved is not None:
            moved = moved[moved < len(names)]
        self._live.update(names, moved)
        return Errors(self._live.false_merge, self._live.false_split)

    def _follow(self, wanted: list[Division]) -> None:
        # None is ever on top of others than it was made on: the last one tells of all.
        if len(self._divisions) == len(wanted) and self._divisions[-1:] == wanted[-1:]:
            return
        same = 0
        for ours, theirs in zip(self._divisions, wanted, strict=False):
            if ours is not theirs:
                break
            same += 1
        for division in reversed(self._divisions[same:]):
            self._make_whole(division)
        for division in wanted[same:]:
            self._divide(division)
        self._divisions = list(wanted)

    def _divide(self, division: Division) -> None:
        inside = division.pieces > 0
        labels = division.members[division.pieces[inside].astype(np.int64) - 1]
        self._live.redraw([division.superpixel], labels, self._gold[division.box][inside])

    def _make_whole(self, division: Division) -> None:
        first, *others = division.members.tolist()
        for piece in others:
            if self._live.segment(piece) != self._live.segment(first):
                self._live.move([piece], self._live.segment(piece), self._live.segment(first))
        inside = division.pieces > 0
        labels = np.full(int(inside.sum()), first)
        self._live.redraw(division.members, labels, self._gold[division.box][inside])
