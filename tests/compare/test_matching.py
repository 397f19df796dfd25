"""Segments that overlap most share a label, in tables and in images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.compare import greedy, shared
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.compare import match_tables, matched, overlaps

NAMES = st.integers(0, 6)
PIECES = st.lists(st.tuples(NAMES, NAMES, st.integers(0, 4)), max_size=30)


def columns(pieces):
    return tuple(np.array(pieces, np.int64).reshape(-1, 3).T)


@given(PIECES)
def test_overlaps_are_those_counted_one_by_one(pieces):
    a, b, sizes = columns(pieces)
    found = overlaps(a, b, sizes)
    expected = shared(a, b, sizes)
    got = dict(zip(zip(found.first, found.second, strict=True), found.sizes, strict=True))
    assert got == expected
    assert list(got) == sorted(got)
    for one, two, size, k in zip(a, b, sizes, found.of_piece, strict=True):
        if one and two and size:
            assert (found.first[k], found.second[k]) == (one, two)
        else:
            assert k == -1


@given(PIECES)
def test_matched_as_by_sorting_all_pairs(pieces):
    a, b, sizes = columns(pieces)
    matching = match_tables(a, b, sizes)
    expected = greedy(shared(a, b, sizes))
    assert {int(k): int(v) for k, v in enumerate(matching.partners) if v} == expected
    check_labels(matching, a, b)


def check_labels(matching, a, b):
    """Every segment has one label of its own, and those without a partner none of the reference."""
    names = [int(name) for name in np.unique(b) if name]
    labels = [int(matching.labels[name]) for name in names]
    assert 0 not in labels
    assert len(set(labels)) == len(labels)
    for name, label in zip(names, labels, strict=True):
        partner = int(matching.partners[name])
        assert label == partner if partner else label not in a
    assert int(matching.labels[0]) == 0


@given(PIECES, st.lists(st.tuples(NAMES, NAMES), min_size=30, max_size=30))
def test_a_pair_stays_while_it_overlaps(pieces, changes):
    a, b, sizes = columns(pieces)
    before = match_tables(a, b, sizes)
    kept = {(int(one), two) for two, one in enumerate(before.partners) if one}
    later = np.array(changes[: len(a)], np.int64).reshape(-1, 2).T
    after = match_tables(*later, sizes, before)
    pairs = shared(*later, sizes)
    assert {int(k): int(v) for k, v in enumerate(after.partners) if v} == greedy(pairs, kept)
    for one, two in kept:
        if (one, two) in pairs:
            assert after.partners[two] == one
    check_labels(after, *later)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES, st.integers(0, 4)), max_size=30))
def test_unmatched_segments_share_labels_with_unmatched_neighbours(pieces):
    a, b, c, sizes = np.array(pieces, np.int64).reshape(-1, 4).T
    shown = match_tables(a, b, sizes).renamed(b)
    matching = match_tables(a, c, sizes, beside=[shown])
    partner = greedy(shared(a, c, sizes))
    first = set(a.tolist())
    alone = {
        pair: n
        for pair, n in shared(shown, c, sizes).items()
        if pair[0] not in first and pair[1] not in partner
    }
    beside = greedy(alone)
    names = [name for name in set(c.tolist()) if name]
    assert len({int(matching.labels[name]) for name in names}) == len(names)
    for name in names:
        label = int(matching.labels[name])
        if name in partner:
            assert label == partner[name] == matching.partners[name]
        elif name in beside:
            assert label == beside[name]
        else:
            assert label not in first | set(shown.tolist())
    again = match_tables(a, c, sizes, matching, beside=[shown])
    np.testing.assert_array_equal(again.labels, matching.labels)


def test_a_long_chain_is_sorted_in_the_end():
    """Each pair is beaten by the next, so that a round settles only one of them."""
    n = 200
    a, b = np.repeat(np.arange(1, n), 2)[:-1], np.repeat(np.arange(1, n), 2)[1:]
    sizes = np.arange(1, len(a) + 1)
    found = match_tables(a, b, sizes).partners
    assert {k: int(v) for k, v in enumerate(found) if v} == greedy(shared(a, b, sizes))


def test_a_segment_without_a_match_keeps_its_label():
    sizes = [0, 10, 1, 1, 10]
    reference, other = [0, 1, 1, 1, 1], [0, 1, 2, 3, 4]
    first = match_tables(reference, other, sizes)
    assert first.labels[[2, 3]].tolist() == [2, 3]
    # Now the reference has a segment 2 elsewhere: superpixel 2 alone must give its label up, ...
    second = match_tables([0, 1, 1, 2, 2], other, sizes, first)
    assert second.labels[2] not in (1, 2)
    assert second.labels[2] == match_tables([0, 1, 1, 2, 2], other, sizes, second).labels[2]
    # ... and does not take it back when it could.
    third = match_tables(reference, other, sizes, second)
    assert third.labels[2] == second.labels[2] != first.labels[2]


@pytest.mark.compiled
def test_steady_along_a_slider(small_sample):
    _, cues, _ = small_sample
    graph = agglo.region_graph(agglo.oversegment(cues["boundary"]), cues)
    one, two = agglo.agglomerate(graph), agglo.agglomerate(graph, "random")
    matching, broken, fresh_broken = None, 0, 0
    fresh = None
    for t in np.linspace(0, 0.6, 40):
        a, b = one.lut(t), two.lut(t)
        after = match_tables(a, b, graph.sizes, matching)
        anew = match_tables(a, b, graph.sizes)
        if matching is not None:
            pairs = shared(a, b, graph.sizes)
            for name in np.unique(b)[1:]:
                if (int(matching.partners[name]), int(name)) in pairs:
                    broken += after.labels[name] != matching.labels[name]
                    fresh_broken += anew.labels[name] != fresh.labels[name]
        matching, fresh = after, anew
        check_labels(after, a, b)
    assert broken == 0
    assert fresh_broken > 0, "test invalid: nothing moves without a hint either"


IDS = np.array([0, 3, 8, 200, 2**40, 2**63 + 5], np.uint64)


@given(st.sampled_from([(6,), (3, 4), (2, 3, 3)]), st.data())
def test_images_like_tables(shape, data):
    size = int(np.prod(shape))
    pick = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    reference, other = (IDS[data.draw(pick)].reshape(shape) for _ in range(2))
    out = matched(reference, other)
    pairs = shared(
        np.searchsorted(IDS, reference.ravel()), np.searchsorted(IDS, other.ravel()), [1] * size
    )
    expected = {int(IDS[two]): int(IDS[one]) for two, one in greedy(pairs).items()}
    assert out.shape == shape
    assert ((out == 0) == (other == 0)).all()
    seen = set()
    for name in np.unique(other[other > 0]).tolist():
        (label,) = np.unique(out[other == name]).tolist()
        seen.add(label)
        assert label == expected[name] if name in expected else label not in reference
    assert len(seen) == len(np.unique(other[other > 0]))


def test_the_type_grows_only_where_it_must():
    many = np.arange(256, dtype=np.uint8)
    few = np.array([1] * 255 + [2], np.uint8)
    assert matched(few, many).dtype == np.uint8
    assert matched(many, np.arange(256)).dtype == np.uint8
    wide = matched(np.append(many, np.uint8(255)), np.append(np.arange(256), 300))
    assert wide.dtype == np.uint16
    assert wide.max() == 256


@pytest.mark.parametrize(
    ("a", "b", "sizes", "refusal"),
    [
        ([1, 2], [1], [1, 1], ("second", "take all from one graph")),
        ([0.5], [1], [1], ("first", "pass a table such as MergeTree.lut returns")),
        ([-1], [1], [1], ("first", "pass dense names, as of MergeTree.lut, not")),
        ([1], [2**40], [1], ("second", "pass dense names, as of MergeTree.lut, not")),
    ],
)
def test_refused(a, b, sizes, refusal):
    with refuses(*refusal):
        match_tables(a, b, sizes)


def test_images_of_two_shapes_are_refused():
    with refuses("reference", "transpose one of them"):
        matched(np.ones((2, 3), int), np.ones((3, 2), int))
