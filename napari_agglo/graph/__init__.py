"""The region adjacency graph of a label image, with additive statistics."""

from napari_agglo.graph._build import region_graph
from napari_agglo.graph._layout import Layout
from napari_agglo.graph._merging import contracted, merge_boundaries, merge_regions
from napari_agglo.graph._region_graph import RegionGraph

__all__ = [
    "Layout",
    "RegionGraph",
    "contracted",
    "merge_boundaries",
    "merge_regions",
    "region_graph",
]
