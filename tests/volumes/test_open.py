"""Every format, its keys and its spacing; and what is said of files that cannot be read."""

from __future__ import annotations

import json
import logging
import os
import pickle
from pathlib import Path

import h5py
import imageio.v3 as iio
import numpy as np
import pytest
import tifffile
import zarr
from refusals import refuses

from napari_agglo.errors import Install, InvalidInput
from napari_agglo.volumes import check_labels, open_volume, write_labels

STACK = np.arange(2 * 3 * 4, dtype=np.uint16).reshape(2, 3, 4)


# TIFF ---------------------------------------------------------------------------------------


def test_plain_tiff_is_mapped(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", STACK, photometric="minisblack")
    volume = open_volume(tmp_path / "a.tif")
    assert isinstance(volume.data, np.memmap)
    assert (volume.name, volume.spacing) == ("a.tif", None)
    np.testing.assert_array_equal(volume.load(), STACK)


def test_big_endian_tiff(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", STACK, photometric="minisblack", byteorder=">")
    volume = open_volume(tmp_path / "a.tif")
    np.testing.assert_array_equal(volume.load(), STACK)
    assert check_labels(volume).dtype == np.dtype("=u2")


def test_compressed_tiff_is_read_on_demand(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, STACK, photometric="minisblack", compression="zlib")
    volume = open_volume(path)
    assert not isinstance(volume.data, np.ndarray)
    np.testing.assert_array_equal(volume.data[1], STACK[1])
    np.testing.assert_array_equal(volume.data[:, 1:, ..., 2], STACK[:, 1:, 2])
    np.testing.assert_array_equal(np.asarray(volume), STACK)
    os.remove(path)
    with refuses("source", "open it again"):
        volume.load()


def test_imagej_spacing(tmp_path):
    tifffile.imwrite(
        tmp_path / "a.tif", STACK, imagej=True, resolution=(1 / 0.25, 1 / 0.5),
        metadata={"axes": "ZYX", "spacing": 2.0, "unit": "um"},
    )  # fmt: skip
    assert open_volume(tmp_path / "a.tif").spacing == pytest.approx((2.0, 0.5, 0.25))


def test_ome_tiff_spacing_and_units(tmp_path):
    metadata = {"axes": "ZYX"}
    for letter, size in zip("ZYX", (40.0, 6.0, 4.0), strict=True):
        metadata |= {f"PhysicalSize{letter}": size, f"PhysicalSize{letter}Unit": "nm"}
    tifffile.imwrite(
        tmp_path / "a.ome.tif", STACK, metadata=metadata, photometric="minisblack", ome=True
    )
    assert open_volume(tmp_path / "a.ome.tif").spacing == (0.04, 0.006, 0.004)


def test_channels_of_a_tiff_must_be_picked(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, STACK, imagej=True, metadata={"axes": "CYX"})
    with refuses("source", "a.tif:c=0"):
        open_volume(path)
    np.testing.assert_array_equal(open_volume(f"{path}:c=1").load(), STACK[1])
    with refuses("source", "that axis runs from 0 to 1"):
        open_volume(f"{path}:c=2")
    with refuses("source", "its axes are cyx"):
        open_volume(f"{path}:q=0")


def test_pyramid_tiff_gives_level_0(tmp_path):
    big = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    options = {"photometric": "minisblack", "tile": (16, 16)}
    with tifffile.TiffWriter(tmp_path / "a.tif") as writer:
        writer.write(big, subifds=1, **options)
        writer.write(big[::2, ::2], subfiletype=1, **options)
    volume = open_volume(tmp_path / "a.tif")
    assert volume.name == "a.tif (level 0)"
    np.testing.assert_array_equal(volume.load(), big)


STRIPED = np.random.default_rng(0).integers(0, 60000, (20, 32, 32)).astype(np.uint16)


def pages_one_by_one(path):
    with tifffile.TiffWriter(path) as writer:
        for plane in STRIPED:
            writer.write(plane, photometric="minisblack", contiguous=False, metadata=None)


WRITERS = {
    "plain": lambda path: tifffile.imwrite(path, STRIPED, photometric="minisblack"),
    "bare": lambda path: tifffile.imwrite(
        path, STRIPED, photometric="minisblack", metadata=None, compression="zlib"
    ),
    "imagej": lambda path: tifffile.imwrite(path, STRIPED, imagej=True, metadata={"axes": "ZYX"}),
    "ome": lambda path: tifffile.imwrite(
        path, STRIPED, ome=True, photometric="minisblack", metadata={"axes": "ZYX"}
    ),
    "pages": pages_one_by_one,
    "ours": lambda path: write_labels(path, STRIPED, spacing=(1, 1, 1)),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95, 0.999])
def test_a_truncated_tiff_is_never_its_first_planes(tmp_path, capfd, caplog, kind, share):
    path = tmp_path / "a.tif"
    WRITERS[kind](path)
    np.testing.assert_array_equal(open_volume(path).load(), STRIPED)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with refuses("source", "save it again from the program that made it"):
        open_volume(path).load()
    assert capfd.readouterr().err == ""
    assert caplog.records == []


def test_warnings_of_tifffile_to_others_still_come(tmp_path, caplog):
    tifffile.imwrite(tmp_path / "a.tif", STACK[0])
    open_volume(tmp_path / "a.tif").load()
    logging.getLogger("tifffile").error("for someone else")
    assert [record.message for record in caplog.records] == ["for someone else"]


def test_planes_that_the_metadata_promise_and_the_file_lacks(tmp_path):
    path = tmp_path / "a.ome.tif"
    tifffile.imwrite(
        path, STRIPED[:3], ome=True, photometric="minisblack", compression="zlib",
        metadata={"axes": "ZYX"},
    )  # fmt: skip
    text = path.read_bytes()
    assert b'SizeZ="3"' in text, "test invalid"
    path.write_bytes(text.replace(b'SizeZ="3"', b'SizeZ="4"'))
    with refuses("source", "save it again from the program that made it"):
        open_volume(path).load()


def test_tiff_that_needs_another_package(tmp_path):
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, STACK[0], photometric="minisblack", compression="zlib")
    with tifffile.TiffFile(path, mode="r+b") as tiff:
        tiff.pages[0].tags["Compression"].overwrite(5)  # now it claims to be LZW
    try:
        import imagecodecs  # noqa: F401
    except ImportError:
        with refuses("source", Install("imagecodecs")):
            open_volume(path)


