"""One label for two segments that are nearly the same, in tables, and steady while they change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    reference: ArrayLike,
    other: ArrayLike,
    sizes: ArrayLike,
    previous: Matching | None = None,
    beside: Sequence[ArrayLike] = (),
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
    beside : sequence of array of int, shape (n,)
        What is shown of the same pieces in other segmentations, which were matched with the
        reference before, as of `Matching.renamed`. Two segments that have no partner in the
        reference, one here and one there, share a label if they overlap most; else none is used
        twice.

    Returns
    -------
    Matching
        One to one: of all pairs the one with the largest overlap is matched, then the largest of
        the rest, and so on; of equals the smaller names. A segment without a partner gets a label
        that no segment of the reference has. No label is larger than the larger of the largest
        name or label and the number of pieces.

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
    names, ours = np.asarray(reference), np.asarray(other)
    found = overlaps(names, ours, sizes)
    hint = None if previous is None else previous.partners.astype(np.int64)
    known = None if previous is None else previous.labels.astype(np.int64)
    partners = match_largest(found, hint)
    labels = partners.copy()
    others = [np.asarray(one) for one in beside]
    for shown in others:
        _share(labels, names, shown, ours, sizes, known)
    labels = name_rest([names, *others], ours, labels, known)
    return Matching(labels.astype(np.uint32), partners.astype(np.uint32))


def _share(
    labels: NDArray[np.int64],
    reference: NDArray[Any],
    shown: NDArray[Any],
    other: NDArray[Any],
    sizes: ArrayLike,
    known: NDArray[np.int64] | None,
) -> None:
    """Give segments without a label the labels of those that stand alone in another one."""
    taken = np.zeros(1 + max(int(x.max(initial=0)) for x in (labels, reference, shown)), np.bool_)
    taken[reference] = True
    taken[labels] = True
    free = np.where(taken[shown], 0, shown)
    alone = np.where(labels[other] > 0, 0, other)
    if free.any() and alone.any():
        found = match_largest(overlaps(free, alone, sizes), known)
        labels[: len(found)] += found  # of the alone ones, which had 0
