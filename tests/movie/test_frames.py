"""Frames of a movie: states in step, colours that match and stay, flashes that fade."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import SetOption
from napari_agglo.movie import movie, steps
from napari_agglo.movie._draw_frame import compose, draw_panel
from napari_agglo.movie._panels import (
    DURATION,
    Flashes,
    StillPanel,
    TreePanel,
    _visible_areas,
    scene,
)
from napari_agglo.volumes import dense_labels


def test_in_step_by_merges(drawn):
    _, trees, _, _ = drawn
    found = steps(list(trees.values()), "merges", 14)
    assert found.merges[:, 0].tolist() == found.merges[:, 1].tolist() == list(range(0, 40, 3))
    for merges, thresholds in zip(found.merges, found.thresholds, strict=True):
        for tree, m, t in zip(trees.values(), merges, thresholds, strict=True):
            assert t == (tree.heights[m - 1] if m else -np.inf)


def test_in_step_by_threshold(drawn):
    _, trees, _, _ = drawn
    found = steps(list(trees.values()), "threshold", 21, start=0.2, stop=0.8)
    assert found.thresholds[[0, -1], 0].tolist() == [0.2, 0.8]
    for merges, thresholds in zip(found.merges, found.thresholds, strict=True):
        for tree, m, t in zip(trees.values(), merges, thresholds, strict=True):
            assert m == (tree.heights <= t).sum()
    assert steps(list(trees.values()), "threshold", 5).merges[-1].tolist() == [39, 39]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"by": "time"}, ("by", SetOption("by", "merges"))),
        ({"frames": 1}, ("frames", SetOption("frames", 2))),
        ({"start": -1}, ("start", SetOption("start", 0))),
        ({"start": 5, "stop": 2}, ("start", "swap them")),
        ({"stop": np.inf}, ("stop", "leave it out to show all")),
        ({"size": 4}, ("size", SetOption("size", 16))),
        ({"plane": (1,)}, ("plane", "leave it out for the default plane")),
        ({"image": np.zeros((3, 3))}, ("image", "use the same crop of both")),
    ],
)
def test_refused(drawn, options, refusal):
    with refuses(*refusal):
        movie(drawn[1], **options)


def test_panels_refused(drawn):
    _, trees, _, gold = drawn
    tree = trees["mean"]
    for panels in ({}, dict.fromkeys("abcde", tree), [tree]):
        with refuses("panels", "pass a dict such as {'mean': tree}"):
            movie(panels)
    with refuses("panels", "make one with agglomerate(graph, policy)"):
        movie({"gold": gold})
    other = agglo.agglomerate(agglo.region_graph(gold + 1, np.zeros(gold.shape)))
    with refuses("panels['b']", "agglomerate the same graph by each policy"):
        movie({"a": tree, "b": other})
    with refuses("panels['gold']", "use the same crop of both"):
        movie({"a": tree, "gold": gold[1:]})


def test_a_flash_is_of_what_was_merged_and_fades(drawn):
    graph, trees, _, _ = drawn
    tree = trees["mean"]
    flashes = Flashes(tree, graph.sizes)
    assert not flashes.after(3, tree.lut(merges=3)).any()
    table = tree.lut(merges=4)
    lit = flashes.after(4, table)
    made = tree.lut(merges=4)[tree.winners[3]]
    assert (lit == (table == made)).all()
    for k in range(1, DURATION + 1):
        later = flashes.after(4, table)
        assert later[table == made] == pytest.approx(1 - k / DURATION)
    assert not later.any()


@given(st.lists(st.integers(0, 3), min_size=9, max_size=9), st.randoms(use_true_random=False))
def test_only_merges_that_are_seen_count(areas, random):
    """Against the sides of each merge, gathered one by one."""
    names = list(range(1, 9))
    members = {name: {name} for name in names}
    kept, dropped, expected = [], [], []
    while len(names) > 1:
        one, two = random.sample(names, 2)
        expected.append(min(sum(areas[k] for k in members[name]) for name in (one, two)))
        kept.append(one)
        dropped.append(two)
        members[one] |= members.pop(two)
        names.remove(two)
    found = _visible_areas(np.array(kept), np.array(dropped), np.array(areas))
    assert found.tolist() == expected


def test_one_colour_for_one_object_in_all_panels(drawn):
    """The gold standard beside a tree that has just reached it has the colours of the tree."""
    graph, trees, _, _ = drawn
    view = scene(trees["mean"], size=48)
    moving = TreePanel(trees["mean"], view, graph.sizes)
    table = moving.table(39 - 5)
    own = moving.labels(moving.matched(table, table, []))
    same = StillPanel(dense_labels(trees["mean"].segment(merges=34)), trees["mean"], view, None)
    assert (same.labels(table, []) == own).all()
    other = TreePanel(trees["random"], view, graph.sizes)
    for merges in range(0, 40, 4):
        reference, names = trees["mean"].lut(merges=merges), other.table(merges)
        shown = other.labels(other.matched(names, reference, []))
        assert len(np.unique(shown)) == len(np.unique(names[1:]))


def test_segments_missing_from_the_first_panel_have_one_colour(drawn):
    graph, trees, _, _ = drawn
    view = scene(trees["mean"], size=48)
    whole = np.minimum(np.arange(41, dtype=np.uint32), 1)
    two = [TreePanel(trees["random"], view, graph.sizes) for _ in range(2)]
    table = two[0].table(20)
    first = two[0].matched(table, whole, [])
    np.testing.assert_array_equal(two[1].matched(table, whole, [first]), first)
    still = StillPanel(dense_labels(trees["random"].segment(merges=20)), trees["mean"], view, None)
    np.testing.assert_array_equal(still.labels(whole, [first]), two[0].labels(first))


def test_a_segment_keeps_its_colour_while_it_grows(drawn):
    trees = drawn[1]
    film = movie({"mean": trees["mean"]}, frames=40, size=48)
    tables = [trees["mean"].lut(merges=int(m)) for m in film.steps.merges[:, 0]]
    for before, after in pairwise(tables):
        assert (after[np.unique(after)] == np.unique(after)).all()
        assert (np.unique(before[after == before]) == np.unique(after)).all()


def test_frames_say_vi_and_numbers(drawn):
    _, trees, image, gold = drawn
    film = movie(trees, image=image, gold=gold, frames=5, size=48)
    k = film.steps.merges[2, 0]
    vi = sum(agglo.split_vi(trees["mean"].segment(merges=int(k)), gold))
    height = float(film.steps.thresholds[2, 0])
    words = film._details("mean", int(k), height).split("   ")
    assert words[1:] == [f"{40 - k} segments", f"VI {vi:.3f}"]
    name, typed = words[0].split()
    assert (name, len(typed) >= 5) == ("threshold", True)
    assert trees["mean"].n_merges_at(float(typed)) == trees["mean"].n_merges_at(height)
    assert film._details("mean", 0, -np.inf).startswith("before any merge   40 segments   VI")


def test_thresholds_of_frames_have_the_digits_that_tell_states_apart():
    superpixels = np.repeat(np.arange(1, 5)[None], 4, axis=0)
    edges, weights = [(1, 2), (2, 3), (3, 4)], [0.0, 0.25, 0.25004]
    graph = agglo.RegionGraph.from_edges(edges, weights, superpixels=superpixels)
    film = movie({"given": agglo.agglomerate(graph)}, frames=4, size=48)
    states = zip(film.steps.merges[:, 0], film.steps.thresholds[:, 0], strict=True)
    shown = [film._details("given", int(m), float(t)).split("   ")[0] for m, t in states]
    assert shown == ["before any merge", "threshold 0.000", "threshold 0.250", "threshold 0.25004"]
    assert film._details("given", 0, -5e-324).startswith("before any merge")


def test_a_plane_of_a_volume_in_proportion():
    superpixels = np.kron(np.arange(1, 9).reshape(2, 2, 2), np.ones((3, 4, 5), int))
    tree = agglo.agglomerate(agglo.region_graph(superpixels, np.zeros(superpixels.shape)))
    low = scene(tree, superpixels / 8, (0,), size=40)
    high = scene(tree, superpixels / 8, size=40, spacing=(1, 2, 1))
    assert low.index == (0,)
    assert high.index == (3,)
    assert set(np.unique(low.superpixels)) == {1, 2, 3, 4}
    assert low.shape == (32, 40)
    assert high.shape == (40, 20)
    colours = np.repeat(superpixels[..., None], 3, axis=3) / 8
    assert np.allclose(scene(tree, colours, (0,), size=40).backdrop, low.backdrop)


def test_a_large_plane_is_thinned_out():
    superpixels = np.arange(1, 9).repeat(100)[None].repeat(700, axis=0)
    tree = agglo.agglomerate(agglo.region_graph(superpixels, np.zeros(superpixels.shape)))
    assert max(scene(tree, size=100).shape) <= 200


def test_drawn_pixel_by_pixel():
    labels = np.array([[0, 0, 1, 1]] * 2)
    black = np.zeros((2, 4, 3), np.float32)
    plain = draw_panel(black, labels)
    assert not plain[:, 0].any(), "no label, no colour"
    assert plain[0, 3].any()
    lit = np.array([[0, 0, 1, 1]] * 2, np.float32)
    assert draw_panel(black, labels, lit)[0, 3].sum() > plain[0, 3].sum()
    assert draw_panel(black, labels, lit)[0, 1].min() > 100, "the outline flashes"


def test_frames_fit_a_video():
    for n in range(1, 5):
        for side in (33, 34):
            frame = compose(
                [np.zeros((side, side, 3), np.uint8)] * n, [("a" * 99, "b" * 99)] * n, 1
            )
            assert frame.shape[0] % 2 == frame.shape[1] % 2 == 0
