"""Division of one superpixel of a graph: only the pixels around it are read again.

Strategy: the label image is cut out around the superpixel, one pixel more on each side (two where
dams count), its pieces are drawn in, and the kernel that scans whole volumes scans the cut-out. Of
the result, the rows of the pieces and of their boundaries are kept, with coordinates shifted by the
position of the cut-out. No other row changes: a neighbour has as many faces towards other regions
as before.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.graph._build_graph import scan
from napari_agglo.graph._edge_search import edge_positions
from napari_agglo.graph._hulls import Hulls, hulls_of
from napari_agglo.graph._region_graph import Layout, RegionGraph
from napari_agglo.volumes import DenseLabels, are_on_disk


def pieces_to_runs(labels: NDArray[Any]) -> list[int]:
    """Return the run lengths of a label array in C order: label, length, label, length, ...

    Examples
    --------
    >>> import numpy as np
    >>> pieces_to_runs(np.array([[1, 1, 1], [0, 2, 2]]))
    [1, 3, 0, 1, 2, 2]
    """
    flat = np.asarray(labels).reshape(-1)
    if flat.size == 0:
        return []
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1, [flat.size]])
    lengths = (stop - start for start, stop in pairwise(starts.tolist()))
    pairs = zip(flat[starts[:-1]].tolist(), lengths, strict=True)
    return [int(number) for pair in pairs for number in pair]


def runs_to_pieces(runs: Sequence[int], shape: Sequence[int]) -> NDArray[np.int64]:
    """Return the label array of `shape` from its runs; refuse runs that do not fill it.

    Examples
    --------
    >>> runs_to_pieces([1, 3, 0, 1, 2, 2], (2, 3))
    array([[1, 1, 1],
           [0, 2, 2]])
    """
    size = math.prod(shape)
    whole = all(is_whole(number) and 0 <= number < 2**63 for number in runs)
    if not whole or len(runs) % 2 or sum(runs[1::2]) != size:
        raise InvalidInput(
            f"`runs` must be pairs of a label and a length, {size} pixels in all, to fill the "
            f"shape {tuple(shape)}",
            argument="runs",
            remedy="make them with pieces_to_runs(labels)",
        )
    labels = np.array(runs[0::2], np.int64)
    return np.repeat(labels, np.array(runs[1::2], np.int64)).reshape(tuple(shape))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a superpixel or of its pieces, and of all their boundaries in order."""

    regions: NDArray[np.int64]
    boxes: NDArray[np.int32]
    edges: NDArray[np.int64]
    boundaries: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Division:
    """Change of a graph by one superpixel in pieces, with the rows before and after it.

    A division is small, and can be reverted bit for bit. `apply` and `revert` copy the label image,
    unless they get a writable array to change instead.

    Parameters
    ----------
    superpixel : int
        Dense id of the divided superpixel; the largest piece keeps it, and the user's id.
    n_regions : int
        Number of regions before; the other pieces get the dense ids that follow.
    pieces : ndarray of uint8 or wider, shape of the superpixel's bounding box
        1 for the largest piece, then 2, 3, ... in the order of the new ids; 0 elsewhere.
    ids : ndarray of uint64
        The user's ids of the new superpixels: those after the highest.
    old, new : Rows
        The rows of the superpixel, and of its pieces.
    old_dtype, new_dtype : dtype
        The type of the user's ids; a wider one if the new ids need it.
    """

    superpixel: int
    n_regions: int
    pieces: NDArray[Any]
    ids: NDArray[np.uint64]
    old: Rows
    new: Rows
    old_dtype: np.dtype[Any]
    new_dtype: np.dtype[Any]

    def __repr__(self) -> str:
        return f"Division(superpixel {self.superpixel} in {len(self.ids) + 1} pieces)"

    @property
    def members(self) -> NDArray[np.int64]:
        """Dense ids of the pieces, in their order."""
        new = np.arange(len(self.ids), dtype=np.int64) + self.n_regions + 1
        return np.concatenate([[self.superpixel], new])

    def dense_ids(self, labels: NDArray[Any]) -> dict[int, int]:
        """Return the dense id of each label of the array of pieces."""
        array, first = np.unique(labels, return_index=True)
        numbers = self.pieces.reshape(-1)[first]
        members = self.members.tolist()
        pairs = zip(array.tolist(), numbers.tolist(), strict=True)
        return {label: members[number - 1] for label, number in pairs if number > 0}

    @property
    def box(self) -> tuple[slice, ...]:
        """Bounding box of the superpixel."""
        return box_slices(self.old.boxes[0])

    def apply(self, graph: RegionGraph, image: NDArray[np.uint32] | None = None) -> RegionGraph:
        """Return `graph` with the superpixel divided.

        Parameters
        ----------
        graph : RegionGraph
            The graph that was divided, or an equal one; its tables are not changed.
        image : ndarray of uint32, optional
            A writable array with the label image of `graph`: it is changed in place and becomes
            the image of the new graph; other graphs on this array are then out of date, until
            `revert`. By default the image is copied.
        """
        self._check(graph, self.n_regions, "apply")
        moved = self.pieces > 1
        numbers = self.pieces[moved].astype(np.uint32) + np.uint32(self.n_regions - 1)
        ids = np.concatenate([graph.ids, self.ids])
        regions = np.concatenate([graph.regions, self.new.regions[1:]])
        boxes = np.concatenate([graph.boxes, self.new.boxes[1:]])
        regions[self.superpixel], boxes[self.superpixel] = self.new.regions[0], self.new.boxes[0]
        painted = self._painted(graph, image, moved, self.superpixel, numbers)
        labels = _labels(painted, ids, self.new_dtype)
        return _exchanged(graph, labels, regions, boxes, self.old, self.new, self._hulls(graph, 1))

    def revert(self, graph: RegionGraph, image: NDArray[np.uint32] | None = None) -> RegionGraph:
        """Return `graph` with the superpixel whole again; the inverse of `apply`, bit for bit."""
        self._check(graph, self.n_regions + len(self.ids), "revert")
        moved = self.pieces > 1
        first = self.n_regions + 1
        regions, boxes = graph.regions[:first].copy(), graph.boxes[:first].copy()
        regions[self.superpixel], boxes[self.superpixel] = self.old.regions[0], self.old.boxes[0]
        numbers = self.pieces[moved].astype(np.uint32) + np.uint32(self.n_regions - 1)
        painted = self._painted(graph, image, moved, numbers, self.superpixel)
        labels = _labels(painted, graph.ids[:first].copy(), self.old_dtype)
        return _exchanged(graph, labels, regions, boxes, self.new, self.old, self._hulls(graph, -1))

    def piece_hulls(self) -> Hulls:
        """Return the convex hulls of the pieces, in their order; of a plane only."""
        return _hulls_in(self.pieces, self.box)

    def _hulls(self, graph: RegionGraph, step: int) -> Hulls | None:
        """Return the hulls of `graph` after the division, or before it if `step` is -1."""
        if graph.hulls is None:
            return None
        rows = self.piece_hulls() if step > 0 else _hulls_in(self.pieces > 0, self.box)
        at = np.arange(self.n_regions + 1)
        at[self.superpixel] = len(graph.hulls)
        more = np.arange(1, len(rows)) + len(graph.hulls)
        return graph.hulls.joined(rows).take(np.concatenate([at, more]))

    def _check(self, graph: RegionGraph, expected: int, verb: str) -> None:
        if graph.n_regions != expected:
            raise InvalidInput(
                f"`graph` must have {expected} regions to {verb} this division, got "
                f"{graph.n_regions}",
                argument="graph",
                remedy="revert divisions in the opposite order",
            )

    def _painted(
        self, graph: RegionGraph, image: NDArray[np.uint32] | None, where: Any, old: Any, new: Any
    ) -> NDArray[np.uint32]:
        """Return the image of `graph`, or `image` in its place, with `new` for `old`."""
        shape = graph.superpixels.image.shape
        if image is None:
            image = graph.superpixels.image.copy()
        elif image.shape != shape or image.dtype != np.uint32 or not image.flags.writeable:
            kind = "a writable" if image.flags.writeable else "a read-only"
            raise InvalidInput(
                f"`image` must be a writable array of uint32 of shape {shape}, got {kind} one "
                f"of {image.dtype} of shape {image.shape}",
                argument="image",
                remedy="pass graph.superpixels.image.copy()",
            )
        box = image[self.box]
        if not (box[where] == old).all():
            raise InvalidInput(
                "`image` does not have the labels of `graph`",
                argument="image",
                remedy="pass graph.superpixels.image.copy()",
            )
        box[where] = new
        image[self.box] = box  # a part of an image on disk is a copy
        return image


