"""No output replaces an input, and an output that cannot be written is refused before the work."""

from __future__ import annotations

import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from refusals import refuses

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import create_levels, open_volume, plan_image, write_labels

PIPELINE = ["--superpixels", "superpixels.tif", "--cues", "boundary=boundary.tif"]


def contents():
    return {p.name: p.read_bytes() for p in Path().iterdir() if p.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        "oversegment boundary.tif -o boundary.tif",
        "oversegment boundary.tif -o ./sub/../boundary.tif",
        "oversegment boundary.tif -o link.tif",
        "oversegment boundary.tif --mask gold.tif -o gold.tif",
        "segment --superpixels superpixels.tif --cues boundary.tif -o superpixels.tif",
        "segment --superpixels superpixels.tif --cues boundary.tif -o boundary.tif",
        "segment --superpixels superpixels.tif --cues boundary.tif -o l.tif --tree boundary.tif",
        "curve --superpixels superpixels.tif --cues boundary.tif --gold gold.tif -o gold.tif",
    ],
)
def test_an_input_is_never_replaced(refused, files, arguments):
    os.mkdir("sub")
    os.symlink("boundary.tif", "link.tif")
    before = contents()
    message = refused(*arguments.split())
    assert message.argument == ("--tree" if "--tree" in arguments else "-o")
    assert message.remedies
    assert contents() == before


def test_two_outputs_of_one_name(refused, files):
    message = refused("segment", *PIPELINE, "-o", "m.tif", "--tree", "./m.tif")
    assert message.argument == "--tree"
    assert all(words in message for words in ("./m.tif", "-o"))
    assert not os.path.exists("m.tif")


def test_hdf5_another_dataset_of_the_file_that_is_read(run, refused, files):
    boundary = open_volume("boundary.tif").load()
    with h5py.File("a.h5", "w") as file:
        file["boundary"] = boundary
    for source in ("a.h5", "a.h5:boundary", "a.h5:/boundary"):
        for output in ("a.h5:boundary", "a.h5"):
            message = refused("oversegment", source, "-o", output)
            assert (message.argument, f"BOUNDARY {source}," in message) == ("-o", True)
    assert run("oversegment", "a.h5:boundary", "-o", "a.h5:superpixels")[0] == 0
    assert (open_volume("a.h5:boundary").load() == boundary).all()
    assert open_volume("a.h5:superpixels").shape == (4, 6)


def test_zarr_the_store_that_is_read(run, refused, files):
    assert run("oversegment", "boundary.tif", "-o", "s.zarr")[0] == 0
    segment = ["segment", "--cues", "boundary=boundary.tif", "--superpixels"]
    for source in ("s.zarr", "s.zarr:0", "s.zarr/0"):
        message = refused(*segment, source, "-o", "s.zarr")
        assert (message.argument, f"--superpixels {source}," in message) == ("-o", True)
    message = refused(*segment, "s.zarr", "-o", "s.zarr/0/l.tif")
    assert (message.argument, "--superpixels s.zarr," in message) == ("-o", True)
    assert run("oversegment", "boundary.tif", "-o", "s.zarr")[0] == 0  # a result may be replaced


def test_a_precomputed_folder_is_written_and_replaced(run, refused, files):
    words = ["segment", *PIPELINE, "-o", "l.precomputed"]
    for _ in range(2):
        assert run(*words)[0] == 0
    assert open_volume("l.precomputed").dtype == np.uint64
    assert run("segment", *PIPELINE, "-o", "l.tif")[0] == 0
    assert np.array_equal(open_volume("l.tif").load(), open_volume("l.precomputed").load())
    os.mkdir("other.precomputed")
    message = refused("segment", *PIPELINE, "-o", "other.precomputed")
    assert (message.argument, "folder" in message) == ("-o", True)


def test_labels_of_a_zarr_without_an_image_are_refused_with_a_way_that_works(run, refused, files):
    group = zarr.open_group("vol.zarr", mode="w")
    group.create_array("boundary", data=open_volume("boundary.tif").load())
    for output in ("vol.zarr:segments", "vol.zarr:labels/segments", "vol.zarr:a/b"):
        message = refused("oversegment", "vol.zarr:boundary", "-o", output)
        assert (message.argument, "no OME-Zarr image" in message) == ("-o", True)
        assert "NAME.ome.zarr" in message
    with refuses("path", "NAME.ome.zarr", facts=("no OME-Zarr image",)):
        write_labels("vol.zarr:segments", np.ones((2, 3), int))


