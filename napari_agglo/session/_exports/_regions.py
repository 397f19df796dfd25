"""The segments as a table: what can be measured of each, and what a person has said of it."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from napari_agglo.graph import RegionGraph
from napari_agglo.session._exports._target import writing
from napari_agglo.session._marks import Marks
from napari_agglo.session._segments import Segments, segments_of

if TYPE_CHECKING:
    import pandas as pd


def segment_table(graph: RegionGraph, lut: ArrayLike, marks: Marks | None = None) -> pd.DataFrame:
    """Return one row a segment, in ascending order of id.

    Columns: id, superpixels, size (pixels), centroid_0, ... (in units of the spacing), box_start_0,
    box_stop_0, ... (pixel indices), border_faces, the mean of each cue (0..1), name, comment,
    reviewed.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.graph import region_graph
    >>> graph = region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3)))
    >>> segment_table(graph, [0, 1, 1, 3])[["id", "superpixels", "size", "centroid_1"]]
       id  superpixels  size  centroid_1
    0   1            2     2         0.5
    1   3            1     1         2.0
    """
    return measured(segments_of(graph, lut), marks or Marks())


def measured(segments: Segments, marks: Marks) -> pd.DataFrame:
    """Return the table of segments that have been added up."""
    import pandas as pd

    graph, ndim = segments.graph, segments.graph.layout.ndim
    columns: dict[str, object] = {
        "id": segments.ids,
        "superpixels": segments.superpixels,
        "size": segments.sizes,
    }
    for axis in range(ndim):
        columns[f"centroid_{axis}"] = segments.centroids[:, axis] * graph.spacing[axis]
    for axis in range(ndim):
        columns[f"box_start_{axis}"] = segments.boxes[:, 0, axis]
        columns[f"box_stop_{axis}"] = segments.boxes[:, 1, axis]
    columns["border_faces"] = segments.border_faces
    for cue, name in enumerate(graph.cue_names):
        columns[f"{name}_mean"] = segments.cue_means[:, cue]
    said = [marks[segment] for segment in segments.ids.tolist()]
    columns["name"] = [mark.name for mark in said]
    columns["comment"] = [mark.comment for mark in said]
    columns["reviewed"] = np.array([mark.reviewed for mark in said], np.bool_)
    return pd.DataFrame(columns)


def export_regions(
    path: str | PathLike[str],
    graph: RegionGraph,
    lut: ArrayLike,
    marks: Marks | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Write `segment_table` as CSV (UTF-8, one line of headings), whole or not at all."""
    target = Path(path)
    with writing(target, overwrite) as temporary:
        segment_table(graph, lut, marks).to_csv(temporary, index=False, encoding="utf-8")
    return target