def box_slices(box: NDArray[np.int32]) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in box.T.tolist())


def _labels(
    image: NDArray[np.uint32], ids: NDArray[np.uint64], dtype: np.dtype[Any]
) -> DenseLabels:
    view = image.view()
    view.flags.writeable = False
    ids.flags.writeable = False
    return DenseLabels(view, ids, dtype)


def _exchanged(
    graph: RegionGraph,
    labels: DenseLabels,
    regions: NDArray[np.int64],
    boxes: NDArray[np.int32],
    out: Rows,
    into: Rows,
    hulls: Hulls | None,
) -> RegionGraph:
    """Return `graph` with the boundaries of `into` in the place of those of `out`, in order."""
    removals = edge_positions(graph.edges, out.edges).tolist()
    insertions = edge_positions(graph.edges, into.edges).tolist()
    steps = sorted(
        [(row, 0, k) for k, row in enumerate(insertions)] + [(row, 1, 0) for row in removals]
    )

    def spliced(table: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        parts, at = [], 0  # whole slices: np.insert and np.delete copy rows one by one
        for row, is_removal, k in steps:
            parts.append(table[at:row])
            if not is_removal:
                parts.append(rows[k : k + 1])
            at = row + is_removal
        return np.concatenate([*parts, table[at:]])

    return dataclasses.replace(
        graph,
        superpixels=labels,
        edges=spliced(graph.edges, into.edges),
        regions=regions,
        boundaries=spliced(graph.boundaries, into.boundaries),
        boxes=boxes,
        hulls=hulls,
    )


def divide(graph: RegionGraph, superpixel: int, pieces: NDArray[Any]) -> Division:
    """Compute the division of a superpixel from the pixels around it.

    Parameters
    ----------
    graph : RegionGraph
        With its cues; it is not changed.
    superpixel : int
        Dense id of the superpixel to divide.
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
    old_dtype = graph.superpixels.dtype
    return Division(superpixel, graph.n_regions, ordered, ids, old, new, old_dtype, dtype)


def divided(graph: RegionGraph, superpixel: int, pieces: NDArray[Any]) -> RegionGraph:
    """Return a copy of `graph` with one superpixel divided.

    The result equals, row for row and up to numbering, `region_graph` of the changed labels. Use
    `divide` to revert the division, or to avoid a copy of a large label image.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 1, 1, 2]]), np.zeros((1, 4)))
    >>> divided(graph, 1, np.array([[1, 2, 2]])).superpixels.image
    array([[3, 1, 1, 2]], dtype=uint32)
    """
    return divide(graph, superpixel, pieces).apply(graph)


def kept_cues(graph: RegionGraph) -> Any:
    """Return the planes of the cues, each of the shape of the image; refuse a graph without.

    It is an array, or the cues on disk: take a part of it by ``[plane, *box]`` or ``[:, *box]``.
    """
    if graph.cues is None:
        raise InvalidInput(
            "`graph` has not kept its cues, which the division of a superpixel needs",
            argument="graph",
            remedy="divide it in the label image, as a graph of weights has no pixels to divide by"
            if graph.face_parts > 1
            else "build it again with region_graph(superpixels, cues, keep_cues=True)",
        )
    if are_on_disk(graph.cues):
        return graph.cues
    return graph.cues.reshape(-1, *graph.superpixels.image.shape)


def superpixel_box(graph: RegionGraph, superpixel: int) -> tuple[slice, ...]:
    """Return the bounding box of a superpixel; refuse a number that is not a dense id."""
    if not (is_whole(superpixel) and 1 <= superpixel <= graph.n_regions):
        raise InvalidInput(
            f"`superpixel` must be a dense id, 1 to {graph.n_regions}, got {superpixel!r}",
            argument="superpixel",
            remedy="look it up in graph.ids",
        )
    return box_slices(graph.boxes[superpixel])


def _largest_first(
    graph: RegionGraph, superpixel: int, box: tuple[slice, ...], pieces: Any
) -> NDArray[Any]:
    """Return the pieces renumbered 1, 2, ..., the largest first; refuse invalid pieces."""
    inside = graph.superpixels.image[box] == superpixel
    array = np.asarray(pieces)
    if array.shape != inside.shape or array.dtype.kind not in "iu":
        raise InvalidInput(
            "`pieces` must be whole numbers in the bounding box of the superpixel, shape "
            f"{inside.shape}, got {array.dtype} of shape {array.shape}",
            argument="pieces",
            remedy="take the box from graph.boxes",
        )
    if not np.array_equal(array != 0, inside):
        raise InvalidInput(
            "`pieces` must label every pixel of the superpixel and be 0 elsewhere in its box, but "
            f"{int(((array != 0) != inside).sum())} pixels differ",
            argument="pieces",
            remedy="set them to 0, or to the label of a piece",
        )
    labels, counts = np.unique(array[inside], return_counts=True)
    if len(labels) < 2:
        raise InvalidInput(
            f"`pieces` must hold two labels or more, got only {labels.tolist()}: nothing "
            "would be divided",
            argument="pieces",
            remedy="label the parts by different numbers",
        )
    # A stable sort: the first of the largest, then the others in their order.
    order = np.argsort(np.arange(len(labels)) != int(np.argmax(counts)), kind="stable")
    number = np.argsort(order) + 1
    out = np.zeros(array.shape, np.min_scalar_type(len(labels)))
    out[inside] = number[np.searchsorted(labels, array[inside])]
    return out


def _new_ids(labels: DenseLabels, n_new: int) -> tuple[NDArray[np.uint64], np.dtype[Any]]:
    """Return ids above the highest, and a type for them: the user's own if they fit."""
    highest = int(labels.ids[-1])
    if highest + n_new >= 2**64:
        raise InvalidInput(
            f"There is no id left for {n_new} new superpixels: the highest is {highest}, and "
            "ids end at 2**64 - 1",
            argument="graph",
            remedy="renumber the superpixels and build the graph again",
        )
    ids = np.array([highest + 1 + k for k in range(n_new)], np.uint64)
    fits = highest + n_new <= int(np.iinfo(labels.dtype).max)
    return ids, labels.dtype if fits else np.min_scalar_type(highest + n_new)


