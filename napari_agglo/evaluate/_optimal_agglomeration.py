"""Optimal agglomeration A*: the least error that any policy can reach on these superpixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.evaluate._metrics import (
    conditional_entropies,
    dense_golds,
    empty_gold,
    merged_rows,
)
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import assign
from napari_agglo.learning._training_volume import assignment
from napari_agglo.volumes import Contingency, contingency


def best_lut(graph: RegionGraph, gold: Any) -> NDArray[np.uint32]:
    """Return the segment of each superpixel in the optimal agglomeration, as a table.

    Each superpixel belongs to the gold segment that it overlaps most. A superpixel without
    annotated voxels stays alone.

    Parameters
    ----------
    graph : RegionGraph
    gold : array of int, of the shape of the superpixels

    Returns
    -------
    ndarray of uint32, shape (n + 1,)
        Dense id of the smallest superpixel of the same segment; 0 for 0.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graph = region_graph(np.array([1, 2, 3, 4]), np.zeros(4))
    >>> best_lut(graph, np.array([9, 8, 9, 0]))
    array([0, 1, 2, 1, 4], dtype=uint32)
    """
    targets = assign(graph, gold)
    if not targets.any():
        raise empty_gold()
    return _joined(targets)


def table_best(table: Contingency) -> dict[str, float]:
    """Return the errors of the best agglomeration from overlaps that are counted already.

    Parameters
    ----------
    table : Contingency
        Overlaps of superpixels with the gold standard.

    Returns
    -------
    dict
        As `best_point`.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> table_best(contingency(np.array([1, 1, 2, 2]), np.array([1, 2, 3, 3])))["vi"]
    0.5
    """
    targets = table.column_ids[assignment(table, table.row_ids.size - 1)]
    targets[0] = 0
    errors = conditional_entropies(merged_rows(table, _joined(targets)))
    false_merge, false_split = (float(one) for one in errors)
    return {
        "false_merge": false_merge,
        "false_split": false_split,
        "vi": false_merge + false_split,
    }


def _joined(targets: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the smallest superpixel of each target, by superpixel; 0 stays alone."""
    lut = np.arange(targets.size, dtype=np.uint32)
    annotated = np.flatnonzero(targets)
    _, first, back = np.unique(targets[annotated], return_index=True, return_inverse=True)
    lut[annotated] = annotated[first[back]]
    return lut


def best_agglomeration(graph: RegionGraph, gold: Any) -> NDArray[Any]:
    """Return the label image of A*, the best result of merging these superpixels.

    Parameters
    ----------
    graph : RegionGraph
    gold : array of int, of the shape of the superpixels

    Returns
    -------
    ndarray
        Labels in the user's ids and type: each segment has the id of its smallest superpixel. The
        parts of a gold segment are one segment even if they do not touch.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graph = region_graph(np.array([[5, 5, 6, 7]]), np.zeros((1, 4)))
    >>> best_agglomeration(graph, np.array([[1, 1, 1, 2]]))
    array([[5, 5, 5, 7]])
    """
    superpixels = graph.superpixels
    ids = superpixels.ids.astype(superpixels.dtype.newbyteorder("="))
    out: NDArray[Any] = ids[best_lut(graph, gold)][superpixels.image]
    return out


def best_point(
    graph: RegionGraph,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> dict[str, float]:
    """Return the errors of A*, which superpixels that cross gold boundaries cause.

    Parameters
    ----------
    graph : RegionGraph
    gold : array of int, of the shape of the superpixels, or list of arrays
        Several gold standards of one image give the mean over them, each with its own A*.
    ignore_labels : bool
        As for `vi_curve`.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    dict
        ``false_merge``, ``false_split`` and ``vi``, in bits.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graph = region_graph(np.array([1, 1, 2, 2]), np.zeros(4))
    >>> best_point(graph, np.array([1, 2, 3, 3]))
    {'false_merge': 0.5, 'false_split': 0.0, 'vi': 0.5}
    """
    errors = []
    for truth in dense_golds(gold, graph.superpixels.image, "superpixels"):
        table = contingency(
            graph.superpixels, truth, ignore_labels=ignore_labels, progress=progress
        )
        errors.append(conditional_entropies(merged_rows(table, _joined(assign(graph, truth)))))
    false_merge, false_split = (float(one) for one in np.mean(errors, axis=0))
    return {
        "false_merge": false_merge,
        "false_split": false_split,
        "vi": false_merge + false_split,
    }
