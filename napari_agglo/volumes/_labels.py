"""Renumber the user's ids, which may be sparse, huge and 64-bit, to dense ids 0..n and back.

Memory is proportional to the number of voxels, never to the largest id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.union_find import join_sets
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.volumes._checks import check_labels
from napari_agglo.volumes._volume import PIECE, Volume, pieces


def split_components(labels: object, name: str = "labels") -> np.ndarray[Any, Any]:
    """Give every piece of a label (connected through faces) a label of its own.

    The largest piece keeps the id, the first in C order among equals; the others get new ids above
    the highest one. The type is widened if the new ids need it.

    Parameters
    ----------
    labels
        Label image, anything that `check_labels` takes.
    name
        Name of the argument in messages.

    Returns
    -------
    ndarray
        A new array; the input is not modified.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import split_components
    >>> split_components(np.array([5, 5, 0, 5, 7], np.uint8))
    array([5, 5, 0, 8, 7], dtype=uint8)
    """
    array = check_labels(labels, name, mask_ok=True)
    if array.size == 0:
        return array.copy()
    # components are numbered 1..n in C order of their first voxel; each has one id
    components = _components(array)
    count = int(components.max())
    sizes = np.bincount(components.reshape(-1), minlength=count + 1)
    ids = np.zeros(count + 1, array.dtype)
    ids[components.reshape(-1)] = array.reshape(-1)
    ids[0] = 0
    order = np.lexsort((np.arange(1, count + 1), -sizes[1:], ids[1:])) + 1
    extra = np.zeros(count + 1, bool)
    extra[order[1:]] = ids[order[1:]] == ids[order[:-1]]
    highest = int(ids.max())
    top = highest + int(extra.sum())
    dtype = array.dtype if top <= np.iinfo(array.dtype).max else np.min_scalar_type(top)
    table = ids.astype(dtype)
    table[extra] = np.arange(1, int(extra.sum()) + 1, dtype=dtype) + np.asarray(highest, dtype)
    split: np.ndarray[Any, Any] = table[components]
    return split


def _components(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return connected components of equal non-zero value, numbered from 1 in C order."""
    pieces = np.empty(array.size, np.uint32 if array.size < 2**32 - 1 else np.int64)
    # as long as there can be pieces; pages that no piece reaches take no memory
    parents = np.empty(array.size + 1, pieces.dtype)
    shape = np.array(array.shape or (1,), np.int64)
    count = _connect(
        array.reshape(-1), shape, np.zeros_like(shape), np.zeros_like(shape), pieces, parents
    )
    _number_roots(parents[: count + 1])
    _look_up(pieces, parents, pieces)
    return pieces.reshape(array.shape)


@kernel
def _connect(flat: Any, shape: Any, place: Any, steps: Any, pieces: Any, parents: Any) -> int:
    """Give each voxel the piece of an equal voxel before it; return the number of pieces.

    Pieces that turn out to be one are joined in `parents`, a root being the first of them. The
    pieces are many fewer than the voxels, so that their table stays in the processor's cache.
    `place` has the coordinates of a row, of which the caller passes zeros; `steps` is a buffer for
    the way to the rows before it. Checks nothing.
    """
    last = shape.size - 1
    width = shape[last]
    count = 0
    parents[0] = 0
    for start in range(0, flat.size, width):
        n_steps = 0
        stride = width
        for axis in range(last - 1, -1, -1):
            if place[axis] > 0:
                steps[n_steps] = stride
                n_steps += 1
            stride *= shape[axis]
        before = flat[start]
        piece = np.int64(0)
        for i in range(start, start + width):
            value = flat[i]
            if value != before:
                piece = np.int64(0)
                before = value
            if value != 0:
                for k in range(n_steps):
                    if flat[i - steps[k]] == value:
                        other = np.int64(pieces[i - steps[k]])
                        if piece == 0:
                            piece = other
                        elif piece != other:
                            join_sets(piece, other, parents)
                if piece == 0:
                    count += 1
                    piece = np.int64(count)
                    parents[count] = count
            pieces[i] = piece
        for axis in range(last - 1, -1, -1):
            place[axis] += 1
            if place[axis] < shape[axis]:
                break
            place[axis] = 0
    return count


