"""The graph for people and other programs: tables, networkx, GraphML."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo.volumes import replacing

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from napari_agglo.graph._region_graph import RegionGraph


def region_table(graph: RegionGraph) -> pd.DataFrame:
    """One row a region, in ascending order of the user's id."""
    import pandas as pd

    columns: dict[str, object] = {"id": graph.ids[1:], "size": graph.sizes[1:]}
    centroids = graph.centroids()[1:] * np.asarray(graph.spacing)
    for axis in range(graph.layout.ndim):
        columns[f"centroid_{axis}"] = centroids[:, axis]
    for axis in range(graph.layout.ndim):
        columns[f"box_start_{axis}"] = graph.boxes[1:, 0, axis]
        columns[f"box_stop_{axis}"] = graph.boxes[1:, 1, axis]
    columns["border_faces"] = graph.regions[1:, graph.layout.border].sum(axis=1)
    for name in graph.cue_names:
        columns[f"{name}_mean"] = graph.region_mean(name)[1:]
    return pd.DataFrame(columns)


def boundary_table(graph: RegionGraph) -> pd.DataFrame:
    """One row a boundary, in ascending order of the user's ids."""
    import pandas as pd

    columns: dict[str, object] = {
        "u": graph.ids[graph.edges[:, 0]],
        "v": graph.ids[graph.edges[:, 1]],
        "faces": graph.boundaries[:, graph.layout.faces].sum(axis=1),
        "area": graph.contact_area(),
    }
    for name in graph.cue_names:
        columns[f"{name}_mean"] = graph.boundary_mean(name)
    return pd.DataFrame(columns)


def to_networkx(graph: RegionGraph) -> nx.Graph[int]:
    """Return a networkx graph on the user's ids; all attributes are plain numbers."""
    import networkx as nx

    out: nx.Graph[int] = nx.Graph(
        ndim=graph.layout.ndim,
        spacing=" ".join(str(s) for s in graph.spacing),
        cues=" ".join(graph.cue_names),
    )
    out.add_nodes_from((row.pop("id"), row) for row in _rows(region_table(graph)))
    out.add_edges_from((row.pop("u"), row.pop("v"), row) for row in _rows(boundary_table(graph)))
    return out


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts of plain Python numbers."""
    columns = [table[name].tolist() for name in table]
    names = [str(name) for name in table]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def to_graphml(graph: RegionGraph, path: str | PathLike[str]) -> Path:
    """Write the networkx graph as GraphML, whole or not at all."""
    import networkx as nx

    target = Path(path)
    with replacing(target) as temporary:
        nx.write_graphml(to_networkx(graph), temporary)
    return target
