"""The same work by other libraries of PyPI; those that are not installed are left out."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import silenced
from napari_agglo.graph import RegionGraph

_absent: list[str] = []


def optional(name: str) -> Any:
    """Import a module; return None if it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its sources, which are errors in tests
        try:
            return importlib.import_module(name)
        except ImportError:
            _absent.append(name)
            return None


def missing() -> str:
    """Return a remark about the peers that are not installed, or nothing."""
    return f"; not installed, left out: {', '.join(_absent)}" if _absent else ""


bic = optional("bioimage_cpp")
waterz = optional("waterz")
higra = optional("higra")


def bic_graph(labels: NDArray[Any], boundary: NDArray[np.float32], full: bool) -> tuple[Any, Any]:
    """Return a region graph with mean and size of each boundary, or its twelve features."""
    rag = bic.graph.region_adjacency_graph(labels, number_of_threads=1)
    features = bic.graph.features
    feature = features.edge_map_features_complex if full else features.edge_map_features
    return rag, feature(rag, labels, boundary, number_of_threads=1)


def bic_plain_graph(graph: RegionGraph) -> Any:
    """Return the same graph as bioimage-cpp's, with no image behind it."""
    out = bic.graph.UndirectedGraph(graph.n_regions + 1)
    out.insert_edges(graph.edges.astype(np.uint64))
    return out


def bic_merge_all(rag: Any, graph: RegionGraph) -> Any:
    """Merge by mean linkage to one region; node 0, "no region", stays alone."""
    policy = bic.graph.agglomeration.EdgeWeightedClusterPolicy(
        num_clusters_stop=1, size_regularizer=0.0
    )
    sizes = 2.0 * graph.boundaries[:, graph.layout.faces].sum(axis=1)
    return policy.optimize(rag, graph.boundary_mean(), edge_sizes=sizes)


def bic_end_to_end(labels: NDArray[Any], boundary: NDArray[np.float32], threshold: float) -> Any:
    """Return labels at a threshold, from labels and a boundary map."""
    rag, features = bic_graph(labels, boundary, full=False)
    policy = bic.graph.agglomeration.GaspClusterPolicy(num_clusters_stop=1, linkage="mean")
    signed = threshold - features[:, 0].astype(np.float64)
    # Node 0 has no pixel; a repulsive weight ends the agglomeration at the threshold.
    nodes = policy.optimize(rag, signed, edge_sizes=features[:, 1].astype(np.float64))
    return bic.graph.project_node_labels_to_pixels(rag, labels, nodes, number_of_threads=1)


def affinities(boundary: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return affinities: 1 - the mean of a pixel and its lower neighbour along each axis."""
    out = np.ones((boundary.ndim, *boundary.shape), np.float32)
    for axis in range(boundary.ndim):
        upper = tuple(slice(1, None) if a == axis else slice(None) for a in range(boundary.ndim))
        lower = tuple(slice(None, -1) if a == axis else slice(None) for a in range(boundary.ndim))
        out[(axis, *upper)] = 1 - (boundary[upper] + boundary[lower]) / 2
    return out


def waterz_labels(affinity: NDArray[np.float32], labels: NDArray[Any], thresholds: list[float]
                  ) -> Any:  # fmt: skip
    """Return labels at the last of the thresholds."""
    with silenced():
        for segmentation in waterz.agglomerate(
            affinity, thresholds, fragments=labels.astype(np.uint64)
        ):
            out = segmentation.copy()
    return out


def higra_merge_all(graph: RegionGraph) -> Any:
    """Merge by average linkage to one region."""
    plain = higra.UndirectedGraph(graph.n_regions)
    plain.add_edges(graph.edges[:, 0] - 1, graph.edges[:, 1] - 1)
    sizes = 2.0 * graph.boundaries[:, graph.layout.faces].sum(axis=1)
    return higra.binary_partition_tree_average_linkage(plain, graph.boundary_mean(), sizes)
