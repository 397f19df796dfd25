"""Census of chunks: those of results that are lost, and those of inputs that were never there.

Blocks write all chunks of their stores, so one without a file, or with an empty one, is lost. In
its own file because `status` and a run with nothing left to do need it, and no task.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from napari_agglo.blocks._block_grid import Slices
from napari_agglo.blocks._plan import Plan
from napari_agglo.blocks._run_files import LABELS, PRECOMPUTED, SUPERPIXELS, Job, Task
from napari_agglo.blocks._stores import (
    chunk_boxes,
    chunk_files,
    has_bytes,
    is_readable,
    open_level,
    precomputed_files,
    precomputed_grid,
)
from napari_agglo.volumes._on_disk import OnDisk
from napari_agglo.volumes._precomputed import CHUNK, MARK
from napari_agglo.volumes._store_location import Place

MOST_DECODED = 5_000  # chunks of each store that are decoded, which takes some seconds
FEW = 100_000  # chunks of results that are looked for in about a second of CPU time on a disk


@dataclass(frozen=True)
class LostChunks:
    """Chunks of a result that finished tasks wrote and that are not there, or are damaged.

    Attributes
    ----------
    store : str
        The store, such as ``labels.ome.zarr``.
    chunks : int
        Their number, in all levels.
    first : str
        The first of them, relative to the results folder.
    tasks : tuple of (str, int)
        Stage and number of each task that writes them.
    """

    store: str
    chunks: int
    first: str
    tasks: tuple[Task, ...]


def number_of_chunks(plan: Plan) -> int:
    """Return about how many chunks the results of a plan have at their finest level."""
    sides = plan.block if plan.shards else plan.chunks
    chunks = math.prod(-(-n // side) for n, side in zip(plan.shape, sides, strict=True))
    precomputed = math.prod(-(-n // CHUNK) for n in plan.shape) if plan.precomputed else 0
    return chunks * (1 if plan.superpixels is not None else 2) + precomputed


def lost_chunks(job: Job, is_done: Callable[[Task], bool]) -> tuple[LostChunks, ...]:
    """Return the chunks of finished tasks that are not on the disk, by store."""
    stores = [LABELS] if job.plan.superpixels is not None else [SUPERPIXELS, LABELS]
    if job.plan.precomputed:
        stores.append(PRECOMPUTED)
    out = []
    for store in stores:
        lost: dict[Path, Task] = {}
        for task, files in _files_of(job, store, is_done):
            lost |= {path: task for path in files if path.is_dir() or not has_bytes(path)}
        if lost:
            first = os.path.relpath(next(iter(lost)), job.folder)
            tasks = tuple(dict.fromkeys(lost.values()))
            out.append(LostChunks(store, len(lost), first, tasks))
    return tuple(out)


def damaged_chunks(
    job: Job, is_done: Callable[[Task], bool]
) -> tuple[tuple[LostChunks, ...], tuple[int, int]]:
    """Return the chunks of the finest levels that cannot be decoded, by store.

    The second value is the number of chunks that were decoded, and of those that are there: of a
    store with many, a sample is decoded.
    """
    out, decoded, there = [], 0, 0
    for store in [LABELS] if job.plan.superpixels is not None else [SUPERPIXELS, LABELS]:
        written = [(task, box) for task, box in job.writers(store, 0) if is_done(task)]
        try:
            array = open_level(job.store(store)) if written else None
        except (OSError, ValueError):  # the store is lost as a whole
            array = None
        if array is None:
            continue
        chunks = [(task, *one) for task, box in written for one in chunk_boxes(array, box)]
        chosen = chunks[:: -(-len(chunks) // MOST_DECODED)]
        chosen = [one for one in chosen if has_bytes(one[1])]
        bad = {path: task for task, path, box in chosen if not is_readable(array, box)}
        decoded, there = decoded + len(chosen), there + len(chunks)
        if bad:
            first = os.path.relpath(next(iter(bad)), job.folder)
            out.append(LostChunks(store, len(bad), first, tuple(dict.fromkeys(bad.values()))))
    return tuple(out), (decoded, there)


def _files_of(
    job: Job, store: str, is_done: Callable[[Task], bool]
) -> Iterator[tuple[Task, Iterable[Path]]]:
    """Yield the finished tasks that write a store, each with the files of its chunks."""
    path = job.store(store)
    for level, shape in enumerate(job.plan.pyramid(LABELS).shapes):
        if store == PRECOMPUTED:
            grid = precomputed_grid(shape, job.plan.block)
            for k in range(grid.n_blocks):
                if not is_done((f"precomputed-{level}", k)):
                    continue
                files: Iterable[Path] = [path / MARK]
                if has_bytes(path / MARK):
                    files = precomputed_files(path, level, grid.slices(k))
                yield (f"precomputed-{level}", k), files
            continue
        written = [(task, box) for task, box in job.writers(store, level) if is_done(task)]
        try:
            array = open_level(path, level) if written else None
        except (OSError, ValueError):  # the store is lost as a whole
            array = None
        for task, box in written:
            yield task, [path / str(level)] if array is None else chunk_files(array, box)


def absent_files(job: Job, name: str, most: int = 3) -> list[str]:
    """Return some files of chunks that an input on disk has not, the first ones by block."""
    source = job.plan.sources().get(name)
    if source is None or "://" in source.path:
        return []
    data = source.open().data
    lost: dict[str, None] = {}
    if isinstance(data, OnDisk):
        for k in range(job.grid.n_blocks):
            box = _with_channels(job.grid.slices(k), data)
            if data.absent(box):
                names = data.files(box)
                lost |= {str(place / key): None for place, key in names if not _has(place, key)}
            if len(lost) >= most:
                break
    return list(lost)[:most]


def _with_channels(box: Slices, data: OnDisk) -> Slices:
    return (*(slice(0, n) for n in data.shape[: data.ndim - len(box)]), *box)


def _has(place: Place, key: str) -> bool:
    """Return whether a chunk is there, of precomputed volumes also a packed one."""
    return place.has(key, f"{key}.gz")
