"""Saved labels have the ids of the user and can be opened again."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from qtpy.QtWidgets import QFileDialog
from windows import dataset_of, limit_voxels, scene_of, show

import napari_agglo as agglo
from napari_agglo.errors import AggloError
from napari_agglo.volumes import open_volume


@contextmanager
def shows(argument, remedy):
    """Expect a refusal that napari shows: it takes a ValueError for a missing writer."""
    with pytest.raises(AggloError) as caught:
        yield caught
    error = caught.value.__cause__
    assert error.argument == argument
    assert remedy in str(error.remedy)
    assert str(caught.value) == str(error)


@pytest.fixture
def sparse(project, crop):
    """Return the project with superpixels whose ids are large and far apart."""
    superpixels = agglo.oversegment(crop.cues["boundary"]).astype(np.int64) * 1000
    show(project, dataset_of(superpixels, crop.cues["boundary"], (2.0, 1.0)))
    return project


def test_a_hierarchy_is_written_with_its_own_ids(viewer, sparse, tmp_path):
    scene = scene_of(viewer)
    expected = sparse.tree.segment(sparse.threshold)
    assert (np.asarray(scene.segmentation.data) != expected).any(), "test invalid"
    for name in ("a.h5", "a.ome.zarr", "a.tif", "a.npz"):
        written = viewer.layers.save(str(tmp_path / name), plugin="napari-agglo")
        assert written == [str(tmp_path / name)]
        volume = open_volume(tmp_path / name)
        np.testing.assert_array_equal(volume.load(), expected)
        assert volume.spacing == (2, 1)
    scene.isolate(True)  # all segments are written also if some are shown
    viewer.layers.save(str(tmp_path / "b.tif"), plugin="napari-agglo")
    assert (open_volume(tmp_path / "b.tif").load() > 0).all()


def save_selected(viewer, path, by, monkeypatch):
    """Choose File > Save Selected Layers..., a name, and whose kind of file it is to be."""

    def choose(*_, filter="", **__):
        (kind,) = [one for one in filter.split(";;") if one.startswith(by)]
        return str(path), kind

    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    menu = viewer.window.file_menu
    menu.aboutToShow.emit()
    (action,) = [one for one in menu.actions() if one.text().startswith("Save Selected Layers")]
    assert action.isEnabled()
    action.trigger()


def test_the_menu_writes_own_ids_whoever_writes(viewer, sparse, tmp_path, monkeypatch):
    scene = scene_of(viewer)
    viewer.layers.selection = {scene.segmentation}
    for isolated in (False, True):
        scene.isolate(isolated)
        (tmp_path / str(isolated)).mkdir()
        for by, name in [
            ("napari builtins labels", "a.tif"),
            ("Agglo labels", "b.tif"),
            ("Agglo labels", "a.npy"),
            ("Agglo labels", "a.zarr"),
        ]:
            path = tmp_path / str(isolated) / name
            save_selected(viewer, path, by, monkeypatch)
            written = open_volume(path).load()
            np.testing.assert_array_equal(written, sparse.tree.segment(sparse.threshold))
            assert written.max() > len(sparse.graph.ids), "test invalid"


def test_all_layers_in_a_folder_have_own_ids(viewer, sparse, tmp_path):
    viewer.add_labels(np.ones((3, 4), np.int32), name="other")
    written = viewer.layers.save(str(tmp_path / "all"))
    (path,) = [one for one in written if "Segmentation" in one]
    np.testing.assert_array_equal(open_volume(path).load(), sparse.tree.segment(sparse.threshold))


def test_a_large_volume_is_saved_in_full(viewer, project, crop, tmp_path, monkeypatch):
    limit_voxels(monkeypatch, 2000, coarse=1000)
    boundary = np.stack([crop.cues["boundary"]] * 5)  # 3 or 4 would be colours to tifffile
    superpixels = agglo.oversegment(boundary).astype(np.uint64) + 2**40
    show(project, dataset_of(superpixels, boundary))
    layer = scene_of(viewer).segmentation
    assert layer.multiscale, "test invalid"
    for plugin in ("napari", "napari-agglo"):
        layer.save(str(tmp_path / f"{plugin}.tif"), plugin=plugin)
        written = open_volume(tmp_path / f"{plugin}.tif").load()
        np.testing.assert_array_equal(written, project.tree.segment(project.threshold))
        assert written.dtype == np.uint64


def test_a_duplicate_is_a_copy_of_what_was_seen(viewer, sparse, tmp_path):
    layer = scene_of(viewer).segmentation
    expected = sparse.tree.segment(sparse.threshold)
    copy = viewer.add_layer(type(layer).create(*layer.as_layer_data_tuple()))
    sparse.threshold = 0.9
    np.testing.assert_array_equal(np.asarray(copy.data), expected)
    assert (sparse.tree.segment(0.9) != expected).any(), "test invalid"
    copy.save(str(tmp_path / "copy.tif"))
    np.testing.assert_array_equal(open_volume(tmp_path / "copy.tif").load(), expected)
    with shows("layer", "Segmentation"):
        copy.save(str(tmp_path / "new.agglo"), plugin="napari-agglo")


def test_a_hierarchy_becomes_a_session(viewer, sparse, tmp_path):
    expected = sparse.tree.segment(sparse.threshold)
    written = viewer.layers.save(str(tmp_path / "new.agglo"), plugin="napari-agglo")
    assert written == [str(tmp_path / "new.agglo")]
    with agglo.Session.open(written[0]) as session:
        assert session.threshold == sparse.threshold
        np.testing.assert_array_equal(session.labels(), expected)


def test_a_session_is_copied_with_its_edits(viewer, sparse, tmp_path):
    graph, policy = sparse.built.regions.graph, sparse.built.policy
    session = agglo.Session.create(tmp_path / "first.agglo", graph, policy)
    session.threshold = sparse.threshold
    sparse.set_session(session, sparse.built)
    first = int(session.segments.ids()[0])
    session.merge(first, int(session.segments.neighbours(first)[0]))
    sparse.has_edited()
    viewer.layers.save(str(tmp_path / "second.agglo"), plugin="napari-agglo")
    with agglo.Session.open(tmp_path / "second.agglo") as copy:  # the first is still open
        np.testing.assert_array_equal(copy.labels(), session.labels())
        copy.undo()
    viewer.layers.save(str(tmp_path / "edited.tif"), plugin="napari-agglo")
    np.testing.assert_array_equal(open_volume(tmp_path / "edited.tif").load(), session.labels())


def test_any_labels_are_written(viewer, tmp_path):
    labels = np.arange(12, dtype=np.int32).reshape(3, 4)
    viewer.add_labels(labels, scale=(3, 2))
    viewer.layers.save(str(tmp_path / "a.h5"), plugin="napari-agglo")
    np.testing.assert_array_equal(open_volume(tmp_path / "a.h5").load(), labels)


def test_refused(viewer, sparse, tmp_path):
    (tmp_path / "there.agglo").mkdir()
    shown = scene_of(viewer).segmentation
    with shows("path", "another name") as told:
        shown.save(str(tmp_path / "there.agglo"), plugin="napari-agglo")
    assert "there.agglo" in str(told.value)
    other = viewer.add_labels(np.ones((3, 4), int))
    with shows("layer", "Segmentation"):
        other.save(str(tmp_path / "new.agglo"), plugin="napari-agglo")
    assert not (tmp_path / "new.agglo").exists()
