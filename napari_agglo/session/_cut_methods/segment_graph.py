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

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.graph import RegionGraph, edges_within
from napari_agglo.volumes import DenseLabels

Group = NDArray[np.int64]  # positions within a segment, ascending


@dataclass(frozen=True, eq=False)
class SegmentGraph:
    """The superpixels of a segment as positions 0..k - 1, and the boundaries between them.

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


def segment_of(graph: RegionGraph, members: Any) -> SegmentGraph:
    """Take a segment out of `graph`, in a time that depends on the segment alone."""
    array = np.asarray(members)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"`members` must be a list of dense ids of superpixels, got {array.dtype} of shape "
            f"{array.shape}",
            argument="members",
            remedy="take the members of a segment",
        )
    dense = np.unique(array).astype(np.int64)
    if dense[0] < 1 or dense[-1] > graph.n_regions:
        raise InvalidInput(
            f"`members` must be dense ids of superpixels, 1 to {graph.n_regions}; got "
            f"{dense[0]} to {dense[-1]}",
            argument="members",
            remedy="look them up in graph.ids",
        )
    rows = edges_within(graph.edges, dense)
    return SegmentGraph(dense, rows, np.searchsorted(dense, graph.edges[rows]))


def induced(graph: RegionGraph, segment: SegmentGraph) -> RegionGraph:
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
    graph: RegionGraph, segment: SegmentGraph, seeds: Sequence[Sequence[int]]
) -> list[Group]:
    """Return the positions of the seeds of each group; refuse groups that cannot be cut apart."""
    if len(seeds) < 2:
        raise InvalidInput(
            f"`seeds` must be two groups of superpixels or more, got {len(seeds)}",
            argument="seeds",
            remedy="mark what is to stay apart with different groups",
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
            if not is_whole(seed):
                raise InvalidInput(
                    f"`seeds` must hold dense ids of superpixels, got {seed!r}",
                    argument="seeds",
                    remedy="look them up in graph.ids",
                )
            at = int(np.searchsorted(segment.members, seed))
            if at == segment.size or segment.members[at] != seed:
                raise InvalidInput(
                    f"Superpixel {named(graph, int(seed))} in group {number} of `seeds` is not in "
                    "the segment to be cut",
                    argument="seeds",
                    remedy="take that seed away, or activate the segment that holds it",
                )
            if owner.setdefault(at, number) != number:
                raise InvalidInput(
                    f"Superpixel {named(graph, int(seed))} is in group {owner[at]} and in group "
                    f"{number} of `seeds`",
                    argument="seeds",
                    remedy="take one of the seeds away, or divide the superpixel",
                )
    groups = range(1, len(seeds) + 1)
    return [np.array(sorted(at for at, g in owner.items() if g == k), np.int64) for k in groups]


def segment_with_seeds(
    graph: RegionGraph, members: Any, seeds: Sequence[Sequence[int]]
) -> tuple[SegmentGraph, list[Group]]:
    """Return a segment and the positions of its seeds; refuse a segment in pieces.

    Such a segment is left by a merge of segments that do not touch.
    """
    segment = segment_of(graph, members)
    groups = check_seeds(graph, segment, seeds)
    count, _ = pieces_of(segment.size, segment.ends)
    if count > 1:
        raise InvalidInput(
            f"The segment is in {count} pieces that do not touch, so seeds in it cannot be told "
            "apart by its boundaries",
            argument="segment",
            remedy="undo the merge that joined them, or detach a piece first",
        )
    return segment, groups


def named(graph: RegionGraph, dense: int) -> int:
    """Return the user's id of a superpixel; another number is returned as it is."""
    return int(graph.ids[dense]) if 0 <= dense <= graph.n_regions else dense


def detached(graph: RegionGraph, members: Any, superpixels: Any) -> list[NDArray[np.int64]]:
    """Take superpixels out of a segment.

    Both the superpixels that leave and those that stay fall into their connected pieces, for a part
    of a cut is connected: without a bridge its two banks are apart. The preview shows it.

    Return the pieces that stay, largest first (in pixels), then those that leave, likewise.
    `members` may be in pieces.

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
        raise InvalidInput(
            "`superpixels` is empty",
            argument="superpixels",
            remedy="choose the superpixels that are to leave",
        )
    outside = np.setdiff1d(leaving, segment.members)
    if outside.size:
        raise InvalidInput(
            f"Superpixel {named(graph, int(outside[0]))} is not in the segment, so it cannot leave",
            argument="superpixels",
            remedy="activate the segment that holds it",
        )
    if leaving.size == segment.size:
        raise InvalidInput(
            "All superpixels of the segment would leave it, which changes nothing",
            argument="superpixels",
            remedy="leave out those that are to stay",
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


Part = NDArray[np.int64]


def piecewise(
    graph: RegionGraph,
    members: Any,
    seeds: Sequence[Sequence[int]],
    cut: Callable[[Part, list[list[int]]], Sequence[Part]],
) -> list[Part]:
    """Cut superpixels that may be in pieces.

    A piece with seeds of one group is that group's; one with seeds of several is cut between them.
    A piece without seeds stays with the largest part.

    `cut` returns the part of each group of seeds in a connected piece. No group is empty; a part
    may be in pieces.

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
    """Return the part of each unit, where those without one join the part of the strongest tie.

    The unit that is tied most strongly goes first, and a unit that joined a part ties others to it;
    equal ties go by unit, then by part. Units that nothing ties to a part keep -1.

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
        _, free, part = heapq.heappop(heap)  # an entry of less than the present strength comes late
        if out[free] < 0:
            out[free] = part
            offer(free)
    return out
