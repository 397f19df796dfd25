"""Superpixels: the oversegmentation that agglomeration starts from."""

from __future__ import annotations

from napari_agglo.superpixels._oversegment import oversegment

__all__ = ["oversegment"]
