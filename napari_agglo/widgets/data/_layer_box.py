"""A box to choose a layer from, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QSizePolicy


class LayerBox(QComboBox):
    """Choose one of some layers; what it shows is set from outside."""

    picked = Signal(object)  # the layer that the user chose, or None

    def __init__(self, name: str, none: str, tooltip: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(name)
        self.setToolTip(tooltip)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(12)  # long names of layers do not widen the dock
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._none = none
        self._layers: list[Any] = [None]
        self.activated.connect(lambda index: self.picked.emit(self._layers[index]))
        self.show_layers([], None)

    def show_layers(self, layers: Sequence[Any], chosen: Any) -> None:
        """Offer these layers, and none; show the chosen one."""
        self._layers = [None, *layers]
        names = [self._none, *(str(layer.name) for layer in layers)]
        if names != [self.itemText(k) for k in range(self.count())]:
            self.clear()
            self.addItems(names)
        at = next((k for k, layer in enumerate(self._layers) if layer is chosen), 0)
        self.setCurrentIndex(at)

    def pick(self, layer: Any) -> None:
        """Choose a layer, as the user would."""
        index = next(k for k, one in enumerate(self._layers) if one is layer)
        self.setCurrentIndex(index)
        self.activated.emit(index)
