"""How seeds become parts: the ways to cut a segment, each a function from seeds to sets."""

from napari_agglo.session._cuts.min_cut import Costs, boundary_costs, min_cut
from napari_agglo.session._cuts.seeded import seeded
from napari_agglo.session._cuts.segment import (
    Segment,
    connected_pieces,
    detached,
    piecewise,
    segment_of,
)
from napari_agglo.session._cuts.tree_cut import by_tree, pruned, separating_nodes

__all__ = [
    "Costs",
    "Segment",
    "boundary_costs",
    "by_tree",
    "connected_pieces",
    "detached",
    "min_cut",
    "piecewise",
    "pruned",
    "seeded",
    "segment_of",
    "separating_nodes",
]
