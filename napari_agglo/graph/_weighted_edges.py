"""Region graphs with weights of the user: from networkx, or from arrays of edges."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import ConvertTo, InvalidInput, SetOption
from napari_agglo.graph._build_graph import region_graph
from napari_agglo.graph._region_graph import Layout, RegionGraph
from napari_agglo.volumes import DenseLabels, VoxelSize, dense_labels, voxel_size_of

if TYPE_CHECKING:
    import networkx as nx

# The mean of a boundary is ``sum / (255 * 2 * faces)`` in whole numbers, so a weight w of contact c
# becomes ``faces = c * parts`` and ``sum = round(w * 510 * parts) * c``: the mean is the weight, to
# one part in ``510 * parts``. The number of parts is a power of two, large enough that weights keep
# their digits and small enough that sums over all edges stay exact.
_MOST_PARTS = 1 << 24
_PIXELS = 2 * 255  # of one face, at their highest value


def from_edges(
    edges: Any,
    weights: Any,
    *,
    contacts: Any = None,
    superpixels: Any = None,
    spacing: Any = None,
    unit: str | None = None,
) -> RegionGraph:
    """Return the graph of edges and weights; see `RegionGraph.from_edges`."""
    pairs, values = _checked_edges(edges), _checked_weights(weights)
    n_edges = len(pairs)
    sizes = np.ones(n_edges, np.int64) if contacts is None else _checked_contacts(contacts)
    for name, array in (("weights", values), ("contacts", sizes)):
        if len(array) != n_edges:
            raise InvalidInput(
                f"`{name}` must have a value for each of {n_edges} edges, got {len(array)}",
                argument=name,
                remedy="pass as many as there are edges",
            )
    regions, ends = _regions_of(pairs, superpixels, spacing, unit)
    most = max(float(values.max(initial=1.0)), 1.0) * _PIXELS
    room = min(2.0**52 / int(sizes.max(initial=1)), 2.0**62 / max(int(sizes.sum()), 1)) / most
    if room < 1:
        raise InvalidInput(
            f"`weights` reach {values.max():g}, too much for exact sums",
            argument="weights",
            remedy="scale them down",
        )
    parts = min(1 << int(np.log2(room)), _MOST_PARTS)
    layout = Layout(regions.layout.ndim, 1, bins=0, powers=1)
    rows = np.zeros((n_edges, layout.boundary_width), np.int64)
    rows[:, 0] = sizes * parts
    rows[:, layout.boundary_cues] = np.round(values * (_PIXELS * parts)).astype(np.int64) * sizes
    unique, inverse = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True)
    boundaries = np.zeros((len(unique), layout.boundary_width), np.int64)
    np.add.at(boundaries, inverse.reshape(-1), rows)
    table = np.zeros((regions.n_regions + 1, layout.region_width), np.int64)
    table[:, : layout.region_cues] = regions.regions[:, : layout.region_cues]
    table[:, layout.contact] = 0  # of these boundaries, not of those in the image
    for side in (0, 1):
        np.add.at(table[:, layout.contact.start], unique[:, side], boundaries[:, 0])
    return dataclasses.replace(
        regions,
        cue_names=("boundary",),
        cue_ranges=((0.0, 1.0),),
        layout=layout,
        edges=unique.astype(np.int64).reshape(-1, 2),
        regions=table,
        boundaries=boundaries,
        cues=None,
        face_parts=parts,
    )


def from_networkx(
    graph: nx.Graph[Any],
    weight: str = "weight",
    *,
    contact: str | None = None,
    superpixels: Any = None,
    spacing: Any = None,
    unit: str | None = None,
) -> RegionGraph:
    """Return the region graph of a networkx graph; see `RegionGraph.from_networkx`."""
    if superpixels is None:  # nodes without an edge are regions too
        superpixels = _pixel_per_id(_checked_ids(list(graph.nodes), "graph"))
    names = [weight] if contact is None else [weight, contact]
    columns: list[list[Any]] = [[], []]
    for u, v, attributes in graph.edges(data=True):
        for name, column in zip(names, columns, strict=False):
            if name not in attributes:
                raise InvalidInput(
                    f"The edge ({u}, {v}) of `graph` has no attribute {name!r}",
                    argument="graph",
                    remedy=SetOption("weight" if name == weight else "contact"),
                )
            column.append(attributes[name])
    return from_edges(
        [(u, v) for u, v, *_ in graph.edges],
        columns[0],
        contacts=None if contact is None else columns[1],
        superpixels=superpixels,
        spacing=spacing,
        unit=unit,
    )


def as_graph(graph: Any) -> RegionGraph:
    """Return a region graph, or the one of a networkx graph or of a pair (edges, weights)."""
    if isinstance(graph, RegionGraph):
        return graph
    if isinstance(graph, (tuple, list)) and len(graph) == 2:
        return from_edges(*graph)
    if all(callable(getattr(graph, name, None)) for name in ("nodes", "edges", "adjacency")):
        return from_networkx(graph)
    raise InvalidInput(
        f"`graph` must be a RegionGraph, a networkx graph or (edges, weights), got "
        f"{type(graph).__name__}",
        argument="graph",
        remedy=(
            "make one with region_graph(superpixels, cues)",
            "pass edges and weights as one pair, (edges, weights)",
        ),
    )


def _regions_of(
    pairs: NDArray[np.uint64], superpixels: Any, spacing: Any, unit: str | None
) -> tuple[RegionGraph, NDArray[np.int64]]:
    """Return a graph of the regions, whose edges do not count, and the dense ids of the pairs."""
    labels = dense_labels(_pixel_per_id(pairs) if superpixels is None else superpixels)
    own = voxel_size_of(superpixels, "superpixels") if spacing is None else VoxelSize(spacing)
    graph = region_graph(
        labels,
        np.zeros(labels.image.shape, np.float32),
        spacing=own.spacing,
        unit=own.unit or unit,
        statistics="mean",
        keep_cues=False,
    )
    ends = np.minimum(np.searchsorted(labels.ids, pairs), labels.n_labels)
    missing = pairs[labels.ids[ends] != pairs]
    if len(missing):
        raise InvalidInput(
            f"`edges` names regions that `superpixels` does not have, the first being {missing[0]}",
            argument="edges",
            remedy="use the ids of the label image",
        )
    return graph, ends


def _pixel_per_id(ids: NDArray[np.uint64]) -> DenseLabels:
    """Return a one-dimensional image with one pixel for each id, in ascending order."""
    distinct = np.unique(ids)
    return DenseLabels(
        np.arange(1, len(distinct) + 1, dtype=np.uint32),
        np.concatenate([np.zeros(1, np.uint64), distinct]),
        np.dtype(np.int64),
    )


def _checked_edges(edges: Any) -> NDArray[np.uint64]:
    try:
        pairs = np.asarray(edges)
    except ValueError:  # edges of different lengths
        pairs = np.empty(len(edges), object)
    if pairs.size == 0:
        return np.zeros((0, 2), np.uint64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InvalidInput(
            f"`edges` must have shape (m, 2), got {pairs.shape}",
            argument="edges",
            remedy="pass a pair of ids for each edge, such as [(1, 2), (2, 3)]",
        )
    pairs = _checked_ids(pairs.reshape(-1), "edges").reshape(-1, 2)
    loops = pairs[pairs[:, 0] == pairs[:, 1]]
    if len(loops):
        raise InvalidInput(
            f"`edges` has an edge from {loops[0, 0]} to itself",
            argument="edges",
            remedy="remove such edges",
        )
    return pairs


def _checked_ids(ids: Any, name: str) -> NDArray[np.uint64]:
    array = np.asarray(ids)
    if array.size and (array.dtype.kind not in "iu" or array.min() < 1):
        raise InvalidInput(
            f"`{name}` must name regions by whole numbers of 1 or more, got {array.dtype}"
            + (f" down to {array.min()}" if array.dtype.kind in "iuf" else ""),
            argument=name,
            remedy="number them, e.g. networkx.convert_node_labels_to_integers(graph, 1)",
        )
    return array.astype(np.uint64)


def _checked_weights(weights: Any) -> NDArray[np.float64]:
    try:
        values = np.asarray(weights, np.float64).reshape(-1)
    except (TypeError, ValueError):
        values = np.array([np.nan])
    if not (np.isfinite(values) & (values >= 0)).all():
        raise InvalidInput(
            "`weights` must be finite numbers of 0 or more",
            argument="weights",
            remedy="shift or clip them; low merges first",
        )
    return values


def _checked_contacts(contacts: Any) -> NDArray[np.int64]:
    sizes = np.asarray(contacts).reshape(-1)
    if sizes.size and (sizes.dtype.kind not in "iu" or sizes.min() < 1):
        raise InvalidInput(
            "`contacts` must be whole numbers of 1 or more",
            argument="contacts",
            remedy=ConvertTo("int64"),
        )
    return sizes.astype(np.int64)
