"""The Data step."""

from __future__ import annotations

from napari_agglo.widgets.data._widget import DataWidget

__all__ = ["DataWidget"]