def test_labels_are_added_to_the_image_that_is_read(run, refused, files):
    image = plan_image("i", (4, 6), (1.0, 1.0), version="0.5")
    boundary = open_volume("boundary.tif").load()
    create_levels(Path("i.ome.zarr"), image, boundary.dtype)
    zarr.open_array("i.ome.zarr/0", mode="r+")[...] = boundary
    for _ in range(2):
        assert run("oversegment", "i.ome.zarr", "-o", "i.ome.zarr:labels/s")[0] == 0
    assert open_volume("i.ome.zarr:labels/s").shape == (4, 6)
    assert np.array_equal(open_volume("i.ome.zarr").load(), boundary)
    segment = ["segment", "--cues", "i.ome.zarr", "--superpixels", "i.ome.zarr:labels/s"]
    assert run(*segment, "-o", "i.ome.zarr:labels/t")[0] == 0
    for source in ("i.ome.zarr:labels/s", "i.ome.zarr:labels/s/0"):
        segment[-1] = source
        message = refused(*segment, "-o", "i.ome.zarr:labels/s")
        assert (message.argument, f"--superpixels {source}," in message) == ("-o", True)


def test_a_plane_of_the_stack_that_is_read(refused, files):
    os.mkdir("planes")
    for plane in range(3):
        tifffile.imwrite(f"planes/{plane}.tif", np.zeros((3, 4), np.float32))
    for source in ("planes", "planes/*.tif"):
        message = refused("oversegment", source, "-o", "planes/1.tif")
        assert (message.argument, f"BOUNDARY {source}," in message) == ("-o", True)


@pytest.fixture
def idle(monkeypatch):
    """Any work is a failure of the test."""

    def work(*arguments, **options):
        raise AssertionError("this should have been refused before the work")

    monkeypatch.setattr("napari_agglo.superpixels.oversegment", work)
    monkeypatch.setattr("napari_agglo.graph.region_graph", work)


@pytest.mark.parametrize(
    ("output", "named"),
    [
        ("s.jpg", "add .tif"),
        ("s.tif:0", "add .tif"),
        ("s.h5:", "KEY"),
        ("gold.h5:a", "HDF5"),
        ("no/s.tif", f"{os.sep}no;"),
        ("folder.tif", "folder"),
        ("folder.zarr", "folder"),
        ("s.png", "3 axes"),
    ],
)
def test_labels_that_could_not_be_written(refused, files, idle, output, named):
    os.mkdir("folder.tif")
    os.mkdir("folder.zarr")
    os.rename("gold.tif", "gold.h5")
    tifffile.imwrite("volume.tif", np.zeros((2, 3, 5), np.float32))
    commands = [["oversegment", "volume.tif"]]
    tifffile.imwrite("labels.tif", np.ones((2, 3, 5), np.uint16))
    pipeline = ["--superpixels", "labels.tif", "--cues", "volume.tif"]
    for command in (*commands, ["segment", *pipeline]):
        message = refused(*command, "-o", output)
        assert (message.argument, bool(message.remedies)) == ("-o", True)
        assert named in message.line.removeprefix(f"napari-agglo: -o {output}: ")


@pytest.mark.parametrize("table", ["no/t.csv", "folder"])
def test_tables_that_could_not_be_written(refused, files, idle, table):
    os.mkdir("folder")
    message = refused("segment", *PIPELINE, "-o", "l.tif", "--tree", table)
    assert (message.argument, f"--tree {table}: " in message) == ("--tree", True)
    message = refused("curve", *PIPELINE, "--gold", "gold.tif", "-o", table)
    assert (message.argument, f"-o {table}: " in message) == ("-o", True)


def test_a_folder_that_may_not_be_written_to(refused, files, idle, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    for command in (
        ["oversegment", "boundary.tif", "-o", "s.tif"],
        ["curve", *PIPELINE, "--gold", "gold.tif", "-o", "c"],
    ):
        message = refused(*command)
        assert (message.argument, str(files) in message) == ("-o", True)


@pytest.mark.parametrize(
    "failing", ["napari_agglo.volumes.write_labels", "pandas.DataFrame.to_csv"]
)
def test_both_outputs_or_none(refused, files, monkeypatch, failing):
    def fail(*arguments, **options):
        raise InvalidInput("disk full")

    monkeypatch.setattr(failing, fail)
    before = sorted(os.listdir())
    refused("segment", *PIPELINE, "-o", "l.tif", "--tree", "t.csv")
    assert sorted(os.listdir()) == before


def test_if_the_second_cannot_take_its_place_it_says_what_was_written(refused, files, monkeypatch):
    real = os.replace

    def replace(source, target):
        if str(target).endswith("t.csv"):
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    message = refused("segment", *PIPELINE, "-o", "l.tif", "--tree", "t.csv")
    assert message.argument == "path"
    assert all(name in message for name in ("t.csv", "l.tif"))
    assert os.path.exists("l.tif")
