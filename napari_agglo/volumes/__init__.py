"""What the user brings: files and arrays, checked once, with dense ids and quantised cues."""

from __future__ import annotations

from napari_agglo.volumes._check import (
    check_labels,
    check_mask,
    check_same_shape,
    check_same_spacing,
    check_spacing,
)
from napari_agglo.volumes._cues import Cues, check_cues
from napari_agglo.volumes._relabel import DenseLabels, dense_labels
from napari_agglo.volumes._volume import Volume

__all__ = [
    "Volume",
    "DenseLabels",
    "dense_labels",
    "Cues",
    "check_cues",
    "check_labels",
    "check_mask",
    "check_same_shape",
    "check_same_spacing",
    "check_spacing",
]
