"""Only what is ours is opened; all else is left to others."""

from __future__ import annotations

import json
import re

import h5py
import numpy as np
import pytest
from napari.layers import Image, Labels
from npe2 import PluginManager, read
from windows import project_of, settle

import napari_agglo as agglo
from napari_agglo.volumes import write_labels
from napari_agglo.widgets import DataWidget

LABELS = np.repeat(np.repeat(np.arange(1, 13, dtype=np.uint32).reshape(3, 4), 6, 0), 5, 1)


def opened(viewer, path):
    """Open a path with the plugin; return the one layer that it becomes."""
    (layer,) = viewer.open(str(path), plugin="napari-agglo")
    return layer


def is_ours(path):
    """Return whether a reader of the plugin takes a path."""
    PluginManager.instance().discover()
    try:
        read([str(path)], stack=False, plugin_name="napari-agglo")
    except ValueError as error:
        return not re.search("No readers|refused the file|not a compatible reader", str(error))
    return True


@pytest.fixture
def folder(tmp_path, dataset):
    graph = dataset.graph()
    with agglo.Session.create(tmp_path / "cells.agglo", graph) as session:
        session.threshold = 0.3
    return tmp_path / "cells.agglo"


def test_a_session_without_a_viewer_is_its_labels(layers_only, folder):
    assert is_ours(folder)
    layer = opened(layers_only, folder)
    with agglo.Session.open(folder, read_only=True) as session:
        np.testing.assert_array_equal(layer.data, session.labels())
        np.testing.assert_allclose(layer.scale, session.graph.spacing)
    assert layer.name == "cells"


def test_affinities_of_a_zarr_are_opened_with_their_offsets(layers_only, tmp_path):
    import zarr

    offsets = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, -3, 0]]
    values = np.full((4, 3, 8, 9), 200, np.uint8)
    group = zarr.open_group(str(tmp_path / "prediction.zarr"), mode="w")
    for name in ("volumes/affs", "raw"):
        array = group.create_array(name, shape=values.shape, dtype="uint8", chunks=values.shape)
        array[:] = values
    group["volumes/affs"].attrs["neighborhood"] = offsets
    assert is_ours(tmp_path / "prediction.zarr")
    layer = opened(layers_only, tmp_path / "prediction.zarr")
    assert layer.name == "prediction volumes/affs affinities"
    assert layer.metadata["neighborhood"] == offsets
    assert np.array_equal(layer.data, values)
    assert not is_ours(tmp_path / "prediction.zarr" / "raw")  # no offsets: left to others


def test_affinities_of_an_hdf5_file_are_a_cue(layers_only, tmp_path):
    offsets = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, -3, 0]]
    values = np.full((4, 3, 20, 24), 200, np.uint8)
    values[:, :, 10:] = 190
    with h5py.File(tmp_path / "prediction.h5", "w") as file:
        file["volumes/raw"] = values[0]
        stored = file.create_dataset("volumes/affs", data=values)
        stored.attrs["offsets"] = offsets
        stored.attrs["element_size_um"] = [0.04, 0.01, 0.01]
    assert is_ours(tmp_path / "prediction.h5")
    layer = opened(layers_only, tmp_path / "prediction.h5")
    assert layer.name == "prediction volumes/affs affinities"
    assert layer.metadata["neighborhood"] == offsets
    np.testing.assert_allclose(layer.scale, (1, 0.04, 0.01, 0.01))
    assert np.array_equal(layer.data, values)
    step = DataWidget(layers_only)
    assert project_of(layers_only).dataset.cues["affinity"].offsets == tuple(map(tuple, offsets))
    step.close()
    with h5py.File(tmp_path / "other.h5", "w") as file:  # no offset for each channel
        file.create_dataset("volumes/affs", data=values).attrs["offsets"] = offsets[:2]
        file.create_dataset("volumes/ids", data=values).attrs["offsets"] = "none"
    assert not is_ours(tmp_path / "other.h5")


def test_a_session_in_a_viewer_is_gone_on_with(viewer, project, folder):
    viewer.open(str(folder), plugin="napari-agglo")
    settle(project)
    assert project.session is not None
    assert project.session.path == folder
    assert project.threshold == 0.3
    assert any("Agglo" in name for name in viewer.window.dock_widgets)


@pytest.mark.parametrize("name", ["other.agglo", "cells.zarr", "manifest.json"])
def test_other_folders_are_not_ours(tmp_path, name):
    (tmp_path / name).mkdir()
    if not name.endswith(".agglo"):
        (tmp_path / name / "manifest.json").write_text("{}")
    assert not is_ours(tmp_path / name)


