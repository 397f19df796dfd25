"""Writers of Labels layers: label images in common formats, or a session folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from napari_agglo.errors import AggloError, InvalidInput
from napari_agglo.session import Session
from napari_agglo.volumes import is_on_disk, mapped_labels
from napari_agglo.volumes import write_labels as write
from napari_agglo.widgets._dataset import length_unit
from napari_agglo.widgets._lut_array import LutArray
from napari_agglo.widgets._scene import current_project
from napari_agglo.widgets.proofread._open_session import copy_session


def write_labels(path: str, data: Any, meta: dict[str, Any]) -> list[str]:
    """Write a Labels layer in the format that the suffix names, with its spacing.

    A layer of a hierarchy or a session is passed with the ids of its superpixels and with all
    segments, even if only some are visible.
    """
    spacing = tuple(abs(float(one)) for one in meta.get("scale", ())) or None
    with _refusals_shown():
        first, unit = _first_level(data), length_unit(meta.get("units"))
        labels: Any = None
        if isinstance(first, LutArray) and is_on_disk(first.superpixels):  # block by block
            labels = mapped_labels(first.superpixels, first.table.values)
        elif is_on_disk(first):
            labels = first
        else:
            labels = np.asarray(first)
        return [str(write(path, labels, spacing=spacing, unit=unit))]


def write_session(path: str, data: Any, meta: dict[str, Any]) -> list[str]:
    """Write the hierarchy of a segmentation as a session folder, with all edits so far."""
    with _refusals_shown():
        return [str(_save(Path(path), current_project(_first_level(data))))]


def _save(target: Path, project: Any) -> Path:
    if project is None:
        raise InvalidInput(
            "This layer shows no hierarchy, so it cannot be saved as a session",
            argument="layer",
            remedy=("choose the layer Segmentation", "save the layer as labels: .tif, .h5, .zarr"),
        )
    if target.exists():
        raise InvalidInput(
            f"{target} exists already", argument="path", remedy="choose another name"
        )
    if project.session is None:
        built = project.built
        with Session.create(target, built.regions.graph, built.policy, gold=built.gold) as session:
            session.threshold = project.threshold
    else:
        copy_session(project.session.path, target)
    return target


@contextmanager
def _refusals_shown() -> Iterator[None]:
    """Raise refusals as `AggloError`: napari takes a ValueError for a missing writer."""
    try:
        yield
    except ValueError as error:
        raise AggloError(str(error)) from error


def _first_level(data: Any) -> Any:
    """Return the finest level of the data of a layer."""
    several = isinstance(data, (list, tuple)) or type(data).__name__ == "MultiScaleData"
    return data[0] if several else data
