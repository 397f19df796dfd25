"""Scan labels and cues in one pass, for regions, boundaries and their statistics.

Strategy: the volume is read row by row (a row runs along the last axis), so that the kernel is the
same in any number of dimensions. Each row is first encoded as runs of one label. Then

1. each run adds count, coordinates and cue sums to its region;
2. for each axis, the runs of this row and of the next one along that axis are walked side by side
   (within the row, for the last axis), which gives runs of faces of one pair of labels; the pair is
   looked up in one hash table from pair of labels to boundary, and the faces are added, cue by cue.

Where the sum of a cue is all that counts, a row has the sums of its pixels from the first one on,
and a run takes the difference of two of them.

A face belongs to its lower pixel, so a volume can be cut in blocks anywhere and no face is counted
twice: the window says which pixels of an array are those of a block, and where they are in the
volume; the planes above them only close their faces. Arrays never grow in here: when a row might
not fit, the kernel returns its number and the caller grows them and calls again (growing inside
made the same loop 20 times slower).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from napari_agglo._numba import inlined, kernel
from napari_agglo._numba.hash_tables import pair_slot


class Pixels(NamedTuple):
    """The volume: flat labels 0..``n_labels - 1``, (planes, pixels) of uint8, and their layout."""

    labels: Any
    values: Any
    n_labels: Any
    shape: Any
    strides: Any
    # Three rows with a number for each axis: the pixels that count, from 0 on; the place of pixel 0
    # in the volume; and the shape of the volume.
    window: Any
    dams: Any  # whether a line of 0 one pixel thick is a boundary


class CueColumns(NamedTuple):
    """The planes of each cue, and what a row keeps of them: power sums and a histogram."""

    sources: Any  # tables of `Layout`
    words: Any
    bin_of: Any  # the bin of each of the 256 values
    powers: Any
    bins: Any


class Rows(NamedTuple):
    """Rows of statistics to add to, flat, with their widths, and the boxes of regions."""

    regions: Any
    region_width: Any
    boxes: Any
    boundaries: Any
    boundary_width: Any


class Pairs(NamedTuple):
    """The boundaries found so far, and the hash table from a pair of labels to its boundary."""

    ends: Any
    count: Any  # of one element
    table: Any  # a power of two of slots, key and boundary each
    recent: Any  # the same, smaller: a cache of the last look-ups


class EncodedRows(NamedTuple):
    """Rows as runs of one label: those between a row and the next one along the first axis.

    A row is in place ``row % number of places``. Where so many rows would take too much memory,
    there are `ndim` places: one for the row itself, and one for the next along each other axis.
    """

    where: Any  # buffer: coordinates of the first pixel of a row
    rows: Any  # of each place, the row that it has, or -1
    starts: Any  # of each place, the first pixel of each run; then the number of pixels
    counts: Any  # of each place, the number of runs
    sums: Any  # (planes, places, pixels + 1): of the pixels before each; no planes if not needed


@inlined
def _encode(row: Any, place: Any, pixels: Any, encoded: Any) -> None:
    """Find the runs of a row, and the sums of its pixels, unless its place has them already."""
    labels, values, _, shape, _, _, _ = pixels
    _, rows, starts, counts, sums = encoded
    if rows[place] == row:
        return
    rows[place] = row
    width = shape[shape.size - 1]
    base = row * width
    line = labels[base : base + width]
    runs = starts[place]
    runs[0] = 0
    n: Any = np.int64(1)
    for k in range(1, width):  # no branch here: most neighbours are equal
        runs[n] = k
        n += line[k] != line[k - 1]
    runs[n] = width
    counts[place] = n
    for plane in range(sums.shape[0]):
        value = values[plane, base : base + width]
        out = sums[plane, place]
        total = np.int32(0)
        for k in range(width):
            out[k] = total
            total += np.int32(value[k])
        out[width] = total


@inlined
def _boundary_between(u: Any, v: Any, n_labels: Any, pairs: Any) -> Any:
    """Return the index of the boundary of labels `u` and `v`; enter it if it is new.

    The next row has the same pairs again, so a small direct-mapped cache, `recent`, answers most
    look-ups from the processor's cache.
    """
    # A table of its own, with the pair itself beside its boundary: with the table of pairs of
    # `_numba.hash_tables`, whose searches end with a read of `ends`, a graph takes 9 % more time
    # (0.47 s of CPU instead of 0.43, on the row of volumes of `benchmarks.compare_revisions`).
    ends, count, table, recent = pairs
    u, v = np.int64(min(u, v)), np.int64(max(u, v))
    key = u * n_labels + v
    mask = table.size // 2 - 1
    slot = pair_slot(u, v, mask)
    near = 2 * (slot & (recent.size // 2 - 1))
    if recent[near] == key:
        return recent[near + 1]
    while table[2 * slot] != key:
        if table[2 * slot] == 0:
            edge = count[0]
            table[2 * slot] = key
            table[2 * slot + 1] = edge
            ends[edge, 0] = u
            ends[edge, 1] = v
            count[0] = edge + 1
            break
        slot = (slot + 1) & mask
    recent[near] = key
    recent[near + 1] = table[2 * slot + 1]
    return table[2 * slot + 1]


@inlined
def _add_cues(
    values: Any, cues: Any, direction: Any, start: Any, n: Any, sides: Any, far: Any, near: Any,
    rows: Any, column: Any,
) -> None:  # fmt: skip
    """Add `n` pixels from `start`, or the values of as many faces, to the cues of a row.

    `direction` is 0 for pixels of a region, which have one side, and 1 + axis for faces, which have
    two. A plain cue reads the second side `far` pixels further. An oriented cue reads the same face
    on both sides, but at a dam, where the lower face is `near` pixels before the upper one.

    Rows are addressed in one flat array, in which the cues of this row begin at `column`: a view of
    a row would cost a reference count per run. With one power there is no histogram either.
    """
    sources, _, bin_of, powers, bins = cues
    for cue in range(sources.shape[0]):
        s1 = np.int64(0)
        s2 = np.int64(0)
        s3 = np.int64(0)
        s4 = np.int64(0)
        plane = sources[cue, 1 + direction]
        for side in range(sides if plane >= 0 else 0):
            first = start - (1 - side) * near if sources[cue, 0] else start + side * far
            value = values[plane, first : first + n]
            if powers == 1:
                for i in range(n):
                    s1 += value[i]
                continue
            for i in range(n):
                a = np.int64(value[i])
                aa = a * a
                s1 += a
                s2 += aa
                s3 += aa * a
                s4 += aa * aa
                rows[column + powers + bin_of[value[i]]] += 1
        rows[column] += s1
        if powers > 1:
            rows[column + 1] += s2
            rows[column + 2] += s3
            rows[column + 3] += s4
        column += powers + bins


@inlined
def _add_sums(
    cues: Any, direction: Any, start: Any, stop: Any, low: Any, high: Any, sums: Any, rows: Any,
    column: Any,
) -> None:  # fmt: skip
    """Add cues like `_add_cues`, for pixels `start` to `stop` - 1 of encoded rows, by their sums.

    `low` is the place of their row, `high` that of the row on the other side of the faces, or -1.
    """
    sources, _, _, _, bins = cues
    for cue in range(sources.shape[0]):
        plane = sources[cue, 1 + direction]
        if plane >= 0:
            total = np.int64(sums[plane, low, stop]) - np.int64(sums[plane, low, start])
            if high >= 0:
                other = low if sources[cue, 0] else high
                total += np.int64(sums[plane, other, stop]) - np.int64(sums[plane, other, start])
            rows[column] += total
        column += 1 + bins


@inlined
def _add_row(base: Any, place: Any, pixels: Any, cues: Any, rows: Any, encoded: Any) -> None:
    """Add the runs of one row to their regions: counts, coordinates, borders, boxes, cues."""
    labels, values, _, _, _, window, _ = pixels
    _, words, _, _, _ = cues
    regions, region_width, boxes, _, _ = rows
    where, _, starts, counts, sums = encoded
    ndim = where.size
    last = ndim - 1
    width = window[0, last]
    shift = window[1, last]
    for run in range(counts[place]):
        start = np.int64(starts[place, run])
        stop = min(np.int64(starts[place, run + 1]), width)
        label = np.int64(labels[base + start])
        if label == 0 or start >= stop:
            continue
        n = stop - start
        left = start + shift
        total = n * (2 * left + n - 1) // 2  # sum of the column index over the run
        # Sum of (left + k)**2 for k below n; nothing in it exceeds the result by much.
        squares = left * left * n + left * n * (n - 1) + (n - 1) * n * (2 * n - 1) // 6
        row = label * region_width
        border = row + 1
        coordinates = border + 3 * ndim
        column = coordinates + ndim
        is_new = regions[row] == 0
        regions[row] += n
        for axis in range(ndim):
            first = where[axis] + window[1, axis] if axis < last else left
            behind = first + 1 if axis < last else left + n
            faces = n if axis < last else 1
            if is_new or first < boxes[label, 0, axis]:
                boxes[label, 0, axis] = first
            if is_new or behind > boxes[label, 1, axis]:
                boxes[label, 1, axis] = behind
            if first == 0:
                regions[border + axis] += faces
            if behind == window[2, axis]:
                regions[border + axis] += faces
            if axis == last:
                break
            regions[coordinates + axis] += n * first
            for other in range(axis, last):
                regions[column] += n * first * (where[other] + window[1, other])
                column += 1
            regions[column] += first * total
            column += 1
        regions[coordinates + last] += total
        regions[column] += squares
        if sums.shape[0] > 0:
            _add_sums(cues, 0, start, stop, place, np.int64(-1), sums, regions, column + 1)
        else:
            _add_cues(
                values, cues, 0, base + start, n, 1, np.int64(0), np.int64(0), regions, column + 1
            )
        for cue in range(words.shape[0]):
            column = row + words[cue, 1]
            for i in range(base + start, base + stop):
                regions[column + values[words[cue, 0], i]] += 1


@inlined
def _add_open_face(
    i: Any, axis: Any, at: Any, pixels: Any, cues: Any, rows: Any, pairs: Any
) -> None:
    """Add the face between pixel `i` and the next along `axis`, one of which has label 0.

    It is an open face of the region on the other side. If dams count, and the 0 is a dam, one pixel
    thick, to another region, it is a face of their boundary too; the value of the dam then counts
    for both sides, or those of its two faces for an oriented cue. Of the two faces of a dam the
    lower one is added to the boundary.
    """
    labels, values, n_labels, shape, strides, _, dams = pixels
    regions, region_width, _, boundaries, boundary_width = rows
    ndim = shape.size
    step = strides[axis]
    u = labels[i]
    v = labels[i + step]
    if u == 0:
        regions[v * region_width + 1 + ndim + axis] += 1
        return
    regions[u * region_width + 1 + ndim + axis] += 1
    above = labels[i + 2 * step] if dams and at + 2 < shape[axis] else v
    if above == 0 or above == u:
        return
    row = boundary_width * _boundary_between(u, above, n_labels, pairs)
    boundaries[row + axis] += 1
    _add_cues(
        values, cues, 1 + axis, i + step, np.int64(1), 2, np.int64(0), step, boundaries, row + ndim
    )


@inlined
def _add_faces(
    base: Any, start: Any, stop: Any, axis: Any, low: Any, high: Any, pixels: Any, cues: Any,
    rows: Any, pairs: Any, encoded: Any,
) -> None:  # fmt: skip
    """Add the faces of the pixels `start` to `stop` - 1 of a row along an axis to their boundary.

    They have one label on each side. `low` and `high` are the places of the rows of both sides.
    """
    labels, values, n_labels, _, strides, _, _ = pixels
    _, _, _, boundaries, boundary_width = rows
    where, _, _, _, sums = encoded
    ndim = where.size
    step = strides[axis]
    u = labels[base + start]
    v = labels[base + start + step]
    if u == v:
        return
    if u > 0 and v > 0:
        row = boundary_width * _boundary_between(u, v, n_labels, pairs)
        boundaries[row + axis] += stop - start
        if sums.shape[0] > 0 and axis < ndim - 1:
            _add_sums(cues, 1 + axis, start, stop, low, high, sums, boundaries, row + ndim)
        else:
            _add_cues(
                values, cues, 1 + axis, base + start, stop - start, 2, step, np.int64(0),
                boundaries, row + ndim,
            )  # fmt: skip
        return
    for k in range(start, stop):
        at = k if axis == ndim - 1 else where[axis]
        _add_open_face(base + k, axis, at, pixels, cues, rows, pairs)


@kernel
def scan_rows(
    first_row: Any, last_row: Any, pixels: Any, cues: Any, rows: Any, pairs: Any, encoded: Any
) -> Any:
    """Add rows `first_row` to `last_row` - 1; return the first row not done, if any, or `last_row`.

    The kernel adds to `rows` and `pairs`. No bounds checking is performed.
    """
    _, _, n_labels, shape, strides, window, _ = pixels
    ends, count, table, _ = pairs
    where, places, starts, counts, _ = encoded
    ndim = shape.size
    last = ndim - 1
    width = shape[last]
    room = min(ends.shape[0], table.size // 4)  # the table stays at most half full
    keeps_all = places.size > strides[0] // width
    for line in range(first_row, last_row):
        if count[0] + ndim * width > room and room < n_labels * (n_labels - 1) // 2:
            return line
        rest = line
        for axis in range(last - 1, -1, -1):
            where[axis] = rest % shape[axis]
            rest //= shape[axis]
        outside = False
        for axis in range(last):
            outside |= where[axis] >= window[0, axis]
        if outside:
            continue
        base = line * width
        low = np.int64(line % places.size) if keeps_all else np.int64(0)
        _encode(line, low, pixels, encoded)
        _add_row(base, low, pixels, cues, rows, encoded)
        n = window[0, last]
        for axis in range(last):
            if where[axis] + 1 >= shape[axis]:
                continue
            above = line + strides[axis] // width
            high = np.int64(above % places.size) if keeps_all else np.int64(1 + axis)
            _encode(above, high, pixels, encoded)
            start = np.int64(0)
            here = np.int64(1)
            there = np.int64(1)
            while start < n:
                end = np.int64(starts[low, here])
                other = np.int64(starts[high, there])
                stop = min(end, other, n)
                _add_faces(base, start, stop, axis, low, high, pixels, cues, rows, pairs, encoded)
                here += end == stop
                there += other == stop
                start = stop
        for run in range(1, counts[low]):
            start = np.int64(starts[low, run]) - 1
            if start >= n:
                break
            _add_faces(base, start, start + 1, last, low, low, pixels, cues, rows, pairs, encoded)
    return last_row


@kernel
def enter_pairs(pairs: Any, n_pairs: Any, n_labels: Any, table: Any) -> None:
    """Fill an empty, larger `table` with the first `n_pairs` pairs. No bounds checking."""
    mask = table.size // 2 - 1
    for edge in range(n_pairs):
        key = pairs[edge, 0] * n_labels + pairs[edge, 1]
        slot = pair_slot(pairs[edge, 0], pairs[edge, 1], mask)
        while table[2 * slot] != 0:
            slot = (slot + 1) & mask
        table[2 * slot] = key
        table[2 * slot + 1] = edge
