"""How good a fit is: accuracy and calibration on held-out examples, and which features count."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.features import FeatureMap
from napari_agglo.learning._examples import Examples
from napari_agglo.learning._fit import Fitted

_BINS = 10
_MOST = 20  # importances to list


def judgement(
    fitted: Fitted,
    examples: Examples,
    features: FeatureMap,
    held_out: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """Return plain numbers for the record of a policy.

    "accuracy" is that of held-out examples where there are such ("held_out" says), else that of the
    training examples themselves, which flatters. "calibration" lists, for each tenth of the
    probability, the mean of what was said, how often it was so, and the number of examples.
    """
    wrong = examples.labels > 0
    said = fitted.model.predict(examples.rows) if held_out is None else held_out
    calibration = []
    tenth = np.minimum((said * _BINS).astype(np.int64), _BINS - 1)
    for k in range(_BINS):
        inside = tenth == k
        if inside.any():
            mean, share = float(said[inside].mean()), float(wrong[inside].mean())
            calibration.append([round(mean, 4), round(share, 4), int(inside.sum())])
    order = np.argsort(-fitted.importances, kind="stable")[:_MOST]
    return {
        "held_out": held_out is not None,
        "accuracy": round(float(((said > 0.5) == wrong).mean()), 4),
        "calibration": calibration,
        "importances": {features.names[k]: round(float(fitted.importances[k]), 5) for k in order},
    }
