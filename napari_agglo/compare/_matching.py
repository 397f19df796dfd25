"""One label for two segments that are nearly the same, in tables, and steady while they change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.compare._greedy import match_largest
from napari_agglo.compare._names import name_rest
from napari_agglo.compare._overlaps import overlaps


@dataclass(frozen=True, eq=False)
class Matching:
    """Which label each segment gets, so that matched segments share one.

    Attributes
    ----------
    labels : ndarray of uint32
        Label of each segment of the other segmentation, by its name; 0 where there is none.
    partners : ndarray of uint32
        The segment of the reference that it is matched with, by the same names; 0 for none.
    """

    labels: NDArray[np.uint32]
    partners: NDArray[np.uint32]

    def renamed(self, table: ArrayLike) -> NDArray[np.uint32]:
        """Return the labels of a table of names: what to show in place of `table`."""
        return np.asarray(self.labels[np.asarray(table)])


def match_tables(
    reference: ArrayLike, other: ArrayLike, sizes: ArrayLike, previous: Matching | None = None
) -> Matching:
    """Match the segments of two tables over the same pieces, those that overlap most first.

    Parameters
    ----------
    reference, other : array of int, shape (n,)
        Name of the segment of each piece, dense as of `MergeTree.lut`; 0 is no segment.
    sizes : array of int, shape (n,)
        Pixels of each piece, such as ``graph.sizes``.
    previous : Matching, optional
        What came out when the tables were a little different, at another threshold say. A pair
        that was matched and still overlaps stays matched, and who was alone keeps its label if
        that is free: colours hold still while a slider moves.

    Returns
    -------
    Matching
        One to one: of all pairs the one with the largest overlap is matched, then the largest of
        the rest, and so on; of equals the smaller names. A segment without a partner gets a label
        that no segment of the reference has. No label is larger than the larger of the largest
        name and the number of pieces.

    Notes
    -----
    For a label image that is no union of superpixels, such as a gold standard, the pieces are its
    overlaps with them: with ``table = contingency(superpixels, gold)``, the arguments are
    ``lut[table.rows]``, ``table.columns`` and ``table.counts``.

    Examples
    --------
    Superpixels 1 to 4: the reference joins 1 and 2, the other one 2, 3 and 4.

    >>> matching = match_tables([0, 1, 1, 3, 4], [0, 1, 2, 2, 2], [0, 9, 1, 5, 5])
    >>> matching.renamed([0, 1, 2, 2, 2])
    array([0, 1, 3, 3, 3], dtype=uint32)
    """
    found = overlaps(reference, other, sizes)
    hint = None if previous is None else previous.partners.astype(np.int64)
    partners = match_largest(found, hint)
    known = None if previous is None else previous.labels.astype(np.int64)
    labels = name_rest(np.asarray(reference), np.asarray(other), partners, found.n_first, known)
    return Matching(labels.astype(np.uint32), partners.astype(np.uint32))
