from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tifffile

import napari_agglo as agglo
from napari_agglo.errors import Advice, SetOption
from napari_agglo.partition import build_tree
from napari_agglo.volumes import open_volume

PIPELINE = ["--superpixels", "superpixels.tif", "--cues", "boundary=boundary.tif"]


def read(name):
    return open_volume(name).load()


def same_partition(a, b):
    pairs = np.unique(np.stack([a.ravel(), b.ravel()]).astype(np.int64), axis=1)
    return pairs.shape[1] == np.unique(a).size == np.unique(b).size


def test_oversegment(run, files):
    status, out, err = run("oversegment", "boundary.tif", "-o", "s.tif", "--min-size", "1")
    assert (status, err) == (0, "")
    superpixels = read("s.tif")
    assert superpixels.shape == (4, 6)
    assert out == f"s.tif: {superpixels.max()} superpixels\n"


def test_oversegment_with_everything(run, files):
    mask, seeds = np.ones((4, 6), np.uint8), np.zeros((4, 6), np.uint8)
    mask[0, 0] = 0
    seeds[0, 1], seeds[0, 5], seeds[3, 0], seeds[3, 5] = 1, 2, 3, 4
    tifffile.imwrite("mask.tif", mask)
    tifffile.imwrite("seeds.tif", seeds)
    options = "--range 0:255 --spacing 2,1 --sigma 0 --min-size 1 --mask mask.tif --seeds seeds.tif"
    status, _, err = run("oversegment", "boundary8.tif", "-o", "s.npz", *options.split())
    assert (status, err) == (0, "")
    superpixels = read("s.npz")
    assert superpixels[0, 0] == 0
    assert np.unique(superpixels).tolist() == [0, 1, 2, 3, 4]
    assert open_volume("s.npz").spacing == (2, 1)


def test_oversegment_each_of_a_folder(run, files):
    os.mkdir("maps")
    shutil.copy("boundary.tif", "maps/a.tif")
    tifffile.imwrite("maps/b.tif", np.zeros((3, 3), np.float32))  # another size will do
    status, out, err = run("oversegment", "maps", "--each", "-o", "out")
    assert (status, err) == (0, "")
    assert sorted(os.listdir("out")) == ["a.tif", "b.tif"]
    assert read("out/a.tif").shape == (4, 6)
    assert re.search(r"^out/b.tif: 1 ", out, re.MULTILINE)


def test_oversegment_a_folder_as_a_stack(run, files):
    os.mkdir("planes")
    for plane in range(3):
        tifffile.imwrite(f"planes/{plane}.tif", np.zeros((3, 4), np.float32))
    assert run("oversegment", "planes", "--per-plane", "-o", "s.tif")[0] == 0
    assert same_partition(read("s.tif"), np.repeat([1, 2, 3], 12).reshape(3, 3, 4))


def test_oversegment_refuses(refused, files):
    message = refused("oversegment", "boundary8.tif", "-o", "s.tif")
    assert message.argument == "boundary"
    assert [one.value for one in message.remedies] == [(0, 255), (255, 0)]
    assert all(words in message for words in ("boundary8.tif", "--range 0:255", "--range 255:0"))
    message = refused("oversegment", "boundary.tif", "-o", "s.jpg")
    assert (message.argument, message.remedies) == ("-o", (Advice("add .tif"),))
    message = refused("oversegment", "boundary.tif", "--each", "-o", "out")
    assert message.argument == "BOUNDARY"
    assert all(words in message for words in ("boundary.tif", "--each", '"maps/*.tif"'))
    assert not os.path.exists("s.tif")
    assert not os.path.exists("out")


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


@pytest.mark.parametrize("method", ["threshold", "adaptive"])
def test_json_of_segments_has_the_time_of_their_choice(run, files, method):
    status, out, _ = run("segment", *PIPELINE, "--method", method, "-o", "l.tif", "--json")
    assert status == 0
    seconds = json.loads(out)["seconds"]
    assert isinstance(seconds, float)
    assert seconds >= 0


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


def test_evaluate(run, files):
    status, out, _ = run("evaluate", "superpixels.tif", "--gold", "gold.tif")
    assert status == 0
    # 12 of 21 annotated voxels are in an object that is cut into halves
    half = f"{12 / 21:.4f}"
    errors, rest = out.split("\n\n")
    assert errors == (
        f"false_merge  0.0000\nfalse_split  {half}\nvi           {half}\nvoxels       21"
    )
    measures = dict(line.split() for line in rest.splitlines())
    assert measures["merges_needed"] == "1"
    assert measures["segments"] == "4"
    assert measures["covering"] == f"{(12 * 0.5 + 9) / 21:.4f}"
    assert measures["adapted_rand_precision"] == "1.0000"


