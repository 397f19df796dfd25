"""Inputs of a session: files with a fingerprint, copies, and what has moved."""

from __future__ import annotations

import json
import shutil

import dask.array as da
import numpy as np
import pytest
import tifffile
import zarr

import napari_agglo as agglo
from napari_agglo.errors import InvalidInput
from napari_agglo.session import Session, Source
from napari_agglo.session._store import sources as sources_module
from napari_agglo.session._store.manifest import read_manifest
from napari_agglo.session._store.sources import fingerprint
from napari_agglo.volumes import open_volume
from napari_agglo.volumes._on_disk import OnDisk

SUPERPIXELS = np.arange(1, 17).reshape(4, 4).repeat(6, 0).repeat(6, 1)


@pytest.fixture
def pixels(rng):
    image = rng.integers(0, 255, SUPERPIXELS.shape).astype(np.uint8)
    return image, rng.random(SUPERPIXELS.shape).astype(np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def made(folder, cue, **options):
    graph = agglo.region_graph(SUPERPIXELS, cue)
    return Session.create(folder / "a.agglo", graph, **options)


def test_an_array_on_disk_that_is_given_as_such_is_not_read_whole(tmp_path, pixels):
    """As the fingerprint needs a sample of it, and nothing is copied of what is large."""
    image, cue = pixels
    voxels = []

    def read(index):
        part = np.broadcast_to(np.uint8(7), large.shape)[index]
        voxels.append(part.size)
        return part

    large = OnDisk((1 << 12,) * 3, np.uint8, read, (64, 64, 64))
    notes, copies = sources_module.described_sources({"image": large}, tmp_path, {})
    assert notes["image"].shape == large.shape
    assert not copies
    assert 0 < sum(voxels) < 2**26
    zarr.save_array(str(tmp_path / "image.zarr"), image)
    small = open_volume(tmp_path / "image.zarr").data
    with made(tmp_path, cue, sources={"image": small, "gold": [[1] * 24] * 24}) as session:
        np.testing.assert_array_equal(session.sources.read("image"), image)
        np.testing.assert_array_equal(session.sources.read("gold"), np.ones((24, 24)))


def test_files_and_copies_are_read_again(tmp_path, pixels):
    image, cue = pixels
    gold = SUPERPIXELS // 5 + 1
    tifffile.imwrite(tmp_path / "em.tif", image)
    inputs = {"image": tmp_path / "em.tif", "gold": gold, "cue boundary": Source(cue, name="map")}
    with made(tmp_path, cue, gold=gold, sources=inputs) as session:
        assert list(session.sources) == list(inputs)
    with Session.open(tmp_path / "a.agglo") as session:
        np.testing.assert_array_equal(session.sources.read("image"), image)
        np.testing.assert_array_equal(session.sources.read("gold"), gold)
        assert np.abs(session.sources.read("cue boundary") - cue).max() <= 0.5 / 255 + 1e-6
        assert session.sources["cue boundary"].name == "map"
        with pytest.raises(InvalidInput) as caught:
            session.sources.read("depth")
        assert caught.value.argument == "key"
    assert not list((tmp_path / "a.agglo" / "arrays.zarr").glob("source_*")), "no second copy"


def test_a_moved_file_is_asked_for_and_remembered(tmp_path, pixels):
    image, cue = pixels
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    tifffile.imwrite(old / "em.tif", image)
    with made(old, cue, sources={"image": old / "em.tif"}):
        pass
    shutil.move(old, new)  # the session and the file together
    with Session.open(new / "a.agglo") as session:
        np.testing.assert_array_equal(session.sources.read("image"), image)
        (new / "em.tif").rename(tmp_path / "elsewhere.tif")
        assert session.sources.path("image") is None
        with pytest.raises(InvalidInput) as caught:
            session.sources.read("image")
        assert "sources.move" in str(caught.value.remedy)
        session.sources.move("image", tmp_path / "elsewhere.tif")
    with Session.open(new / "a.agglo", read_only=True) as session:
        np.testing.assert_array_equal(session.sources.read("image"), image)
        tifffile.imwrite(tmp_path / "elsewhere.tif", image[::-1])
        with pytest.raises(InvalidInput):  # other values in the same place
            session.sources.read("image")


def test_an_image_without_a_file_is_copied_unless_it_is_large(tmp_path, pixels, monkeypatch):
    _, cue = pixels
    image = da.from_array(np.random.default_rng(0).random((24, 24, 3)), chunks=8)
    with made(tmp_path, cue, sources={"image": Source(image, name="photo")}) as session:
        np.testing.assert_array_equal(session.sources.copy("image"), image.compute())
    shutil.rmtree(tmp_path / "a.agglo")
    monkeypatch.setattr(sources_module, "COPY_BELOW", 100)
    with made(tmp_path, cue, sources={"image": Source(image, name="photo")}) as session:
        assert session.sources.copy("image") is None
        assert session.sources.matches("image", image.compute())


def test_recovery_goes_on_without_a_damaged_copy(tmp_path, pixels):
    image, cue = pixels
    with made(tmp_path, cue, sources={"image": image}) as session:
        path = session.path
    for chunk in (path / "arrays.zarr" / "source_0").rglob("c/**/*"):
        if chunk.is_file():
            chunk.write_bytes(b"?")
    report = Session.recover(path)
    assert not report.unmended
    with Session.open(path) as session:
        assert session.sources.copy("image") is None


def test_folders_without_inputs_have_the_manifest_of_before(tmp_path, pixels):
    _, cue = pixels
    with made(tmp_path, cue) as session:
        assert len(session.sources) == 0
    plain = json.loads((tmp_path / "a.agglo" / "manifest.json").read_text())
    assert "sources" not in plain
    assert read_manifest(tmp_path / "a.agglo").sources == {}


def test_unknown_keys_are_refused(tmp_path, pixels):
    with pytest.raises(InvalidInput) as caught:
        made(tmp_path, pixels[1], sources={"picture": pixels[0]})
    assert caught.value.argument == "sources"
    assert not (tmp_path / "a.agglo").exists()


def test_a_fingerprint_reads_a_part_and_knows_the_type(monkeypatch):
    monkeypatch.setattr(sources_module, "_READ", 64)
    volume = np.arange(40 * 8, dtype=np.uint16).reshape(40, 2, 4)
    shape, dtype, _ = fingerprint(volume)
    assert (shape, dtype) == ((40, 2, 4), "<u2")
    assert fingerprint(volume) != fingerprint(volume + 1)
    assert fingerprint(volume) == fingerprint(da.from_array(volume, chunks=2))
    assert fingerprint(volume) == fingerprint(volume.astype(">u2"))


def test_a_fingerprint_reads_every_chunk_once(tmp_path):
    volume = np.arange(50 * 60, dtype=np.uint16).reshape(50, 60)
    path = str(tmp_path / "v.zarr")
    zarr.create_array(path, data=volume, chunks=(16, 60))
    data = open_volume(path).data
    parts = []

    class Watched:
        """An array on disk that notes which rows are read."""

        shape, dtype, chunks = data.shape, data.dtype, data.chunks

        def __getitem__(self, index):
            parts.append(index)
            return data[index]

    assert fingerprint(Watched()) == fingerprint(volume)
    assert parts == [slice(0, 16), slice(16, 32), slice(32, 48), slice(48, 50)]
