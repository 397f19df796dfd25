"""Curves of several images or volumes as one: at the best threshold for all, and on average."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate._boundary import Matches

if TYPE_CHECKING:
    import pandas as pd

_LOWER = ("vi", "false_merge", "false_split")
_HIGHER = ("rand", "covering", "f")
_COUNTS = ("drawn", "right", "true", "found")
_POINTS = 1000


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
    given = _checked(curves, quantity)
    if best is not None and set(best) != set(given):
        raise InvalidInput("`best` must have a value for each of `curves`, by the same names.")
    sign = 1.0 if quantity in _LOWER else -1.0
    grid = _union(given)
    pooled = quantity == "f" and all(set(_COUNTS) <= set(one.columns) for one in given.values())
    names = _COUNTS if pooled else (quantity,)
    sums = {name: np.zeros(grid.size) for name in names}
    for curve in given.values():
        rows = _rows_at(curve, grid)
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
                float(one[quantity].iloc[_rows_at(one, grid[[where]])[0]]) for one in given.values()
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


def mean_curve(
    curves: Mapping[Any, pd.DataFrame] | Iterable[pd.DataFrame],
    thresholds: Iterable[float] | None = None,
) -> pd.DataFrame:
    """Return the mean of curves at each threshold, with the standard error of the mean.

    Parameters
    ----------
    curves : dict of name to curve, or list of curves
        A `vi_curve` (or `boundary_curve`) of each volume.
    thresholds : iterable of float, optional
        Where to average. By default every threshold at which a curve has a row; if these are more
        than 1000, so many of them.

    Returns
    -------
    pandas.DataFrame
        ``threshold``; each measure that all curves have, e.g. ``vi``, and ``vi_sem``, NaN for a
        single curve; ``n``, the number of curves.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"threshold": [0.0, 0.5], "vi": [3.0, 1.0]})
    >>> two = pd.DataFrame({"threshold": [0.0, 0.7], "vi": [1.0, 2.0]})
    >>> mean_curve([one, two])
       threshold   vi  vi_sem  n
    0        0.0  2.0     1.0  2
    1        0.5  1.0     0.0  2
    2        0.7  1.5     0.5  2
    """
    import pandas as pd

    named = curves if isinstance(curves, Mapping) else dict(enumerate(curves))
    given = list(_checked(named).values())
    if thresholds is None:
        grid = _union(named)
        if grid.size > _POINTS:
            grid = grid[np.linspace(0, grid.size - 1, _POINTS).round().astype(int)]
    else:
        grid = np.unique(np.asarray(list(thresholds), float))
    n = len(given)
    columns: dict[str, Any] = {"threshold": grid}
    shared = [c for c in given[0].columns if all(c in one.columns for one in given)]
    for name in shared:
        if name in ("threshold", "merges"):
            continue
        values = np.stack([one[name].to_numpy(float)[_rows_at(one, grid)] for one in given])
        columns[name] = values.mean(axis=0)
        spread = np.full(grid.size, math.nan) if n == 1 else values.std(axis=0, ddof=1)
        columns[f"{name}_sem"] = spread / math.sqrt(n)
    return pd.DataFrame(columns | {"n": np.full(grid.size, n)})


def _checked(curves: Mapping[Any, pd.DataFrame], *needed: str) -> Mapping[Any, pd.DataFrame]:
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


def _union(curves: Mapping[Any, pd.DataFrame]) -> NDArray[np.float64]:
    return np.unique(np.concatenate([one["threshold"].to_numpy() for one in curves.values()]))


def _rows_at(curve: pd.DataFrame, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Row that holds at each threshold: the last that is not above; the first holds below, too."""
    rows = np.searchsorted(curve["threshold"].to_numpy(), thresholds, side="right") - 1
    return np.maximum(rows, 0)


def _pooled_f(drawn: float, right: float, true: float, found: float) -> float:
    return Matches(int(drawn), int(right), int(true), int(found)).f
