"""Preview of the superpixels of the plane in view."""

# In its own file: it owns a layer of napari, and no field of the form.

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import numpy as np

from napari_agglo.widgets._dataset import Dataset, Placement
from napari_agglo.widgets._napari import role, role_of
from napari_agglo.widgets.data._selection import Selection

PREVIEW = "preview"  # the name of the job, and of the role of the layer


def preview_plane(viewer: Any, selection: Selection) -> None:
    """Compute the superpixels of one plane in the background, and show their outlines."""
    dataset = selection.project.dataset
    if dataset is None:
        return
    plane, placement = _plane_of(viewer, dataset)
    target = weakref.ref(viewer)
    # A dataset that was built has superpixels already; the preview computes them anew.
    bare = replace(dataset, superpixels=None, partition=None, start=None, gold=None)
    options = {**bare.options, "per_plane": False}
    flat = replace(bare, options=options, placement=Placement.plain(2))

    def work(progress: Any) -> Any:
        name, cue = next(iter(flat.cues.items()))
        cut = np.asarray(cue[plane])
        scale = placement.scale[-2:]
        one = replace(flat, cues={name: cut}, placement=Placement(scale, (0.0, 0.0)))
        labels = one.oversegmented(progress).superpixels
        return labels.reshape((1,) * (len(placement.scale) - 2) + labels.shape)

    def done(labels: Any) -> None:
        live = target()
        if live is None:
            return
        remove_preview(live)
        active = live.layers.selection.active
        layer = live.add_labels(
            labels,
            name=f"{int(labels.max(initial=0)):,} superpixels (preview)",
            metadata=role(PREVIEW),
            **placement.keywords(),
        )
        layer.contour = 1
        if active is not None and active in live.layers:
            live.layers.selection.active = active

    selection.project.jobs.start(PREVIEW, "Superpixels of this plane", work, done)


def remove_preview(viewer: Any) -> None:
    """Take the preview away."""
    for layer in [one for one in viewer.layers if role_of(one)[0] == PREVIEW]:
        viewer.layers.remove(layer)


def _plane_of(viewer: Any, dataset: Dataset) -> tuple[tuple[Any, ...], Placement]:
    """Return the index of the plane in view, and its place in the world."""
    place, shape = dataset.placement, dataset.shape
    extra = viewer.dims.ndim - len(shape)
    index: list[Any] = []
    translate = list(place.translate)
    for axis in range(len(shape) - 2):
        at = (viewer.dims.point[axis + extra] - place.translate[axis]) / place.scale[axis]
        number = int(np.clip(round(at), 0, shape[axis] - 1))
        index.append(number)
        translate[axis] += number * place.scale[axis]
    return (*index, ...), replace(place, translate=tuple(translate))
