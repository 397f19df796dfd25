"""Cutting the segments of a session: where is decided by seeds, points, the tree, or a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.graph import Division
from napari_agglo.session import _cutting
from napari_agglo.session._core import Change
from napari_agglo.session._cutting import Plan
from napari_agglo.session._editing import Editing
from napari_agglo.session._examples import noted
from napari_agglo.session._previewing import CutPreview, preview_of
from napari_agglo.session._rules import (
    Found,
    Refused,
    check_method,
    dense_groups,
    dense_list,
    require_unlocked,
)

Groups = Sequence[Sequence[int]]  # of superpixels
Points = Sequence[Sequence[Sequence[int]]]  # groups of pixel indices


class Parting(Editing):
    """The ways in which a user may cut a segment."""

    def cut(
        self,
        segment: int,
        seeds: Groups | None = None,
        method: str = "min_cut",
        *,
        parts: Groups | None = None,
        points: Points | None = None,
        progress: ProgressCallback | None = None,
    ) -> Change:
        """Cut a segment between groups of superpixels or of pixels, or into given parts.

        The largest part keeps the id. A cut holds at every scale until a later merge crosses it.

        Parameters
        ----------
        segment : int
            The segment to cut.
        seeds : list of groups of superpixels
            Two groups or more, ``[[a], [b, c]]``.
        method : {"min_cut", "seeded", "tree"}
            Where the boundaries cut cost least; by merging anew, groups never joining; or by
            undoing the merges that brought the groups together.
        parts : list of groups of superpixels
            Instead of seeds: all superpixels of the segment, each once.
        points : list of groups of pixels
            Instead of seeds: two groups or more of indices, ``[[(3, 10, 12)], [(3, 10, 40)]]``. A
            superpixel with points of different groups is divided first, by flooding the boundary
            cue from them: its largest piece keeps its id, the others get new ones. If it was in
            pieces that do not touch, a piece without points goes with the largest part.
        progress : callable, optional
            Told how far the repair of a large segment is.
        """
        with self._lock:
            self._require_writing()
            found, plan = self._cut_plan(segment, seeds, method, parts, points)
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

    def preview(
        self,
        segment: int,
        seeds: Groups | None = None,
        method: str = "min_cut",
        *,
        parts: Groups | None = None,
        points: Points | None = None,
    ) -> CutPreview:
        """Return the parts that a cut would make, and change nothing.

        Takes the arguments of `cut`. Only superpixels that would be divided are given by their
        pixels, so that a preview of a large segment costs as little as that of a small one.

        Examples
        --------
        >>> import tempfile, numpy as np, napari_agglo as agglo
        >>> superpixels = np.array([[7, 7, 7, 7, 9]])
        >>> graph = agglo.region_graph(superpixels, np.array([[0.0, 0.1, 0.6, 0.1, 0.9]]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with agglo.Session.create(f"{folder}/cells.agglo", graph) as session:
        ...         session.threshold = 0.3
        ...         preview = session.preview(7, points=[[(0, 0)], [(0, 3)]])
        ...         preview.sizes, preview.paint(superpixels)
        ((2, 2), array([[1, 1, 2, 2, 0]]))
        """
        with self._lock:
            _, plan = self._cut_plan(segment, seeds, method, parts, points)
            return preview_of(self._state.graph, plan)

    def _cuttable(self, segment: Any) -> Found:
        found = self._find(segment)
        require_unlocked(self._seen, found, "cut")
        return found

    def _cut_plan(
        self, segment: Any, seeds: Any, method: str, parts: Any, points: Any
    ) -> tuple[Found, Plan]:
        found = self._cuttable(segment)
        check_method(method)
        if sum(groups is not None for groups in (seeds, parts, points)) != 1:
            raise Refused(
                "Give `seeds` or `parts`, groups of superpixels, [[a], [b, c]], or `points`, "
                "groups of pixels, [[(3, 4)], [(9, 9), (9, 12)]]; one, and not two of them."
            )
        if points is not None:
            return found, _cutting.by_points(self._state, found, points, method)
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