# HDF5 ---------------------------------------------------------------------------------------


def hdf5(path, **datasets):
    with h5py.File(path, "w") as file:
        for key, value in datasets.items():
            file[key.replace("__", "/")] = value
    return path


def test_the_only_dataset_needs_no_key(tmp_path):
    path = hdf5(tmp_path / "a.h5", group__inner=STACK)
    assert open_volume(path).name == "a.h5:group/inner"
    np.testing.assert_array_equal(open_volume(path).load(), STACK)


def test_gala_stack_is_the_default(tmp_path):
    path = hdf5(tmp_path / "a.h5", stack=STACK, other=STACK[0])
    np.testing.assert_array_equal(open_volume(path).load(), STACK)
    np.testing.assert_array_equal(open_volume(f"{path}:other").load(), STACK[0])
    np.testing.assert_array_equal(open_volume(f"{path}:/other").load(), STACK[0])


def test_several_datasets_are_listed(tmp_path):
    path = hdf5(tmp_path / "a.h5", raw=STACK, boundary=STACK)
    with refuses("source", "a.h5:KEY, of boundary, raw"):
        open_volume(path)
    with refuses("source", "it holds: boundary, raw"):
        open_volume(f"{path}:gold")


def test_hdf5_stays_free_for_others(tmp_path):
    path = hdf5(tmp_path / "a.h5", stack=STACK)
    volume = open_volume(path)
    with h5py.File(path, "r+") as file:
        file["stack"][0, 0, 0] = 99
    assert volume.data[0, 0, 0] == 99


