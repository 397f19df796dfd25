"""What is saved has the user's ids and can be opened again."""

from __future__ import annotations

import numpy as np
import pytest
from windows import show

import napari_agglo as agglo
from napari_agglo.errors import AggloError
from napari_agglo.volumes import open_volume
from napari_agglo.widgets._material import Material, Placement
from napari_agglo.widgets._scene import scene_of
from napari_agglo.widgets._writers import write_session


@pytest.fixture
def sparse(project, crop):
    """Return the project with superpixels whose ids are large and far apart."""
    superpixels = agglo.oversegment(crop.cues["boundary"]).astype(np.int64) * 1000
    placement = Placement((2.0, 1.0), (0.0, 0.0))
    cues = {"boundary": crop.cues["boundary"]}
    show(project, Material("sparse", placement, cues=cues, superpixels=superpixels))
    return project


@pytest.mark.parametrize("name", ["a.h5", "a.ome.zarr", "a.tif", "a.npz"])
def test_a_hierarchy_is_written_with_its_own_ids(viewer, sparse, tmp_path, name):
    layer = scene_of(viewer).segmentation
    expected = sparse.tree.segment(sparse.threshold)
    assert (np.asarray(layer.data) != expected).any(), "test invalid"
    written = viewer.layers.save(str(tmp_path / name), plugin="napari-agglo")
    assert written == [str(tmp_path / name)]
    volume = open_volume(tmp_path / name)
    np.testing.assert_array_equal(volume.load(), expected)
    assert volume.spacing == (2, 1)


def test_all_segments_are_written_also_if_some_are_shown(viewer, sparse, tmp_path):
    scene_of(viewer).isolate(True)
    viewer.layers.save(str(tmp_path / "a.tif"), plugin="napari-agglo")
    assert (open_volume(tmp_path / "a.tif").load() > 0).all()


def test_a_hierarchy_becomes_a_session(viewer, sparse, tmp_path):
    expected = sparse.tree.segment(sparse.threshold)
    written = viewer.layers.save(str(tmp_path / "new.agglo"), plugin="napari-agglo")
    assert written == [str(tmp_path / "new.agglo")]
    with agglo.Session.open(written[0]) as session:
        assert session.threshold == sparse.threshold
        np.testing.assert_array_equal(session.labels(), expected)


def test_a_session_is_copied_with_its_edits(viewer, sparse, tmp_path):
    graph, policy = sparse.tree_of
    session = agglo.Session.create(tmp_path / "first.agglo", graph, policy)
    session.threshold = sparse.threshold
    sparse.set_session(session, sparse.tree, sparse.placement)
    first = int(session.segments()[0])
    session.merge(first, int(session.neighbours(first)[0]))
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
    with pytest.raises(AggloError, match="is there already"):
        write_session(str(tmp_path / "there.agglo"), shown.data, {})
    other = viewer.add_labels(np.ones((3, 4), int))
    with pytest.raises(AggloError, match="choose the layer Segmentation"):
        other.save(str(tmp_path / "new.agglo"), plugin="napari-agglo")
    assert not (tmp_path / "new.agglo").exists()
