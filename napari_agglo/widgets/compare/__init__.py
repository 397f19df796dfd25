"""Side by side: several segmentations of one image, moved together."""

from __future__ import annotations

from napari_agglo.widgets.compare._widget import CompareWidget

__all__ = ["CompareWidget"]
