"""The segments and their boundaries as a graph for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._annotations import Marks
from napari_agglo.session._exports.csv_tables import measured
from napari_agglo.session._exports.labels import writing
from napari_agglo.session._segments import Segments, segments_of

if TYPE_CHECKING:
    import pandas as pd


# Writing GraphML row by row: no copy of the graph in memory, and a cancel is noticed at once.
#
# networkx writes the same format, but builds the whole document first: gigabytes and a minute for a
# hundred thousand segments, during which nothing can be stopped.


_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
 xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_TYPES = {"i": "long", "u": "long", "f": "double", "b": "boolean"}
# Rows between two reports: some tenths of a second.
_SLICE = 1 << 14


def write_graphml(
    file: Path,
    about: Mapping[str, str],
    nodes: pd.DataFrame,
    edges: pd.DataFrame,
    progress: ProgressCallback | None = None,
) -> None:
    """Write an undirected graph; cells that are NaN are left out.

    Parameters
    ----------
    file : Path
        Where to write it.
    about : mapping of str to str
        What is said of the graph as a whole.
    nodes : DataFrame
        One row a node; the first column is its id.
    edges : DataFrame
        One row an edge; the first two columns are the ids of its nodes.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.
    """
    total = len(nodes) + len(edges)
    with file.open("x", encoding="utf-8", newline="\n") as out:
        out.write(_HEAD)
        _declare(out, "graph", dict.fromkeys(about, "string"))
        _declare(out, "node", _types(nodes, 1))
        _declare(out, "edge", _types(edges, 2))
        out.write('<graph edgedefault="undirected">\n')
        for name, text in about.items():
            out.write(f"<data key={quoteattr(f'graph_{name}')}>{_plain(text)}</data>\n")
        for k, (id_, data) in enumerate(_rows(nodes, 1, "node")):
            if k % _SLICE == 0:
                report(progress, "graph", k, total)
            out.write(f'<node id="{id_[0]}">{data}</node>\n')
        for k, (ends, data) in enumerate(_rows(edges, 2, "edge")):
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


def _rows(table: pd.DataFrame, n_ids: int, of: str) -> Iterator[tuple[tuple[object, ...], str]]:
    """Give the ids of each row, and its data as XML."""
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
        return escape(value, {"\r": "&#13;"})  # a parser would take it for the end of a line
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


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