def division_window(graph: RegionGraph, box: tuple[slice, ...]) -> tuple[slice, ...]:
    """Return the part of the volume that the division of a superpixel reads, given its box."""
    reach = 2 if graph.dams else 1
    return tuple(
        slice(max(side.start - reach, 0), min(side.stop + reach, length))
        for side, length in zip(box, graph.superpixels.image.shape, strict=True)
    )


def _scanned(
    graph: RegionGraph,
    values: Any,
    superpixel: int,
    box: tuple[slice, ...],
    pieces: NDArray[Any],
) -> Rows:
    """Return the rows of the pieces, from a cut-out of labels and cues."""
    n_pieces = int(pieces.max())
    window = division_window(graph, box)
    starts = [side.start for side in window]
    labels = graph.superpixels.image[window].astype(np.int64)
    core = labels[tuple(slice(b.start - s, b.stop - s) for b, s in zip(box, starts, strict=True))]
    moved = pieces > 1
    core[moved] = pieces[moved].astype(np.int64) + graph.n_regions - 1
    # Dense ids of the cut-out. The two tables take five bytes per region of the graph, which is
    # far quicker than sorting the pixels.
    is_here = np.zeros(graph.n_regions + n_pieces, np.bool_)
    is_here[labels] = True
    is_here[0] = True
    here = np.flatnonzero(is_here)
    number = np.zeros(len(is_here), np.uint32)
    number[here] = np.arange(len(here))
    local = number[labels]
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


def _hulls_in(pieces: NDArray[Any], box: tuple[slice, ...]) -> Hulls:
    """Return the hulls of the pieces 1, 2, ... in a box."""
    n_pieces = int(pieces.max())
    origin = tuple(side.start for side in box)
    return hulls_of(pieces.astype(np.uint32), n_pieces + 1, origin).take(np.arange(n_pieces) + 1)


def _moved(
    regions: NDArray[np.int64], layout: Layout, offset: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rows of regions after a shift of their pixels by `offset`."""
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
