"""Learning from the edits of a session, as one action that can be undone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import merge_greedily
from napari_agglo.policy import Policy
from napari_agglo.session._actions import Action, Step
from napari_agglo.session._core import Change
from napari_agglo.session._edits import Cut, Edit
from napari_agglo.session._examples import features_of, rows_of
from napari_agglo.session._exporting import Exporting
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._relearn import FEW, WEIGHT, check_options, check_volumes, refit, replayed
from napari_agglo.session._relearn.refit import Volumes
from napari_agglo.session._rules import Refused
from napari_agglo.session._suggestions import overruled


class LearningFrom(Exporting):
    """Examples of what a person did, and a policy that has seen them."""

    def examples(self) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Return what the live edits and the answered suggestions teach.

        An answer that a later one or an edit contradicts is left out.

        Returns
        -------
        rows : ndarray of float32, shape (k, number of features)
            Features of two segments, as they were when the edit was made.
        labels : ndarray of int8, shape (k,)
            -1 for what was merged, +1 for what was cut or kept apart.
        """
        with self._lock:
            features = features_of(self._state.graph, self._state.policy)
            width = 0 if features is None else features.width
            rows, labels = [np.zeros((0, width), np.float32)], [np.zeros(0, np.int8)]
            done = self._history.done
            passed = overruled(self._state.tree, done, self.threshold)
            for entry in done:
                if entry.action.examples is not None and entry.number not in passed:
                    row, label = rows_of(entry.action.examples)
                    if row.shape[1] == width:  # those of another feature map are of no use
                        rows.append(row)
                        labels.append(label)
            return np.concatenate(rows), np.concatenate(labels)

    def relearn(
        self,
        volumes: Volumes | None = None,
        *,
        strategy: str | None = None,
        weight: int = WEIGHT,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        **others: Any,
    ) -> Change:
        """Learn from the edits, merge anew by what was learned, and do the edits again.

        All in one action, which `undo` takes back. Afterwards, at the threshold, what was merged is
        together and what was cut is apart; what newer edits do not allow is said in the notes.

        Parameters
        ----------
        volumes : (RegionGraph, gold), or iterable of such pairs, optional
            What the policy was trained on, to be learned from as well. Without, the edits alone are
            learned from, which takes hundreds of them.
        strategy : {"agglo", "flat", "lash", "mixed"}, optional
            How to learn from volumes, as for `napari_agglo.train`; by default as before.
        weight : int
            How many examples of the volumes an edit counts for.
        seed : int
            Same edits, volumes and seed, same policy.
        progress : callable, optional
            Told how far it is; raise `Cancelled` in it to stop, and nothing has changed.
        """
        check_options(strategy, weight, seed, others)
        given = None if volumes is None else check_volumes(volumes)
        with self._lock:
            self._require_writing()
            state = self._state
            features = features_of(state.graph, state.policy)
            if features is None:
                raise Refused(
                    "This session knows only the means of its cues, which is not enough to learn "
                    "from; make one on a graph built with statistics='all'."
                )
            rows, labels = self.examples()
            policy = refit(
                state.policy, rows, labels, volumes=given, features=features, strategy=strategy,
                weight=int(weight), seed=int(seed), progress=progress,
            )  # fmt: skip
            merges = merge_greedily(state.graph, policy, progress=progress)
            trial = Hierarchy(state.graph, policy, merges)
            edits, left = replayed(trial, self._live_edits(), self.threshold, progress, policy)
            notes = [one.words for one in left]
            if given is None and len(labels) < FEW:
                notes.insert(0, _few(len(labels)))
            with self._keeping(policy) as words:
                state.know_merges(words, merges)
                action = Action(
                    "relearn", (), self.threshold, tuple(Step(edit) for edit in edits),
                    dropped=tuple(range(len(state.overrides))), policy=words,
                )  # fmt: skip
                self._perform(action, progress=progress)
            self._store.snapshot(*state.merges_snapshot(words, merges))
            return Change(action.words, (), tuple(notes))

    @contextmanager
    def _keeping(self, policy: Policy) -> Iterator[dict[str, Any]]:
        """Have a policy in the store, and not longer than an action that refers to it is done."""
        words = self._store.keep_policy(policy)
        try:
            yield words
        except BaseException:
            self._store.forget_policy(words)
            raise

    def _live_edits(self) -> list[Edit]:
        """Return the live edits, with what became of the superpixels that they name."""
        constraints = self._state.tree.record.constraints
        return [
            Cut(edit.scale, parts) if isinstance(edit, Cut) else edit
            for edit, parts in zip(constraints.edits, constraints.parts, strict=True)
        ]


def _few(number: int) -> str:
    examples = "1 example" if number == 1 else f"{number} examples"
    return (
        f"It was learned from {examples} alone, which is few and may do harm elsewhere; undo if so,"
        " and pass the training set as `volumes`."
    )
