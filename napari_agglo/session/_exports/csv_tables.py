"""The edits of a session as a table: what was done when, and whether it still counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from napari_agglo.agglomeration import Heritage, MergeTree
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.session._annotations import Marks
from napari_agglo.session._exports.labels import writing
from napari_agglo.session._segments import Segments, segments_of
from napari_agglo.volumes import DenseLabels

if TYPE_CHECKING:
    import pandas as pd


# The merge tree of a session as a table, edits included.


def export_tree(
    path: str | PathLike[str],
    superpixels: DenseLabels,
    winners: ArrayLike,
    losers: ArrayLike,
    priorities: ArrayLike,
    heights: ArrayLike,
    edits: ArrayLike | None = None,
    *,
    heritage: Heritage | None = None,
    overwrite: bool = False,
) -> Path:
    """Write merges as CSV, in order and in the user's ids, whole or not at all.

    The columns are those of `MergeTree.to_csv` and one more: merge, winner, loser (names of
    regions, as in a label image; that of the winner is kept), left, right, parent (nodes, the
    winner's first; a superpixel is its dense id), priority, height, edit.

    Parameters
    ----------
    path
        The file to write.
    superpixels : DenseLabels
        The superpixels of the session, as divided.
    winners, losers : arrays of int, shape (m,)
        Dense ids of the regions of each merge, the smallest superpixel of each.
    priorities : array of float, shape (m,)
        What the policy said; NaN (an empty cell) for a merge that only a person wanted.
    heights : array of float, shape (m,)
        The scale from which each merge counts, ascending.
    edits : array of int, shape (m,), optional
        Sequence number of the edit that made the merge; 0 (an empty cell) if the policy did.
    heritage : Heritage, optional
        Which name each merge keeps; without, that of the larger region.
    overwrite : bool
        Whether what is at `path` may be replaced.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> from napari_agglo.volumes import dense_labels
    >>> labels = dense_labels(np.array([[5, 6, 7]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tree.csv"
    ...     print(export_tree(path, labels, [1, 1], [2, 3], [0.1, 0.7], [0.1, 0.5],
    ...                       [0, 4]).read_text())
    merge,winner,loser,left,right,parent,priority,height,edit
    0,5,6,1,2,4,0.1,0.1,
    1,5,7,4,3,5,0.7,0.5,4
    """
    import pandas as pd

    said = np.asarray(priorities, np.float64)
    counts_from = np.asarray(heights, np.float64)
    tree = MergeTree(
        superpixels, np.asarray(winners, np.int64), np.asarray(losers, np.int64), counts_from
    )
    made_by = np.zeros(tree.n_merges, np.int64) if edits is None else np.asarray(edits, np.int64)
    if not said.shape == made_by.shape == counts_from.shape:
        raise InvalidInput(
            f"`priorities` and `edits` must have a value for each of {tree.n_merges} merges, got "
            f"shapes {said.shape} and {made_by.shape}."
        )
    if (np.diff(counts_from) < 0).any():
        raise InvalidInput("`heights` must not descend; give the merges in the order of the tree.")
    kept, given_up, from_loser = tree.heritage if heritage is None else heritage
    nodes = np.where(from_loser[:, None], tree.children[:, ::-1], tree.children)
    table = pd.DataFrame(
        {
            "merge": np.arange(tree.n_merges),
            "winner": superpixels.ids[kept],
            "loser": superpixels.ids[given_up],
            "left": nodes[:, 0],
            "right": nodes[:, 1],
            "parent": np.arange(tree.n_merges) + tree.n_superpixels + 1,
            "priority": said,
            "height": counts_from,
            "edit": pd.array(made_by, "Int64"),
        }
    )
    table.loc[made_by == 0, "edit"] = pd.NA
    target = Path(path)
    with writing(target, overwrite) as temporary:
        table.to_csv(temporary, index=False, encoding="utf-8")
    return target


# The segments as a table: what can be measured of each, and what a person has said of it.


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


State = Literal["live", "undone", "asleep"]


@dataclass(frozen=True)
class EditRow:
    """One edit, as it stands in the table.

    Attributes
    ----------
    sequence : int
        Its number in the journal.
    time : str
        When it was made, as the journal says: ISO 8601, UTC.
    kind : str
        merge, cut, lock, ...
    scale : float, optional
        The threshold at which it was made; None if it has none.
    ids : tuple of int
        The user's ids of what it was made on, in their order.
    state : {"live", "undone", "asleep"}
        Whether it counts; asleep: a later edit stands in its way.
    """

    sequence: int
    time: str
    kind: str
    scale: float | None
    ids: tuple[int, ...]
    state: State

    def __post_init__(self) -> None:
        if self.state not in ("live", "undone", "asleep"):
            raise InvalidInput(f"`state` must be 'live', 'undone' or 'asleep', got {self.state!r}.")


def export_edits(
    path: str | PathLike[str], rows: Iterable[EditRow], *, overwrite: bool = False
) -> Path:
    """Write edits as CSV, whole or not at all.

    Columns: sequence, time, kind, scale (empty if there is none), ids (separated by spaces), state.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> row = EditRow(1, "2031-05-04T13:02:01.250+00:00", "merge", 0.5, (7, 9), "live")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(export_edits(Path(folder) / "edits.csv", [row]).read_text())
    sequence,time,kind,scale,ids,state
    1,2031-05-04T13:02:01.250+00:00,merge,0.5,7 9,live
    """
    import pandas as pd

    columns = ["sequence", "time", "kind", "scale", "ids", "state"]
    table = pd.DataFrame(
        [
            (row.sequence, row.time, row.kind, row.scale, " ".join(map(str, row.ids)), row.state)
            for row in rows
        ],
        columns=columns,
    )
    target = Path(path)
    with writing(target, overwrite) as temporary:
        table.to_csv(temporary, index=False, encoding="utf-8")
    return target
