from __future__ import annotations

import re

import imageio.v3 as iio
import numpy as np
import pytest
import tifffile

from napari_agglo.superpixels import boundary_cue, boundary_from_labels
from napari_agglo.volumes import open_volume

LINE = np.full((20, 24), 200, np.uint8)
LINE[:, 12] = 20


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tifffile.imwrite("line.tif", LINE)
    iio.imwrite("picture.png", np.stack([LINE, LINE[:, ::-1], LINE // 2], axis=-1))
    return tmp_path


def test_a_map_that_can_be_segmented_by(run, here):
    status, out, err = run("cue", "line.tif", "-o", "b.tif")
    assert (status, err) == (0, "")
    name, _, numbers = out.partition(": ")
    assert (name, re.findall(r"[\d.]+", numbers)) == ("b.tif", ["20", "24", "0", "1"])
    np.testing.assert_array_equal(open_volume("b.tif").load(), boundary_cue(LINE))
    assert run("oversegment", "b.tif", "-o", "s.tif")[0] == 0


def test_kind_scale_and_spacing(run, here):
    options = ["--kind", "gradient", "--scale", "1.5", "--spacing", "2,1"]
    assert run("cue", "line.tif", "-o", "b.tif", *options)[0] == 0
    volume = open_volume("b.tif")
    assert volume.spacing == (2, 1)
    expected = boundary_cue(LINE, "gradient", scale=1.5, spacing=(2, 1))
    np.testing.assert_array_equal(volume.load(), expected)


def test_colours(run, here):
    assert run("cue", "picture.png", "-o", "b.tif")[0] == 0
    expected = boundary_cue(iio.imread("picture.png"), "colour")
    np.testing.assert_array_equal(open_volume("b.tif").load(), expected)


def test_the_borders_of_labels(run, refused, here):
    first, second = np.repeat([[1, 2]], [8, 16], axis=1), np.repeat([[1, 2]], [9, 15], axis=1)
    tifffile.imwrite("a.tif", first.astype(np.uint8))
    tifffile.imwrite("b.tif", second.astype(np.uint8))
    options = ["--width", "2", "--spacing", "1,2"]
    assert run("cue", "--labels", "a.tif", "b.tif", "-o", "m.tif", *options)[0] == 0
    volume = open_volume("m.tif")
    assert volume.spacing == (1, 2)
    expected = boundary_from_labels([first, second], width=2, spacing=(1, 2))
    np.testing.assert_array_equal(volume.load(), expected)
    both = refused("cue", "line.tif", "--labels", "a.tif", "-o", "m.tif")
    assert all(option in both for option in ("IMAGE", "--labels"))
    assert "a.tif" in refused("cue", "--labels", "line.tif", "a.tif", "-o", "m.tif")
    assert "--width" in refused("cue", "--labels", "a.tif", "--width", "-1", "-o", "m.tif")


def test_each(run, here):
    (here / "in").mkdir()
    for name in ("a", "b"):
        tifffile.imwrite(here / "in" / f"{name}.tif", LINE)
    assert run("cue", "in", "--each", "-o", "out")[0] == 0
    assert sorted(path.name for path in (here / "out").iterdir()) == ["a.tif", "b.tif"]


def test_refused(refused, here):
    tifffile.imwrite("flat.tif", np.zeros((5, 5), np.uint8))
    for words, argument, named in (
        (["flat.tif", "-o", "b.tif"], "image", "flat.tif"),
        (["line.tif", "-o", "b.tif", "--kind", "edge"], "kind", "--kind auto"),
        (["line.tif", "-o", "b.tif", "--scale", "0"], "scale", "--scale 1"),
        (["line.tif", "-o", "b.tif", "--kind", "colour"], "image", "--kind gradient"),
        (["line.tif", "-o", "b.png"], "-o", ".tif"),
        (["line.tif", "-o", "line.tif"], "-o", "IMAGE line.tif"),
    ):
        message = refused("cue", *words)
        assert (message.argument, bool(message.remedies)) == (argument, True)
        assert named in message
    assert not (here / "b.tif").exists()
