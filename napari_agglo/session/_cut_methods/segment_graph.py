"""A segment as a graph of its own: its superpixels, the boundaries between them, its seeds."""

from __future__ import annotations

import dataclasses
import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph, edges_within
from napari_agglo.volumes import DenseLabels

Group = NDArray[np.int64]  # positions within a segment, ascending


@dataclass(frozen=True, eq=False)
class SegmentGraph:
    """The superpixels of a segment as positions 0..k - 1, and the boundaries between them."""

    members: NDArray[np.int64]  # dense ids, ascending, shape (k,)
    rows: NDArray[np.int64]  # boundaries of the graph within the segment, ascending, shape (m,)
    ends: NDArray[np.int64]  # positions of the two superpixels of each boundary, shape (m, 2)

    @property
    def size(self) -> int:
        """Number of superpixels."""
        return len(self.members)

    def parts(self, owner: NDArray[np.int64], n_parts: int) -> list[NDArray[np.int64]]:
        """Return the dense ids of each part, given the part of each position."""
        return [self.members[owner == part] for part in range(n_parts)]


def segment_of(graph: RegionGraph, members: Any) -> SegmentGraph:
    """Take a segment, given by dense ids, out of `graph`; the time depends on the segment alone."""
    dense = np.unique(members).astype(np.int64)
    rows = edges_within(graph.edges, dense)
    return SegmentGraph(dense, rows, np.searchsorted(dense, graph.edges[rows]))


def induced(graph: RegionGraph, segment: SegmentGraph) -> RegionGraph:
    """Return the region graph of a segment alone: the same rows, dense ids 1..k, no label image."""
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
        hulls=None if graph.hulls is None else graph.hulls.take(taken),
    )


