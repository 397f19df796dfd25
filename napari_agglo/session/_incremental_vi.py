"""The variation of information after each edit, in a time that depends on what the edit moved.

Strategy: with f(n) = n log2 n, and n_ij the voxels that segment i shares with gold segment j,

    N H(U|S) = sum_i f(n_i) - sum_ij f(n_ij)        N H(S|U) = sum_j f(n_j) - sum_ij f(n_ij)

where the sum over j alone never changes. A superpixel that moves changes one n_ij in its old
segment and one in its new one for each gold segment that it overlaps. Counts are whole numbers in a
hash table, and f of the same number is the same float each time, so that a term is subtracted
exactly as it was added. Sums are compensated: a hundred thousand moves are as exact as none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.hash_tables import key_place, pair_hash
from napari_agglo._numba.sums import rounding_error
from napari_agglo._progress import ProgressCallback, check_progress
from napari_agglo.graph import Division
from napari_agglo.session._actions import Refused
from napari_agglo.session._state import n_common
from napari_agglo.session._threshold_view import View
from napari_agglo.volumes import Contingency, contingency, is_on_disk

if TYPE_CHECKING:
    from napari_agglo.session._history import Transactions


_OVERLAPS = "overlaps"  # the snapshot of the overlaps of superpixels on disk


def empty_table(entries: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an empty hash table for some entries, not half full: keys (0: free) and counts."""
    size = 1 << int(4 * entries + 16).bit_length()
    return np.zeros(size, np.int64), np.zeros(size, np.int64)


@inlined
def _find(key: Any, keys: Any) -> Any:
    """Return the slot of a key, or the free slot for it."""
    return key_place(key, pair_hash(key >> 31, key & 0x7FFFFFFF), keys)


@inlined
def _add(value: Any, at: Any, sums: Any) -> None:
    """Add to the sum at `at`, and the rounding error to the sum after it."""
    sums[at + 1] += rounding_error(sums[at], value)
    sums[at] += value


@inlined
def _change(segment: Any, gold: Any, by: Any, at: Any, keys: Any, values: Any, used: Any,
            sums: Any) -> None:  # fmt: skip
    """Change the count of a pair, and the sum at `at` with it."""
    # 1 is added because 0 is a free slot. Segments are below 2**32, gold segments below 2**31.
    key = (segment << 31 | gold) + 1
    slot = _find(key, keys)
    if keys[slot] == 0:
        keys[slot] = key
        used[0] += 1
    n = values[slot]
    if n > 1:
        _add(-n * math.log2(n), at, sums)
    n += by
    if n > 1:
        _add(n * math.log2(n), at, sums)
    values[slot] = n


