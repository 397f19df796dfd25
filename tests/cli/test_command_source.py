"""A session in place of superpixels and cues: what comes out is with all edits."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pandas as pd
import pytest
import tifffile

import napari_agglo as agglo
from napari_agglo.errors import SetOption
from napari_agglo.movie import movie

GOLD = ["--gold", "gold.tif"]


@pytest.fixture(scope="module")
def graph(rooms_folder):
    boundary = tifffile.imread(rooms_folder / "boundary.tif")
    superpixels = tifffile.imread(rooms_folder / "superpixels.tif")
    return agglo.region_graph(superpixels, boundary, spacing=(1, 2))


@pytest.fixture(scope="module")
def edited_once(graph, rooms_folder, tmp_path_factory):
    """Write a session: superpixel 4 is cut in two, one part merged with 1; return its labels."""
    folder = tmp_path_factory.mktemp("edited") / "cells.agglo"
    gold = tifffile.imread(rooms_folder / "gold.tif")
    with agglo.Session.create(folder, graph, gold=gold) as session:
        session.threshold = 0.3
        session.cut(4, points=[[(3, 3)], [(3, 5)]])
        session.merge(int(session.labels()[3, 5]), 1)
        assert session.graph.n_regions == 5
        labels = session.labels()
        assert labels[3, 5] == labels[0, 0] != labels[3, 3]
    return folder, labels


@pytest.fixture
def edited(files, edited_once):
    """Copy the edited session into the folder of the test; return its labels."""
    folder, labels = edited_once
    shutil.copytree(folder, "cells.agglo")
    return labels


def reopened():
    return agglo.Session.open("cells.agglo", read_only=True)


def same_partition(a, b):
    pairs = np.unique(np.stack([np.ravel(a), np.ravel(b)]), axis=1)
    return pairs.shape[1] == len(np.unique(a)) == len(np.unique(b))


def test_segment(run, edited):
    status, message, _ = run("segment", "cells.agglo", "-o", "l.tif", "--tree", "t.csv")
    assert status == 0
    name, _, numbers = message.partition(": ")
    assert (name, re.findall(r"[\d.]+", numbers)) == ("l.tif", ["5", "3", "0.3"])
    assert "edits" in numbers
    np.testing.assert_array_equal(tifffile.imread("l.tif"), edited)
    assert len(pd.read_csv("t.csv")) == 3  # the cut holds at every scale
    assert run("segment", "-o", "l.tif", "--threshold", 0, "cells.agglo")[0] == 0
    with reopened() as session:
        assert session.threshold == 0.3  # it was only looked at
        session.threshold = 0
        np.testing.assert_array_equal(tifffile.imread("l.tif"), session.labels())


def test_evaluate(run, edited):
    _, out, _ = run("evaluate", "cells.agglo", *GOLD, "--json")
    errors = agglo.split_vi(edited, tifffile.imread("gold.tif"))
    assert json.loads(out)["vi"] == pytest.approx(sum(errors))


@pytest.mark.parametrize("gold", [[], GOLD])
def test_curve(run, edited, gold):
    status, out, _ = run("curve", "cells.agglo", *gold, "--json", "-o", "c.csv")
    assert status == 0
    with reopened() as session:
        expected = agglo.vi_curve(session.tree, tifffile.imread("gold.tif"))
        plain = agglo.vi_curve(session.history.unedited_tree, tifffile.imread("gold.tif"))
    pd.testing.assert_frame_equal(pd.read_csv("c.csv"), expected, check_dtype=False)
    assert not plain.equals(expected), "test invalid"
    assert json.loads(out)["voxels"] == 21


def test_report(run, edited):
    status, out, _ = run("report", "cells.agglo", "--no-boundaries", "-o", "page")
    assert status == 0
    assert "before edits" in out
    summary = pd.read_csv("page/summary.csv").set_index("policy")
    gold = tifffile.imread("gold.tif")
    with reopened() as session:
        before = session.history.unedited_tree.segment(0.3)
    for when, labels in (("before edits", before), ("with edits", edited)):
        assert summary.loc[when, "vi"] == pytest.approx(sum(agglo.split_vi(labels, gold)))
    assert "cells" in Path("page/report.html").read_text(encoding="utf-8")


def test_movie(run, edited):
    words = ("--by", "threshold", "--frames", 3, "--size", 64)
    status, out, _ = run("movie", "cells.agglo", "--before", *words, "-o", "frames")
    assert status == 0
    assert out.startswith("frames: 3 ")
    assert out.endswith("before edits, with edits, gold\n")
    gold = tifffile.imread("gold.tif")
    with reopened() as session:
        tree = session.tree
        options = {"gold": gold, "by": "threshold", "frames": 3, "size": 64, "spacing": (1, 2)}
        alone = list(movie({"with edits": tree, "gold": gold}, **options))
    assert run("movie", "cells.agglo", *words, *GOLD, "-o", "alone")[0] == 0
    for k, frame in enumerate(alone):
        np.testing.assert_array_equal(iio.imread(f"alone/frame_{k:04d}.png"), frame)


def test_beside_someone_who_works_on_it(run, edited):
    with agglo.Session.open("cells.agglo") as session:
        session.undo()
        assert run("segment", "cells.agglo", "-o", "l.tif")[0] == 0
        assert same_partition(tifffile.imread("l.tif"), session.labels())


@pytest.mark.parametrize(
    ("words", "argument", "named"),
    [
        (["segment", "-o", "l.tif"], None, "--superpixels, --cues"),
        (["curve", "--superpixels", "superpixels.tif"], None, "--cues, --gold"),
        (["segment", "gone.agglo", "-o", "l.tif"], "path", "gone.agglo"),
        (["segment", "gold.tif", "-o", "l.tif"], "session", "gold.tif"),
        (["segment", "cells.agglo", "--policy", "random", "-o", "l.tif"], "policy", "--policy"),
        (["curve", "cells.agglo", "--cues", "boundary.tif"], "cues", "--cues"),
        (["curve", "cells.agglo", "--each"], "each", "--each"),
        (["curve", "cells.agglo", "--gold", "wide.tif"], "gold", "wide.tif"),
        (["segment", "cells.agglo", "--superpixels", "gold.tif", "-o", "l.tif"], "superpixels",
         "gold.tif"),
        (["segment", "cells.agglo", "-o", "cells.agglo/labels.tif"], "-o", "SESSION cells.agglo,"),
        (["movie", "cells.agglo", "--image", "wide.tif", "-o", "a.gif"], "image", "wide.tif"),
        (["movie", "cells.agglo", "-o", "cells.agglo"], "path", "-o cells.mp4"),
        (
            ["movie", "--before", "--superpixels", "superpixels.tif", "--cues", "boundary.tif",
             "-o", "a.gif"],
            "before", "--before",
        ),
        (
            ["segment", "--superpixels", "superpixels.tif", "--cues", "boundary.tif", "-o",
             "l.tif", "b.tif"],
            None, ": b.tif ",
        ),
    ],
)  # fmt: skip
def test_refused(refused, edited, words, argument, named):
    tifffile.imwrite("wide.tif", np.ones((4, 7), np.uint16))
    message = refused(*words)
    assert message.argument == argument
    assert named in message
    assert message.remedies or "--help" in message


FUNCTION = "def score(graph):\n    return graph.boundary_mean('boundary')\n"


def test_of_a_function_that_the_user_names(run, refused, graph, files, monkeypatch):
    monkeypatch.setattr("sys.path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "own_policy", raising=False)
    Path("own_policy.py").write_text(FUNCTION)
    importlib.invalidate_caches()
    import own_policy

    agglo.Session.create("own.agglo", graph, own_policy.score).close()
    del sys.modules["own_policy"]
    name = ["--policy", "own_policy:score"]
    for command in (
        ["segment", "own.agglo", "-o", "l.tif"],
        ["curve", "own.agglo", *GOLD],
        ["evaluate", "own.agglo", *GOLD],
        ["movie", "own.agglo", "--frames", "2", "-o", "a.gif"],
        ["export", "own.agglo", "regions", "-o", "r.csv"],
        ["session", "info", "own.agglo"],
    ):
        assert run(*command)[0] == 0  # read-only
        assert "own_policy" not in sys.modules  # no file makes a function run
        assert run(*command, *name)[0] == 0
        del sys.modules["own_policy"]
    assert "own_policy:score" in run("session", "info", "own.agglo")[1]
    assert run("export", "own.agglo", "edits", "-o", "edits.csv")[0] == 0
    status, _, message = run("session", "apply", "own.agglo", "edits.csv")
    assert status == 2
    assert " ".join(name) in message.splitlines()[-1]
    assert run("session", "apply", "own.agglo", "edits.csv", *name)[0] == 0
    for wrong in ("own_policy:no", "random", "math:fsum", "__main__:f", "own_policy:f.<locals>.g"):
        message = refused("segment", "own.agglo", "--policy", wrong, "-o", "l.tif")
        assert (message.argument, bool(message.remedies)) == ("policy", True)


def test_without_gold_it_is_asked_for(refused, files, graph):
    agglo.Session.create("bare.agglo", graph).close()
    for command in (["curve", "bare.agglo"], ["report", "bare.agglo", "-o", "page"]):
        message = refused(*command)
        assert message.remedies == (SetOption("gold"),)
        assert "--gold FILE" in message


def test_superpixels_that_moved_are_said_again(run, refused, files, graph, monkeypatch):
    monkeypatch.setattr("napari_agglo.session._store.create.COPY_BELOW", 0)
    agglo.Session.create("far.agglo", graph, source="superpixels.tif").close()
    Path("superpixels.tif").rename("moved.tif")
    assert "--superpixels FILE" in refused("segment", "far.agglo", "-o", "l.tif")
    assert run("segment", "far.agglo", "--superpixels", "moved.tif", "-o", "l.tif")[0] == 0
    assert len(np.unique(tifffile.imread("l.tif"))) > 1


@pytest.fixture
def before_any(files):
    """Make a session whose first merge is at 0, with an edit before any merge."""
    labels = np.arange(1, 7)[None].repeat(4, 0)
    gold = np.repeat([[1, 1, 1, 2, 2, 2]], 4, 0)
    graph = agglo.region_graph(labels, np.where(labels > 3, 0.5, 0.0))
    with agglo.Session.create("zero.agglo", graph, gold=gold) as session:
        assert session.history.unedited_tree.heights[0] == 0, "test invalid"
        session.threshold = -5e-324  # as the left end of the slider, where the first merge is at 0
        session.merge(3, 4)


def strict_json(text):
    """Read JSON; refuse NaN and infinities, which JSON does not have."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_before_any_merge_has_no_number_in_words_or_files(run, before_any):
    before = "before any merge"
    status, out, _ = run("segment", "zero.agglo", "-o", "l.tif", "--tree", "t.csv")
    assert status == 0
    assert out.rstrip().endswith(before)
    assert strict_json(Path("l.tif.json").read_text())["settings"]["threshold"] == before
    assert pd.read_csv("t.csv")["height"].tolist()[:2] == [-np.inf, 0]
    out = run("segment", "zero.agglo", "-o", "l2.tif", "--json")[1]
    assert strict_json(out)["threshold"] is None
    status, out, err = run("report", "zero.agglo", "--no-boundaries", "-o", "page")
    assert status == 0, err
    html = Path("page/report.html").read_text(encoding="utf-8")
    assert len(re.findall(before, html)) >= 3
    assert before.capitalize() in html
    assert pd.read_csv("page/curves.csv")["threshold"].iloc[0] == -np.inf
    status, curve, _ = run("curve", "zero.agglo", "--json", "-o", "c.csv")
    assert status == 0
    assert strict_json(curve)["curve"][1]["threshold"] is None
    status, text, _ = run("curve", "zero.agglo")
    films = ("movie", "zero.agglo", "--frames", 3, "--size", 64, "-o", "frames")
    assert run(*films)[0] == 0
    written = [*Path().glob("*.json"), *Path().rglob("*.csv"), Path("page/report.html")]
    assert len(written) >= 6
    for said in (out, curve, text, *(path.read_text(encoding="utf-8") for path in written)):
        assert "e-324" not in said
        assert "-0.000" not in said


def test_0_is_before_any_merge_where_the_first_is_above(run, edited):
    """As the left end of the slider is there."""
    words = ("segment", "cells.agglo", "-o", "l.tif", "--threshold", 0, "--tree", "t.csv")
    status, out, _ = run(*words)
    assert status == 0
    assert out.rstrip().endswith("before any merge")
    assert json.loads(Path("l.tif.json").read_text())["settings"]["threshold"] == 0
    files = ("--superpixels", "superpixels.tif", "--cues", "boundary=boundary.tif", *GOLD)
    words = ("report", *files, "--no-boundaries", "-o", "page", "--threshold")
    for threshold, expected in ((0, True), (0.1, False)):
        assert run(*words, threshold)[0] == 0
        page = Path("page/report.html").read_text(encoding="utf-8")
        assert ("Before any merge" in page) == expected
        assert ("at 0.1" in page) != expected
        shutil.rmtree("page")