def pieces_of(n_nodes: int, ends: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
    """Return the number of connected pieces, and the piece of each node."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(ends), np.int8)
    matrix = coo_array((ones, (ends[:, 0], ends[:, 1])), shape=(n_nodes, n_nodes)).tocsr()
    count, piece = connected_components(matrix, directed=False)
    return int(count), piece.astype(np.int64)


def check_seeds(
    graph: RegionGraph, members: NDArray[Any], seeds: Sequence[Sequence[int]]
) -> list[Group]:
    """Return the positions of the seeds of each group; refuse groups that cannot be cut apart.

    `members` are the superpixels of the segment, ascending.
    """
    if len(seeds) < 2:
        raise InvalidInput(
            f"`seeds` must be two groups of superpixels or more, got {len(seeds)}",
            argument="seeds",
            remedy="put a seed into each part, in groups of their own",
        )
    owner: dict[int, int] = {}
    for number, group in enumerate(seeds, start=1):
        if len(group) == 0:
            raise InvalidInput(
                f"Group {number} of `seeds` is empty",
                argument="seeds",
                remedy="mark a superpixel, or leave the group out",
            )
        for seed in group:
            at = int(np.searchsorted(members, seed))
            if at == len(members) or members[at] != seed:
                raise InvalidInput(
                    f"Superpixel {graph.ids[seed]} in group {number} of `seeds` is not in the "
                    "segment to be cut",
                    argument="seeds",
                    remedy="remove that seed, or cut the segment that contains it",
                )
            if owner.setdefault(at, number) != number:
                raise InvalidInput(
                    f"Superpixel {graph.ids[seed]} is in group {owner[at]} and in group {number} "
                    "of `seeds`",
                    argument="seeds",
                    remedy="remove one of the seeds, or cut through the superpixel with `points`",
                )
    groups = range(1, len(seeds) + 1)
    return [np.array(sorted(at for at, g in owner.items() if g == k), np.int64) for k in groups]


def segment_with_seeds(
    graph: RegionGraph, members: Any, seeds: Sequence[Sequence[int]]
) -> tuple[SegmentGraph, list[Group]]:
    """Return a segment and the positions of its seeds.

    Refuse a segment in pieces, which is the result of a forced merge.
    """
    segment = segment_of(graph, members)
    groups = check_seeds(graph, segment.members, seeds)
    count, _ = pieces_of(segment.size, segment.ends)
    if count > 1:
        raise InvalidInput(
            f"The segment is in {count} pieces that do not touch, so its boundaries do not "
            "separate the seeds",
            argument="segment",
            remedy="undo the merge that joined them, or detach a piece first",
        )
    return segment, groups


def detached(graph: RegionGraph, members: Any, superpixels: Any) -> list[NDArray[np.int64]]:
    """Take superpixels out of a segment, which may be in pieces.

    Return the connected pieces of the superpixels that stay, largest first (in pixels), then those
    of the superpixels that leave, likewise: a part of a cut is connected.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3, 4]]), np.zeros((1, 4)))
    >>> [part.tolist() for part in detached(graph, [1, 2, 3, 4], [3])]
    [[1, 2], [4], [3]]
    """
    leaving, staying = np.unique(superpixels), np.setdiff1d(members, superpixels)
    if leaving.size == 0:
        raise InvalidInput(
            "`superpixels` is empty",
            argument="superpixels",
            remedy="choose the superpixels to take out of the segment",
        )
    outside = np.setdiff1d(leaving, members)
    if outside.size:
        raise InvalidInput(
            f"Superpixel {graph.ids[outside[0]]} is not in the segment, so it cannot be detached",
            argument="superpixels",
            remedy="detach it from the segment that contains it",
        )
    if staying.size == 0:
        raise InvalidInput(
            "All superpixels of the segment would be detached, which changes nothing",
            argument="superpixels",
            remedy="leave out those that should stay",
        )
    return connected_pieces(graph, staying) + connected_pieces(graph, leaving)


def connected_pieces(graph: RegionGraph, members: Any) -> list[NDArray[np.int64]]:
    """Return the connected pieces of a set of superpixels, the largest (in pixels) first."""
    segment = segment_of(graph, members)
    count, piece = pieces_of(segment.size, segment.ends)
    sizes = np.bincount(piece, graph.sizes[segment.members], minlength=count)
    pieces = segment.parts(piece, count)
    return [pieces[k] for k in np.argsort(-sizes, kind="stable")]


Part = NDArray[np.int64]


def piecewise(
    graph: RegionGraph,
    members: Any,
    seeds: Sequence[Sequence[int]],
    cut: Callable[[Part, list[list[int]]], Sequence[Part]],
) -> list[Part]:
    """Cut a set of superpixels that may be in pieces; a part may be in pieces as well.

    A piece with seeds of one group belongs to that group; one with seeds of several is cut between
    them by `cut`, which returns the part of each group. A piece without seeds goes to the largest
    part.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 0, 2, 2, 0, 3]]), np.zeros((1, 6)))
    >>> [part.tolist() for part in piecewise(graph, [1, 2, 3], [[1], [2]], lambda m, s: [])]
    [[1], [2, 3]]
    """
    groups: list[list[Part]] = [[] for _ in seeds]
    rest = []
    for piece in connected_pieces(graph, members):
        inside = set(piece.tolist())
        here = {k: [s for s in group if s in inside] for k, group in enumerate(seeds)}
        present = [k for k, group in here.items() if group]
        if not present:
            rest.append(piece)
        elif len(present) == 1:
            groups[present[0]].append(piece)
        else:
            parts = cut(piece, [here[k] for k in present])
            for k, part in zip(present, parts, strict=True):
                groups[k].append(part)
    sizes = [int(graph.sizes[np.concatenate(parts)].sum()) for parts in groups]
    groups[int(np.argmax(sizes))] += rest
    return [np.sort(np.concatenate(parts)) for parts in groups]


def attached(
    ends: NDArray[np.int64],
    cost: NDArray[np.float64],
    unit: NDArray[np.int64],
    owner: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the part of each unit, where units without one join the part of the strongest tie.

    The unit of the strongest tie is first, and a unit that joined a part ties others to it; equal
    ties are ordered by unit, then by part. A unit without a tie to any part keeps -1.

    `cost` is the strength of each boundary, `unit` the unit of each node, `owner` the part of each
    unit, or -1.
    """
    pairs = unit[ends]
    ties: dict[int, dict[int, float]] = defaultdict(dict)
    apart = (pairs[:, 0] != pairs[:, 1]) & (owner[pairs] < 0).any(axis=1)
    for (a, b), strength in zip(pairs[apart].tolist(), cost[apart].tolist(), strict=True):
        ties[a][b] = ties[a].get(b, 0.0) + strength
        ties[b][a] = ties[b].get(a, 0.0) + strength
    out = owner.copy()
    strength_to: dict[tuple[int, int], float] = defaultdict(float)
    heap: list[tuple[float, int, int]] = []

    def offer(to: int) -> None:
        part = int(out[to])
        for other, strength in ties[to].items():
            if out[other] < 0:
                strength_to[other, part] += strength
                heapq.heappush(heap, (-strength_to[other, part], other, part))

    for owned in [u for u in list(ties) if owner[u] >= 0]:
        offer(owned)
    while heap:
        _, free, part = heapq.heappop(heap)  # an outdated, weaker entry comes after the present one
        if out[free] < 0:
            out[free] = part
            offer(free)
    return out
