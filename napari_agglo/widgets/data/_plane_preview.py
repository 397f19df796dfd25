"""The superpixels of the plane that is seen, before they are computed everywhere."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import numpy as np
from napari.layers import Labels

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
    held = weakref.ref(viewer)
    # The regions that were built have superpixels already: what is wanted is how they would be.
    bare = replace(dataset, superpixels=None, partition=None, start=None, gold=None)
    flat = replace(bare, per_plane=False, placement=Placement.plain(2))

    def work(progress: Any) -> Any:
        name, cue = next(iter(flat.cues.items()))
        cut = np.asarray(cue[plane])
        scale = placement.scale[-2:]
        one = replace(flat, cues={name: cut}, placement=Placement(scale, (0.0, 0.0)))
        found = one.oversegmented(progress).superpixels
        return found.reshape((1,) * (len(placement.scale) - 2) + found.shape)

    def done(labels: Any) -> None:
        live = held()
        if live is None:
            return
        remove_preview(live)
        made = Labels(
            labels,
            name=f"{int(labels.max(initial=0)):,} superpixels (preview)",
            metadata=role(PREVIEW),
            **placement.keywords(),
        )
        made.contour = 1
        active = live.layers.selection.active
        live.add_layer(made)
        if active is not None and active in live.layers:
            live.layers.selection.active = active

    selection.project.jobs.start(PREVIEW, "Superpixels of this plane", work, done)


def remove_preview(viewer: Any) -> None:
    """Take the preview away."""
    for layer in [one for one in viewer.layers if role_of(one)[0] == PREVIEW]:
        viewer.layers.remove(layer)


def _plane_of(viewer: Any, dataset: Dataset) -> tuple[tuple[Any, ...], Placement]:
    """Return the index of the plane that is seen, and where it lies."""
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
