"""Oriented boundary maps: directions of borders, the cues of a graph, the policy, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.graph import divided
from napari_agglo.policy import OrientedMeanPolicy
from napari_agglo.volumes import border_channels, oriented_map

pytestmark = pytest.mark.compiled
INSIDE = 255


def half_plane(turn, size=64):
    """Return labels of the two sides of a line, `turn` half turns from a row."""
    rows, columns = np.mgrid[:size, :size] - size / 2 + 0.25
    angle = math.pi * turn
    columns = columns + 0.1  # no pixel is on the line, where rounding would decide
    return 1 + (columns * math.sin(angle) + rows * math.cos(angle) > 0)


@pytest.mark.parametrize("channel", range(8))
def test_a_straight_border_has_one_direction_in_spite_of_its_stairs(channel):
    found = border_channels(half_plane(channel / 8), 8)[:, 3:-3, 3:-3]  # ends may be corners
    assert set(found[found != INSIDE].tolist()) == {channel}


@examples(20)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_every_face_between_labels_has_a_direction_and_no_other(seed, n_labels):
    random = np.random.default_rng(seed)
    labels = random.integers(0, n_labels + 1, random.integers(1, 8, 2))
    found = border_channels(labels, 8)
    for axis in range(2):
        borders = np.zeros(labels.shape, bool)
        inner = (slice(None, -1), slice(None)) if axis == 0 else (slice(None), slice(None, -1))
        borders[inner] = np.diff(labels, axis=axis) != 0
        assert np.array_equal(found[axis] < 8, borders)
        assert (found[axis][~borders] == INSIDE).all()


def test_a_quarter_turn_of_labels_turns_the_directions():
    rows, columns = np.mgrid[:40, :40]
    labels = 1 + (np.hypot(rows - 20, columns - 17) < 12) + 2 * (rows + 2 * columns > 90)
    found, turned = border_channels(labels, 8), border_channels(np.rot90(labels), 8)
    counts = [np.bincount(one[one != INSIDE], minlength=8) for one in (found, turned)]
    # where a line is divided depends on where it begins, so that a few faces may differ
    assert np.abs(np.roll(counts[0], 4) - counts[1]).sum() <= 0.2 * counts[0].sum()
    assert (counts[0] > 0).sum() >= 4  # a closed line has many directions


def test_a_corner_is_divided_into_its_two_sides():
    labels = np.ones((20, 20), int)
    labels[8:, 8:] = 2
    found = border_channels(labels, 8)
    assert set(found[0][found[0] != INSIDE].tolist()) == {0}
    assert set(found[1][found[1] != INSIDE].tolist()) == {4}


def random_graph(seed, channels):
    random = np.random.default_rng(seed)
    labels = np.kron(random.integers(1, 40, (6, 6)), np.ones((4, 4), int)) + 300
    return agglo.region_graph(labels, {"boundary": oriented_map(channels, value_range=(0, 255))})


@examples(10)
@given(st.integers(0, 10**6))
def test_oriented_mean_is_the_plain_mean_on_an_isotropic_map(seed):
    random = np.random.default_rng(seed)
    plane = 2 * random.integers(0, 128, (24, 24)).astype(np.uint8)  # even: no face is rounded
    graph = random_graph(seed, np.repeat(plane[None], 8, axis=0))
    assert graph.cue_names == ("boundary", "boundary_oriented")
    plain, oriented = (graph.boundary_mean(name) for name in graph.cue_names)
    assert np.array_equal(plain, oriented)
    trees = [agglo.agglomerate(graph, policy) for policy in ("mean", "oriented mean")]
    assert np.array_equal(trees[0].heights, trees[1].heights)


def test_odd_values_are_rounded_by_half_a_level_at_most_without_bias():
    plane = np.random.default_rng(0).integers(0, 256, (24, 24)).astype(np.uint8)
    graph = random_graph(0, np.repeat(plane[None], 8, axis=0))
    error = 255 * (graph.boundary_mean("boundary_oriented") - graph.boundary_mean("boundary"))
    assert np.abs(error).max() <= 0.5
    assert abs(error.mean()) < 0.1


def test_oriented_mean_differs_where_a_border_crosses_the_lines_of_the_map():
    channels = np.zeros((8, 24, 24), np.float32)
    channels[4] = 0.8  # vertical lines everywhere
    labels = np.ones((24, 24), int)
    labels[:, 12:] = 2
    labels[12:, 12:] = 3
    graph = agglo.region_graph(labels, {"boundary": oriented_map(channels)})
    by_pair = {tuple(edge): k for k, edge in enumerate(graph.edges.tolist())}
    plain, oriented = (graph.boundary_mean(name).round(3) for name in graph.cue_names)
    assert plain.tolist() == [0.8] * 3
    assert oriented[by_pair[1, 2]] == oriented[by_pair[1, 3]] == 0.8
    assert oriented[by_pair[2, 3]] == 0
    merged = agglo.agglomerate(graph, "oriented mean").segment(0.5)
    assert merged[0, 20] == merged[20, 20] != merged[0, 0]


def test_a_face_reads_the_strongest_direction_within_an_eighth_of_a_half_turn():
    labels = np.ones((4, 4), int)
    labels[2:] = 2
    for channel, read in ((0, 1.0), (1, 1.0), (7, 1.0), (2, 0.0), (4, 0.0)):
        channels = np.zeros((8, 4, 4), np.float32)
        channels[channel] = 1
        graph = agglo.region_graph(labels, {"boundary": oriented_map(channels)})
        assert graph.boundary_mean("boundary_oriented").tolist() == [read]


def test_a_superpixel_can_be_divided_and_reads_the_strongest_direction_inside():
    channels = np.zeros((8, 6, 6), np.float32)
    channels[3] = 0.4
    labels = np.ones((6, 6), int)
    labels[:, 3:] = 2
    graph = agglo.region_graph(labels, {"boundary": oriented_map(channels)})
    pieces = np.ones((6, 3), np.uint32)
    pieces[3:] = 2
    cut = divided(graph, 1, pieces)
    new = agglo.region_graph(cut.superpixels.image, {"boundary": oriented_map(channels)})
    assert cut.n_regions == new.n_regions == 3
    pair = cut.edges.tolist().index([1, 3])
    assert cut.boundary_mean("boundary_oriented")[pair] == pytest.approx(0.4, abs=1 / 255)


def test_oriented_mean_takes_affinities_too_and_keeps_its_cue():
    affinities = agglo.affinities(np.full((2, 4, 4), 0.75))
    labels = np.repeat([[1, 1, 2, 2]], 4, axis=0)
    graph = agglo.region_graph(labels, {"affinity": affinities})
    assert agglo.agglomerate(graph, "oriented mean").heights.round(2).tolist() == [0.25]
    again = OrientedMeanPolicy.from_json(OrientedMeanPolicy("affinity_y").to_json())
    assert again == OrientedMeanPolicy("affinity_y")
    with refuses("words"):
        OrientedMeanPolicy.from_json({"cue": 3})


def test_a_session_by_oriented_mean_opens_again(tmp_path):
    channels = np.random.default_rng(1).integers(0, 256, (8, 24, 24)).astype(np.uint8)
    graph = random_graph(1, channels)
    with agglo.Session.create(tmp_path / "a.agglo", graph, "oriented mean") as session:
        labels = session.labels()
    with agglo.Session.open(tmp_path / "a.agglo") as session:
        assert session.policy == OrientedMeanPolicy()
        assert np.array_equal(session.labels(), labels)


def test_bad_maps_are_refused_with_a_way_out():
    with refuses("array", "np.moveaxis"):
        oriented_map(np.zeros((90, 80, 8)))
    with refuses("array", "plain cue"):
        oriented_map(np.zeros((1, 9, 90)))
    with refuses("array", "plane"):
        oriented_map(np.zeros((9, 9)))
    with refuses("array", "array[:, 0]"):
        oriented_map(np.zeros((8, 3, 9, 9)))
    with refuses("array"):
        oriented_map(np.full((8, 9, 9), np.nan))
    assert oriented_map(np.full((8, 2, 2), np.nan), nan="boundary").channels.min() == 255
    with refuses("array", "value_range"):
        oriented_map(np.zeros((8, 9, 9), np.uint16))
    found = oriented_map(np.zeros((8, 9, 9)))
    with refuses("cues"):
        agglo.region_graph(np.ones((2, 9, 9), int) * 300, {"boundary": found})
    with refuses("superpixels"):
        agglo.region_graph(np.ones((9, 8), int) * 300, {"boundary": found})
    plain = agglo.region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3)))
    with refuses("policy", "oriented_boundary"):
        agglo.agglomerate(plain, "oriented mean")
