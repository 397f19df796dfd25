"""A feature block: the ratio of the sizes of two regions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo import RegionGraph
from napari_agglo.features import FeatureBlock


def size_ratio(graph: RegionGraph) -> NDArray[np.float64]:
    """Return the size of the smaller region over that of the larger, for each boundary."""
    sizes = np.sort(graph.sizes[graph.edges], axis=1)
    return sizes[:, 0] / sizes[:, 1]


block = FeatureBlock("sizes", ("ratio",), size_ratio)
