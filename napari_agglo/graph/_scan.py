"""Scan labels and cues in one pass, for regions, boundaries and their statistics.

Strategy: the volume is read row by row (a row runs along the last axis), so that the kernel is the
same in any number of dimensions. Within a row

1. runs of one label add count, coordinates and cue sums to their region, a run at a time;
2. for each axis, the faces between this row and the next one along that axis (within the row, for
   the last axis) are compacted into a list, looked up in one hash table from pair of labels to
   boundary (only when the pair changes), and then added, cue by cue.

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


class RowBuffers(NamedTuple):
    """Room for the coordinates of a row of pixels, and for the places of its faces."""

    where: Any
    at: Any


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
def _add_row(base: Any, where: Any, pixels: Any, cues: Any, rows: Any) -> None:
    """Add the pixels of one row to their regions: counts, coordinates, borders, boxes, cues."""
    labels, values, _, _, _, window, _ = pixels
    _, words, _, _, _ = cues
    regions, region_width, boxes, _, _ = rows
    ndim = where.size
    last = ndim - 1
    width = window[0, last]
    shift = window[1, last]
    start = 0
    while start < width:
        label = labels[base + start]
        stop = start + 1
        while stop < width and labels[base + stop] == label:
            stop += 1
        if label == 0:
            start = stop
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
        _add_cues(
            values, cues, 0, base + start, n, 1, np.int64(0), np.int64(0), regions, column + 1
        )
        for cue in range(words.shape[0]):
            column = row + words[cue, 1]
            for i in range(base + start, base + stop):
                regions[column + values[words[cue, 0], i]] += 1
        start = stop


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


@kernel
def scan_rows(
    first_row: Any, last_row: Any, pixels: Any, cues: Any, rows: Any, pairs: Any, buffers: Any
) -> Any:
    """Add rows `first_row` to `last_row` - 1; return the first row not done, if any, or `last_row`.

    The kernel adds to `rows` and `pairs`. No bounds checking is performed.
    """
    labels, values, n_labels, shape, strides, window, _ = pixels
    _, _, _, boundaries, boundary_width = rows
    ends, count, table, _ = pairs
    where, at = buffers
    ndim = shape.size
    last = ndim - 1
    width = shape[last]
    room = min(ends.shape[0], table.size // 4)  # the table stays at most half full
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
        _add_row(base, where, pixels, cues, rows)
        for axis in range(ndim):
            if axis < last and where[axis] + 1 >= shape[axis]:
                continue
            step = strides[axis]
            n = min(window[0, last], width - (axis == last))
            here = labels[base : base + n]
            there = labels[base + step : base + step + n]
            n_faces = 0
            for k in range(n):  # no branch here: most neighbours are equal and are skipped
                at[n_faces] = k
                n_faces += here[k] != there[k]
            face = 0
            while face < n_faces:
                start = at[face]
                u = here[start]
                v = there[start]
                stop = start + 1
                while stop < n and here[stop] == u and there[stop] == v:
                    stop += 1
                face += stop - start
                if u > 0 and v > 0:
                    row = boundary_width * _boundary_between(u, v, n_labels, pairs)
                    boundaries[row + axis] += stop - start
                    _add_cues(
                        values, cues, 1 + axis, base + start, stop - start, 2, step, np.int64(0),
                        boundaries, row + ndim,
                    )  # fmt: skip
                else:
                    for k in range(start, stop):
                        place = k if axis == last else where[axis]
                        _add_open_face(base + k, axis, place, pixels, cues, rows, pairs)
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