def test_ilastik_channels_and_plantseg_spacing(tmp_path):
    probabilities = np.random.default_rng(0).random((2, 3, 4, 2), np.float32)
    tags = {"axes": [{"key": k, "typeFlags": 2, "resolution": 0} for k in "zyxc"]}
    path = hdf5(tmp_path / "a.h5", exported_data=probabilities)
    with h5py.File(path, "r+") as file:
        file["exported_data"].attrs["axistags"] = json.dumps(tags)
        file["exported_data"].attrs["element_size_um"] = (0.3, 0.2, 0.1)
    with refuses("source", "pick one, e.g. a.h5:exported_data,c=0"):
        open_volume(path)
    volume = open_volume(f"{path}:exported_data,c=1")
    assert volume.spacing == (0.3, 0.2, 0.1)
    np.testing.assert_array_equal(volume.load(), probabilities[..., 1])
    np.testing.assert_array_equal(open_volume(f"{path}:c=0").load(), probabilities[..., 0])
    np.testing.assert_array_equal(volume.data[1:, 2], probabilities[1:, 2, :, 1])


def test_axis_by_number(tmp_path):
    path = hdf5(tmp_path / "a.h5", predictions=STACK)
    np.testing.assert_array_equal(open_volume(f"{path}:predictions,0=1").load(), STACK[1])


def test_text_in_hdf5_is_refused(tmp_path):
    path = hdf5(tmp_path / "a.h5", words=np.array([b"a", b"b"]))
    with refuses("source", "save it as numbers"):
        open_volume(path)


def test_links_out_of_the_file_are_not_followed(tmp_path):
    hdf5(tmp_path / "other.h5", secret=STACK)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["mine"] = STACK
        file["link"] = h5py.ExternalLink("other.h5", "/secret")
    with refuses("source", "it holds: mine"):
        open_volume(f"{tmp_path / 'a.h5'}:link")


# Zarr ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_array(tmp_path, version):
    path = tmp_path / "a.zarr"
    zarr.create_array(str(path), data=STACK, chunks=(1, 2, 2), zarr_format=version)
    volume = open_volume(path)
    assert volume.data.chunks == (1, 2, 2)
    np.testing.assert_array_equal(volume.load(), STACK)
    np.testing.assert_array_equal(volume.data[1, ..., 1:3], STACK[1, ..., 1:3])


def ome_zarr(path, data, axes, scale, version, **more):
    """Write an image with two levels, as version 0.4 (Zarr 2) or 0.5 (Zarr 3)."""
    described = []
    for letter in axes:
        kind = {"t": "time", "c": "channel"}.get(letter, "space")
        described.append({"name": letter, "type": kind})
        if kind == "space":
            described[-1]["unit"] = "nanometer"
    levels = []
    for n in (0, 1):
        factors = [s * 2**n if a in "yx" else s for a, s in zip(axes, scale, strict=True)]
        transforms = [{"type": "scale", "scale": factors}]
        levels.append({"path": str(n), "coordinateTransformations": transforms})
    image = {"axes": described, "datasets": levels, **more}
    if version == "0.4":
        attributes = {"multiscales": [{**image, "version": "0.4"}]}
    else:
        attributes = {"ome": {"version": version, "multiscales": [image]}}
    group = zarr.create_group(
        str(path), zarr_format=2 if version == "0.4" else 3, attributes=attributes
    )
    group.create_array("0", data=data)
    group.create_array("1", data=data[..., ::2, ::2])
    return path


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_ome_zarr(tmp_path, version):
    path = ome_zarr(tmp_path / "a.ome.zarr", STACK, "zyx", (40, 6, 4), version)
    volume = open_volume(path)
    assert volume.name == "a.ome.zarr (level 0)"
    assert volume.spacing == (0.04, 0.006, 0.004)
    np.testing.assert_array_equal(volume.load(), STACK)
    for source in (f"{path}:1", path / "1"):
        assert open_volume(source).spacing == (0.04, 0.012, 0.008)
        np.testing.assert_array_equal(open_volume(source).load(), STACK[:, ::2, ::2])


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_time_and_channel_of_one_are_dropped_with_their_spacing(tmp_path, version):
    path = ome_zarr(
        tmp_path / "a.zarr", STACK[None, None], "tczyx", (7, 1, 40, 6, 4), version
    )  # fmt: skip
    volume = open_volume(path)
    assert volume.spacing == (0.04, 0.006, 0.004)
    np.testing.assert_array_equal(volume.load(), STACK)


