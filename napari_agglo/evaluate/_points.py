"""Points of a curve that people look for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput, is_number

if TYPE_CHECKING:
    import pandas as pd


def state_at(curve: pd.DataFrame, threshold: float) -> dict[str, float]:
    """Return the row of a `vi_curve` that holds when the tree is cut at `threshold`.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"threshold": [-float("inf"), 0.2, 0.7], "vi": [3.0, 1.0, 2.0]})
    >>> state_at(curve, 0.5)["vi"]
    1.0
    """
    row = int(np.searchsorted(curve["threshold"].to_numpy(), threshold, side="right")) - 1
    return _row(curve, max(row, 0))


def minimum(curve: pd.DataFrame) -> dict[str, float]:
    """Return the row of least variation of information, of equal ones the first.

    Examples
    --------
    >>> import pandas as pd
    >>> minimum(pd.DataFrame({"threshold": [0.1, 0.2, 0.7], "vi": [3.0, 1.0, 2.0]}))
    {'threshold': 0.2, 'vi': 1.0}
    """
    return _row(curve, _least(curve["vi"].to_numpy()))


def tangent_point(curve: pd.DataFrame, a: float = 1.0) -> dict[str, float]:
    """Return the row where a line of slope -a touches the split-VI curve from below.

    It is the best segmentation when one bit of false merge is as bad as `a` bits of false split.

    Parameters
    ----------
    curve : pandas.DataFrame
        A `vi_curve`, or a `merge_curve`.
    a : float
        The weight of false merges, above 0.

    Returns
    -------
    dict
        The row that minimises ``a * false_merge + false_split``, of equal ones the first.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"false_merge": [0.0, 0.3, 2.0], "false_split": [1.0, 0.6, 0.0]})
    >>> tangent_point(curve, 1.0)["false_merge"], tangent_point(curve, 10.0)["false_merge"]
    (0.3, 0.0)
    """
    check_weight(a)
    weighted = a * curve["false_merge"].to_numpy() + curve["false_split"].to_numpy()
    return _row(curve, _least(weighted))


def check_weight(a: float) -> None:
    """Refuse a weight of false merges that is not a positive, finite number."""
    if not (is_number(a) and 0 < a < float("inf")):
        raise InvalidInput(
            f"`a`, the weight of false merges, must be a number above 0, got {a!r}; 1 weighs both "
            "errors alike, 2 counts a false merge twice."
        )


def _least(values: NDArray[np.float64]) -> int:
    return int(values.argmin()) if values.size else 0


def _row(curve: pd.DataFrame, row: int) -> dict[str, float]:
    if len(curve) == 0:
        raise InvalidInput("`curve` must have a row at least, got none; make one with vi_curve.")
    return {str(name): curve[name].iloc[row].item() for name in curve.columns}
