"""Refusals of the command line name the file and the option that helps."""

from __future__ import annotations

import json
import math
import re

import h5py
import numpy as np
import pytest
import tifffile

from napari_agglo import evaluate
from napari_agglo.errors import PickIndex, SetOption
from napari_agglo.volumes import open_volume, write_labels

PYTHON = ("np.", "scipy", "astype", "Volume(", "ranges=", "value_range", "nan=", "seed=", "`", "[.")


def save(name, array, spacing=None):
    if spacing is None:
        tifffile.imwrite(name, array, photometric="minisblack")
    else:
        write_labels(name, array, spacing=spacing)


BOUNDARY = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6)
LABELS = np.arange(24).reshape(4, 6).astype(np.uint16)
WITH_NAN = np.where(BOUNDARY > 0.9, np.nan, BOUNDARY).astype(np.float32)


def segment(superpixels="superpixels.tif", cue="boundary.tif", *more):
    return ["segment", "--superpixels", superpixels, "--cues", cue, "-o", "out.tif", *more]


def test_floats_to_255(refused, files):
    save("prob.tif", 200 * BOUNDARY)
    message = refused(*segment(cue="prob.tif"))
    assert message.argument == "cues['boundary']"
    assert [one.value for one in message.remedies] == [(0, 255), (255, 0)]
    assert all(words in message for words in ("prob.tif", "[0, 1]"))
    assert "--range boundary=0:255" in message
    assert "--range boundary=255:0" in message
    assert "--range 0:255" in refused("oversegment", "prob.tif", "-o", "out.tif")
    mito = segment("superpixels.tif", "mito=prob.tif", "--policy", "random")
    assert "--range mito=0:255" in refused(*mito)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32])
def test_0_to_255_is_for_bytes_alone(refused, files, dtype):
    save("map.tif", (100 * BOUNDARY).astype(dtype))
    for message in (
        refused(*segment(cue="map.tif")),
        refused("oversegment", "map.tif", "-o", "o.tif"),
    ):
        assert "--range" in message
        assert "map.tif" in message
        assert "255" not in message.line.replace("65535", "")
        assert not any(word in message for word in PYTHON), message


def test_not_a_number(run, refused, files):
    save("nan.tif", WITH_NAN)
    message = refused(*segment(cue="nan.tif"))
    assert message.argument == "cues['boundary']"
    assert "nan.tif" in message
    assert "--nan boundary" in message
    assert run(*segment(cue="nan.tif"), "--nan", "boundary")[0] == 0
    assert "--nan boundary" in refused("oversegment", "nan.tif", "-o", "o.tif")
    assert run("oversegment", "nan.tif", "-o", "o.tif", "--nan", "boundary")[0] == 0


def test_an_axis_too_many(run, refused, files):
    save("extra.tif", BOUNDARY[None])
    with h5py.File("extra.h5", "w") as file:
        file["a"] = BOUNDARY[None, None]
    one, two = refused(*segment(cue="extra.tif")), refused(*segment(cue="extra.h5:a"))
    assert PickIndex((0,), 3) in one.remedies
    assert "extra.tif:0=0" in one
    assert PickIndex((0, 1), 4) in two.remedies
    assert "extra.h5:a,0=0,1=0" in two
    assert run(*segment(cue="extra.tif:0=0"))[0] == 0
    assert run(*segment(cue="extra.h5:a,0=0,1=0"))[0] == 0
    save("labels.npy.tif", LABELS[None])
    assert "labels.npy.tif:0=0" in refused("evaluate", "labels.npy.tif", "--gold", "gold.tif")


def test_colours(run, refused, files):
    np.save("rgb.npy", np.stack([BOUNDARY] * 3, axis=-1))
    message = refused(*segment(cue="rgb.npy"))
    assert PickIndex((2,), 3) in message.remedies
    assert len(message.remedies) == 2, "grey is the other way out"
    assert "rgb.npy:2=0" in message
    assert run(*segment(cue="rgb.npy:2=0"))[0] == 0
    np.save("rgb8.npy", np.zeros((4, 6, 3), np.uint8))
    message = refused("oversegment", "rgb8.npy", "-o", "o.tif", "--range", "0:255")
    assert "rgb8.npy:2=0" in message
    assert not any(word in message for word in PYTHON), message


def test_channels_that_are_not_named(run, refused, files):
    np.save("channels.npy", np.stack([BOUNDARY] * 2))
    message = refused(*segment(cue="channels.npy"))
    assert PickIndex((0,), 3) in message.remedies
    assert "channels.npy:0=0" in message
    assert run(*segment(cue="channels.npy:0=1"))[0] == 0


def test_swapped(refused, files):
    message = refused(*segment("boundary.tif", "superpixels.tif"))
    assert message.argument == "superpixels"
    assert all(option in message for option in ("--superpixels", "--cues"))


