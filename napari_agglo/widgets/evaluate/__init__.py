"""The Evaluate step."""

from __future__ import annotations

from napari_agglo.widgets.evaluate._widget import EvaluateWidget

__all__ = ["EvaluateWidget"]
