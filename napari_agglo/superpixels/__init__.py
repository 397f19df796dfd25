"""Superpixels: the oversegmentation that agglomeration starts from, and a boundary cue."""

from __future__ import annotations

from napari_agglo.superpixels._boundary_cue import KINDS as CUE_KINDS
from napari_agglo.superpixels._boundary_cue import CueKind, boundary_cue
from napari_agglo.superpixels._labels_cue import boundary_from_labels
from napari_agglo.superpixels._oriented_energy import oriented_boundary
from napari_agglo.superpixels._oversegment import oversegment
from napari_agglo.superpixels._superpixels_within_segments import divide_superpixels
from napari_agglo.superpixels._textons import texton_dictionary, textons

__all__ = [
    "oversegment",
    "boundary_cue",
    "boundary_from_labels",
    "divide_superpixels",
    "oriented_boundary",
    "textons",
    "texton_dictionary",
    "CueKind",
    "CUE_KINDS",
]
