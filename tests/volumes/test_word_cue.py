"""Cues of words: histograms that add, features by hand, policies, sessions, refusals."""

from __future__ import annotations

import dataclasses
import json
import zipfile

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from scipy.spatial.distance import jensenshannon

import napari_agglo as agglo
from napari_agglo.features import FeatureMap, feature_table
from napari_agglo.graph import contracted, divided
from napari_agglo.policy import adapt_cues
from napari_agglo.volumes import oriented_map, word_cue

pytestmark = pytest.mark.compiled


def made_up(seed, shape=(12, 14), n_words=7):
    """Return a graph of blocks with a cue and two cues of words, and the words of the first."""
    random = np.random.default_rng(seed)
    blocks = random.integers(1, 30, tuple(-(-n // 3) for n in shape)) + 300
    labels = blocks
    for axis in range(len(shape)):
        labels = np.repeat(labels, 3, axis=axis)
    labels = labels[tuple(slice(n) for n in shape)]
    words = random.integers(0, n_words, shape)
    cues = {
        "textons": word_cue(words, n_words),
        "boundary": random.random(shape),
        "classes": word_cue(words % 2),
    }
    return agglo.region_graph(labels, cues), words


@examples(12)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_words_are_counted_in_regions_and_add_when_regions_merge(seed, ndim):
    graph, words = made_up(seed, (6, 7, 5)[:ndim])
    assert graph.cue_names == ("boundary",)
    assert graph.word_names == ("textons", "classes")
    image = graph.superpixels.image
    for region in range(1, graph.n_regions + 1):
        counts = np.bincount(words[image == region], minlength=7)
        assert np.array_equal(graph.word_counts("textons")[region], counts)
        assert graph.word_counts("classes")[region].tolist() == [
            counts[::2].sum(),
            counts[1::2].sum(),
        ]
    tree = agglo.agglomerate(graph, "mean")
    coarse = contracted(graph, tree.lut(0.5))
    assert coarse.word_counts("textons").sum() == words.size
    again = agglo.region_graph(
        tree.segment(0.5), {"boundary": np.zeros(words.shape), "t": word_cue(words, 7)}
    )
    assert np.array_equal(coarse.word_counts("textons"), again.word_counts("t"))


def test_words_take_columns_of_regions_and_none_of_boundaries():
    graph, _ = made_up(3)
    assert graph.layout.boundary_width == 2 + 29
    assert graph.regions.shape[1] == graph.layout.region_words + 9


def test_features_of_words_are_those_of_scipy():
    graph, _ = made_up(1)
    table = feature_table(graph, "minimal")
    counts = graph.word_counts("textons").astype(float)
    for k, (u, v) in enumerate(graph.edges.tolist()):
        small, large = sorted((u, v), key=lambda one: (graph.sizes[one], one))
        p, q = counts[small] / counts[small].sum(), counts[large] / counts[large].sum()
        row = table.iloc[k]
        assert row["textons/difference/jensen_shannon"] == pytest.approx(
            jensenshannon(p, q, 2) ** 2, abs=1e-6
        )
        both = p + q > 0
        chi = 0.5 * ((p - q)[both] ** 2 / (p + q)[both]).sum()
        assert row["textons/difference/chi_squared"] == pytest.approx(chi, abs=1e-6)
        for name, share in (("node_min", p), ("node_max", q)):
            entropy = -(share[share > 0] * np.log2(share[share > 0])).sum()
            assert row[f"textons/{name}/entropy"] == pytest.approx(entropy, abs=1e-5)


@pytest.mark.parametrize("preset", ["minimal", "shape", "em", "natural", "angles"])
def test_names_and_columns_agree_in_every_preset(preset):
    graph, _ = made_up(2)
    features = FeatureMap(preset, ("boundary",), 25, ("textons", "classes"))
    assert len(features.names) == features.width
    plain = dataclasses.replace(features, words=())
    assert features.names[: plain.width] == plain.names
    bare = agglo.region_graph(
        graph.ids[graph.superpixels.image],
        {"boundary": graph.cues[0].reshape(12, 14)},
        ranges=(0, 255),
    )
    with_words, without = feature_table(graph, preset), feature_table(bare, preset)
    assert without.equals(with_words[without.columns])


def test_policies_of_all_kinds_of_cues_are_saved_and_opened(tmp_path):
    random = np.random.default_rng(0)
    shape = (24, 24)
    labels = np.kron(np.arange(36).reshape(6, 6), np.ones((4, 4), int)) + 300
    cues = {
        "boundary": oriented_map(random.random((8, *shape)).astype(np.float32)),
        "affinity": agglo.affinities(random.random((2, *shape)) * 0.4 + 0.6),
        "membrane": random.random(shape),
        "textons": word_cue(random.integers(0, 9, shape), 9),
    }
    graph = agglo.region_graph(labels, cues)
    gold = 1 + (np.arange(24) >= 12)[:, None] * np.ones((1, 24), int)
    for classifier in ("forest", "logistic"):
        policy = agglo.train(graph, gold, strategy="flat", preset="natural", classifier=classifier)
        path = policy.save(tmp_path / f"{classifier}.npz")
        again = agglo.load_policy(path)
        assert again.features == policy.features
        assert again.features.words == ("textons",)
        assert np.array_equal(again.score(graph), policy.score(graph))
        tree = agglo.agglomerate(graph, again)
        assert np.array_equal(tree.heights, agglo.agglomerate(graph, policy).heights)
        with zipfile.ZipFile(path) as archive:
            header = json.loads(np.load(archive.open("header.npy")).tobytes())
        assert header["words"] == ["textons"]
    without = agglo.region_graph(labels, {n: c for n, c in cues.items() if n != "textons"})
    with refuses("policy"):
        policy.score(without)
    adapted = adapt_cues(policy, graph)
    assert adapted["textons"].n_words == 9


def test_a_session_with_words_opens_again_with_the_same_segments(tmp_path):
    graph, _words = made_up(4, (30, 30))
    gold = np.ones((30, 30), int)
    gold[:, 15:] = 2
    policy = agglo.train(graph, gold, strategy="flat", preset="natural")
    tree = agglo.agglomerate(graph, policy)
    with agglo.Session.create(tmp_path / "a.agglo", graph, policy, tree=tree) as session:
        labels = session.labels()
    with agglo.Session.open(tmp_path / "a.agglo") as session:
        assert np.array_equal(session.labels(), labels)
        assert session.graph.word_names == ("textons", "classes")
        assert np.array_equal(session.graph.regions, graph.regions)


def test_a_superpixel_with_words_can_be_divided():
    graph, words = made_up(6)
    region = int(graph.sizes.argmax())
    box = tuple(slice(a, b) for a, b in zip(*graph.boxes[region], strict=True))
    inside = graph.superpixels.image[box] == region
    pieces = np.where(inside, 1, 0).astype(np.uint32)
    first = np.argwhere(inside)[0]
    pieces[tuple(first)] = 2
    cut = divided(graph, region, pieces)
    at = tuple(f + s.start for f, s in zip(first, box, strict=True))
    counts = cut.word_counts("textons")
    assert counts.sum() == words.size
    new = cut.superpixels.image[at]
    other = new if counts[new].sum() == 1 else region
    assert counts[other].sum() == 1
    assert counts[other][words[at]] == 1


def test_bad_words_are_refused_with_a_way_out():
    with refuses("array", "plain cue"):
        word_cue(np.zeros((3, 3)))
    with refuses("array"):
        word_cue(np.array([[0, 300]]), 256)
    with refuses("array"):
        word_cue(np.array([[-1, 3]]), 9)
    with refuses("n_words"):
        word_cue(np.array([[0, 300]]))
    with refuses("n_words"):
        word_cue(np.array([[0, 3]]), 1)
    words = word_cue(np.array([[0, 1, 1]]))
    with refuses("cues"):
        agglo.region_graph(np.array([[1, 2, 3]]), {"textons": words})  # no boundary
    with refuses("superpixels"):
        agglo.region_graph(np.array([[1, 2]]), {"b": np.zeros((1, 2)), "textons": words})
    graph = agglo.region_graph(np.array([[1, 2, 3]]), {"b": np.zeros((1, 3)), "textons": words})
    with refuses("name"):
        graph.word_counts("b")
    means = agglo.region_graph(
        np.array([[1, 2, 3]]), {"b": np.zeros((1, 3)), "textons": words}, statistics="mean"
    )
    assert means.word_names == ()
    assert means.cues.shape == (1, 3)
