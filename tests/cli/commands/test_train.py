"""`train`, and what it writes given to `segment` and `curve`."""

from __future__ import annotations

import json
import re

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
    assert "features: " in out
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
    message = refused("segment", "--superpixels", "s.tif", "--cues", "b.tif", "--policy", "p.npz",
                   "-o", "no.tif")  # fmt: skip
    assert message.argument == "policy"
    assert all(words in message for words in ("boundary, mito", "--cues boundary=FILE"))


@pytest.mark.parametrize(
    ("change", "argument", "named"),
    [
        (["-o", "p.pkl"], "path", "-o p.npz"),
        (["-o", "no/p.npz"], "-o", "no/p.npz"),
        (["-o", "p.npz", "--epochs", "-2"], "epochs", "--epochs 0"),
        (["-o", "p.npz", "--seed", "-2"], "seed", "--seed 0"),
        (["-o", "p.npz", "--gold", "none.tif"], "source", "none.tif"),
        (["-o", "p.npz", "--gold", "b.tif"], "gold[1]", "b.tif"),
        (["-o", "p.npz", "--strategy", "deep"], None, "--strategy"),
    ],
)
def test_refusals(refused, rooms, change, argument, named):
    message = refused(*TRAIN, *change)
    assert message.argument == argument
    assert named in message
    assert message.remedies or "--help" in message


