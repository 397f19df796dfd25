"""Features of a pair of regions, computed from the rows of statistics.

Every module of this folder is imported, and each `FeatureBlock` in it is registered: a new block is
one new file.
"""

from napari_agglo.features._feature_map import (
    FORMER,
    PRESETS,
    FeatureBlock,
    FeatureMap,
    assemble_all,
    check_blocks,
    empty_features,
    feature_blocks,
    feature_map,
    feature_matrix,
    feature_state,
    feature_table,
    fill_features,
)
from napari_agglo.features._kernels import (
    AXES,
    NDIM,
    FeatureState,
    assemble,
    fill_edge,
    fill_node,
)

__all__ = [
    "AXES",
    "FORMER",
    "NDIM",
    "PRESETS",
    "FeatureBlock",
    "FeatureMap",
    "FeatureState",
    "assemble",
    "assemble_all",
    "check_blocks",
    "empty_features",
    "feature_blocks",
    "feature_map",
    "feature_matrix",
    "feature_state",
    "feature_table",
    "fill_edge",
    "fill_features",
    "fill_node",
]

feature_blocks.register_modules(__name__, __path__)
