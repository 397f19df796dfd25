"""The table of overlaps after merging rows, without looking at the images again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_agglo.volumes import Contingency


def merged_rows(table: Contingency, lut: NDArray[np.uint32]) -> Contingency:
    """Return the overlaps of the segments ``lut[row]``; a segment keeps the id of that row.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.evaluate import contingency
    >>> table = contingency(np.array([1, 1, 2]), np.array([1, 1, 1]))
    >>> merged_rows(table, np.array([0, 1, 1], np.uint32)).counts
    array([3])
    """
    kept, compact = np.unique(lut, return_inverse=True)
    rows = compact[table.rows].astype(np.int64)
    # Below 2**63: both factors are numbers of labels, which are 32-bit.
    keys, back = np.unique(rows * table.column_ids.size + table.columns, return_inverse=True)
    counts = np.zeros(keys.size, np.int64)
    np.add.at(counts, back, table.counts)
    rows, columns = np.divmod(keys, table.column_ids.size)
    return Contingency(rows, columns, counts, table.row_ids[kept], table.column_ids)