def stack(path, array, key="stack"):
    with h5py.File(path, "w") as file:
        file[key] = array
    return str(path)


def test_labels_and_images_are_told_apart(layers_only, tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (4, 20, 20), dtype=np.uint8)
    cases = {
        "labels": LABELS, "superpixels": np.stack([LABELS] * 3).astype(np.int64),
        "mask": LABELS > 6,
    }  # fmt: skip
    for name, array in cases.items():
        layer = opened(layers_only, stack(tmp_path / f"{name}.h5", array))
        assert isinstance(layer, Labels)
        assert layer.name == name
        np.testing.assert_array_equal(layer.data, array)
    for name, array in {"raw": noise, "map": noise / 255, "dark": noise // 128 * noise}.items():
        layer = opened(layers_only, stack(tmp_path / f"{name}.h5", array))
        assert isinstance(layer, Image)
        np.testing.assert_array_equal(layer.data, array)


def test_the_spacing_that_we_wrote_is_that_of_the_layer(layers_only, tmp_path):
    path = write_labels(tmp_path / "a.h5", LABELS, spacing=(3, 2))
    np.testing.assert_allclose(opened(layers_only, path).scale, (3, 2))


def test_large_stacks_are_read_as_one_looks(tmp_path, viewer):
    """A stack of more than 1 GB, of which one plane is in the file."""
    plane = np.kron(LABELS, np.ones((60, 60), np.uint32))
    assert np.asarray(opened(viewer, stack(tmp_path / "small.h5", plane)).data).shape == plane.shape
    assert isinstance(viewer.layers[0].data, np.ndarray), "test invalid"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        shape = (2**30 // plane.nbytes + 1, *plane.shape)
        data = file.create_dataset("stack", shape, plane.dtype, chunks=(1, *plane.shape))
        middle = shape[0] // 2
        data[middle] = plane
    layer = opened(viewer, tmp_path / "a.h5")
    assert not isinstance(layer.data, np.ndarray)
    viewer.dims.set_current_step(0, middle)
    assert layer.get_value((middle, 480, 480)) == plane[480, 480]


def test_a_large_stack_of_true_and_false_is_labels_that_stay_in_the_file(tmp_path, viewer):
    mask = np.kron(LABELS > 6, np.ones((300, 300), bool))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        shape = (2**30 // mask.nbytes + 1, *mask.shape)
        data = file.create_dataset("stack", shape, bool, chunks=(1, *mask.shape))
        middle = shape[0] // 2
        data[middle] = mask
    layer = opened(viewer, tmp_path / "a.h5")
    assert isinstance(layer, Labels)
    assert not isinstance(layer.data, np.ndarray)
    assert layer.data.dtype == np.uint8
    assert np.array_equal(layer.data[middle], mask)


def test_other_files_are_not_ours(tmp_path):
    assert not is_ours(stack(tmp_path / "a.h5", LABELS, "volume/raw"))
    with h5py.File(tmp_path / "words.h5", "w") as file:
        file["stack"] = "words"
    with h5py.File(tmp_path / "group.h5", "w") as file:
        file.create_group("stack")
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["stack"] = h5py.ExternalLink("a.h5", "volume/raw")
    (tmp_path / "text.h5").write_text("no HDF5")
    for name in ("words", "group", "link", "text", "missing"):
        assert not is_ours(tmp_path / f"{name}.h5")


def test_predictions_of_ilastik_are_cues(layers_only, tmp_path):
    predictions = np.random.default_rng(0).random((6, 8, 3)).astype(np.float32)
    axes = [{"key": key, "typeFlags": 2, "resolution": 0} for key in "yxc"]
    with h5py.File(tmp_path / "p.h5", "w") as file:
        data = file.create_dataset("exported_data", data=predictions)
        data.attrs["axistags"] = json.dumps({"axes": axes})
        data.attrs["channel_names"] = ["boundary", "nucleus", "rest"]
    layers = layers_only.open(str(tmp_path / "p.h5"), plugin="napari-agglo")
    assert [layer.name for layer in layers] == ["p boundary", "p nucleus", "p rest"]
    for k, layer in enumerate(layers):
        np.testing.assert_array_equal(layer.data, predictions[..., k])
    step = DataWidget(layers_only)
    assert list(project_of(layers_only).dataset.cues) == ["boundary", "nucleus", "rest"]
    step.close()
