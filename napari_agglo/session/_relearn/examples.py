"""Examples from edits: features of two segments and their boundary at the time of the edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.session._actions import Cut
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._pair_features import rows_of
from napari_agglo.session._threshold_view import View

if TYPE_CHECKING:
    from napari_agglo.session._history import Entry


def live_examples(view: View) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return the examples of the live edits and answers, without overruled answers."""
    state = view.state
    width = 0 if state.features is None else state.features.width
    rows, labels = [np.zeros((0, width), np.float32)], [np.zeros(0, np.int8)]
    done = view.history.done
    passed = overruled(state.tree, done, view.threshold)
    for entry in done:
        if entry.action.examples is not None and entry.number not in passed:
            row, label = rows_of(entry.action.examples)
            if row.shape[1] == width:  # not of another feature map
                rows.append(row)
                labels.append(label)
    return np.concatenate(rows), np.concatenate(labels)


def overruled(tree: Hierarchy, done: Sequence[Entry], threshold: float) -> set[int]:
    """Return the numbers of the live answers that a later answer or a live edit contradicts.

    The effect of edits is taken at the threshold, or at that of the answer if it is higher.
    """
    numbers = set()
    last: dict[frozenset[int], Entry] = {}
    for entry in done:
        answer = entry.action.answer
        if answer is None or answer.same is None:
            continue
        pair = frozenset(answer.superpixels)
        older = last.get(pair)
        if older is not None and older.action.answer != answer:
            numbers.add(older.number)
        last[pair] = entry
        a, b = answer.superpixels
        scale = max(threshold, entry.action.threshold)
        against = _are_cut(tree, a, b) if answer.same else _are_merged(tree, a, b, scale)
        if against:
            numbers.add(entry.number)
    return numbers


def _are_cut(tree: Hierarchy, a: int, b: int) -> bool:
    """Return whether a live cut separates two superpixels."""
    constraints = tree.constraints
    first, second = dict(constraints.entries(a)), dict(constraints.entries(b))
    return any(
        first[edit] != second[edit]
        for edit in first.keys() & second.keys()
        if isinstance(constraints.edits[edit], Cut)
    )


def _are_merged(tree: Hierarchy, a: int, b: int, scale: float) -> bool:
    """Return whether two superpixels are in one segment because of a merge edit."""
    whole = tree.region(a, scale)
    if whole != tree.region(b, scale):
        return False
    log = tree.log

    def branch(superpixel: int) -> list[int]:
        at = [int(log.leaves[superpixel])]
        while at[-1] != whole:
            at.append(int(log.rows["parent"][at[-1]]))
        return at

    above = set(branch(a))
    meeting = next(node for node in branch(b) if node in above)
    return bool(log.rows["edit"][meeting] >= 0)
