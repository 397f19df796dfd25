"""Prediction of class probabilities, block by block: the filters, then a forest."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

from napari_agglo._numba import kernel
from napari_agglo._progress import ProgressCallback, report
from napari_agglo.pixels._filters import Array, FilterBank
from napari_agglo.pixels._pixel_image import Box, PixelImage, blocks, lines_of
from napari_agglo.policy import CHUNK, Forest, Trees, walk_rows

BAND = 1 << 14  # voxels whose features are in memory at a time, in each thread


@contextmanager
def threads() -> Iterator[Executor]:
    """Give a thread for each core; on an error or a cancel, those that wait never begin."""
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def class_probabilities(rows: Array, forest: Forest, classes: int) -> Array:
    """Return (class, row): the probability of each class of each row of features.

    The forest has equally many trees for each class, those of the first class first. Two classes
    share the trees of the first.
    """
    out = np.empty((classes, len(rows)), np.float32)
    predict_classes(rows, forest.trees, np.arange(CHUNK, dtype=np.uint32), np.zeros(CHUNK), out)
    return out


def predict_box(
    image: PixelImage,
    box: Box,
    bank: FilterBank,
    forest: Forest,
    classes: int,
    pool: Executor,
    progress: ProgressCallback | None = None,
    done: int = 0,
    total: int | None = None,
) -> Array:
    """Return (class, planes, rows, columns) of a part of an image.

    `done` of `total` lines of the whole work were finished before.
    """
    report(progress, "classifying pixels", done, total or 1)
    filtered = bank.apply(image.read(box, bank.reach(image.spacing)), image.spacing, pool)
    columns = box.shape[2]
    out = np.empty((classes, box.shape[0] * box.shape[1] * columns), np.float32)

    own = threading.local()  # a buffer of each thread

    def predict(first: int, stop: int) -> None:
        rows = filtered.features(first, stop, getattr(own, "buffer", None))
        own.buffer = rows
        out[:, first * columns : stop * columns] = class_probabilities(rows, forest, classes)

    bands = list(lines_of(box, BAND))
    for (_, stop), task in zip(bands, [pool.submit(predict, *band) for band in bands], strict=True):
        task.result()
        report(progress, "classifying pixels", done + stop, total or box.shape[0] * box.shape[1])
    return out.reshape(classes, *box.shape)


def part_bytes(image: PixelImage, bank: FilterBank, classes: int) -> int:
    """Return the memory that the prediction of the largest part of an image takes."""
    part = blocks(image.grid, bank.axes)[0].shape
    outer = math.prod(n + 2 * r for n, r in zip(part, bank.reach(image.spacing), strict=True))
    stored = int(np.dtype(image.picture.data.dtype).itemsize)
    products = bank.axes * (bank.axes + 1) // 2 if bank.structure else 0
    scales = bank.channels * len(bank.scales) * (1 + products)
    ring = math.prod(n + 2 for n in part)
    # voxels as they are stored, as floats, and with the border; one scale that is wider
    read = outer * (bank.channels * (stored + 8) + (8 if products else 0))
    return read + 4 * ring * scales + 4 * math.prod(part) * classes + 4 * BAND * bank.width


@kernel
def predict_classes(rows: Any, trees: Trees, which: Any, totals: Any, out: Any) -> None:
    """Write the probabilities of all rows, a chunk at a time. No bounds checking.

    The means over the trees of each class are scaled so that their sum is 1; where all are 0, the
    classes are equally probable.
    """
    classes = out.shape[0]
    forests = np.int64(1) if classes == 2 else np.int64(classes)
    each = np.int64(trees.roots.size) // forests
    for start in range(0, rows.shape[0], CHUNK):
        n = np.int64(min(CHUNK, rows.shape[0] - start))
        for one in range(forests):
            for row in range(n):
                totals[row] = 0.0
            walk_rows(rows[start:], which, n, one * each, (one + 1) * each, trees, totals)
            for row in range(n):
                out[one, start + row] = totals[row] / each
        for row in range(start, start + n):
            if classes == 2:
                out[1, row] = np.float32(1.0) - out[0, row]
                continue
            total = 0.0
            for one in range(classes):
                total += out[one, row]
            for one in range(classes):
                out[one, row] = out[one, row] / total if total > 0.0 else 1.0 / classes
