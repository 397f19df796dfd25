"""Answers to suggestions: which are given already, and which a person has overruled since.

An answer that is overruled is no example any more: of two contradictory ones only the newer is
meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from napari_agglo.session._actions import Answer
from napari_agglo.session._edits import Cut
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._hierarchy.nodes import EDIT, PARENT
from napari_agglo.session._history import Entry
from napari_agglo.session._view import Seen


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
