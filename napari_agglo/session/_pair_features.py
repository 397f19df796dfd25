"""Features of two regions and of the boundary between them: an edit keeps them as examples."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo.errors import InvalidInput
from napari_agglo.features import (
    FeatureMap,
    FeatureState,
    assemble_all,
    empty_features,
    feature_matrix,
    fill_features,
)
from napari_agglo.graph import RegionGraph, first_place, first_row
from napari_agglo.session._actions import Ids, as_ids
from napari_agglo.session._hierarchy.superpixels import read_only
from napari_agglo.volumes import DenseLabels

if TYPE_CHECKING:
    from napari_agglo.session._state import State

Superpixels = Iterable[int] | NDArray[Any]
_MOST = 16  # examples of one cut into many parts: rows are long, and an edit must be quick
_NODES, _EDGE = np.array([1, 2]), np.array([0])
_ENDS, _NUMBERS = np.array([[1, 2]], np.int32), np.arange(3, dtype=np.int32)


class PairRows:
    """Features of pairs of regions, computed in arrays that are made once: an edit must be quick.

    Parameters
    ----------
    graph : RegionGraph
        A graph of the layout and spacing of those that follow.
    features : FeatureMap
        The features.
    """

    def __init__(self, graph: RegionGraph, features: FeatureMap) -> None:
        self.features = features
        self._state: FeatureState | None = None
        # The last graph, and its rows as the kernel takes them.
        self._rows: tuple[RegionGraph, tuple[Any, Any, Any, Any]] | None = None
        # Hulls are lists, and further blocks are functions of a graph: both need the graph of two.
        if not features.options.hulls and not features.blocks:
            layout = graph.layout
            self._state = empty_features(
                graph,
                features,
                np.zeros((3, layout.region_width), np.int64),
                np.zeros((3, 2, layout.ndim), np.int32),
                np.zeros((1, layout.boundary_width), np.int64),
            )
            self._width = features.width

    def row(self, graph: RegionGraph, a: Ids, b: Ids) -> NDArray[np.float32] | None:
        """Return the features of two regions and of the boundary between them; None without one."""
        state = self._state
        if state is None:
            pair = pair_graph(graph, a, b)
            return None if pair is None else feature_matrix(pair, self.features)[0]
        if self._rows is None or self._rows[0] is not graph:
            self._rows = graph, _rows(graph)
        first, second = _ordered(a, b)
        ndim, edges, boundaries, rows = self._rows[1]
        if _add_pair(first, second, ndim, edges, boundaries, rows, state[0], state[2]) == 0:
            return None
        fill_features(_NODES, _EDGE, state)
        out = np.zeros((1, self._width), np.float32)
        assemble_all(_EDGE, _ENDS, _NUMBERS, out, state)
        row: NDArray[np.float32] = out[0]
        return row


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
    packed = zlib.compress(b"".join(row.astype("<f4", copy=False).tobytes() for row in rows), 1)
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
    return PairRows(graph, features).row(graph, as_ids(members_a), as_ids(members_b))


def pair_graph(
    graph: RegionGraph, members_a: Superpixels, members_b: Superpixels
) -> RegionGraph | None:
    """Return the graph of two contracted regions and their boundary; None if they do not touch."""
    a, b = _ordered(as_ids(members_a), as_ids(members_b))
    layout = graph.layout
    regions = np.zeros((3, layout.region_width), np.int64)
    boundaries = np.zeros((1, layout.boundary_width), np.int64)
    boxes = np.zeros((3, 2, layout.ndim), np.int32)
    if _add_pair(a, b, *_rows(graph), regions, boundaries) == 0:
        return None
    for k, members in enumerate((a, b), start=1):
        boxes[k, 0] = graph.boxes[members, 0].min(axis=0)
        boxes[k, 1] = graph.boxes[members, 1].max(axis=0)
    hulls = None
    if graph.hulls is not None:
        rows = np.concatenate([[0], a, b])
        hulls = graph.hulls.take(rows).merged(np.repeat([0, 1, 2], [1, len(a), len(b)]), 3)
    return dataclasses.replace(
        graph,
        superpixels=DenseLabels(
            image=np.array([1, 2], np.uint32),
            ids=graph.ids[[0, int(a[0]), int(b[0])]],
            dtype=graph.superpixels.dtype,
        ),
        edges=np.array([[1, 2]], np.int64),
        regions=regions,
        boundaries=boundaries,
        boxes=boxes,
        cues=None,
        hulls=hulls,
    )


def _ordered(a: Ids, b: Ids) -> tuple[Ids, Ids]:
    """Return the superpixels of two regions, those of the smaller id first.

    The id of a region is its smallest superpixel, and decides between two of equal size.
    """
    return (a, b) if a[0] < b[0] else (b, a)


def _rows(graph: RegionGraph) -> tuple[int, NDArray[Any], NDArray[Any], NDArray[Any]]:
    return (
        graph.layout.ndim,
        read_only(graph.edges),
        read_only(graph.boundaries),
        read_only(graph.regions),
    )


@kernel
def _add_pair(
    a: Any, b: Any, ndim: Any, edges: Any, boundaries: Any, rows: Any, regions: Any, boundary: Any
) -> Any:
    """Write the rows of two regions to ``regions[1:]``, and that of their boundary.

    Return how many boundaries of superpixels this one is made of. Faces within a region are no
    contact. The superpixels of a region ascend, as the edges of each do, so that a search for the
    other end of an edge starts where the last one ended. No bounds checking.
    """
    regions[:] = 0
    boundary[:] = 0
    contact = 1 + 2 * ndim
    n = 0
    for side in range(2):
        own = b if side else a
        other = a if side else b
        for k in range(own.size):
            superpixel = np.int64(own[k])
            for column in range(rows.shape[1]):
                regions[1 + side, column] += rows[superpixel, column]
            row = first_row(edges, superpixel, np.int64(0))
            here = k + 1
            there = np.int64(0)
            while row < edges.shape[0] and edges[row, 0] == superpixel:
                v = edges[row, 1]
                here = first_place(own, here, v)
                there = first_place(other, there, v)
                if here < own.size and own[here] == v:
                    for axis in range(ndim):
                        regions[1 + side, contact + axis] -= 2 * boundaries[row, axis]
                elif there < other.size and other[there] == v:
                    n += 1
                    for column in range(boundary.shape[1]):
                        boundary[0, column] += boundaries[row, column]
                row += 1
    return n
