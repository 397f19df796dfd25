"""Matching of the segments of two tables, stable while a slider changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import kernel, subroutine
from napari_agglo.errors import InvalidInput

# Arrays are as long as the largest name; below this length, sparse names are accepted.
_SMALL = 1 << 16


@dataclass(frozen=True, eq=False)
class Overlaps:
    """Pairs of segments that overlap, in ascending order of (first, second).

    Attributes
    ----------
    first, second : ndarray of int64, shape (k,)
        Names of the segments of the one and the other segmentation, none of them 0.
    sizes : ndarray of int64, shape (k,)
        Pixels that they share.
    of_piece : ndarray of int64, shape (n,)
        The pair that each piece belongs to; -1 where a name is 0.
    n_first, n_second : int
        One more than the largest name.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    sizes: NDArray[np.int64]
    of_piece: NDArray[np.int64]
    n_first: int
    n_second: int

    def __len__(self) -> int:
        return len(self.first)


def overlaps(first: ArrayLike, second: ArrayLike, sizes: ArrayLike) -> Overlaps:
    """Sum the overlaps of the segments of two tables, in time proportional to the tables.

    Parameters
    ----------
    first, second : array of int, shape (n,)
        Name of the segment of each piece; 0 is no segment. The pieces are superpixels (`first` and
        `second` are tables as of `MergeTree.lut`), or any parts that lie in one segment of each.
    sizes : array of int, shape (n,)
        Pixels of each piece. Pieces of 0 pixels are left out.

    Returns
    -------
    Overlaps

    Examples
    --------
    >>> pairs = overlaps([0, 1, 1, 3], [0, 1, 2, 2], [9, 10, 20, 30])
    >>> pairs.first, pairs.second, pairs.sizes
    (array([1, 1, 3]), array([1, 2, 2]), array([10, 20, 30]))
    """
    a, b, n = checked(first, "first"), checked(second, "second"), checked(sizes, "sizes", False)
    if not a.shape == b.shape == n.shape:
        raise InvalidInput(
            "`first`, `second` and `sizes` must have a value for each of the same pieces, got "
            f"{len(a)}, {len(b)} and {len(n)}",
            argument="sizes" if a.shape == b.shape else "second",
            remedy="take all from one graph",
        )
    n_first, n_second = (int(names.max(initial=0)) + 1 for names in (a, b))
    begin = np.zeros(max(n_first, n_second) + 1, np.int32)  # half the bytes of int64, in the cache
    order, scratch = (np.empty(len(a), np.int32) for _ in range(2))
    of_piece = np.empty(len(a), np.int64)
    pairs = np.empty((3, len(a)), np.int64)
    k = int(_overlap_kernel(a, b, n, n_first, n_second, begin, scratch, order, pairs, of_piece))
    return Overlaps(pairs[0, :k], pairs[1, :k], pairs[2, :k], of_piece, n_first, n_second)


def checked(values: ArrayLike, name: str, names: bool = True) -> NDArray[Any]:
    """Return a checked table as int64, or a table of names as int32; kernels check nothing."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise InvalidInput(
            f"`{name}` must be a table of whole numbers, one for each piece, got {array.dtype} of "
            f"shape {array.shape}",
            argument=name,
            remedy="pass a table such as MergeTree.lut returns",
        )
    if not array.size:
        array = np.zeros(0, np.int64)
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    if low < 0 or (names and high > min(max(8 * array.size, _SMALL), 2**31 - 2)):
        raise InvalidInput(
            f"`{name}` must have names from 0 to about the number of pieces ({array.size}), got "
            f"{low if low < 0 else high}",
            argument=name,
            remedy="pass dense names, as of MergeTree.lut, not ids",
        )
    return np.ascontiguousarray(array, np.int32 if names else np.int64)


@kernel
def _overlap_kernel(
    first: Any, second: Any, sizes: Any, n_first: Any, n_second: Any, begin: Any, scratch: Any,
    order: Any, pairs: Any, of_piece: Any,
) -> Any:  # fmt: skip
    """Sort pieces by (first, second), by counting; sum equal ones. Nothing is checked."""
    _by_counting(second, n_second, begin, scratch, order, False)
    for k in range(order.size):
        scratch[k] = order[k]
    _by_counting(first, n_first, begin, scratch, order, True)
    last = -1
    for i in order:
        of_piece[i] = -1
        if first[i] == 0 or second[i] == 0 or sizes[i] == 0:
            continue
        if last < 0 or pairs[0, last] != first[i] or pairs[1, last] != second[i]:
            last += 1
            pairs[0, last], pairs[1, last], pairs[2, last] = first[i], second[i], 0
        pairs[2, last] += sizes[i]
        of_piece[i] = last
    return last + 1


@subroutine
def _by_counting(names: Any, n_names: Any, begin: Any, before: Any, order: Any, again: Any) -> None:
    """Write the order of pieces by name, of equal ones that of `before`. Nothing is checked."""
    begin[: n_names + 1] = 0
    for i in range(names.size):
        begin[names[i] + 1] += 1
    for name in range(n_names):
        begin[name + 1] += begin[name]
    for j in range(names.size):
        i = before[j] if again else j
        order[begin[names[i]]] = i
        begin[names[i]] += 1


def name_rest(
    others: Sequence[NDArray[Any]],
    table: NDArray[Any],
    labels: NDArray[np.int64],
    previous: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the label of each segment of `table`, with new ones for segments without a label.

    A new label is the previous one of the segment, or else its name, or else the smallest, of those
    that none of `others` has.

    Examples
    --------
    >>> name_rest([np.array([1, 1])], np.array([1, 2]), np.array([0, 1, 0]))
    array([0, 1, 2])
    """
    # Invariant: there are no more labels than pieces with a pixel: each match has its own piece,
    # and so has each segment without a partner, since two of these never overlap.
    room = max(int(names.max(initial=0)) + 1 for names in others)
    limit = max(room, len(labels), len(table) + 1)
    taken = np.zeros(limit + room + len(labels), np.bool_)
    for names in others:
        taken[names] = True
    taken[0] = True
    alone = np.zeros(len(labels), np.bool_)
    alone[table] = True
    alone[0] = False
    alone &= labels == 0
    named = labels.copy()
    known = np.zeros(0, np.int64) if previous is None else previous
    _name_kernel(np.flatnonzero(alone), known, limit, taken, named)
    return named


