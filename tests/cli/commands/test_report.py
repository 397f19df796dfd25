"""`report`: a page and its tables, from files; what it refuses, before the work."""

from __future__ import annotations

import csv
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tifffile

import napari_agglo.report

REPORT = ["report", "--superpixels", "superpixels.tif", "--cues", "boundary=boundary.tif"]
WHOLE = [*REPORT, "--gold", "gold.tif"]


@pytest.fixture
def plain_page(monkeypatch):
    """Write an empty page, in tests of the tables: most of the time is for plots and pictures."""
    monkeypatch.setattr(napari_agglo.report, "html_report", lambda *_, **options: "<!doctype html>")


def table(name):
    with open(name, newline="") as file:
        return list(csv.DictReader(file))


def test_report(run, files):
    status, out, err = run(
        *WHOLE, "--policy", "mean", "--policy", "random", "-o", "r", "--title", "<My> title"
    )
    assert (status, err) == (0, "")
    assert "r/report.html" in out.replace(os.sep, "/")
    assert sorted(os.listdir("r")) == ["curves.csv", "report.html", "summary.csv", "worst.csv"]
    page = Path("r/report.html").read_text("utf-8")
    assert "&lt;My&gt; title" in page
    for words in ("mean", "random", "gold.tif", "napari-agglo 0", "best possible (A*)"):
        assert words in page
    rows = table("r/summary.csv")
    assert [row["policy"] for row in rows] == ["mean", "random"]
    curve = [row for row in table("r/curves.csv") if row["policy"] == "mean"]
    least = min(float(row["vi"]) for row in curve)
    assert float(rows[0]["least_vi"]) == pytest.approx(least)
    thresholds = [float(row["threshold"]) for row in curve if float(row["vi"]) <= least + 1e-9]
    assert float(rows[0]["least_vi_threshold"]) in thresholds
    assert rows[0]["segments"].isdigit()
    printed = out.splitlines()[1].split()
    assert printed[:2] == ["mean", "superpixels.tif"]
    assert float(printed[4]) == pytest.approx(float(rows[0]["vi"]), abs=1e-3)
    assert {row["policy"] for row in table("r/curves.csv")} == {"mean", "random"}
    assert {row["kind"] for row in table("r/worst.csv")} <= {"false merge", "false split"}


def test_the_default_is_the_mean_and_no_error_is_no_fault(run, files):
    tifffile.imwrite("perfect.tif", np.repeat([[5] * 6, [6, 6, 6, 7, 7, 7]], 2, 0).astype("u1"))
    assert run(*REPORT, "--gold", "perfect.tif", "--no-boundaries", "-o", "r")[0] == 0
    assert table("r/worst.csv") == []
    assert [row["policy"] for row in table("r/summary.csv")] == ["mean"]
    assert re.search(r"\bno error\b.*\b0\.5\b", Path("r/report.html").read_text("utf-8"))


def test_a_learned_policy_brings_its_record(run, files):
    train = ["train", *WHOLE[1:], "--preset", "minimal", "--epochs", "1", "-o", "p<b>.npz"]
    assert run(*train)[0] == 0
    status, _, err = run(*WHOLE, "--policy", "mean", "p<b>.npz", "--no-boundaries", "-o", "r")
    assert (status, err) == (0, "")
    page = Path("r/report.html").read_text("utf-8")
    assert re.search(r"Reliability\b.*p&lt;b&gt;", page)
    assert "p<b>" not in page


def test_several_golds_and_an_image(run, files):
    other = tifffile.imread("gold.tif")
    other[:, 3:] = 9
    tifffile.imwrite("other.tif", other)
    rgb = np.zeros((4, 6, 3), np.uint8)
    tifffile.imwrite("image.tif", rgb, photometric="rgb")
    golds = ["--gold", "gold.tif", "other.tif", "--image", "image.tif"]
    status, _, err = run(*REPORT, *golds, "--no-boundaries", "-o", "r")
    assert (status, err) == (0, "")
    assert "human" in Path("r/report.html").read_text("utf-8")


def test_each(run, refused, files):
    for folder, source in (("s", "superpixels"), ("b", "boundary"), ("g", "gold")):
        os.mkdir(folder)
        for name in ("one", "two"):
            shutil.copy(f"{source}.tif", f"{folder}/{name}.tif")
    arguments = ["report", "--superpixels", "s", "--cues", "boundary=b", "--gold", "g", "--each"]
    status, _, err = run(*arguments, "--policy", "mean", "random", "--no-boundaries", "-o", "r")
    assert (status, err) == (0, "")
    assert [row["image"] for row in table("r/summary.csv")] == ["one", "one", "two", "two"]
    page = Path("r/report.html").read_text("utf-8")
    assert all(words in page for words in ("2 images", "one", "two"))
    tifffile.imwrite("g/one.tif", np.zeros((4, 6), np.uint8))
    status, _, err = run(*arguments, "--no-boundaries", "-o", "r1")
    assert status == 2
    first, last = err.replace(os.sep, "/").splitlines()
    assert "g/one.tif" in first
    assert all(words in last for words in ("1 of 2", "one"))
    assert [row["image"] for row in table("r1/summary.csv")] == ["two"], "the rest is told"
    tifffile.imwrite("g/two.tif", np.zeros((4, 6), np.uint8))
    assert run(*arguments, "-o", "r2")[0] == 2
    assert not os.path.exists("r2")
    os.remove("g/two.tif")
    message = refused(*arguments, "-o", "r2")
    assert message.argument == "each"
    assert re.search(r"--gold g .*two", message.line)
    assert not os.path.exists("r2")


