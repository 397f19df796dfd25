"""The arrays and texts of a `vi_curve` for interactive plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPointF

from napari_agglo.agglomeration import BEFORE, below_first, is_before, threshold_text
from napari_agglo.evaluate import shortest_threshold
from napari_agglo.evaluate._vi_curve import check_curves

if TYPE_CHECKING:
    import pandas as pd

MOST = 600  # points of a line: about the pixels of a plot in a dock


@dataclass(frozen=True, eq=False)
class Curve:
    """The states of a hierarchy from the superpixels on, with their errors."""

    threshold: NDArray[np.float64]
    merges: NDArray[np.int64]
    segments: NDArray[np.int64] | None
    false_merge: NDArray[np.float64]
    false_split: NDArray[np.float64]
    vi: NDArray[np.float64]

    @classmethod
    def of(cls, table: pd.DataFrame, name: str = "curve") -> Curve:
        """Return the curve of a `vi_curve` table; without segments, a row counts as one merge."""
        check_curves({name: table}, "threshold", "false_merge", "false_split", "vi")
        errors = (table[key].to_numpy(float) for key in ("false_merge", "false_split", "vi"))
        segments = table["segments"].to_numpy(np.int64) if "segments" in table.columns else None
        merges = np.arange(len(table)) if segments is None else segments[0] - segments
        return cls(table["threshold"].to_numpy(float), merges, segments, *errors)

    def row(self, threshold: float) -> int:
        """Return the row of a threshold."""
        return max(int(np.searchsorted(self.threshold, threshold, side="right")) - 1, 0)

    def row_after(self, merges: float) -> int:
        """Return the last row with at most so many merges."""
        return max(int(np.searchsorted(self.merges, merges, side="right")) - 1, 0)

    def threshold_of(self, row: int) -> float:
        """Return a finite threshold of a row."""
        at = float(self.threshold[row])
        if np.isfinite(at):
            return at
        if len(self.threshold) < 2:
            return 0.0
        return below_first(float(self.threshold[row + 1]))

    @property
    def first(self) -> float:
        """The threshold of the first merge; -inf if the curve begins after it."""
        start, first = [*self.threshold[:2].tolist(), np.inf][:2]
        return first if start == -np.inf else -np.inf

    def shortest(self, row: int) -> float:
        """Return the threshold of a row with the digits that tell it from the next, or -inf."""
        at = float(self.threshold[row])
        if is_before(at):
            return -np.inf
        after = float(self.threshold[row + 1]) if row + 1 < len(self.threshold) else np.inf
        return shortest_threshold(at, after)

    def _words(self, row: int) -> str:
        at = self.shortest(row)
        return BEFORE if is_before(at) else f"threshold {threshold_text(at)}"

    @property
    def least(self) -> int:
        """The row of least VI."""
        return int(self.vi.argmin())

    def text(self, row: int) -> str:
        """Return the text of a row for the mouse."""
        count = "" if self.segments is None else f" · {self.segments[row]:,} segments"
        return (
            f"{self._words(row)}{count}\n"
            f"VI {short(self.vi[row])} = {short(self.false_merge[row])} merge "
            f"+ {short(self.false_split[row])} split"
        )


def short(value: float) -> str:
    """Return a number with three significant digits, but none beyond the fifth decimal.

    Examples
    --------
    >>> [short(v) for v in (0.4321, 12.345, 0.0, 0.000012, -5e-324)]
    ['0.432', '12.3', '0', '1e-05', '0']
    """
    return f"{value:.3g}" if abs(value) >= 1e-3 else f"{round(value, 5) + 0.0:g}"


def thin(
    x: NDArray[np.float64], y: NDArray[np.float64], right: float, top: float, most: int = MOST
) -> NDArray[np.intp]:
    """Return the indices of at most so many points that draw nearly the same line.

    Half of them are along the part within 0 to `right` and 0 to `top`, which fills the plot, half
    along the whole line, for zooming out. Both ends are kept.

    Examples
    --------
    >>> x = np.linspace(0, 1, 10_000)
    >>> kept = thin(x, x**2, 1.0, 1.0, 100)
    >>> len(kept) <= 100, int(kept[0]), int(kept[-1])
    (True, 0, 9999)
    """
    n = len(x)
    if n <= most:
        return np.arange(n)
    spans = [(right, top), (max(float(np.ptp(x)), 1e-12), max(float(np.ptp(y)), 1e-12))]
    kept = []
    for k, (width, height) in enumerate(spans):
        a, b = (np.clip(x, 0, width), np.clip(y, 0, height)) if k == 0 else (x, y)
        length = np.concatenate([[0.0], np.hypot(np.diff(a) / width, np.diff(b) / height).cumsum()])
        kept.append(np.searchsorted(length, np.linspace(0, length[-1], most // 2 - 1)))
    return np.unique(np.concatenate([*kept, [0, n - 1]]))


@dataclass(eq=False)
class DrawnCurve:
    """A curve of the split-VI plot with its items; `errors` are of a point beside it."""

    curve: Curve
    colour: int
    line: pg.PlotCurveItem
    star: pg.ScatterPlotItem
    point: pg.ScatterPlotItem
    threshold: float | None = None
    errors: tuple[float, float] | None = None
    pickable: bool = True
    training: bool = False  # measured on the data that the policy was trained on

    @property
    def items(self) -> tuple[pg.GraphicsObject, ...]:
        """All items of the plot."""
        return self.line, self.star, self.point

    @property
    def place(self) -> tuple[float, float] | None:
        """The errors (false merge, false split) of the point, if there is one."""
        if self.errors is not None or self.threshold is None:
            return self.errors
        row = self.curve.row(self.threshold)
        return float(self.curve.false_merge[row]), float(self.curve.false_split[row])


def distance(line: NDArray[np.float64], at: QPointF) -> float:
    """Return the distance of a point from a polyline, in pixels."""
    point = np.array([at.x(), at.y()])
    if len(line) == 1:
        return float(np.hypot(*(line[0] - point)))
    start, step = line[:-1], np.diff(line, axis=0)
    along = ((point - start) * step).sum(axis=1) / np.maximum((step**2).sum(axis=1), 1e-12)
    away = start + np.clip(along, 0, 1)[:, None] * step - point
    return float(np.hypot(away[:, 0], away[:, 1]).min())
