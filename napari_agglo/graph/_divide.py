"""Dividing one superpixel of a graph: only the pixels around it are read again.

Strategy: the label image is cut out around the superpixel, one pixel more on each side (two where
dams count), its pieces are drawn in, and the cut-out goes through the same kernel as a whole volume
does. Of what comes out, the rows of the pieces and of their boundaries are kept; coordinates are
moved to where the cut-out lies. No other row changes: a neighbour touches as many pixels of other
regions as before, and boundaries elsewhere were not looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.graph._build import scan
from napari_agglo.graph._division import Division, Rows, box_slices
from napari_agglo.graph._layout import Layout
from napari_agglo.graph._lookup import edge_positions
from napari_agglo.graph._region_graph import RegionGraph
from napari_agglo.volumes import DenseLabels


def divide(graph: RegionGraph, superpixel: int, pieces: NDArray[Any]) -> Division:
    """Work out what dividing a superpixel changes, from the pixels around it.

    Parameters
    ----------
    graph : RegionGraph
        With its cues; it is not changed.
    superpixel : int
        Dense id of what to divide.
    pieces : ndarray of int, shape of the superpixel's bounding box
        Two labels or more on the pixels of the superpixel, 0 elsewhere.

    Returns
    -------
    Division
        ``division.apply(graph)`` is the new graph.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[7, 7, 7, 9]]), np.array([[0.0, 0.0, 1.0, 1.0]]))
    >>> division = divide(graph, 1, np.array([[1, 1, 2]]))
    >>> after = division.apply(graph)
    >>> after.ids, after.edges.tolist()
    (array([ 0,  7,  9, 10], dtype=uint64), [[1, 3], [2, 3]])
    >>> division.revert(after).edges.tolist()
    [[1, 2]]
    """
    values = kept_cues(graph)
    box = superpixel_box(graph, superpixel)
    ordered = _largest_first(graph, superpixel, box, pieces)
    n_new = int(ordered.max()) - 1
    ids, dtype = _new_ids(graph.superpixels, n_new)
    new = _scanned(graph, values, superpixel, box, ordered)
    others = np.setdiff1d(new.edges, np.arange(n_new) + graph.n_regions + 1)
    others = others[others != superpixel]
    pairs = np.stack([np.minimum(others, superpixel), np.maximum(others, superpixel)], axis=1)
    rows = edge_positions(graph.edges, pairs)
    here = slice(superpixel, superpixel + 1)
    old = Rows(graph.regions[here].copy(), graph.boxes[here].copy(), pairs, graph.boundaries[rows])
    was = graph.superpixels.dtype
    return Division(superpixel, graph.n_regions, ordered, ids, old, new, was, dtype)


def divided(graph: RegionGraph, superpixel: int, pieces: NDArray[Any]) -> RegionGraph:
    """Return a copy of `graph` with one superpixel divided.

    Equal, row for row and up to numbering, to `region_graph` of the changed labels. Takes the
    arguments of `divide`, which should be used where the division is to be taken back, or where
    the label image is too large to be copied each time.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 1, 1, 2]]), np.zeros((1, 4)))
    >>> divided(graph, 1, np.array([[1, 2, 2]])).superpixels.image
    array([[3, 1, 1, 2]], dtype=uint32)
    """
    return divide(graph, superpixel, pieces).apply(graph)


def kept_cues(graph: RegionGraph) -> NDArray[np.uint8]:
    """Return the cues of a graph, of shape (number of cues, *image); refuse one without them."""
    if graph.cues is None:
        raise InvalidInput(
            "This graph has not kept its cues, without which a superpixel cannot be divided; build "
            "it again with region_graph(superpixels, cues, keep_cues=True)."
        )
    return graph.cues.reshape(-1, *graph.superpixels.image.shape)


def superpixel_box(graph: RegionGraph, superpixel: int) -> tuple[slice, ...]:
    """Return where a superpixel lies; refuse a number that is not one of a superpixel."""
    if not (is_whole(superpixel) and 1 <= superpixel <= graph.n_regions):
        raise InvalidInput(
            f"`superpixel` must be a dense id, 1 to {graph.n_regions}, got {superpixel!r}."
        )
    return box_slices(graph.boxes[superpixel])


def _largest_first(
    graph: RegionGraph, superpixel: int, box: tuple[slice, ...], pieces: Any
) -> NDArray[Any]:
    """Return the pieces renumbered 1, 2, ..., the largest first; refuse what is no division."""
    inside = graph.superpixels.image[box] == superpixel
    given = np.asarray(pieces)
    if given.shape != inside.shape or given.dtype.kind not in "iu":
        raise InvalidInput(
            f"`pieces` must be whole numbers in the bounding box of the superpixel, shape "
            f"{inside.shape}, got {given.dtype} of shape {given.shape}."
        )
    if not np.array_equal(given != 0, inside):
        raise InvalidInput(
            "`pieces` must label every pixel of the superpixel and be 0 elsewhere in its box; "
            f"{int(((given != 0) != inside).sum())} pixels are not so."
        )
    labels, counts = np.unique(given[inside], return_counts=True)
    if len(labels) < 2:
        raise InvalidInput(
            f"`pieces` must hold two labels or more, got only {labels.tolist()}: nothing would be "
            "divided."
        )
    # A stable sort: the first of the largest, then the others as they were.
    order = np.argsort(np.arange(len(labels)) != int(np.argmax(counts)), kind="stable")
    number = np.argsort(order) + 1
    out = np.zeros(given.shape, np.min_scalar_type(len(labels)))
    out[inside] = number[np.searchsorted(labels, given[inside])]
    return out


def _new_ids(labels: DenseLabels, n_new: int) -> tuple[NDArray[np.uint64], np.dtype[Any]]:
    """Return ids above the highest, and a type that holds them: the user's own if it does."""
    highest = int(labels.ids[-1])
    if highest + n_new >= 2**64:
        raise InvalidInput(
            f"There is no id left for {n_new} new superpixels: the highest is {highest}, and ids "
            "end at 2**64 - 1. Renumber the superpixels and build the graph again."
        )
    ids = np.array([highest + 1 + k for k in range(n_new)], np.uint64)
    fits = highest + n_new <= int(np.iinfo(labels.dtype).max)
    return ids, labels.dtype if fits else np.min_scalar_type(highest + n_new)


