"""What a learned policy looks at, on the screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyqtgraph as pg
from qtpy.QtCore import QPointF
from qtpy.QtGui import QFont
from qtpy.QtWidgets import QWidget

from napari_agglo.plots import shown
from napari_agglo.widgets.plots._curve import short
from napari_agglo.widgets.plots._marks import faint, key
from napari_agglo.widgets.plots._plot import Plot

_MOST = 12


class ImportancePlot(Plot):
    """Bars of the most important features, their names written over them."""

    axes_names = ("importance", "")

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            "Feature importances",
            f"The {_MOST} features that count most in the policy, the greatest above.",
            "Train a policy, or open one, to see what it looks at.",
            parent=parent,
        )
        self._found: list[tuple[str, float]] = []
        self._count = 0
        self._bars = pg.BarGraphItem(x0=[], y=[], width=[], height=0.8)
        self.canvas.addItem(self._bars, ignoreBounds=True)
        font = QFont()
        font.setPixelSize(10)
        self._names = [pg.TextItem(anchor=(0, 0.5)) for _ in range(_MOST)]
        for item in self._names:
            item.setFont(font)
            self.canvas.addItem(item, ignoreBounds=True)
        self.canvas.hideAxis("left")
        self.canvas.box.setMouseEnabled(x=False, y=False)

    def set_record(self, record: Mapping[str, Any] | None) -> None:
        """Draw ``LearnedPolicy.record["importances"]``, or nothing."""
        found = dict((record or {}).get("importances") or {})
        self._count = len(found)
        self._found = sorted(found.items(), key=lambda item: -item[1])[:_MOST]
        if not self._found:
            self.say_empty(None if record is None else "This policy has no record of its features.")
            return
        self.show_all()
        self.redraw()
        self._drawn()

    def show_all(self) -> None:
        if self._found:
            most = max(self._found[0][1], 1e-9)
            rows = (-len(self._found) + 0.4, 0.6)
            self.canvas.setRange(xRange=(0, 1.02 * most), yRange=rows, padding=0)

    def redraw(self) -> None:
        values = [value for _, value in self._found]
        self._bars.setOpts(
            x0=[0.0] * len(values), y=[-float(k) for k in range(len(values))], width=values,
            height=0.8, brush=faint(self.colours.series[0], 0.45), pen=None,
        )  # fmt: skip
        for k, item in enumerate(self._names):
            item.setVisible(k < len(self._found))
            if k < len(self._found):
                item.setText(shown(self._found[k][0], 40), color=self.colours.ink)
                item.setPos(0, -k)
        some = f"the {len(values)} of {self._count} features that count most"
        self.key.setText(key(some if self._count > len(values) else f"{self._count} features"))

    def hover(self, at: QPointF | None) -> None:
        row = -1 if at is None else round(-self.canvas.box.place(at)[1])
        if at is None or not 0 <= row < len(self._found):
            self.readout.hide()
            return
        name, value = self._found[row]
        self._say(f"{name}: {short(value)}", at)
