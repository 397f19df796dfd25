"""What plots of `vi_curve` tables share: their points, and lines that end where the plot does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate import minimum, state_at
from napari_agglo.plots._style import need

if TYPE_CHECKING:
    import pandas as pd

_NOTHING = 1e-9  # bits; what rounding leaves of an error of 0
COLUMNS = ("threshold", "false_merge", "false_split", "vi")


def check_curves(curves: Mapping[str, pd.DataFrame]) -> None:
    """Refuse what is no mapping of names to tables of a `vi_curve` or `mean_curve`."""
    if not isinstance(curves, Mapping) or not curves:
        raise InvalidInput(
            "`curves` must map the name of each policy to its curve, e.g. "
            f'{{"mean": vi_curve(tree, gold)}}; got {type(curves).__name__}'
            + (" without entries." if isinstance(curves, Mapping) else ".")
        )
    for name, curve in curves.items():
        need(curve, COLUMNS, f"curves[{name!r}]")
        if len(curve) == 0:
            raise InvalidInput(f"`curves[{name!r}]` must have a row at least, got none.")


def marked(
    curve: pd.DataFrame, threshold: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return (false merge, false split) of least VI, and at a threshold."""
    least, at = minimum(curve), state_at(curve, threshold)
    return (least["false_merge"], least["false_split"]), (at["false_merge"], at["false_split"])


def rounded_up(value: float) -> float:
    """Return the next of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten, so that ticks are round.

    Examples
    --------
    >>> rounded_up(0.23), rounded_up(7.0), rounded_up(0.0)
    (0.3, 8.0, 1.0)
    """
    if not _NOTHING < value < np.inf:
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    steps = np.array([1, 1.5, 2, 3, 4, 5, 6, 8, 10])
    return round(float(power * steps[np.searchsorted(steps, value / power - 1e-9)]), 12)


def focus(wanted: Iterable[float], optional: Iterable[float] = ()) -> float:
    """Return where an axis from 0 should end: all that is wanted, and what is not far beyond it.

    Examples
    --------
    >>> focus([0.5, 1.0], [1.5, 40.0])
    2.0
    """
    most = max(wanted, default=0.0)
    near = [value for value in optional if value <= 2 * most]
    return rounded_up(1.3 * max([most, *near]))


def thinned(curve: pd.DataFrame, most: int = 1500) -> pd.DataFrame:
    """Return so many rows of a curve, the last among them: matplotlib thins lines, not areas.

    Examples
    --------
    >>> import pandas as pd
    >>> thinned(pd.DataFrame({"vi": range(10)}), 4)["vi"].tolist()
    [0, 3, 6, 9]
    """
    n = len(curve)
    return curve if n <= most else curve.iloc[np.linspace(0, n - 1, most).round().astype(int)]


def steps(
    threshold: NDArray[np.float64], values: NDArray[np.float64], low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the corners of a step line from `low` to `high`; a state holds until the next begins.

    Examples
    --------
    >>> x, y = steps(np.array([-np.inf, 0.4]), np.array([3.0, 1.0]), 0.0, 1.0)
    >>> x.tolist(), y.tolist()
    ([0.0, 0.4, 0.4, 1.0], [3.0, 3.0, 1.0, 1.0])
    """
    begins = np.clip(threshold, low, high)
    x = np.concatenate([np.repeat(begins, 2)[1:], [high]])
    return x, np.repeat(values, 2)
