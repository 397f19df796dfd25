"""``--unit``: the unit of the lengths of a command, and of the spacing that it writes."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import tifffile
import zarr

from napari_agglo import blocks
from napari_agglo.session import Session
from napari_agglo.volumes import open_volume, write_labels

INPUTS = ("--superpixels", "superpixels.tif", "--cues", "boundary.tif")


def spacing_in(path):
    """Return the numbers of an OME-Zarr, and their unit."""
    image = json.loads((path / "zarr.json").read_text())["attributes"]["ome"]["multiscales"][0]
    (unit,) = {axis.get("unit") for axis in image["axes"]}
    return image["datasets"][0]["coordinateTransformations"][0]["scale"], unit


def test_a_spacing_in_nanometres_is_one(run, files):
    """The numbers of a command are the same in files, sessions, exports and block-wise runs."""
    given = ("--spacing", "30,6", "--unit", "nm")
    assert run("segment", *INPUTS, *given, "-o", "a.ome.zarr")[0] == 0
    assert spacing_in(files / "a.ome.zarr") == ([30.0, 6.0], "nanometer")
    assert run("session", "create", "s.agglo", *INPUTS, *given)[0] == 0
    with Session.open("s.agglo", read_only=True) as session:
        assert (session.graph.spacing, session.graph.unit) == ((0.03, 0.006), "micrometer")
    assert run("export", "s.agglo", "labels", "-o", "b.ome.zarr", "--option", "unit=nm")[0] == 0
    assert spacing_in(files / "b.ome.zarr") == ([30.0, 6.0], "nanometer")
    assert run("segment", "s.agglo", "-o", "c.ome.zarr", "--unit", "mm")[0] == 0
    assert spacing_in(files / "c.ome.zarr") == ([3e-5, 6e-6], "millimeter")
    assert run("segment", "s.agglo", "-o", "d.ome.zarr")[0] == 0
    assert spacing_in(files / "d.ome.zarr") == ([0.03, 0.006], "micrometer")
    status, text, _ = run("session", "info", "s.agglo", "--json")
    assert (status, json.loads(text)["unit"]) == (0, "micrometer")


def test_files_that_state_a_unit_are_converted(run, files):
    labels = open_volume("superpixels.tif").load()
    write_labels("named.ome.zarr", labels, spacing=(0.03, 0.006), unit="um")
    inputs = ("--superpixels", "named.ome.zarr", "--cues", "boundary.tif")
    assert run("segment", *inputs, "--unit", "nm", "-o", "a.ome.zarr")[0] == 0
    assert spacing_in(files / "a.ome.zarr") == ([30.0, 6.0], "nanometer")
    status, _, said = run("oversegment", "boundary.tif", "--spacing", "30,6", "-o", "b.ome.zarr")
    assert (status, said) == (0, "")
    assert spacing_in(files / "b.ome.zarr") == ([30.0, 6.0], None)


def test_other_lengths_are_in_the_unit(run, files):
    """A map of borders falls off over the same distance, in whichever unit it is given."""
    labels = open_volume("superpixels.tif").load()
    write_labels("named.tif", labels, spacing=(0.03, 0.006), unit="um")
    assert run("cue", "--labels", "named.tif", "--width", "0.012", "-o", "um.tif")[0] == 0
    asked = ("--width", "12", "--unit", "nm")
    assert run("cue", "--labels", "named.tif", *asked, "-o", "nm.tif")[0] == 0
    one, two = open_volume("um.tif"), open_volume("nm.tif")
    np.testing.assert_allclose(one.load(), two.load(), rtol=1e-6)
    assert (one.spacing, one.unit) == (two.spacing, two.unit) == ((0.03, 0.006), "micrometer")


@pytest.mark.parametrize("stated", [True, False])
def test_a_plan_of_blocks_converts_too(run, files, stated):
    labels = open_volume("superpixels.tif").load()
    micrometres = {"spacing": (0.03, 0.006), "unit": "um"} if stated else {}
    write_labels("named.ome.zarr", labels, **micrometres)
    zarr.save_array("boundary.zarr", open_volume("boundary.tif").load())
    given = ("--unit", "nm") if stated else ("--unit", "nm", "--spacing", "30,6")
    status, _, error = run(
        "blocks", "plan", "out", "--cues", "boundary.zarr", "--superpixels", "named.ome.zarr",
        *given, "--block", "4,6",
    )  # fmt: skip
    assert status == 0, error
    assert run("blocks", "run", "out")[0] == 0
    result = blocks.open("out")
    assert (result.plan.spacing, result.plan.unit) == ((30.0, 6.0), "nanometer")
    assert (result.graph.spacing, result.graph.unit) == ((0.03, 0.006), "micrometer")
    assert spacing_in(files / "out" / "labels.ome.zarr") == ([30.0, 6.0], "nanometer")


def test_a_spacing_that_replaces_one_with_a_unit_says_so(run, files):
    boundary = tifffile.imread("boundary.tif")
    with h5py.File("b.h5", "w") as file:
        file["stack"] = boundary
        file["stack"].attrs["element_size_um"] = (0.03, 0.006)
    words = ("oversegment", "b.h5", "--spacing", "30,6", "-o", "s.ome.zarr")
    status, _, said = run(*words)
    assert (status, said.count("--unit nm"), "b.h5" in said) == (0, 1, True)
    assert spacing_in(files / "s.ome.zarr") == ([30.0, 6.0], None)
    assert run(*words, "--unit", "nm")[2] == ""
    plan = ("blocks", "plan", "r", "--cues", "b.h5", "--spacing", "30,6", "--dry-run")
    assert run(*plan)[2].count("--unit nm") == 1
    assert run(*plan, "--unit", "nm")[2] == ""
    assert spacing_in(files / "s.ome.zarr") == ([30.0, 6.0], "nanometer")
