"""Small runs of blocks with all stages, and what is compared of their results."""

from __future__ import annotations

import hashlib
import json
import shutil

import zarr

import napari_agglo as agglo
from napari_agglo import blocks

PARTS = (
    "graph", "number", "tree", "table", "tables", "superpixels.ome.zarr", "labels.ome.zarr",
    "cue_boundary.ome.zarr", "cue_interior.ome.zarr", "labels.precomputed", "curve.csv",
)  # fmt: skip
STAGES = {
    "predict", "cut", "join", "number", "superpixels", "overview-2", "statistics", "reduce-1",
    "graph", "tree", "table", "labels", "pyramid-2", "precomputed-0", "precomputed-1",
    "precomputed-2", "overlap", "evaluate",
}  # fmt: skip
_NAME_INPUTS = ("zarr.json", "info")  # with digests, which depend on paths and times


def content(folder):
    """Return a checksum of every file of the results, whenever and by whom they were written.

    A killed process may leave half of a file under another name, which nothing reads.
    """
    paths = [path for part in PARTS for path in (folder / part, *(folder / part).rglob("*"))]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(paths)
        if path.is_file() and path.name not in _NAME_INPUTS and path.suffix != ".partial"
    }


def finished(folder):
    """Return the tasks in the logs of all processes, each as often as it was done."""
    lines = [
        json.loads(line)
        for log in (folder / "logs").glob("*.jsonl")
        for line in log.read_text().splitlines()
    ]
    return [(line["stage"], line["task"]) for line in lines]


def write_inputs(where):
    """Write an image of 80 x 100, its gold standard, and a classifier that makes its cues."""
    sample = agglo.sample("neuropil2d")
    for name, array in (("image", sample.image), ("gold", sample.gold)):
        zarr.create_array(str(where / f"{name}.zarr"), data=array[:80, :100], chunks=(40, 50))
    classifier = agglo.train_pixels(
        sample.image[:150, :150], gold=sample.gold[:150, :150], examples=200, trees=2
    )
    classifier.save(where / "classifier.npz")


def plan_all(where, folder, **options):
    """Plan all stages in 20 blocks: predictions, a reduction, three levels, two formats, errors.

    The test lowers the size of the least level, `napari_agglo.volumes._ome_zarr._SMALL`.
    """
    plan = blocks.plan(
        folder, image=str(where / "image.zarr"), classifier=str(where / "classifier.npz"),
        gold=str(where / "gold.zarr"), block=(20, 20), precomputed=True, threshold=0.3,
        **{"chunks": (10, 10), **options},
    )  # fmt: skip
    assert plan.levels == 3, "test invalid"
    return plan


def copied(where, folder):
    """Copy a results folder; return the copy."""
    shutil.copytree(where, folder)
    return folder
