"""A block-wise segmentation by waterz, whose blocks are scheduled by daisy; see docs/scale.md.

    PYTHON -m benchmarks.peer_waterz BOUNDARY.zarr FOLDER --shape 192,192,192

``PYTHON`` is that of an environment with daisy and waterz, which this package is not in; the peer
``waterz-daisy`` of `bench_blocks` starts it. The tasks are those that such pipelines have: the
watershed of waterz in blocks with a context, its agglomeration of the fragments of each block and
their surroundings up to the threshold, a union of all merges in memory, and labels. The affinities
are made of the boundary map before the clock starts: 1 less the higher value of both voxels.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benchmarks.bench_blocks import measured

THRESHOLD = 0.5


def _box(roi: Any, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return a part of the volume; the context of a block may lie beyond its faces."""
    return tuple(
        slice(max(a, 0), min(b, n)) for a, b, n in zip(roi.begin, roi.end, shape, strict=True)
    )


def _number(roi: Any, shape: tuple[int, ...]) -> int:
    """Return a number of a block that no other block has."""
    return int(np.ravel_multi_index(tuple(roi.begin), shape))


def _fragments(folder: Path, block: Any) -> None:
    """Write the watershed of a block with its context."""
    import waterz

    affs = zarr.open_array(str(folder / "affs.zarr"), mode="r")
    out = zarr.open_array(str(folder / "fragments.zarr"), mode="r+")
    around, own = (_box(roi, out.shape) for roi in (block.read_roi, block.write_roi))
    values = affs[(slice(None), *around)].astype(np.float32) / np.float32(255)
    made = next(waterz.agglomerate(values, [0.0])).copy()
    inner = tuple(
        slice(o.start - a.start, o.stop - a.start) for o, a in zip(own, around, strict=True)
    )
    ids, dense = np.unique(made[inner], return_inverse=True)
    labels = dense.reshape(made[inner].shape).astype(np.uint64) + np.uint64(ids[0] != 0)
    # so many fragments a block has at most
    first = _number(block.write_roi, out.shape)
    out[own] = np.where(labels > 0, labels + np.uint64(first), 0)


def _merges(folder: Path, block: Any) -> None:
    """Write which fragments in and around a block merge below the threshold."""
    import waterz

    affs = zarr.open_array(str(folder / "affs.zarr"), mode="r")
    fragments = zarr.open_array(str(folder / "fragments.zarr"), mode="r")
    around = _box(block.read_roi, fragments.shape)
    values = affs[(slice(None), *around)].astype(np.float32) / np.float32(255)
    ids, dense = np.unique(fragments[around], return_inverse=True)
    if ids[0] != 0:
        ids, dense = np.concatenate([[0], ids]), dense + 1
    dense = dense.reshape(values.shape[1:]).astype(np.uint64)
    made = next(waterz.agglomerate(values, [THRESHOLD], fragments=dense.copy()))
    first = np.zeros(len(ids), np.int64)
    first[dense.ravel()] = made.ravel()
    place = folder / "merges" / f"{_number(block.write_roi, fragments.shape)}.npz"
    np.savez(place, ids=ids, segments=first)


def _labels(folder: Path, block: Any) -> None:
    """Write the labels of a block."""
    fragments = zarr.open_array(str(folder / "fragments.zarr"), mode="r")
    out = zarr.open_array(str(folder / "labels.zarr"), mode="r+")
    table = np.load(folder / "table.npz")
    own = _box(block.write_roi, out.shape)
    out[own] = table["segments"][np.searchsorted(table["ids"], fragments[own])]


def _union(folder: Path) -> None:
    """Write the table from fragments to segments, from the merges of all blocks."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    parts = [np.load(path) for path in sorted((folder / "merges").glob("*.npz"))]
    ids = np.unique(np.concatenate([one["ids"] for one in parts]))
    pairs = []
    for one in parts:
        order = np.argsort(one["segments"], kind="stable")
        row, segment = np.searchsorted(ids, one["ids"][order]), one["segments"][order]
        same = segment[1:] == segment[:-1]
        pairs.append(np.stack([row[:-1][same], row[1:][same]]))
    rows, columns = np.concatenate(pairs, axis=1)
    graph = coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(len(ids),) * 2)
    segments = connected_components(graph, directed=False)[1] + 1
    segments[ids == 0] = 0
    np.savez(folder / "table.npz", ids=ids, segments=segments.astype(np.uint64))


def by_waterz(folder: Path, side: int, context: int, workers: int) -> int:
    """Segment the affinities in a folder; return the number of segments."""
    import daisy

    shape = zarr.open_array(str(folder / "affs.zarr"), mode="r").shape[1:]
    (folder / "merges").mkdir()
    for name in ("fragments", "labels"):
        zarr.create_array(str(folder / f"{name}.zarr"), shape=shape, chunks=(side,) * 3, dtype="u8")
    total, own = daisy.Roi((0, 0, 0), shape), daisy.Roi((0, 0, 0), (side,) * 3)
    for name, work, halo in (
        ("fragments", _fragments, context), ("merges", _merges, context), ("labels", _labels, 0),
    ):  # fmt: skip
        if name == "labels":
            _union(folder)
        around = (halo,) * 3
        task = daisy.Task(
            name, total.grow(around, around), own.grow(around, around), own,
            process_function=partial(work, folder), num_workers=workers,
            read_write_conflict=False, fit="shrink",
        )  # fmt: skip
        if not daisy.run_blockwise([task]):
            raise RuntimeError(f"daisy could not do {name}")
    made = zarr.open_array(str(folder / "labels.zarr"), mode="r")[...]
    return len(np.unique(made[made > 0]))


def prepare(boundary: Any, folder: Path, side: int) -> None:
    """Write the affinities of a boundary map of bytes to each voxel's predecessors."""
    value = 255 - boundary
    affs = np.zeros((3, *value.shape), np.uint8)
    for axis, channel in enumerate(affs):
        here, before = [slice(None)] * 3, [slice(None)] * 3
        here[axis], before[axis] = slice(1, None), slice(None, -1)
        channel[tuple(here)] = np.minimum(value[tuple(here)], value[tuple(before)])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    zarr.create_array(str(folder / "affs.zarr"), data=affs, chunks=(3, *(side,) * 3))


def main() -> None:
    """Make the affinities, segment them, and write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boundary")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", default="192,192,192")
    parser.add_argument("--block", type=int, default=96)
    parser.add_argument("--context", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    shape = tuple(int(n) for n in options.shape.split(","))
    boundary = zarr.open_array(options.boundary, mode="r")[tuple(slice(0, n) for n in shape)]
    prepare(boundary, options.folder, options.block)
    os.chdir(options.folder)  # its logs are written where it runs
    logging.disable(logging.WARNING)
    with measured() as out:
        count = by_waterz(options.folder, options.block, options.context, options.workers)
    result = {"package": "waterz", "version": f"{version('waterz')} (daisy {version('daisy')})"}
    (options.folder / "result.json").write_text(json.dumps(result | {"count": count} | out))


if __name__ == "__main__":
    main()
