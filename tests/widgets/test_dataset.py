"""Dataset: ranges found in the data, and superpixels that respect another tool's segments."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo.errors import InvalidInput
from napari_agglo.superpixels import divide_superpixels
from napari_agglo.widgets._dataset import Dataset, Placement, value_ranges
from napari_agglo.widgets._remedies import window_sentence

PLAIN = Placement.plain(2)


@pytest.mark.parametrize(
    ("cue", "expected"),
    [
        (np.array([[3, 9]], np.uint8), (0, 255)),
        (np.array([[3, 900]], np.uint16), (3, 900)),
        (np.array([[-3, 900]], np.int32), (-3, 900)),
        (np.array([[0.2, 1.001]]), (0, 1)),
    ],
)
def test_ranges(cue, expected):
    assert value_ranges({"a": cue}, {}) == {"a": expected}
    assert value_ranges({"a": cue}, {"a": (5, 1)}) == {"a": (5, 1)}


@pytest.mark.parametrize(
    ("cue", "words"),
    [
        (np.array([[-0.5, 7.2]]), ["from -0.5 to 7.2", "-1:8", "range"]),
        (np.array([[0.5, np.nan]]), ["1 value", "NaN"]),
        (np.array([[9, 9]], np.uint16), ["9 everywhere"]),
    ],
)
def test_ranges_refused(cue, words):
    with pytest.raises(InvalidInput) as refusal:
        value_ranges({"membrane": cue}, {})
    message = window_sentence(refusal.value)
    assert "“membrane”" in message
    for word in words:
        assert word in message


def test_not_numbers_may_count_as_boundary():
    cue = np.full((6, 8), 0.1)
    cue[:, 4] = np.nan
    assert value_ranges({"a": cue}, {}, "boundary") == {"a": (0, 1)}
    graph = Dataset(
        "a", PLAIN, cues={"boundary": cue}, options={"nan": "boundary", "min_size": 1}
    ).graph()
    assert graph.n_regions == 2


def test_integers_go_from_the_cue_to_the_graph():
    cue = np.zeros((6, 8), np.uint16)
    cue[:, 4] = 4000
    dataset = Dataset("a", PLAIN, cues={"boundary": cue}, options={"min_size": 1}).oversegmented()
    graph = dataset.graph()
    assert graph.cue_ranges == ((0, 4000),)
    assert graph.n_regions == 2


labels = hnp.arrays(np.int64, (5, 6), elements=st.sampled_from([0, 2, 3, 7]))


@examples(60)
@given(labels, labels)
def test_no_superpixel_crosses_a_border(superpixels, segmentation):
    pieces, segments = divide_superpixels(superpixels, segmentation)
    np.testing.assert_array_equal(pieces == 0, superpixels == 0)
    inside = pieces > 0
    np.testing.assert_array_equal(segments[pieces][inside], segmentation[inside])
    for piece in range(1, len(segments)):
        assert len(np.unique(superpixels[pieces == piece])) == 1


def test_dataset_starts_from_a_segmentation(crop):
    start = (crop.gold > 0).astype(int) + 1
    cues = {"boundary": crop.cues["boundary"]}
    dataset = Dataset("a", PLAIN, cues=cues, start=start).oversegmented()
    assert dataset.oversegmented() is dataset
    graph = dataset.graph()
    assert len(dataset.partition) == graph.n_regions + 1
    np.testing.assert_array_equal(dataset.partition[graph.superpixels.image], start)
