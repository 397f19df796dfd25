"""The merge tree of a session as a table, edits included."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from napari_agglo.errors import InvalidInput
from napari_agglo.session._exports._target import writing
from napari_agglo.tree import Heritage, MergeTree
from napari_agglo.volumes import DenseLabels


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
