"""A curve of the split-VI plot with what is drawn of it, and how far the mouse is from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPointF

from napari_agglo.widgets.plots._curve import Curve


@dataclass(eq=False)
class DrawnCurve:
    """A curve with what is drawn of it; `errors` are given for a point that lies beside it."""

    curve: Curve
    colour: int
    line: pg.PlotCurveItem
    star: pg.ScatterPlotItem
    point: pg.ScatterPlotItem
    threshold: float | None = None
    errors: tuple[float, float] | None = None
    pickable: bool = True

    @property
    def place(self) -> tuple[float, float] | None:
        """(false merge, false split) of the point, if there is one."""
        if self.errors is not None or self.threshold is None:
            return self.errors
        row = self.curve.row(self.threshold)
        return float(self.curve.false_merge[row]), float(self.curve.false_split[row])


def distance(line: NDArray[np.float64], at: QPointF) -> float:
    """Return how far a point is from a line of many parts, in pixels."""
    point = np.array([at.x(), at.y()])
    if len(line) == 1:
        return float(np.hypot(*(line[0] - point)))
    start, step = line[:-1], np.diff(line, axis=0)
    along = ((point - start) * step).sum(axis=1) / np.maximum((step**2).sum(axis=1), 1e-12)
    away = start + np.clip(along, 0, 1)[:, None] * step - point
    return float(np.hypot(away[:, 0], away[:, 1]).min())