def test_several_volumes(run, refused, rooms):
    gold = tifffile.imread("g.tif")
    tifffile.imwrite("g2.tif", gold[::-1].copy())
    volume = ["--superpixels", "s.tif", "--cues", "mito=m.tif", "boundary=b.tif", "--gold"]
    status, out, err = run(*TRAIN, *volume, "g2.tif", "-o", "p.npz", "--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert (report["output"], report["volumes"]) == ("p.npz", 2)
    policy = load_policy("p.npz")
    assert len(policy.record["volumes"]) == 2
    assert policy.features.cues == ("boundary", "mito")  # those of the first volume, in its order
    alone = json.loads(run(*TRAIN, "-o", "q.npz", "--json")[1])
    assert report["examples"] >= alone["examples"]


def test_each_of_a_folder_makes_one_policy(run, rooms, tmp_path):
    for name, folder in (("s.tif", "s"), ("b.tif", "b"), ("g.tif", "g")):
        (tmp_path / folder).mkdir()
        for image in ("one", "two", "three"):
            tifffile.imwrite(f"{folder}/{image}.tif", tifffile.imread(name))
    train = ["train", "--each", "--superpixels", "s", "--cues", "boundary=b", "--gold", "g"]
    assert run(*train, "--strategy", "flat", "--preset", "minimal", "-o", "p.npz")[0] == 0
    assert len(load_policy("p.npz").record["volumes"]) == 3


@pytest.mark.parametrize(
    ("more", "argument", "named"),
    [
        (["--superpixels", "s.tif", "--gold", "g.tif"], "superpixels", ["volume 2", "--cues;"]),
        (["--superpixels", "s.tif"], "superpixels", ["volume 2", "--cues ", "--gold;"]),
        (
            ["--superpixels", "s.tif", "--cues", "boundary=b.tif", "--gold", "g.tif"],
            "cues",
            ["boundary, mito", "s.tif"],
        ),
        (
            ["--superpixels", "s.tif", "--cues", "boundary=b.tif", "mito=m.tif", "--gold", "b.tif"],
            "gold",
            ["b.tif"],
        ),
    ],
)
def test_volumes_that_are_not_alike(refused, rooms, more, argument, named):
    message = refused(*TRAIN, *more, "-o", "p.npz")
    assert (message.argument, bool(message.remedies)) == (argument, True)
    assert all(words in message for words in named), message


def test_data_unlike_those_of_the_training_are_named_and_adapted(run, rooms):
    assert run(*TRAIN, "-o", "p.npz")[0] == 0
    tifffile.imwrite("i.tif", 1 - tifffile.imread("b.tif"))
    apply = ["segment", "--superpixels", "s.tif", "--policy", "p.npz", "-o", "l.tif", "--cues",
             "mito=m.tif"]  # fmt: skip
    status, _, err = run(*apply, "boundary=i.tif")
    assert status == 0
    assert re.match(r"napari-agglo: warning: .*'boundary'.* inverted", err)
    other = tifffile.imread("l.tif")
    status, _, err = run(*apply, "boundary=i.tif", "--adapt")
    assert status == 0
    assert ": boundary" in err
    adapted = tifffile.imread("l.tif")
    assert run(*apply, "boundary=b.tif") == (0, run(*apply, "boundary=b.tif")[1], "")
    np.testing.assert_array_equal(adapted, tifffile.imread("l.tif"))
    assert (adapted != other).any()


def test_training_on_an_inverted_cue_is_named(run, rooms):
    tifffile.imwrite("b.tif", 1 - tifffile.imread("b.tif"))
    status, _, err = run(*TRAIN, "-o", "p.npz")
    assert status == 0
    assert err == ""  # eight boundaries of a kind: too few to tell from chance
    big = [np.kron(tifffile.imread(f"{name}.tif"), np.ones((8, 1))) for name in "sbmg"]
    rows = np.indices(big[0].shape)[0] // 2
    tifffile.imwrite("s.tif", (big[0] % 6 + 6 * rows + 1).astype(np.uint16))
    for name, array in zip("bm", big[1:3], strict=True):
        tifffile.imwrite(f"{name}.tif", array.astype("f4"))
    tifffile.imwrite("g.tif", big[3].astype(np.uint8))
    status, _, err = run(*TRAIN, "-o", "p.npz")
    assert status == 0
    assert re.match(r"napari-agglo: warning: .*'boundary'.* inverted", err)


def test_errors_on_the_training_data_are_called_so(run, rooms):
    assert run(*TRAIN, "-o", "p.npz")[0] == 0
    given = ["--superpixels", "s.tif", "--cues", "boundary=b.tif", "mito=m.tif", "--gold", "g.tif"]
    _, out, _ = run("curve", *given, "--policy", "p.npz")
    assert "training data" in out
    assert json.loads(run("curve", *given, "--policy", "p.npz", "--json")[1])["training_data"]
    _, out, _ = run("curve", *given)
    assert "training data" not in out, "the mean was not trained"
    for cue in ("b.tif", "m.tif"):  # one cue that is the same is enough
        tifffile.imwrite(cue, 1 - tifffile.imread(cue))
    assert not json.loads(run("curve", *given, "--policy", "p.npz", "--json")[1])["training_data"]


def test_the_error_on_held_out_gold_is_printed(run, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    index = np.indices((16, 96))
    tifffile.imwrite("s.tif", (index[0] // 4 * 48 + index[1] // 2 + 1).astype(np.uint16))
    tifffile.imwrite("g.tif", (index[1] // 4 + 1).astype(np.uint8))
    wall = np.isin(index[1] % 4, (0, 3))
    tifffile.imwrite("b.tif", np.clip(0.5 * wall + 0.2 * rng.random((16, 96)), 0, 1).astype("f4"))
    train = ["train", "--superpixels", "s.tif", "--cues", "boundary=b.tif", "--gold", "g.tif",
             "--classifier", "logistic", "--preset", "minimal", "--epochs", "1",
             "-o", "p.npz"]  # fmt: skip
    status, out, err = run(*train, "--hold-out")
    assert (status, err) == (0, "")
    for words in ("held out", "agglo", "flat", "mean", "at best", "estimate"):
        assert words in out
    estimate = json.loads(run(*train, "--folds", "2", "--json")[1])["estimate"]
    assert estimate["policies"]["mean"].keys() == estimate["policies"]["agglo"].keys()
    assert load_policy("p.npz").record["estimate"] == estimate
    status, out, _ = run(*train, "--folds", "9")
    assert status == 0
    assert " 8 " in next(line for line in out.splitlines() if "held-out" in line)
    assert "VI" not in run(*train)[1], "nothing is measured without being asked for"
    both = refused(*train, "--folds", "2", "--hold-out")
    assert all(option in both for option in ("--folds", "--hold-out"))
    assert refused(*train, "--folds", "-1").argument == "folds"
