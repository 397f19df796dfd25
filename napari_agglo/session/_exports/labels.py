"""The label image of the segments."""

from __future__ import annotations

from os import PathLike
from typing import Annotated

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.session._exports.export_kinds import ExportView, check_target, exporter
from napari_agglo.volumes import write_labels


@exporter(
    "labels",
    label="Label image",
    suffixes=(".tif", ".tiff", ".ome.zarr", ".h5", ".npz", ".npy", ".png"),
)
def export_labels(
    view: ExportView,
    path: str | PathLike[str],
    *,
    overwrite: bool,
    unit: Annotated[str, "Unit of the spacing, such as nm; none is written if this is empty"] = "",
    progress: ProgressCallback | None = None,
) -> None:
    """Write the label image, in the format that the suffix names, with the graph's spacing.

    The integer type is that of the superpixels, or a wider one if an id does not fit in it.
    """
    target = check_target(path, overwrite, with_key=True)
    graph, lut = view.graph, view.lut
    highest = int(lut.max())
    own = graph.superpixels.dtype.newbyteorder("=")
    dtype = own if highest <= int(np.iinfo(own).max) else np.min_scalar_type(highest)
    labels = lut.astype(dtype)[graph.superpixels.image]
    write_labels(target, labels, spacing=graph.spacing, unit=unit or None, progress=progress)
