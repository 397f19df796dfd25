"""Every measure at every state of a merge tree, in one pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.evaluate._covering_path import covering_path
from napari_agglo.evaluate._golds import dense_golds
from napari_agglo.evaluate._path import error_path
from napari_agglo.volumes import contingency

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.tree import MergeTree


def vi_curve(
    tree: MergeTree,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> pd.DataFrame:
    """Evaluate a merge tree against the gold standard at every threshold at once.

    The overlaps are counted once, for the superpixels; each merge then changes a few sums. The
    result equals ``metrics(tree.segment(t), gold)`` at every threshold t.

    Parameters
    ----------
    tree : MergeTree
    gold : array of int, of the shape of the superpixels, or list of arrays
        The gold standard; voxels of 0 are not annotated and are left out. With several of one image
        every measure is the mean over them.
    ignore_labels : bool
        Leave out voxels of no superpixel (0) too; otherwise they count as one segment.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    curve : pandas.DataFrame
        One row for each distinct state, by ascending threshold. Columns: ``threshold``,
        ``segments`` (number of segments in the whole image, annotated or not), ``false_merge``,
        ``false_split`` and their sum ``vi``, in bits, ``rand`` and ``covering``. The first row, at
        -inf, is the superpixels. Cutting at t gives the last row whose threshold is at most t.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> superpixels = np.array([[1, 1, 2, 2, 3, 3]])
    >>> boundary = np.array([[0, 0, 0, 0, 1, 1]], float)
    >>> graph = agglo.region_graph(superpixels, boundary)
    >>> tree = agglo.agglomerate(graph, "mean")
    >>> curve = agglo.vi_curve(tree, np.array([[4, 4, 4, 4, 5, 5]]))
    >>> curve["vi"].round(3).tolist(), curve["covering"].round(3).tolist()
    ([0.667, 0.0, 0.918], [0.667, 1.0, 0.556])
    """
    import pandas as pd  # half a second that only those who want a table should wait

    measures = _measures(tree, gold, ignore_labels, progress)
    # A plateau of equal heights is one state: the one after its last merge.
    last = np.flatnonzero(np.diff(tree.heights, append=math.inf)) + 1
    state = np.concatenate([[0], last])
    columns = {
        "threshold": np.concatenate([[-math.inf], tree.heights[last - 1]]),
        "segments": tree.n_superpixels - state,
    }
    return pd.DataFrame(columns | {name: value[state] for name, value in measures.items()})


def merge_curve(
    tree: MergeTree,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> pd.DataFrame:
    """Evaluate a merge tree against the gold standard after each single merge.

    Parameters
    ----------
    tree, gold, ignore_labels, progress
        As for `vi_curve`.

    Returns
    -------
    curve : pandas.DataFrame
        Row k is the state after k merges, ``tree.segment(merges=k)``. Columns: ``merges`` and
        those of `vi_curve`; the threshold is the least at which these merges are done. In a plateau
        of equal thresholds only the last row can be had by a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([1, 2, 3]), np.zeros(3))
    >>> curve = merge_curve(agglo.agglomerate(graph), np.array([1, 1, 2]))
    >>> curve[["merges", "threshold", "segments", "false_merge"]].round(3)
       merges  threshold  segments  false_merge
    0       0       -inf         3        0.000
    1       1        0.0         2        0.000
    2       2        0.0         1        0.918
    """
    import pandas as pd

    measures = _measures(tree, gold, ignore_labels, progress)
    merges = np.arange(tree.n_merges + 1)
    columns = {
        "merges": merges,
        "threshold": np.concatenate([[-math.inf], tree.heights]),
        "segments": tree.n_superpixels - merges,
    }
    return pd.DataFrame(columns | measures)


def best_covering(
    tree: MergeTree,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> float:
    """Return the covering when each gold segment may choose the best node of the whole tree.

    Nodes chosen by different gold segments may lie at different scales, and within each other: it
    is what the hierarchy holds, not what one threshold can give.

    Parameters
    ----------
    tree, gold, ignore_labels, progress
        As for `vi_curve`.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([1, 2, 3]), np.array([0.0, 0.0, 1.0]))
    >>> best_covering(agglo.agglomerate(graph), np.array([1, 1, 2]))
    1.0
    """
    best = []
    for one in dense_golds(gold, tree.superpixels.image, "the superpixels of the tree"):
        table = contingency(tree.superpixels, one, ignore_labels=ignore_labels, progress=progress)
        path = error_path(table, tree.winners, tree.losers, progress=progress)
        best.append(covering_path(table, tree.winners, tree.losers, path, progress=progress)[1])
    return float(np.mean(best))


def _measures(
    tree: MergeTree,
    gold: Any,
    ignore_labels: bool,
    progress: ProgressCallback | None,
) -> dict[str, NDArray[np.float64]]:
    """Return every measure after 0, 1, ... merges; the mean of them, if there are several golds."""
    golds = dense_golds(gold, tree.superpixels.image, "the superpixels of the tree")
    names = ("false_merge", "false_split", "vi", "rand", "covering")
    sums = {name: np.zeros(tree.n_merges + 1) for name in names}
    for one in golds:
        table = contingency(tree.superpixels, one, ignore_labels=ignore_labels, progress=progress)
        path = error_path(table, tree.winners, tree.losers, progress=progress)
        sums["false_merge"] += path.false_merge
        sums["false_split"] += path.false_split
        sums["rand"] += path.rand
        covering, _ = covering_path(table, tree.winners, tree.losers, path, progress=progress)
        sums["covering"] += covering
    sums["vi"] = sums["false_merge"] + sums["false_split"]
    return {name: value / len(golds) for name, value in sums.items()}
