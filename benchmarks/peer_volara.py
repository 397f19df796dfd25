"""A block-wise segmentation by volara, which runs on daisy; see docs/scale.md.

    PYTHON -m benchmarks.peer_volara BOUNDARY.zarr FOLDER --shape 192,192,192

``PYTHON`` is that of an environment with volara, which this package is not in; the peer
``volara`` of `bench_blocks` starts it. The affinities, which volara begins with, are made of the
boundary map before the clock starts: 1 less the higher value of both voxels, to the next voxel and
to the eighth along each axis. Then come its own tasks in blocks, in two processes: fragments by a
mutex watershed, scores of their contacts in a database, a mutex watershed of the graph in memory,
and labels.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from benchmarks.bench_blocks import measured

OFFSETS = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [8, 0, 0], [0, 8, 0], [0, 0, 8]]


def affinities(boundary: Any) -> Any:
    """Return the affinities of a boundary map of bytes, as bytes."""
    value = 255 - boundary
    out = np.zeros((len(OFFSETS), *value.shape), np.uint8)
    for channel, offset in zip(out, OFFSETS, strict=True):
        here = tuple(slice(0, n - step) for n, step in zip(value.shape, offset, strict=True))
        there = tuple(slice(step, None) for step in offset)
        channel[here] = np.minimum(value[here], value[there])
    return out


def by_volara(folder: Path, block: int, context: int, workers: int) -> int:
    """Segment the affinities in a folder; return the number of segments."""
    from funlib.geometry import Roi
    from volara.blockwise import AffAgglom, ExtractFrags, GraphMWS, Relabel
    from volara.datasets import Affs, Labels
    from volara.dbs import SQLite
    from volara.lut import LUT

    affs = Affs(store=folder / "affs.zarr", neighborhood=OFFSETS)
    fragments, labels = (Labels(store=folder / f"{name}.zarr") for name in ("frags", "segs"))
    graph = SQLite(path=folder / "graph.sqlite", edge_attrs={"near": "float", "far": "float"})
    table = LUT(path=folder / "lut.npz")
    shape = zarr.open_array(str(folder / "affs.zarr"), mode="r").shape[1:]
    sides, around = (block,) * 3, (context,) * 3
    common: dict[str, Any] = {"block_size": sides, "num_workers": workers}
    tasks = [
        ExtractFrags(
            db=graph, affs_data=affs, frags_data=fragments, context=around,
            bias=[-0.5] * 3 + [-0.8] * 3, remove_debris=8, **common,
        ),
        AffAgglom(
            db=graph, affs_data=affs, frags_data=fragments, context=(1, 1, 1),
            scores={"near": OFFSETS[:3], "far": OFFSETS[3:]}, **common,
        ),
        GraphMWS(
            db=graph, lut=table, weights={"near": (1.0, -0.5), "far": (1.0, -0.8)},
            roi=Roi((0, 0, 0), shape),
        ),
        Relabel(frags_data=fragments, seg_data=labels, lut=table, **common),
    ]  # fmt: skip
    for task in tasks:
        task.run_blockwise(multiprocessing=workers > 1)
    made = zarr.open_array(str(folder / "segs.zarr"), mode="r")[...]
    return len(np.unique(made[made > 0]))


def main() -> None:
    """Make the affinities, segment them, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("boundary")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", default="192,192,192")
    parser.add_argument("--block", type=int, default=96)
    parser.add_argument("--context", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    shape = tuple(int(n) for n in options.shape.split(","))
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    os.chdir(options.folder)  # its logs are written where it runs
    logging.disable(logging.WARNING)
    boundary = zarr.open_array(options.boundary, mode="r")[tuple(slice(0, n) for n in shape)]
    stored = zarr.create_array(
        str(options.folder / "affs.zarr"), data=affinities(boundary),
        chunks=(len(OFFSETS), *(options.block,) * 3),
    )  # fmt: skip
    stored.attrs.update(
        neighborhood=OFFSETS, offset=[0, 0, 0], voxel_size=[1, 1, 1], units=["nm"] * 3,
        axis_names=["c^", "z", "y", "x"], types=["channel", "space", "space", "space"],
    )  # fmt: skip
    with measured() as out:
        count = by_volara(options.folder, options.block, options.context, options.workers)
    tools = ", ".join(f"{name} {version(name)}" for name in ("daisy", "mwatershed"))
    result = {"package": "volara", "version": f"{version('volara')} ({tools})", "count": count}
    (options.folder / "result.json").write_text(json.dumps(result | out))


if __name__ == "__main__":
    main()
