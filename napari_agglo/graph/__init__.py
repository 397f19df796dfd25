"""The region adjacency graph of a label image, with additive statistics."""

from napari_agglo.graph._build import region_graph
from napari_agglo.graph._divide import divide, divided
from napari_agglo.graph._division import Division
from napari_agglo.graph._layout import Layout
from napari_agglo.graph._lookup import edge_positions, edges_within
from napari_agglo.graph._merging import contracted, merge_boundaries, merge_regions
from napari_agglo.graph._pieces import Pieces, superpixel_pieces
from napari_agglo.graph._region_graph import RegionGraph
from napari_agglo.graph._runs import pieces_to_runs, runs_to_pieces

__all__ = [
    "Division",
    "Layout",
    "Pieces",
    "RegionGraph",
    "contracted",
    "divide",
    "divided",
    "edge_positions",
    "edges_within",
    "merge_boundaries",
    "merge_regions",
    "pieces_to_runs",
    "region_graph",
    "runs_to_pieces",
    "superpixel_pieces",
]
