"""The priority of one boundary, evaluated inside the merge loop.

The loop is compiled once for all policies: a policy is a `kind` and the numbers it needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._hashing import uniform
from napari_agglo._jit import inlined

RANDOM, MEAN = 0, 1


@inlined
def score_boundary(
    kind: Any, parameter: Any, ndim: Any, boundaries: Any, edge: Any, low: Any, high: Any
) -> Any:
    """Priority of a boundary between the regions of ids `low` < `high`; low merges first.

    `parameter` is the seed of a random policy, or the column of the cue's sum for the mean.
    """
    if kind == RANDOM:
        return uniform(parameter, low, high)
    faces = np.int64(0)
    for axis in range(ndim):
        faces += boundaries[edge, axis]
    return boundaries[edge, parameter] / (255.0 * (2 * faces))
