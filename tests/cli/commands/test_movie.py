"""`napari-agglo movie`, file to file."""

from __future__ import annotations

import pytest
from oracles.video import read_video

PIPELINE = ("--superpixels", "superpixels.tif", "--cues", "boundary=boundary.tif")


def test_twenty_frames(run, files):
    status, message, _ = run(
        "movie", *PIPELINE, "--policy", "mean", "random", "--gold", "gold.tif", "--image",
        "boundary.tif", "--frames", 20, "--size", 64, "-o", "a.mp4",
    )  # fmt: skip
    assert status == 0
    assert message.startswith("a.mp4: 20 ")
    assert message.endswith("mean, random, gold\n")
    assert len(read_video("a.mp4")[0]) == 20
    assert sorted(path.suffix for path in files.iterdir()).count(".mp4") == 1


def test_a_folder_and_a_part(run, files):
    words = ("--by", "threshold", "--from", 0.1, "--to", 0.5, "--frames", 3, "--size", 64)
    assert run("movie", *PIPELINE, *words, "-o", "frames")[0] == 0
    assert len(list((files / "frames").iterdir())) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "a.avi"), ".mp4"),
        (("-o", "no/a.mp4"), "no/a.mp4: "),
        (("-o", "a.gif", "--frames", 1), "--frames "),
        (("-o", "a.gif", "--fps", 0), "--fps "),
        (("-o", "a.gif", "--size", 1), "--size "),
        (("-o", "a.gif", "--from", 3, "--to", 1), "--to"),
        (("-o", "a.gif", "--plane", 1), "--plane "),
        (("-o", "a.gif", "--plane", "x"), "--plane: 'x'"),
        (("-o", "a.gif", "--policy", "median"), "--policy "),
        (("-o", "a.gif", "--policy", "mean", "mean"), "--policy mean "),
        (("-o", "a.gif", "--gold", "none.tif"), "none.tif"),
    ],
)
def test_refused(refused, files, words, message):
    assert message in refused("movie", *PIPELINE, *words)
    assert not (files / "a.gif").exists()
