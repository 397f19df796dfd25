"""Plots of a learned policy: errors by epoch, importance of features, calibration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from qtpy.QtCore import QPointF
from qtpy.QtGui import QFont

from napari_agglo.errors import InvalidInput
from napari_agglo.plots import shown
from napari_agglo.plots._curve_figures import rounded_up
from napari_agglo.widgets.plots._drawn_curve import short
from napari_agglo.widgets.plots._plot import Canvas, Plot
from napari_agglo.widgets.plots._plot_style import WholeAxis, faint, key, mark, pen, swatch

_NEAR = 6.0  # pixels from a dot that still hit it


class ReliabilityPlot(Plot):
    """A plot of the share of wrong merges against the probability of the policy."""

    axes_names = ("predicted probability of a wrong merge", "share that was wrong")

    def __init__(self) -> None:
        super().__init__(
            "Reliability",
            "Probabilities on the diagonal are correct. The area of a dot is the "
            "number of examples.",
            "Train or load a policy to see the calibration of its probabilities.",
        )
        self._bins: NDArray[np.float64] = np.zeros((0, 3))
        self._whose = "training"

    def furnish(self, canvas: Canvas) -> None:
        self._diagonal, self._line = pg.PlotCurveItem(), pg.PlotCurveItem()
        self._dots = mark("o", 8)
        for item in (self._diagonal, self._line, self._dots):
            canvas.addItem(item, ignoreBounds=True)
        canvas.box.setMouseEnabled(x=False, y=False)

    def set_record(self, record: Mapping[str, Any] | None) -> None:
        """Draw ``LearnedPolicy.record["calibration"]``, or nothing."""
        bins = np.array((record or {}).get("calibration") or np.zeros((0, 3)), float)
        if bins.ndim != 2 or bins.shape[1:] != (3,):
            raise InvalidInput(
                "`record['calibration']` must list [mean probability, share wrong, examples], got "
                f"an array of shape {bins.shape}",
                argument="record['calibration']",
                remedy="pass the record of a LearnedPolicy",
            )
        self._bins = bins
        self._whose = "held-out" if (record or {}).get("held_out") else "training"
        if len(bins) == 0:
            self.show_empty(
                None if record is None else "This policy has no record of its calibration."
            )
            return
        self.draw()

    def show_all(self) -> None:
        self.canvas.setRange(xRange=(-0.02, 1.02), yRange=(-0.02, 1.04), padding=0)

    def redraw(self) -> None:
        if len(self._bins) == 0:
            return
        colours, (predicted, observed, n) = self.colours, self._bins.T
        self._diagonal.setData([0.0, 1.0], [0.0, 1.0], pen=pen(colours.muted), antialias=True)
        self._line.setData(predicted, observed, pen=pen(colours.series[0], 2), antialias=True)
        self._dots.setData(
            predicted, observed, size=self._sizes(), brush=faint(colours.series[0], 0.75),
            pen=pen(colours.paper),
        )  # fmt: skip
        off = float((n * np.abs(predicted - observed)).sum() / n.sum())
        count = f"{int(n.sum()):,} {self._whose} examples, off by {100 * off:.1f} % on average"
        self.key.setText(key(count))

    def text_at(self, at: QPointF) -> str:
        if len(self._bins) == 0:
            return ""
        away = self.canvas.box.pixels(self._bins[:, 0], self._bins[:, 1]) - (at.x(), at.y())
        beyond = np.hypot(away[:, 0], away[:, 1]) - self._sizes() / 2
        k = int(beyond.argmin())
        if beyond[k] > _NEAR:
            return ""
        predicted, observed, n = self._bins[k]
        errors = f"predicted {short(predicted)}, observed {short(observed)}"
        return f"{errors}\n{int(n):,} examples"

    def _sizes(self) -> NDArray[np.float64]:
        return np.asarray(5 + 15 * np.sqrt(self._bins[:, 2] / self._bins[:, 2].max()))


_MOST = 12


class ImportancePlot(Plot):
    """A bar chart of the most important features, with their names on the bars."""

    axes_names = ("importance", "")

    def __init__(self) -> None:
        super().__init__(
            "Feature importances",
            f"The {_MOST} most important features of the policy.",
            "Train or load a policy to see its most important features.",
        )
        self._largest: list[tuple[str, float]] = []
        self._count = 0

    def furnish(self, canvas: Canvas) -> None:
        self._bars = pg.BarGraphItem(x0=[], y=[], width=[], height=0.8)
        canvas.addItem(self._bars, ignoreBounds=True)
        font = QFont()
        font.setPixelSize(10)
        self._names = [pg.TextItem(anchor=(0, 0.5)) for _ in range(_MOST)]
        for item in self._names:
            item.setFont(font)
            canvas.addItem(item, ignoreBounds=True)
        canvas.hideAxis("left")
        canvas.box.setMouseEnabled(x=False, y=False)

    def set_record(self, record: Mapping[str, Any] | None) -> None:
        """Draw ``LearnedPolicy.record["importances"]``, or nothing."""
        importances = dict((record or {}).get("importances") or {})
        self._count = len(importances)
        self._largest = sorted(importances.items(), key=lambda item: -item[1])[:_MOST]
        if not self._largest:
            self.show_empty(
                None if record is None else "This policy has no record of its features."
            )
            return
        self.draw()

    def show_all(self) -> None:
        if self._largest:
            most = max(self._largest[0][1], 1e-9)
            rows = (-len(self._largest) + 0.4, 0.6)
            self.canvas.setRange(xRange=(0, 1.02 * most), yRange=rows, padding=0)

    def redraw(self) -> None:
        values = [value for _, value in self._largest]
        self._bars.setOpts(
            x0=[0.0] * len(values), y=[-float(k) for k in range(len(values))], width=values,
            height=0.8, brush=faint(self.colours.series[0], 0.45), pen=None,
        )  # fmt: skip
        for k, item in enumerate(self._names):
            item.setVisible(k < len(self._largest))
            if k < len(self._largest):
                item.setText(shown(self._largest[k][0], 40), color=self.colours.ink)
                item.setPos(0, -k)
        some = f"the {len(values)} most important of {self._count} features"
        self.key.setText(key(some if self._count > len(values) else f"{self._count} features"))

    def text_at(self, at: QPointF) -> str:
        row = round(-self.canvas.box.place(at)[1])
        if not 0 <= row < len(self._largest):
            return ""
        name, value = self._largest[row]
        return f"{name}: {short(value)}"


_NEAR_EPOCH = 20.0  # pixels from an epoch that still hit it


class EpochPlot(Plot):
    """A plot of false merge, false split and their sum after each epoch."""

    axes_names = ("epoch (0 is flat learning)", "bits")

    def __init__(self) -> None:
        super().__init__(
            "VI by epoch",
            "The variation of information and its two terms after each epoch of training. More "
            "epochs help only while it falls.",
            "The VI after each epoch of a training is drawn here.",
            axes={"bottom": WholeAxis("bottom")},
        )
        self._rows: dict[int, tuple[float, float]] = {}
        self._whose = ""

    def furnish(self, canvas: Canvas) -> None:
        self._lines = [pg.PlotDataItem(symbol="o", symbolSize=7) for _ in range(3)]
        for line in self._lines:
            canvas.addItem(line, ignoreBounds=True)

    def add(
        self, epoch: int, false_merge: float, false_split: float, *, held_out: bool = False
    ) -> None:
        """Add an epoch, or replace it; its errors are those on held-out or on training data."""
        self._whose = "held-out" if held_out else "training data"
        self._rows[int(epoch)] = (float(false_merge), float(false_split))
        self.draw()

    def clear(self) -> None:
        """Remove all epochs."""
        self._rows.clear()
        self.show_empty()

    def show_all(self) -> None:
        if self._rows:
            first, last = min(self._rows), max(self._rows)
            top = rounded_up(1.1 * max(sum(errors) for errors in self._rows.values()))
            span = (first - 0.3, max(last, first + 1) + 0.3)
            self.canvas.setRange(xRange=span, yRange=(0, top), padding=0)

    def redraw(self) -> None:
        c = self.colours
        epochs = sorted(self._rows)
        errors = np.array([self._rows[epoch] for epoch in epochs]).reshape(-1, 2)
        for line, values, colour in zip(
            self._lines,
            (errors.sum(axis=1), errors[:, 0], errors[:, 1]),
            (c.ink, c.merge, c.split),
            strict=True,
        ):
            line.setData(
                np.array(epochs, float), values, pen=pen(colour, 2), antialias=True,
                symbolBrush=colour, symbolPen=pen(c.paper),
            )  # fmt: skip
        now = f": {short(errors[-1].sum())}" if epochs else ""
        self.key.setText(
            key(
                swatch(c.ink, "●", f"VI{now}, {self._whose}", c.ink),
                swatch(c.merge, "●", "false merge", c.text[4]),
                swatch(c.split, "●", "false split", c.text[0]),
            )
        )

    def text_at(self, at: QPointF) -> str:
        epochs = np.array(sorted(self._rows))
        away = np.abs(self.canvas.box.pixels(epochs, np.zeros(len(epochs)))[:, 0] - at.x())
        if not len(epochs) or away.min() > _NEAR_EPOCH:
            return ""
        epoch = int(epochs[away.argmin()])
        merge, split = self._rows[epoch]
        return (
            f"epoch {epoch}: VI {short(merge + split)} bits\n"
            f"{short(merge)} false merge + {short(split)} false split"
        )