@kernel
def move_overlaps(
    moved: NDArray[np.int64],
    targets: NDArray[np.int64],
    lut: NDArray[np.int64],
    start: NDArray[np.int64],
    columns: NDArray[np.int64],
    counts: NDArray[np.int64],
    keys: NDArray[np.int64],
    values: NDArray[np.int64],
    used: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Move superpixels from their segments in `lut` (-1: none) to their targets.

    The size of a segment is in the table under gold segment 0, which has no voxels. The table must
    have room for every new pair. No bounds checking.
    """
    for i in range(moved.size):
        superpixel = moved[i]
        source, target = lut[superpixel], targets[i]
        size = 0
        for k in range(start[superpixel], start[superpixel + 1]):
            size += counts[k]
            if source >= 0:
                _change(source, columns[k], -counts[k], 0, keys, values, used, sums)
            _change(target, columns[k], counts[k], 0, keys, values, used, sums)
        if size > 0:
            if source >= 0:
                _change(source, 0, -size, 2, keys, values, used, sums)
            _change(target, 0, size, 2, keys, values, used, sums)
        lut[superpixel] = target


@kernel
def enter_keys(
    old: NDArray[np.int64], n: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64]
) -> None:
    """Enter `old` keys, all distinct, and their counts into an empty table. No bounds checking."""
    for i in range(n.size):
        slot = _find(old[i], keys)
        keys[slot] = old[i]
        values[slot] = n[i]


@dataclass(frozen=True)
class Errors:
    """Errors of a segmentation, in bits.

    Attributes
    ----------
    false_merge : float
        H(gold | segments): the entropy of the gold segment given the segment.
    false_split : float
        H(segments | gold): the entropy of the segment given the gold segment.
    """

    false_merge: float
    false_split: float

    @property
    def vi(self) -> float:
        """The variation of information: the sum of both."""
        return self.false_merge + self.false_split


class IncrementalVI:
    """False merge H(U|S), false split H(S|U) and their sum, of a segmentation that changes.

    `table` has the overlaps of the superpixels with the gold standard, `lut` the segment of each
    superpixel, below 2**32; ``lut[0]`` is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import contingency
    >>> superpixels, gold = np.array([1, 1, 2, 2]), np.array([7, 7, 7, 7])
    >>> live = IncrementalVI(contingency(superpixels, gold), [0, 1, 2])
    >>> live.errors()
    Errors(false_merge=0.0, false_split=1.0)
    >>> live.move([2], 1)
    >>> live.errors().vi
    0.0
    """

    def __init__(self, table: Contingency, lut: ArrayLike) -> None:
        self._total = table.total
        self._gold_ids = table.column_ids
        self._gold = math.fsum(n * math.log2(n) for n in table.column_sums().tolist() if n)
        self._columns, self._counts = table.columns, table.counts
        self._start = np.searchsorted(table.rows, np.arange(table.row_ids.size + 1))
        self._lut = np.array(lut, np.int64)
        self._rebuild()

    def errors(self) -> Errors:
        """Return both errors."""
        pairs, pairs_rest, sizes, sizes_rest = self._sums.tolist()
        bits = [sizes - pairs + (sizes_rest - pairs_rest), self._gold - pairs - pairs_rest]
        return Errors(*(max(0.0, value / self._total) if self._total else 0.0 for value in bits))

    def move(self, superpixels: ArrayLike, target: int) -> None:
        """Move superpixels to segment `target`, which may be new."""
        moved = np.unique(np.asarray(superpixels, np.int64))
        self._move(moved, np.full(moved.size, target, np.int64))

    def segment(self, superpixel: int) -> int:
        """Return the segment of a superpixel."""
        return int(self._lut[superpixel])

    def update(self, lut: ArrayLike, among: NDArray[np.int64] | None = None) -> None:
        """Move the superpixels whose segment differs in a table of segments.

        With `among`, only these superpixels are compared.
        """
        if among is not None:
            segments = np.asarray(lut)[among].astype(np.int64)
            moved = np.flatnonzero(segments != self._lut[among])
            self._move(among[moved], segments[moved])
            return
        new = np.array(lut, np.int64)
        moved = np.flatnonzero(new != self._lut)
        if 2 * moved.size > new.size:
            self._lut = new
            self._rebuild()
        else:
            self._move(moved, new[moved])

    def overlaps(self, ids: NDArray[np.uint64]) -> Contingency:
        """Return the overlaps of the superpixels as they are now, whose ids are `ids`."""
        rows = np.repeat(np.arange(len(self._start) - 1), np.diff(self._start))
        order = np.lexsort((self._columns, rows))
        return Contingency(
            rows[order], self._columns[order], self._counts[order], ids, self._gold_ids
        )

    def redraw(self, superpixels: ArrayLike, labels: ArrayLike, gold: ArrayLike) -> None:
        """Replace superpixels of one segment that were divided, or made whole again.

        `labels` are the new dense ids of all voxels of `superpixels`, `gold` the gold standard
        there. New superpixels follow the highest id; an id that is no longer used must be the
        highest. The errors stay the same, as the voxels stay in their segment.
        """
        old = np.unique(np.asarray(superpixels, np.int64))
        segment = int(self._lut[old[0]])
        ids = np.asarray(labels, np.int64).reshape(-1)
        annotated = np.asarray(gold).reshape(-1)
        gold_ids = annotated[annotated != 0].astype(np.uint64)
        columns = np.minimum(np.searchsorted(self._gold_ids, gold_ids), self._gold_ids.size - 1)
        pairs = np.stack([ids[annotated != 0], columns], axis=1)
        pairs, counts = np.unique(pairs, axis=0, return_counts=True)
        every = np.arange(len(self._lut))
        is_kept = ~np.isin(every, old)
        overlaps = np.diff(self._start)
        kept = np.repeat(is_kept, overlaps)
        all_rows = np.concatenate([np.repeat(every, overlaps)[kept], pairs[:, 0]])
        order = np.argsort(all_rows, kind="stable")
        highest = max(int(every[is_kept].max(initial=0)), int(ids.max(initial=0)))
        lut = np.zeros(highest + 1, np.int64)
        shared = min(len(lut), len(self._lut))
        lut[:shared] = self._lut[:shared]
        lut[ids] = segment
        self._lut = lut
        self._columns = np.concatenate([self._columns[kept], pairs[:, 1]])[order]
        self._counts = np.concatenate([self._counts[kept], counts])[order]
        self._start = np.searchsorted(all_rows[order], np.arange(len(lut) + 1))

    def _rebuild(self) -> None:
        """Enter every overlap into a new table."""
        self._sums = np.zeros(4)
        self._used = np.zeros(1, np.int64)
        self._keys, self._values = empty_table(self._columns.size + len(self._lut))
        nowhere = np.full(len(self._lut), -1, np.int64)
        self._run(np.arange(len(self._lut)), self._lut, nowhere)

    def _move(self, moved: NDArray[np.int64], targets: NDArray[np.int64]) -> None:
        work = int((self._start[moved + 1] - self._start[moved] + 1).sum())
        if 4 * (int(self._used[0]) + work) > 3 * len(self._values):
            live = self._values > 0
            keys, values = self._keys[live], self._values[live]
            self._keys, self._values = empty_table(len(values) + work)
            enter_keys(keys, values, self._keys, self._values)
            self._used[0] = len(values)
        self._run(moved, targets, self._lut)

    def _run(
        self, moved: NDArray[np.int64], targets: NDArray[np.int64], lut: NDArray[np.int64]
    ) -> None:
        move_overlaps(
            moved, targets, lut, self._start, self._columns, self._counts, self._keys, self._values,
            self._used, self._sums,
        )  # fmt: skip


class ViewErrors:
    """The errors of a view against gold, updated by the superpixels that moved."""

    def __init__(self, view: View, gold: Any, table: Contingency | None = None) -> None:
        """Count overlaps, unless `table` has those of the superpixels before any division."""
        self._gold = gold
        if table is None:
            table = contingency(view.state.graph.superpixels, gold)
            self._live = IncrementalVI(table, view.names())
            self._divisions = list(view.state.divisions)
            self._version = view.version
        else:
            self._live = IncrementalVI(table, view.names()[: table.row_ids.size])
            self._divisions = []
            self._version = -1  # older than all moves: `now` follows the divisions, and all names

    def now(self, view: View) -> Errors:
        """Return the errors of the segments of the view."""
        names = view.names()
        moved = view.moved_since(self._version)
        self._version = view.version
        self._follow(view.state.divisions)
        if moved is not None:
            moved = moved[moved < len(names)]
        self._live.update(names, moved)
        return self._live.errors()

    def overlaps(self, view: View) -> Contingency:
        """Return the overlaps of the superpixels, as they are divided now, with the gold."""
        self.now(view)
        return self._live.overlaps(view.state.graph.ids)

    def _follow(self, divisions: list[Division]) -> None:
        # Divisions are a stack: if the last one is the same, all are.
        if len(self._divisions) == len(divisions) and self._divisions[-1:] == divisions[-1:]:
            return
        same = n_common(self._divisions, divisions)
        for division in reversed(self._divisions[same:]):
            self._make_whole(division)
        for division in divisions[same:]:
            self._divide(division)
        self._divisions = list(divisions)

    def _divide(self, division: Division) -> None:
        inside = division.pieces > 0
        labels = division.members[division.pieces[inside].astype(np.int64) - 1]
        gold = np.asarray(self._gold[division.box])  # a box of gold on disk is read here
        self._live.redraw([division.superpixel], labels, gold[inside])

    def _make_whole(self, division: Division) -> None:
        first, *others = division.members.tolist()
        for piece in others:
            if self._live.segment(piece) != self._live.segment(first):
                self._live.move([piece], self._live.segment(first))
        inside = division.pieces > 0
        labels = np.full(int(inside.sum()), first)
        gold = np.asarray(self._gold[division.box])
        self._live.redraw(division.members, labels, gold[inside])


class SessionErrors:
    """The errors of a session against the gold standard it was created with, `session.errors`."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._live: ViewErrors | None = None

    @property
    def has_gold(self) -> bool:
        """Whether the session was created with a gold standard."""
        return self._transactions.store.data.has_gold

    @property
    def gold(self) -> Any:
        """The gold standard, if there is one: an array, or that of a volume on disk, lazily."""
        return self._transactions.store.data.gold

    @property
    def are_counted(self) -> bool:
        """Whether `now` need not read a volume on disk: overlaps with the gold are kept."""
        superpixels = self._transactions.store.data.superpixels
        if self._live is not None or not is_on_disk(superpixels.image):
            return True
        return self._kept() is not None

    def count(self, progress: ProgressCallback | None = None) -> Contingency:
        """Return the overlaps of the superpixels, before any division, with the gold standard.

        Those of a volume on disk are counted slab by slab on first use, and kept in the folder.

        Parameters
        ----------
        progress : callable, optional
            Called with the progress so far; raise `Cancelled` in it to stop.

        Returns
        -------
        Contingency
            Rows are superpixels.

        Raises
        ------
        Refused
            If the session has no gold standard.
        """
        table = self._kept()
        if table is None:  # without the lock, as edits may go on: they do not change these
            self._require_gold()
            superpixels = self._transactions.store.data.superpixels
            table = contingency(superpixels, self.gold, progress=progress)
            self.keep(table)
        return table

    def overlaps(self, progress: ProgressCallback | None = None) -> Contingency:
        """Return the overlaps of the superpixels, as they are divided now, with the gold.

        Parameters
        ----------
        progress : callable, optional
            As for `count`.

        Returns
        -------
        Contingency
            Rows are superpixels.
        """
        self.now(progress)
        with self._transactions.lock:
            assert self._live is not None
            return self._live.overlaps(self._transactions.view)

    def keep(self, table: Contingency) -> None:
        """Keep overlaps with the gold standard of superpixels on disk, which were counted already.

        Parameters
        ----------
        table : Contingency
            Of the superpixels that the session was created with.

        Raises
        ------
        Refused
            If it is of other superpixels.
        """
        store = self._transactions.store
        superpixels = store.data.superpixels
        if not np.array_equal(table.row_ids, superpixels.ids):
            raise Refused(
                "`table` has the overlaps of other superpixels",
                argument="table",
                remedy="count them again: session.errors.count()",
            )
        if is_on_disk(superpixels.image) and not store.read_only:
            names = ("rows", "columns", "counts", "column_ids")
            store.snapshot(_OVERLAPS, {name: getattr(table, name) for name in names})

    def _kept(self) -> Contingency | None:
        """Return the overlaps that are kept in the folder; None if there are none, or damaged."""
        store = self._transactions.store
        if not is_on_disk(store.data.superpixels.image):
            return None
        kept, ids = store.load_snapshot(_OVERLAPS), store.data.superpixels.ids
        if kept is None or not {"rows", "columns", "counts", "column_ids"} <= kept.arrays.keys():
            return None
        rows, columns, counts = (kept.arrays[name] for name in ("rows", "columns", "counts"))
        column_ids = kept.arrays["column_ids"]
        valid = rows.shape == columns.shape == counts.shape and column_ids.dtype == np.uint64
        for array, n in ((rows, len(ids)), (columns, len(column_ids))):
            valid = valid and (not len(array) or 0 <= array.min() <= array.max() < n)
        return Contingency(rows, columns, counts, ids, column_ids) if valid else None

    def _require_gold(self) -> None:
        if not self.has_gold:
            raise Refused(
                "The session has no gold standard to compare with",
                argument="gold",
                remedy="create it with Session.create(path, graph, policy, gold=...)",
            )

    def now(self, progress: ProgressCallback | None = None) -> Errors:
        """Return the errors of the segments at the threshold.

        Of a volume on disk, overlaps are counted on first use, which takes long: see `count`.

        Parameters
        ----------
        progress : callable, optional
            Called with the progress of counting.

        Returns
        -------
        Errors
            ``vi``, ``false_merge`` and ``false_split``, in bits.

        Raises
        ------
        Refused
            If the session has no gold standard.
        """
        check_progress(progress)
        view, table = self._transactions.view, None
        if self._live is None:
            self._require_gold()
            if is_on_disk(self._transactions.store.data.superpixels.image):
                table = self.count(progress)
        with self._transactions.lock:
            if self._live is None:
                self._live = ViewErrors(view, self.gold, table)
            return self._live.now(view)

    @property
    def vi(self) -> float:
        """The variation of information: the sum of both errors."""
        return self.now().vi

    @property
    def false_merge(self) -> float:
        """H(gold | segments)."""
        return self.now().false_merge

    @property
    def false_split(self) -> float:
        """H(segments | gold)."""
        return self.now().false_split
