"""What is known of overlaps, brought back to the voxels of two label images, and their boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._jit import kernel
from napari_agglo._progress import ProgressCallback
from napari_agglo.evaluate._where import entry_of, over_lines, run_end
from napari_agglo.volumes import Contingency, DenseLabels


def code_image(
    table: Contingency,
    a: DenseLabels,
    b: DenseLabels,
    codes: NDArray[np.uint8],
    progress: ProgressCallback | None = None,
) -> NDArray[np.uint8]:
    """Return the code of the overlap that each voxel is in; 0 for those in none."""
    out = np.zeros(a.image.shape, np.uint8)
    if out.size:
        lines = out.reshape(-1, out.shape[-1])
        over_lines(_code_kernel, table, a, b, "differences", progress, codes, lines)
    return out


def boxes_of(table: Contingency, a: DenseLabels, b: DenseLabels) -> NDArray[np.int64]:
    """Return the bounding box of each overlap, shape (k, 2, ndim): first, one past the last."""
    boxes = np.empty((table.counts.size, 2, a.image.ndim), np.int64)
    boxes[:, 0] = a.image.shape
    boxes[:, 1] = 0
    over_lines(_box_kernel, table, a, b, "boxes", None, boxes)
    return boxes


@kernel
def _code_kernel(
    a: Any, b: Any, start: Any, stop: Any, outer: Any, first: Any, columns: Any, codes: Any,
    out: Any,
) -> None:  # fmt: skip
    """Write the codes of the runs of lines `start` to `stop`. Nothing is checked."""
    width = a.shape[1]
    for line in range(start, stop):
        end = 0
        while end < width:
            begin = end
            end = run_end(a, b, line, begin, width)
            entry = entry_of(a[line, begin], b[line, begin], first, columns)
            if entry >= 0:
                out[line, begin:end] = codes[entry]


@kernel
def _box_kernel(
    a: Any, b: Any, start: Any, stop: Any, outer: Any, first: Any, columns: Any, boxes: Any
) -> None:
    """Widen the boxes by the runs of lines `start` to `stop`. Nothing is checked."""
    width = a.shape[1]
    last = outer.size
    for line in range(start, stop):
        end = 0
        while end < width:
            begin = end
            end = run_end(a, b, line, begin, width)
            entry = entry_of(a[line, begin], b[line, begin], first, columns)
            if entry < 0:
                continue
            boxes[entry, 0, last] = min(boxes[entry, 0, last], begin)
            boxes[entry, 1, last] = max(boxes[entry, 1, last], end)
            rest = line
            for axis in range(last - 1, -1, -1):
                at = rest % outer[axis]
                boxes[entry, 0, axis] = min(boxes[entry, 0, axis], at)
                boxes[entry, 1, axis] = max(boxes[entry, 1, axis], at + 1)
                rest //= outer[axis]