@kernel
def _number_roots(parents: Any) -> None:
    """Replace each parent by the number of its set, roots counted from 1. Checks nothing."""
    count = 0
    for i in range(1, parents.size):
        # invariant: a parent comes before its child, so it has its number already
        if parents[i] == i:
            count += 1
            parents[i] = count
        else:
            parents[i] = parents[parents[i]]


_FIRST_TABLE = 1 << 12
_SMALL_TABLE = 1 << 16

Tick = Callable[[int, int], None]  # number of the pass, number of its voxels that are done


@dataclass(frozen=True, eq=False)
class DenseLabels:
    """A label image with ids 0..n, and the user's id of each.

    Attributes
    ----------
    image
        uint32, C order, read-only; 0 is "no region" and stays 0. It shares no memory with the
        input, so that the user may edit the input.
    ids
        uint64, read-only, length n + 1, ascending, ``ids[0] == 0``; ``ids[dense]`` is the user's
        id.
    dtype
        The type of the user's label image.
    origin
        Place of the first voxel, if the label image is a `Volume` that states it.
    """

    image: np.ndarray[Any, np.dtype[np.uint32]]
    ids: np.ndarray[Any, np.dtype[np.uint64]]
    dtype: np.dtype[Any]
    origin: tuple[float, ...] | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels, 0 not counted."""
        return len(self.ids) - 1


def dense_labels(
    labels: object, name: str = "labels", *, progress: ProgressCallback | None = None
) -> DenseLabels:
    """Renumber the labels of an image 1..n in ascending order of their ids.

    Parameters
    ----------
    labels
        Label image, anything that `check_labels` takes. A `DenseLabels` is returned as it is.
    name
        Name of the argument in messages.
    progress
        Called several times a second.

    Returns
    -------
    DenseLabels
        With an image of its own, even where the input is dense already.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo.volumes import dense_labels
    >>> dense = dense_labels(np.array([[7, 7, 2**40], [0, 3, 3]]))
    >>> dense.image
    array([[2, 2, 3],
           [0, 1, 1]], dtype=uint32)
    >>> dense.ids
    array([            0,             3,             7, 1099511627776], dtype=uint64)
    """
    if isinstance(labels, DenseLabels):
        return labels
    array = check_labels(labels, name, progress=progress)
    dtype = np.dtype(array.dtype)
    # No label is negative, so the unsigned view is the same image with half the kernels to compile.
    unsigned = array.view(np.dtype(f"u{dtype.itemsize}"))
    source = unsigned.reshape(-1)
    # a copy of a uint32 input becomes the image, renumbered in place
    flat = np.empty_like(source) if source.dtype == np.uint32 else source

    def tick(part: int, stop: int) -> None:  # of four passes; an image may need only two
        report(progress, f"numbering {name}", part * flat.size + stop, 4 * flat.size)

    highest = 0
    for start, stop in pieces(flat.size):
        if flat is not source:
            flat[start:stop] = source[start:stop]
        highest = max(highest, int(flat[start:stop].max()))
        tick(0, stop)
    if highest < max(2 * flat.size, _SMALL_TABLE):
        image, ids = _by_table(flat, highest, tick)
    else:
        image, ids = _by_hash(flat, tick)
    image = image.reshape(array.shape)
    image.flags.writeable = False
    ids.flags.writeable = False
    return DenseLabels(image, ids, dtype, labels.origin if isinstance(labels, Volume) else None)


def _by_table(
    flat: np.ndarray[Any, Any], highest: int, tick: Tick
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the dense image and its ids; a uint32 `flat` is overwritten, and is the image."""
    present = np.zeros(highest + 1, np.uint8)
    for start, stop in pieces(flat.size):
        _mark_present(flat[start:stop], present)
        tick(1, stop)
    present[0] = 1
    ids = np.flatnonzero(present).astype(np.uint64)
    if len(ids) == highest + 1 and flat.dtype == np.uint32:
        return flat, ids
    table = np.cumsum(present, dtype=np.uint32)
    table -= np.uint32(1)
    image = flat if flat.dtype == np.uint32 else np.empty(flat.size, np.uint32)
    for start, stop in pieces(flat.size):
        _look_up(flat[start:stop], table, image[start:stop])
        tick(3, stop)
    return image, ids


