"""The mean of several curves, with its standard error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo.evaluate._steps import all_thresholds, best_together, check_curves, rows_at

if TYPE_CHECKING:
    import pandas as pd

_POINTS = 1000


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
        than 1000, about so many of them, that of the least mean VI among them.

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
    given = list(check_curves(named).values())
    if thresholds is None:
        grid = all_thresholds(named)
        if grid.size > _POINTS:
            grid = grid[np.linspace(0, grid.size - 1, _POINTS).round().astype(int)]
            if all("vi" in one.columns for one in given):
                grid = np.union1d(grid, best_together(named, "vi"))
    else:
        grid = np.unique(np.asarray(list(thresholds), float))
    n = len(given)
    columns: dict[str, Any] = {"threshold": grid}
    shared = [c for c in given[0].columns if all(c in one.columns for one in given)]
    for name in shared:
        if name in ("threshold", "merges"):
            continue
        values = np.stack([one[name].to_numpy(float)[rows_at(one, grid)] for one in given])
        columns[name] = values.mean(axis=0)
        spread = np.full(grid.size, math.nan) if n == 1 else values.std(axis=0, ddof=1)
        columns[f"{name}_sem"] = spread / math.sqrt(n)
    return pd.DataFrame(columns | {"n": np.full(grid.size, n)})
