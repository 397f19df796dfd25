"""Results as JSON and stages with -v, of any command."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
import tifffile
from cli.commands.pipeline import PIPELINE


@pytest.mark.parametrize("method", ["threshold", "adaptive"])
def test_json_of_segments_has_the_time_of_their_choice(run, files, method):
    status, out, _ = run("segment", *PIPELINE, "--method", method, "-o", "l.tif", "--json")
    assert status == 0
    seconds = json.loads(out)["seconds"]
    assert isinstance(seconds, float)
    assert seconds >= 0


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
