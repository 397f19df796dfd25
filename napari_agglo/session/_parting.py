"""Cutting the segments of a session: where is decided by seeds, points, the tree, or a person."""

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
from napari_agglo.session._core import Change
from napari_agglo.session._cutting import Plan
from napari_agglo.session._editing import Editing
from napari_agglo.session._examples import noted
from napari_agglo.session._rules import (
    Found,
    Refused,
    check_method,
    dense_groups,
    dense_list,
    require_unlocked,
)


class Parting(Editing):
    """The ways in which a user may cut a segment."""

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
            leaving = dense_list(self._state.graph, superpixels, "superpixels")
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
        boundary cue from them: its largest piece keeps its id, the others get new ones. If it was
        in pieces that do not touch, a piece without points goes with the largest part.

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
            if sum(given is not None for given in (seeds, parts, points)) != 1:
                raise Refused(
                    "Give `seeds` or `parts`, groups of superpixels, [[a], [b, c]], or `points`, "
                    "groups of pixels, [[(3, 4)], [(9, 9), (9, 12)]]; one, and not two of them."
                )
            if points is None:
                _, plan = self._cut_plan(segment, seeds, method, parts)
            else:
                found = self._cuttable(segment)
                plan = _cutting.by_points(self._state, found, points, check_method(method))
            ids = self._state.graph.ids
            ids = np.concatenate([ids, *(division.ids for division in plan.divisions)])
            return [ids[part] for part in plan.parts]

    def _cuttable(self, segment: Any) -> Found:
        found = self._find(segment)
        require_unlocked(self._seen, found, "cut")
        return found

    def _cut_plan(self, segment: Any, seeds: Any, method: str, parts: Any) -> tuple[Found, Plan]:
        found = self._cuttable(segment)
        check_method(method)
        if (seeds is None) == (parts is None):
            raise Refused("Give `seeds` or `parts`: groups of superpixels, [[a], [b, c]].")
        if parts is not None:
            groups = dense_groups(self._state.graph, parts, "parts")
            return found, _cutting.into_parts(self._state, found, groups)
        groups = dense_groups(self._state.graph, seeds, "seeds")
        return found, _cutting.by_seeds(self._state, found, groups, method)

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
