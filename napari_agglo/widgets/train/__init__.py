"""The Train step."""

from __future__ import annotations

from napari_agglo.widgets.train._widget import TrainWidget

__all__ = ["TrainWidget"]
