"""One segment taken out of the graph: its superpixels, the boundaries between them, its seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.graph import RegionGraph, edges_within
from napari_agglo.volumes import DenseLabels

Group = NDArray[np.int64]  # positions within a segment, ascending


@dataclass(frozen=True, eq=False)
class Segment:
    """The superpixels of a segment as positions 0..k - 1, and what lies between them.

    Parameters
    ----------
    members : ndarray of int64, shape (k,)
        Dense ids, ascending.
    rows : ndarray of int64, shape (m,)
        Rows of the graph's boundaries within the segment, ascending.
    ends : ndarray of int64, shape (m, 2)
        Positions of the superpixels of each of these boundaries.
    """

    members: NDArray[np.int64]
    rows: NDArray[np.int64]
    ends: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of superpixels."""
        return len(self.members)

    def parts(self, owner: NDArray[np.int64], n_parts: int) -> list[NDArray[np.int64]]:
        """Return the dense ids of each part, given the part of each position."""
        return [self.members[owner == part] for part in range(n_parts)]


def segment_of(graph: RegionGraph, members: Any) -> Segment:
    """Take a segment out of `graph`, in a time that depends on the segment alone."""
    given = np.asarray(members)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
        raise InvalidInput(
            f"`members` must be a list of dense ids of superpixels, got {given.dtype} of shape "
            f"{given.shape}."
        )
    dense = np.unique(given).astype(np.int64)
    if dense[0] < 1 or dense[-1] > graph.n_regions:
        raise InvalidInput(
            f"`members` must be dense ids of superpixels, 1 to {graph.n_regions}; got "
            f"{dense[0]} to {dense[-1]}."
        )
    rows = edges_within(graph.edges, dense)
    return Segment(dense, rows, np.searchsorted(dense, graph.edges[rows]))


def induced(graph: RegionGraph, segment: Segment) -> RegionGraph:
    """Return the graph of a segment alone: the same rows, dense ids 1..k, and no picture of it."""
    taken = np.concatenate([[0], segment.members])
    numbers = np.arange(1, segment.size + 1, dtype=np.uint32)
    return dataclasses.replace(
        graph,
        superpixels=DenseLabels(numbers, graph.ids[taken], graph.superpixels.dtype),
        edges=segment.ends + 1,
        regions=graph.regions[taken],
        boundaries=graph.boundaries[segment.rows],
        boxes=graph.boxes[taken],
        cues=None,
    )


def pieces_of(n_nodes: int, ends: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
    """Return how many connected pieces there are, and which one each node is in."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(ends), np.int8)
    matrix = coo_array((ones, (ends[:, 0], ends[:, 1])), shape=(n_nodes, n_nodes)).tocsr()
    count, piece = connected_components(matrix, directed=False)
    return int(count), piece.astype(np.int64)


def check_seeds(
    graph: RegionGraph, segment: Segment, seeds: Sequence[Sequence[int]]
) -> list[Group]:
    """Return the positions of the seeds of each group; refuse what cannot be seeds."""
    if len(seeds) < 2:
        raise InvalidInput(
            f"`seeds` must be two groups of superpixels or more, got {len(seeds)}; mark what is to "
            "stay apart with different groups."
        )
    owner: dict[int, int] = {}
    for number, group in enumerate(seeds, start=1):
        if len(group) == 0:
            raise InvalidInput(
                f"Group {number} of `seeds` is empty; mark a superpixel, or leave the group out."
            )
        for seed in group:
            if not is_whole(seed):
                raise InvalidInput(f"`seeds` must hold dense ids of superpixels, got {seed!r}.")
            at = int(np.searchsorted(segment.members, seed))
            if at == segment.size or segment.members[at] != seed:
                raise InvalidInput(
                    f"Superpixel {named(graph, int(seed))} in group {number} of `seeds` is not in "
                    "the segment to be cut; take that seed away, or activate the segment that "
                    "holds it."
                )
            if owner.setdefault(at, number) != number:
                raise InvalidInput(
                    f"Superpixel {named(graph, int(seed))} is in group {owner[at]} and in group "
                    f"{number} of `seeds`; take one of the seeds away, or divide the superpixel."
                )
    groups = range(1, len(seeds) + 1)
    return [np.array(sorted(at for at, g in owner.items() if g == k), np.int64) for k in groups]


def require_connected(segment: Segment) -> None:
    """Refuse a segment in pieces, such as a merge of segments that do not touch leaves."""
    count, _ = pieces_of(segment.size, segment.ends)
    if count > 1:
        raise InvalidInput(
            f"The segment is in {count} pieces that do not touch, so seeds in it cannot be told "
            "apart by its boundaries; undo the merge that joined them, or detach a piece first."
        )


def named(graph: RegionGraph, dense: int) -> int:
    """Return the user's id of a superpixel; what is none stays as it is."""
    return int(graph.ids[dense]) if 0 <= dense <= graph.n_regions else dense
