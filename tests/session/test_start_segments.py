"""Sessions that start from another tool's segments, and reviewed segments that leave as gold."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Session
from napari_agglo.cli import main
from napari_agglo.superpixels import divide_superpixels

THEIRS = np.array(
    [
        [7, 7, 7, 9, 9, 9],
        [7, 7, 7, 9, 9, 9],
        [0, 0, 4, 4, 4, 4],
        [7, 7, 4, 4, 4, 4],
    ]
)


def same_partition(a, b):
    """Return whether two label images divide the pixels where both are not 0 in the same way."""
    pairs = {(int(x), int(y)) for x, y in zip(a.ravel(), b.ravel(), strict=True) if x and y}
    return len(pairs) == len({x for x, _ in pairs}) == len({y for _, y in pairs})


def test_segments_alone_are_a_session_with_their_ids(tmp_path):
    volume = agglo.Volume(THEIRS, spacing=(3.0, 1.0))
    with Session.create(tmp_path / "a.agglo", segmentation=volume) as session:
        labels = session.labels()
        assert session.graph.spacing == (3.0, 1.0)
        np.testing.assert_array_equal(labels, THEIRS)
        assert "another tool" in session.history[0].words
        session.merge(9, 4)
        session.detach(7, [session.segments.superpixel_at((3, 0))])
        assert session.segments.at((0, 0)) != session.segments.at((3, 0))
        session.cut(9, points=[[(0, 3)], [(1, 5)]])  # through a superpixel
        wanted = session.labels()
    with Session.open(tmp_path / "a.agglo") as session:
        np.testing.assert_array_equal(session.labels(), wanted)
        for _ in range(3):
            session.undo()
        np.testing.assert_array_equal(session.labels(), THEIRS)


def test_superpixels_within_segments_start_as_these_segments(tmp_path):
    sample = agglo.sample("neuropil2d")
    part = (slice(0, 90), slice(0, 100))
    cue = sample.cues["boundary"][part]
    theirs = sample.gold[part]
    superpixels = agglo.oversegment(cue)
    whole = agglo.region_graph(superpixels, cue)
    with refuses("segmentation", "divide_superpixels(superpixels, segmentation)"):
        Session.create(tmp_path / "a.agglo", whole, segmentation=theirs)
    pieces, _ = divide_superpixels(superpixels, theirs)
    graph = agglo.region_graph(pieces, cue)
    with Session.create(tmp_path / "a.agglo", graph, segmentation=theirs) as session:
        assert same_partition(session.labels(), theirs)
        assert len(session.history) == 1
        low, n = session.threshold, len(session.segments)
        session.threshold = 0.3
        assert len(session.segments) < n, "above, the policy merges on"
        session.threshold = low
        table = session.history.table()
        session.undo()
        np.testing.assert_array_equal(session.labels(), pieces)
    with Session.create(tmp_path / "b.agglo", graph) as other:
        assert other.apply(table).applied == 1
        other.threshold = low
        assert same_partition(other.labels(), theirs)


def test_refusals(tmp_path):
    graph = agglo.region_graph(THEIRS + 1, np.zeros(THEIRS.shape))
    with refuses("graph", "a segmentation to correct"):
        Session.create(tmp_path / "a.agglo")
    with refuses("segmentation"):
        Session.create(tmp_path / "a.agglo", graph, segmentation=THEIRS[:2])
    assert list(tmp_path.iterdir()) == []


def test_reviewed_segments_are_partial_gold(tmp_path, capsys):
    with Session.create(tmp_path / "a.agglo", segmentation=THEIRS) as session:
        with refuses("reviewed", "marks.review(segment)"):
            session.marks.gold()
        with refuses("kind", "marks.review(segment)"):
            session.export(tmp_path / "gold.tif", "gold")
        session.marks.review(9)
        session.marks.review(4)
        gold = session.marks.gold()
        np.testing.assert_array_equal(gold, np.where(THEIRS == 7, 0, THEIRS))
        np.testing.assert_array_equal(session.marks.gold((slice(0, 1),)), gold[:1])
    assert main(["export", str(tmp_path / "a.agglo"), "gold", "-o", str(tmp_path / "g.tif")]) == 0
    np.testing.assert_array_equal(agglo.open_volume(tmp_path / "g.tif").load(), gold)


def test_a_policy_learns_from_the_reviewed_part(tmp_path):
    sample = agglo.sample("neuropil2d")
    part = (slice(0, 90), slice(0, 100))
    cue, truth = sample.cues["boundary"][part], sample.gold[part]
    pieces, _ = divide_superpixels(agglo.oversegment(cue), truth)
    graph = agglo.region_graph(pieces, cue)
    with Session.create(tmp_path / "a.agglo", graph, segmentation=truth) as session:
        for segment in list(session.segments)[:12]:
            session.marks.review(segment)
        gold = session.marks.gold()
    assert 0 < np.count_nonzero(gold) < gold.size
    policy = agglo.train(graph, gold, epochs=1)
    assert agglo.agglomerate(graph, policy).n_segments(0.5) < graph.n_regions


@pytest.mark.parametrize("ndim", [2, 3])
def test_the_picture_of_a_question_shows_both_sides_and_their_boundary(tmp_path, ndim):
    shape = (4, 20, 30)[-ndim:]
    labels = np.ones(shape, int)
    labels[..., 12:20], labels[..., 20:] = 2, 3
    cue = np.full(shape, 0.45)
    cue[..., 10:14] = 0.55
    graph = agglo.region_graph(labels, cue)
    with Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.48
        for kind in ("false_split", "false_merge"):
            (one,) = session.queue.next(1, kind=kind)
            picture = session.queue.picture(one, np.full(shape, 100.0), side=160)
            assert picture.dtype == np.uint8
            assert picture.shape[2] == 3
            assert 120 <= max(picture.shape[:2]) <= 200
            white = (picture == 255).all(axis=2)
            orange = picture[..., 0].astype(int) - picture[..., 2] > 30
            blue = picture[..., 2].astype(int) - picture[..., 0] > 30
            assert white.any()
            assert orange.any()
            assert blue.any()
            columns = np.flatnonzero(white.any(axis=0))
            at = 12 if kind == "false_split" else 20
            assert np.abs(columns / (picture.shape[1] / 30) - at).max() < 1.5
            assert session.queue.picture(one).shape == session.queue.picture(one, cue).shape
        with refuses("image", "pass the image of this session"):
            session.queue.picture(one, np.zeros((3, 3)))
        with refuses("side"):
            session.queue.picture(one, side=0)


def test_a_contact_across_thick_planes_is_seen_from_the_side(tmp_path):
    labels = np.ones((4, 20, 20), int)
    labels[2:] = 2
    graph = agglo.region_graph(labels, np.full(labels.shape, 0.5), spacing=(10, 1, 1))
    with Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.2
        (one,) = session.queue.next(1)
        picture = session.queue.picture(one)
        white = (picture == 255).all(axis=2)
        assert white.any(), "both sides are in the picture"
