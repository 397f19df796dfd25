"""Several gold standards of one image: every command gives the mean over them."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil

import h5py
import numpy as np
import pytest
import tifffile

PIPELINE = ["--superpixels", "superpixels.tif", "--cues", "boundary=boundary.tif"]


@pytest.fixture
def two(files):
    """Write what a second person says: the upper object is two; nothing of what is below."""
    gold = np.zeros((4, 6), np.uint16)
    gold[:2, :3], gold[:2, 3:] = 1, 2
    tifffile.imwrite("other.tif", gold)
    tifffile.imwrite("none.tif", np.zeros((4, 6), np.uint16))
    return ["--gold", "gold.tif", "--gold", "other.tif"]


def test_evaluate(run, two):
    def measures(*golds):
        status, out, err = run("evaluate", "superpixels.tif", *golds, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)

    one, other = measures("--gold", "gold.tif"), measures("--gold", "other.tif")
    assert one["vi"] > 0 == other["vi"], "test invalid"
    both = measures(*two)
    assert both == {name: pytest.approx((one[name] + other[name]) / 2) for name in one}
    _, out, _ = run("evaluate", *two, "superpixels.tif")  # the labels may come last
    assert ["voxels", "16.5000"] in [line.split() for line in out.splitlines()]


def test_edits_of_small_overlaps_are_none(run, refused, files):
    arguments = ["evaluate", "superpixels.tif", "--gold", "gold.tif", "--json", "--min-overlap"]
    assert json.loads(run(*arguments, "6")[1])["edit_distance"] == 1
    assert json.loads(run(*arguments, "7")[1])["edit_distance"] == 0
    message = refused(*arguments, "0")
    assert message.argument == "min_overlap"
    assert "--min-overlap 1" in message


def test_the_breakdown_is_of_the_first_and_only_written_if_all_are_good(run, refused, two):
    assert run("evaluate", "superpixels.tif", *two, "--breakdown", "e.csv")[0] == 0
    with open("e.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 3 + 4
    arguments = ["evaluate", "superpixels.tif", *two, "--gold", "none.tif", "--breakdown", "f.csv"]
    message = refused(*arguments)
    assert (message.argument, "none.tif" in message) == ("gold[2]", True)
    assert not os.path.exists("f.csv")


def test_curve(run, refused, two):
    def vi(*golds):
        return json.loads(run("curve", *PIPELINE, *golds, "--json")[1])["superpixels"]["vi"]

    expected = (vi("--gold", "gold.tif") + vi("--gold", "other.tif")) / 2
    assert vi("--gold", "gold.tif", "other.tif") == vi(*two) == pytest.approx(expected)
    out = run("curve", *PIPELINE, *two)[1]
    assert re.findall(r"\d+", out.splitlines()[-1]) == ["21", "2"]  # voxels, gold standards
    message = refused("curve", *PIPELINE, *two, "--gold", "none.tif")
    assert (message.argument, "none.tif" in message) == ("gold[2]", True)


def test_each(run, two):
    for folder in ("one", "two"):
        os.mkdir(folder)
        for file in ("superpixels.tif", "gold.tif", "other.tif"):
            shutil.copy(file, folder)
    golds = ["--gold", "*/gold.tif", "--gold", "*/other.tif"]
    status, out, _ = run("evaluate", "*/superpixels.tif", *golds, "--each", "--json")
    assert status == 0
    assert json.loads(out)["mean"]["voxels"] == 16.5


@pytest.mark.parametrize("command", ["curve", "report"])
@pytest.mark.parametrize("policy", ["nowhere.npz", "other cues.npz"])
def test_a_policy_that_cannot_be_used_is_told_once_before_the_work(
    run, refused, two, command, policy
):
    for folder, source in (("s", "superpixels"), ("b", "boundary"), ("g", "gold")):
        os.mkdir(folder)
        for name in ("one", "two"):
            shutil.copy(f"{source}.tif", f"{folder}/{name}.tif")
    if policy == "other cues.npz":
        train = ["train", *PIPELINE[:2], "--cues", "wall=boundary.tif", "--gold", "gold.tif"]
        assert run(*train, "--strategy", "flat", "--preset", "minimal", "-o", policy)[0] == 0
    arguments = ["--superpixels", "s", "--cues", "boundary=b", "--gold", "g", "--each", "-o", "out"]
    assert policy in refused(command, *arguments, "--policy", policy)
    assert not os.path.exists("out")


def test_a_gold_of_another_crop_is_noticed(run, files):
    """Where files state their place: offset and resolution, as in CREMI and funlib."""
    for name, offset in (("superpixels", (0, 400)), ("gold", (0, 480)), ("same", (0, 400))):
        with h5py.File(f"{name}.h5", "w") as file:
            file["stack"] = tifffile.imread("gold.tif" if name == "same" else f"{name}.tif")
            file["stack"].attrs.update(offset=offset, resolution=(4, 4))
    command = ("evaluate", "superpixels.h5", "--gold")
    status, out, err = run(*command, "gold.h5")
    assert status == 0
    assert "vi" in out
    assert err.count("\n") == 1
    assert all(place in err for place in ("(0, 100)", "(0, 120)"))
    assert run(*command, "same.h5")[2] == run(*command, "gold.tif")[2] == ""
