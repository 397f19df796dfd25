"""Whether the probabilities of a learned policy can be believed, on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPointF
from qtpy.QtWidgets import QWidget

from napari_agglo.errors import InvalidInput
from napari_agglo.widgets.plots._curve import short
from napari_agglo.widgets.plots._marks import faint, key, mark, pen
from napari_agglo.widgets.plots._plot import Plot

_NEAR = 6.0  # pixels from a dot that still mean it


class ReliabilityPlot(Plot):
    """How often merges were wrong against the probability that the policy gave."""

    axes_names = ("probability of a wrong merge, as said", "share that was wrong")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Reliability",
            "On the diagonal the probabilities of the policy are right. The area of a dot is the "
            "number of examples.",
            "Train a policy, or open one, to see whether its probabilities can be believed.",
            parent=parent,
        )
        self._bins: NDArray[np.float64] = np.zeros((0, 3))
        self._whose = "training"
        self._diagonal, self._line = pg.PlotCurveItem(), pg.PlotCurveItem()
        self._dots = mark("o", 8)
        for item in (self._diagonal, self._line, self._dots):
            self.canvas.addItem(item, ignoreBounds=True)
        self.canvas.box.setMouseEnabled(x=False, y=False)

    def set_record(self, record: Mapping[str, Any] | None) -> None:
        """Draw ``LearnedPolicy.record["calibration"]``, or nothing."""
        bins = np.array((record or {}).get("calibration") or np.zeros((0, 3)), float)
        if bins.ndim != 2 or bins.shape[1:] != (3,):
            raise InvalidInput(
                "`record['calibration']` must list [mean probability, share wrong, examples], got "
                f"an array of shape {bins.shape}."
            )
        self._bins = bins
        self._whose = "held-out" if (record or {}).get("held_out") else "training"
        if len(bins) == 0:
            self.say_empty(
                None if record is None else "This policy has no record of its calibration."
            )
            return
        self.show_all()
        self.redraw()
        self._drawn()

    def show_all(self) -> None:
        self.canvas.setRange(xRange=(-0.02, 1.02), yRange=(-0.02, 1.04), padding=0)

    def redraw(self) -> None:
        if len(self._bins) == 0:
            return
        colours, (said, was, n) = self.colours, self._bins.T
        self._diagonal.setData([0.0, 1.0], [0.0, 1.0], pen=pen(colours.muted), antialias=True)
        self._line.setData(said, was, pen=pen(colours.series[0], 2), antialias=True)
        self._dots.setData(
            said, was, size=self._sizes(), brush=faint(colours.series[0], 0.75),
            pen=pen(colours.paper),
        )  # fmt: skip
        off = float((n * np.abs(said - was)).sum() / n.sum())
        count = f"{int(n.sum()):,} {self._whose} examples, off by {100 * off:.1f} % on average"
        self.key.setText(key(count))

    def hover(self, at: QPointF | None) -> None:
        if at is None or len(self._bins) == 0:
            self.readout.hide()
            return
        away = self.canvas.box.pixels(self._bins[:, 0], self._bins[:, 1]) - (at.x(), at.y())
        beyond = np.hypot(away[:, 0], away[:, 1]) - self._sizes() / 2
        k = int(beyond.argmin())
        if beyond[k] > _NEAR:
            self.readout.hide()
            return
        said, was, n = self._bins[k]
        self._say(f"said {short(said)}, was {short(was)}\n{int(n):,} examples", at)

    def _sizes(self) -> NDArray[np.float64]:
        return np.asarray(5 + 15 * np.sqrt(self._bins[:, 2] / self._bins[:, 2].max()))
