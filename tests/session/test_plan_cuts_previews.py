"""A preview of a cut equals the cut, to the pixel."""

from __future__ import annotations

import tempfile

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles.sessions import observed

import napari_agglo as agglo
from napari_agglo import InvalidInput, Session


@st.composite
def volumes(draw):
    """Draw superpixels in two or three dimensions, with sparse ids, and a boundary cue."""
    shape = draw(st.sampled_from([(6, 7), (3, 4, 5)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    coarse = rng.integers(1, 5, [-(-n // 3) for n in shape]) * 1000
    superpixels = coarse
    for axis, n in enumerate(shape):
        superpixels = np.take(superpixels, np.arange(n) // 3, axis=axis)
    return superpixels, rng.random(shape)


def drawn_points(data, session, segment):
    """Draw two or three groups of pixels of a segment."""
    pixels = np.argwhere(session.labels() == segment).tolist()
    chosen = data.draw(st.permutations(pixels))[: data.draw(st.integers(2, 5))]
    n = data.draw(st.integers(2, 3))
    groups = [chosen[k::n] for k in range(n)]
    return [group for group in groups if group]


@examples(50)
@given(st.data(), volumes(), st.sampled_from(["min_cut", "seeded", "tree"]))
def test_the_cut_makes_exactly_the_pixels_of_the_preview(data, volume, method):
    superpixels, boundary = volume
    with tempfile.TemporaryDirectory() as folder:
        graph = agglo.region_graph(superpixels, boundary)
        with Session.create(f"{folder}/a.agglo", graph) as session:
            session.threshold = data.draw(st.sampled_from([0.2, 0.5, 0.8]))
            for _ in range(3):  # the second and third on superpixels that are divided already
                segment = data.draw(st.sampled_from(session.segments.ids().tolist()))
                points = drawn_points(data, session, segment)
                was, seen = observed(session), session.labels()
                image = session.graph.ids[session.graph.superpixels.image]
                try:
                    found = session.preview(segment, points=points, method=method)
                except InvalidInput:
                    assert observed(session) == was
                    continue
                assert observed(session) == was
                session.cut(segment, points=points, method=method)
                made = session.labels()
                painted = found.paint(image)
                np.testing.assert_array_equal(painted > 0, seen == segment)
                np.testing.assert_array_equal(made[painted == 0], seen[painted == 0])
                names = [np.unique(made[painted == k + 1]).tolist() for k in range(len(points))]
                assert all(len(name) == 1 for name in names)
                assert len({name[0] for name in names}) == len(points)
                assert found.sizes == tuple(
                    int((painted == k + 1).sum()) for k in range(len(points))
                )
                for k, group in enumerate(points, start=1):
                    assert {int(painted[tuple(p)]) for p in group} == {k}


def test_only_what_is_divided_is_given_by_its_pixels(tmp_path):
    superpixels = np.array([[5, 5, 6, 6, 6, 6, 7, 7]] * 3)
    graph = agglo.region_graph(superpixels, np.full((3, 8), 0.1))
    with Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.5
        (segment,) = session.segments.ids().tolist()
        apart = session.preview(segment, points=[[(0, 0)], [(0, 7)]], method="seeded")
        assert apart.divided == ()
        through = session.preview(segment, points=[[(0, 2)], [(0, 5)]], method="seeded")
        (one,) = through.divided
        assert one.superpixel == 6
        assert one.box == (slice(0, 3), slice(2, 6))
        assert set(np.unique(one.parts)) == {1, 2}
        assert {int(k) for part in through.whole for k in part} == {5, 7}
