"""Surfaces of segments: closed, of the right size and place, from their boxes alone."""

from __future__ import annotations

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Cancelled


def is_closed(mesh):
    """Return whether each directed side of a triangle has its opposite in another triangle."""
    ends = np.concatenate([mesh.faces[:, [a, b]] for a, b in ((0, 1), (1, 2), (2, 0))])
    there = np.sort(ends.astype(np.int64) @ [len(mesh.vertices), 1])
    back = np.sort(ends[:, ::-1].astype(np.int64) @ [len(mesh.vertices), 1])
    return np.array_equal(there, back)


masks = npst.arrays(np.int64, npst.array_shapes(min_dims=3, max_dims=3, max_side=6),
                    elements=st.integers(0, 1)).filter(np.any)  # fmt: skip


@examples(60)
@given(masks, st.sampled_from([8, 30, 1 << 21]), st.sampled_from([0, 10]))
def test_every_surface_is_closed_and_looks_outwards(mask, max_voxels, smooth):
    made = agglo.mesh(mask, 1, max_voxels=max_voxels, smooth=smooth)
    assert is_closed(made)
    assert made.volume > 0
    assert made.faces.min() == 0
    assert made.faces.max() == len(made.vertices) - 1
    inside = np.argwhere(mask)
    grown = (1.0 if smooth else 0.51) + 0.5 * np.array(mask.shape) * (max_voxels < mask.size)
    assert (made.bounds[0] >= inside.min(axis=0) - grown).all()
    assert (made.bounds[1] <= inside.max(axis=0) + grown).all()


def ball(radius, centre, shape):
    z, y, x = np.ogrid[tuple(slice(n) for n in shape)]
    return (z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2 < radius**2


def test_a_ball_has_the_volume_area_and_place_of_a_ball_at_any_coarseness():
    radius, centre = 14, (16, 20, 24)
    labels = 9 * ball(radius, centre, (34, 40, 44))
    sphere = np.pi * radius**2
    for max_voxels in (1 << 21, 4000):
        made = agglo.mesh(labels, 9, max_voxels=max_voxels, spacing=(2, 1, 1))
        assert made.volume == pytest.approx(2 * 4 / 3 * sphere * radius, rel=0.03)
        assert made.bounds.mean(axis=0) == pytest.approx((32, 20, 24), abs=0.6)
    smooth = agglo.mesh(labels, 9)
    stairs = agglo.mesh(labels, 9, smooth=0)
    assert smooth.area == pytest.approx(4 * sphere, rel=0.02)
    assert stairs.area > 1.05 * 4 * sphere, "test invalid: it was smooth already"
    away = np.linalg.norm(smooth.vertices - centre, axis=1)
    assert np.abs(away - radius).max() < 0.8, "no stairs, no dents"


def test_a_thin_sheet_stays_when_the_box_is_coarse():
    labels = np.zeros((60, 60, 60), int)
    labels[30] = 1
    labels[:, 30] = 1
    made = agglo.mesh(labels, 1, max_voxels=1000)
    assert np.ptp(made.vertices, axis=0).min() > 50
    assert made.volume > 0.4 * labels.sum()


def test_several_segments_as_one_have_no_wall_between_them():
    labels = np.zeros((6, 6, 12), int)
    labels[1:5, 1:5, 1:6], labels[1:5, 1:5, 6:11] = 3, 4
    both, a, b = (agglo.mesh(labels, ids, smooth=0) for ids in ([3, 4], 3, 4))
    assert both.area < a.area + b.area - 15
    assert is_closed(both)


class Watched:
    """An array that notes the parts that are read."""

    def __init__(self, array):
        self.array, self.read = array, []
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, index):
        self.read.append(index)
        return self.array[index]


def test_only_the_box_is_read():
    labels = np.zeros((30, 30, 30), np.uint16)
    labels[10:14, 11:15, 12:16] = 5
    watched = Watched(labels)
    made = agglo.mesh(watched, 5, box=[[9, 9, 9], [20, 20, 20]])
    (searched, found) = watched.read
    assert searched == (slice(9, 20),) * 3
    assert found == (slice(10, 14), slice(11, 15), slice(12, 16))
    assert made.bounds == pytest.approx(agglo.mesh(labels, 5).bounds)
    volume = agglo.Volume(labels, spacing=(3.0, 1.0, 1.0))
    assert np.ptp(agglo.mesh(volume, 5).vertices[:, 0]) == pytest.approx(12, abs=1.5)


def test_a_session_gives_surfaces_of_its_segments_through_merge_cut_and_undo(tmp_path):
    labels = np.repeat(np.arange(1, 5), 4)[None, None, :].repeat(6, 0).repeat(6, 1)
    graph = agglo.region_graph(labels, np.full(labels.shape, 0.6), spacing=(2, 1, 1))
    with agglo.Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.3
        one = session.segments.mesh(2)
        session.merge(2, 3)
        two = session.segments.mesh(2)
        assert two.volume == pytest.approx(2 * one.volume, rel=0.1)
        assert two.bounds[1] == pytest.approx((11, 5.5, 11.5), abs=0.3)
        session.cut(2, points=[[(0, 0, 4)], [(5, 5, 4)]])
        assert session.segments.mesh(2).volume < two.volume
        session.undo()
        np.testing.assert_array_equal(session.segments.mesh(2).vertices, two.vertices)
        assert session.segments.mesh([1, 2]).volume > two.volume
        plain = agglo.mesh(session.labels(), 2, spacing=(2, 1, 1))
        np.testing.assert_array_equal(plain.vertices, two.vertices)

        def cancel(_):
            raise Cancelled("no")

        with pytest.raises(Cancelled):
            session.segments.mesh(2, progress=cancel)
        with refuses("segment", "use segment 2, or change the threshold"):
            session.segments.mesh(3)
        with refuses("segment", "name one"):
            session.segments.mesh([])


@pytest.mark.parametrize(
    ("argument", "remedy", "arguments"),
    [
        ("labels", "use a volume", (np.ones((3, 3), int), 1)),
        ("labels", "array[0]", (np.ones((2, 3, 3, 3), int), 1)),
        ("labels", "pass a label image", (np.ones((3, 3, 3)), 1)),
        ("segment", "0 is the background", (np.ones((3, 3, 3), int), 0)),
        ("segment", "pass a label of the image", (np.ones((3, 3, 3), int), 8)),
        ("segment", "pass a label of the image", (np.ones((3, 3, 3), int), "axon")),
    ],
)
def test_refusals(argument, remedy, arguments):
    with refuses(argument, remedy):
        agglo.mesh(*arguments)


def test_refusals_of_options():
    labels = np.ones((3, 3, 3), int)
    for box in ([[0, 0, 0], [4, 3, 3]], [[0, 0], [3, 3]], [[2, 0, 0], [2, 3, 3]], 7):
        with refuses("box", "[[0, 0, 0], [3, 3, 3]]"):
            agglo.mesh(labels, 1, box=box)
    with refuses("max_voxels"):
        agglo.mesh(labels, 1, max_voxels=0)
    with refuses("smooth"):
        agglo.mesh(labels, 1, smooth=-1)
    with refuses("segment", "pass another box"):
        agglo.mesh(np.pad(labels, 2), 1, box=[[0, 0, 0], [2, 2, 2]])
