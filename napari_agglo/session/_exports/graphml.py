"""The graph of the segments as GraphML, which networkx, Gephi and igraph read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.graph._interchange import about, boundary_columns, write_graphml
from napari_agglo.session._exports.csv_tables import table_of
from napari_agglo.session._exports.export_kinds import ExportView, exporter
from napari_agglo.session._segment_statistics import segments_of


@exporter("graphml", label="Graph of segments", suffixes=(".graphml",))
def export_graphml(
    view: ExportView, path: Path, *, progress: ProgressCallback | None = None
) -> None:
    """Write the graph of the segments.

    A node is a segment, with the columns of `segment_table`; an edge is a boundary, with its faces,
    its area (in units of the spacing), the mean of each cue over it, and its priority, if known.
    """
    import pandas as pd

    graph = view.graph
    segments = segments_of(graph, view.lut)
    boundaries = segments.boundaries()
    ids = segments.ids[boundaries.pairs]
    edges = pd.DataFrame(boundary_columns(graph, ids, boundaries.faces, boundaries.cue_means))
    pairs, scores = view.boundary_scores
    pairs = np.sort(pairs, axis=1)
    known = pd.DataFrame({"u": pairs[:, 0], "v": pairs[:, 1], "priority": scores})
    edges = edges.merge(known.drop_duplicates(["u", "v"]), how="left", on=["u", "v"])
    write_graphml(path, about(graph), table_of(segments, view.marks), edges, progress)
