"""Marks, errors, and suggestions: what a person says of segments, and is asked about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from napari_agglo.session._actions import Action, Answer
from napari_agglo.session._annotations import Mark, MarkChange, Reviewed
from napari_agglo.session._answered import is_answered
from napari_agglo.session._core import Change
from napari_agglo.session._examples import noted
from napari_agglo.session._frontier import decisions
from napari_agglo.session._live_vi import Errors, ErrorsNow
from napari_agglo.session._parting import Parting
from napari_agglo.session._rules import Refused, dense_of
from napari_agglo.session._suggest import Effort, Kind, Suggestion, effort, suggest


class Noting(Parting):
    """What is said of segments, and what is worth a look."""

    _errors: ErrorsNow | None = None
    _errors_of: int = 0  # the version of what is seen that they are of

    def rename(self, segment: int, name: str) -> Change:
        """Give a segment a name; an empty one takes it away. Undoable, as all marks are."""
        return self._mark(segment, name=name)

    def comment(self, segment: int, comment: str) -> Change:
        """Comment on a segment; an empty comment takes it away."""
        return self._mark(segment, comment=comment)

    def review(self, segment: int, reviewed: bool = True) -> Change:
        """Mark a segment as reviewed, or as not."""
        return self._mark(segment, reviewed=reviewed)

    def mark(self, segment: int) -> Mark:
        """Return the name of a segment, the comment on it, and whether it is reviewed."""
        with self._lock:
            return self._state.marks[self._find(segment).id]

    def marks(self) -> dict[int, Mark]:
        """Return all marks by segment, also of segments that are not there at this threshold."""
        with self._lock:
            return {segment: self._state.marks[segment] for segment in self._state.marks}

    def named(self, name: str) -> list[int]:
        """Return the segments of that name that there are, ascending."""
        with self._lock:
            there = set(self.segments().tolist())
            return [segment for segment in self._state.marks.named(name) if segment in there]

    @property
    def reviewed(self) -> Reviewed:
        """How many segments have been reviewed, and how many are left."""
        with self._lock:
            return self._state.marks.progress(self.segments())

    def _mark(self, segment: int, **said: Any) -> Change:
        with self._lock:
            self._require_writing()
            found = self._find(segment)
            change = MarkChange(found.id, **said)
            action = Action("mark", (found.id,), self.threshold, mark=change)
            self._perform(action)
            return Change(action.words, (found.id,))

    @property
    def has_gold(self) -> bool:
        """Whether the session was created with a gold standard."""
        return self._store.data.has_gold

    @property
    def errors(self) -> Errors:
        """How wrong what is seen is: ``vi``, ``false_merge`` and ``false_split``, in bits.

        After an edit only what has moved is counted again.
        """
        with self._lock:
            names = self._seen.names()
            if self._errors is None:
                gold = self._store.data.gold
                if gold is None:
                    raise Refused(
                        "The session has no gold standard to compare with; create it with "
                        "Session.create(path, graph, policy, gold=...)."
                    )
                self._errors = ErrorsNow(self._state, gold, names)
                self._errors_of = self._seen.version
            moved = self._seen.moved_since(self._errors_of)
            self._errors_of = self._seen.version
            return self._errors.now(self._state, names, moved)

    def suggestions(
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
        with self._lock:
            apart, made = decisions(self._seen)
            graph = self._state.graph
            found = suggest(
                graph, self._seen.names(), apart, made, n, kind=kind, min_size=min_size,
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
        with self._lock:
            return effort(*decisions(self._seen))

    def accept(self, suggestion: Suggestion) -> Change:
        """Answer yes: merge the two segments, or cut the one where it was merged.

        If it was rejected before, that answer teaches no more.
        """
        with self._lock:
            a, b = self._sides(suggestion)
            if suggestion.kind == "false_split":
                return self.merge(a[1], b[1])
            return self.cut(a[1], [[a[0]], [b[0]]], method="tree")

    def reject(self, suggestion: Suggestion) -> Change:
        """Answer no: it is right as it is, and is not asked again; nor can it be answered so."""
        return self._answer("reject", suggestion, suggestion.kind == "false_merge")

    def skip(self, suggestion: Suggestion) -> Change:
        """Do not ask this again, without an answer."""
        return self._answer("skip", suggestion, None)

    def _answer(self, kind: str, suggestion: Suggestion, same: bool | None) -> Change:
        with self._lock:
            self._require_writing()
            (a, first), (b, second) = self._sides(suggestion)
            ids = tuple(dict.fromkeys([first, second]))
            graph = self._state.graph
            answer = Answer((dense_of(graph, a), dense_of(graph, b)), same)
            if is_answered(self._seen, answer):
                raise Refused(
                    f"This suggestion on {' and '.join(map(str, ids))} was answered already; "
                    "accept() overrules an answer, undo() takes back what was done last."
                )
            taught = self._taught(answer)
            action = Action(kind, ids, self.threshold, answer=answer, examples=taught)
            self._perform(action)
            return Change(action.words, ids)

    def _taught(self, answer: Answer) -> dict[str, Any] | None:
        """Return what an answer teaches: of two segments, or of the two sides of a merge."""
        if answer.same is None:
            return None
        state, view = self._state, self._seen.view
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
                f"`suggestion` must be one of suggestions(), got {type(suggestion).__name__}."
            )
        table = self._seen.table()
        a, b = suggestion.superpixels
        first, second = (int(table[dense_of(self._state.graph, s)]) for s in (a, b))
        if (first == second) != (suggestion.kind == "false_merge"):
            raise Refused(
                "What this suggestion was about has changed since; ask suggestions() again."
            )
        return (a, first), (b, second)
