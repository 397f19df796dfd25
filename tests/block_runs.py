"""Small runs of blocks with all stages, and what is compared of their results."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import zarr
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

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

    The test lowers the size of the least level, `napari_agglo.volumes._ome_zarr_metadata._SMALL`.
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


TABLES = ("ids", "edges", "regions", "boundaries", "boxes")
MERGES = ("winners", "losers", "priorities")


@contextmanager
def stored(**arrays):
    """Write arrays to Zarr and give their folder."""
    where = Path(tempfile.mkdtemp())
    try:
        for name, array in arrays.items():
            zarr.create_array(
                str(where / f"{name}.zarr"),
                data=array,
                chunks=tuple(max(1, (n + 1) // 2) for n in array.shape),
            )
        yield where
    finally:
        shutil.rmtree(where)


@st.composite
def volumes(draw):
    """Give a label image, two cues, and the sides of a block, of two to four axes."""
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=6))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n = draw(st.integers(1, 12))
    ids = rng.choice(2**53, n + 1, replace=False).astype(np.uint64)
    ids[0] = 0
    labels = ids[rng.integers(0, n + 1, shape)]
    levels = draw(st.sampled_from([2, 256]))  # two levels make many ties
    cues = [rng.integers(0, levels, shape).astype(np.uint8) * (255 // (levels - 1)) for _ in "ab"]
    block = tuple(draw(st.integers(1, side)) for side in shape)
    return labels, dict(zip(("boundary", "other"), cues, strict=True)), block


def check_exact(volume, dams, statistics, hierarchical=False, **options):
    """Run blocks, with options of `run`, and check that all is as on the whole volume."""
    labels, cues, block = volume
    graph = agglo.region_graph(
        labels, cues, ranges=(0, 255), dams=dams, statistics=statistics, bins=7, keep_cues=False
    )
    tree = agglo.agglomerate(graph)
    with stored(labels=labels, **cues) as where:
        blocks.plan(
            where / "result",
            {name: str(where / f"{name}.zarr") for name in cues},
            superpixels=str(where / "labels.zarr"),
            ranges=(0, 255), dams=dams, statistics=statistics, bins=7, block=block, threshold=0.4,
            hierarchical=hierarchical,
        )  # fmt: skip
        assert blocks.run(where / "result", **options).is_complete
        result = blocks.open(where / "result")
        for name in TABLES:
            assert np.array_equal(getattr(result.graph, name), getattr(graph, name)), name
        for name in MERGES:
            assert np.array_equal(getattr(result.tree, name), getattr(tree, name)), name
        written = result.labels[0][...]
        assert written.dtype == labels.dtype
        assert np.array_equal(written, tree.segment(0.4))
        assert np.array_equal(np.asarray(result.graph.superpixels.image), graph.superpixels.image)
