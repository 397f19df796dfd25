"""What is known of the superpixels themselves: neighbours, and rows of statistics to add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import inlined, kernel
from napari_agglo.graph import Division, RegionGraph


@dataclass(eq=False)
class Ground:
    """Superpixels, whom each touches, and their rows.

    Rows of superpixels and boundaries that came later, by dividing a superpixel, are kept apart:
    the graph itself may be mapped from a file, and is never copied.
    """

    graph: RegionGraph
    start: NDArray[np.int64]  # of the neighbours of each superpixel in `adjacent` ...
    stop: NDArray[np.int64]  # ... and where they end
    adjacent: NDArray[np.int32]  # neighbour, boundary ...
    n_adjacent: int  # ... of which so many are in use
    more_regions: NDArray[np.int64]
    more_boundaries: NDArray[np.int64]
    row_of: NDArray[np.int64]  # of each superpixel, counted through both tables

    @classmethod
    def of(cls, graph: RegionGraph) -> Ground:
        """Return the ground of a graph."""
        n = graph.n_regions
        start = np.zeros(n + 2, np.int64)
        adjacent = np.zeros((2 * graph.n_boundaries, 2), np.int32)
        _neighbours(np.ascontiguousarray(graph.edges), start, adjacent)
        return cls(
            graph=graph,
            start=start[:-1].copy(),
            stop=start[1:].copy(),
            adjacent=adjacent,
            n_adjacent=len(adjacent),
            more_regions=np.zeros((0, graph.layout.region_width), np.int64),
            more_boundaries=np.zeros((0, graph.layout.boundary_width), np.int64),
            row_of=np.arange(n + 1),
        )

    def divide(self, division: Division) -> None:
        """Exchange the boundaries of a superpixel for those of its pieces.

        Tables of superpixels have room for the pieces. Lists of neighbours that change are written
        anew behind the others, so that the old ones are found again.
        """
        pieces = division.members
        first_row = len(self.graph.regions) + len(self.more_regions)
        first_edge = len(self.graph.boundaries) + len(self.more_boundaries)
        self.row_of[pieces] = first_row + np.arange(len(pieces))
        self.more_regions = np.concatenate([self.more_regions, division.new.regions])
        self.more_boundaries = np.concatenate([self.more_boundaries, division.new.boundaries])
        touching: dict[int, list[tuple[int, int]]] = {}
        for k, (u, v) in enumerate(division.new.edges.tolist()):
            touching.setdefault(u, []).append((v, first_edge + k))
            touching.setdefault(v, []).append((u, first_edge + k))
        for superpixel in pieces.tolist():
            touching.setdefault(superpixel, [])
        for superpixel, new in touching.items():
            if superpixel not in pieces:
                old = self.adjacent[self.start[superpixel] : self.stop[superpixel]]
                new = [*map(tuple, old[old[:, 0] != division.superpixel].tolist()), *new]
            self._write(superpixel, np.array(new, np.int32).reshape(-1, 2))

    def _write(self, superpixel: int, neighbours: NDArray[np.int32]) -> None:
        n = self.n_adjacent + len(neighbours)
        if n > len(self.adjacent):
            more = np.zeros((max(n, len(self.adjacent)), 2), np.int32)
            self.adjacent = np.concatenate([self.adjacent, more])
        self.adjacent[self.n_adjacent : n] = neighbours
        self.start[superpixel] = self.n_adjacent
        self.stop[superpixel] = self.n_adjacent = n

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What kernels take."""
        return (
            self.start,
            self.stop,
            self.adjacent,
            self.graph.regions,
            self.more_regions,
            self.graph.boundaries,
            self.more_boundaries,
            self.row_of,
        )


@kernel
def _neighbours(edges: Any, start: Any, adjacent: Any) -> None:
    """Fill `start`, which is zero, and `adjacent`. No bounds checking."""
    n = start.size - 1
    for k in range(edges.shape[0]):
        for side in range(2):
            start[edges[k, side] + 1] += 1
    for node in range(n):
        start[node + 1] += start[node]
    # `start` of a node moves on to its end, which is the start of the next.
    for k in range(edges.shape[0]):
        for side in range(2):
            at = start[edges[k, side]]
            adjacent[at, 0] = edges[k, 1 - side]
            adjacent[at, 1] = k
            start[edges[k, side]] = at + 1
    for node in range(n, 0, -1):
        start[node] = start[node - 1]
    start[0] = 0


@inlined
def add_row(rows: Any, more: Any, at: Any, sums: Any, into: Any) -> None:
    """Add row `at`, wherever it is kept, to ``sums[into]``."""
    if at < rows.shape[0]:
        for column in range(sums.shape[1]):
            sums[into, column] += rows[at, column]
    else:
        for column in range(sums.shape[1]):
            sums[into, column] += more[at - rows.shape[0], column]


@inlined
def face_count(rows: Any, more: Any, at: Any, axis: Any) -> Any:
    """Faces of a boundary across an axis."""
    if at < rows.shape[0]:
        return rows[at, axis]
    return more[at - rows.shape[0], axis]
