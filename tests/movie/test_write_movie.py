"""Movies as files: read back frame by frame, whole or not at all."""

from __future__ import annotations

import os

import imageio.v3 as iio
import numpy as np
import pytest
from oracles.video import read_video
from PIL import Image
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Cancelled
from napari_agglo.errors import SetOption
from napari_agglo.movie import movie, write_movie

FRAMES = 20


def close(ours, theirs):
    return np.abs(ours.astype(int) - theirs.astype(int)).mean()


def test_mp4_of_twenty_frames(drawn, tmp_path):
    _, trees, image, gold = drawn
    options = {"image": image, "gold": gold, "frames": FRAMES, "size": 96}
    path = write_movie(tmp_path / "a.mp4", {**trees, "gold": gold}, fps=10, **options)
    read, fps = read_video(path)
    expected = list(movie({**trees, "gold": gold}, **options))
    assert read.shape == (FRAMES, *expected[0].shape)
    assert all(close(*pair) < 6 for pair in zip(read, expected, strict=True))
    assert close(read[0], expected[-1]) > 6, "test invalid: all frames are alike"
    assert fps == 10
    assert os.listdir(tmp_path) == ["a.mp4"]


def test_gif_of_twenty_frames(drawn, tmp_path):
    _, trees, image, _ = drawn
    path = write_movie(tmp_path / "a.gif", trees, fps=5, image=image, frames=FRAMES, size=96)
    expected = list(movie(trees, image=image, frames=FRAMES, size=96))
    with Image.open(path) as read:
        assert read.n_frames == FRAMES
        assert read.info["duration"] == 200
        for k, frame in enumerate(expected):
            read.seek(k)
            assert close(np.asarray(read.convert("RGB")), frame) < 6


def test_png_of_twenty_frames(drawn, tmp_path):
    _, trees, _, _ = drawn
    folder = tmp_path / "frames"
    for n in (FRAMES + 3, FRAMES):  # the second replaces the first, all of it
        write_movie(folder, trees, frames=n, size=64, by="threshold")
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"frame_{k:04d}.png" for k in range(FRAMES)]
    frames = movie(trees, frames=FRAMES, size=64, by="threshold")
    for name, frame in zip(names, frames, strict=True):
        assert (iio.imread(folder / name) == frame).all()


@pytest.mark.parametrize("name", ["a.mp4", "a.gif", "frames"])
def test_cancelled_leaves_what_was_there(drawn, tmp_path, name):
    _, trees, _, _ = drawn
    write_movie(tmp_path / name, trees, frames=2, size=64)
    before = _contents(tmp_path)

    def stop(progress):
        if progress.stage == "frames" and progress.done == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        write_movie(tmp_path / name, trees, frames=9, size=64, progress=stop)
    assert _contents(tmp_path) == before


def _contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_refused(drawn, tmp_path):
    _, trees, _, _ = drawn
    with refuses("path", SetOption):
        write_movie(tmp_path / "a.avi", trees)
    with refuses("fps", SetOption("fps", 12)):
        write_movie(tmp_path / "a.gif", trees, fps=0)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with refuses("path", "choose another name"):
        write_movie(tmp_path / "thesis", trees)
    with refuses("path", "no first"):
        write_movie(tmp_path / "no" / "a.gif", trees, frames=2)
    assert agglo.write_movie is write_movie


def test_progress_tells_every_frame(drawn, tmp_path):
    seen = []
    write_movie(tmp_path / "a.gif", drawn[1], frames=4, size=64, progress=seen.append)
    told = [(one.done, one.total) for one in seen if one.stage == "frames"]
    assert told == [(k, 4) for k in range(5)]
