"""Stores of blocks: why no chunk and no shard may lie in two blocks."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import zarr
from refusals import refuses

from napari_agglo.blocks._stores import check_alignment, write_block
from napari_agglo.volumes import create_levels, plan_image

CHUNK, SHARD = {"chunks": (8, 8)}, {"chunks": (4, 4), "shards": (8, 8)}


def written_at_a_time(path, unit, block, monkeypatch):
    """Write two neighbouring blocks of a store at a time, as two tasks do; return what is there.

    Neither writes its file before the other has read what was there.
    """
    create_levels(path, plan_image("labels", (8, 16), (1, 1), levels=1), np.dtype("u4"), **unit)
    put, both = zarr.storage._local._put, threading.Barrier(2, timeout=10)

    def late(*arguments, **options):
        both.wait()
        return put(*arguments, **options)

    rows, columns = block
    boxes = [np.s_[0:rows, 0:columns], np.s_[0:rows, columns : 2 * columns]]
    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr("zarr.storage._local._put", late)
        for task in [
            pool.submit(write_block, path, 0, box, np.full(block, number, np.uint32))
            for number, box in enumerate(boxes, start=1)
        ]:
            task.result()
    found = zarr.open_array(str(path / "0"), mode="r")[...]
    return [np.unique(found[box]).tolist() for box in boxes]


@pytest.mark.parametrize("unit", [CHUNK, SHARD])
def test_blocks_in_one_chunk_or_shard_lose_voxels(tmp_path, unit, monkeypatch):
    """Without the rule of alignment: the later of both writes again what the other had changed."""
    found = written_at_a_time(tmp_path / "labels.ome.zarr", unit, (8, 4), monkeypatch)
    assert found in ([[1], [0]], [[0], [2]]), "one block of two is lost, and no error is raised"
    with refuses("chunks", "leave it out"):
        check_alignment((8, 4), unit.get("shards", unit["chunks"]))


@pytest.mark.parametrize("unit", [CHUNK, SHARD])
def test_blocks_of_whole_chunks_or_shards_lose_none(tmp_path, unit, monkeypatch):
    assert written_at_a_time(tmp_path / "labels.ome.zarr", unit, (8, 8), monkeypatch) == [[1], [2]]
    check_alignment((8, 8), unit.get("shards", unit["chunks"]))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("unit", [CHUNK, SHARD])
@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_chunks_are_the_bytes_that_zarr_writes(tmp_path, dtype, unit, version):
    if version == "0.4" and unit is SHARD:
        unit = {"chunks": (4, 4)}
    image = plan_image("labels", (21, 30), (1, 1), levels=1, version=version)
    values = np.random.default_rng(0).integers(0, 4, (21, 30)).astype(dtype)
    for name in ("ours", "zarr"):
        create_levels(tmp_path / name, image, np.dtype(dtype), **unit)
    array = zarr.open_array(str(tmp_path / "zarr" / "0"), mode="r+")
    array = array.with_config({"write_empty_chunks": True})
    for rows in (slice(0, 16), slice(16, 21)):
        box = (rows, slice(0, 30))
        write_block(tmp_path / "ours", 0, box, values[box])
        array[box] = values[box]
    ours, theirs = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (tmp_path / "ours", tmp_path / "zarr")
    )
    assert ours == theirs
    assert (zarr.open_array(str(tmp_path / "ours" / "0"), mode="r")[...] == values).all()
