"""Mappings of other programs on the command line: to a label image, and to a session."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import tifffile

import napari_agglo as agglo

UPPER = {"name": "rooms", "classes": [[1, 2], [3], [4]]}


@pytest.fixture
def mapping(files):
    """Write a mapping that joins the two upper rooms."""
    Path("mapping.json").write_text(json.dumps(UPPER))
    np.savez("lut.npz", fragment_segment_lut=np.array([[1, 2, 3, 4], [10, 10, 30, 40]]))
    expected = tifffile.imread("superpixels.tif").copy()
    expected[expected == 2] = 1
    return expected


def same_partition(first, second):
    pairs = {*zip(np.ravel(first).tolist(), np.ravel(second).tolist(), strict=True)}
    return len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize("file", ["mapping.json", "lut.npz"])
def test_a_mapping_makes_a_label_image_with_its_record(run, mapping, file):
    words = ("mapping", file, "--superpixels", "superpixels.tif", "-o", "labels.tif", "--json")
    status, out, err = run(*words)
    assert (status, err, json.loads(out)["segments"]) == (0, "", 3)
    assert same_partition(tifffile.imread("labels.tif"), mapping)
    record = json.loads(Path("labels.tif.json").read_text())
    assert record["inputs"].keys() == {file, "superpixels.tif"}


def test_superpixels_that_a_mapping_does_not_have(run, refused, mapping):
    Path("part.json").write_text(json.dumps({"classes": [[1, 2]]}))
    words = ("mapping", "part.json", "--superpixels", "superpixels.tif", "-o", "labels.tif")
    message = refused(*words, "--unmapped", "refuse")
    assert (message.argument, "--unmapped keep" in message) == ("mapping", True)
    assert run(*words, "--unmapped", "zero")[0] == 0
    assert set(np.unique(tifffile.imread("labels.tif"))) == {0, 1}
    assert run(*words)[0] == 0
    assert same_partition(tifffile.imread("labels.tif"), mapping)
    assert "gone.json" in refused(
        "mapping", "gone.json", "--superpixels", "superpixels.tif", "-o", "labels.tif"
    )


@pytest.mark.parametrize("cues", [("--cues", "boundary.tif"), ()])
def test_a_session_starts_from_a_mapping(run, mapping, cues):
    words = ("--superpixels", "superpixels.tif", "--mapping", "mapping.json", "--gold", "gold.tif")
    status, out, err = run("session", "create", "a.agglo", *words, *cues, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == {"session": "a.agglo", "superpixels": 4, "segments": 3}
    with agglo.Session.open("a.agglo") as session:
        assert same_partition(session.labels(), mapping)
        assert session.errors.has_gold
        assert ("cue boundary" in session.sources) == bool(cues)
        session.merge(3, 4)  # and can be edited
        assert len(session.segments) == 2


def test_a_session_starts_from_labels_of_another_tool(run, mapping):
    theirs = mapping.copy()
    theirs[:, 0] = 99  # crosses the superpixels 1 and 3
    tifffile.imwrite("theirs.tif", theirs)
    words = ("--segmentation", "theirs.tif")
    assert run("session", "create", "alone.agglo", *words)[0] == 0
    more = ("--superpixels", "superpixels.tif", "--cues", "boundary.tif")
    status, _, err = run("session", "create", "fine.agglo", *words, *more)
    assert status == 0
    assert re.search(r"\b4\b.*\b6\b", err)
    for name in ("alone.agglo", "fine.agglo"):
        with agglo.Session.open(name, read_only=True) as session:
            assert same_partition(session.labels(), theirs)


def test_a_session_of_superpixels_and_cues_starts_with_the_policy(run, files):
    words = ("--superpixels", "superpixels.tif", "--cues", "boundary=boundary.tif")
    assert run("session", "create", "cells.agglo", *words, "-q")[0] == 0
    graph = agglo.region_graph(tifffile.imread("superpixels.tif"), tifffile.imread("boundary.tif"))
    with agglo.Session.open("cells.agglo", read_only=True) as session:
        expected = agglo.agglomerate(graph).segment(session.threshold)
        assert same_partition(session.labels(), expected)


def test_options_that_are_not_enough_are_refused(refused, mapping):
    assert "--superpixels" in refused("session", "create", "a.agglo")
    assert "--cues" in refused("session", "create", "a.agglo", "--superpixels", "superpixels.tif")
    both = refused(
        "session", "create", "a.agglo", "--superpixels", "superpixels.tif",
        "--mapping", "mapping.json", "--segmentation", "gold.tif",
    )  # fmt: skip
    assert all(option in both for option in ("--mapping", "--segmentation"))
    assert not Path("a.agglo").exists()
