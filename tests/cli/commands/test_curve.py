"""`curve`: a table, JSON or a plot of errors by threshold."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest
from cli.commands.pipeline import PIPELINE


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


@pytest.mark.parametrize("command", ["curve", "evaluate", "segment"])
def test_tables_are_parquet_where_the_name_says_so(run, refused, files, monkeypatch, command):
    words = {
        "curve": ["curve", *PIPELINE, "--gold", "gold.tif", "-o"],
        "evaluate": ["evaluate", "gold.tif", "--gold", "gold.tif", "--breakdown"],
        "segment": ["segment", *PIPELINE, "-o", "labels.tif", "--tree"],
    }[command]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        assert "napari-agglo[parquet]" in refused(*words, "t.parquet")
        assert not os.path.exists("labels.tif"), "before the work"
    pytest.importorskip("pyarrow")
    for name in ("t.csv", "t.parquet"):
        assert run(*words, name)[0] == 0
    pd.testing.assert_frame_equal(
        pd.read_parquet("t.parquet"), pd.read_csv("t.csv"), check_dtype=False
    )
