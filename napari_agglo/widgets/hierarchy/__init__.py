"""The Hierarchy step."""

from __future__ import annotations

from napari_agglo.widgets.hierarchy._widget import HierarchyWidget

__all__ = ["HierarchyWidget"]
