"""The queue of probable errors: ask the next one, accept, reject or skip it.

An answer that a later answer or edit overrules is no longer an example: of two contradictory ones,
the newer is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from napari_agglo.session._actions import Action, Answer
from napari_agglo.session._core import Change
from napari_agglo.session._edits import Cut
from napari_agglo.session._examples import noted
from napari_agglo.session._frontier import decisions
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._hierarchy.nodes import EDIT, PARENT
from napari_agglo.session._history import Entry
from napari_agglo.session._rules import Refused, dense_of
from napari_agglo.session._suggest import Effort, Kind, Suggestion, effort, suggest
from napari_agglo.session._view import Seen

if TYPE_CHECKING:
    from napari_agglo.session._session import Session


class Suggestions:
    """The decisions of a session that are most worth a look: `session.queue`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def next(
        self,
        n: int = 10,
        *,
        kind: Kind | None = None,
        min_size: int = 1,
        within: ArrayLike | None = None,
    ) -> list[Suggestion]:
        """Return the decisions at this threshold most worth a look, the best first.

        What a person has decided (by an edit, a lock or an answer) is not asked again.

        Parameters
        ----------
        n : int
            How many at most.
        kind : {"false_split", "false_merge"}, optional
            Only two segments that may be one, or only one that may be two.
        min_size : int
            Only where both sides have so many pixels.
        within : array of int, shape (2, ndim), optional
            Only in this box: first index, and one past the last, along each axis.

        Returns
        -------
        list of Suggestion
            Each with a ``question``, a ``reason`` in words, a ``position``, and the ``segments``
            and ``superpixels`` it is about. Pass one to `accept`, `reject` or `skip`.
        """
        with self._session._lock:
            apart, made = decisions(self._session._seen)
            graph = self._session._state.graph
            found = suggest(
                graph, self._session._seen.names(), apart, made, n, kind=kind, min_size=min_size,
                within=within,
            )  # fmt: skip
            ids = graph.ids
            return [
                replace(
                    one,
                    segments=tuple(int(ids[k]) for k in one.segments),
                    superpixels=(int(ids[one.superpixels[0]]), int(ids[one.superpixels[1]])),
                )
                for one in found
            ]

    def effort(self) -> Effort:
        """Return how many wrong decisions are to be expected, and edits to mend them."""
        with self._session._lock:
            return effort(*decisions(self._session._seen))

    def accept(self, suggestion: Suggestion) -> Change:
        """Answer yes: merge the two segments, or cut the one where it was merged.

        If it was rejected before, that answer teaches no more.
        """
        with self._session._lock:
            a, b = self._sides(suggestion)
            if suggestion.kind == "false_split":
                return self._session.merge(a[1], b[1])
            return self._session.cut(a[1], [[a[0]], [b[0]]], method="tree")

    def reject(self, suggestion: Suggestion) -> Change:
        """Answer no: it is right as it is, and is not asked again; nor can it be answered so."""
        return self._answer("reject", suggestion, suggestion.kind == "false_merge")

    def skip(self, suggestion: Suggestion) -> Change:
        """Do not ask this again, without an answer."""
        return self._answer("skip", suggestion, None)

    def _answer(self, kind: str, suggestion: Suggestion, same: bool | None) -> Change:
        with self._session._lock:
            self._session._require_writing()
            (a, first), (b, second) = self._sides(suggestion)
            ids = tuple(dict.fromkeys([first, second]))
            graph = self._session._state.graph
            answer = Answer((dense_of(graph, a), dense_of(graph, b)), same)
            if is_answered(self._session._seen, answer):
                raise Refused(
                    f"This suggestion on {' and '.join(map(str, ids))} was answered already; "
                    "accept() overrules an answer, undo() takes back what was done last."
                )
            taught = self._taught(answer)
            action = Action(kind, ids, self._session.threshold, answer=answer, examples=taught)
            self._session._perform(action)
            return Change(action.words, ids)

    def _taught(self, answer: Answer) -> dict[str, Any] | None:
        """Return what an answer teaches: of two segments, or of the two sides of a merge."""
        if answer.same is None:
            return None
        state, view = self._session._state, self._session._seen.view
        sides = [view.shown(superpixel) for superpixel in answer.superpixels]
        while sides[0] == sides[1]:
            held = {node: state.tree.members(node) for node in state.tree.children(sides[0])}
            sides = [
                next(node for node, members in held.items() if superpixel in members)
                for superpixel in answer.superpixels
            ]
        a, b = (state.tree.members(node) for node in sides)
        return noted(state.graph, state.policy, [(a, b)], -1 if answer.same else 1)

    def _sides(self, suggestion: Suggestion) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return both superpixels of a suggestion and the segments that hold them now."""
        if not isinstance(suggestion, Suggestion):
            raise Refused(
                f"`suggestion` must be one of queue.next(), got {type(suggestion).__name__}."
            )
        table = self._session._seen.table()
        a, b = suggestion.superpixels
        first, second = (int(table[dense_of(self._session._state.graph, s)]) for s in (a, b))
        if (first == second) != (suggestion.kind == "false_merge"):
            raise Refused(
                "What this suggestion was about has changed since; ask queue.next() again."
            )
        return (a, first), (b, second)


def is_answered(seen: Seen, answer: Answer) -> bool:
    """Whether the question of an answer was answered in the same way; or at all, if it is skipped.

    Two segments are the same question whichever two of their superpixels stand for them.
    """
    names = seen.names()

    def key(pair: tuple[int, int]) -> frozenset[int]:
        held = frozenset(int(names[superpixel]) for superpixel in pair)
        return held if len(held) == 2 else frozenset(pair)  # within a segment: that very merge

    asked = key(answer.superpixels)
    return any(
        key(given.superpixels) == asked
        for given in seen.state.answers
        if answer.same is None or given.same is answer.same
    )


def overruled(tree: Hierarchy, done: Sequence[Entry], threshold: float) -> set[int]:
    """Return the numbers of the live answers that a later answer or a live edit contradicts.

    Edits are looked at as they are at the threshold, or where the answer was given if that is
    higher.
    """
    found = set()
    last: dict[frozenset[int], Entry] = {}
    for entry in done:
        answer = entry.action.answer
        if answer is None or answer.same is None:
            continue
        pair = frozenset(answer.superpixels)
        older = last.get(pair)
        if older is not None and older.action.answer != answer:
            found.add(older.number)
        last[pair] = entry
        a, b = answer.superpixels
        scale = max(threshold, entry.action.threshold)
        against = _are_cut(tree, a, b) if answer.same else _are_merged(tree, a, b, scale)
        if against:
            found.add(entry.number)
    return found


def _are_cut(tree: Hierarchy, a: int, b: int) -> bool:
    """Whether a live cut keeps two superpixels apart."""
    constraints = tree.record.constraints
    first, second = dict(constraints.entries(a)), dict(constraints.entries(b))
    return any(
        first[edit] != second[edit]
        for edit in first.keys() & second.keys()
        if isinstance(constraints.edits[edit], Cut)
    )


def _are_merged(tree: Hierarchy, a: int, b: int, scale: float) -> bool:
    """Whether two superpixels are together because a person merged them."""
    whole = tree.region(a, scale)
    if whole != tree.region(b, scale):
        return False
    nodes = tree.record.nodes

    def branch(superpixel: int) -> list[int]:
        at = [int(nodes.leaves[superpixel])]
        while at[-1] != whole:
            at.append(int(nodes.links[at[-1], PARENT]))
        return at

    above = set(branch(a))
    meeting = next(node for node in branch(b) if node in above)
    return bool(nodes.links[meeting, EDIT] >= 0)
