"""The label image of the segments."""

from __future__ import annotations

from os import PathLike

import numpy as np

from napari_agglo.session._exports.export_kinds import ExportView, check_target, exporter
from napari_agglo.volumes import write_labels


@exporter(
    "labels",
    label="Label image",
    suffixes=(".tif", ".tiff", ".ome.zarr", ".h5", ".npz", ".npy", ".png"),
)
def export_labels(view: ExportView, path: str | PathLike[str], *, overwrite: bool) -> None:
    """Write the label image, in the format that the suffix names, with the graph's spacing.

    The integer type is that of the superpixels, or a wider one if an id does not fit in it.
    """
    target = check_target(path, overwrite, with_key=True)
    graph, lut = view.graph, view.lut
    highest = int(lut.max())
    own = graph.superpixels.dtype.newbyteorder("=")
    dtype = own if highest <= int(np.iinfo(own).max) else np.min_scalar_type(highest)
    write_labels(target, lut.astype(dtype)[graph.superpixels.image], spacing=graph.spacing)