def _by_hash(
    flat: np.ndarray[Any, Any], tick: Tick
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the dense image and its ids, by a hash table that grows as ids appear."""
    image = np.empty(flat.size, np.uint32)
    slots = np.zeros(_FIRST_TABLE, np.uint32)
    keys = np.zeros(_FIRST_TABLE // 2 + 1, np.uint64)  # keys[0] = 0 is "no region"
    position, count = 0, 0
    with np.errstate(over="ignore"):  # the hash wraps on purpose; numpy warns with the JIT off
        while position < flat.size:
            stop = min(position + PIECE, flat.size)
            position, count = _number_by_hash(flat, image, slots, keys, position, stop, count)
            tick(1, position)
            if position == stop:
                continue
            if 4 * len(slots) > 2**34:
                raise InvalidInput(
                    "`labels` has more than 2**32 - 1 labels",
                    argument="labels",
                    remedy="use a crop",
                )
            slots = np.zeros(4 * len(slots), np.uint32)
            grown = np.zeros(len(slots) // 2 + 1, np.uint64)
            grown[: count + 1] = keys[: count + 1]
            keys = grown
            _fill_slots(slots, keys, count)
    keys = keys[: count + 1]
    order = np.argsort(keys)  # ids are distinct, so any sort gives one order, and 0 stays first
    rank = np.empty(count + 1, np.uint32)
    rank[order] = np.arange(count + 1, dtype=np.uint32)
    for start, stop in pieces(flat.size):
        _look_up(image[start:stop], rank, image[start:stop])
        tick(3, stop)
    return image, keys[order]


@kernel
def _mark_present(flat: Any, present: Any) -> None:
    """Set ``present[v]`` for each value v of `flat` below the length of `present`.

    All values are, unless the image is edited while it is read; that must not write out of bounds.
    """
    for i in range(flat.size):
        if flat[i] < present.size:
            present[flat[i]] = 1


@kernel
def _look_up(flat: Any, table: Any, out: Any) -> None:
    """Set ``out[i] = table[flat[i]]``, 0 beyond the table; `out` may be `flat`."""
    for i in range(flat.size):
        out[i] = table[flat[i]] if flat[i] < table.size else 0


@inlined
def _hash(key: Any) -> Any:
    """Mix the bits of a uint64 well enough that runs of ids and block offsets spread alike."""
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xFF51AFD7ED558CCD)
    key ^= key >> np.uint64(33)
    return key


# This is not one of the tables of `_numba`: ids are 64-bit, so that their hash must wrap, and a
# slot has a 32-bit number, half the size of an id.


@inlined
def _find_slot(key: Any, slots: Any, keys: Any) -> Any:
    """Return the slot of the number of `key`, or the free one where that belongs."""
    mask = np.uint64(slots.size - 1)
    slot = _hash(key) & mask
    while slots[slot] != 0 and keys[slots[slot]] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel
def _number_by_hash(
    flat: Any, image: Any, slots: Any, keys: Any, position: int, end: int, count: int
) -> tuple[int, int]:
    """Assign numbers in the order of first voxels, from `position` to `end`. Checks nothing.

    `slots` is an open-addressing table (a power of two long) of indices into `keys`, 0 where free.
    The kernel stops when `keys` is full, for the caller to grow both and call again; it returns the
    next voxel and the number of labels. `keys` is half as long as `slots`, so that a search ends.
    """
    last_key = np.uint64(0)
    last_number = np.uint32(0)
    for i in range(position, end):
        key = np.uint64(flat[i])
        if key != last_key:  # labels come in runs: most voxels need no look-up
            if key == np.uint64(0):
                number = np.uint32(0)
            else:
                slot = _find_slot(key, slots, keys)
                number = slots[slot]
                if number == 0:
                    if count + 1 >= keys.size:
                        return i, count
                    count += 1
                    number = np.uint32(count)
                    slots[slot] = number
                    keys[count] = key
            last_key = key
            last_number = number
        image[i] = last_number
    return end, count


@kernel
def _fill_slots(slots: Any, keys: Any, count: int) -> None:
    """Enter ``keys[1..count]``, all distinct, into an empty table. Checks nothing."""
    for number in range(1, count + 1):
        slots[_find_slot(keys[number], slots, keys)] = np.uint32(number)
