"""`segment`: cues, ranges, thresholds and methods; the same segments as in Python."""

from __future__ import annotations

import csv
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tifffile
from cli.commands.pipeline import PIPELINE, read

import napari_agglo as agglo
from napari_agglo.errors import SetOption
from napari_agglo.partition import build_tree


def test_segment(run, files):
    status, out, err = run(
        "segment", *PIPELINE, "--threshold", "0.4", "-o", "l.tif", "--tree", "tree.csv"
    )
    assert (status, err) == (0, "")
    assert re.findall(r"l.tif|[\d.]+", out) == ["l.tif", "4", "3", "0.4"]
    labels = read("l.tif")
    assert labels[0].tolist() == [1] * 6
    assert labels[3].tolist() == [3, 3, 3, 4, 4, 4]
    assert labels.dtype == np.uint16
    with open("tree.csv", newline="") as file:
        assert len(list(csv.reader(file))) == 1 + 3


def test_the_default_threshold_is_a_half_and_cues_may_go_without_a_name(run, files):
    arguments = ["--superpixels", "superpixels.tif", "--cues", "boundary.tif"]
    _, out, _ = run("segment", *arguments, "-o", "l.tif")
    assert re.findall(r"[\d.]+", out)[-2:] == ["3", "0.5"]


@pytest.mark.parametrize(
    ("cue", "declared"),
    [("boundary8.tif", "0:255"), ("boundary8.tif", "boundary=0:255"),
     ("inverted8.tif", "boundary=255:0")],
)  # fmt: skip
def test_ranges(run, files, cue, declared):
    run("segment", *PIPELINE, "-o", "expected.tif")
    status, _, err = run(
        "segment", "--superpixels", "superpixels.tif", "--cues", f"boundary={cue}",
        "--range", declared, "-o", "l.tif",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert (read("l.tif") == read("expected.tif")).all()


@pytest.mark.parametrize("method", ["adaptive", "multicut", "mutex"])
def test_segment_by_another_method_than_a_threshold(run, files, method):
    if method != "adaptive":
        pytest.importorskip("bioimage_cpp", reason="the solver is not installed")
    status, _, err = run("segment", *PIPELINE, "--method", method, "-o", "l.tif")
    assert (status, err) == (0, "")
    graph = agglo.region_graph(read("superpixels.tif"), read("boundary.tif"))
    expected = build_tree(graph, "mean", method).segment(0.5)
    np.testing.assert_array_equal(read("l.tif"), expected)
    assert len(np.unique(expected)) > 1


def test_options_of_methods_that_do_not_fit_are_refused(refused, files):
    message = refused("segment", *PIPELINE, "--method", "none", "-o", "l.tif")
    assert message.argument == "method"
    assert all(f"'{name}'" in message for name in ("threshold", "adaptive", "multicut"))
    message = refused("segment", *PIPELINE, "--beta", "0.4", "-o", "l.tif")
    assert message.remedies == (SetOption("method", "multicut"),)
    assert "--method multicut" in message


def test_segment_at_random_is_repeatable(run, files):
    for name in ("a.csv", "b.csv"):
        run(
            "segment", *PIPELINE, "--policy", "random", "--seed", "3", "-o", "l.tif", "--tree", name
        )
    assert Path("a.csv").read_text() == Path("b.csv").read_text()


def test_segment_across_dams(run, files):
    superpixels = np.array([[1, 1, 0, 2, 2]] * 2, np.uint8)
    tifffile.imwrite("dammed.tif", superpixels)
    tifffile.imwrite("low.tif", np.full((2, 5), 0.1, np.float32))
    arguments = ["segment", "--superpixels", "dammed.tif", "--cues", "low.tif", "-o", "l.tif"]
    assert re.findall(r" \d+ ", run(*arguments)[1]) == [" 2 ", " 2 "]
    assert re.findall(r" \d+ ", run(*arguments, "--dams")[1]) == [" 2 ", " 1 "]


def test_segment_each_of_a_folder(run, refused, files):
    for folder, name in {"s": "superpixels.tif", "b": "boundary.tif"}.items():
        os.mkdir(folder)
        shutil.copy(name, f"{folder}/one.tif")
        shutil.copy(name, f"{folder}/two.tif")
    arguments = ["segment", "--each", "--superpixels", "s", "--cues", "boundary=b"]
    status, _, err = run(*arguments, "-o", "l", "--tree", "t")
    assert (status, err) == (0, "")
    assert sorted(os.listdir("l")) == ["one.tif", "two.tif"]
    assert sorted(os.listdir("t")) == ["one.csv", "two.csv"]
    os.remove("b/two.tif")
    message = refused(*arguments, "-o", "again")
    assert message.argument == "each"
    assert re.search(r"--cues boundary b .*two", message.line)
    assert not os.path.exists("again")


@pytest.mark.parametrize(
    ("change", "argument", "named"),
    [
        (["--policy", "p.npz"], "path", ["p.npz", "train"]),
        (["--policy", "boundary.npz"], "path", ["boundary.npz"]),
        (["--policy", "median"], "policy", ["--policy", "mean", "random", "oriented mean"]),
        (["--range", "mito=0:1"], "ranges", ["--range", "'mito'", "boundary"]),
        (["--cues", "boundary=gold.tif"], "cues", ["--cues", "'boundary'", "gold.tif"]),
        (
            ["--cues", "mito=gold.tif"],
            "cues['mito']",
            ["gold.tif", "--range mito=0:65535", "--range mito=65535:0"],
        ),
        (["--spacing", "1,1,1"], "spacing", ["(1, 1, 1)", "--spacing 1,1 "]),
        (["--superpixels", "boundary.tif"], "superpixels", ["boundary.tif", "float32"]),
        (["--seed", "-1"], "seed", ["--seed 0"]),
        (["--tree", "no/tree.csv"], "--tree", ["no/tree.csv"]),
    ],
)
def test_segment_refuses(refused, files, change, argument, named):
    before = sorted(os.listdir())
    message = refused("segment", *PIPELINE, "-o", "l.tif", *change)
    assert message.argument == argument
    assert message.remedies
    assert all(words in message for words in named), message
    assert sorted(os.listdir()) == before


def test_the_mean_of_which_cue(refused, run, files):
    arguments = ["--superpixels", "superpixels.tif", "--cues", "mito=boundary.tif", "-o", "l.tif"]
    message = refused("segment", *arguments)
    assert message.remedies == (SetOption("cues", None, "boundary"),)
    assert all(words in message for words in ("mito", "--cues boundary=FILE"))
    assert run("segment", *arguments, "--policy", "random")[0] == 0
