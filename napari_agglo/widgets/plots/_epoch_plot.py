"""VI by epoch on the screen, growing while a policy is trained."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import QPointF

from napari_agglo.plots._curve_figures import rounded_up
from napari_agglo.widgets.plots._drawn_curve import short
from napari_agglo.widgets.plots._plot import Plot
from napari_agglo.widgets.plots._plot_style import WholeAxis, key, pen, swatch

_NEAR = 20.0  # pixels


class EpochPlot(Plot):
    """False merge, false split and their sum after each epoch of learning."""

    axes_names = ("epoch (0 is flat learning)", "bits")

    def __init__(self) -> None:
        super().__init__(
            "VI by epoch",
            "The variation of information and its two terms after each epoch of training. When it "
            "no longer falls, more epochs teach nothing.",
            "Press Train to see how the VI falls from epoch to epoch.",
            axes={"bottom": WholeAxis("bottom")},
        )
        self._rows: dict[int, tuple[float, float]] = {}
        self._lines = [pg.PlotDataItem(symbol="o", symbolSize=7) for _ in range(3)]
        for line in self._lines:
            self.canvas.addItem(line, ignoreBounds=True)

    def add(self, epoch: int, false_merge: float, false_split: float) -> None:
        """Draw an epoch more; one that is there already is drawn anew."""
        self._rows[int(epoch)] = (float(false_merge), float(false_split))
        self.draw()

    def clear(self) -> None:
        """Take all epochs away."""
        self._rows.clear()
        self.say_empty()

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
                swatch(c.ink, "●", f"VI{now}", c.ink),
                swatch(c.merge, "●", "false merge", c.text[4]),
                swatch(c.split, "●", "false split", c.text[0]),
            )
        )

    def text_at(self, at: QPointF) -> str:
        epochs = np.array(sorted(self._rows))
        away = np.abs(self.canvas.box.pixels(epochs, np.zeros(len(epochs)))[:, 0] - at.x())
        if not len(epochs) or away.min() > _NEAR:
            return ""
        epoch = int(epochs[away.argmin()])
        merge, split = self._rows[epoch]
        return (
            f"epoch {epoch}: VI {short(merge + split)} bits\n"
            f"{short(merge)} false merge + {short(split)} false split"
        )
