"""Tables, networkx and GraphML of a region graph.

In its own file because it is the only part of the graph that needs pandas and networkx.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.volumes import replacing

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from napari_agglo.graph._region_graph import RegionGraph


def region_table(graph: RegionGraph) -> pd.DataFrame:
    """Return the table of regions, in ascending order of the user's id."""
    import pandas as pd

    means = [graph.region_mean(name)[1:] for name in graph.cue_names]
    return pd.DataFrame(
        region_columns(
            graph, graph.ids[1:], graph.sizes[1:], graph.centroids()[1:], graph.boxes[1:],
            graph.regions[1:, graph.layout.border].sum(axis=1), _as_columns(means, graph.n_regions),
        )
    )  # fmt: skip


def region_columns(
    graph: RegionGraph,
    ids: NDArray[np.uint64],
    sizes: NDArray[np.int64],
    centroids: NDArray[np.float64],
    boxes: NDArray[np.int32],
    border_faces: NDArray[np.int64],
    cue_means: NDArray[np.float64],
) -> dict[str, NDArray[Any]]:
    """Return the columns of a table of regions, or of unions of regions, of `graph`."""
    axes = range(graph.layout.ndim)
    columns: dict[str, NDArray[Any]] = {"id": ids, "size": sizes}
    columns |= {f"centroid_{axis}": centroids[:, axis] * graph.spacing[axis] for axis in axes}
    for axis in axes:
        columns[f"box_start_{axis}"] = boxes[:, 0, axis]
        columns[f"box_stop_{axis}"] = boxes[:, 1, axis]
    columns["border_faces"] = border_faces
    return columns | {f"{n}_mean": cue_means[:, cue] for cue, n in enumerate(graph.cue_names)}


def boundary_table(graph: RegionGraph) -> pd.DataFrame:
    """Return the table of boundaries, in ascending order of the user's ids."""
    import pandas as pd

    faces = graph.boundaries[:, graph.layout.faces]
    means = [graph.boundary_mean(name) for name in graph.cue_names]
    return pd.DataFrame(
        boundary_columns(graph, graph.ids[graph.edges], faces, _as_columns(means, len(faces)))
    )


def boundary_columns(
    graph: RegionGraph,
    ids: NDArray[np.uint64],
    faces: NDArray[np.int64],
    cue_means: NDArray[np.float64],
) -> dict[str, NDArray[Any]]:
    """Return the columns of a table of boundaries between regions, or unions of regions."""
    columns: dict[str, NDArray[Any]] = {"u": ids[:, 0], "v": ids[:, 1]}
    columns["faces"] = faces.sum(axis=1) // graph.face_parts
    columns["area"] = faces @ graph.face_areas()
    return columns | {f"{n}_mean": cue_means[:, cue] for cue, n in enumerate(graph.cue_names)}


def _as_columns(arrays: list[NDArray[np.float64]], length: int) -> NDArray[np.float64]:
    return np.stack(arrays, axis=1) if arrays else np.zeros((length, 0))


def about(graph: RegionGraph) -> dict[str, str]:
    """Return the attributes of the graph as a whole."""
    return {
        "ndim": str(graph.layout.ndim),
        "spacing": " ".join(str(s) for s in graph.spacing),
        "cues": " ".join(graph.cue_names),
    }


def to_networkx(graph: RegionGraph) -> nx.Graph[int]:
    """Return a networkx graph on the user's ids; all attributes are plain numbers."""
    import networkx as nx

    out: nx.Graph[int] = nx.Graph()
    out.graph.update(about(graph), ndim=graph.layout.ndim)
    nodes: Any = region_table(graph).to_dict("records")
    edges: Any = boundary_table(graph).to_dict("records")
    out.add_nodes_from((row.pop("id"), row) for row in nodes)
    out.add_edges_from((row.pop("u"), row.pop("v"), row) for row in edges)
    return out


def to_graphml(graph: RegionGraph, path: str | PathLike[str]) -> Path:
    """Write the graph as GraphML, whole or not at all."""
    target = Path(path)
    with replacing(target) as temporary:
        write_graphml(temporary, about(graph), region_table(graph), boundary_table(graph))
    return target


# GraphML is written row by row, without a copy of the graph in memory, and can be cancelled at any
# row. networkx builds the whole document first: gigabytes and a minute for a hundred thousand
# regions, without a chance to cancel.


_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_TYPES = {"i": "long", "u": "long", "f": "double", "b": "boolean"}
_SLICE = 1 << 14  # rows between two reports: some tenths of a second


def write_graphml(
    file: Path,
    attributes: Mapping[str, str],
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    progress: ProgressCallback | None = None,
) -> None:
    """Write an undirected graph with attributes of the whole; cells that are NaN are left out.

    The first column of `nodes` is the id of each, the first two of `edges` the ids of their nodes.
    The file must not exist.
    """
    total = len(nodes) + len(edges)
    with file.open("x", encoding="utf-8", newline="\n") as out:
        out.write(_HEAD)
        _declare(out, "graph", dict.fromkeys(attributes, "string"))
        _declare(out, "node", _types(nodes, 1))
        _declare(out, "edge", _types(edges, 2))
        out.write('<graph edgedefault="undirected">\n')
        for name, text in attributes.items():
            out.write(f"<data key={quoteattr(f'graph_{name}')}>{_plain(text)}</data>\n")
        for k, (id_, data) in enumerate(_elements(nodes, 1, "node")):
            if k % _SLICE == 0:
                report(progress, "graph", k, total)
            out.write(f'<node id="{id_[0]}">{data}</node>\n')
        for k, (ends, data) in enumerate(_elements(edges, 2, "edge")):
            if k % _SLICE == 0:
                report(progress, "graph", len(nodes) + k, total)
            out.write(f'<edge source="{ends[0]}" target="{ends[1]}">{data}</edge>\n')
        out.write("</graph>\n</graphml>\n")
    report(progress, "graph", total, total)


def _types(table: pd.DataFrame, n_ids: int) -> dict[str, str]:
    kinds = {str(name): table[name].dtype.kind for name in table.columns[n_ids:]}
    return {name: _TYPES.get(kind, "string") for name, kind in kinds.items()}


def _declare(out: TextIO, of: str, types: Mapping[str, str]) -> None:
    for name, kind in types.items():
        key, title = quoteattr(f"{of}_{name}"), quoteattr(name)
        out.write(f'<key id={key} for="{of}" attr.name={title} attr.type="{kind}"/>\n')


def _elements(table: pd.DataFrame, n_ids: int, of: str) -> Iterator[tuple[tuple[object, ...], str]]:
    """Yield the ids of each row, and its data as XML."""
    tags = [f"<data key={quoteattr(f'{of}_{name}')}>" for name in table.columns[n_ids:]]
    columns = [table[name].tolist() for name in table.columns]
    for row in zip(*columns, strict=True):
        data = "".join(
            f"{tag}{_plain(value)}</data>"
            for tag, value in zip(tags, row[n_ids:], strict=True)
            if value == value
        )
        yield row[:n_ids], data


def _plain(value: object) -> str:
    if isinstance(value, str):
        return escape(value, {"\r": "&#13;"})  # a parser would read it as the end of a line
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
