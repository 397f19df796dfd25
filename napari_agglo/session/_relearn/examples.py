"""Examples from edits: features of two segments and their boundary at the time of the edit."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo.errors import InvalidInput
from napari_agglo.features import FeatureMap, feature_matrix
from napari_agglo.graph import RegionGraph, first_place, first_row
from napari_agglo.session._actions import Cut, Ids, as_ids
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._threshold_view import View
from napari_agglo.volumes import DenseLabels

if TYPE_CHECKING:
    from napari_agglo.session._history import Entry
    from napari_agglo.session._state import State

Superpixels = Iterable[int] | NDArray[Any]
_MOST = 16  # examples of one cut into many parts: rows are long, and an edit must be quick


def edit_examples(
    state: State, pairs: Iterable[tuple[Ids, Ids]], label: int
) -> dict[str, Any] | None:
    """Return the features of pairs of regions that touch, as plain data; None if there are none."""
    graph, features = state.graph, state.features
    if features is None:
        return None
    try:
        rows_of_pairs = (pair_row(graph, features, a, b) for a, b in pairs)
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


def pair_row(
    graph: RegionGraph, features: FeatureMap, members_a: Superpixels, members_b: Superpixels
) -> NDArray[np.float32] | None:
    """Return the features of two regions and of the boundary between them; None without one.

    The row is bit for bit that of `feature_matrix` on the graph in which both are contracted, and
    the same if the regions are swapped. The time depends on the two regions alone.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> from napari_agglo.features import feature_map
    >>> graph = region_graph(np.array([[1, 2, 3, 4]]), np.array([[0.0, 0.2, 0.6, 0.8]]))
    >>> features = feature_map(graph, "minimal")
    >>> row = pair_row(graph, features, {1, 2}, {3, 4})
    >>> round(float(row[features.names.index("boundary/edge/mean")]), 1)
    0.4
    >>> pair_row(graph, features, {1}, {3}) is None
    True
    """
    pair = pair_graph(graph, members_a, members_b)
    if pair is None:
        return None
    row: NDArray[np.float32] = feature_matrix(pair, features)[0]
    return row


def pair_graph(
    graph: RegionGraph, members_a: Superpixels, members_b: Superpixels
) -> RegionGraph | None:
    """Return the graph of two contracted regions and their boundary; None if they do not touch."""
    a, b = as_ids(members_a), as_ids(members_b)
    if b[0] < a[0]:  # a region's id is its smallest superpixel, and decides between equal sizes
        a, b = b, a
    both = np.concatenate([a, b]).astype(np.int64)
    order = np.argsort(both, kind="stable")
    both, in_b = both[order], order >= len(a)
    layout = graph.layout
    regions = np.zeros((3, layout.region_width), np.int64)
    boundary = np.zeros(layout.boundary_width, np.int64)
    boxes = np.zeros((3, 2, layout.ndim), np.int32)
    swallowed = np.zeros((2, layout.ndim), np.int64)
    side = in_b.astype(np.int64)
    if not _add_edges(graph.edges, graph.boundaries, both, side, swallowed, boundary):
        return None
    for k, members in enumerate((a, b), start=1):
        regions[k] = graph.regions[members].sum(axis=0)
        regions[k, layout.contact] -= 2 * swallowed[k - 1]
        boxes[k, 0] = graph.boxes[members, 0].min(axis=0)
        boxes[k, 1] = graph.boxes[members, 1].max(axis=0)
    hulls = None
    if graph.hulls is not None:
        rows = np.concatenate([[0], both])
        hulls = graph.hulls.take(rows).merged(np.concatenate([[0], side + 1]), 3)
    return dataclasses.replace(
        graph,
        superpixels=DenseLabels(
            image=np.array([1, 2], np.uint32),
            ids=graph.ids[[0, int(a[0]), int(b[0])]],
            dtype=graph.superpixels.dtype,
        ),
        edges=np.array([[1, 2]], np.int64),
        regions=regions,
        boundaries=boundary[None],
        boxes=boxes,
        cues=None,
        hulls=hulls,
    )


@kernel
def _add_edges(
    edges: Any, boundaries: Any, both: Any, side: Any, swallowed: Any, boundary: Any
) -> Any:
    """Add the rows of the boundaries between sides to `boundary`, and return their number.

    Faces within a side are added to `swallowed`. `both` and the edges of a superpixel ascend, so
    the search for the other end of an edge starts where the last one ended. No bounds checking.
    """
    n = 0
    for k in range(both.size):
        row = first_row(edges, both[k], 0)
        at = k + 1
        while row < edges.shape[0] and edges[row, 0] == both[k]:
            v = edges[row, 1]
            at = first_place(both, at, v)
            if at < both.size and both[at] == v:
                if side[at] == side[k]:
                    for axis in range(swallowed.shape[1]):
                        swallowed[side[k], axis] += boundaries[row, axis]
                else:
                    n += 1
                    for column in range(boundary.size):
                        boundary[column] += boundaries[row, column]
            row += 1
    return n
