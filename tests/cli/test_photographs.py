"""Maps with directions and textons on the command line, from a picture to a policy."""

from __future__ import annotations

import imageio.v3 as iio
import numpy as np
import pytest
import tifffile

import napari_agglo as agglo
from napari_agglo.superpixels import oriented_boundary, textons
from napari_agglo.volumes import open_volume

pytestmark = pytest.mark.compiled


@pytest.fixture
def photo(tmp_path, monkeypatch):
    """Work in a folder with a picture of four fields, and the gold of two of them each."""
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(0).normal(0, 40, (40, 48, 3))
    colours = np.array([[(120, 140, 90), (170, 90, 60)], [(60, 70, 160), (200, 190, 90)]])
    picture = np.repeat(np.repeat(colours, 20, axis=0), 24, axis=1) + noise
    picture = np.clip(picture, 0, 255).astype(np.uint8)
    iio.imwrite("photo.png", picture)
    gold = np.repeat(np.repeat([[1, 2], [3, 4]], 20, axis=0), 24, axis=1).astype(np.uint8)
    tifffile.imwrite("gold.tif", gold)
    return picture


def test_from_a_picture_to_a_policy(run, photo):
    assert run("cue", "photo.png", "--kind", "oriented", "-o", "o.tif")[::2] == (0, "")
    assert run("cue", "photo.png", "--kind", "textons", "-o", "t.tif")[::2] == (0, "")
    directions, words = oriented_boundary(photo), textons(photo)
    np.testing.assert_array_equal(open_volume("o.tif:c=*").load(), directions.channels)
    np.testing.assert_array_equal(open_volume("t.tif").load(), words.words)

    options = ["--min-size", "9"]
    assert run("oversegment", "--oriented", "o.tif", "-o", "s.tif", *options)[::2] == (0, "")
    superpixels = agglo.oversegment(directions, min_size=9)
    np.testing.assert_array_equal(open_volume("s.tif").load(), superpixels)

    inputs = ["--superpixels", "s.tif", "--oriented", "o.tif"]
    oriented = ["--policy", "oriented mean", "--threshold", "0.46"]
    assert run("segment", *inputs, *oriented, "-o", "l.tif")[::2] == (0, "")
    assert run("segment", *inputs, "--threshold", "0.46", "-o", "m.tif")[::2] == (0, "")
    graph = agglo.region_graph(superpixels, {"boundary": directions})
    expected = agglo.agglomerate(graph, "oriented mean").segment(0.46)
    np.testing.assert_array_equal(open_volume("l.tif").load(), expected)
    assert not np.array_equal(expected, open_volume("m.tif").load()), "test invalid"

    learned = ["--gold", "gold.tif", "--strategy", "flat", "-o", "p.npz"]
    status, _, err = run("train", *inputs, "--words", "t.tif", *learned)
    assert (status, err) == (0, "")
    features = agglo.load_policy("p.npz").features
    assert (features.cues, features.words) == (("boundary", "boundary_oriented"), ("textons",))
    whole = [*inputs, "--words", "t.tif", "--policy", "p.npz", "--threshold", "0.5"]
    assert run("segment", *whole, "-o", "n.tif")[::2] == (0, "")
    graph = agglo.region_graph(superpixels, {"boundary": directions, "textons": words})
    learned_tree = agglo.agglomerate(graph, agglo.load_policy("p.npz"))
    np.testing.assert_array_equal(open_volume("n.tif").load(), learned_tree.segment(0.5))
