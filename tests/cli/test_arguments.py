from __future__ import annotations

import os
import shutil
import sys

import h5py
import pytest
import tifffile

from napari_agglo.errors import SetOption

SEGMENT = ["segment", "--superpixels", "superpixels.tif", "-o", "out.tif", "--cues"]


@pytest.mark.parametrize(
    ("text", "name", "source", "path"),
    [
        (r"C:\a b\m.h5:stack", "boundary", r"C:\a b\m.h5:stack", r"C:\a b\m.h5"),
        ("mito=a=b.tif", "mito", "a=b.tif", "a=b.tif"),
        ("./x=1/b.tif", "boundary", "./x=1/b.tif", "./x=1/b.tif"),
    ],
)
def test_a_drive_or_an_equals_sign_in_a_path(refused, files, text, name, source, path):
    missing = refused(*SEGMENT, text, "--policy", "random")
    assert missing.argument == "source"
    assert missing.line.startswith(f"napari-agglo: {path} ")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    if path.endswith(".h5"):
        with h5py.File(path, "w") as file:
            file["stack"] = tifffile.imread("boundary8.tif")
    else:
        shutil.copy("boundary8.tif", path)
    message = refused(*SEGMENT, text, "--policy", "random")
    assert message.argument == f"cues['{name}']"
    assert message.remedies[0] == SetOption("ranges", (0, 255), name)
    assert message.line.startswith(f"napari-agglo: {source} ")
    assert f"--range {name}=0:255" in message


def test_two_cues_of_one_name(refused, files):
    message = refused(*SEGMENT, "boundary.tif", "boundary8.tif")
    assert message.argument == "cues"
    assert all(name in message for name in ("boundary.tif", "boundary8.tif", "boundary=A"))


def test_a_range_for_all_and_one_for_some(run, refused, files, monkeypatch):
    from napari_agglo import graph

    real, ranges = graph.region_graph, []

    def region_graph(*arguments, **options):
        ranges.append(options["ranges"])
        return real(*arguments, **options)

    monkeypatch.setattr(graph, "region_graph", region_graph)
    command = [*SEGMENT, "boundary.tif", "mito=boundary.tif", "--policy", "random"]
    assert run(*command, "--range", "0:255", "mito=1:0")[0] == 0
    assert run(*command)[0] == 0
    assert ranges == [{"boundary": (0.0, 255.0), "mito": (1.0, 0.0)}, None]
    message = refused(*command, "--range", "mtio=0:1")
    assert message.argument == "ranges"
    assert all(name in message for name in ("'mtio'", "boundary", "mito"))


def test_policies(run, refused, files):
    assert run(*SEGMENT, "boundary.tif", "--policy", "mean")[0] == 0
    missing = refused(*SEGMENT, "boundary.tif", "--policy", "p.npz")
    assert missing.argument == "path"
    assert "p.npz" in missing
    message = refused(*SEGMENT, "boundary.tif", "--policy", "median")
    assert message.argument == "policy"
    assert "MODULE:NAME" in message


HUNDRED = """
def hundred(graph):
    return 100 * graph.boundary_mean("boundary")
"""


def test_a_policy_of_your_own_has_thresholds_of_its_own(run, refused, files, monkeypatch):
    """Priorities that are no probabilities may be any number; others are from 0 to 1."""
    (files / "own.py").write_text(HUNDRED)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    own = ("--policy", "own:hundred")
    assert run(*SEGMENT, "boundary.tif", "--threshold", "0.5")[0] == 0
    expected = tifffile.imread("out.tif")
    status, text, _ = run(*SEGMENT, "boundary.tif", *own, "--threshold", "50")
    assert (status, text.rstrip().endswith(" at 50")) == (0, True)
    assert (tifffile.imread("out.tif") == expected).all()
    assert len(set(expected.ravel())) < 4
    refusals = [
        refused(*SEGMENT, "boundary.tif", "--threshold", "50"),
        refused(*SEGMENT, "boundary.tif", "--threshold", "-0.5"),
    ]
    both = ("--policy", "mean", "own:hundred", "--threshold", "50")
    report = ("report", *SEGMENT[1:3], "--cues", "boundary.tif", "--gold", "gold.tif", "-o", "r")
    refusals.append(refused(*report, *both))
    create = ("session", "create", "s.agglo", *SEGMENT[1:3], "--cues", "boundary.tif")
    assert run(*create, *own)[0] == 0
    assert run("segment", "s.agglo", *own, "-o", "b.tif", "--threshold", "50")[0] == 0
    assert (tifffile.imread("b.tif") == expected).all()
    assert run("session", "create", "m.agglo", *create[3:])[0] == 0
    refusals.append(refused("segment", "m.agglo", "-o", "c.tif", "--threshold", "50"))
    plan = ("blocks", "plan", "out", "--cues", "boundary.tif", "--threshold", "50")
    refusals.append(refused(*plan))
    assert [one.argument for one in refusals] == ["threshold"] * 5
    assert all(one.remedies for one in refusals)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["oversegmnet", "b.tif"], "oversegment"),
        ([*SEGMENT, "boundary.tif", "--treshold", "0.5"], "--threshold"),
        (["train", "--strategy", "flatt"], "flat"),
        ([*SEGMENT, "boundary.tif", "--policy", "maen"], "mean"),
        (["export", "s.agglo", "lables", "-o", "a.tif"], "labels"),
    ],
)
def test_a_misspelt_value_is_answered_with_the_nearest(refused, files, arguments, meant):
    assert f"'{meant}'?" in refused(*arguments)
