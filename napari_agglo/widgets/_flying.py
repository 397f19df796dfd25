"""Bring a place of the image to the middle of the canvas."""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo.widgets._material import Placement
from napari_agglo.widgets._napari import camera, view_size

_SHARE = 0.45  # of the canvas that the box takes: the rest is what lies around it


def fly_to(viewer: Any, placement: Placement, index: Any, box: Any = None) -> None:
    """Centre the view on a pixel; zoom so that `box` (first, past the last) fits well."""
    at = placement.to_world(index)
    shown = viewer.dims.displayed
    offset = viewer.dims.ndim - len(at)
    for axis in range(viewer.dims.ndim):
        if axis >= offset and axis not in shown:
            viewer.dims.set_point(axis, at[axis - offset])
    lens = camera(viewer)
    lens.center = tuple(at[axis - offset] for axis in shown if axis >= offset)
    if box is not None:
        spans = np.abs((np.asarray(box[1]) - np.asarray(box[0])) * placement.scale)
        extent = max(float(spans[axis - offset]) for axis in shown if axis >= offset)
        if extent > 0:
            lens.zoom = _SHARE * min(view_size(viewer)) / extent
