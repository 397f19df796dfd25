"""Region adjacency graph of a label image, with additive statistics."""

from napari_agglo.graph._build_graph import Window, add_contact, region_graph, scan
from napari_agglo.graph._contact import boxes_overlap, contact_point, meeting_boxes
from napari_agglo.graph._contract import add_rows, contracted, merge_boundaries, merge_regions
from napari_agglo.graph._divide_superpixel import (
    Division,
    divide,
    divided,
    division_window,
    kept_cues,
    pieces_to_runs,
    runs_to_pieces,
)
from napari_agglo.graph._edge_search import (
    edge_positions,
    edges_within,
    first_place,
    first_row,
)
from napari_agglo.graph._hulls import (
    NO_HULLS,
    HullLists,
    Hulls,
    add_hull,
    hull_lists,
    linked,
    merge_hulls,
    refuse_hulls,
    union_area,
    with_hulls,
)
from napari_agglo.graph._long_range_pairs import FarPairs, far_pairs
from napari_agglo.graph._pair_buffer import (
    Absent,
    copy_pair,
    graph_of_pairs,
    pair_width,
    part_of,
    sample_of_pairs,
)
from napari_agglo.graph._region_graph import DEFAULT_BINS, Layout, RegionGraph
from napari_agglo.graph._superpixel_pieces import Pieces, superpixel_pieces
from napari_agglo.graph._weighted_edges import as_graph

__all__ = [
    "DEFAULT_BINS",
    "NO_HULLS",
    "Division",
    "FarPairs",
    "HullLists",
    "Hulls",
    "Layout",
    "Pieces",
    "RegionGraph",
    "Window",
    "add_contact",
    "add_hull",
    "add_rows",
    "as_graph",
    "boxes_overlap",
    "contact_point",
    "contracted",
    "copy_pair",
    "divide",
    "divided",
    "division_window",
    "edge_positions",
    "edges_within",
    "far_pairs",
    "first_place",
    "first_row",
    "Absent",
    "graph_of_pairs",
    "part_of",
    "sample_of_pairs",
    "kept_cues",
    "hull_lists",
    "linked",
    "meeting_boxes",
    "merge_boundaries",
    "merge_hulls",
    "merge_regions",
    "pair_width",
    "pieces_to_runs",
    "refuse_hulls",
    "region_graph",
    "runs_to_pieces",
    "scan",
    "superpixel_pieces",
    "union_area",
    "with_hulls",
]
