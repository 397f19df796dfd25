"""The label image of the segments, and that of the reviewed ones as a gold standard."""

from __future__ import annotations

from os import PathLike
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.session._exports.export_kinds import ExportView, check_target, exporter
from napari_agglo.volumes import mapped_labels, write_labels

_SUFFIXES = (".tif", ".tiff", ".ome.zarr", ".h5", ".npz", ".npy", ".png")


Unit = Annotated[
    str,
    "Unit to write the spacing in (default: um if the files of the session stated a unit, else "
    "none). Where the unit is not known, this names the unit of the numbers, and converts nothing",
]


@exporter("labels", label="Label image", suffixes=_SUFFIXES)
def export_labels(
    view: ExportView,
    path: str | PathLike[str],
    *,
    overwrite: bool,
    unit: Unit = "",
    progress: ProgressCallback | None = None,
) -> None:
    """Write the label image, in the format that the suffix names, with the graph's spacing.

    The integer type is that of the superpixels, or a wider one if an id does not fit in it. Those
    of superpixels on disk are written block by block to OME-Zarr and precomputed volumes.
    """
    _write(view, view.lut, path, overwrite, unit, progress)


@exporter("gold", label="Reviewed segments as gold", suffixes=_SUFFIXES)
def export_gold(
    view: ExportView,
    path: str | PathLike[str],
    *,
    overwrite: bool,
    unit: Unit = "",
    progress: ProgressCallback | None = None,
) -> None:
    """Write the reviewed segments as a label image; 0, not annotated, elsewhere."""
    check_target(path, overwrite, with_key=True)
    reviewed = np.array([one for one in view.marks if view.marks[one].reviewed], np.uint64)
    lut = np.where(np.isin(view.lut, reviewed), view.lut, np.uint64(0))
    if not lut.any():
        raise InvalidInput(
            "No segment is reviewed at this threshold",
            argument="kind",
            remedy="mark segments as reviewed first: marks.review(segment)",
        )
    _write(view, lut, path, overwrite, unit, progress)


def _write(
    view: ExportView,
    lut: NDArray[np.uint64],
    path: str | PathLike[str],
    overwrite: bool,
    unit: str,
    progress: ProgressCallback | None,
) -> None:
    target = check_target(path, overwrite, with_key=True)
    graph = view.graph
    highest = int(lut.max())
    own = graph.superpixels.dtype.newbyteorder("=")
    dtype = own if highest <= int(np.iinfo(own).max) else np.min_scalar_type(highest)
    labels = mapped_labels(graph.superpixels.image, lut.astype(dtype))
    spacing, named = graph.voxel_size.in_unit(unit or None)
    write_labels(target, labels, spacing=spacing, unit=named, progress=progress)
