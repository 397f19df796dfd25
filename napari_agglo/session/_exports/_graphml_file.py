"""Writing GraphML row by row: no copy of the graph in memory, and a cancel is noticed at once.

networkx writes the same format, but builds the whole document first: gigabytes and a minute for a
hundred thousand segments, during which nothing can be stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from xml.sax.saxutils import escape, quoteattr

from napari_agglo._progress import ProgressCallback, report

if TYPE_CHECKING:
    import pandas as pd

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
