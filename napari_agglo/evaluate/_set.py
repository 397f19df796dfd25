"""One measure over a set of images: at the best threshold for all, and at that of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate._matches import Matches
from napari_agglo.evaluate._steps import all_thresholds, check_curves, rows_at

if TYPE_CHECKING:
    import pandas as pd

_LOWER = ("vi", "false_merge", "false_split")
_HIGHER = ("rand", "covering", "f")
_COUNTS = ("drawn", "right", "true", "found")


@dataclass(frozen=True, eq=False)
class OverSet:
    """One measure over a set of images.

    Attributes
    ----------
    quantity : str
        Which measure.
    threshold : float
        The one threshold that is best for all images together.
    ods : float
        The mean at that threshold ("optimal dataset scale").
    ois : float
        The mean when each image has its own best threshold ("optimal image scale").
    best : float or None
        The mean of what no threshold can surpass, if it was given.
    images : pandas.DataFrame
        By name: ``ods``, ``ois``, ``threshold`` (its own best), ``best``.
    """

    quantity: str
    threshold: float
    ods: float
    ois: float
    best: float | None
    images: pd.DataFrame


def over_set(
    curves: Mapping[Any, pd.DataFrame],
    quantity: str = "vi",
    *,
    best: Mapping[Any, float] | None = None,
) -> OverSet:
    """Summarise a measure over a set of images, as the Berkeley benchmark does.

    Parameters
    ----------
    curves : dict of name to curve
        A `vi_curve`, or for "f" a `boundary_curve`, of each image.
    quantity : {"vi", "false_merge", "false_split", "rand", "covering", "f"}
        Of the first three the least is best, of the others the most. For "f" the boundary pixels of
        all images are put together, rather than averaging.
    best : dict of name to float, optional
        What no threshold can surpass: ``best_point(graph, gold)["vi"]``, or
        ``best_covering(tree, gold)``.

    Returns
    -------
    OverSet

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"threshold": [0.0, 0.4, 0.6], "vi": [3.0, 1.0, 2.0]})
    >>> two = pd.DataFrame({"threshold": [0.0, 0.5, 0.7], "vi": [3.0, 2.0, 0.0]})
    >>> found = over_set({"one": one, "two": two})
    >>> found.threshold, found.ods, found.ois
    (0.7, 1.0, 0.5)
    """
    import pandas as pd

    if quantity not in _LOWER + _HIGHER:
        raise InvalidInput(
            f"`quantity` must be one of {', '.join(_LOWER + _HIGHER)}, got {quantity!r}."
        )
    given = check_curves(curves, quantity)
    if best is not None and set(best) != set(given):
        raise InvalidInput("`best` must have a value for each of `curves`, by the same names.")
    sign = 1.0 if quantity in _LOWER else -1.0
    grid = all_thresholds(given)
    pooled = quantity == "f" and all(set(_COUNTS) <= set(one.columns) for one in given.values())
    names = _COUNTS if pooled else (quantity,)
    sums = {name: np.zeros(grid.size) for name in names}
    for curve in given.values():
        rows = rows_at(curve, grid)
        for name in names:
            sums[name] += curve[name].to_numpy()[rows]
    own = {name: int((sign * one[quantity].to_numpy()).argmin()) for name, one in given.items()}
    if pooled:
        at_all = np.array([_pooled_f(*counts) for counts in zip(*sums.values(), strict=True)])
        ois = _pooled_f(
            *(sum(int(one[name].iloc[own[key]]) for key, one in given.items()) for name in names)
        )
    else:
        at_all = sums[quantity] / len(given)
        ois = float(np.mean([one[quantity].iloc[own[name]] for name, one in given.items()]))
    where = int((sign * at_all).argmin())
    images = pd.DataFrame(
        {
            "ods": [
                float(one[quantity].iloc[rows_at(one, grid[[where]])[0]]) for one in given.values()
            ],
            "ois": [float(one[quantity].iloc[own[name]]) for name, one in given.items()],
            "threshold": [float(one["threshold"].iloc[own[name]]) for name, one in given.items()],
            "best": [math.nan if best is None else float(best[name]) for name in given],
        },
        index=pd.Index(list(given), name="image"),
    )
    return OverSet(
        quantity,
        float(grid[where]),
        float(at_all[where]),
        ois,
        None if best is None else float(images["best"].mean()),
        images,
    )


def _pooled_f(drawn: float, right: float, true: float, found: float) -> float:
    return Matches(int(drawn), int(right), int(true), int(found)).f
