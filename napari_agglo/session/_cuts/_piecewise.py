"""Cutting what is in pieces that do not touch: each piece goes to its seeds, or is cut by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph
from napari_agglo.session._cuts._detach import connected_pieces

Part = NDArray[np.int64]


def piecewise(
    graph: RegionGraph,
    members: Any,
    seeds: Sequence[Sequence[int]],
    cut: Callable[[Part, list[list[int]]], Sequence[Part]],
) -> list[Part]:
    """Cut superpixels that may be in pieces.

    A piece with seeds of one group is that group's; one with seeds of several is cut between them.
    A piece without seeds goes with the largest part: what nobody pointed at stays what it is.

    Parameters
    ----------
    graph : RegionGraph
        The graph.
    members : array of int
        The superpixels, dense ids.
    seeds : list of groups of int
        Two groups or more, none of them empty.
    cut : callable
        Given a connected piece and the groups of seeds in it, returns the part of each group.

    Returns
    -------
    list of ndarray of int64
        The superpixels of each group's part, ascending; a part may be in pieces.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 0, 2, 2, 0, 3]]), np.zeros((1, 6)))
    >>> [part.tolist() for part in piecewise(graph, [1, 2, 3], [[1], [2]], lambda m, s: [])]
    [[1], [2, 3]]
    """
    found: list[list[Part]] = [[] for _ in seeds]
    rest = []
    for piece in connected_pieces(graph, members):
        inside = set(piece.tolist())
        here = {k: [s for s in group if s in inside] for k, group in enumerate(seeds)}
        present = [k for k, group in here.items() if group]
        if not present:
            rest.append(piece)
        elif len(present) == 1:
            found[present[0]].append(piece)
        else:
            parts = cut(piece, [here[k] for k in present])
            for k, part in zip(present, parts, strict=True):
                found[k].append(part)
    sizes = [int(graph.sizes[np.concatenate(parts)].sum()) for parts in found]
    found[int(np.argmax(sizes))] += rest
    return [np.sort(np.concatenate(parts)) for parts in found]
