from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import tifffile

from napari_agglo.errors import Advice, InvalidInput
from napari_agglo.volumes import open_volume


@pytest.fixture
def folders(files):
    """Folders s, b and g of superpixels, boundary and gold, each with images one and two."""
    for folder, name in {"s": "superpixels", "b": "boundary", "g": "gold"}.items():
        os.mkdir(folder)
        shutil.copy(f"{name}.tif", f"{folder}/one.tif")
        shutil.copy(f"{name}.tif", f"{folder}/two.tif")
    return files


SEGMENT = ["segment", "--each", "--superpixels", "s", "--cues", "boundary=b"]


def test_an_input_folder_is_never_written_to(refused, folders):
    before = Path("b/one.tif").read_bytes()
    for command, output, read in (
        (["oversegment", "--each", "b", "-o", "b"], "-o", "BOUNDARY"),
        (["oversegment", "--each", "b", "-o", "./s/../b/"], "-o", "BOUNDARY"),
        ([*SEGMENT, "-o", "s"], "-o", "--superpixels"),
        ([*SEGMENT, "-o", "l", "--tree", "b"], "--tree", "--cues boundary"),
        (["oversegment", "--each", "b/*.tif", "-o", "b"], "-o", "b/one.tif"),
    ):
        message = refused(*command)
        assert message.argument == output
        assert read in message
    assert Path("b/one.tif").read_bytes() == before
    assert not os.path.exists("l")


def test_a_bad_file_does_not_undo_the_others(run, folders):
    tifffile.imwrite("b/bad.tif", np.full((3, 3), 7.0, np.float32))
    Path("b/worse.tif").write_text("no TIFF")
    status, out, err = run("oversegment", "--each", "b", "-o", "out")
    assert status == 2
    assert sorted(os.listdir("out")) == ["one.tif", "two.tif"]
    assert out.count("superpixel") == 2
    first, second, last = err.splitlines()
    assert first.startswith("napari-agglo: b/bad.tif ")
    assert "--range 0:255" in first
    assert "b/worse.tif" in second
    assert all(words in last for words in ("2 of 4", "bad, worse"))


def test_a_fault_of_ours_in_one_is_told_and_is_status_1(run, folders, monkeypatch):
    from napari_agglo import superpixels

    real = superpixels.oversegment

    def faulty(boundary, **options):
        if boundary.name == "one.tif":
            raise ZeroDivisionError
        return real(boundary, **options)

    monkeypatch.setattr(superpixels, "oversegment", faulty)
    status, _, err = run("oversegment", "--each", "b", "-o", "out")
    assert status == 1
    first, last = err.splitlines()
    assert first.startswith("napari-agglo: one: ")
    assert "ZeroDivisionError" in first
    assert all(words in last for words in ("1 of 2", "one"))
    assert os.listdir("out") == ["two.tif"]


def test_an_interrupt_keeps_what_is_done(run, folders, monkeypatch):
    from napari_agglo import superpixels

    real = superpixels.oversegment

    def interrupted(boundary, **options):
        if boundary.name == "two.tif":
            raise KeyboardInterrupt
        return real(boundary, **options)

    monkeypatch.setattr(superpixels, "oversegment", interrupted)
    status, _, err = run("oversegment", "--each", "b", "-o", "out")
    assert status == 130
    assert err.count("\n") == 1
    assert "1 of 2" in err
    assert os.listdir("out") == ["one.tif"]


def test_only_its_own_file_is_replaced(run, folders):
    os.mkdir("out")
    for name in ("one.tif", "mine.txt"):
        Path(f"out/{name}").write_text("old")
    assert run("oversegment", "--each", "b", "-o", "out")[0] == 0
    assert sorted(os.listdir("out")) == ["mine.txt", "one.tif", "two.tif"]
    assert open_volume("out/one.tif").shape == (4, 6)
    assert Path("out/mine.txt").read_text() == "old"


def test_one_name_twice(refused, folders):
    shutil.copy("boundary.tif", "b/one.tiff")
    message = refused("oversegment", "--each", "b", "-o", "out")
    assert message.argument == "BOUNDARY"
    assert all(name in message for name in ("b/one.tif ", "b/one.tiff", '"b/*.tiff"'))
    assert not os.path.exists("out")


def test_names_that_one_folder_lacks_are_listed_both_ways(refused, folders):
    os.rename("b/two.tif", "b/three.tif")
    message = refused(*SEGMENT, "-o", "l")
    assert message.argument == "each"
    assert re.search(r"--superpixels s .*three.*--cues boundary b .*two", message.line)


def test_patterns(run, folders):
    os.mkdir("test")
    for name in ("one", "two"):
        shutil.copy("boundary.tif", f"test/{name}_ucm.tif")
        shutil.copy("superpixels.tif", f"test/{name}.tif")
    status, _, err = run(
        "segment", "--each", "--superpixels", "s", "--cues", "./test/*_ucm.tif", "-o", "l"
    )
    assert (status, err) == (0, "")
    assert sorted(os.listdir("l")) == ["one.tif", "two.tif"]


