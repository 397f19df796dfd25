"""The segmentation as a label image."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from napari_agglo.graph import RegionGraph
from napari_agglo.session._exports._target import check_target
from napari_agglo.session._segments import check_lut
from napari_agglo.volumes import write_labels


def export_labels(
    path: str | PathLike[str], graph: RegionGraph, lut: ArrayLike, *, overwrite: bool = False
) -> Path:
    """Write the label image, in the format that the suffix names, with the graph's spacing.

    Parameters
    ----------
    path
        As for `write_labels`.
    graph : RegionGraph
        The superpixels.
    lut : array of int, shape (n + 1,)
        The id of the segment of each superpixel, as it shall stand in the image.
    overwrite : bool
        Whether what is at `path` may be replaced.

    Returns
    -------
    Path
        The file or folder written. Its type is the user's own if that holds every id.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from napari_agglo.graph import region_graph
    >>> from napari_agglo.volumes import open_volume
    >>> graph = region_graph(np.array([[1, 2, 3]], np.uint8), np.zeros((1, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = export_labels(Path(folder) / "a.tif", graph, [0, 1, 1, 3])
    ...     open_volume(path).load()
    array([[1, 1, 3]], dtype=uint8)
    """
    table = check_lut(graph, lut)
    target = check_target(path, overwrite, with_key=True)
    highest = int(table.max())
    own = graph.superpixels.dtype.newbyteorder("=")
    dtype = own if highest <= int(np.iinfo(own).max) else np.min_scalar_type(highest)
    return write_labels(target, table.astype(dtype)[graph.superpixels.image], spacing=graph.spacing)
