"""The segments and their boundaries as a graph for other programs."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._exports._graphml_file import write_graphml
from napari_agglo.session._exports._regions import measured
from napari_agglo.session._exports._target import writing
from napari_agglo.session._marks import Marks
from napari_agglo.session._segments import Segments, segments_of

if TYPE_CHECKING:
    import pandas as pd


def export_graphml(
    path: str | PathLike[str],
    graph: RegionGraph,
    lut: ArrayLike,
    marks: Marks | None = None,
    priorities: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
) -> Path:
    """Write the graph of the segments as GraphML, which networkx reads, whole or not at all.

    A node is a segment, with the columns of `segment_table`; an edge is a boundary, with its faces,
    its area (in units of the spacing), the mean of each cue over it, and its priority.

    Parameters
    ----------
    path
        The file to write.
    graph : RegionGraph
        The superpixels and their boundaries.
    lut : array of int, shape (n + 1,)
        The id of the segment of each superpixel.
    marks : Marks, optional
        Names, comments, reviewed flags by segment id.
    priorities : (array of int, shape (k, 2), array of float, shape (k,)), optional
        Pairs of segment ids, and what the policy says of merging them; those of other pairs are
        left out of the file.
    overwrite : bool
        Whether what is at `path` may be replaced.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.
    """
    segments = segments_of(graph, lut)
    about = {
        "ndim": str(graph.layout.ndim),
        "spacing": " ".join(str(s) for s in graph.spacing),
        "cues": " ".join(graph.cue_names),
    }
    nodes = measured(segments, marks or Marks())
    edges = _boundary_table(segments, priorities)
    target = Path(path)
    with writing(target, overwrite) as temporary:
        write_graphml(temporary, about, nodes, edges, progress)
    return target


def _boundary_table(
    segments: Segments, priorities: tuple[ArrayLike, ArrayLike] | None
) -> pd.DataFrame:
    import pandas as pd

    graph, found = segments.graph, segments.boundaries()
    ids = segments.ids[found.pairs]
    columns: dict[str, object] = {
        "u": ids[:, 0],
        "v": ids[:, 1],
        "faces": found.faces.sum(axis=1),
        "area": found.faces @ graph.face_areas(),
    }
    for cue, name in enumerate(graph.cue_names):
        columns[f"{name}_mean"] = found.cue_means[:, cue]
    table = pd.DataFrame(columns)
    if priorities is None:
        return table
    asked, said = _checked(priorities)
    known = pd.DataFrame({"u": asked[:, 0], "v": asked[:, 1], "priority": said})
    return table.merge(known.drop_duplicates(["u", "v"]), how="left", on=["u", "v"])


def _checked(
    priorities: tuple[ArrayLike, ArrayLike],
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    pairs = np.asarray(priorities[0])
    said = np.asarray(priorities[1], np.float64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or said.shape != pairs.shape[:1]:
        raise InvalidInput(
            "`priorities` must be pairs of segment ids, shape (k, 2), and a number for each, got "
            f"shapes {pairs.shape} and {said.shape}."
        )
    return np.sort(pairs.astype(np.uint64), axis=1), said
