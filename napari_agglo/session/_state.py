"""State of a session in memory: the tree, its graph and all that actions change; apply, undo."""

from __future__ import annotations

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
from napari_agglo.policy import Policy, policy_features
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
from napari_agglo.volumes import DenseLabels

# Checks of the entries of a journal: kernels trust them, and anyone may have written them.


def check_ids(graph: RegionGraph, ids: ArrayLike) -> None:
    """Refuse ids that are not those of superpixels, and none at all."""
    named = np.asarray(ids)
    if named.size == 0 or named.min() < 1 or named.max() > graph.n_regions:
        raise InvalidInput("The journal refers to unknown superpixels.")


def check_named(graph: RegionGraph, edit: Edit) -> NDArray[Any]:
    """Return the superpixels that an edit names, which there are."""
    if not np.isfinite(edit.scale):
        raise InvalidInput("The journal has an edit without a finite scale.")
    ids: NDArray[Any]
    if isinstance(edit, Merge):
        ids = np.array(edit.pairs, np.int64).reshape(-1)
    elif isinstance(edit, Cut):
        ids = np.concatenate([np.zeros(0, np.int32), *edit.parts])
    else:
        ids = edit.members if isinstance(edit, Lock) else np.array([edit.superpixel])
    check_ids(graph, ids)
    return ids


def check_edit(
    graph: RegionGraph, tree: Hierarchy, edit: Edit, divisions: Sequence[Division]
) -> None:
    """Refuse an edit that cannot be made of the tree as it is."""
    ids = check_named(graph, edit)
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
    """An action that has been applied, and what is needed to take it back."""

    action: Action
    overrides: tuple[Override, ...]
    answers: tuple[Answer, ...]
    divisions: list[tuple[Division, ...]] = field(default_factory=list)  # of each step done
    mark: MarkChange | None = None
    before: tuple[Policy, Hierarchy] | None = None  # of what was learned


