"""Features of all boundaries of a graph at once, as a matrix or a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo.features._feature_map import FeatureMap, feature_map
from napari_agglo.features._kernels import FeatureState, assemble, fill_edge, fill_node
from napari_agglo.graph import RegionGraph

if TYPE_CHECKING:
    import pandas as pd


def feature_state(
    graph: RegionGraph, features: FeatureMap, rows: NDArray[np.int64] | None = None
) -> FeatureState:
    """Return copies of the rows of `graph`, and what is read off each region and boundary.

    `rows` stands in for the rows of the boundaries, where constraints add some without a face.
    """
    layout = graph.layout
    boundaries = graph.boundaries.copy() if rows is None else rows
    spacing = np.asarray(graph.spacing)
    state = FeatureState(
        regions=graph.regions.copy(),
        boxes=graph.boxes.copy(),
        boundaries=boundaries,
        layout=np.array(
            [
                layout.ndim,
                layout.n_cues,
                layout.powers,
                layout.bins,
                features.histogram,
                len(features.quantiles),
                features.orientation,
            ],
            np.int64,
        ),
        quantiles=np.array(features.quantiles),
        scale=np.stack([spacing, graph.face_areas()]),
        node_block=np.zeros((len(graph.regions), features.block_width), np.float32),
        edge_block=np.zeros((len(boundaries), features.block_width), np.float32),
        entropy=np.zeros((len(graph.regions), layout.n_cues)),
        axis=np.zeros((len(graph.regions), layout.ndim)),
    )
    _fill_all(*state)
    return state


def feature_matrix(graph: RegionGraph, features: FeatureMap) -> NDArray[np.float32]:
    """Return the features of each boundary of `graph`, shape (m, features.width)."""
    out = np.zeros((graph.n_boundaries, features.width), np.float32)
    _assemble_all(graph.edges, out, *feature_state(graph, features))
    return out


def feature_table(graph: RegionGraph, preset: str = "em") -> pd.DataFrame:
    """Return the features of each boundary as a table: the user's ids, then a column each.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graph = region_graph(np.array([[1, 1, 2, 2]]), np.array([[0.0, 0.2, 0.8, 1.0]]))
    >>> table = feature_table(graph, "minimal")
    >>> float(table["boundary/edge/mean"].round(3).iloc[0])
    0.5
    """
    import pandas as pd

    features = feature_map(graph, preset)
    table = pd.DataFrame(feature_matrix(graph, features), columns=list(features.names))
    table.insert(0, "u", graph.ids[graph.edges[:, 0]])
    table.insert(1, "v", graph.ids[graph.edges[:, 1]])
    return table


@kernel
def _fill_all(
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
) -> None:  # fmt: skip
    """Read off every region and every boundary. No bounds checking."""
    for node in range(1, regions.shape[0]):
        fill_node(
            node, regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
    for edge in range(boundaries.shape[0]):
        fill_edge(
            edge, regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip


@kernel
def _assemble_all(
    edges: Any, out: Any,
    regions: Any, boxes: Any, boundaries: Any, layout: Any, quantiles: Any, scale: Any,
    node_block: Any, edge_block: Any, entropy: Any, axis: Any,
) -> None:  # fmt: skip
    """Write the features of each edge to its row of `out`. No bounds checking."""
    for edge in range(edges.shape[0]):
        u = edges[edge, 0]
        v = edges[edge, 1]
        assemble(
            edge, u, v, u, v, out, edge, regions, boxes, boundaries, layout, quantiles, scale,
            node_block, edge_block, entropy, axis,
        )  # fmt: skip
