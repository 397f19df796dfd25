"""The incremental VI equals `split_vi` of the image after any moves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo import Session, region_graph, split_vi
from napari_agglo.session._incremental_vi import IncrementalVI
from napari_agglo.volumes import contingency


@st.composite
def images(draw):
    """Draw superpixels 0..n, every id used, and a gold standard with holes."""
    n = draw(st.integers(1, 7))
    length = draw(st.integers(n, 40))
    rest = draw(st.lists(st.integers(0, n), min_size=length - n, max_size=length - n))
    superpixels = np.array([*range(1, n + 1), *rest])
    gold = draw(st.lists(st.sampled_from([0, 3, 8, 2**40]), min_size=length, max_size=length))
    return superpixels, np.array(gold)


def both(live):
    return live.errors().false_merge, live.errors().false_split


def of_image(labels, gold):
    """Return both errors; `split_vi` refuses a gold standard without annotations."""
    return split_vi(labels, gold) if gold.any() else (0.0, 0.0)


@given(images(), st.data())
def test_every_move_agrees_with_the_image(image, data):
    superpixels, gold = image
    n = int(superpixels.max())
    lut = np.arange(n + 1)
    live = IncrementalVI(contingency(superpixels, gold), lut)
    assert both(live) == pytest.approx(of_image(superpixels, gold), abs=1e-12)
    for _ in range(data.draw(st.integers(1, 6))):
        source = data.draw(st.sampled_from(sorted(set(lut[1:].tolist()))))
        target = data.draw(st.integers(1, n + 2))
        members = np.flatnonzero(lut == source).tolist()
        moved = data.draw(st.lists(st.sampled_from(members), unique=True))
        live.move(moved, target)
        lut[moved] = target
        assert both(live) == pytest.approx(of_image(lut[superpixels], gold), abs=1e-12)
        assert live.errors().vi == sum(both(live))


@given(images(), st.data())
def test_a_whole_table_agrees_with_the_image(image, data):
    superpixels, gold = image
    n = int(superpixels.max())
    live = IncrementalVI(contingency(superpixels, gold), np.arange(n + 1))
    for _ in range(3):
        lut = np.array([0, *data.draw(st.lists(st.integers(1, n), min_size=n, max_size=n))])
        live.update(lut)
        assert both(live) == pytest.approx(of_image(lut[superpixels], gold), abs=1e-12)


@pytest.mark.slow
@pytest.mark.compiled
def test_a_hundred_thousand_moves_are_as_exact_as_none():
    rng = np.random.default_rng(5)
    n, length = 300, 40_000
    superpixels = np.concatenate([np.arange(1, n + 1), rng.integers(1, n + 1, length - n)])
    gold = rng.integers(1, 30, length) * 10**9
    lut = rng.integers(1, 20, n + 1)
    lut[0] = 0
    start = lut.copy()
    live = IncrementalVI(contingency(superpixels, gold), lut)
    before = both(live)
    for superpixel, target in zip(
        rng.integers(1, n + 1, 100_000), rng.integers(1, 400, 100_000), strict=True
    ):
        live.move([superpixel], target)
        lut[superpixel] = target
    assert not np.array_equal(lut, start), "test invalid"
    assert both(live) == pytest.approx(split_vi(lut[superpixels], gold), abs=1e-13)
    live.update(start)
    assert both(live) == pytest.approx(before, abs=1e-13)


def test_the_cost_is_that_of_what_moved(monkeypatch):
    superpixels = np.repeat(np.arange(1, 1001), 4)
    gold = np.repeat(np.arange(1, 101), 40)
    live = IncrementalVI(contingency(superpixels, gold), np.arange(1001))
    moved = []
    run = IncrementalVI._run

    def counting(self, some, targets, lut):
        moved.append(len(some))
        run(self, some, targets, lut)

    monkeypatch.setattr(IncrementalVI, "_run", counting)
    lut = np.arange(1001)
    lut[[5, 6]] = 4
    live.update(lut)
    live.move([7], 4)
    assert moved == [2, 1]
    assert len(live._values) < 10 * 2000


def test_a_superpixel_is_divided_and_put_together_again():
    superpixels = np.array([1, 1, 1, 1, 2, 2, 3, 0])
    gold = np.array([5, 5, 9, 9, 9, 0, 5, 5])
    lut = np.array([0, 1, 1, 3])
    live = IncrementalVI(contingency(superpixels, gold), lut)
    before = both(live)
    pieces = np.array([1, 1, 4, 4])
    live.redraw([1], pieces, gold[:4])
    assert both(live) == before
    live.move([4], 4)
    divided = np.array([1, 1, 4, 4, 1, 1, 3, 0])
    assert both(live) == pytest.approx(split_vi(divided, gold), abs=1e-12)
    assert both(live) != pytest.approx(before), "test invalid"
    live.move([4], 1)
    live.redraw([1, 4], np.array([1, 1, 1, 1]), gold[:4])
    assert both(live) == pytest.approx(before, abs=1e-12)
    live.update([0, 7, 1, 3])  # of three superpixels again
    assert both(live) == pytest.approx(split_vi(np.array([0, 7, 1, 3])[superpixels], gold))


def test_nothing_annotated_is_no_error():
    live = IncrementalVI(contingency(np.array([1, 2]), np.array([0, 0])), [0, 1, 2])
    live.move([2], 1)
    assert both(live) == (0.0, 0.0)


def test_errors_after_an_edit_look_at_what_moved_alone(tmp_path, monkeypatch):
    superpixels = np.array([[5, 5, 6, 6, 7, 7, 900, 900]] * 3)
    boundary = np.array([[0.0, 0.1, 0.1, 0.3, 0.7, 0.1, 0.9, 0.8]] * 3)
    gold = np.array([[1, 1, 1, 1, 1, 2, 2, 2]] * 3)
    update = IncrementalVI.update

    def watched(self, lut, among=None):
        assert among is not None, "the whole table was compared"
        update(self, lut, among)

    graph = region_graph(superpixels, boundary)
    with Session.create(tmp_path / "cells.agglo", graph, gold=gold) as session:
        session.threshold = 0.3
        assert session.errors.vi > 0
        session.threshold = 0.0
        before = session.errors.now()
        monkeypatch.setattr(IncrementalVI, "update", watched)
        session.merge(5, 7, force=True)
        assert session.errors.now() != before
        session.cut(900, points=[[(0, 6)], [(2, 7)]])
        expected = split_vi(session.labels(), gold)
        assert (session.errors.false_merge, session.errors.false_split) == pytest.approx(expected)
        session.undo()
        session.undo()
        assert session.errors.vi == pytest.approx(before.vi)
        session.threshold = 0.3
        with pytest.raises(AssertionError, match="whole table"):
            session.errors.now()