def _scanned(
    graph: RegionGraph,
    values: NDArray[np.uint8],
    superpixel: int,
    box: tuple[slice, ...],
    pieces: NDArray[Any],
) -> Rows:
    """Return the rows of the pieces, from a cut-out of labels and cues."""
    shape = graph.superpixels.image.shape
    n_pieces = int(pieces.max())
    reach = 2 if graph.dams else 1
    starts = [max(side.start - reach, 0) for side in box]
    window = tuple(
        slice(start, min(side.stop + reach, length))
        for start, side, length in zip(starts, box, shape, strict=True)
    )
    labels = graph.superpixels.image[window].astype(np.int64)
    core = labels[tuple(slice(b.start - s, b.stop - s) for b, s in zip(box, starts, strict=True))]
    moved = pieces > 1
    core[moved] = pieces[moved].astype(np.int64) + graph.n_regions - 1
    # The cut-out on dense ids of its own. The tables are as long as the graph has regions, a
    # byte and four for each, which is far less than sorting the pixels would cost.
    is_here = np.zeros(graph.n_regions + n_pieces, np.bool_)
    is_here[labels] = True
    is_here[0] = True
    here = np.flatnonzero(is_here)
    number = np.zeros(len(is_here), np.uint32)
    number[here] = np.arange(len(here))
    local = number[labels]
    local.flags.writeable = False  # as that of a graph is: the kernel is compiled for it
    cut = np.ascontiguousarray(values[(slice(None), *window)]).reshape(len(values), -1)
    edges, regions, boundaries, boxes = scan(local, cut, graph.layout, len(here), graph.dams, None)
    is_piece = (here == superpixel) | (here > graph.n_regions)
    touches = is_piece[edges].any(axis=1)
    offset = np.array(starts, np.int64)
    return Rows(
        regions=_moved(regions[is_piece], graph.layout, offset),
        boxes=(boxes[is_piece] + offset).astype(np.int32),
        edges=here[edges[touches]],
        boundaries=boundaries[touches],
    )


def _moved(
    regions: NDArray[np.int64], layout: Layout, offset: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return rows of regions whose pixels lie `offset` further along the axes."""
    out = regions.copy()
    count = regions[:, 0]
    sums = regions[:, layout.coordinates]
    out[:, layout.coordinates] += count[:, None] * offset
    column = layout.products.start
    for a in range(layout.ndim):
        for b in range(a, layout.ndim):
            out[:, column] += offset[a] * sums[:, b] + offset[b] * sums[:, a]
            out[:, column] += offset[a] * offset[b] * count
            column += 1
    return out
