"""Buffer of pairs of regions, by which the merge loop passes boundaries to Python functions.

A row has the dense ids of the two regions, the smaller first, the row of statistics of their
boundary, and those of both regions. A kernel copies rows into the buffer (`copy_pair`), and Python
reads the buffer as a small region graph (`graph_of_pairs`), so that a function of a graph serves
both the loop and the whole graph.
"""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import subroutine
from napari_agglo.errors import InvalidInput
from napari_agglo.graph._region_graph import Layout, RegionGraph
from napari_agglo.volumes import DenseLabels


def pair_width(layout: Layout) -> int:
    """Return the number of columns of the buffer."""
    return 2 + layout.boundary_width + 2 * layout.region_width


@subroutine
def copy_pair(
    edge: Any,
    u: Any,
    v: Any,
    id_u: Any,
    id_v: Any,
    regions: Any,
    boundaries: Any,
    out: Any,
    at: Any,
) -> None:
    """Write the row of the boundary `edge` of nodes `u` and `v` to ``out[at]``."""
    if id_v < id_u:
        u, v = v, u
    out[at, 0] = min(id_u, id_v)
    out[at, 1] = max(id_u, id_v)
    column = 2
    for k in range(boundaries.shape[1]):
        out[at, column + k] = boundaries[edge, k]
    column += boundaries.shape[1]
    for k in range(regions.shape[1]):
        out[at, column + k] = regions[u, k]
        out[at, column + regions.shape[1] + k] = regions[v, k]


class Absent:
    """Data that a part of a graph does not have: an error for whoever uses them.

    Parameters
    ----------
    what : str
        The data, as a phrase.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __repr__(self) -> str:
        return f"<no {self._what}>"

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise InvalidInput(
            f"Policies and features are computed on parts of a graph, which have no {self._what}",
            argument="policy",
            remedy="read the statistics of regions and boundaries alone, such as boundary_mean, "
            "sizes, centroids and contact_area",
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and not name.startswith("__array"):  # as copy and pickle ask
            raise AttributeError(name)
        return self._refuse()

    __getitem__ = __len__ = __iter__ = __array__ = __bool__ = __contains__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse  # as of an array
    __hash__ = object.__hash__


_NO_IMAGE, _NO_BOXES, _NO_CUES = Absent("label image"), Absent("boxes"), Absent("cues")


def part_of(graph: RegionGraph) -> RegionGraph:
    """Return a graph of some regions without pixels, whose image and boxes nobody may read."""
    labels = DenseLabels(cast(Any, _NO_IMAGE), graph.ids, graph.superpixels.dtype)
    boxes, cues = cast(Any, _NO_BOXES), cast(Any, _NO_CUES)
    return dataclasses.replace(graph, superpixels=labels, boxes=boxes, cues=cues)


def sample_of_pairs(graph: RegionGraph, most: int) -> NDArray[np.int64]:
    """Return rows for `graph_of_pairs` of `most` boundaries of a graph, or all, evenly spaced."""
    n = graph.n_boundaries
    which = np.unique(np.linspace(0, n - 1, min(most, n)).astype(np.int64))
    edges = graph.edges[which]
    ends = graph.regions[edges].reshape(len(which), 2 * graph.layout.region_width)
    return np.concatenate([edges, graph.boundaries[which], ends], axis=1)


def graph_of_pairs(graph: RegionGraph, rows: NDArray[np.int64]) -> RegionGraph:
    """Return the graph of the pairs in `rows`: edge k joins regions 2 k + 1 and 2 k + 2.

    A region of several boundaries occurs several times. Ids are those of the smallest superpixel, 0
    for one that `graph` does not have. The label image, boxes and cues are `Absent`: the loop does
    not keep them.
    """
    n, layout = len(rows), graph.layout
    column = 2 + layout.boundary_width
    regions = np.zeros((2 * n + 1, layout.region_width), np.int64)
    regions[1:] = rows[:, column:].reshape(2 * n, layout.region_width)
    dense = np.concatenate([np.zeros(1, np.int64), rows[:, :2].reshape(-1)])
    return dataclasses.replace(
        graph,
        superpixels=DenseLabels(
            cast(Any, _NO_IMAGE),
            graph.ids[np.where(dense < len(graph.ids), dense, 0)],
            graph.superpixels.dtype,
        ),
        edges=np.arange(1, 2 * n + 1, dtype=np.int64).reshape(n, 2),
        regions=regions,
        boundaries=rows[:, 2:column].copy(),
        boxes=cast(Any, _NO_BOXES),
        cues=cast(Any, _NO_CUES),
        hulls=None,
    )
