"""A division: what one superpixel in pieces changes in a graph, and how to take it back.

It is a value that knows what it changes and what stood there before, a few rows and the pieces, so
that a thousand of them can be kept and each taken back, bit for bit. The label image is the one
large thing: `apply` and `revert` copy it, unless they are given a writable array that they may
change in its place. Whoever divides often makes such a copy once and owns it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph._lookup import edge_positions
from napari_agglo.graph._region_graph import RegionGraph
from napari_agglo.volumes import DenseLabels


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a superpixel or of its pieces, and of all their boundaries in order."""

    regions: NDArray[np.int64]
    boxes: NDArray[np.int32]
    edges: NDArray[np.int64]
    boundaries: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Division:
    """One superpixel in pieces: what changes in a graph, and what was there before.

    Parameters
    ----------
    superpixel : int
        Dense id of what is divided; the largest piece keeps it, and the user's id with it.
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
        """Return the dense id of each label of the array that was divided by."""
        given, first = np.unique(labels, return_index=True)
        numbers = self.pieces.reshape(-1)[first]
        members = self.members.tolist()
        pairs = zip(given.tolist(), numbers.tolist(), strict=True)
        return {label: members[number - 1] for label, number in pairs if number > 0}

    @property
    def box(self) -> tuple[slice, ...]:
        """Where the superpixel lies."""
        return box_slices(self.old.boxes[0])

    def apply(self, graph: RegionGraph, image: NDArray[np.uint32] | None = None) -> RegionGraph:
        """Return `graph` with the superpixel divided.

        Parameters
        ----------
        graph : RegionGraph
            The graph that was divided, or an equal one; its tables are not changed.
        image : ndarray of uint32, optional
            A writable array that holds the label image of `graph`: it is changed in place and
            becomes the image of the new graph; every other graph on this array is then out of
            date, until `revert`. By default the image is copied.
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
        return _exchanged(graph, labels, regions, boxes, self.old, self.new)

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
        return _exchanged(graph, labels, regions, boxes, self.new, self.old)

    def _check(self, graph: RegionGraph, expected: int, verb: str) -> None:
        if graph.n_regions != expected:
            raise InvalidInput(
                f"`graph` must have {expected} regions to {verb} this division, got "
                f"{graph.n_regions}; take divisions back in the opposite order."
            )

    def _painted(
        self, graph: RegionGraph, image: NDArray[np.uint32] | None, where: Any, old: Any, new: Any
    ) -> NDArray[np.uint32]:
        """Return the image of `graph`, or the one in its place, with `new` for `old`."""
        shape = graph.superpixels.image.shape
        if image is None:
            image = graph.superpixels.image.copy()
        elif image.shape != shape or image.dtype != np.uint32 or not image.flags.writeable:
            kind = "a writable" if image.flags.writeable else "a read-only"
            raise InvalidInput(
                f"`image` must be a writable array of uint32 of shape {shape}, got {kind} one of "
                f"{image.dtype} of shape {image.shape}; pass graph.superpixels.image.copy()."
            )
        box = image[self.box]
        if not (box[where] == old).all():
            raise InvalidInput(
                "`image` does not hold the labels of `graph`; pass graph.superpixels.image.copy()."
            )
        box[where] = new
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
) -> RegionGraph:
    """Return `graph` with the boundaries of `into` in the place of those of `out`, in order."""
    gone = edge_positions(graph.edges, out.edges).tolist()
    come = edge_positions(graph.edges, into.edges).tolist()
    steps = sorted([(row, 0, k) for k, row in enumerate(come)] + [(row, 1, 0) for row in gone])

    def spliced(table: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
        parts, at = [], 0
        for row, is_gone, k in steps:
            parts.append(table[at:row])
            if not is_gone:
                parts.append(rows[k : k + 1])
            at = row + is_gone
        return np.concatenate([*parts, table[at:]])

    return dataclasses.replace(
        graph,
        superpixels=labels,
        edges=spliced(graph.edges, into.edges),
        regions=regions,
        boundaries=spliced(graph.boundaries, into.boundaries),
        boxes=boxes,
    )
