"""Editing a session: each method checks the rules, then does one undoable action."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.graph import Division
from napari_agglo.session._actions import Action, Step
from napari_agglo.session._core import Change
from napari_agglo.session._edits import Cut, Down, Lock, Merge, Override, Unlock, Up, fingerprint
from napari_agglo.session._examples import noted
from napari_agglo.session._realise import Real, everything, making_real
from napari_agglo.session._rules import (
    Found,
    Refused,
    merge_pairs,
    require_unlocked,
)
from napari_agglo.session._seeing import Seeing
from napari_agglo.session._view import BranchEnds, moved_sets


class Editing(Seeing):
    """What a user may do to segments."""

    def merge(
        self,
        first: int,
        *others: int,
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Change:
        """Merge segments; the first keeps its id.

        At the threshold exactly these become one; below it nothing changes.

        Parameters
        ----------
        first, *others : int
            Two segments or more that touch, directly or through others of them.
        force : bool
            Merge them even if they do not touch.
        progress : callable, optional
            Told how far a look up to the threshold is, should that be needed.
        """
        with self._lock:
            self._require_writing()
            segments = [self._find(first, "first"), *(self._find(s, "others") for s in others)]
            if len(segments) < 2:
                raise Refused(f"`others` is empty; say what is to be merged with {first}.")
            if len({found.node for found in segments}) < len(segments):
                nodes = [found.node for found in segments]
                twice = next(f.id for f in segments if nodes.count(f.node) > 1)
                raise Refused(f"Segment {twice} is named twice; name each segment once.")
            for found in segments:
                require_unlocked(self._seen, found, "merged")
            pairs, forced = merge_pairs(self._seen, segments, force)
            notes = self._crossed(segments)
            if forced:
                notes = (*notes, "Some of them do not touch.")
            steps = (Step(Merge(self.threshold, pairs)),)
            ids = tuple(found.id for found in segments)
            members = [found.members for found in segments]
            taught = noted(self._state.graph, self._state.policy, combinations(members, 2), -1)
            self._edit("merge", ids, segments, steps, [()], progress, taught)
            return Change(self._history.done[-1].action.words, (segments[0].id,), notes)

    def lock(self, segment: int, *, progress: ProgressCallback | None = None) -> Change:
        """Keep a segment whole and alone at every scale, until it is unlocked."""
        with self._lock:
            self._require_writing()
            found = self._find(segment)
            require_unlocked(self._seen, found, "locked again")
            steps = (Step(Lock(self.threshold, found.members)),)
            self._edit("lock", (found.id,), [found], steps, [()], progress)
            return Change(self._history.done[-1].action.words, (found.id,))

    def unlock(self, segment: int, *, progress: ProgressCallback | None = None) -> Change:
        """Let go of a locked segment; at the threshold nothing changes."""
        with self._lock:
            self._require_writing()
            found = self._find(segment)
            if not self.is_locked(segment):
                raise Refused(f"Segment {found.id} is not locked, so it cannot be unlocked.")
            steps = (Step(Unlock(self.threshold, found.anchor)),)
            self._edit("unlock", (found.id,), [found], steps, [()], progress)
            return Change(self._history.done[-1].action.words, (found.id,))

    def up(self, segment: int) -> Change:
        """Show what a segment next becomes part of in its place, while the rest stays."""
        return self._move("up", segment)

    def down(self, segment: int) -> Change:
        """Show what a segment was made of in its place, while the rest stays."""
        return self._move("down", segment)

    def _move(self, kind: str, segment: int) -> Change:
        with self._lock:
            self._require_writing()
            found = self._find(segment)
            require_unlocked(self._seen, found, f"moved {kind} its branch")
            made = Up if kind == "up" else Down
            of = fingerprint(found.members)
            override: Override = made(self.threshold, found.anchor, of)
            try:
                self._seen.view.apply(override)  # a trial, which refuses where the branch ends
            except BranchEnds as end:
                raise Refused(f"Segment {found.id} {end}") from None
            finally:
                self._seen.forget()
            action = Action(kind, (found.id,), self.threshold, override=override)
            self._perform(action)
            # Up shows more than the segment, and down just that.
            shown = self._seen.view.shown(found.anchor)
            members = np.union1d(self._state.tree.members(shown), found.members)
            return Change(action.words, self._there(action, members.astype(np.int32)))

    def _edit(
        self,
        kind: str,
        ids: tuple[int, ...],
        segments: list[Found],
        steps: tuple[Step, ...],
        divisions: list[tuple[Division, ...]],
        progress: ProgressCallback | None,
        taught: dict[str, Any] | None = None,
    ) -> None:
        """Do an edit, after what makes real the segments that are seen through an override.

        Nothing else that is seen may change. An override elsewhere may lead to something else in
        the changed tree; then all of this scale are made real as well.
        """
        view, overrides = self._seen.view, self._state.overrides
        real = making_real(view, overrides, [found.anchor for found in segments])
        before = moved_sets(view)

        def action(first: Real) -> Action:
            made = (*(Step(edit) for edit in first.edits), *steps)
            return Action(kind, ids, self.threshold, made, dropped=first.dropped, examples=taught)

        def known(first: Real) -> list[tuple[Division, ...]]:
            return [*[()] * len(first.edits), *divisions]

        if any(override.scale == self.threshold for override in overrides):
            self._state.apply(action(real), tuple(known(real)), progress)
            after = moved_sets(self._seen.view)
            self._state.take_back()
            if after != before - real.sets:
                real = everything(self._seen.view, overrides)
        self._perform(action(real), known(real), progress)

    def _crossed(self, segments: list[Found]) -> tuple[str, ...]:
        """Say which older cuts a merge crosses."""
        constraints = self._state.tree.record.constraints
        held: dict[int, list[set[int]]] = {}
        for found in segments:
            mine: dict[int, set[int]] = {}
            for edit, part in constraints.concerning(found.members, -np.inf, np.inf):
                if isinstance(constraints.edits[edit], Cut):
                    mine.setdefault(edit, set()).add(part)
            for edit, reached in mine.items():
                held.setdefault(edit, []).append(reached)
        crossed = [
            edit
            for edit, sets in sorted(held.items())
            if len(sets) > 1 and not set.intersection(*sets)
        ]
        said = []
        for edit in crossed:
            entry = self._history.done[self._state.owner(edit)]
            said.append(
                f"This crosses an earlier cut ({entry.number}. {entry.action.words}), which no "
                "longer holds here from this threshold up."
            )
        return tuple(dict.fromkeys(said))
