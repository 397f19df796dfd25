"""Division of a superpixel by seeds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refuses
from scipy import ndimage

from napari_agglo import region_graph
from napari_agglo.errors import SetOption
from napari_agglo.graph import divided, pieces_to_runs, runs_to_pieces, superpixel_pieces


@st.composite
def seeded_superpixels(draw):
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    labels = draw(hnp.arrays(np.int64, shape, elements=st.sampled_from([0, 302, 302, 302, 303])))
    pixels = np.argwhere(labels == 302)
    assume(len(pixels) > 1)
    cue = draw(hnp.arrays(np.float32, shape, elements=st.sampled_from([0, 0.25, 0.5, 1])))
    graph = region_graph(labels, cue, spacing=(1.0, 2.0, 3.0, 1.0)[: len(shape)])
    n_seeds = draw(st.integers(2, min(6, len(pixels))))
    chosen = draw(st.permutations(range(len(pixels))))[:n_seeds]
    n_groups = draw(st.integers(2, n_seeds))
    seeds = [[] for _ in range(n_groups)]
    for k, pixel in enumerate(chosen):
        seeds[k % n_groups].append(tuple(pixels[pixel].tolist()))
    return graph, seeds


@given(seeded_superpixels())
def test_pieces_are_connected_and_cover_the_superpixel(case):
    graph, seeds = case
    out = superpixel_pieces(graph, 1, seeds)
    box = tuple(slice(*pair) for pair in graph.boxes[1].T.tolist())
    inside = graph.superpixels.image[box] == 1
    assert np.array_equal(out.labels > 0, inside)
    assert np.unique(out.labels[inside]).tolist() == list(range(1, len(out.groups) + 1))
    for label, group in enumerate(out.groups.tolist(), start=1):
        _, n = ndimage.label(out.labels == label)
        assert n == 1
        held = {
            g
            for g, pixels in enumerate(seeds)
            for pixel in pixels
            if out.labels[tuple(np.array(pixel) - graph.boxes[1, 0])] == label
        }
        assert held == ({group} if group >= 0 else set())
    assert divided(graph, 1, out.labels).n_regions == graph.n_regions + len(out.groups) - 1


def ridge(height=0.8):
    boundary = np.full((9, 21), 0.1)
    boundary[:, 12] = height
    return boundary


def test_watershed_division_follows_the_ridge_and_not_the_middle():
    graph = region_graph(np.full((9, 21), 2), ridge())
    out = superpixel_pieces(graph, 1, [[(4, 1)], [(4, 20)]])
    assert (out.labels[:, :12] == 1).all()
    assert (out.labels[:, 13:] == 2).all()
    assert out.groups.tolist() == [0, 1]


def test_a_seed_on_a_bright_speck_does_not_vanish():
    boundary = ridge()
    boundary[2:7, 4:9] = 0.95  # a block of high values around the seed
    graph = region_graph(np.full((9, 21), 2), boundary)
    out = superpixel_pieces(graph, 1, [[(4, 6)], [(4, 20)]])
    assert (out.labels == 1).sum() > 5, "no further than its neighbours"


def test_a_group_on_both_sides_of_another_is_two_pieces():
    graph = region_graph(np.full((1, 9), 2), np.zeros((1, 9)))
    out = superpixel_pieces(graph, 1, [[(0, 0), (0, 8)], [(0, 4)]])
    assert out.groups.tolist() == [0, 1, 0]


def test_voxels_that_no_seed_reaches_are_a_piece():
    graph = region_graph(np.array([[2, 2, 2, 0, 2]]), np.zeros((1, 5)))
    out = superpixel_pieces(graph, 1, [[(0, 0)], [(0, 2)]])
    assert out.groups.tolist() == [0, 1, -1]
    assert out.labels[0, 4] == 3


@pytest.mark.parametrize(
    ("seeds", "refusal"),
    [
        ([[(0, 0)]], ("seeds", "mark the parts to separate by seeds of different")),
        ([[(0, 0)], []], ("seeds", "mark a pixel, or remove the group")),
        ([[(0, 0)], [(0, 3)]], ("seeds", "put it on a pixel of that superpixel")),
        ([[(0, 0)], [(0, -1)]], ("seeds", "put it on a pixel of that superpixel")),
        ([[(0, 0)], [(5, 0)]], ("seeds", "put it on a pixel of that superpixel")),
        ([[(0, 0)], [(0, 0)]], ("seeds", "move one of them")),
        ([[(0, 0)], [(0, 0.5)]], ("seeds", "round the coordinates, in the order of the")),
        ([[(0, 0)], [(0,)]], ("seeds", "round the coordinates, in the order of the")),
    ],
)
def test_seeds_that_cannot_be_are_refused(seeds, refusal):
    graph = region_graph(np.array([[7, 7, 7, 8]]), np.zeros((1, 4)))
    with refuses(*refusal):
        superpixel_pieces(graph, 1, seeds)


def test_other_refusals():
    graph = region_graph(np.array([[7, 7, 7, 8]]), np.zeros((1, 4)))
    with refuses("superpixel", "choose one of two pixels or more"):
        superpixel_pieces(graph, 2, [[(0, 3)], [(0, 3)]])
    with refuses("cue", SetOption("cues", None, "membrane")):
        superpixel_pieces(graph, 1, [[(0, 0)], [(0, 2)]], cue="membrane")
    bare = region_graph(np.array([[7, 7, 7, 8]]), np.zeros((1, 4)), keep_cues=False)
    with refuses("graph", "build it again with"):
        superpixel_pieces(bare, 1, [[(0, 0)], [(0, 2)]])


@given(
    hnp.arrays(
        np.int64,
        hnp.array_shapes(max_dims=4, max_side=5, min_side=0),
        elements=st.integers(0, 3),
    )
)
def test_pieces_survive_as_plain_numbers(labels):
    runs = json.loads(json.dumps(pieces_to_runs(labels)))
    assert np.array_equal(runs_to_pieces(runs, labels.shape), labels)


@pytest.mark.parametrize("runs", [[1], [1, 5], [1, -6], [1, 6.0], ["1", 6], [1, 3, 2], [1, 2**70]])
def test_damaged_runs_are_refused(runs):
    with refuses("runs"):
        runs_to_pieces(runs, (2, 3))
