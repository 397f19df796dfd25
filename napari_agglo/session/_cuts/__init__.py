"""Cuts of a segment: functions from groups of seeds to parts.

Every module of this folder is imported, and each `CutMethod` in it is registered: a new method is
one new file.
"""

from importlib import import_module
from pkgutil import iter_modules

from napari_agglo.session._cuts.cut_methods import (
    CutMethod,
    CutProblem,
    cut_method,
    cut_methods,
)
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
    "CutMethod",
    "CutProblem",
    "Segment",
    "boundary_costs",
    "by_tree",
    "connected_pieces",
    "cut_method",
    "cut_methods",
    "detached",
    "min_cut",
    "piecewise",
    "pruned",
    "seeded",
    "segment_of",
    "separating_nodes",
]

for _name in sorted(
    module.name for module in iter_modules(__path__)
):  # min_cut, the default, first
    for _value in vars(import_module(f"{__name__}.{_name}")).values():
        if isinstance(_value, CutMethod):
            cut_methods.register(_value.name, _value)
