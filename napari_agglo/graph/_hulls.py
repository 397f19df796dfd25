"""Convex hulls of the regions of a plane, exact, and merged inside the merge loop.

A pixel is a square: the vertices of a hull are corners of pixels, whole numbers, so that twice the
area of a hull is a whole number too. The hull of a union is the hull of the vertices of both hulls,
whatever the order of merges.

The vertices of a hull are a list in the order of (row, column), which has both of its sides, from
the first corner to the last. A merge reads two such lists once, and links those vertices that are
left: no vertex is ever made, and the lists of all regions need no more room than at the start.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import inlined, kernel, subroutine
from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.graph._region_graph import RegionGraph


@dataclass(frozen=True, eq=False)
class Hulls:
    """Vertices of the convex hull of each region; row 0, "no region", has none.

    Parameters
    ----------
    starts : ndarray of int64, shape (rows + 1,)
        Row k has the vertices ``points[starts[k] : starts[k + 1]]``.
    points : ndarray of int32, shape (vertices, 2)
        Corners of pixels, in the order of (row, column) within a row.
    """

    starts: NDArray[np.int64]
    points: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, rows: NDArray[Any]) -> Hulls:
        """Return some rows, in this order."""
        first = self.starts[rows]
        counts = self.starts[np.asarray(rows) + 1] - first
        starts = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        at = np.arange(starts[-1]) + np.repeat(first - starts[:-1], counts)
        return Hulls(starts, self.points[at])

    def joined(self, other: Hulls) -> Hulls:
        """Return the rows of both, those of `other` last."""
        starts = np.concatenate([self.starts, other.starts[1:] + self.starts[-1]])
        return Hulls(starts, np.concatenate([self.points, other.points]))

    def merged(self, into: NDArray[Any], n_rows: int) -> Hulls:
        """Return the hulls of unions: row k becomes a part of row ``into[k]`` of `n_rows`."""
        state = hull_lists(self, n_rows)
        add_hulls(np.arange(len(self)), np.asarray(into, np.int64), self.starts, state)
        starts = np.zeros(n_rows + 1, np.int64)
        points = np.zeros_like(self.points)
        n = _collect(state, starts, points)
        return Hulls(starts, points[:n].copy())

    def areas(self) -> NDArray[np.float64]:
        """Return the area of each hull in pixels.

        Examples
        --------
        >>> import numpy as np
        >>> hulls_of(np.array([[1, 0], [1, 1]], np.uint32), 2).areas()
        array([0. , 3.5])
        """
        return linked(self).areas / 2.0


class HullLists(NamedTuple):
    """Vertices of hulls as linked lists. All arrays are empty where nothing reads hulls.

    Invariant: the list of a node has the vertices of its hull and no others, in the order of (row,
    column), and no two lists share a vertex.
    """

    first: NDArray[np.int32]  # (nodes,): vertex of each list, -1 for an empty one
    areas: NDArray[np.int64]  # (nodes,): twice the area
    following: NDArray[np.int32]  # (vertices,): the next of its list, -1 at the end
    points: NDArray[np.int32]  # (vertices, 2)
    sides: NDArray[np.int32]  # buffer (2, vertices): the two sides of a hull


def hull_lists(hulls: Hulls, n_nodes: int) -> HullLists:
    """Return empty lists of `n_nodes` nodes, to which rows of `hulls` can be added."""
    n = len(hulls.points)
    return HullLists(
        first=np.full(n_nodes, -1, np.int32),
        areas=np.zeros(n_nodes, np.int64),
        following=np.empty(n, np.int32),
        points=hulls.points,
        sides=np.empty((2, n), np.int32),
    )


NO_HULLS = hull_lists(Hulls(np.zeros(1, np.int64), np.zeros((0, 2), np.int32)), 0)


def linked(hulls: Hulls) -> HullLists:
    """Return the lists of nodes that are the rows."""
    state = hull_lists(hulls, len(hulls))
    rows = np.arange(len(hulls))
    add_hulls(rows, rows, hulls.starts, state)
    return state


def refuse_hulls(graph: RegionGraph, policy: bool = False) -> None:
    """Refuse a graph whose regions have no convex hulls, for a preset or a policy."""
    if graph.hulls is not None:
        return
    image: Any = graph.superpixels.image  # block by block it is one on disk
    try:
        axes = image.ndim
    except InvalidInput:  # a part of a graph has no image
        axes = 0
    ndim = graph.layout.ndim
    if ndim != 2:
        why = f"convex hulls are of regions of a plane, and `graph` has {ndim} axes"
    elif axes != 2:
        why = "convex hulls are found from pixels, and `graph` has only statistics of its regions"
    elif not isinstance(image, np.ndarray):
        why = "convex hulls are not kept block by block, as for this `graph`"
    else:
        return
    raise InvalidInput(
        f"The features 'natural' have convex hulls: {why}",
        argument="policy" if policy else "preset",
        remedy=(SetOption("preset", "angles"), "train with the same features without hulls"),
    )


def with_hulls(graph: RegionGraph) -> RegionGraph:
    """Return a graph of a plane with the convex hulls of its regions; refuse any other.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2], [1, 1]]), np.zeros((2, 2)))
    >>> with_hulls(graph).hulls.areas()
    array([0. , 3.5, 1. ])
    """
    if graph.hulls is not None:
        return graph
    refuse_hulls(graph)
    return dataclasses.replace(graph, hulls=hulls_of(graph.superpixels.image, graph.n_regions + 1))


def hulls_of(image: NDArray[np.uint32], n_rows: int, origin: tuple[int, ...] = (0, 0)) -> Hulls:
    """Return the hulls of labels below `n_rows`; `origin` is the place of the first pixel."""
    labels = np.ascontiguousarray(image, np.uint32).view()
    labels.flags.writeable = False  # as the image of a graph: the kernels are compiled once
    counts = np.zeros((2, n_rows), np.int64)  # lines of each label, and the last line seen
    _count_lines(labels, counts)
    # A label on n lines of pixels has corners on up to 2 n lines, two on each.
    starts = np.zeros(n_rows + 1, np.int64)
    np.cumsum(counts[0], out=starts[1:])
    lines = np.zeros((starts[-1], 3), np.int32)
    counts[1] = starts[:-1]
    _fill_lines(labels, counts[1], starts, lines)
    corners = np.zeros((4 * starts[-1], 2), np.int32)
    ends = np.zeros(n_rows + 1, np.int64)
    n = _list_corners(starts, lines, origin[0], origin[1], ends, corners)
    return _pruned(Hulls(ends, corners[:n]))


def _pruned(corners: Hulls) -> Hulls:
    """Return the hulls of rows of corners, which are in order."""
    return corners.merged(np.arange(len(corners)), len(corners))


@kernel
def _count_lines(labels: Any, counts: Any) -> None:
    """Count the lines of pixels on which each label is. No bounds checking."""
    for row in range(labels.shape[0]):
        before = np.int64(0)
        for column in range(labels.shape[1]):
            label = np.int64(labels[row, column])
            if label != before and label > 0 and counts[1, label] != row + 1:
                counts[1, label] = row + 1
                counts[0, label] += 1
            before = label


@kernel
def _fill_lines(labels: Any, at: Any, starts: Any, lines: Any) -> None:
    """Write row, first column and one past the last column of each label. No bounds checking.

    `at` begins as the starts of the labels.
    """
    for row in range(labels.shape[0]):
        width = labels.shape[1]
        column = 0
        while column < width:
            label = np.int64(labels[row, column])
            stop = column + 1
            while stop < width and labels[row, stop] == label:
                stop += 1
            if label > 0:
                own = at[label] - 1
                if own < starts[label] or lines[own, 0] != row:
                    own = at[label]
                    at[label] += 1
                    lines[own, 0] = row
                    lines[own, 1] = column
                lines[own, 2] = stop
            column = stop


@kernel
def _list_corners(starts: Any, lines: Any, top: Any, left: Any, ends: Any, corners: Any) -> Any:
    """Write the outermost corners of pixels on each line of corners; return their number.

    Of two corners on a line, the first is the lower column. No bounds checking.
    """
    n = np.int64(0)
    for label in range(starts.size - 1):
        for own in range(starts[label], starts[label + 1]):
            row = lines[own, 0]
            for below in range(2):
                low = lines[own, 1]
                high = lines[own, 2]
                # The line between two lines of pixels of one label belongs to both.
                if below == 0 and own > starts[label] and lines[own - 1, 0] == row - 1:
                    continue
                following = own + 1
                if below == 1 and following < starts[label + 1] and lines[following, 0] == row + 1:
                    low = min(low, lines[following, 1])
                    high = max(high, lines[following, 2])
                for side in range(2):
                    corners[n, 0] = row + below + top
                    corners[n, 1] = (low if side == 0 else high) + left
                    n += 1
        ends[label + 1] = n
    return n


@inlined
def _turn(points: Any, a: Any, b: Any, c: Any) -> Any:
    """Return twice the area of the triangle of three vertices; its sign is that of the turn."""
    row = np.int64(points[a, 0])
    column = np.int64(points[a, 1])
    first = (points[b, 0] - row) * (points[c, 1] - column)
    return first - (points[b, 1] - column) * (points[c, 0] - row)


@inlined
def _is_before(points: Any, a: Any, b: Any) -> Any:
    """Tell whether a vertex comes before another one in the order of (row, column)."""
    if points[a, 0] != points[b, 0]:
        return points[a, 0] < points[b, 0]
    return points[a, 1] < points[b, 1]


@subroutine
def _find_sides(a: Any, b: Any, lists: HullLists) -> Any:
    """Find the hull of two lists, which begin at `a` and `b`, as two sides in `lists.sides`.

    Both sides lead from the first vertex to the last (Andrew's monotone chains, both at once).
    Returns the numbers of vertices of the two, and twice the area between them.
    """
    following, points, sides = lists.following, lists.points, lists.sides
    n_low = np.int64(0)
    n_high = np.int64(0)
    last = np.int64(-1)
    while a >= 0 or b >= 0:
        if b < 0 or (a >= 0 and _is_before(points, a, b)):
            at = a
            a = np.int64(following[a])
        else:
            at = b
            b = np.int64(following[b])
        # Two hulls may have a vertex in common: one of the two goes on.
        if last >= 0 and points[at, 0] == points[last, 0] and points[at, 1] == points[last, 1]:
            continue
        last = at
        while n_low >= 2 and _turn(points, sides[0, n_low - 2], sides[0, n_low - 1], at) <= 0:
            n_low -= 1
        sides[0, n_low] = at
        n_low += 1
        while n_high >= 2 and _turn(points, sides[1, n_high - 2], sides[1, n_high - 1], at) >= 0:
            n_high -= 1
        sides[1, n_high] = at
        n_high += 1
    area = np.int64(0)
    for k in range(2, n_low):
        area += _turn(points, sides[0, 0], sides[0, k - 1], sides[0, k])
    for k in range(2, n_high):
        area -= _turn(points, sides[1, 0], sides[1, k - 1], sides[1, k])
    return n_low, n_high, area


@subroutine
def union_area(u: Any, v: Any, lists: HullLists) -> Any:
    """Return twice the area of the hull of the union of two nodes."""
    first = lists.first
    _, _, area = _find_sides(np.int64(first[u]), np.int64(first[v]), lists)
    return area


@subroutine
def _merge_lists(into: Any, other: Any, lists: HullLists) -> None:
    """Let a node have the hull of its list and of the list that begins at vertex `other`."""
    first, areas, following, points, sides = lists
    n_low, n_high, areas[into] = _find_sides(np.int64(first[into]), other, lists)
    if n_low == 0:
        return
    at = sides[0, 0]
    first[into] = at
    low = np.int64(1)
    high = np.int64(1)
    while low < n_low or high < n_high:
        # The last vertex is that of both sides.
        if high == n_high or (low < n_low and _is_before(points, sides[0, low], sides[1, high])):
            new = sides[0, low]
            low += 1
        else:
            new = sides[1, high]
            high += 1
        if new != at:
            following[at] = new
            at = new
    following[at] = -1


@subroutine
def merge_hulls(into: Any, other: Any, lists: HullLists) -> None:
    """Let the node `into` have the hull of its union with the node `other`, which is then empty."""
    _merge_lists(into, np.int64(lists.first[other]), lists)
    lists.first[other] = -1


@subroutine
def add_hull(into: Any, start: Any, stop: Any, lists: HullLists) -> None:
    """Add the vertices `start` to `stop` - 1, those of one row, to the hull of a node.

    If they were in the list of another node, that list is not to be used any more.
    """
    for at in range(start, stop):
        lists.following[at] = at + 1 if at + 1 < stop else -1
    if start < stop:
        _merge_lists(into, start, lists)


@kernel
def add_hulls(rows: Any, into: Any, starts: Any, lists: HullLists) -> None:
    """Add each of `rows` to a node. No bounds checking."""
    for k in range(rows.size):
        row = rows[k]
        add_hull(into[k], np.int64(starts[row]), np.int64(starts[row + 1]), lists)


@kernel
def _collect(lists: HullLists, starts: Any, points: Any) -> Any:
    """Write the vertices of all nodes one after the other; return their number.

    No bounds checking.
    """
    n = np.int64(0)
    for node in range(lists.first.size):
        at = np.int64(lists.first[node])
        while at >= 0:
            points[n, 0] = lists.points[at, 0]
            points[n, 1] = lists.points[at, 1]
            n += 1
            at = np.int64(lists.following[at])
        starts[node + 1] = n
    return n
