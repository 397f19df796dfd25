"""Files that are written are read back; a write that fails leaves everything as it was."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from oracles.disks import Disk
from refusals import refuses

from napari_agglo.errors import ConvertTo, InvalidInput, SetOption
from napari_agglo.volumes import Volume, open_volume, replacing, write_labels

SUFFIXES = [".tif", ".tiff", ".ome.zarr", ".zarr", ".h5", ".hdf5", ".h5:a/b", ".npz", ".npy"]
SQUARE = np.array([[1, 2, 3], [4, 5, 300]], np.uint32)


@st.composite
def label_images(draw):
    dtype = np.dtype(draw(st.sampled_from(["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"])))
    shape = draw(npst.array_shapes(min_dims=1, max_dims=4, max_side=5))
    return draw(npst.arrays(dtype, shape, elements=st.integers(0, int(np.iinfo(dtype).max))))


@examples(150)
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


def axes_of(path):
    import zarr

    return zarr.open_group(str(path), mode="r").attrs["ome"]["multiscales"][0]["axes"]


def test_the_unit_is_written_that_is_given_and_no_other(tmp_path):
    stack = np.ones((2, 2, 3, 4), np.uint32)
    path = write_labels(tmp_path / "a.zarr", stack, spacing=(1, 40, 4, 4), unit="nm")
    assert [axis.get("unit") for axis in axes_of(path)] == [None, *["nanometer"] * 3]
    assert open_volume(path).spacing == (1.0, 0.04, 0.004, 0.004)
    assert open_volume(path).unit == "micrometer"
    for options in ({}, {"spacing": (1, 40, 4, 4)}, {"unit": "nm"}):  # nothing is made up
        path = write_labels(tmp_path / "b.zarr", stack, **options)
        assert not any("unit" in axis for axis in axes_of(path))
        assert open_volume(path).unit is None


@pytest.mark.parametrize("suffix", [".tif", ".ome.zarr", ".h5", ".npz", ".h5:a"])
@pytest.mark.parametrize("dtype", ["u2", "i8"])
def test_units_come_back(tmp_path, suffix, dtype):
    labels = np.ones((2, 3, 4), dtype)
    source = f"{tmp_path / 'a'}{suffix}"
    write_labels(source, labels, spacing=(40, 4, 5), unit="nm")
    assert (open_volume(source).spacing, open_volume(source).unit) == (
        (0.04, 0.004, 0.005),
        "micrometer",
    )
    write_labels(source, labels, spacing=(40, 4, 5))
    assert (open_volume(source).spacing, open_volume(source).unit) == ((40.0, 4.0, 5.0), None)
    write_labels(source, Volume(labels, (0.04, 1, 1), unit="micrometer"))
    assert open_volume(source).unit == "micrometer"
    with refuses("unit", SetOption("unit", "nm")):
        write_labels(source, labels, spacing=(40, 4, 5), unit="furlong")


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


def test_hdf5_without_a_key_does_not_take_others_with_it(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["raw"] = np.arange(3)
        file["stack"] = np.zeros(2)
    with refuses("path", "a.h5:labels, or choose another file"):
        write_labels(path, SQUARE)
    np.testing.assert_array_equal(open_volume(f"{path}:raw").load(), [0, 1, 2])


def test_hdf5_keeps_groups_attributes_and_size(tmp_path):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["note"] = "keep"
        file.create_group("empty")
    for value in (1, 2):
        write_labels(f"{path}:seg/labels", SQUARE + np.uint32(value), spacing=(2, 1))
    with h5py.File(path) as file:
        assert file.attrs["note"] == "keep"
        assert "empty" in file
        assert file["seg/labels"].attrs["element_size_um"].tolist() == [2.0, 1.0]
    np.testing.assert_array_equal(open_volume(f"{path}:seg/labels").load(), SQUARE + 2)
    assert path.stat().st_size < 2**15  # the room that was taken beforehand is given back


@pytest.mark.parametrize(
    ("key", "refusal"),
    [
        ("stack/x", ("path", "choose another key")),
        ("group", ("path", "choose another key")),
    ],
)
def test_hdf5_keys_that_cannot_be(tmp_path, key, refusal):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["stack"] = np.arange(3)
        file["group/inner"] = np.arange(3)
    before = path.read_bytes()
    with refuses(*refusal):
        write_labels(f"{path}:{key}", SQUARE)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.h5"]


# What is there already ----------------------------------------------------------------------


def tree_of(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def raw_and_boundary(path):
    import zarr

    group = zarr.create_group(str(path))
    group.create_array("raw", data=SQUARE)
    group.create_array("boundary", data=SQUARE)


def labels_and(extra):
    def make(path):
        write_labels(path, SQUARE)
        (path / extra).parent.mkdir(parents=True, exist_ok=True)
        (path / extra).write_text("important")

    return make


def image_not_labels(path):
    write_labels(path, SQUARE)
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text.replace('"image-label"', '"rendering"'))


def floats(path):
    write_labels(path, SQUARE)
    text = (path / "0" / "zarr.json").read_text()
    (path / "0" / "zarr.json").write_text(text.replace('"uint32"', '"float32"'))


def bare_array(path):
    import zarr

    zarr.create_array(str(path), data=SQUARE)


def no_zarr(path):
    path.mkdir()
    (path / "important.txt").write_text("important")


@pytest.mark.parametrize(
    "make",
    [
        raw_and_boundary, image_not_labels, floats, bare_array, no_zarr, labels_and("notes.txt"),
        labels_and("labels/cells/zarr.json"), labels_and("0/notes.txt"), labels_and("0/c/0/a.csv"),
    ],
)  # fmt: skip
def test_a_zarr_that_holds_more_than_labels_stays(tmp_path, make):
    path = tmp_path / "a.zarr"
    make(path)
    before = tree_of(tmp_path)
    with refuses("path", "choose another name, or remove it first"):
        write_labels(path, SQUARE + np.uint32(1))
    assert tree_of(tmp_path) == before


def test_an_empty_folder_may_become_a_zarr(tmp_path):
    (tmp_path / "a.zarr").mkdir()
    np.testing.assert_array_equal(
        open_volume(write_labels(tmp_path / "a.zarr", SQUARE)).load(), SQUARE
    )


@pytest.mark.parametrize("suffix", [".tif", ".h5", ".h5:key", ".npz", ".npy", ".png"])
@pytest.mark.parametrize("empty", [True, False])
def test_a_folder_is_never_replaced_by_a_file(tmp_path, suffix, empty):
    folder = tmp_path / ("planes" + suffix.partition(":")[0])
    folder.mkdir()
    if not empty:
        (folder / "0.tif").write_text("important")
    before = tree_of(tmp_path)
    with refuses("path", "name a file to write"):
        write_labels(f"{tmp_path / 'planes'}{suffix}", SQUARE)
    assert tree_of(tmp_path) == before
    assert os.listdir(tmp_path) == [folder.name]


def test_replacing_refuses_folders_and_devices_by_itself(tmp_path):
    (tmp_path / "vic").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "vic", target_is_directory=True)
    for target in (tmp_path / "vic", tmp_path / "link"):
        with refuses("path", "name a file to write"), replacing(target):
            raise AssertionError("nothing must be written")
    if os.name == "posix":
        with refuses("path", "choose another name"), replacing(Path("/dev/null")):
            raise AssertionError("nothing must be written")


def test_a_file_is_not_replaced_by_a_zarr(tmp_path):
    (tmp_path / "a.zarr").write_text("important")
    with refuses("path", "choose another name"):
        write_labels(tmp_path / "a.zarr", SQUARE)
    assert (tmp_path / "a.zarr").read_text() == "important"


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path, suffix):
    (tmp_path / "data").mkdir()
    real = write_labels(tmp_path / "data" / f"a{suffix}", SQUARE)
    link = tmp_path / f"link{suffix}"
    link.symlink_to(real, target_is_directory=real.is_dir())
    write_labels(link, SQUARE + np.uint32(1))
    assert link.is_symlink()
    np.testing.assert_array_equal(open_volume(real).load(), SQUARE + 1)
    assert os.listdir(tmp_path / "data") == [real.name]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "free some space, or choose another folder"),
        (errno.EACCES, "check the permissions, or choose another folder"),
    ],
)
def test_the_advice_fits_and_names_no_temporary(tmp_path, number, words):
    target = tmp_path / "t.csv"
    with refuses("path", words), replacing(target) as temporary:
        raise OSError(number, "", str(temporary))
    with pytest.raises(InvalidInput) as caught, replacing(target) as temporary:
        raise OSError(f"cannot create {temporary}")  # as h5py has it
    assert "partial" not in str(caught.value)
    with refuses("path", words) as caught, replacing(target) as outer, replacing(outer):
        raise OSError(number, "no")
    assert "partial" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs RLIMIT_FSIZE")
def test_a_full_disk_ends_in_words_not_in_a_crash(tmp_path):
    """No file may grow beyond 64 kB in the other process, which is as good as a full disk."""
    sources = ["new.h5", "old.h5:labels", "a.npy", "a.zarr", "a.tif"]
    with h5py.File(tmp_path / "old.h5", "w") as file:
        file["raw"] = np.arange(10)
    before = tree_of(tmp_path)
    program = (
        "import resource, signal, sys, numpy as np\n"
        "from napari_agglo.volumes import write_labels\n"
        "from napari_agglo.errors import InvalidInput\n"
        "import h5py, zarr, tifffile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "labels = np.random.default_rng(0).integers(0, 2**31, (200, 200))\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n        write_labels(path, labels)\n"
        "    except InvalidInput as error:\n        print(error)\n"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, *(str(tmp_path / source) for source in sources)],
        capture_output=True, text=True, check=False, env=environment,
        cwd=Path(__file__).parents[2], timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    for source, line in zip(sources, done.stdout.splitlines(), strict=True):
        assert line.startswith(str(tmp_path / source.partition(":")[0]))
        assert "cannot be written (File too large); an existing file is unchanged" in line
    assert tree_of(tmp_path) == before


# Faults -------------------------------------------------------------------------------------


def test_another_suffix_takes_the_old_place(tmp_path):
    """A Zarr folder may be replaced by itself, over and over."""
    for value in (1, 2):
        path = write_labels(tmp_path / "a.zarr", np.full((2, 2), value))
    assert open_volume(path).load().max() == 2
    assert os.listdir(tmp_path) == ["a.zarr"]


@pytest.mark.parametrize("suffix", [".tif", ".zarr", ".h5", ".h5:key", ".npz", ".npy", ".png"])
@pytest.mark.parametrize("broken", ["fsync", "replace"])
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
        with refuses("path", "free some space, or choose another folder"):
            write_labels(source, SQUARE + np.uint32(1))
    assert sorted(os.listdir(tmp_path)) == before
    if existing:
        np.testing.assert_array_equal(open_volume(source).load(), SQUARE)


def test_the_second_rename_of_a_folder_fails(tmp_path):
    path = write_labels(tmp_path / "a.zarr", SQUARE)
    disk = Disk(1, errno.EACCES, only="rename")
    with disk.in_use(), refuses("path", "check the permissions, or choose another"):
        write_labels(path, SQUARE + np.uint32(1))
    assert disk.calls == 3, "the old folder went back"
    assert os.listdir(tmp_path) == ["a.zarr"]
    np.testing.assert_array_equal(open_volume(path).load(), SQUARE)


@pytest.mark.parametrize("suffix", [".tif", ".zarr"])
def test_every_system_call_may_fail(tmp_path, suffix):
    """The file is the old or the new one, whole, whichever call of those that place it fails."""
    path = write_labels(tmp_path / f"a{suffix}", SQUARE)
    for k in itertools.count():
        disk, error = Disk(k, errno.EIO), None
        try:
            with disk.in_use():
                write_labels(path, SQUARE + np.uint32(1))
        except InvalidInput as refusal:
            error = refusal
        content = open_volume(path).load()
        assert (content == SQUARE).all() or (content == SQUARE + 1).all()
        if error is not None:  # and the message tells which of the two it is
            assert ("unchanged" in error.problem) == (content == SQUARE).all()
            assert ("is written" in error.problem) == (content == SQUARE + 1).all()
            assert error.argument == "path"
            assert error.remedy is not None
        if not disk.failed:
            break
        write_labels(path, SQUARE)
    assert k > 4, "test invalid: nothing failed"
    assert (content == SQUARE + 1).all()


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
    ("name", "labels", "refusal"),
    [
        ("a.xyz", SQUARE, ("path", "end it in .tif, .tiff, .ome.zarr, .zarr")),
        ("a", SQUARE, ("path", "end it in .tif, .tiff, .ome.zarr, .zarr")),
        ("no/such/a.tif", SQUARE, ("path", "no/such first")),
        ("a.png", SQUARE[None], ("path", "write .tif")),
        ("a.png", SQUARE * np.uint32(1000), ("path", "write .tif")),
        ("a.tif", np.zeros((0, 3), np.uint8), ("path", "write .npz or .zarr")),
        ("a.tif", SQUARE / 2, ("labels", ConvertTo("int64", "if it holds whole numbers"))),
    ],
)
def test_refusals(tmp_path, name, labels, refusal):
    with refuses(*refusal):
        write_labels(tmp_path / name, labels)
    assert os.listdir(tmp_path) == []


def test_spacing_must_fit(tmp_path):
    with refuses("spacing", SetOption("spacing", (1.0, 1.0), when="if it is not known")):
        write_labels(tmp_path / "a.tif", SQUARE, spacing=(1, 2, 3))


def test_swapped_arguments_are_told(tmp_path):
    with refuses("path", "call write_labels(path, labels)", facts=("`labels` is a path",)):
        write_labels(SQUARE, tmp_path / "a.tif")
    with refuses("path", "call write_labels(path, labels)", facts=("ndarray",)):
        write_labels(SQUARE, SQUARE)
