"""Examples from edits: features of two segments and their boundary at the time of the edit."""

from __future__ import annotations

import base64
import itertools
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.session._actions import Cut, Ids
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._threshold_view import View

if TYPE_CHECKING:
    from napari_agglo.session._history import Entry
    from napari_agglo.session._state import State

_MOST = 16  # examples of one cut into many parts: rows are long, and an edit must be quick


def edit_examples(
    state: State, pairs: Iterable[tuple[Ids, Ids]], label: int
) -> dict[str, Any] | None:
    """Return the features of pairs of regions that touch, as plain data; None if there are none."""
    if state.pair_rows is None:
        return None
    try:
        rows_of_pairs = (state.pair_rows.row(state.graph, a, b) for a, b in pairs)
        known = (row for row in rows_of_pairs if row is not None and np.isfinite(row).all())
        rows = list(itertools.islice(known, _MOST))
    except (InvalidInput, ArithmeticError):  # of a feature block; the edit must not fail for it
        return None
    if not rows:
        return None
    packed = zlib.compress(np.stack(rows).astype("<f4").tobytes(), 1)
    return {"label": label, "width": len(rows[0]), "rows": base64.b64encode(packed).decode("ascii")}


def rows_of(plain: dict[str, Any]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return the rows and labels of the plain data of `edit_examples`."""
    try:
        data = zlib.decompress(base64.b64decode(plain["rows"]))
        rows = np.frombuffer(data, "<f4").astype(np.float32).reshape(-1, int(plain["width"]))
        label = int(plain["label"])
        if label not in (-1, 1) or not np.isfinite(rows).all():
            raise ValueError("a label or a feature is out of range")
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise InvalidInput(f"The examples of an entry cannot be read: {error}.") from error
    return rows, np.full(len(rows), label, np.int8)


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
