"""Only what is ours is opened; all else is left to others."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from napari.layers import Layer
from windows import settle

import napari_agglo as agglo
from napari_agglo.volumes import write_labels
from napari_agglo.widgets import _readers

LABELS = np.repeat(np.repeat(np.arange(1, 13, dtype=np.uint32).reshape(3, 4), 6, 0), 5, 1)


@pytest.fixture
def folder(tmp_path, dataset):
    graph = dataset.graph()
    with agglo.Session.create(tmp_path / "cells.agglo", graph) as session:
        session.threshold = 0.3
    return tmp_path / "cells.agglo"


def test_a_session_without_a_viewer_is_its_labels(folder):
    read = _readers.session_reader(str(folder))
    (one,) = read(str(folder))
    layer = Layer.create(*one)
    with agglo.Session.open(folder, read_only=True) as session:
        np.testing.assert_array_equal(layer.data, session.labels())
        np.testing.assert_allclose(layer.scale, session.graph.spacing)
    assert layer.name == "cells"


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
    assert _readers.session_reader(str(tmp_path / name)) is None
    assert _readers.session_reader([str(tmp_path / name)]) is None


def stack(path, array, key="stack"):
    with h5py.File(path, "w") as file:
        file[key] = array
    return str(path)


def test_labels_and_images_are_told_apart(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (4, 20, 20), dtype=np.uint8)
    cases = {
        "labels": LABELS, "superpixels": np.stack([LABELS] * 3).astype(np.int64),
        "mask": LABELS > 6,
    }  # fmt: skip
    for name, array in cases.items():
        path = stack(tmp_path / f"{name}.h5", array)
        (one,) = _readers.stack_reader(path)(path)
        assert one[2] == "labels"
        layer = Layer.create(*one)
        assert layer.name == name
        np.testing.assert_array_equal(layer.data, array)
    for name, array in {"raw": noise, "map": noise / 255, "dark": noise // 128 * noise}.items():
        path = stack(tmp_path / f"{name}.h5", array)
        (one,) = _readers.stack_reader(path)(path)
        assert one[2] == "image"
        np.testing.assert_array_equal(Layer.create(*one).data, array)


def test_the_spacing_that_we_wrote_is_that_of_the_layer(tmp_path):
    path = str(write_labels(tmp_path / "a.h5", LABELS, spacing=(3, 2)))
    (one,) = _readers.stack_reader(path)(path)
    np.testing.assert_allclose(Layer.create(*one).scale, (3, 2))


def test_large_stacks_are_read_as_one_looks(tmp_path, monkeypatch, viewer):
    monkeypatch.setattr(_readers, "_IN_MEMORY", 10)
    path = stack(tmp_path / "a.h5", np.stack([LABELS] * 3))
    (one,) = _readers.stack_reader(path)(path)
    assert not isinstance(one[0], np.ndarray)
    layer = viewer.add_layer(Layer.create(*one))
    assert layer.get_value((1, 8, 8)) == LABELS[8, 8]


def test_other_files_are_not_ours(tmp_path):
    assert _readers.stack_reader(stack(tmp_path / "a.h5", LABELS, "volume/raw")) is None
    with h5py.File(tmp_path / "words.h5", "w") as file:
        file["stack"] = "words"
    with h5py.File(tmp_path / "group.h5", "w") as file:
        file.create_group("stack")
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["stack"] = h5py.ExternalLink("a.h5", "volume/raw")
    (tmp_path / "text.h5").write_text("no HDF5")
    for name in ("words", "group", "link", "text", "missing"):
        assert _readers.stack_reader(str(tmp_path / f"{name}.h5")) is None