@kernel
def _name_kernel(alone: Any, known: Any, limit: Any, taken: Any, labels: Any) -> None:
    """Assign free labels: known ones first, then names, then any. Nothing is checked."""
    for name in alone:
        if name < known.size and known[name] < limit and not taken[known[name]]:
            labels[name] = known[name]
            taken[known[name]] = True
    for name in alone:
        if labels[name] == 0 and not taken[name]:
            labels[name] = name
            taken[name] = True
    free = 1
    for name in alone:
        if labels[name] == 0:
            while taken[free]:
                free += 1
            labels[name] = free
            taken[free] = True


# Strategy of the greedy matching, largest overlap first, without a sort of all pairs: a pair that
# is the largest of both its segments is always matched. All such pairs are matched at once, pairs
# with a matched segment are dropped, and this repeats. A few rounds nearly always match all pairs;
# the rest is sorted.
_ROUNDS = 12


def match_largest(pairs: Overlaps, previous: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Return the partner of each second segment among the first ones, 0 for none.

    Parameters
    ----------
    pairs : Overlaps
        The pairs that may be matched.
    previous : ndarray of int64, optional
        Partners to keep, by the same names, if they still overlap.

    Examples
    --------
    >>> from napari_agglo.compare import overlaps
    >>> match_largest(overlaps([1, 1, 2], [1, 2, 2], [5, 4, 3]))
    array([0, 1, 2])
    """
    partner_of_first = np.zeros(pairs.n_first, np.int64)
    partner = np.zeros(pairs.n_second, np.int64)
    hint = np.zeros(0, np.int64) if previous is None else previous
    _keep_kernel(pairs.first, pairs.second, hint, partner_of_first, partner)
    live = np.arange(len(pairs))
    best_first = np.empty(pairs.n_first, np.int64)
    best_second = np.empty(pairs.n_second, np.int64)
    left = _rounds_kernel(
        pairs.first, pairs.second, pairs.sizes, live, best_first, best_second, partner_of_first,
        partner, _ROUNDS,
    )  # fmt: skip
    rest = live[:left]
    order = rest[np.argsort(-pairs.sizes[rest], kind="stable")]
    _take_kernel(pairs.first, pairs.second, order, partner_of_first, partner)
    return partner


@kernel
def _keep_kernel(first: Any, second: Any, hint: Any, of_first: Any, of_second: Any) -> None:
    """Match the pairs of a hint, each segment once. Nothing is checked."""
    for i in range(first.size):
        f, s = first[i], second[i]
        if s < hint.size and hint[s] == f and of_first[f] == 0 and of_second[s] == 0:
            of_first[f] = s
            of_second[s] = f


@kernel
def _rounds_kernel(
    first: Any, second: Any, sizes: Any, live: Any, best_first: Any, best_second: Any,
    of_first: Any, of_second: Any, rounds: Any,
) -> Any:  # fmt: skip
    """Match pairs that are the best of both; return the number left over in `live`.

    Nothing is checked. Pairs ascend by names, so that of ties the first is best.
    """
    n = live.size
    for _ in range(rounds):
        kept = 0
        for j in range(n):
            i = live[j]
            if of_first[first[i]] == 0 and of_second[second[i]] == 0:
                live[kept] = i
                kept += 1
        n = kept
        if n == 0:
            break
        for j in range(n):
            best_first[first[live[j]]] = -1
            best_second[second[live[j]]] = -1
        for j in range(n):
            i = live[j]
            f, s = first[i], second[i]
            if best_first[f] < 0 or sizes[i] > sizes[best_first[f]]:
                best_first[f] = i
            if best_second[s] < 0 or sizes[i] > sizes[best_second[s]]:
                best_second[s] = i
        for j in range(n):
            i = live[j]
            if best_first[first[i]] == i and best_second[second[i]] == i:
                of_first[first[i]] = second[i]
                of_second[second[i]] = first[i]
    return n


@kernel
def _take_kernel(first: Any, second: Any, order: Any, of_first: Any, of_second: Any) -> None:
    """Match pairs in `order` if both are free. Nothing is checked."""
    for i in order:
        if of_first[first[i]] == 0 and of_second[second[i]] == 0:
            of_first[first[i]] = second[i]
            of_second[second[i]] = first[i]


@dataclass(frozen=True, eq=False)
class Matching:
    """Label of each segment, such that matched segments share one.

    Attributes
    ----------
    labels : ndarray of uint32
        Label of each segment of the other segmentation, by its name; 0 where there is none.
    partners : ndarray of uint32
        The matched segment of the reference, by the same names; 0 for none.
    """

    labels: NDArray[np.uint32]
    partners: NDArray[np.uint32]

    def renamed(self, table: ArrayLike) -> NDArray[np.uint32]:
        """Return the labels of a table of names, to show in place of `table`.

        Parameters
        ----------
        table : array of int
            The segment of each superpixel, as a table of dense ids.

        Returns
        -------
        ndarray of uint32
            The label of each superpixel.
        """
        return np.asarray(self.labels[np.asarray(table)])


def match_tables(
    reference: ArrayLike,
    other: ArrayLike,
    sizes: ArrayLike,
    previous: Matching | None = None,
    beside: Sequence[ArrayLike] = (),
) -> Matching:
    """Match the segments of two tables over the same pieces, the largest overlap first.

    Parameters
    ----------
    reference, other : array of int, shape (n,)
        Name of the segment of each piece, dense as of `MergeTree.lut`; 0 is no segment.
    sizes : array of int, shape (n,)
        Pixels of each piece, such as ``graph.sizes``.
    previous : Matching, optional
        The matching of similar tables, such as those of another threshold. A matched pair that
        still overlaps stays matched, and a segment without a partner keeps its label if that is
        free, so that colours are stable while a slider moves.
    beside : sequence of array of int, shape (n,)
        Labels of the same pieces in other segmentations that were matched with the reference
        before, as of `Matching.renamed`. Two segments without a partner in the reference, one here
        and one there, share a label if they overlap most; other labels are used once.

    Returns
    -------
    Matching
        Pairs are matched one to one, the largest overlap first; of ties the smaller names. A
        segment without a partner gets a label that no segment of the reference has. No label
        exceeds the largest name or label and the number of pieces.

    Notes
    -----
    For a label image that is not a union of superpixels, such as a gold standard, the pieces are
    its overlaps with them: with ``table = contingency(superpixels, gold)``, the arguments are
    ``lut[table.rows]``, ``table.columns`` and ``table.counts``.

    Examples
    --------
    Superpixels 1 to 4: the reference joins 1 and 2, the other one 2, 3 and 4.

    >>> matching = match_tables([0, 1, 1, 3, 4], [0, 1, 2, 2, 2], [0, 9, 1, 5, 5])
    >>> matching.renamed([0, 1, 2, 2, 2])
    array([0, 1, 3, 3, 3], dtype=uint32)
    """
    names, ours = np.asarray(reference), np.asarray(other)
    pairs = overlaps(names, ours, sizes)
    hint = None if previous is None else previous.partners.astype(np.int64)
    known = None if previous is None else previous.labels.astype(np.int64)
    partners = match_largest(pairs, hint)
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
    """Assign the labels of unmatched segments in another table to segments without a label."""
    taken = np.zeros(1 + max(int(x.max(initial=0)) for x in (labels, reference, shown)), np.bool_)
    taken[reference] = True
    taken[labels] = True
    free = np.where(taken[shown], 0, shown)
    alone = np.where(labels[other] > 0, 0, other)
    if free.any() and alone.any():
        shared = match_largest(overlaps(free, alone, sizes), known)
        labels[: len(shared)] += shared  # of segments without a partner, which had 0
