"""Crops of files as inputs of commands: the place is passed on, and another place is told."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile
import zarr

from napari_agglo import blocks, open_volume


@pytest.fixture
def halves(files):
    """Store the images of the rooms in one Zarr group, twice along y."""
    group = zarr.open_group("rooms.zarr", mode="w")
    for name in ("boundary", "gold"):
        image = tifffile.imread(f"{name}.tif")
        group.create_array(name, data=np.concatenate([image, image]))
    return image.shape[0]


def test_labels_of_a_crop_and_gold_of_another_give_a_warning(run, halves):
    n = halves
    first, second = f"y=0:{n}", f"y={n}:{2 * n}"
    cue = f"rooms.zarr:boundary,{second}"
    assert run("oversegment", cue, "--min-size", "1", "-o", "s.ome.zarr")[0] == 0
    assert open_volume("s.ome.zarr").origin == (n, 0)
    assert run("segment", "--superpixels", "s.ome.zarr", "--cues", cue, "-o", "l.h5")[0] == 0
    assert open_volume("l.h5").origin == (n, 0)
    other = ["--cues", f"boundary=rooms.zarr:boundary,{first}", "-o", "m.h5"]
    status, _, said = run("segment", "--superpixels", "s.ome.zarr", *other)
    assert (status, said.count("begins at voxel")) == (0, 1)
    for part, told in ((second, False), (first, True)):
        status, _, said = run("evaluate", "l.h5", "--gold", f"rooms.zarr:gold,{part}")
        assert status == 0
        assert said.count("warning") == told, "told once"
        assert ("begins at voxel" in said) == told


def test_a_crop_of_another_shape_is_refused(refused, halves):
    line = refused("evaluate", "gold.tif", "--gold", f"rooms.zarr:gold,y=0:{halves - 1}")
    assert "rooms.zarr:gold" in line


def test_a_crop_is_planned_and_segmented_block_by_block(run, halves):
    cue = f"rooms.zarr:boundary,y=1:{halves}"
    plan = blocks.plan("out", cue, min_size=1, block=4)
    assert plan.shape == (halves - 1, open_volume("rooms.zarr:boundary").shape[1])
    assert blocks.run("out").is_complete
    assert run("oversegment", cue, "--min-size", "1", "-o", "s.tif")[0] == 0
    ours = open_volume("out/superpixels.ome.zarr").load()
    assert len(np.unique(ours)) == len(np.unique(tifffile.imread("s.tif")))