def test_masks(refused, files):
    np.save("mask.npy", BOUNDARY > 0.5)
    np.save("pieces.npy", np.array([[1, 0, 1]] * 2))
    np.save("floats.npy", BOUNDARY)
    oversegment_ = ["oversegment", "-o", "o.tif"]
    for message in (
        refused(*segment("mask.npy")),
        refused(*segment(cue="mask.npy")),
        refused(*segment("pieces.npy")),
        refused(*oversegment_, "mask.npy"),
        refused(*oversegment_, "boundary.tif", "--mask", "floats.npy"),
        refused(*oversegment_, "boundary.tif", "--seeds", "floats.npy"),
    ):
        assert not any(word in message for word in PYTHON), message
        assert ".npy" in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["oversegment", "boundary.tif", "-o", "o.tif", "--sigma", "-1"],
        ["oversegment", "boundary.tif", "-o", "o.tif", "--sigma", "nan"],
        ["oversegment", "boundary.tif", "-o", "o.tif", "--sigma", "2000"],
        ["oversegment", "boundary.tif", "-o", "o.tif", "--min-size", "-3"],
        ["oversegment", "boundary.tif", "-o", "o.tif", "--spacing", "1,1,1"],
        ["sample", "brain", "-o", "o"],
        ["sample", "cells2d", "--seed", "-1", "-o", "o"],
        ["demo", "--sample", "brain", "-o", "o"],
        ["evaluate", "", "--gold", "gold.tif"],
    ],
)
def test_options_go_by_their_names(refused, files, arguments):
    message = refused(*arguments)
    assert not any(word in message for word in PYTHON), message
    named = {"--sigma", "--min-size", "--spacing", "--seed", "--sample"} & set(arguments)
    assert all(option in message for option in named), message


def test_spacings_that_disagree(run, refused, files):
    save("fine.tif", LABELS, (1.0, 1.0))
    save("coarse.tif", LABELS, (2.0, 2.0))
    save("map.npz", LABELS, (2.0, 2.0))
    evaluate = ["evaluate", "fine.tif", "--gold", "coarse.tif"]
    message = refused(*evaluate)
    assert message.argument == "gold"
    assert SetOption("spacing", None, when="for all") in message.remedies
    assert all(words in message for words in ("fine.tif", "(1.0, 1.0)", "coarse.tif", "(2.0, 2.0)"))
    assert "--spacing" in message
    assert run(*evaluate, "--spacing", "1,1")[0] == 0
    ranged = ["--range", "0:24"]
    assert "spacing" in refused(*segment("fine.tif", "map.npz"), *ranged)
    assert run(*segment("fine.tif", "map.npz"), *ranged, "--spacing", "3,3")[0] == 0
    assert open_volume("out.tif").spacing == (3, 3)
    curve = ["curve", "--superpixels", "fine.tif", "--cues", "boundary.tif", "--gold", "coarse.tif"]
    message = refused(*curve)
    assert message.argument == "gold"
    assert all(words in message for words in ("coarse.tif", "(2.0, 2.0)"))
    masked = ["oversegment", "map.npz", *ranged, "--mask", "fine.tif", "-o", "o.tif"]
    message = refused(*masked)
    assert message.argument == "mask"
    assert "fine.tif" in message
    assert run(*masked, "--spacing", "1,1")[0] == 0


def test_nothing_to_compare(refused, files):
    save("none.tif", np.zeros((4, 6), np.uint8))
    message = refused("evaluate", "superpixels.tif", "--gold", "none.tif")
    assert message.argument == "gold"
    assert all(name in message for name in ("superpixels.tif", "none.tif"))
    refused("evaluate", "none.tif", "--gold", "gold.tif", "--ignore-labels")
    curve = ["curve", "--superpixels", "superpixels.tif", "--cues", "boundary.tif"]
    message = refused(*curve, "--gold", "none.tif")
    assert message.argument == "gold"
    assert "none.tif" in message


def test_no_superpixels(refused, files):
    save("none.tif", np.zeros((4, 6), np.uint8))
    message = refused(*segment("none.tif"))
    assert message.argument == "superpixels"
    assert "none.tif" in message
    assert "napari-agglo oversegment" in message


def test_the_best_threshold_can_be_typed_back(run, files):
    arguments = ["--superpixels", "superpixels.tif", "--cues", "boundary.tif"]
    _, out, _ = run("curve", *arguments, "--gold", "gold.tif")
    best = next(line.split() for line in out.splitlines() if line.startswith("best"))
    _, message, _ = run("segment", *arguments, "--threshold", best[1], "-o", "l.tif")
    assert f"{best[2]} segments" in message


def test_superpixels_that_are_best_have_a_threshold_unless_merges_begin_at_0(run, files):
    arguments = ["curve", "--superpixels", "superpixels.tif", "--gold", "superpixels.tif"]
    save("none.tif", np.zeros((4, 6), np.float32))
    for cue, typed in (("boundary.tif", "0.0"), ("none.tif", "none")):
        _, out, _ = run(*arguments, "--cues", cue)
        assert next(line.split()[1] for line in out.splitlines() if line[:4] == "best") == typed
    state = json.loads(run(*arguments, "--cues", "none.tif", "--json")[1])
    assert state["superpixels"]["threshold"] is None
    assert state["curve"][0]["threshold"] is None


def test_json_knows_no_infinity(run, files, monkeypatch):
    more = {"a": [-math.inf, {"b": math.nan}], "c": 1}
    real = evaluate.minimum
    monkeypatch.setattr(evaluate, "minimum", lambda curve: real(curve) | more)
    arguments = ["--superpixels", "superpixels.tif", "--cues", "boundary.tif"]
    _, out, _ = run("curve", *arguments, "--gold", "gold.tif", "--json")
    best = json.loads(out)["best"]
    assert (best["a"], best["c"]) == ([None, {"b": None}], 1)
    assert not {"Infinity", "NaN"} & set(re.findall(r"\w+", out))
