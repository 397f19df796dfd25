"""The best threshold of a curve, or of many, such that it can be typed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def best_state(curve: pd.DataFrame) -> dict[str, float]:
    """Return the row with the least VI; of equals, the first."""
    from napari_agglo.evaluate import state_at

    return state_at(curve, float(curve["threshold"].iloc[int(curve["vi"].to_numpy().argmin())]))


def best_typed(curve: pd.DataFrame) -> str:
    """Return the threshold of the least VI, as short as gives the same state when typed."""
    from napari_agglo.cli._terminal import typed_threshold

    row = int(curve["vi"].to_numpy().argmin())
    heights = [*curve["threshold"].tolist(), math.inf]
    return typed_threshold(heights[row], heights[row + 1])


def best_for_all(curves: Sequence[pd.DataFrame]) -> tuple[str, float]:
    """Return the threshold at which the mean VI over several curves is least, and that mean."""
    import numpy as np

    from napari_agglo.cli._terminal import typed_threshold

    heights = np.unique(np.concatenate([curve["threshold"].to_numpy() for curve in curves]))
    total = np.zeros(heights.size)
    for curve in curves:
        at = np.searchsorted(curve["threshold"].to_numpy(), heights, side="right") - 1
        total += curve["vi"].to_numpy()[at]
    row = int(total.argmin())
    following = float(heights[row + 1]) if row + 1 < heights.size else math.inf
    return typed_threshold(float(heights[row]), following), float(total[row]) / len(curves)
