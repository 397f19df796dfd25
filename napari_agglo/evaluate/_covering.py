"""The covering of a gold standard: how well each gold segment is met by its best segment."""

from __future__ import annotations

import numpy as np

from napari_agglo.volumes import Contingency


def table_covering(table: Contingency) -> float:
    """Return the covering of the columns (the gold standard) by the rows, 0 to 1.

    For each gold segment the largest intersection over union with any one segment, averaged over
    the gold segments, each with the weight of its voxels (Arbelaez et al. 2011).

    Examples
    --------
    One of two gold segments is met exactly, of the other one half:

    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> table_covering(contingency(np.array([1, 1, 2, 3]), np.array([8, 8, 9, 9])))
    0.75
    """
    total = table.total
    if total == 0:
        return 1.0
    sizes, n = table.column_sums(), table.counts
    overlap = n / (table.row_sums()[table.rows] + sizes[table.columns] - n)
    best = np.zeros(sizes.size)
    np.maximum.at(best, table.columns, overlap)
    return float((best * sizes).sum()) / total
