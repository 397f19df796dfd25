"""Commands on the embedded samples, which are too large for kernels in plain Python."""

from __future__ import annotations

import json
import os
import re

import pytest

import napari_agglo as agglo
from napari_agglo.policy import is_training_data
from napari_agglo.samples import SAMPLES, sample
from napari_agglo.volumes import open_volume

pytestmark = pytest.mark.compiled


def test_the_help_names_all_samples(run):
    _, out, _ = run("sample", "--help")
    kinds = out.split("positional arguments:")[1].split("options:")[0]
    assert re.findall(r"\w+\dd", kinds) == list(SAMPLES)


def test_sample(run, tmp_path):
    status, _, err = run("sample", "neuropil2d", "-o", tmp_path / "out")
    assert (status, err) == (0, "")
    drawn = sample("neuropil2d")
    names = {"image.tif", "gold.tif", *(f"cue_{name}.tif" for name in drawn.cues)}
    assert set(os.listdir(tmp_path / "out")) == names
    for name, cue in drawn.cues.items():
        volume = open_volume(tmp_path / "out" / f"cue_{name}.tif")
        assert (volume.load() == cue).all()
        assert volume.spacing == pytest.approx(drawn.spacing)
    assert (open_volume(tmp_path / "out" / "gold.tif").load() == drawn.gold).all()


def test_an_unknown_sample(refused, tmp_path):
    message = refused("sample", "brain", "-o", tmp_path / "out")
    assert "neuropil3d" in message
    assert os.listdir(tmp_path) == []


def test_an_interrupted_sample_leaves_nothing(run, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("napari_agglo.volumes.write_labels", interrupted)
    assert run("sample", "cells2d", "-o", tmp_path / "out")[0] == 130
    assert os.listdir(tmp_path) == []


def test_demo(run, tmp_path):
    """On the small sample; `make demo` runs the large one."""
    output = tmp_path / "out"
    status, out, err = run("demo", "--headless", "--sample", "neuropil2d", "-o", output)
    assert (status, err) == (0, "")
    written = {"superpixels.tif", "labels.tif", "tree.csv", "curves.csv", "picture.png"}
    more = {"summary.json", "policy.npz", "report.html", "movie.mp4"}
    assert set(os.listdir(output)) == written | more
    page = (output / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in ("mean", "flat", "agglo"))
    assert (output / "movie.mp4").stat().st_size > 10_000
    summary = json.loads((output / "summary.json").read_text())
    policies = summary["policies"]
    assert list(policies) == ["mean", "flat", "agglo"]
    assert summary["seed"] != summary["training_seed"], "no policy has seen what it is tested on"
    for row in policies.values():
        assert summary["vi_best_possible"] < row["best"]["vi"] <= row["at_half"]["vi"]
    assert policies["agglo"]["best"]["vi"] < policies["mean"]["best"]["vi"]
    labels = open_volume(output / "labels.tif").load()
    assert len(set(labels.ravel().tolist()) - {0}) == policies["agglo"]["at_half"]["segments"]
    # the policy in the folder is that of the table, and did not learn from this sample
    drawn = sample("neuropil2d")
    superpixels = open_volume(output / "superpixels.tif").load()
    graph = agglo.region_graph(superpixels, drawn.cues, spacing=drawn.spacing)
    policy = agglo.load_policy(output / "policy.npz")
    assert not is_training_data(policy, graph)
    tree = agglo.agglomerate(graph, policy)
    assert agglo.metrics(tree.segment(0.5), drawn.gold)["vi"] == pytest.approx(
        policies["agglo"]["at_half"]["vi"]
    )
    assert "another sample" in out
    assert str(output) in out
    assert (output / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_best_threshold_of_a_sample_can_be_typed_back(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("sample", "neuropil2d", "-o", "n")
    run("oversegment", "n/cue_boundary.tif", "-o", "s.tif")
    pipeline = ["--superpixels", "s.tif", "--cues", "n/cue_boundary.tif"]
    _, out, _ = run("curve", *pipeline, "--gold", "n/gold.tif")
    best = next(line.split() for line in out.splitlines() if line.startswith("best"))
    assert len(best[1]) > 5, "test invalid: three digits would have done"
    _, message, _ = run("segment", *pipeline, "--threshold", best[1], "-o", "l.tif")
    assert f", {best[2]} segments" in message
