"""Taking superpixels out of a segment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._cuts._segment import named, pieces_of, segment_of


def detached(graph: RegionGraph, members: Any, superpixels: Any) -> list[NDArray[np.int64]]:
    """Take superpixels out of a segment.

    What leaves and what stays both fall into their connected pieces: who takes out a bridge sees
    both banks apart, for a part of a cut is connected. Nothing is refused for that; the preview
    shows it.

    Parameters
    ----------
    graph : RegionGraph
        The graph.
    members : array of int
        The superpixels of the segment, dense ids; they may be in pieces.
    superpixels : array of int
        Those that leave, dense ids.

    Returns
    -------
    list of ndarray of int64
        The pieces of what stays, largest first (in pixels), then those of what leaves, likewise.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3, 4]]), np.zeros((1, 4)))
    >>> [part.tolist() for part in detached(graph, [1, 2, 3, 4], [3])]
    [[1, 2], [4], [3]]
    """
    segment = segment_of(graph, members)
    leaving = np.unique(np.asarray(superpixels))
    if leaving.size == 0 or leaving.dtype.kind not in "iu":
        raise InvalidInput("`superpixels` is empty; choose the superpixels that are to leave.")
    outside = np.setdiff1d(leaving, segment.members)
    if outside.size:
        raise InvalidInput(
            f"Superpixel {named(graph, int(outside[0]))} is not in the segment, so it cannot leave "
            "it; activate the segment that holds it."
        )
    if leaving.size == segment.size:
        raise InvalidInput(
            "All superpixels of the segment would leave it, which changes nothing; leave out those "
            "that are to stay."
        )
    staying = np.setdiff1d(segment.members, leaving)
    return connected_pieces(graph, staying) + connected_pieces(graph, leaving)


def connected_pieces(graph: RegionGraph, members: Any) -> list[NDArray[np.int64]]:
    """Return the connected pieces of a set of superpixels, the largest (in pixels) first."""
    segment = segment_of(graph, members)
    count, piece = pieces_of(segment.size, segment.ends)
    sizes = np.bincount(piece, graph.sizes[segment.members], minlength=count)
    pieces = segment.parts(piece, count)
    return [pieces[k] for k in np.argsort(-sizes, kind="stable")]
