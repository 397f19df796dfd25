"""Seeds of one group, joined along the cheapest paths, so that the group is one piece.

A path is cheap where ties are strong. For all seeds of a group at once this is the Steiner tree of
Mehlhorn (1988): one search from all seeds, and a spanning tree over where their basins meet. Its
cost hardly grows with the number of seeds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.session._cuts._segment import Group


def widened(
    n_nodes: int, ends: NDArray[np.int64], cost: NDArray[np.float64], groups: list[Group]
) -> list[Group]:
    """Return each group with what joins its seeds; no two of them share a node.

    Paths keep clear of the seeds of other groups, and of their paths. If a group finds no way left,
    it is asked first in another round; if it finds none even then, there is none, or they cross.
    """
    # A cost of 0 says that nothing ties the two together: very far, but a way all the same.
    least = cost[cost > 0].min(initial=np.inf)
    length = 1.0 / np.maximum(cost, least / 1e6 if np.isfinite(least) else 1.0)
    order = list(range(len(groups)))
    for _ in range(len(groups) + 1):
        found: dict[int, Group] = {}
        failed = None
        for k in order:
            closed = np.zeros(n_nodes, np.bool_)
            for other, seeds in enumerate(groups):
                if other != k:
                    closed[found.get(other, seeds)] = True
            tree = _steiner_tree(n_nodes, ends, length, groups[k], closed)
            if tree is None:
                failed = k
                break
            found[k] = tree
        if failed is None:
            return [found[k] for k in range(len(groups))]
        if order[0] == failed:
            break
        order.remove(failed)
        order.insert(0, failed)
    first = order[0]
    closed = np.zeros(n_nodes, np.bool_)
    closed[np.concatenate([seeds for k, seeds in enumerate(groups) if k != first])] = True
    if _steiner_tree(n_nodes, ends, length, groups[first], closed) is None:
        raise InvalidInput(
            f"The seeds of group {first + 1} cannot be joined within the segment without passing "
            "through another group; give those on the far side a group of their own, or cut in "
            "several steps."
        )
    raise InvalidInput(
        f"The seeds of group {first + 1} cannot be joined without crossing the paths that join "
        "those of another group; put seeds along the way that each should take, or cut in several "
        "steps."
    )


def _steiner_tree(
    n_nodes: int,
    ends: NDArray[np.int64],
    length: NDArray[np.float64],
    seeds: Group,
    closed: NDArray[np.bool_],
) -> Group | None:
    """Return the nodes of a short tree that joins the seeds and keeps off what is closed."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

    if len(seeds) == 1:
        return seeds
    is_open = ~closed[ends].any(axis=1)
    u, v, w = ends[is_open, 0], ends[is_open, 1], length[is_open]
    matrix = coo_array((w, (u, v)), shape=(n_nodes, n_nodes)).tocsr()
    far, previous, source = dijkstra(
        matrix, directed=False, indices=seeds, min_only=True, return_predecessors=True
    )
    # Where the basins of two seeds meet: for each pair of seeds the shortest way across.
    met = np.isfinite(far[u]) & np.isfinite(far[v]) & (source[u] != source[v])
    u, v, w = u[met], v[met], far[u[met]] + w[met] + far[v[met]]
    low = np.searchsorted(seeds, np.minimum(source[u], source[v]))
    high = np.searchsorted(seeds, np.maximum(source[u], source[v]))
    order = np.lexsort((v, u, w, high, low))
    key = low[order] * len(seeds) + high[order]
    order = order[np.unique(key, return_index=True)[1]]
    shape = (len(seeds), len(seeds))
    # Ranks for lengths: all different and none 0, which a sparse matrix takes for no entry.
    rank = np.empty(len(order))
    rank[np.argsort(w[order], kind="stable")] = np.arange(1, len(order) + 1)
    tree = minimum_spanning_tree(coo_array((rank, (low[order], high[order])), shape=shape).tocsr())
    if tree.nnz < len(seeds) - 1:
        return None
    bridges = order[np.isin(rank, tree.data)]
    nodes = set(seeds.tolist())
    for start in (*u[bridges].tolist(), *v[bridges].tolist()):
        node = start
        while node not in nodes:
            nodes.add(node)
            node = int(previous[node])
    return np.array(sorted(nodes), np.int64)
