"""Constraints as edges: what must not merge is a boundary that is never offered to the policy.

A cannot-link between two superpixels that do not touch becomes an edge without a face. When regions
merge, their parallel edges merge too, and what is forbidden to a part is forbidden to the whole, so
that the constraint follows its superpixels through every merge at no cost to the loop.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.graph import RegionGraph


def constrained_edges(
    graph: RegionGraph,
    cannot_link: Iterable[tuple[int, int]] | None,
    locked: Iterable[int] | None,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the edges of `graph` and of what touches nowhere, and which of them are forbidden."""
    edges = graph.edges
    forbidden: NDArray[np.bool_] = np.zeros(len(edges), np.bool_)
    if locked is not None:
        is_locked = np.zeros(graph.n_regions + 1, np.bool_)
        if not isinstance(locked, Iterable):
            raise InvalidInput(f"`locked` must be a list of ids of superpixels, got {locked!r}.")
        is_locked[_dense(graph, list(locked), "locked")] = True
        forbidden = is_locked[edges[:, 0]] | is_locked[edges[:, 1]]
    if cannot_link is not None:
        pairs = _pairs(graph, cannot_link)
        n = np.int64(graph.n_regions + 1)
        keys = np.unique(pairs[:, 0] * n + pairs[:, 1])
        known = edges[:, 0] * n + edges[:, 1]  # ascending, as the edges of a graph are
        at = np.minimum(np.searchsorted(known, keys), max(len(known) - 1, 0))
        exists = known[at] == keys if len(known) else np.zeros(len(keys), np.bool_)
        forbidden[at[exists]] = True
        new = keys[~exists]
        edges = np.concatenate([edges, np.stack([new // n, new % n], axis=1)])
        forbidden = np.concatenate([forbidden, np.ones(len(new), np.bool_)])
    return edges, forbidden


def _pairs(graph: RegionGraph, cannot_link: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    wanted = "`cannot_link` must hold pairs of two different superpixels, such as [(3, 8)]"
    try:
        given = [tuple(pair) for pair in cannot_link]
    except TypeError:
        raise InvalidInput(f"{wanted}; got {cannot_link!r}.") from None
    for pair in given:
        if len(pair) != 2 or pair[0] == pair[1]:
            raise InvalidInput(f"{wanted}; got {pair!r}, leave that one out.")
    flat = [superpixel for pair in given for superpixel in pair]
    return np.sort(_dense(graph, flat, "cannot_link").reshape(-1, 2), axis=1)


def _dense(graph: RegionGraph, ids: list[int], name: str) -> NDArray[np.int64]:
    """Dense ids of the user's; refuse 0 and ids that the image does not have."""
    for superpixel in ids:
        if not (is_whole(superpixel) and 0 < superpixel < 2**64):
            raise InvalidInput(f"`{name}` must hold ids of superpixels, got {superpixel!r}.")
    wanted = np.array(ids, np.uint64)
    at = np.minimum(np.searchsorted(graph.ids, wanted), graph.n_regions)
    missing = wanted[graph.ids[at] != wanted]
    if len(missing):
        raise InvalidInput(
            f"`{name}` names {len(missing)} superpixels that the image does not have, "
            f"the first being {missing[0]}; take ids from the label image."
        )
    return at.astype(np.int64)
