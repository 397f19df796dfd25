"""What the user brings: files and arrays, checked once, with dense ids and quantised cues."""

from __future__ import annotations

from napari_agglo.volumes._arrays import in_memory, is_lazy, unwrap
from napari_agglo.volumes._atomic import replacing
from napari_agglo.volumes._check import check_labels, check_mask
from napari_agglo.volumes._components import split_components
from napari_agglo.volumes._contingency import Contingency, contingency
from napari_agglo.volumes._cues import Cues, check_cues
from napari_agglo.volumes._memory import require_memory
from napari_agglo.volumes._open import open_volume
from napari_agglo.volumes._quantise import Findings
from napari_agglo.volumes._relabel import DenseLabels, dense_labels
from napari_agglo.volumes._shape import check_same_shape, refuse_colours
from napari_agglo.volumes._spacing import check_same_spacing, check_spacing
from napari_agglo.volumes._values import ValueGate, check_nan, check_range
from napari_agglo.volumes._volume import Volume
from napari_agglo.volumes._write import write_labels

__all__ = [
    "Volume",
    "open_volume",
    "write_labels",
    "DenseLabels",
    "dense_labels",
    "Cues",
    "check_cues",
    "check_labels",
    "check_mask",
    "check_same_shape",
    "check_same_spacing",
    "check_spacing",
    "check_range",
    "check_nan",
    "ValueGate",
    "Findings",
    "refuse_colours",
    "unwrap",
    "is_lazy",
    "in_memory",
    "require_memory",
    "Contingency",
    "contingency",
    "split_components",
    "replacing",
]
