"""State of a session in memory: the tree, the graph, marks and answers; apply and undo actions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import Merges, MergeTree
from napari_agglo.errors import InvalidInput
from napari_agglo.features import feature_map
from napari_agglo.graph import Division, RegionGraph, divide, runs_to_pieces
from napari_agglo.policy import Policy, graph_for, policy_features
from napari_agglo.session._actions import (
    Action,
    Answer,
    Cut,
    Edit,
    Lock,
    Merge,
    Override,
    Step,
    Unlock,
)
from napari_agglo.session._hierarchy.frozen_tree import frozen, thawed
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._marks import MarkChange, Marks
from napari_agglo.session._pair_features import PairRows
from napari_agglo.volumes import DenseLabels

# Entries of a journal are checked before they are applied: kernels do not check bounds.


def check_ids(graph: RegionGraph, ids: ArrayLike) -> None:
    """Refuse an empty list of superpixels, and ids out of range."""
    array = np.asarray(ids)
    if array.size == 0 or array.min() < 1 or array.max() > graph.n_regions:
        raise InvalidInput("The journal refers to unknown superpixels.")


def check_named(graph: RegionGraph, edit: Edit) -> None:
    """Refuse an edit that names superpixels out of range, or none."""
    if not math.isfinite(edit.scale):
        raise InvalidInput("The journal has an edit without a finite scale.")
    if isinstance(edit, Merge):
        ends = [superpixel for pair in edit.pairs for superpixel in pair]
    elif isinstance(edit, Unlock):
        ends = [edit.superpixel]
    else:  # they ascend
        several = edit.parts if isinstance(edit, Cut) else (edit.members,)
        ends = [int(ids[at]) for ids in several if len(ids) for at in (0, -1)]
    if not ends or min(ends) < 1 or max(ends) > graph.n_regions:
        raise InvalidInput("The journal refers to unknown superpixels.")


def _named(edit: Edit) -> NDArray[Any]:
    """Return the superpixels that a merge or a cut names."""
    if isinstance(edit, Merge):
        return np.array(edit.pairs, np.int64).reshape(-1)
    return np.concatenate(edit.parts) if isinstance(edit, Cut) else np.zeros(0, np.int32)


def check_edit(
    graph: RegionGraph, tree: Hierarchy, edit: Edit, divisions: Sequence[Division]
) -> None:
    """Refuse an edit that is not possible in the present tree."""
    check_named(graph, edit)
    ids = _named(edit)
    locks = tree.constraints.lock_of
    if isinstance(edit, Merge):
        allowed = not locks[ids].any()
    elif isinstance(edit, Cut):
        allowed = all(map(len, edit.parts)) and not locks[ids[ids < len(locks)]].any()
        allowed &= all((ids == division.superpixel).any() for division in divisions)
    elif isinstance(edit, Lock):
        node = tree.region(int(edit.members[0]), edit.scale)
        same = np.array_equal(tree.members(node), edit.members)
        allowed = same and not locks[edit.members].any()
    else:
        assert isinstance(edit, Unlock)
        allowed = bool(locks[edit.superpixel])
    if not allowed:
        raise InvalidInput("The journal edits a segment that does not match the current state.")


_MERGES = ("winners", "losers", "priorities")


@dataclass(eq=False)
class Applied:
    """An action that has been applied, and the values to restore when it is undone."""

    action: Action
    overrides: tuple[Override, ...]  # before the action, as are the answers
    answers: tuple[Answer, ...]
    divisions: list[tuple[Division, ...]] = field(default_factory=list)  # of each step done
    mark: MarkChange | None = None  # the inverse of that of the action
    before: tuple[Policy, Hierarchy] | None = None  # if the action replaced them


class State:
    """The tree under live actions; planners decide whether a user may do an action."""

    def __init__(
        self,
        graph: RegionGraph,
        policy: Policy,
        make_tree: Callable[[], Hierarchy],
        recall: Callable[[dict[str, Any]], Policy] | None = None,
        recall_merges: Callable[[str], Mapping[str, NDArray[Any]] | None] | None = None,
    ) -> None:
        self.graph = graph  # as superpixels are divided now
        self._set_policy(policy)
        self._make_tree = make_tree
        self._tree: Hierarchy | None = None  # with the live edits; made on first use
        self.overrides: tuple[Override, ...] = ()
        self.answers: tuple[Answer, ...] = ()
        self.marks = Marks()
        self.done: list[Applied] = []  # the live actions, oldest first
        self.divisions: list[Division] = []  # drawn into the graph, oldest first
        self.version = 0  # another number after each change
        self._recall = recall
        self._recall_merges = recall_merges
        self._merges: dict[str, Merges] = {}
        self._image: NDArray[np.uint32] | None = None  # a copy, once a superpixel is divided

    def _set_policy(self, policy: Policy) -> None:
        self.policy = policy
        self.graph = graph_for(policy, self.graph)
        self.features = policy_features(policy)  # of examples; None if the graph has only means
        if self.features is None and self.graph.layout.powers != 1:
            self.features = feature_map(self.graph)
        self._pair_rows: PairRows | None = None

    @property
    def pair_rows(self) -> PairRows | None:
        """Features of pairs of segments, made on first use; None if the graph has only means."""
        if self._pair_rows is None and self.features is not None:
            self._pair_rows = PairRows(self.graph, self.features)
        return self._pair_rows

    @property
    def tree(self) -> Hierarchy:
        if self._tree is None:
            self._tree = self._make_tree()
        return self._tree

    @tree.setter
    def tree(self, tree: Hierarchy) -> None:
        self._tree = tree

    def apply(
        self,
        action: Action,
        divisions: Sequence[Sequence[Division]] = (),
        progress: ProgressCallback | None = None,
        *,
        trusted: bool = False,
    ) -> Applied:
        """Apply an action, wholly or not at all.

        `divisions` are the divided superpixels of each step, if they are known. Edits are checked
        unless `trusted`: those of a planner are, those of a journal are not.
        """
        applied = Applied(action, self.overrides, self.answers)
        try:
            if action.policy is not None:
                self._learn(action.policy, applied, progress)
            for k, step in enumerate(action.steps):
                with self.divided(step, divisions[k] if divisions else ()) as pieces:
                    if not trusted:
                        check_edit(self.graph, self.tree, step.edit, pieces)
                    self.tree.do(step.edit, progress, pieces)
                applied.divisions.append(pieces)
            return self._complete(applied)
        except BaseException:
            self._restore(applied)
            raise

    def retrace(self, action: Action, policy: Policy | None = None) -> Applied:
        """Apply an action but for its effect on the tree, which is read from a snapshot.

        `policy` is the policy that the action learned, if it did.
        """
        applied = Applied(action, self.overrides, self.answers)
        if policy is not None:
            applied.before = self.policy, self.tree
            self._set_policy(policy)
        for step in action.steps:
            pieces: tuple[Division, ...] = ()
            if step.divisions:
                with self.divided(step) as pieces:
                    check_named(self.graph, step.edit)
            else:
                check_named(self.graph, step.edit)
            applied.divisions.append(pieces)
        return self._complete(applied)

    def _complete(self, applied: Applied) -> Applied:
        """Apply the parts of an action other than its steps, and add it to those done."""
        action = applied.action
        self._override(action)
        if action.answer is not None:
            check_ids(self.graph, action.answer.superpixels)
            self.answers = (*self.answers, action.answer)
        if action.mark is not None:
            applied.mark = self.marks.apply(action.mark)
        self.done.append(applied)
        self.version += 1
        return applied

    def take_back(self) -> Applied:
        """Undo the last action."""
        applied = self.done.pop()
        self._restore(applied)
        self.version += 1
        return applied

    @contextmanager
    def divided(self, step: Step, known: Sequence[Division] = ()) -> Iterator[tuple[Division, ...]]:
        """Divide the superpixels of a step; after an error in the context they are whole again."""
        drawn: list[Division] = []
        try:
            for k, (superpixel, runs) in enumerate(step.divisions):
                drawn.append(known[k] if known else self._division(superpixel, runs))
                self.draw(drawn[-1])
            yield tuple(drawn)
        except BaseException:
            for division in reversed(drawn):
                if self.graph.n_regions > division.n_regions:  # it was drawn
                    self.erase(division)
            raise

    def draw(self, division: Division) -> None:
        """Draw the pieces of a superpixel into the graph."""
        if self._image is None:
            self._image = self.graph.superpixels.image.copy()
        self.graph = division.apply(self.graph, self._image)
        self.divisions.append(division)

    def erase(self, division: Division) -> None:
        """Undo the last division that was drawn."""
        self.graph = division.revert(self.graph, self._image)
        self.divisions.pop()

    def still_superpixels(self) -> DenseLabels:
        """Return a copy of the superpixels that later divisions do not change."""
        labels = self.graph.superpixels
        if self._image is None:
            return labels
        image = labels.image.copy()
        image.flags.writeable = False
        return replace(labels, image=image)

    def know_merges(self, words: dict[str, Any], merges: Merges) -> None:
        """Keep the merges of a policy in the present graph."""
        self._merges[self._key(words)] = merges

    def merges_snapshot(
        self, words: dict[str, Any], merges: Merges
    ) -> tuple[str, dict[str, NDArray[Any]]]:
        """Return the merges of a policy as arrays, with the name of their snapshot."""
        return self._key(words), {name: getattr(merges, name) for name in _MERGES}

    def _key(self, words: dict[str, Any]) -> str:
        return f"merges-{str(words.get('checksum', ''))[:32]}-{self.graph.n_regions}"

    def _learn(
        self, words: dict[str, Any], applied: Applied, progress: ProgressCallback | None
    ) -> None:
        """Replace the policy and the tree; the new tree has no edits yet."""
        policy = self.recall(words)
        key = self._key(words)
        if key not in self._merges and self._recall_merges is not None:
            stored = self._recall_merges(key)
            if stored is not None and {*stored} == {*_MERGES}:
                checked = MergeTree(  # refuses arrays that are no tree
                    self.graph.superpixels,
                    stored["winners"].astype(np.int64),
                    stored["losers"].astype(np.int64),
                    stored["priorities"].astype(np.float64),
                    self.graph.sizes,
                )
                self._merges[key] = Merges(checked.winners, checked.losers, checked.priorities)
        tree = Hierarchy(self.graph, policy, self._merges.get(key), progress)
        applied.before = self.policy, self.tree
        self._set_policy(policy)
        self.tree = tree

    def recall(self, words: dict[str, Any]) -> Policy:
        """Return the policy of a reference, from the store."""
        if self._recall is None:
            raise InvalidInput("The journal has a policy, and there is no store to read it from.")
        return self._recall(words)

    def recall_from(self, recall: Callable[[dict[str, Any]], Policy]) -> None:
        """Read policies by another function."""
        self._recall = recall

    def anchors(self, applied: Applied) -> NDArray[np.int32]:
        """Return superpixels in all segments that an action changes at its own scale."""
        anchors: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
        for step in applied.action.steps if applied.before is None else ():
            if isinstance(step.edit, Merge):
                anchors.append(np.array(step.edit.pairs, np.int32).reshape(-1))
            elif isinstance(step.edit, Cut):
                anchors += step.edit.parts
        return np.concatenate(anchors)

    def owner(self, edit: int) -> int:
        """Return the index of the live action that a live edit belongs to."""
        learned = [k for k, applied in enumerate(self.done) if applied.before is not None]
        first = learned[-1] if learned else 0  # a learned tree has its edits numbered from 0
        for number, applied in enumerate(self.done[first:], start=first):
            edit -= len(applied.action.steps)
            if edit < 0:
                return number
        raise IndexError(edit)

    def _restore(self, applied: Applied) -> None:
        if applied.before is not None:
            policy, self.tree = applied.before
            self._set_policy(policy)
            applied.divisions.clear()
        for divisions in reversed(applied.divisions):
            self.tree.undo()
            for division in reversed(divisions):
                self.erase(division)
        self.overrides = applied.overrides
        self.answers = applied.answers
        if applied.mark is not None:
            self.marks.apply(applied.mark)

    def _override(self, action: Action) -> None:
        if not action.dropped and action.override is None:
            return
        if any(k >= len(self.overrides) for k in action.dropped):
            raise InvalidInput("The journal drops an override that does not exist.")
        kept = [o for k, o in enumerate(self.overrides) if k not in action.dropped]
        if action.override is not None:
            check_ids(self.graph, [action.override.superpixel])
            kept.append(action.override)
        self.overrides = tuple(kept)

    def _division(self, superpixel: int, runs: tuple[int, ...]) -> Division:
        check_ids(self.graph, [superpixel])
        start, stop = self.graph.boxes[superpixel]
        pieces = runs_to_pieces(runs, (stop - start).tolist())
        return divide(self.graph, superpixel, pieces)


# A snapshot has the trees of a state, with everything that undo needs, as arrays; the rest is cheap
# and read from the journal. If the snapshot is damaged, of another format or of another history,
# the journal is replayed instead.

SNAPSHOT = "state"
_FORMAT = 2  # to be raised when trees or names are computed in another way


def state_arrays(state: State) -> dict[str, NDArray[Any]]:
    """Return the trees of a state as arrays: the present one, and one for each replaced one."""
    trees = [applied.before[1] for applied in state.done if applied.before is not None]
    arrays = {"format": np.array([_FORMAT, len(trees) + 1], np.int64)}
    for k, tree in enumerate([*trees, state.tree]):
        arrays |= {f"tree{k}_{name}": array for name, array in frozen(tree).items()}
    return arrays


def n_common(ours: Sequence[object], theirs: Sequence[object]) -> int:
    """Return the length of the common beginning of two lists of the same objects."""
    pairs = zip(ours, theirs, strict=False)
    return next((k for k, (a, b) in enumerate(pairs) if a is not b), min(len(ours), len(theirs)))


def resume(state: State, actions: Iterable[Action], arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Bring a new state to that after `actions`, by the arrays of a snapshot.

    Return whether the arrays are valid; if they are not, the state must be discarded.
    """
    try:
        version, n_trees = arrays["format"].tolist()
        if version != _FORMAT:
            return False
        start, number = state.graph, 0
        edits: list[Edit] = []
        divisions: list[tuple[Division, ...]] = []

        def put_tree() -> None:
            prefix = f"tree{number}_"
            own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
            state.tree = thawed(start, state.policy, own, edits, divisions)

        for action in actions:
            if action.policy is None:
                applied = state.retrace(action)
            else:
                put_tree()
                start, number, edits, divisions = state.graph, number + 1, [], []
                applied = state.retrace(action, state.recall(action.policy))
            edits += [step.edit for step in action.steps]
            divisions += applied.divisions
        put_tree()
        return bool(number + 1 == n_trees)
    except (InvalidInput, KeyError, ValueError, IndexError, TypeError):
        return False