def test_patterns_with_a_key_or_over_folders(run, files):
    for name, labels in (("a", "superpixels"), ("b", "gold")):
        os.makedirs(f"data/{name}")
        shutil.copy(f"{labels}.tif", f"data/{name}/map.tif")
        with h5py.File(f"data/{name}/x.h5", "w") as file:
            file["other"] = np.ones((4, 6), np.uint8)
            file["gold"] = tifffile.imread("gold.tif")
    arguments = ["--each", "data/*/map.tif", "--gold", "data/*/x.h5:gold", "--json"]
    status, out, err = run("evaluate", *arguments)
    assert (status, err) == (0, "")
    errors = {name: row["vi"] for name, row in json.loads(out)["images"].items()}
    assert errors == {"a": pytest.approx(12 / 21), "b": 0}


def test_all_that_is_read_is_taken(run, refused, files):
    os.mkdir("none")
    suffixes = re.search(r"\((.*?)\)", refused("oversegment", "--each", "none", "-o", "out").line)[
        1
    ]
    suffixes = suffixes.split(", ")
    with pytest.raises(InvalidInput) as caught:
        open_volume("none")
    planes = re.search(r"\((.*?)\)", caught.value.problem)[1].split(", ")
    assert ".png" in planes, "test invalid"
    assert set(planes) <= set(suffixes)
    os.mkdir("in")
    for number, suffix in enumerate(suffixes):
        Path(f"in/{number}{suffix.upper()}").touch()
    for name in ("notes.txt", ".hidden.tif", "image.ome.tif"):
        Path("in", name).touch()
    names = [*sorted(map(str, range(len(suffixes)))), "image"]
    last = run("oversegment", "--each", "in", "-o", "out")[2].splitlines()[-1]
    assert all(words in last for words in (f"0 of {len(names)} ", f": {', '.join(names)}"))


@pytest.mark.parametrize(
    ("text", "named"),
    [("no", '"maps/*.tif"'), ("*/*.tif", "one *"), ("empty", ".tif"), ("x*.tif", ".tif")],
)
def test_a_folder_without_a_set_of_images_is_refused(refused, folders, text, named):
    os.mkdir("empty")
    message = refused("evaluate", "--each", "s", "--gold", text)
    assert message.argument == "--gold"
    assert message.remedies
    prefix = f"napari-agglo: --gold {text}: "
    assert message.line.startswith(prefix)
    assert named in message.line.removeprefix(prefix)


def test_the_tree_is_a_folder_too(refused, folders):
    message = refused(*SEGMENT, "-o", "l", "--tree", "tree.csv")
    assert (message.argument, message.remedies) == ("--tree", (Advice("drop the .csv"),))
    message = refused(*SEGMENT, "-o", "l.tif")
    assert (message.argument, message.remedies) == ("-o", (Advice("drop the .tif"),))
    message = refused("oversegment", "--each", "b", "-o", _file("taken"))
    assert message.argument == "-o"
    assert "taken" in message


def _file(name):
    Path(name).touch()
    return name


def test_evaluate_each(run, folders):
    shutil.copy("gold.tif", "s/two.tif")  # perfect
    status, out, err = run("evaluate", "--each", "s", "--gold", "g")
    assert (status, err) == (0, "")
    assert [line.split()[:4] + line.split()[-2:] for line in out.splitlines()] == [
        ["image", "false_merge", "false_split", "vi", "edit_distance", "voxels"],
        ["one", "0.000", "0.571", "0.571", "1", "21"],
        ["two", "0.000", "0.000", "0.000", "0", "21"],
        ["mean", "0.000", "0.286", "0.286", "0.500", "21.000"],
    ]
    report = json.loads(run("evaluate", "--each", "s", "--gold", "g", "--json")[1])
    assert report["images"]["one"]["vi"] == pytest.approx(12 / 21)
    assert report["mean"]["vi"] == pytest.approx(6 / 21)


def test_evaluate_each_with_a_bad_one(run, folders):
    tifffile.imwrite("g/one.tif", np.zeros((4, 6), np.uint8))
    status, out, err = run("evaluate", "--each", "s", "--gold", "g")
    assert status == 2
    first, last = err.splitlines()
    assert "g/one.tif" in first.replace(os.sep, "/")
    assert out.splitlines()[-1].startswith("mean")
    assert all(words in last for words in ("1 of 2", "one"))


def test_curve_each(run, folders):
    arguments = ["curve", *SEGMENT[1:], "--gold", "g", "--threshold", "0"]
    status, out, err = run(*arguments, "-o", "curves")
    assert (status, err) == (0, "")
    rows = [line.split() for line in out.splitlines()]
    assert rows[1] == ["one", "21", "0.571", "0.571", "0.000", "0.3"]
    assert rows[3] == ["mean", "21.000", "0.571", "0.571", "0.000"]
    assert all(number in out.splitlines()[-1] for number in (" 0.3,", " 0.000 "))
    with open("curves/one.csv", newline="") as file:
        assert [row["segments"] for row in csv.DictReader(file)][:2] == ["4", "3"]
    report = json.loads(run(*arguments, "--json")[1])
    assert report["best_for_all"] == {"threshold": 0.3, "vi": 0.0}
    assert report["images"]["two"]["best"]["segments"] == 3