def test_evaluate_as_json(run, files):
    _, out, _ = run("evaluate", "superpixels.tif", "--gold", "gold.tif", "--json")
    report = json.loads(out)
    assert {name: report[name] for name in ("false_merge", "false_split", "vi", "voxels")} == {
        "false_merge": 0.0,
        "false_split": pytest.approx(12 / 21),
        "vi": pytest.approx(12 / 21),
        "voxels": 21,
    }
    assert report["edit_distance"] == 1
    assert {"rand", "adjusted_rand", "fowlkes_mallows", "cremi_score"} <= report.keys()


def test_breakdown(run, refused, files):
    arguments = ["evaluate", "superpixels.tif", "--gold", "gold.tif", "--breakdown"]
    assert run(*arguments, "e.csv")[0] == 0
    with open("e.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert (rows[0]["kind"], rows[0]["id"], rows[0]["pieces"]) == ("false split", "5", "2")
    assert float(rows[0]["contribution"]) == pytest.approx(12 / 21)
    assert len(rows) == 3 + 4  # gold segments and segments
    message = refused(*arguments, "gold.tif")
    assert (message.argument, "--gold gold.tif" in message) == ("--breakdown", True)
    message = refused(*arguments, "no/e.csv")
    assert (message.argument, "no/e.csv" in message) == ("--breakdown", True)


@pytest.mark.parametrize(
    ("name", "begin"), [("c.png", b"\x89PNG"), ("c.svg", b"<?xml"), ("c.PDF", b"%PDF")]
)
def test_curve_as_plot(run, files, name, begin):
    assert run("curve", *PIPELINE, "--gold", "gold.tif", "--plot", name)[0] == 0
    assert Path(name).read_bytes().startswith(begin)


def test_a_plot_is_refused_before_the_work(refused, files):
    curve = ["curve", *PIPELINE, "--gold", "gold.tif", "-o", "c.csv"]
    message = refused(*curve, "--plot", "c.jpg")
    assert (message.argument, ".png, .svg, .pdf" in message) == ("--plot", True)
    message = refused(*curve, "--plot", "no/c.png")
    assert (message.argument, "no/c.png" in message) == ("--plot", True)
    shutil.copy("gold.tif", "gold.png")
    read = ["curve", *PIPELINE, "--gold", "gold.png", "--plot", "gold.png"]
    message = refused(*read)
    assert (message.argument, "--gold gold.png" in message) == ("--plot", True)
    assert not os.path.exists("c.csv")


def test_evaluate_refuses_other_shapes(refused, files):
    tifffile.imwrite("small.tif", np.ones((2, 6), np.uint8))
    message = refused("evaluate", "small.tif", "--gold", "gold.tif")
    assert "(2, 6)" in message
    assert "(4, 6)" in message


def test_curve(run, files):
    status, out, err = run("curve", *PIPELINE, "--gold", "gold.tif", "-o", "curve.csv")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["threshold", "segments", "false_merge", "false_split", "vi"]
    assert lines[1].split() == ["superpixels", "4", "0.000", "0.571", "0.571"]
    # the upper wall has a mean of 0.2, as bytes of 26 and 77: (26 + 77) / 2 / 255
    assert lines[-4].split() == ["best", "0.3", "3", "0.000", "0.000", "0.000"]
    assert lines[-3].split() == ["asked", "0.5", "3", "0.000", "0.000", "0.000"]
    assert lines[-1].startswith("21 ")
    with open("curve.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["threshold"] == "-inf"
    assert [row["segments"] for row in rows][:2] == ["4", "3"]


def test_curve_as_json(run, files):
    _, out, _ = run("curve", *PIPELINE, "--gold", "gold.tif", "--json", "--threshold", "0.0")
    report = json.loads(out)
    assert report["superpixels"]["threshold"] is None
    assert report["best"]["vi"] == 0
    assert report["at_threshold"]["segments"] == 4
    assert report["at_threshold"]["cut"] == 0.0
    assert report["curve"][0] == report["superpixels"]
    assert report["curve"][-1]["segments"] == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("oversegment boundary.tif -o s.tif", {"output": "s.tif"}),
        ("cue boundary.tif -o b.tif", {"output": "b.tif", "shape": [4, 6]}),
        (
            "segment --superpixels superpixels.tif --cues boundary.tif -o l.tif",
            {"output": "l.tif", "superpixels": 4, "segments": 3, "threshold": 0.5},
        ),
    ],
)
def test_results_as_json_or_not_at_all(run, files, words, expected):
    status, out, _ = run(*words.split(), "--json")
    assert status == 0
    assert expected.items() <= json.loads(out).items()
    assert run(*words.split(), "-q")[1:] == ("", "")


def test_json_of_many(run, files):
    os.mkdir("maps")
    shutil.copy("boundary.tif", "maps/a.tif")
    tifffile.imwrite("maps/b.tif", np.full((3, 3), 7, np.float32))
    status, out, _ = run("oversegment", "maps", "--each", "-o", "out", "--json")
    assert status == 2
    assert list(json.loads(out)["images"]) == ["a"]


def test_verbose_tells_of_stages(run, files):
    status, _, err = run("segment", *PIPELINE, "-o", "l.tif", "-v")
    assert status == 0
    assert err.count("napari-agglo: ") >= 2
