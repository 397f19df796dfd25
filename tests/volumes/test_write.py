"""What is written is read back; what fails leaves everything as it was."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import Volume, open_volume, write_labels

SUFFIXES = [".tif", ".tiff", ".ome.zarr", ".zarr", ".h5", ".hdf5", ".h5:a/b", ".npz", ".npy"]
SQUARE = np.array([[1, 2, 3], [4, 5, 300]], np.uint32)


@st.composite
def label_images(draw):
    dtype = np.dtype(draw(st.sampled_from(["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"])))
    shape = draw(npst.array_shapes(min_dims=1, max_dims=4, max_side=5))
    return draw(npst.arrays(dtype, shape, elements=st.integers(0, int(np.iinfo(dtype).max))))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(label_images(), st.sampled_from(SUFFIXES), st.data())
def test_round_trip(labels, suffix, data):
    number = st.floats(1e-3, 1e4).map(lambda value: float(f"{value:.6g}"))
    spacing = data.draw(
        st.none() | st.lists(number, min_size=labels.ndim, max_size=labels.ndim).map(tuple)
    )
    with tempfile.TemporaryDirectory() as folder:
        source = str(Path(folder) / "labels") + suffix
        path = write_labels(source, labels, spacing=spacing)
        assert os.listdir(folder) == [path.name]
        volume = open_volume(source)
        loaded = volume.load()
        lazily = np.asarray(volume.data[0:1])
    assert volume.shape == labels.shape
    assert volume.dtype == labels.dtype
    np.testing.assert_array_equal(loaded, labels)
    np.testing.assert_array_equal(lazily, labels[0:1])
    if suffix != ".npy" and spacing is not None:
        assert volume.spacing == pytest.approx(spacing, rel=1e-9)
    elif suffix in (".npy", ".tif", ".npz", ".h5"):
        assert volume.spacing is None


@pytest.mark.parametrize("suffix", [".ome.zarr", ".h5", ".npz", ".npy"])
@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_round_trip_without_voxels(tmp_path, suffix, shape):
    path = write_labels(tmp_path / f"empty{suffix}", np.zeros(shape, np.uint16))
    assert open_volume(path).load().shape == shape


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
def test_png_keeps_the_ids(tmp_path, dtype):
    labels = np.array([[0, 1], [200, 255 if dtype == np.uint8 else 65535]], dtype)
    path = write_labels(tmp_path / "a.png", labels)
    np.testing.assert_array_equal(open_volume(path).load(), labels)


def test_tiff_is_compressed_and_ome_where_that_can_hold_it(tmp_path):
    labels = np.zeros((8, 64, 64), np.uint16)
    path = write_labels(tmp_path / "a.tif", labels, spacing=(0.04, 0.006, 0.004))
    assert path.stat().st_size < labels.nbytes / 4
    with tifffile.TiffFile(path) as tiff:
        assert tiff.is_ome
        assert 'PhysicalSizeZ="0.04"' in tiff.ome_metadata


def test_ome_zarr_metadata(tmp_path):
    import zarr

    path = write_labels(tmp_path / "a.ome.zarr", np.ones((2, 3, 4), np.uint32), spacing=(3, 2, 1))
    group = zarr.open_group(str(path), mode="r")
    assert group.metadata.zarr_format == 3
    ome = group.attrs["ome"]
    assert ome["version"] == "0.5"
    assert "image-label" in ome
    image = ome["multiscales"][0]
    assert [axis["name"] for axis in image["axes"]] == ["z", "y", "x"]
    transforms = image["datasets"][0]["coordinateTransformations"]
    assert transforms == [{"type": "scale", "scale": [3.0, 2.0, 1.0]}]


def test_a_volume_brings_its_spacing(tmp_path):
    path = write_labels(tmp_path / "a.npz", Volume(SQUARE, (2.0, 1.0)))
    assert open_volume(path).spacing == (2.0, 1.0)


def test_hdf5_key_keeps_what_else_is_there(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["raw"] = np.arange(3)
        file["labels"] = np.zeros(2)
    write_labels(f"{tmp_path / 'a.h5'}:labels", SQUARE)
    np.testing.assert_array_equal(open_volume(f"{tmp_path / 'a.h5'}:raw").load(), [0, 1, 2])
    np.testing.assert_array_equal(open_volume(f"{tmp_path / 'a.h5'}:labels").load(), SQUARE)


def test_another_suffix_takes_the_old_place(tmp_path):
    """A Zarr folder may be replaced by itself, over and over."""
    for value in (1, 2):
        path = write_labels(tmp_path / "a.zarr", np.full((2, 2), value))
    assert open_volume(path).load().max() == 2
    assert os.listdir(tmp_path) == ["a.zarr"]


@pytest.mark.parametrize("suffix", [".tif", ".zarr", ".h5", ".h5:key", ".npz", ".npy", ".png"])
@pytest.mark.parametrize("broken", ["fsync", "replace", "rename"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_fault_leaves_the_old_file_whole_and_no_other(
    tmp_path, monkeypatch, suffix, broken, existing
):
    source = str(tmp_path / "a") + suffix
    if existing:
        write_labels(source, SQUARE)
    before = sorted(os.listdir(tmp_path))

    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        if broken == "rename" and suffix != ".zarr":
            write_labels(source, SQUARE)  # files are put in place by replace alone
            return
        with pytest.raises(InvalidInput, match=r"No space left on device.*is untouched"):
            write_labels(source, SQUARE + np.uint32(1))
    assert sorted(os.listdir(tmp_path)) == before
    if existing:
        np.testing.assert_array_equal(open_volume(source).load(), SQUARE)


def test_the_second_rename_of_a_folder_fails(tmp_path, monkeypatch):
    path = write_labels(tmp_path / "a.zarr", SQUARE)
    rename, calls = os.rename, []

    def second_fails(source, target):
        calls.append(source)
        if len(calls) == 2:
            raise OSError(errno.EACCES, "Permission denied")
        rename(source, target)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(InvalidInput, match="Permission denied"):
        write_labels(path, SQUARE + np.uint32(1))
    assert os.listdir(tmp_path) == ["a.zarr"]
    np.testing.assert_array_equal(open_volume(path).load(), SQUARE)


def test_interrupt_while_writing(tmp_path, monkeypatch):
    path = write_labels(tmp_path / "a.tif", SQUARE)

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(tifffile, "imwrite", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_labels(path, SQUARE)
    assert os.listdir(tmp_path) == ["a.tif"]
    np.testing.assert_array_equal(open_volume(path).load(), SQUARE)


@pytest.mark.parametrize(
    ("name", "labels", "words"),
    [
        ("a.xyz", SQUARE, "names no format to write labels in; end it in .tif"),
        ("a", SQUARE, "names no format"),
        ("no/such/a.tif", SQUARE, "make the folder .* first"),
        ("a.png", SQUARE[None], "PNG holds a 2-D image"),
        ("a.png", SQUARE * np.uint32(1000), "PNG holds ids up to 65535, not 300000; write .tif"),
        ("a.tif", np.zeros((0, 3), np.uint8), "TIFF cannot hold an empty image"),
        ("a.tif", SQUARE / 2, "`labels` must hold integer labels"),
    ],
)
def test_refusals(tmp_path, name, labels, words):
    with pytest.raises(InvalidInput, match=words):
        write_labels(tmp_path / name, labels)
    assert os.listdir(tmp_path) == []


def test_spacing_must_fit(tmp_path):
    with pytest.raises(InvalidInput, match="`spacing` must be 2 positive numbers"):
        write_labels(tmp_path / "a.tif", SQUARE, spacing=(1, 2, 3))
