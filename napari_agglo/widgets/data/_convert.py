"""An image that holds whole numbers, as a Labels layer."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from napari.layers import Labels

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import in_memory
from napari_agglo.widgets._project import Project
from napari_agglo.widgets.data._layers import data_of, placement_of

CONVERT = "convert"  # the name of the job


def convert_to_labels(
    viewer: Any, project: Project, layer: Any, done: Callable[[Labels], object]
) -> None:
    """Add a Labels layer with the pixels of an image, in the background."""
    data, name, placement = data_of(layer), str(layer.name), placement_of(layer)
    held = weakref.ref(viewer)

    def add(labels: Any) -> None:
        live = held()
        if live is not None:
            made = Labels(labels, name=f"{name} labels", **placement.keywords())
            live.add_layer(made)
            done(made)

    title = "Converting to labels"
    project.jobs.start(CONVERT, title, lambda progress: as_labels(data, name, progress), add)


def as_labels(data: Any, name: str, progress: ProgressCallback | None = None) -> Any:
    """Return whole numbers as unsigned integers, or say why they are no labels.

    Examples
    --------
    >>> as_labels(np.array([0.0, 2.0, 300.0]), "gold").tolist()
    [0, 2, 300]
    """
    values = in_memory(data, name, progress)
    if values.dtype.kind not in "biuf":
        raise InvalidInput(f"“{name}” holds {values.dtype}, which are no labels; choose another.")
    if values.size == 0:
        return values.astype(np.uint32)
    low, high = values.min(), values.max()
    whole = np.isfinite(low) and np.isfinite(high)
    if values.dtype.kind == "f":
        whole = bool(whole and (values == np.rint(values)).all())
    if not whole:
        raise InvalidInput(
            f"“{name}” holds fractions or NaN, so it is a map of values and no label image; choose "
            "a layer with an id for each object."
        )
    if low < 0 or high >= 2**53:
        raise InvalidInput(
            f"“{name}” has values from {low:g} to {high:g}; labels are 0 or more, and below 2**53."
        )
    return values.astype(np.uint32 if high < 2**32 else np.uint64)
