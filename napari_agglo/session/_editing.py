"""Editing a session: each method checks the rules, then does one undoable action."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.graph import Division
from napari_agglo.session import _cutting
from napari_agglo.session._actions import Action, Step
from napari_agglo.session._core import Change
from napari_agglo.session._cutting import Plan
from napari_agglo.session._edits import Cut, Down, Lock, Merge, Override, Unlock, Up
from napari_agglo.session._examples import noted
from napari_agglo.session._realise import Real, everything, making_real
from napari_agglo.session._rules import (
    Found,
    Refused,
    check_method,
    dense_groups,
    merge_pairs,
    require_unlocked,
)
from napari_agglo.session._seeing import Seeing
from napari_agglo.session._seen import moved_sets


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
            segments = [self._find(s, "segments") for s in (first, *others)]
            if len(segments) < 2:
                raise Refused(f"`others` is empty; say what is to be merged with {first}.")
            if len({found.node for found in segments}) < len(segments):
                raise Refused("A segment is named twice; name each segment once.")
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

    def cut(
        self,
        segment: int,
        seeds: Sequence[Sequence[int]] | None = None,
        method: str = "min_cut",
        *,
        parts: Sequence[Sequence[int]] | None = None,
        progress: ProgressCallback | None = None,
    ) -> Change:
        """Cut a segment between groups of superpixels, or into given parts.

        The largest part keeps the id. A cut holds at every scale until a later merge crosses it.

        Parameters
        ----------
        segment : int
            What to cut.
        seeds : list of groups of superpixels
            Two groups or more, ``[[a], [b, c]]``.
        method : {"min_cut", "seeded", "tree"}
            Where the boundaries cut cost least; by merging anew, groups never joining; or by
            undoing the merges that brought the groups together.
        parts : list of groups of superpixels
            Instead of seeds: all superpixels of the segment, each once.
        progress : callable, optional
            Told how far the repair of a large segment is.
        """
        with self._lock:
            self._require_writing()
            found, plan = self._cut_plan(segment, seeds, method, parts)
            return self._cut(found, plan, progress)

    def cut_children(self, segment: int, *, progress: ProgressCallback | None = None) -> Change:
        """Cut a segment into what it was made of: two children, or all that one merge joined."""
        with self._lock:
            self._require_writing()
            found = self._cuttable(segment)
            return self._cut(found, _cutting.into_children(self._state, found), progress)

    def detach(
        self,
        segment: int,
        superpixels: Sequence[int],
        *,
        progress: ProgressCallback | None = None,
    ) -> Change:
        """Take superpixels out of a segment; what leaves and what stays fall into their pieces."""
        with self._lock:
            self._require_writing()
            found = self._cuttable(segment)
            (leaving,) = dense_groups(self._state.graph, [superpixels], "superpixels")
            return self._cut(found, _cutting.without(self._state, found, leaving), progress)

    def cut_points(
        self,
        segment: int,
        points: Sequence[Sequence[Sequence[int]]],
        method: str = "min_cut",
        *,
        progress: ProgressCallback | None = None,
    ) -> Change:
        """Cut a segment between groups of pixels, through superpixels where that is needed.

        A superpixel in which points of different groups lie is divided first, by flooding the
        boundary cue from them: its largest piece keeps its id, the others get new ones.

        Parameters
        ----------
        segment : int
            What to cut.
        points : list of groups of pixels
            Two groups or more of indices, ``[[(3, 10, 12)], [(3, 10, 40), (4, 9, 41)]]``.
        method, progress
            As for `cut`.
        """
        with self._lock:
            self._require_writing()
            found = self._cuttable(segment)
            plan = _cutting.by_points(self._state, found, points, check_method(method))
            return self._cut(found, plan, progress)

    def preview_cut(
        self,
        segment: int,
        seeds: Sequence[Sequence[int]] | None = None,
        method: str = "min_cut",
        *,
        parts: Sequence[Sequence[int]] | None = None,
        points: Sequence[Sequence[Sequence[int]]] | None = None,
    ) -> list[NDArray[np.uint64]]:
        """Return the parts that a cut would make, as superpixels, and change nothing.

        Takes the arguments of `cut`, or the points of `cut_points`. Superpixels that would only
        come to be by the cut have the ids that they would get.
        """
        with self._lock:
            if points is None:
                _, plan = self._cut_plan(segment, seeds, method, parts)
            else:
                if seeds is not None or parts is not None:
                    raise Refused("Give `seeds`, `parts` or `points`, not two of them.")
                found = self._cuttable(segment)
                plan = _cutting.by_points(self._state, found, points, check_method(method))
            ids = self._state.graph.ids
            ids = np.concatenate([ids, *(division.ids for division in plan.divisions)])
            return [ids[part] for part in plan.parts]

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
            override: Override = made(self.threshold, found.anchor)
            try:
                self._seen.view.apply(override)  # a trial, which refuses where the branch ends
            finally:
                self._seen.forget()
            action = Action(kind, (found.id,), self.threshold, override=override)
            self._perform(action)
            # Up shows more than the segment, and down just that.
            shown = self._seen.view.shown(found.anchor)
            members = np.union1d(self._state.tree.members(shown), found.members)
            return Change(action.words, self._there(action, members.astype(np.int32)))

    def _cuttable(self, segment: Any) -> Found:
        found = self._find(segment)
        require_unlocked(self._seen, found, "cut")
        return found

    def _cut_plan(self, segment: Any, seeds: Any, method: str, parts: Any) -> tuple[Found, Plan]:
        found = self._cuttable(segment)
        if (seeds is None) == (parts is None):
            raise Refused("Give `seeds` or `parts`: groups of superpixels, [[a], [b, c]].")
        if parts is not None:
            groups = dense_groups(self._state.graph, parts, "parts")
            return found, _cutting.into_parts(self._state, found, groups)
        groups = dense_groups(self._state.graph, seeds, "seeds")
        return found, _cutting.by_seeds(self._state, found, groups, check_method(method))

    def _cut(self, found: Found, plan: Plan, progress: ProgressCallback | None) -> Change:
        steps = (plan.step(self.threshold),)
        with self._drawn(plan.divisions):
            pairs = combinations(plan.parts, 2)
            taught = noted(self._state.graph, self._state.policy, pairs, 1)
        self._edit("cut", (found.id,), [found], steps, [plan.divisions], progress, taught)
        action = self._history.done[-1].action
        return Change(action.words, self._there(action, np.concatenate(plan.parts)))

    @contextmanager
    def _drawn(self, divisions: Sequence[Division]) -> Iterator[None]:
        """Have superpixels divided for a moment, to measure their pieces."""
        for division in divisions:
            self._state.draw(division)
        try:
            yield
        finally:
            for division in reversed(divisions):
                self._state.erase(division)

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