class State:
    """The tree under live actions. Whether a user may do something is decided elsewhere.

    Attributes
    ----------
    graph : RegionGraph
        As superpixels are divided now.
    tree : Hierarchy
        With the live edits; made on first use.
    policy : Policy
        The policy of the tree.
    features : FeatureMap or None
        The features that examples of edits are made of; None if the graph has only means.
    done : list of Applied
        The live actions, oldest first.
    version : int
        Another number after each change.
    """

    def __init__(
        self,
        graph: RegionGraph,
        policy: Policy,
        make_tree: Callable[[], Hierarchy],
        recall: Callable[[dict[str, Any]], Policy] | None = None,
        recall_merges: Callable[[str], Mapping[str, NDArray[Any]] | None] | None = None,
    ) -> None:
        self.graph = graph
        self._set_policy(policy)
        self._make_tree = make_tree
        self._tree: Hierarchy | None = None
        self.overrides: tuple[Override, ...] = ()
        self.answers: tuple[Answer, ...] = ()
        self.marks = Marks()
        self.done: list[Applied] = []
        self.divisions: list[Division] = []  # that are drawn, oldest first
        self.version = 0
        self._recall = recall
        self._recall_merges = recall_merges
        self._merges: dict[str, Merges] = {}
        self._image: NDArray[np.uint32] | None = None  # of our own, once something is divided

    def _set_policy(self, policy: Policy) -> None:
        self.policy = policy
        self.features = policy_features(policy)
        if self.features is None and self.graph.layout.powers != 1:
            self.features = feature_map(self.graph)

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

        `divisions` are the divided superpixels of each step, if they are known. `trusted` says that
        the rules were checked, which the journal of a folder that is opened cannot claim.
        """
        applied = Applied(action, self.overrides, self.answers)
        try:
            if action.policy is not None:
                self._learn(action.policy, applied, progress)
            for k, step in enumerate(action.steps):
                with self.divided(step, divisions[k] if divisions else ()) as made:
                    if not trusted:
                        check_edit(self.graph, self.tree, step.edit, made)
                    self.tree.do(step.edit, progress, made)
                applied.divisions.append(made)
            return self._complete(applied)
        except BaseException:
            self._restore(applied)
            raise

    def retrace(self, action: Action, policy: Policy | None = None) -> Applied:
        """Do all of an action but what it does to the tree, which is put in its place later.

        If it was learned, `policy` is what.
        """
        applied = Applied(action, self.overrides, self.answers)
        if policy is not None:
            applied.before = self.policy, self.tree
            self._set_policy(policy)
        for step in action.steps:
            with self.divided(step) as made:
                check_named(self.graph, step.edit)
            applied.divisions.append(made)
        return self._complete(applied)

    def _complete(self, applied: Applied) -> Applied:
        """Do what an action does beside its steps; then it is done."""
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
        """Take the last action back: all is as it was before it."""
        applied = self.done.pop()
        self._restore(applied)
        self.version += 1
        return applied

    @contextmanager
    def divided(self, step: Step, known: Sequence[Division] = ()) -> Iterator[tuple[Division, ...]]:
        """Have the superpixels of a step divided, and stay so unless something goes wrong."""
        made: list[Division] = []
        try:
            for k, (superpixel, runs) in enumerate(step.divisions):
                made.append(known[k] if known else self._division(superpixel, runs))
                self.draw(made[-1])
            yield tuple(made)
        except BaseException:
            for division in reversed(made):
                if self.graph.n_regions > division.n_regions:  # else it was never drawn
                    self.erase(division)
            raise

    def draw(self, division: Division) -> None:
        """Draw the pieces of a superpixel into the graph."""
        if self._image is None:
            self._image = self.graph.superpixels.image.copy()
        self.graph = division.apply(self.graph, self._image)
        self.divisions.append(division)

    def erase(self, division: Division) -> None:
        """Make a superpixel whole again, the one that was divided last."""
        self.graph = division.revert(self.graph, self._image)
        self.divisions.pop()

    def still_superpixels(self) -> DenseLabels:
        """Return the superpixels as they are divided now, which no later division changes."""
        labels = self.graph.superpixels
        if self._image is None:
            return labels
        image = labels.image.copy()  # ours is drawn in
        image.flags.writeable = False
        return replace(labels, image=image)

    def know_merges(self, words: dict[str, Any], merges: Merges) -> None:
        """Remember what a policy merges in the graph as it is."""
        self._merges[self._key(words)] = merges

    def merges_snapshot(
        self, words: dict[str, Any], merges: Merges
    ) -> tuple[str, dict[str, NDArray[Any]]]:
        """Return the merges of a policy under the name by which they are looked for again."""
        return self._key(words), {name: getattr(merges, name) for name in _MERGES}

    def _key(self, words: dict[str, Any]) -> str:
        return f"merges-{str(words.get('checksum', ''))[:32]}-{self.graph.n_regions}"

    def _learn(
        self, words: dict[str, Any], applied: Applied, progress: ProgressCallback | None
    ) -> None:
        """Put the tree of another policy in the place of this one, without edits."""
        policy = self.recall(words)
        key = self._key(words)
        if key not in self._merges and self._recall_merges is not None:
            found = self._recall_merges(key)
            if found is not None and {*found} == {*_MERGES}:
                checked = MergeTree(  # which refuses what is no tree
                    self.graph.superpixels,
                    found["winners"].astype(np.int64),
                    found["losers"].astype(np.int64),
                    found["priorities"].astype(np.float64),
                )
                self._merges[key] = Merges(checked.winners, checked.losers, checked.priorities)
        tree = Hierarchy(self.graph, policy, self._merges.get(key), progress)
        applied.before = self.policy, self.tree
        self._set_policy(policy)
        self.tree = tree

    def recall(self, words: dict[str, Any]) -> Policy:
        """Return the policy that the store knows by these words."""
        if self._recall is None:
            raise InvalidInput("The journal has a policy that cannot be had.")
        return self._recall(words)

    def anchors(self, applied: Applied) -> NDArray[np.int32]:
        """Return superpixels in all segments that an action changes at its own scale."""
        found: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
        for step in applied.action.steps if applied.before is None else ():
            if isinstance(step.edit, Merge):
                found.append(np.array(step.edit.pairs, np.int32).reshape(-1))
            elif isinstance(step.edit, Cut):
                found += step.edit.parts
        return np.unique(np.concatenate(found))

    def owner(self, edit: int) -> int:
        """Return which live action the live edit of this number belongs to."""
        learned = [k for k, applied in enumerate(self.done) if applied.before is not None]
        first = learned[-1] if learned else 0  # with what was learned the edits begin anew
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
        if any(k >= len(self.overrides) for k in action.dropped):
            raise InvalidInput("The journal drops a way along a branch that there is not.")
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


# A snapshot: the state after an entry of the journal as arrays, so that opening need not replay.
# It is a cache of the trees with all that undo needs; the rest is cheap and read from the journal.
# If it is damaged, of another version or of another history, the journal is replayed instead.

SNAPSHOT = "state"
_FORMAT = 2  # another number when trees or names come about in another way


def state_arrays(state: State) -> dict[str, NDArray[Any]]:
    """Return the trees of a state as arrays: one, and one for each time that it has learned."""
    trees = [applied.before[1] for applied in state.done if applied.before is not None]
    found = {"format": np.array([_FORMAT, len(trees) + 1], np.int64)}
    for k, tree in enumerate([*trees, state.tree]):
        found |= {f"tree{k}_{name}": array for name, array in frozen(tree).items()}
    return found


def resume(state: State, actions: Iterable[Action], arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Bring a new state to where it was after `actions`; return whether the arrays were of use.

    If they were not, the state is to be thrown away.
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