@pytest.mark.parametrize(
    ("change", "argument", "named"),
    [
        (["-o", "gold.tif"], "-o", ".tif"),
        (["-o", "no/r"], "-o", "no/r"),
        (["-o", "r", "--policy", "best"], "policy", "POLICY.npz, mean, oriented mean or random"),
        (["-o", "r", "--policy", "mean", "mean"], "policy", "--policy mean"),
        (["-o", "r", "--policy", "nowhere.npz"], "path", "nowhere.npz"),
        (["-o", "r", "--threshold", "2"], "threshold", "--threshold"),
        (["-o", "r", "--image", "nowhere.tif"], "source", "nowhere.tif"),
        (["-o", "r", "--image", "small.tif"], "backdrop", "small.tif (shape (2, 6))"),
        (["-o", "r", "--gold", "small.tif"], "gold[1]", "small.tif"),
        (["-o", "r", "--gold", "empty.tif"], "gold[1]", "empty.tif"),
        (["-o", "r", "--gold", "gold.tif", "empty.tif"], "gold[2]", "empty.tif"),
        (["-o", "r", "--gold", "boundary.tif"], "gold[1]", "boundary.tif"),
        (["-o", "r", "--seed", "-1", "--policy", "random"], "seed", "--seed 0"),
        ([], None, "-o/--output"),
    ],
)
def test_refusals_leave_nothing(refused, files, change, argument, named):
    tifffile.imwrite("small.tif", np.ones((2, 6), np.uint8))
    tifffile.imwrite("empty.tif", np.zeros((4, 6), np.uint8))
    before = sorted(os.listdir("."))
    message = refused(*WHOLE, *change)
    assert message.argument == argument
    assert named in message
    assert message.remedies or "--help" in message
    assert "`" not in message
    assert sorted(os.listdir(".")) == before


def test_no_input_is_replaced(refused, files):
    os.mkdir("r")
    shutil.copy("gold.tif", "r/report.html")
    before = Path("r/report.html").read_bytes()
    assert "would replace" in refused(*REPORT, "--gold", "r/report.html", "-o", "r")
    assert Path("r/report.html").read_bytes() == before


def test_other_files_of_the_folder_stay(run, files):
    os.mkdir("r")
    Path("r/notes.txt").write_text("mine")
    Path("r/report.html").write_text("old")
    assert run(*WHOLE, "--no-boundaries", "-o", "r")[0] == 0
    assert Path("r/notes.txt").read_text() == "mine"
    assert Path("r/report.html").read_text("utf-8").startswith("<!doctype html>")


def test_names_of_policies(run, files, plain_page):
    for folder in ("x", "y"):
        os.mkdir(folder)
    train = ["train", *WHOLE[1:], "--preset", "minimal", "--epochs", "0", "-o", "x/a.npz"]
    assert run(*train)[0] == 0
    shutil.copy("x/a.npz", "y/a.npz")
    for policies, names in [
        (["mean", "x/a.npz"], ["mean", "a"]),
        (["x/a.npz", "y/a.npz", "mean"], ["x/a.npz", "y/a.npz", "mean"]),
    ]:
        assert run(*WHOLE, "--policy", *policies, "--no-boundaries", "-o", "r")[0] == 0
        assert [row["policy"] for row in table("r/summary.csv")] == names


def test_an_interrupt_makes_the_page_of_what_is_done(run, files, plain_page, monkeypatch):
    for folder, source in (("s", "superpixels"), ("b", "boundary"), ("g", "gold")):
        os.mkdir(folder)
        for name in ("one", "two"):
            shutil.copy(f"{source}.tif", f"{folder}/{name}.tif")
    real = napari_agglo.report.examine

    def interrupted(*arguments, **options):
        if options["image"] == "two":
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(napari_agglo.report, "examine", interrupted)
    arguments = ["report", "--superpixels", "s", "--cues", "boundary=b", "--gold", "g", "--each"]
    status, _, err = run(*arguments, "--no-boundaries", "-o", "r")
    assert status == 130
    assert err.count("\n") == 1
    assert "1 of 2" in err
    assert [row["image"] for row in table("r/summary.csv")] == ["one"]
    assert Path("r/report.html").exists()
