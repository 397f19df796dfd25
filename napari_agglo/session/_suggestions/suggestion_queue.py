"""The queue of probable errors, `session.queue`, and plans of the answers to a suggestion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.errors import InvalidInput, check_whole
from napari_agglo.session._actions import Action, Answer, Plan, Refused
from napari_agglo.session._pair_features import edit_examples
from napari_agglo.session._plan_cuts import plan_cut
from napari_agglo.session._plan_edits import dense_of, plan_merge
from napari_agglo.session._suggestions import Effort, Kind, Suggestion, effort, suggest
from napari_agglo.session._suggestions.decisions import decisions
from napari_agglo.session._suggestions.question_picture import draw_question
from napari_agglo.session._threshold_view import View

if TYPE_CHECKING:
    from napari_agglo.session._actions import Change
    from napari_agglo.session._session import Session


class Suggestions:
    """The decisions of a session that are most valuable to review, `session.queue`."""

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
        """Return the decisions at the threshold that are most valuable to review, best first.

        Decisions of a person (by an edit, a lock or an answer) are not among them, nor are those
        whose segments are all marked as reviewed.

        Parameters
        ----------
        n : int
            The largest number to return.
        kind : {"false_split", "false_merge"}, optional
            Only pairs of segments that may be one, or only segments that may be two.
        min_size : int
            Smallest number of pixels of both sides.
        within : array of int, shape (2, ndim), optional
            Box to search: first index, and one past the last, along each axis.

        Returns
        -------
        list of Suggestion
            Each with a ``question``, a ``reason`` in words, a ``position``, and the ``segments``
            and ``superpixels`` it is about. Pass one to `accept`, `reject` or `skip`.
        """
        with self._session._lock:
            view = self._session._view
            boundaries, merges = decisions(view)
            graph = view.state.graph
            suggestions = suggest(
                graph,
                view.names(),
                boundaries,
                merges,
                n,
                kind=kind,
                min_size=min_size,
                within=within,
            )
            ids = graph.ids
            return [
                replace(
                    one,
                    segments=tuple(int(ids[k]) for k in one.segments),
                    superpixels=(int(ids[one.superpixels[0]]), int(ids[one.superpixels[1]])),
                )
                for one in suggestions
            ]

    def picture(
        self, suggestion: Suggestion, image: Any = None, *, side: int = 192
    ) -> NDArray[np.uint8]:
        """Return a picture of a suggestion: the plane through the contact of its two sides.

        One side is tinted orange, the other blue, with a white line between them. Only pixels
        around the contact are read.

        Parameters
        ----------
        suggestion : Suggestion
            One of `next`.
        image : array, optional
            The image, of the shape of the superpixels, colours last. By default the first cue, if
            the session has its values.
        side : int
            Pixels of the longer side, about.

        Returns
        -------
        ndarray of uint8, shape (rows, columns, 3)
            RGB.

        Raises
        ------
        InvalidInput
            If `image` has another shape than the superpixels.
        """
        check_whole("side", side, 16, 4096)
        with self._session._lock:
            view = self._session._view
            graph = view.state.graph
            (a, first), (b, second) = _sides(view, suggestion)
            if image is not None and tuple(image.shape[: graph.layout.ndim]) != (
                graph.superpixels.image.shape
            ):
                raise InvalidInput(
                    f"`image` must have the shape {graph.superpixels.image.shape} of the "
                    f"superpixels, got {tuple(image.shape)}",
                    argument="image",
                    remedy="pass the image of this session",
                )
            sides = np.zeros(graph.n_regions + 1, np.uint8)
            if suggestion.kind == "false_split":
                table = view.table()
                sides[table == first], sides[table == second] = 1, 2
            else:
                parts = self._session.preview(first, [[a], [b]], method="tree").parts
                for k, part in enumerate(parts[:2], start=1):
                    sides[np.searchsorted(graph.ids, part)] = k
            sides[0] = 0
            return draw_question(graph, suggestion.position, sides, image, side)

    def effort(self) -> Effort:
        """Return the expected number of wrong decisions, and of edits to correct them.

        Returns
        -------
        Effort
            ``false_splits``, ``false_merges``, and the ``merges`` and ``cuts`` to correct them.
        """
        with self._session._lock:
            return effort(*decisions(self._session._view))

    def accept(self, suggestion: Suggestion) -> Change:
        """Answer yes: merge the two segments, or cut the one between its two sides.

        An earlier rejection of the suggestion is no longer an example.

        Parameters
        ----------
        suggestion : Suggestion
            A suggestion that `next` returned.

        Returns
        -------
        Change
            The edit in words, and the resulting segments.

        Raises
        ------
        Refused
            If the segments have changed since, so that the question is no longer the same.
        """
        return self._session._do(plan_accept, suggestion)

    def reject(self, suggestion: Suggestion) -> Change:
        """Answer no: the decision is right, and is not suggested again.

        Parameters
        ----------
        suggestion : Suggestion
            A suggestion that `next` returned.

        Returns
        -------
        Change
            The answer in words.

        Raises
        ------
        Refused
            If it was answered already, or the segments have changed since.
        """
        return self._session._do(plan_answer, suggestion, "reject")

    def skip(self, suggestion: Suggestion) -> Change:
        """Do not suggest this again, without an answer.

        Parameters
        ----------
        suggestion : Suggestion
            A suggestion that `next` returned.

        Returns
        -------
        Change
            The answer in words.

        Raises
        ------
        Refused
            If it was answered already, or the segments have changed since.
        """
        return self._session._do(plan_answer, suggestion, "skip")


def plan_accept(view: View, suggestion: Suggestion) -> Plan:
    """Plan the merge or the cut that a suggestion proposes."""
    (a, first), (b, second) = _sides(view, suggestion)
    if suggestion.kind == "false_split":
        return plan_merge(view, (first, second), force=False)
    return plan_cut(view, first, [[a], [b]], method="tree")


def plan_answer(view: View, suggestion: Suggestion, kind: str) -> Plan:
    """Plan to reject or skip a suggestion."""
    (a, first), (b, second) = _sides(view, suggestion)
    same = suggestion.kind == "false_merge" if kind == "reject" else None
    ids = tuple(dict.fromkeys([first, second]))
    graph = view.state.graph
    answer = Answer((dense_of(graph, a), dense_of(graph, b)), same)
    if _is_answered(view, answer):
        raise Refused(
            f"This suggestion on {' and '.join(map(str, ids))} was answered already",
            argument="suggestion",
            remedy="call accept() to overrule the answer, or undo() to take back the last action",
        )
    action = Action(kind, ids, view.threshold, answer=answer, examples=_examples(view, answer))
    return Plan(action)


def _examples(view: View, answer: Answer) -> dict[str, Any] | None:
    """Return the example of an answer: two segments, or the two sides of a merge."""
    if answer.same is None:
        return None
    tree = view.state.tree
    sides = [view.frontier.shown(superpixel) for superpixel in answer.superpixels]
    while sides[0] == sides[1]:
        inside = {node: tree.members(node) for node in tree.children(sides[0])}
        sides = [
            next(node for node, members in inside.items() if superpixel in members)
            for superpixel in answer.superpixels
        ]
    a, b = (tree.members(node) for node in sides)
    label = -1 if answer.same else 1
    return edit_examples(view.state, [(a, b)], label)


def _sides(view: View, suggestion: Suggestion) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return both superpixels of a suggestion with the segments that hold them now."""
    if not isinstance(suggestion, Suggestion):
        raise Refused(
            f"`suggestion` must be one of queue.next(), got {type(suggestion).__name__}",
            argument="suggestion",
            remedy="pass one of queue.next()",
        )
    table = view.table()
    a, b = suggestion.superpixels
    first, second = (int(table[dense_of(view.state.graph, s)]) for s in (a, b))
    if (first == second) != (suggestion.kind == "false_merge"):
        raise Refused(
            "The segments of this suggestion have changed since",
            argument="suggestion",
            remedy="call queue.next() again",
        )
    return (a, first), (b, second)


def _is_answered(view: View, answer: Answer) -> bool:
    """Return whether a question was answered in the same way; or at all, for a skip.

    Any two superpixels of two segments stand for the same question.
    """
    names = view.names()

    def key(pair: tuple[int, int]) -> frozenset[int]:
        segments = frozenset(int(names[superpixel]) for superpixel in pair)
        return segments if len(segments) == 2 else frozenset(pair)  # one segment: the merge itself

    question = key(answer.superpixels)
    return any(
        key(older.superpixels) == question
        for older in view.state.answers
        if answer.same is None or older.same is answer.same
    )
