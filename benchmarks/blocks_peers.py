"""Other tools at the same step, in one process or block by block; see docs/scale.md.

A block-wise tool is run in new processes, once on the piece and once on ``START`` voxels, whose
time is that of imports, processes and what is compiled in each of them. Our
kernels are compiled once for a machine and then loaded; the first run on a machine is the cold one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import zarr

PEERS = ("own-superpixels", "skimage", "own-merges", "waterz", "components", "own-blocks",
         "own-cold")  # fmt: skip
OTHERS = {"volara": "peer_volara", "waterz-daisy": "peer_waterz"}  # and their modules here
BLOCKWISE = ("own-blocks", "own-cold", *OTHERS)
START = (32, 32, 32)


# Modules that a tool needs: of the extra `bench-blocks`, or of the environment that is given.
MODULES = {
    "skimage": ("skimage",), "waterz": ("waterz",), "components": ("dask_image",),
    "volara": ("volara", "mwatershed"), "waterz-daisy": ("daisy", "waterz"),
}  # fmt: skip


def missing(name: str, python: str) -> list[str]:
    """Return the modules that a tool needs and Python does not have."""
    if name not in OTHERS:
        return [one for one in MODULES.get(name, ()) if find_spec(one) is None]
    code = (
        "import sys, importlib.util as u; print(*(n for n in sys.argv[1:] if not u.find_spec(n)))"
    )
    command = [python, "-c", code, *MODULES[name]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def peer(folder: Path, name: str, shape: tuple[int, ...], python: str) -> dict[str, Any]:
    """Run one step of another tool on a piece of the volume, or the same step of this package.

    `python` is that of an environment with volara, daisy and waterz. A tool that is not installed
    is left out: the result has its ``missing`` modules.
    """
    from importlib.metadata import version

    import napari_agglo as agglo
    from benchmarks.bench_blocks import measured

    if absent := missing(name, python):
        print(f"{name} is left out: {', '.join(absent)} not installed", flush=True)
        return {"missing": absent}
    if name in BLOCKWISE:
        return blockwise(folder, name, shape, python)

    part = tuple(slice(0, n) for n in shape)
    boundary = zarr.open_array(str(folder / "boundary.zarr"), mode="r")[part]
    cached = folder / f"peer-superpixels-{shape[0]}.npy"
    if not cached.exists():
        np.save(cached, agglo.oversegment(boundary, value_range=(0, 255)))
    superpixels = np.load(cached)
    package = {"skimage": "scikit-image", "components": "dask-image"}.get(name, name)
    if name == "skimage":
        from skimage.segmentation import watershed

        with measured() as out:
            count = int(watershed(boundary).max())
        step = "superpixels"
    elif name == "waterz":
        import waterz

        value = 1 - boundary.astype(np.float32) / 255
        faces = np.stack([np.minimum(value, np.roll(value, 1, axis)) for axis in range(3)])
        with measured() as out:
            made = list(waterz.agglomerate(faces, [0.5], fragments=superpixels.astype(np.uint64)))
            count = len(np.unique(made[0]))
        step = "graph, agglomeration and labels at 0.5"
    elif name == "components":
        import dask.array as da
        from dask_image.ndmeasure import label

        store = folder / "peer-components.zarr"
        with measured() as out:
            lazy = da.from_zarr(str(folder / "boundary.zarr"))[part].rechunk(128) < 128
            labels, found = label(lazy)
            shutil.rmtree(store, ignore_errors=True)
            da.to_zarr(labels, str(store))
            count = int(found.compute())
        shutil.rmtree(store)
        step = "connected components of the map below 0.5, in blocks of 128, to Zarr"
    elif name == "own-superpixels":
        with measured() as out:
            count = int(agglo.oversegment(boundary, value_range=(0, 255)).max())
        step, package = "superpixels", "napari-agglo"
    else:
        with measured() as out:
            graph = agglo.region_graph(
                superpixels, boundary, ranges=(0, 255), statistics="mean", keep_cues=False
            )
            labels = agglo.agglomerate(graph).segment(0.5)
            count = len(np.unique(labels))
        step, package = "graph, agglomeration and labels at 0.5", "napari-agglo"
    return {"package": package, "version": version(package), "step": step, "shape": shape,
            "count": count, **out}  # fmt: skip


def blockwise(folder: Path, name: str, shape: tuple[int, ...], python: str) -> dict[str, Any]:
    """Segment a piece from its map to labels in blocks, by another tool or by this package."""
    place, side = folder.resolve() / f"peer-{name}", min(shape) // 2
    source = folder.resolve() / "boundary.zarr"
    run = _own if name not in OTHERS else _other
    start = run(name, source, place, START, START[0] // 2, python)
    if name == "own-cold":
        return start
    found = run(name, source, place, shape, side, python)
    found["start"] = {key: start[key] for key in ("cpu", "seconds")}
    step = f"map to labels in blocks of {side}, two workers"
    return {"step": step, "shape": shape, **found}


def _other(
    name: str, source: Path, place: Path, shape: tuple[int, ...], side: int, python: str
) -> dict[str, Any]:
    shutil.rmtree(place, ignore_errors=True)
    words = ["--shape", ",".join(map(str, shape)), "--block", str(side)]
    words += ["--context", str(min(16, side // 2))]
    module = f"benchmarks.{OTHERS[name]}"
    subprocess.run([python, "-m", module, str(source), str(place), *words], check=True)
    found: dict[str, Any] = json.loads((place / "result.json").read_text())
    shutil.rmtree(place)
    return found


def _own(
    name: str, source: Path, place: Path, shape: tuple[int, ...], side: int, python: str
) -> dict[str, Any]:
    """Run this package by its command line; ``own-cold`` compiles all kernels again."""
    from importlib.metadata import version

    from benchmarks.bench_blocks import marker_of, measured

    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    part = zarr.open_array(str(source), mode="r")[tuple(slice(0, n) for n in shape)]
    zarr.create_array(str(place / "boundary.zarr"), data=part, chunks=(side,) * 3)
    command = [sys.executable, "-m", "napari_agglo", "blocks"]
    plan = [str(place / "result"), "--cues", str(place / "boundary.zarr"), "--range", "0:255",
            "--block", str(side), "--workers", "2", "--no-pyramid", "-q"]  # fmt: skip
    fresh = {"NUMBA_CACHE_DIR": str(place / "kernels")} if name == "own-cold" else {}
    with measured() as out:
        for words in (["plan", *plan], ["run", str(place / "result"), "-q"]):
            subprocess.run([*command, *words], check=True, env=os.environ | fresh)
    count = marker_of(place / "result", "table")["segments"]
    shutil.rmtree(place)
    return {"package": "napari-agglo", "version": version("napari-agglo"), "count": count, **out}
