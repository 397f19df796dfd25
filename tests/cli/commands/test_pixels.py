"""`pixels`: strokes or gold in, a classifier out, and cues that other commands take."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tifffile
from oracles.strokes import cells, strokes

import napari_agglo as agglo
from napari_agglo.volumes import open_volume

pytestmark = pytest.mark.compiled


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write an image, its strokes and its gold; work in their folder."""
    monkeypatch.chdir(tmp_path)
    image, gold, wall = cells((12, 24, 24))
    for name, array in (("image", image), ("strokes", strokes(wall)), ("gold", gold)):
        tifffile.imwrite(f"{name}.tif", array.astype(np.uint8 if name != "gold" else np.uint16))
    return image, gold, strokes(wall)


def test_from_strokes_to_labels(files, run):
    image, _, labels = files
    train = ("pixels", "train", "--image", "image.tif", "--labels", "strokes.tif", "-o", "c.npz")
    status, out, message = run(*train, "--classes", "wall", "cell", "--scales", "1", "2")
    assert status == 0, message
    assert "of wall" in out
    classifier = agglo.load_pixel_classifier("c.npz")
    want = agglo.train_pixels(image, labels, classes=["wall", "cell"], scales=(1, 2))
    np.testing.assert_array_equal(classifier.forest.nodes, want.forest.nodes)
    cues = want.predict(image)

    status, out, message = run("pixels", "predict", "image.tif", "--classifier", "c.npz", "-o", "p")
    assert status == 0, message
    assert "--cues wall=p/wall.tif cell=p/cell.tif" in out
    np.testing.assert_array_equal(tifffile.imread("p/cell.tif"), cues["cell"])
    predict = ("pixels", "predict", "image.tif", "--classifier", "c.npz", "--classes", "wall")
    for _ in range(2):  # a group that it wrote itself is replaced
        status, out, _ = run(*predict, "--spacing", "2,1,1", "-o", "p.zarr", "--json")
        assert json.loads(out)["cues"] == {"wall": "p.zarr:wall"}
    volume = open_volume("p.zarr:wall")
    assert volume.spacing == (2.0, 1.0, 1.0)
    np.testing.assert_array_equal(volume.load(), want.predict(image, spacing=(2, 1, 1))["wall"])

    assert run("oversegment", "p/wall.tif", "-o", "s.tif")[0] == 0
    cue = ("--superpixels", "s.tif", "--cues", "boundary=p/wall.tif", "cell=p/cell.tif")
    status, _, message = run("segment", *cue, "-o", "labels.tif")
    assert status == 0, message


def test_several_volumes_of_gold_and_many_images(files, run, tmp_path):
    image = files[0]
    pair = ("--image", "image.tif", "image.tif", "--gold", "gold.tif", "gold.tif")
    status, out, message = run("pixels", "train", *pair, "--examples", "300", "-o", "c.npz")
    assert status == 0, message
    assert all(words in out for words in ("300 of boundary", "300 of interior"))
    (tmp_path / "in").mkdir()
    for k in range(2):
        tifffile.imwrite(f"in/{k}.tif", image[:, k:])
    status, _, message = run(
        "pixels", "predict", "in", "--classifier", "c.npz", "-o", "out", "--each"
    )
    assert status == 0, message
    assert sorted(str(p) for p in (tmp_path / "out").rglob("*.tif"))[0].endswith("0/boundary.tif")
    assert tifffile.imread("out/1/interior.tif").shape == image[:, 1:].shape


def test_refusals(files, refused):
    train = ("pixels", "train", "--image", "image.tif")
    assert "--labels" in refused(*train, "-o", "c.npz")
    assert "c.npz" in refused(*train, "--labels", "strokes.tif", "-o", "c")
    message = refused(*train, "--gold", "gold.tif", "gold.tif", "-o", "c.npz")
    assert (message.argument, bool(message.remedies)) == ("gold", True)
    message = refused(*train, "--labels", "strokes.tif", "--classes", "a", "b", "c", "-o", "c.npz")
    assert (message.argument, len(message.remedies)) == ("labels", 2)
    assert all(words in message for words in ("strokes.tif", "of c", "--classes"))
    message = refused(*train, "--labels", "strokes.npz", "-o", "strokes.npz")
    assert (message.argument, "--labels strokes.npz" in message) == ("-o", True)
    agglo.train_pixels(files[0], files[2], trees=2).save("c.npz")
    predict = ("pixels", "predict", "image.tif", "--classifier")
    assert "boundary, cytoplasm" in refused(*predict, "c.npz", "--classes", "x", "-o", "p")
    message = refused(*predict, "gold.tif", "-o", "p")
    assert (message.argument, "gold.tif" in message) == ("path", True)
    message = refused(*predict, "c.npz", "-o", "p.tif")
    assert (message.argument, ".tif." in message) == ("-o", True)
    tifffile.imwrite("plane.tif", files[0][0])
    message = refused("pixels", "predict", "plane.tif", "--classifier", "c.npz", "-o", "p")
    assert (message.argument, "plane.tif" in message) == ("image", True)