def test_a_plane_of_one_is_kept(tmp_path):
    path = ome_zarr(tmp_path / "a.zarr", STACK[:1], "zyx", (40, 6, 4), "0.5")
    assert open_volume(path).shape == (1, 3, 4)


def test_channels_of_ome_zarr_must_be_picked(tmp_path):
    path = ome_zarr(tmp_path / "a.zarr", STACK, "cyx", (1, 6, 4), "0.5")
    with refuses("source", "pick one, e.g. a.zarr:c=0"):
        open_volume(path)
    volume = open_volume(f"{path}:c=1")
    assert volume.spacing == (0.006, 0.004)
    np.testing.assert_array_equal(volume.load(), STACK[1])
    np.testing.assert_array_equal(open_volume(f"{path}:1,c=0").load(), STACK[0, ::2, ::2])


def test_a_column_is_no_channel(tmp_path):
    path = ome_zarr(tmp_path / "a.zarr", STACK, "zyx", (1, 1, 1), "0.5")
    described = json.loads((path / "zarr.json").read_text())
    axes = described["attributes"]["ome"]["multiscales"][0]["axes"]
    for axis, name in zip(axes, ("section", "row", "column"), strict=True):
        axis["name"] = name
    (path / "zarr.json").write_text(json.dumps(described))
    assert open_volume(path).shape == STACK.shape


def test_shared_scale_multiplies(tmp_path):
    shared = [{"type": "scale", "scale": [10, 10, 10]}]
    path = ome_zarr(
        tmp_path / "a.zarr", STACK, "zyx", (40, 6, 4), "0.5", coordinateTransformations=shared
    )
    assert open_volume(path).spacing == (0.4, 0.06, 0.04)


def test_group_of_several_arrays_is_listed(tmp_path):
    group = zarr.create_group(str(tmp_path / "a.zarr"))
    group.create_array("raw", data=STACK)
    group.create_array("inner/gold", data=STACK)
    group.create_array("boundary", data=STACK)
    with refuses("source", "a.zarr:KEY, of boundary, inner, inner/gold, raw"):
        open_volume(tmp_path / "a.zarr")
    with refuses("source", "it holds: boundary, inner, inner/gold, raw"):
        open_volume(f"{tmp_path / 'a.zarr'}:no")
    with refuses("source", "name an array inside it"):
        open_volume(f"{tmp_path / 'a.zarr'}:../a.zarr/raw")
    np.testing.assert_array_equal(open_volume(f"{tmp_path / 'a.zarr'}:inner/gold").load(), STACK)


def test_damaged_chunk_is_told(tmp_path):
    path = write_labels(tmp_path / "a.zarr", np.random.default_rng(0).integers(0, 99, (50, 50)))
    for chunk in (path / "0").rglob("*"):
        if chunk.is_file() and chunk.name != "zarr.json":
            chunk.write_bytes(chunk.read_bytes()[:20])
    with refuses("source", "save it again from the program that made it"):
        open_volume(path).load()


@pytest.mark.parametrize("where", ["filters", "compressor"])
def test_pickle_in_zarr_never_runs(tmp_path, where):
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    marker = tmp_path / "ran"
    metadata = {
        "zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "order": "C",
        "fill_value": 0, "compressor": None, "filters": None,
    }  # fmt: skip
    codec = {"id": "pickle", "protocol": 5}
    metadata[where] = [codec] if where == "filters" else codec
    (folder / ".zarray").write_text(json.dumps(metadata))
    (folder / "0").write_bytes(pickle.dumps(Runs(marker)))
    with refuses("source", "save it again from the program that made it"):
        open_volume(folder).load()
    assert not marker.exists()


def test_the_word_pickle_in_a_note_does_no_harm(tmp_path):
    zarr.create_array(str(tmp_path / "a.zarr"), data=STACK, attributes={"note": "Pickled gherkin"})
    np.testing.assert_array_equal(open_volume(tmp_path / "a.zarr").load(), STACK)


