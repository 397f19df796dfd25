"""Axes with plain words: round numbers, sizes by powers of ten, and thresholds by merges."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyqtgraph as pg

from napari_agglo.widgets.plots._curve import Curve

_ROOM = 48  # pixels from one label to the next


class LogAxis(pg.AxisItem):
    """An axis of logarithms to base 10, labelled with the numbers themselves."""

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        decades = range(math.floor(low), math.ceil(high) + 1)
        room = max(size, 1) / max(high - low, 1e-9)  # pixels for one power of ten
        step = max(1, math.ceil(_ROOM / room))
        parts = (1, 2, 5) if room > 4 * _ROOM else (1, 3) if room > 2.5 * _ROOM else (1,)
        values = [k + math.log10(p) for k in decades if k % step == 0 for p in parts]
        return [(1.0, [value for value in values if low <= value <= high])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [f"{10.0**value:g}" for value in values]


class WholeAxis(pg.AxisItem):
    """An axis of numbers that are counted: ticks at whole numbers only."""

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        first, last = math.ceil(low), math.floor(high)
        step = max(1, math.ceil((last - first + 1) * 25 / max(size, 1)))
        return [(float(step), [float(k) for k in range(first, last + 1) if k % step == 0])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [f"{value:.0f}" for value in values]


class MergesAxis(pg.AxisItem):
    """An axis of merges, labelled with the threshold that each number of them needs.

    Without a curve it is a plain axis, of thresholds.
    """

    curve: Curve | None = None

    def tickValues(self, low: float, high: float, size: float) -> list[tuple[float, list[float]]]:
        if self.curve is None:
            found: list[tuple[float, list[float]]] = super().tickValues(low, high, size)
            return found[:1] if len(found[0][1]) > 2 else found[:2]
        n = max(1, int(size // _ROOM))
        return [((high - low) / n, [low + k * (high - low) / n for k in range(n + 1)])]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        if self.curve is None:
            return list(super().tickStrings(values, scale, spacing))
        at = [self.curve.threshold_of(self.curve.row_after(value)) for value in values]
        return [f"{t:.2g}" if abs(t) >= 1e-3 else f"{round(t, 4) + 0.0:g}" for t in at]
