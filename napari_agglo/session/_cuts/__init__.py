"""How seeds become parts: the ways to cut a segment, each a function from seeds to sets."""

from napari_agglo.session._cuts._by_tree import by_tree, pruned, separating_nodes
from napari_agglo.session._cuts._detach import connected_pieces, detached
from napari_agglo.session._cuts._min_cut import min_cut
from napari_agglo.session._cuts._piecewise import piecewise
from napari_agglo.session._cuts._seeded import seeded
from napari_agglo.session._cuts._segment import Segment, segment_of
from napari_agglo.session._cuts._weights import Costs, boundary_costs

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
