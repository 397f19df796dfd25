"""Affinities as oriented cues: offsets, ranges, faces, refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import DataWarning, Volume
from napari_agglo.errors import ReadAffinities, SetOption
from napari_agglo.volumes import check_cues

pytestmark = pytest.mark.compiled

NEAREST = ((-1, 0, 0), (0, -1, 0), (0, 0, -1))


def random_bytes(shape, seed=0, low=128):
    """Affinities that are mostly high, as a network's."""
    return np.random.default_rng(seed).integers(low, 256, shape).astype(np.uint8)


def affinity_of_pair(array, offsets, k, first, second):
    """Return the affinity of two voxels, kept at the one from which the offset leads on."""
    if tuple(b - a for a, b in zip(first, second, strict=True)) == tuple(offsets[k]):
        return int(array[(k, *first)])
    return int(array[(k, *second)])


@given(st.integers(0, 99), st.tuples(*[st.sampled_from([-1, 1])] * 3))
def test_a_face_reads_the_channel_of_its_axis(seed, signs):
    offsets = [[s * int(a == k) for a in range(3)] for k, s in enumerate(signs)]
    array = random_bytes((3, 2, 3, 4), seed)
    cue = agglo.affinities(array, offsets).cues[""]
    for axis, plane in enumerate(cue.faces):
        for voxel in itertools.product(*(range(n - (a == axis)) for a, n in enumerate((2, 3, 4)))):
            above = tuple(i + (a == axis) for a, i in enumerate(voxel))
            assert plane[voxel] == 255 - affinity_of_pair(array, offsets, axis, voxel, above)


def test_a_long_offset_is_read_at_the_face_in_the_middle_of_its_pair():
    # Voxels 0..7; the pair (k, k + 3) has the value 10 k. The middle of (1, 4) is the face 2|3.
    stored = np.full((2, 8), 255, np.uint8)
    stored[1, 3:] = 255 - 10 * np.arange(5, dtype=np.uint8)  # offset -3: kept at the upper voxel
    cue = agglo.affinities(stored, [[-1], [-3]]).cues["_long"]
    # the faces 0|1 and 6|7 are in the middle of no pair: the nearest one
    assert cue.faces[0][:7].tolist() == [0, 0, 10, 20, 30, 40, 40]
    forward = np.full((2, 8), 255, np.uint8)
    forward[1, :5] = stored[1, 3:]
    same = agglo.affinities(forward, [[1], [3]]).cues["_long"]
    assert np.array_equal(same.faces[0], cue.faces[0])


def test_long_offsets_are_one_group_and_diagonal_ones_count_for_both_axes():
    offsets = [*NEAREST, (0, -3, 0), (0, 3, -3)]
    array = random_bytes((5, 4, 8, 8))
    cues = agglo.affinities(array, offsets).cues
    assert list(cues) == ["", "_z", "_y", "_x", "_long"]
    assert cues["_long"].faces[0] is None  # no long offset along z
    alone = agglo.affinities(array, offsets, separate="all").cues
    assert list(alone) == ["", "_z", "_y", "_x", "_y3", "_y3x-3", "_long"]
    both = alone["_y3"].faces[1].astype(int) + alone["_y3x-3"].faces[1]
    assert np.array_equal(alone["_long"].faces[1], (both + 1) // 2)
    assert np.array_equal(alone["_long"].faces[2], alone["_y3x-3"].faces[2])
    assert list(agglo.affinities(array, offsets, separate="none").cues) == ["", "_long"]


def test_the_boundary_map_is_the_mean_over_the_faces_of_a_voxel():
    array = random_bytes((2, 3, 3))
    faces = {}
    for y, x in itertools.product(range(3), range(3)):
        faces[y - 1, x, y, x] = faces[y, x, y - 1, x] = 255.0 - array[0, y, x]
        faces[y, x - 1, y, x] = faces[y, x, y, x - 1] = 255.0 - array[1, y, x]
    middle = np.mean([faces[1, 1, 0, 1], faces[1, 1, 2, 1], faces[1, 1, 1, 0], faces[1, 1, 1, 2]])
    found = agglo.affinities(array).boundary_map()
    assert found[1, 1] == pytest.approx(middle / 255)
    corner = np.mean([faces[0, 0, 1, 0], faces[0, 0, 0, 1]])
    assert found[0, 0] == pytest.approx(corner / 255)


def test_floats_bytes_and_the_opposite_sign_agree():
    array = random_bytes((3, 3, 4, 5))
    expected = agglo.affinities(array)
    floats = agglo.affinities(array / 255)
    opposite = agglo.affinities(255 - array, value_range=(0, 255))
    for other in (floats, opposite):
        for name, cue in expected.cues.items():
            assert np.array_equal(cue.pixels, other.cues[name].pixels)
    assert expected.cues[""].limits == (255.0, 0.0)


@pytest.mark.parametrize("name", ["neighborhood", "offsets"])
def test_offsets_come_from_the_file(name):
    array = random_bytes((4, 3, 4, 5))
    offsets = [*NEAREST, [0, 2, 0]]
    volume = Volume(array, (1.0, 40.0, 4.0, 4.0), attributes={name: np.array(offsets, float)})
    found = agglo.affinities(volume)
    assert found.offsets == tuple(tuple(offset) for offset in offsets)
    assert found.spacing == (40.0, 4.0, 4.0)


def test_inverted_affinities_are_noticed():
    with pytest.warns(DataWarning, match=r"value_range=\(0.0, 255.0\)"):
        agglo.affinities(255 - random_bytes((3, 3, 4, 5)))


def test_bad_input_is_refused_with_a_way_out():
    array = random_bytes((3, 4, 6, 5))
    with refuses("affinities", "np.moveaxis"):
        agglo.affinities(np.moveaxis(array, 0, -1))
    with refuses("affinities", SetOption("offsets", when="one for each channel")):
        agglo.affinities(random_bytes((7, 3, 4, 5)))
    with refuses("offsets", "nearest"):
        agglo.affinities(array, [[0, 2, 0]] * 3)
    for wrong in ([0, 0, 0], [1, 0], [0.5, 0, 0], ["z", 0, 0]):
        with refuses("offsets"):
            agglo.affinities(array, [*NEAREST[:2], wrong])
    with refuses("affinities"):
        agglo.affinities(array[0, 0, 0])
    holed = array / 255
    holed[0, 0, 0, 0] = np.nan
    with refuses("affinities", SetOption("nan", "boundary", when="to count them as boundary")):
        agglo.affinities(holed)
    assert agglo.affinities(holed, nan="boundary").cues["_x"].pixels[0, 0, 0] < 128
    with refuses("affinities"):
        agglo.affinities(array.astype(np.uint16))
    with refuses("cues"):
        cues = {"a": agglo.affinities(array), "a_x": np.zeros((4, 6, 5))}
        check_cues(cues, (4, 6, 5))
    with refuses("cues['a']", ReadAffinities):
        check_cues({"a": array / 255}, (4, 6, 5))
    with refuses("superpixels"):
        check_cues({"a": agglo.affinities(array)}, (9, 6, 5))
    with refuses("ranges"):
        check_cues({"a": agglo.affinities(array)}, (4, 6, 5), {"a": (0, 1)})