class Runs:
    """Makes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


# numpy --------------------------------------------------------------------------------------


def test_npy_is_mapped(tmp_path):
    np.save(tmp_path / "a.npy", STACK)
    volume = open_volume(tmp_path / "a.npy")
    assert isinstance(volume.data, np.memmap)
    np.testing.assert_array_equal(volume.load(), STACK)
    with refuses("source", "drop the :x"):
        open_volume(f"{tmp_path / 'a.npy'}:x")


def test_npz_members(tmp_path):
    np.savez(tmp_path / "a.npz", raw=STACK, gold=STACK[0])
    np.testing.assert_array_equal(open_volume(f"{tmp_path / 'a.npz'}:gold").load(), STACK[0])
    with refuses("source", "a.npz:KEY, of raw, gold"):
        open_volume(tmp_path / "a.npz")
    with refuses("source", "it holds: raw, gold"):
        open_volume(f"{tmp_path / 'a.npz'}:no")


@pytest.mark.parametrize("save", [np.save, np.savez])
def test_pickled_arrays_never_run(tmp_path, save):
    marker = tmp_path / "ran"
    path = tmp_path / ("a.npy" if save is np.save else "a.npz")
    save(path, np.array([Runs(marker)], object))
    with refuses("source", "save it as numbers"):
        open_volume(path)
    assert not marker.exists()


def test_a_header_that_claims_too_much(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(10))
    text = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(text.replace(b"(10,)", b"(99,)"))
    with refuses("source", "save it again", facts=("792 bytes", "80")):
        open_volume(tmp_path / "a.npy")


# Pictures and stacks ------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_folder_in_natural_order(tmp_path, suffix):
    for number in (1, 2, 10):
        iio.imwrite(tmp_path / f"img{number}{suffix}", np.full((3, 4), number, np.uint8))
    (tmp_path / "notes.txt").write_text("not an image")
    (tmp_path / f".hidden{suffix}").write_text("not an image")
    for source in (tmp_path, f"{tmp_path}/*{suffix}", f"{tmp_path}/img[0-9]*{suffix}"):
        volume = open_volume(source)
        assert volume.shape == (3, 3, 4)
        assert volume.load()[:, 0, 0].tolist() == [1, 2, 10]
        assert volume.data[1:, 0, 2:].tolist() == [[2, 2], [10, 10]]
        assert volume.data[2].max() == 10


def test_planes_that_differ(tmp_path):
    for number, width in enumerate((4, 5, 4)):
        iio.imwrite(tmp_path / f"{number}.png", np.zeros((3, width), np.uint8))
    with refuses("source", "remove it from the stack"):
        open_volume(tmp_path).load()


def test_folder_of_two_kinds(tmp_path):
    iio.imwrite(tmp_path / "a.png", STACK[0])
    tifffile.imwrite(tmp_path / "b.tif", STACK[0])
    with refuses("source", "name one kind by a pattern"):
        open_volume(tmp_path)


def test_folder_without_images(tmp_path):
    with refuses("source", "name a file, or a folder of planes"):
        open_volume(tmp_path)
    with refuses("source", "name a file, or a folder of planes"):
        open_volume(tmp_path / "*.png")


@pytest.mark.parametrize(
    ("suffix", "samples"),  # JPEG and BMP hold no transparency
    [(".png", 3), (".png", 4), (".jpg", 3), (".bmp", 3), (".tif", 3), (".tif", 4)],
)
def test_colours_are_channels(tmp_path, suffix, samples):
    picture = np.full((16, 17, samples), 255, np.uint8) - np.arange(samples, dtype=np.uint8) * 60
    path = tmp_path / f"a{suffix}"
    iio.imwrite(path, picture)
    with refuses("source", f"{path}:c=0, or convert it to grey"):
        open_volume(path)
    for key in ("c=1", "2=1"):
        plane = open_volume(f"{path}:{key}").load()
        assert plane.shape == (16, 17)
        assert abs(int(plane[0, 0]) - 195) < 3


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_a_stack_of_colour_pictures(tmp_path, suffix):
    for number in range(3):
        picture = np.zeros((5, 6, 3), np.uint8)
        picture[..., 1] = number
        iio.imwrite(tmp_path / f"{number}{suffix}", picture)
    for source in (tmp_path, f"{tmp_path}/*{suffix}"):
        with refuses("source", ":c=0"):
            open_volume(source)
        volume = open_volume(f"{source}:c=1")
        assert volume.shape == (3, 5, 6)
        assert volume.load()[:, 0, 0].tolist() == [0, 1, 2]


def test_grey_with_transparency_has_two_channels(tmp_path):
    iio.imwrite(tmp_path / "a.png", np.zeros((5, 6, 2), np.uint8))
    with refuses("source", ":c=0"):
        open_volume(tmp_path / "a.png")


# Indexing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".zarr", ".h5", ".npz", ".tif", ""])
def test_indexed_as_numpy_does(tmp_path, suffix):
    if suffix:
        path = write_labels(tmp_path / f"a{suffix}", STACK)
    else:
        path = tmp_path
        for number, plane in enumerate(STACK):
            iio.imwrite(path / f"{number}.png", plane)
    data = open_volume(path).data
    for index in (
        np.s_[::-1], np.s_[-1], np.s_[..., ::-2], np.s_[1:0], np.s_[:, 2:0:-1, -3:], np.s_[0, 1, 2],
        np.s_[5:], np.s_[np.int64(1), ..., :2],
    ):  # fmt: skip
        np.testing.assert_array_equal(data[index], STACK[index], err_msg=str(index))
    with pytest.raises(IndexError, match="index 2 is out of bounds: axis 0 has length 2"):
        data[2]
    for index in ([0, 1], np.array([True, False]), None, (0, [1]), True, "a"):
        with refuses("source", "read it first, e.g. volume.load()[...]"):
            data[index]


# Paths --------------------------------------------------------------------------------------


def test_drive_letters_are_no_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("D:")
    with h5py.File(r"C:\x.h5", "w") as file:
        file["stack"] = STACK
    with h5py.File("D:/y.h5", "w") as file:
        file["a:b"] = STACK
        file["a"] = STACK[0]
    for source in (r"C:\x.h5", r"C:\x.h5:stack", "D:/y.h5:a:b"):
        np.testing.assert_array_equal(open_volume(source).load(), STACK)
    with refuses("source", "check the path") as caught:
        open_volume(r"C:\z.h5:stack")
    assert r"C:\z.h5 " in caught.value.problem


def test_a_colon_in_the_name_of_a_file(tmp_path):
    np.save(tmp_path / "12:30.npy", STACK)
    assert open_volume(tmp_path / "12:30.npy").shape == STACK.shape


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("no.tif", ("source", "check the path")),
        ("no.h5:key", ("source", "check the path")),
        ("there.xyz", ("source", "convert it to .tif, .tiff, .h5, .hdf5")),
    ],
)
def test_wrong_paths(tmp_path, name, refusal):
    (tmp_path / "there.xyz").write_text("?")
    with refuses(*refusal):
        open_volume(tmp_path / name)


@pytest.mark.parametrize("suffix", [".tif", ".h5", ".npz", ".npy", ".png"])
def test_cut_off_files(tmp_path, suffix):
    """A file cut off anywhere is refused in a sentence, or, if only padding is lost, read right."""
    labels = np.random.default_rng(0).integers(0, 200, (12, 13)).astype(np.uint8)
    path = write_labels(tmp_path / f"a{suffix}", labels)
    whole = path.read_bytes()
    refused = []
    for length in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:length])
        try:
            np.testing.assert_array_equal(open_volume(path).load(), labels)
        except InvalidInput as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert all(str(path) in message for message in refused)


@pytest.mark.parametrize("suffix", [".tif", ".npz", ".npy", ".png", ".zarr"])
def test_other_content_under_the_suffix(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"this is not an image at all" * 20)
    with pytest.raises(InvalidInput):
        open_volume(path).load()


@pytest.mark.parametrize("source", [STACK, None, 3, ["a.tif"]])
def test_only_a_path_is_opened(source):
    with refuses("source", "pass the path of a file; an array needs no") as caught:
        open_volume(source)
    assert caught.value.argument == "source"
