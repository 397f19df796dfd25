"""`evaluate`: measures as a table or JSON, the breakdown, refusals."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import tifffile


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


def test_evaluate_refuses_other_shapes(refused, files):
    tifffile.imwrite("small.tif", np.ones((2, 6), np.uint8))
    message = refused("evaluate", "small.tif", "--gold", "gold.tif")
    assert "(2, 6)" in message
    assert "(4, 6)" in message
