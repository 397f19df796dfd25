"""Tables as CSV or parquet: the segments, the edits, the merges."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._table_files import PARQUET, check_table_file, write_rows
from napari_agglo.agglomeration import MergeTree, NameInheritance, plain_threshold
from napari_agglo.agglomeration._merge_tree import merge_table
from napari_agglo.graph import RegionGraph
from napari_agglo.graph._interchange import region_columns
from napari_agglo.session._exports.export_kinds import ExportView, check_target, exporter
from napari_agglo.session._marks import Marks
from napari_agglo.session._segment_statistics import SegmentStatistics, segments_of
from napari_agglo.volumes import replacing

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class MergeRows:
    """All merges of a session, in order.

    Attributes
    ----------
    tree : MergeTree
        The merges; its priorities are the scales from which they count.
    priorities : ndarray of float64, shape (m,)
        Priority by the policy; NaN for a merge that is an edit.
    edits : ndarray of int64, shape (m,)
        Number of the journal entry that made the merge; 0 if the policy did.
    name_inheritance : NameInheritance
        The name that each merge keeps.
    """

    tree: MergeTree
    priorities: NDArray[np.float64]
    edits: NDArray[np.int64]
    name_inheritance: NameInheritance


def write_table(path: str | PathLike[str], overwrite: bool, table: pd.DataFrame) -> None:
    """Write a table as CSV (UTF-8, one line of headings), or as parquet if the suffix says so."""
    target = check_target(path, overwrite)
    check_table_file(target)
    with replacing(target) as temporary:
        write_rows(table, temporary, target)


_TABLES = (".csv", PARQUET)


@exporter("tree", label="Table of merges", suffixes=_TABLES)
def export_tree(view: ExportView, path: str | PathLike[str], *, overwrite: bool) -> None:
    """Write the merges as CSV or parquet, in order and in the user's ids.

    The columns are those of `MergeTree.to_csv` and `edit`. `priority` is empty for a merge that is
    an edit, `edit` for a merge by the policy.
    """
    import pandas as pd

    rows = view.merges
    table = merge_table(rows.tree, rows.name_inheritance)
    table["priority"] = rows.priorities
    table["edit"] = pd.array(rows.edits, "Int64")
    table.loc[rows.edits == 0, "edit"] = pd.NA
    write_table(path, overwrite, table)


@exporter("regions", label="Table of segments", suffixes=_TABLES)
def export_regions(view: ExportView, path: str | PathLike[str], *, overwrite: bool) -> None:
    """Write `segment_table` as CSV or parquet."""
    write_table(path, overwrite, segment_table(view.graph, view.lut, view.marks))


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
    return table_of(segments_of(graph, lut), marks or Marks())


def table_of(segments: SegmentStatistics, marks: Marks) -> pd.DataFrame:
    """Return the table of segments of these statistics."""
    import pandas as pd

    table = pd.DataFrame(
        region_columns(
            segments.graph, segments.ids, segments.sizes, segments.centroids, segments.boxes,
            segments.border_faces, segments.cue_means,
        )
    )  # fmt: skip
    table.insert(1, "superpixels", segments.superpixels)
    own = [marks[segment] for segment in segments.ids.tolist()]
    table["name"] = [mark.name for mark in own]
    table["comment"] = [mark.comment for mark in own]
    table["reviewed"] = np.array([mark.reviewed for mark in own], np.bool_)
    return table


@dataclass(frozen=True)
class EditRow:
    """A row of the table of edits.

    Attributes
    ----------
    sequence : int
        Its number in the journal.
    time : str
        Time of the edit in the journal: ISO 8601, UTC.
    kind : str
        merge, cut, lock, ...
    scale : float, optional
        The threshold at which it was made; None if it has none.
    ids : tuple of int
        The user's ids of the segments it was made on, in their order.
    state : {"live", "undone", "asleep"}
        Whether it is in force; asleep: a later edit suspends it.
    details : str
        All that is needed to make it again, as JSON; empty if it is undone.
    superpixels : str
        Fingerprint of the superpixels of the session: shape, number and checksum.
    """

    sequence: int
    time: str
    kind: str
    scale: float | None
    ids: tuple[int, ...]
    state: Literal["live", "undone", "asleep"]
    details: str = ""
    superpixels: str = ""


CELL = 32_000  # characters of a cell, of which spreadsheets take 32,767


@exporter("edits", label="Table of edits", suffixes=_TABLES)
def export_edits(view: ExportView, path: str | PathLike[str], *, overwrite: bool) -> None:
    """Write the edits as CSV or parquet, as `edit_table` has them."""
    write_table(path, overwrite, edit_table(view.edits))


def edit_table(rows: list[EditRow]) -> pd.DataFrame:
    """Return a row for each edit, oldest first.

    Columns: sequence, time, kind, scale (empty if there is none, -inf before any merge), ids
    (separated by spaces), state, superpixels (fingerprint of those that the ids are of), details
    (JSON, by which `Session.apply` makes the edit again).
    Details that are longer than a cell of a spreadsheet may be go on in details_2 and so on.
    """
    import pandas as pd

    def scale(row: EditRow) -> float | None:
        return None if row.scale is None else plain_threshold(row.scale)

    longest = max((len(row.details) for row in rows), default=0)
    parts = range(0, max(longest, 1), CELL)
    return pd.DataFrame(
        [
            (row.sequence, row.time, row.kind, scale(row), " ".join(map(str, row.ids)), row.state,
             row.superpixels, *(row.details[at : at + CELL] for at in parts))
            for row in rows
        ],
        columns=["sequence", "time", "kind", "scale", "ids", "state", "superpixels",
                 "details", *(f"details_{k + 2}" for k in range(len(parts) - 1))],
    )  # fmt: skip
