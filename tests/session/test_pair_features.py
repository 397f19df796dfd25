"""Features of two segments, computed locally, equal those of the contracted graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo import region_graph
from napari_agglo.features import PRESETS, FeatureMap, feature_map, feature_matrix
from napari_agglo.graph import contracted, divided, with_hulls
from napari_agglo.session._pair_features import pair_row


def random_graph(rng, n, preset, **options):
    # Those with convex hulls are of planes.
    shape = [(6, 7), (4, 4, 5)][0 if preset == "natural" else rng.integers(2)]
    labels = rng.integers(0, n + 1, shape)  # with pixels of no region
    labels.flat[: n + 1] = np.arange(n + 1)
    cues = {name: rng.integers(0, 256, shape).astype(np.uint8) for name in ("boundary", "mito")}
    spacing = rng.integers(1, 5, len(shape)).astype(float)
    return region_graph(labels, cues, ranges=(0, 255), bins=5, spacing=spacing, **options)


def expected_row(graph, features, a, b):
    """Contract the two, and look for their boundary."""
    lut = np.arange(graph.n_regions + 1)
    lut[a], lut[b] = min(a), min(b)
    coarse = contracted(graph, lut)
    wanted = np.searchsorted(np.unique(lut), sorted((min(a), min(b))))
    rows = np.flatnonzero((coarse.edges == wanted).all(axis=1))
    return feature_matrix(coarse, features)[rows[0]] if len(rows) else None


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(PRESETS)), st.booleans())
def test_an_example_is_bit_for_bit_the_row_of_the_contracted_graph(seed, preset, dams):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    graph = random_graph(rng, n, preset, dams=dams, keep_cues=True)
    if preset == "natural":
        graph = with_hulls(graph)  # as a session does
    if rng.integers(2):  # ids behind the others, and boundaries among the old ones
        pieces = (graph.superpixels.image == 1) * 1
        box = tuple(slice(*ends) for ends in graph.boxes[1].T)
        pieces.flat[np.flatnonzero(pieces)[0]] = 2
        if pieces.max() == 2 and (pieces == 1).any():
            graph = divided(graph, 1, pieces[box])
    features = FeatureMap(preset, graph.cue_names, graph.layout.bins)
    side = rng.integers(0, 3, graph.n_regions)
    side[rng.permutation(graph.n_regions)[:2]] = [1, 2]
    a, b = (np.flatnonzero(side == k) + 1 for k in (1, 2))
    expected = expected_row(graph, features, a, b)
    for found in (
        pair_row(graph, features, a, b),
        pair_row(graph, features, set(b.tolist()), rng.permutation(a)),
    ):
        if expected is None:
            assert found is None
        else:
            assert found.dtype == np.float32
            assert found.tobytes() == expected.tobytes()


def test_of_two_regions_of_one_size_the_one_of_the_smaller_superpixel_is_first():
    graph = region_graph(np.array([[2, 1, 4, 3]]), np.array([[0.0, 0.2, 0.6, 0.8]]))
    features = feature_map(graph, "minimal")
    first = features.names.index("boundary/node_min/mean")
    row = pair_row(graph, features, [3, 4], [2, 1])
    assert row[first] == pytest.approx(0.1, abs=0.01)
    assert row.tobytes() == expected_row(graph, features, [1, 2], [3, 4]).tobytes()


def test_regions_that_do_not_touch_have_no_row():
    graph = region_graph(np.array([[1, 2, 3]]), np.zeros((1, 3)))
    assert pair_row(graph, feature_map(graph), {1}, {3}) is None
