"""Refusals that come before anything is read or computed, and options that commands share."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tifffile
import zarr

import napari_agglo as agglo

ROOMS = ("--superpixels", "superpixels.tif", "--cues", "boundary.tif")


@pytest.fixture
def no_work(monkeypatch):
    """Fail as soon as the progress of work is shown."""

    def work(*arguments):
        raise AssertionError("the work has begun")

    monkeypatch.setattr("napari_agglo.cli._terminal.Console.progress", work)


def test_a_folder_with_other_arrays_is_refused_before_the_work(refused, files, no_work):
    group = zarr.open_group("other.zarr", mode="w")
    for name in "ab":
        group.create_array(name, data=np.zeros((2, 2)))
    assert "other.zarr" in refused("oversegment", "boundary.tif", "-o", "other.zarr")
    assert "other.zarr" in refused("segment", *ROOMS, "-o", "other.zarr")


def test_a_session_that_exists_is_refused_before_the_work(refused, files, no_work):
    (files / "a.agglo").mkdir()
    assert "a.agglo" in refused("session", "create", "a.agglo", *ROOMS)


@pytest.mark.parametrize("gold", ["wide.npy", "float.npy"])
def test_golds_of_a_wrong_shape_or_type_are_refused_before_the_work(refused, files, no_work, gold):
    np.save("wide.npy", np.ones((4, 7), int))
    np.save("float.npy", np.ones((4, 6), float))
    message = refused("evaluate", "superpixels.tif", "--gold", gold)
    assert gold in message
    assert message.remedies


@pytest.mark.parametrize("golds", [["--gold", "gold.tif", "gold.tif"], ["--gold", "gold.tif"] * 2])
def test_several_golds_in_either_form(run, files, golds):
    status, one, _ = run("evaluate", "superpixels.tif", *golds, "--json")
    assert status == 0
    assert run("curve", *ROOMS, *golds, "-q")[0] == 0
    assert run("evaluate", *golds, "superpixels.tif", "--json")[1] == one  # the labels may be last


def test_a_session_is_evaluated_by_its_own_gold(run, refused, files):
    assert run("session", "create", "a.agglo", *ROOMS, "--gold", "gold.tif")[0] == 0
    status, out, _ = run("evaluate", "a.agglo", "--json")
    assert status == 0
    assert out == run("evaluate", "a.agglo", "--gold", "gold.tif", "--json")[1]
    assert run("session", "create", "b.agglo", *ROOMS)[0] == 0
    assert refused("evaluate", "b.agglo").argument == "gold"
    assert "--gold" in refused("evaluate", "superpixels.tif")


def test_a_session_begins_with_a_threshold_and_refuses_one_beyond(run, refused, files):
    assert run("session", "create", "a.agglo", *ROOMS, "--threshold", "0.25")[0] == 0
    assert json.loads(run("session", "info", "a.agglo", "--json")[1])["threshold"] == 0.25
    assert refused("session", "create", "b.agglo", *ROOMS, "--threshold", "7").argument


def test_an_unknown_option_is_named_beside_a_missing_one(refused, files):
    message = refused("oversegment", "boundary8.tif", "--ranges", "0:255")
    assert "-o" in message
    assert "--ranges" in message
    assert "'--range'" in message


def test_a_session_adapts_the_cues_to_the_training(run, files):
    boundary = np.kron(tifffile.imread("boundary.tif"), np.ones((8, 8))).astype("f4")
    noise = np.random.default_rng(0).random(boundary.shape).astype("f4")
    superpixels = agglo.oversegment(noise, min_size=4)
    tifffile.imwrite("s.tif", superpixels.astype(np.uint16))
    tifffile.imwrite("g.tif", np.kron(tifffile.imread("superpixels.tif"), np.ones((8, 8), "u2")))
    for name, cue in (("b", boundary), ("w", 0.3 * boundary)):
        tifffile.imwrite(f"{name}.tif", cue.astype("f4"))
    data = ("--superpixels", "s.tif", "--cues")
    learned = ("--preset", "minimal", "--strategy", "flat", "-o", "p.npz")
    assert run("train", *data, "b.tif", "--gold", "g.tif", *learned)[0] == 0
    create = ("session", "create")
    status, _, said = run(*create, "a.agglo", *data, "w.tif", "--policy", "p.npz")
    assert status == 0
    assert "warning" in said
    assert "--adapt" in said
    status, _, said = run(*create, "b.agglo", *data, "w.tif", "--policy", "p.npz", "--adapt")
    assert status == 0
    assert "warning" not in said
    assert ": boundary" in said
