"""How far a segmentation is from the gold standard: false merges and false splits, in bits."""

from __future__ import annotations

from napari_agglo.evaluate._curve import state_at, vi_curve
from napari_agglo.evaluate._vi import conditional_entropies, split_vi
from napari_agglo.volumes import Contingency, contingency

__all__ = [
    "Contingency",
    "conditional_entropies",
    "contingency",
    "split_vi",
    "state_at",
    "vi_curve",
]
