"""The optimal agglomeration A*, and what it says of a boundary.

A* gives each superpixel to the gold segment that it overlaps most; of equal overlaps the smallest
id wins. A superpixel none of whose pixels is annotated is given to 0, "don't know".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import RegionGraph
from napari_agglo.volumes import (
    Contingency,
    check_mask,
    check_same_shape,
    contingency,
    dense_labels,
)


def gold_table(graph: RegionGraph, gold: Any, mask: Any = None) -> Contingency:
    """Return the overlaps of superpixels and gold; what `mask` leaves out is not annotated."""
    labels = dense_labels(gold, "gold")
    check_same_shape(graph.superpixels.image, labels.image, "superpixels", "gold")
    if mask is not None:
        seen = check_mask(mask, labels.image.shape)
        labels = dense_labels(np.where(seen, gold, 0), "gold")
    return contingency(graph.superpixels, labels, ignore_labels=True)


def assignment(table: Contingency, n_regions: int) -> NDArray[np.int64]:
    """Return the dense gold id of each dense superpixel id, 0 for "don't know"."""
    out = np.zeros(n_regions + 1, np.int64)
    # Ascending counts, and of equal ones descending columns: the last to be written is the best.
    order = np.lexsort((-table.columns, table.counts))
    out[table.rows[order]] = table.columns[order]
    return out


def assign(graph: RegionGraph, gold: Any, *, mask: Any = None) -> NDArray[np.uint64]:
    """Return the gold id of each superpixel in A*, the best agglomeration that there can be.

    Parameters
    ----------
    graph : RegionGraph
        The superpixels.
    gold : array of int
        The gold standard; 0 is not annotated.
    mask : array of bool, optional
        Where the gold standard is to be believed.

    Returns
    -------
    ndarray of uint64, shape (n + 1,)
        Gold id by dense superpixel id; 0 is "don't know".

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> graph = region_graph(np.array([1, 1, 1, 2, 2]), np.zeros(5))
    >>> assign(graph, np.array([7, 7, 9, 0, 0]))
    array([0, 7, 0], dtype=uint64)
    """
    table = gold_table(graph, gold, mask)
    return table.column_ids[assignment(table, graph.n_regions)]


def boundary_labels(edges: NDArray[np.int64], assignments: NDArray[np.int64]) -> NDArray[np.int8]:
    """Label pairs of regions: -1 should merge, +1 should not, 0 don't know.

    Parameters
    ----------
    edges : ndarray of int, shape (m, 2)
        Pairs of nodes.
    assignments : ndarray of int, shape (golds, nodes)
        For each gold standard, the gold segment that each node lies in; 0 for none or several.

    Returns
    -------
    ndarray of int8, shape (m,)
        The sign of the sum of what each gold standard says.
    """
    first = assignments[:, edges[:, 0]]
    second = assignments[:, edges[:, 1]]
    said = np.where(first == second, -1, 1) * ((first > 0) & (second > 0))
    out: NDArray[np.int8] = np.sign(said.sum(axis=0)).astype(np.int8)
    return out
