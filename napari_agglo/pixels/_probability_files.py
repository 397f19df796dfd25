"""Probabilities of pixels in a Zarr, written block by block, also where they exceed memory.

In its own file: the command line and the window write the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from napari_agglo._progress import ProgressCallback
from napari_agglo.pixels._pixel_classifier import PixelClassifier
from napari_agglo.pixels._pixel_image import blocks
from napari_agglo.volumes import VoxelSize, replacing
from napari_agglo.volumes._units import ELEMENT_UNIT

_MARK = "napari_agglo_pixels"  # the attribute of a Zarr group that was written here


def write_probabilities(
    target: Path,
    classifier: PixelClassifier,
    image: Any,
    voxel: VoxelSize,
    *,
    classes: Sequence[str] | None = None,
    spacing: Sequence[float] | None = None,
    channel_axis: int | None = None,
    progress: ProgressCallback | None = None,
) -> None:
    """Write an array for each class, block by block; a chunk is a block and is written once.

    Parameters
    ----------
    target : Path
        ``NAME.zarr``; only a group that was written here is replaced.
    classifier, image, spacing, channel_axis
        As for `PixelClassifier.predict`.
    voxel : VoxelSize
        Spacing of the arrays, for those who open them.
    classes : sequence of str, optional
        Names of the classes to write; by default all.
    progress : callable, optional
        Called after each block; raise `Cancelled` in it to stop, and `target` is as before.
    """
    import zarr

    source = classifier.check_image(image, spacing, channel_axis)
    chunks = blocks(source.grid, classifier.bank.axes)[0].shape[3 - source.ndim :]
    sides, unit = voxel.in_micrometres()
    attributes: dict[str, Any] = {} if sides is None else {"element_size_um": list(sides)}
    if sides is not None and unit is None:
        attributes[ELEMENT_UNIT] = "unknown"
    with replacing(target, may_replace=_is_ours) as temporary:
        group = zarr.create_group(str(temporary), zarr_format=3, attributes={_MARK: 1})
        arrays = {
            name: group.create_array(
                name, shape=source.shape, dtype="float32", chunks=chunks, attributes=attributes
            )
            for name in (classifier.names if classes is None else classes)
        }
        for index, probabilities in classifier.blocks(source, progress=progress):
            for name, array in arrays.items():
                part = probabilities[classifier.names.index(name)]
                array[index[3 - source.ndim :]] = part if source.ndim == 3 else part[0]


def _is_ours(folder: Path) -> bool:
    """Return whether a folder is a Zarr group that was written here."""
    try:
        described = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
        return _MARK in described["attributes"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
