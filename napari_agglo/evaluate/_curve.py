"""The variation of information at every state of a merge tree, in one pass."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_agglo._progress import ProgressCallback
from napari_agglo.evaluate._path import vi_path
from napari_agglo.evaluate._vi import conditional_entropies
from napari_agglo.volumes import DenseLabels, check_same_shape, contingency, dense_labels

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

    The overlaps are counted once, for the superpixels; each merge then changes two sums. The
    result equals ``split_vi(tree.segment(t), gold)`` at every threshold t.

    Parameters
    ----------
    tree : MergeTree
    gold : array of int, of the shape of the superpixels
        The gold standard; voxels of 0 are not annotated and are left out.
    ignore_labels : bool
        Leave out voxels of no superpixel (0) too; otherwise they count as one segment.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    curve : pandas.DataFrame
        One row for each distinct state, by ascending threshold. Columns: ``threshold``,
        ``segments`` (number of segments in the whole image, annotated or not), ``false_merge``,
        ``false_split`` and their sum ``vi``, in bits. The first row, at -inf, is the superpixels.
        Cutting at t gives the last row whose threshold is at most t.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> superpixels = np.array([[1, 1, 2, 2, 3, 3]])
    >>> boundary = np.array([[0, 0, 0, 0, 1, 1]], float)
    >>> graph = agglo.region_graph(superpixels, boundary)
    >>> tree = agglo.agglomerate(graph, "mean")
    >>> agglo.vi_curve(tree, np.array([[4, 4, 4, 4, 5, 5]]))["vi"].round(3).tolist()
    [0.667, 0.0, 0.918]
    """
    import pandas as pd  # half a second that only those who want a table should wait

    dense = gold if isinstance(gold, DenseLabels) else dense_labels(gold, "gold")
    check_same_shape(dense.image, tree.superpixels.image, "gold", "the superpixels of the tree")
    table = contingency(tree.superpixels, dense, ignore_labels=ignore_labels, progress=progress)
    false_merge, false_split = vi_path(
        table, tree.winners, tree.losers, start=conditional_entropies(table), progress=progress
    )
    # A plateau of equal heights is one state: the one after its last merge.
    last = np.flatnonzero(np.diff(tree.heights, append=math.inf)) + 1
    state = np.concatenate([[0], last])
    return pd.DataFrame(
        {
            "threshold": np.concatenate([[-math.inf], tree.heights[last - 1]]),
            "segments": tree.superpixels.ids.size - 1 - state,
            "false_merge": false_merge[state],
            "false_split": false_split[state],
            "vi": false_merge[state] + false_split[state],
        }
    )
