"""Cuts by points of superpixels that are in several pieces."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles.sessions import observed

import napari_agglo as agglo
from napari_agglo import InvalidInput, Session

METHODS = ("min_cut", "seeded", "tree")


def made(folder, labels, cue):
    return Session.create(f"{folder}/a.agglo", agglo.region_graph(np.array(labels), np.array(cue)))


@pytest.mark.parametrize("method", METHODS)
def test_each_island_goes_to_its_points(tmp_path, method):
    with made(tmp_path, [[1, 1, 2, 1, 1]], np.full((1, 5), 0.5)) as session:
        session.threshold = 0.1
        parts = session.preview(1, points=[[(0, 0)], [(0, 4)]], method=method).parts
        assert [part.tolist() for part in parts] == [[1], [3]]
        change = session.cut(1, points=[[(0, 0)], [(0, 4)]], method=method)
        assert session.labels().tolist() == [[1, 1, 2, 3, 3]]
        assert "cut 1 into 2 parts through a superpixel" in str(change)


@pytest.mark.parametrize("method", METHODS)
def test_islands_without_a_point_stay_with_the_largest(tmp_path, method):
    labels = [[1, 1, 2, 1, 1, 1, 2, 1]]
    with made(tmp_path, labels, np.full((1, 8), 0.5)) as session:
        session.threshold = 0.1
        session.cut(1, points=[[(0, 0)], [(0, 4)]], method=method)
        (row,) = session.labels().tolist()
        assert row[3:6] == [row[7]] * 3
        assert row[0] == row[1] != row[3]


@pytest.mark.parametrize("method", METHODS)
def test_an_island_with_points_of_two_groups_is_flooded(tmp_path, method):
    cue = np.array([[0.0, 0.1, 0.9, 0.1, 0.0, 0.0, 1.0, 0.0, 0.0]])
    with made(tmp_path, [[1, 1, 1, 1, 1, 1, 2, 1, 1]], cue) as session:
        session.threshold = np.nextafter(0.0, -1.0)
        session.cut(1, points=[[(0, 0), (0, 8)], [(0, 5)]], method=method)
        (row,) = session.labels().tolist()
        assert row[0] == row[1] == row[7] == row[8], "of one group, and in two pieces"
        assert row[3] == row[4] == row[5] != row[0]


@st.composite
def cases(draw):
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=3, min_side=2, max_side=4))
    labels = draw(hnp.arrays(np.int64, shape, elements=st.sampled_from([3, 3, 5, 9])))
    cue = draw(hnp.arrays(np.float32, shape, elements=st.sampled_from([0, 0.25, 0.5, 1])))
    return labels, cue, draw(st.sampled_from([-5e-324, 0.3, 0.6])), draw(st.sampled_from(METHODS))


@examples(60)
@given(cases(), st.data())
def test_groups_come_apart_and_stay_together(case, data):
    labels, cue, threshold, method = case
    with tempfile.TemporaryDirectory() as folder, made(folder, labels, cue) as session:
        session.threshold = threshold
        segment = int(session.segments.ids()[0])
        pixels = [tuple(p) for p in np.argwhere(session.labels() == segment).tolist()]
        assume(len(pixels) > 2)
        chosen = data.draw(st.permutations(pixels))[: data.draw(st.integers(2, 4))]
        n_groups = data.draw(st.integers(2, min(3, len(chosen))))
        points = [chosen[k::n_groups] for k in range(n_groups)]
        before, picture = observed(session), session.labels()
        refused = ""
        try:
            session.cut(segment, points=points, method=method)
        except InvalidInput as refusal:
            refused = str(refusal)
        assert "do not touch" not in refused
        assume(not refused)
        now = session.labels()
        held = [{int(now[point]) for point in group} for group in points]
        assert all(len(one) == 1 for one in held)
        assert len(set.union(*held)) == n_groups
        assert (now[picture != segment] == picture[picture != segment]).all()
        after, path = observed(session), session.path
        session.close()
        with Session.open(path) as again:
            assert observed(again) == after
            again.undo()
            assert observed(again) == before
