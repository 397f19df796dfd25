"""`train`, and what it writes given to `segment` and `curve`."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tifffile

from napari_agglo import load_policy


@pytest.fixture
def rooms(tmp_path, monkeypatch):
    """Write two rooms with a wall between them, in blocks of 2 x 2, with two cues."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    index = np.indices((8, 12))
    tifffile.imwrite("s.tif", (index[0] // 2 * 6 + index[1] // 2 + 1).astype(np.uint16))
    tifffile.imwrite("g.tif", np.where(index[1] < 6, 1, 2).astype(np.uint8))
    wall = np.abs(index[1] - 5.5) < 1
    tifffile.imwrite("b.tif", np.clip(0.7 * wall + 0.2 * rng.random((8, 12)), 0, 1).astype("f4"))
    tifffile.imwrite("m.tif", rng.random((8, 12)).astype("f4"))


TRAIN = ["train", "--superpixels", "s.tif", "--cues", "boundary=b.tif", "mito=m.tif",
         "--gold", "g.tif", "--preset", "minimal", "--epochs", "1"]  # fmt: skip


def test_train_then_segment_and_curve(run, refused, rooms):
    status, out, err = run(*TRAIN, "-o", "p.npz")
    assert (status, err) == (0, "")
    assert "p.npz: " in out
    assert "what counts most: " in out
    policy = load_policy("p.npz")
    assert policy.features.cues == ("boundary", "mito")
    assert policy.record["strategy"] == "agglo"
    # The order of the cues does not matter on the command line.
    given = [
        "--superpixels",
        "s.tif",
        "--cues",
        "mito=m.tif",
        "boundary=b.tif",
        "--policy",
        "p.npz",
    ]
    assert run("segment", *given, "-o", "l.tif")[0] == 0
    labels, gold = tifffile.imread("l.tif"), tifffile.imread("g.tif")
    assert len(np.unique(np.stack([labels, gold]).reshape(2, -1), axis=1).T) == 2
    status, out, _ = run("curve", *given, "--gold", "g.tif", "--json")
    assert status == 0
    assert json.loads(out)["at_threshold"]["vi"] == pytest.approx(0, abs=1e-12)
    said = refused("segment", "--superpixels", "s.tif", "--cues", "b.tif", "--policy", "p.npz",
                   "-o", "no.tif")  # fmt: skip
    assert "was trained on the cues boundary, mito, and --cues gives boundary" in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["-o", "p.pkl"], "must end in .npz"),
        (["-o", "no/p.npz"], "there is no folder"),
        (["-o", "p.npz", "--epochs", "-2"], "--epochs must be from 0 to 1000"),
        (["-o", "p.npz", "--seed", "-2"], "--seed must be from 0"),
        (["-o", "p.npz", "--gold", "none.tif"], "none.tif"),
        (["-o", "p.npz", "--gold", "b.tif"], "b.tif must hold integer labels"),
        (["-o", "p.npz", "--strategy", "deep"], "invalid choice"),
    ],
)
def test_refusals(refused, rooms, change, words):
    assert words in refused(*TRAIN, *change)
