"""Results larger than memory: trees, graphs and sessions that never read the volume whole."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.volumes import DiskLabels, open_volume


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    where = tmp_path_factory.mktemp("lazy")
    boundary = agglo.sample("neuropil2d").cues["boundary"][:120, :100]
    zarr.create_array(str(where / "boundary.zarr"), data=boundary, chunks=(60, 50))
    blocks.plan(where / "result", str(where / "boundary.zarr"), block=(60, 50), statistics="all")
    blocks.run(where / "result")
    return where


@pytest.fixture
def never_whole(monkeypatch):
    """Refuse to read the image as a whole array, but slab by slab for its checksum."""

    def refuse(self, *arguments, **options):
        raise AssertionError("the volume was read whole")

    monkeypatch.setattr(DiskLabels, "__array__", refuse)


def test_a_session_refers_to_superpixels_on_disk(place, tmp_path, never_whole):
    result = blocks.open(place / "result")
    known = agglo.region_graph(open_volume(result.superpixels_path), open_volume(
        place / "boundary.zarr"))  # fmt: skip
    expected = agglo.Session.create(tmp_path / "whole.agglo", known)
    session = agglo.Session.create(
        tmp_path / "lazy.agglo", result.graph, tree=result.tree, source=result.superpixels_path
    )
    for one in (expected, session):
        one.threshold = 0.3
        first, second = (int(k) for k in one.segments.ids()[:2])
        one.merge(first, second)
        one.undo()
        one.redo()
    assert np.array_equal(session.labels(), expected.labels())
    assert session.segments.at((3, 4)) == expected.segments.at((3, 4))
    session.close()
    with agglo.Session.open(tmp_path / "lazy.agglo") as again:
        assert isinstance(again.graph.superpixels.image, DiskLabels)
        assert np.array_equal(again.labels(), expected.labels())
    expected.close()
    stored = sum(f.stat().st_size for f in (tmp_path / "lazy.agglo").rglob("superpixels*"))
    assert stored == 0, "nothing is copied"
    with refuses("source"):
        agglo.Session.create(tmp_path / "other.agglo", result.graph)


def test_superpixels_that_changed_are_refused(place, tmp_path):
    result = blocks.open(place / "result")
    copy = zarr.create_array(
        str(tmp_path / "copy.zarr"), data=result.superpixels[0][...], chunks=(60, 50)
    )
    path = tmp_path / "s.agglo"
    agglo.Session.create(path, result.graph, source=tmp_path / "copy.zarr").close()
    copy[5, 5] = int(copy[50, 50])
    with refuses("superpixels"):
        agglo.Session.open(path)


@pytest.mark.parametrize(
    "index", [np.s_[...], np.s_[2], np.s_[1:4, ::2], np.s_[..., 3], np.s_[3, 2], np.s_[::-1, 1:2]]
)
def test_painted_parts_are_seen_in_every_part(index):
    data = np.arange(30).reshape(5, 6) * 10
    ids = np.arange(30, dtype=np.uint64) * 10
    image = DiskLabels(data, ids)
    assert np.array_equal(image[index], (data // 10)[index])
    painted, expected = image.copy(), data // 10
    painted[2:4, 1:5] = np.full((2, 4), 99)
    painted[3:5, 2:3] = np.full((2, 1), 77)
    expected[2:4, 1:5] = 99
    expected[3:5, 2:3] = 77
    assert np.array_equal(painted[index], expected[index])
    assert np.array_equal(painted.view()[index], expected[index])
    assert np.array_equal(image[index], (data // 10)[index]), "the first one stays as it is"
    with pytest.raises(ValueError, match="read-only"):
        image[0:1, 0:1] = 3
