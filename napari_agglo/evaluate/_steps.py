"""Curves of several images as step functions of one threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd


def check_curves(curves: Mapping[Any, pd.DataFrame], *needed: str) -> Mapping[Any, pd.DataFrame]:
    if not curves:
        raise InvalidInput("`curves` must hold a curve at least, got none.")
    for name, one in curves.items():
        missing = [column for column in ("threshold", *needed) if column not in one.columns]
        if missing or len(one) == 0:
            raise InvalidInput(
                f"Curve {name!r} must have rows and the columns threshold, {', '.join(needed)}; "
                f"it has {len(one)} rows of {', '.join(map(str, one.columns))}."
            )
    return curves


def all_thresholds(curves: Mapping[Any, pd.DataFrame]) -> NDArray[np.float64]:
    return np.unique(np.concatenate([one["threshold"].to_numpy() for one in curves.values()]))


def rows_at(curve: pd.DataFrame, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Row that holds at each threshold: the last that is not above; the first holds below, too."""
    rows = np.searchsorted(curve["threshold"].to_numpy(), thresholds, side="right") - 1
    return np.maximum(rows, 0)


def best_together(curves: Mapping[Any, pd.DataFrame], quantity: str) -> float:
    """Return the threshold at which the mean of a quantity is least, from sums of its steps.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"threshold": [0.0, 0.4, 0.6], "vi": [3.0, 1.0, 2.0]})
    >>> two = pd.DataFrame({"threshold": [0.0, 0.5, 0.7], "vi": [3.0, 2.0, 0.0]})
    >>> best_together({"one": one, "two": two}, "vi")
    0.7
    """
    at = np.concatenate([one["threshold"].to_numpy() for one in curves.values()])
    values = [one[quantity].to_numpy(float) for one in curves.values()]
    # What the sum changes by; before its first row a curve has the value of that row.
    change = np.concatenate([np.diff(one, prepend=one[0]) for one in values])
    order = np.argsort(at, kind="stable")
    at, total = at[order], np.cumsum(change[order])
    last = np.flatnonzero(np.append(at[1:] != at[:-1], True))  # of equal thresholds
    return float(at[last[int(total[last].argmin())]])
