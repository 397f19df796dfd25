"""A partition as the arrays of webKnossos' AgglomerateAttachment, version 4.

There a superpixel is called a segment and a segment an agglomerate; both are numbered from 1
without gaps, and 0 is the background. https://docs.webknossos.org/webknossos-py/spec
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph

NAMES = (
    "segment_to_agglomerate",
    "agglomerate_to_segments_offsets",
    "agglomerate_to_segments",
    "agglomerate_to_edges_offsets",
    "agglomerate_to_edges",
    "agglomerate_to_affinities",
    "agglomerate_to_positions",
)


def agglomerate_arrays(
    graph: RegionGraph,
    lut: NDArray[np.uint64],
    affinities: NDArray[np.float64],
    pixels: NDArray[np.int32],
) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of an attachment by their names.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels and their boundaries.
    lut : ndarray of uint64, shape (n + 1,)
        Segment id of each superpixel.
    affinities : ndarray of float64, shape (m,)
        How much speaks for merging, for each boundary of the graph.
    pixels : ndarray of int32, shape (n + 1, ndim)
        A pixel of each superpixel.
    """
    n = graph.n_regions
    _, first, number = np.unique(lut[1:], return_index=True, return_inverse=True)
    # Agglomerates are in the order of their smallest superpixel.
    agglomerate = np.argsort(np.argsort(first))[number] + 1
    offsets = _offsets(agglomerate, len(first))
    order = np.argsort(agglomerate, kind="stable")
    local = np.empty(n + 1, np.int64)
    local[order + 1] = np.arange(n) - offsets[agglomerate[order]]
    owner = np.concatenate([[0], agglomerate])
    edges, weights = _connected_edges(graph, owner, affinities)
    belongs = owner[edges[:, 0]]
    in_order = np.lexsort((edges[:, 1], edges[:, 0], belongs))
    ids = np.uint32 if n < 2**32 else np.uint64
    xyz = np.zeros((n, 3), np.int32)  # a plane is at z = 0
    xyz[:, : pixels.shape[1]] = pixels[order + 1, ::-1]
    arrays = (
        owner.astype(np.uint64),
        offsets.astype(np.uint64),
        (order + 1).astype(ids),
        _offsets(belongs, len(first)).astype(np.uint64),
        local[edges[in_order]].astype(ids),
        weights[in_order].astype(np.float32),
        xyz,
    )
    return dict(zip(NAMES, arrays, strict=True))


def _offsets(belongs: NDArray[np.int64], n_agglomerates: int) -> NDArray[np.int64]:
    """Return where the entries of each agglomerate begin, and after the last one where they end."""
    counts = np.bincount(belongs, minlength=n_agglomerates + 1)
    return np.concatenate([[0], np.cumsum(counts)])


def _connected_edges(
    graph: RegionGraph, owner: NDArray[np.int64], affinities: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the boundaries inside agglomerates, and what ties together those in several pieces.

    Readers take the connected components of the edges for the agglomerates, so one that a person
    merged across a gap would fall apart; a strong edge holds the pieces together.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    inside = owner[graph.edges[:, 0]] == owner[graph.edges[:, 1]]
    edges = graph.edges[inside]
    n = graph.n_regions
    links = coo_array((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), (n + 1, n + 1))
    _, piece = connected_components(links, directed=False)
    _, smallest = np.unique(piece[1:], return_index=True)
    smallest = np.sort(smallest + 1)
    _, first, number = np.unique(owner[smallest], return_index=True, return_inverse=True)
    ties = np.stack([smallest[first[number]], smallest], axis=1)
    ties = ties[ties[:, 0] != ties[:, 1]]
    strong = np.full(len(ties), max(1.0, float(affinities.max(initial=1.0))))
    return np.concatenate([edges, ties]), np.concatenate([affinities[inside], strong])
