"""Affinities and files of several channels on the command line."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import tifffile
import zarr

import napari_agglo as agglo
from napari_agglo.volumes import open_channels, open_volume

pytestmark = pytest.mark.compiled


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with the affinities of two halves, as bytes, and gold."""
    monkeypatch.chdir(tmp_path)
    gold = np.ones((6, 10, 12), np.uint16)
    gold[:, :, 6:] = 2
    random = np.random.default_rng(0)
    array = random.integers(200, 256, (3, *gold.shape)).astype(np.uint8)
    array[2, :, :, 6] = 20
    tifffile.imwrite("gold.tif", gold)
    np.save("aff.npy", array)
    return array, gold


def test_from_affinities_to_segments_and_a_policy(run, here):
    array, gold = here
    status, _, err = run("oversegment", "--affinities", "aff.npy", "-o", "s.tif", "--min-size", 9)
    assert (status, err) == (0, "")
    superpixels = open_volume("s.tif").load()
    assert np.array_equal(superpixels, agglo.oversegment(agglo.affinities(array), min_size=9))
    inputs = ["--superpixels", "s.tif", "--affinities", "aff.npy"]
    status, _, err = run("segment", *inputs, "--threshold", "0.4", "-o", "l.tif")
    assert (status, err) == (0, "")
    labels = open_volume("l.tif").load()
    assert agglo.split_vi(labels, gold) == (0, 0)
    trained = run("train", *inputs, "--gold", "gold.tif", "--strategy", "flat", "-o", "p.npz")
    assert trained[0] == 0, trained
    policy = agglo.load_policy("p.npz")
    assert policy.features.cues == ("affinity", "affinity_z", "affinity_y", "affinity_x")
    assert run("segment", *inputs, "--policy", "p.npz", "-o", "m.tif")[0] == 0
    assert agglo.split_vi(open_volume("m.tif").load(), gold) == (0, 0)


def test_offsets_are_read_from_zarr_or_given(run, here):
    array, _ = here
    longer = np.concatenate([array, array[2:]])
    offsets = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, -2]]
    stored = zarr.create_array(
        "aff.zarr", shape=longer.shape, dtype=longer.dtype, chunks=(4, 3, 5, 5)
    )
    stored[...] = longer
    stored.attrs["neighborhood"] = offsets
    assert open_volume("aff.zarr").attributes["neighborhood"] == offsets
    run("oversegment", "--affinities", "aff.zarr", "-o", "s.tif")
    inputs = ["--superpixels", "s.tif", "--affinities"]
    assert run("segment", *inputs, "aff.zarr", "-o", "a.tif")[0] == 0
    with h5py.File("aff.h5", "w") as file:
        file["volumes/affs"] = longer / np.float32(255)
    given = ["aff.h5:volumes/affs", "--offsets", json.dumps(offsets)]
    assert run("segment", *inputs, *given, "-o", "b.tif")[0] == 0
    assert np.array_equal(open_volume("a.tif").load(), open_volume("b.tif").load())


def test_refused_with_a_way_out(run, refused, here):
    array, _ = here
    tifffile.imwrite("s.tif", np.arange(720).reshape(6, 10, 12).astype(np.uint16) // 60 + 300)
    np.save("four.npy", np.concatenate([array, array[:1]]))
    inputs = ["--superpixels", "s.tif", "-o", "l.tif"]
    message = refused("segment", *inputs, "--affinities", "four.npy")
    assert message.argument == "affinities"
    assert all(words in message for words in ("four.npy", "(4, 6, 10, 12)", "--offsets"))
    assert "offsets" in refused("segment", *inputs, "--affinities", "aff.npy", "--offsets", "z")
    both = refused("oversegment", "aff.npy", "--affinities", "aff.npy", "-o", "s.tif")
    assert all(option in both for option in ("BOUNDARY", "--affinities"))
    np.save("low.npy", 255 - array)
    status, _, err = run("segment", *inputs, "--affinities", "low.npy")
    assert status == 0
    assert "--range affinity=0:255" in err
    opposite = ["--affinities", "low.npy", "--range", "affinity=0:255"]
    assert run("segment", *inputs, *opposite)[::2] == (0, "")
    big = np.zeros((3, 4, 20, 20), np.uint8)
    np.save("big.npy", big)
    assert "--affinities" in refused("oversegment", "big.npy", "--range", "0:255", "-o", "x.tif")


def test_predictions_of_ilastik_are_cues(run, here):
    predictions = np.random.default_rng(0).random((6, 10, 12, 2)).astype(np.float32)
    axes = [{"key": key, "typeFlags": 2, "resolution": 0} for key in "zyxc"]
    with h5py.File("p.h5", "w") as file:
        data = file.create_dataset("exported_data", data=predictions)
        data.attrs["axistags"] = json.dumps({"axes": axes})
    channels = open_channels("p.h5")
    assert list(channels) == ["channel_0", "channel_1"]
    assert np.array_equal(channels["channel_1"].load(), predictions[..., 1])
    assert np.array_equal(channels["channel_1"].data[2:4, 3], predictions[2:4, 3, :, 1])
    first = open_volume("p.h5:c=*")
    assert np.array_equal(first.data[1:, 2, 3:5], np.moveaxis(predictions, -1, 0)[1:, 2, 3:5])
    with h5py.File("p.h5", "a") as file:
        file["exported_data"].attrs["channel_names"] = ["boundary", "cell body"]
    run("oversegment", "p.h5:c=0", "-o", "s.tif", "--min-size", 9)
    inputs = ["--superpixels", "s.tif", "--cues", "p.h5"]
    assert run("segment", *inputs, "-o", "l.tif")[0] == 0
    options = ["--gold", "gold.tif", "--strategy", "flat", "--preset", "minimal"]
    assert run("train", *inputs, "mito=p.h5", *options, "-o", "p.npz")[0] == 0
    names = ("boundary", "cell_body", "mito_boundary", "mito_cell_body")
    assert agglo.load_policy("p.npz").features.cues == names
