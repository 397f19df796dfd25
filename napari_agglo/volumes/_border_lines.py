"""Kernel of the directions of borders: line segments fitted to the lines between labels.

Strategy: the faces between two labels form lines on the grid of the corners of pixels. A corner
where two faces meet continues a line; one where one, three or four meet ends it. Each line is
followed from end to end (a closed one from any corner), and divided at the corner that is farthest
from the chord until no corner is farther than a tolerance (Douglas and Peucker). A face has the
orientation of the chord of its piece, so that the stairs of a slanted line do not matter, and
nothing that lies across a junction does either.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel, subroutine

NO_BORDER = 255  # orientation of a face inside a region
_LATER = 254  # of a face between two labels that is not in a line yet


@inlined
def _face_beside(i: Any, j: Any, way: Any, height: Any, width: Any) -> Any:
    """Return the axis, row and column of the face that leads from a corner up, down, left, right.

    The axis is -1 if there is none: faces are inside the image. The face between a pixel and the
    next one along an axis has the row and the column of the first.
    """
    if way == 0 and i > 0 and 0 < j < width:
        return 1, i - 1, j - 1
    if way == 1 and i < height and 0 < j < width:
        return 1, i, j - 1
    if way == 2 and j > 0 and 0 < i < height:
        return 0, i - 1, j - 1
    if way == 3 and j < width and 0 < i < height:
        return 0, i - 1, j
    return -1, 0, 0


@inlined
def _degree(i: Any, j: Any, faces: Any) -> Any:
    """Return the number of faces between labels that meet in a corner."""
    n = 0
    for way in range(4):
        axis, r, c = _face_beside(i, j, way, faces.shape[1], faces.shape[2])
        if axis >= 0 and faces[axis, r, c] != NO_BORDER:
            n += 1
    return n


@subroutine
def _follow(i: Any, j: Any, way: Any, faces: Any, path: Any) -> Any:
    """Write the corners of the line that leaves a corner in one way; return their number.

    Its faces are marked as those of some line, by orientation 0.
    """
    path[0, 0] = i
    path[0, 1] = j
    n = 1
    while True:
        axis, r, c = _face_beside(i, j, way, faces.shape[1], faces.shape[2])
        faces[axis, r, c] = 0
        i += (way == 1) - (way == 0)
        j += (way == 3) - (way == 2)
        path[n, 0] = i
        path[n, 1] = j
        n += 1
        if _degree(i, j, faces) != 2:
            return n
        way = -1
        for other in range(4):
            axis, r, c = _face_beside(i, j, other, faces.shape[1], faces.shape[2])
            if axis >= 0 and faces[axis, r, c] == _LATER:
                way = other
        if way < 0:  # a closed line is back at its first corner
            return n


@subroutine
def _fit(path: Any, n: Any, tolerance: Any, stack: Any, faces: Any, n_channels: Any) -> None:
    """Divide a line into straight pieces and write the channel of each to its faces."""
    stack[0, 0] = 0
    stack[0, 1] = n - 1
    depth = 1
    while depth > 0:
        depth -= 1
        first = stack[depth, 0]
        last = stack[depth, 1]
        di = float(path[last, 0] - path[first, 0])
        dj = float(path[last, 1] - path[first, 1])
        length = math.sqrt(di * di + dj * dj)
        farthest = 0.0
        at = first
        for k in range(first + 1, last):
            ki = float(path[k, 0] - path[first, 0])
            kj = float(path[k, 1] - path[first, 1])
            distance = abs(ki * dj - kj * di) / length if length > 0 else math.hypot(ki, kj)
            if distance > farthest:
                farthest = distance
                at = k
        if farthest > tolerance:
            stack[depth, 0] = first
            stack[depth, 1] = at
            stack[depth + 1, 0] = at
            stack[depth + 1, 1] = last
            depth += 2
            continue
        # Rows count downwards, and angles counter-clockwise from the direction of a row.
        turn = math.atan2(-di, dj) / math.pi
        channel = np.int64(math.floor(turn * n_channels + 0.5)) % n_channels
        for k in range(first, last):
            i = min(path[k, 0], path[k + 1, 0])
            j = min(path[k, 1], path[k + 1, 1])
            if path[k, 0] == path[k + 1, 0]:
                faces[0, i - 1, j] = channel
            else:
                faces[1, i, j - 1] = channel


@kernel
def fit_lines(
    labels: Any, tolerance: Any, n_channels: Any, path: Any, stack: Any, faces: Any
) -> None:
    """Write the channel of the orientation of each face to `faces`, (2, rows, columns) of uint8.

    `path` and `stack` are buffers of two columns, with a row more than there are faces. No bounds
    checking.
    """
    height, width = labels.shape
    for r in range(height):
        for c in range(width):
            below = r + 1 < height and labels[r, c] != labels[r + 1, c]
            right = c + 1 < width and labels[r, c] != labels[r, c + 1]
            faces[0, r, c] = _LATER if below else NO_BORDER
            faces[1, r, c] = _LATER if right else NO_BORDER
    for closed in range(2):  # lines that end first: what is left then are closed ones
        for i in range(height + 1):
            for j in range(width + 1):
                if closed == 0 and _degree(i, j, faces) in (0, 2):
                    continue
                for way in range(4):
                    axis, r, c = _face_beside(i, j, way, height, width)
                    if axis >= 0 and faces[axis, r, c] == _LATER:
                        n = _follow(i, j, way, faces, path)
                        _fit(path, n, tolerance, stack, faces, n_channels)


@kernel
def read_faces(channels: Any, pixels: Any, faces: Any) -> None:
    """Replace the channel of each face by the mean of its two pixels in that channel.

    A face inside a region reads `pixels`. Halves are rounded to even numbers, so that the sum over
    many faces is not biased. No bounds checking.
    """
    height, width = pixels.shape
    for axis in range(2):
        for r in range(height):
            for c in range(width):
                r1 = min(r + (axis == 0), height - 1)
                c1 = min(c + (axis == 1), width - 1)
                channel = faces[axis, r, c]
                if channel == NO_BORDER:
                    both = np.int64(pixels[r, c]) + pixels[r1, c1]
                else:
                    both = np.int64(channels[channel, r, c]) + channels[channel, r1, c1]
                faces[axis, r, c] = (both + ((both >> 1) & 1)) >> 1
