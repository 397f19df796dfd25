"""Arrays of xarray: their axes and coordinates count, or are refused with the call that helps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import xarray as xr
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.volumes import Volume, check_labels, open_volume, spacing_of

SHAPE = (3, 4, 6)
LABELS = np.arange(np.prod(SHAPE)).reshape(SHAPE) // 6 + 1
CUE = np.linspace(0, 1, LABELS.size).reshape(SHAPE)


def named(array, dims="zyx", units="nm", **coordinates):
    """Return an array with names of axes, and with coordinates along some of them."""
    coords = {axis: (axis, values, {"units": units}) for axis, values in coordinates.items()}
    return xr.DataArray(array, dims=list(dims), coords=coords)


GRID = {"z": [0.0, 40.0, 80.0], "y": [4.0, 8.0, 12.0, 16.0], "x": np.arange(6)[::-1] * 4.0}


def test_the_spacing_is_that_of_the_coordinates():
    graph = agglo.region_graph(named(LABELS, **GRID), named(CUE))
    assert graph.unit == "micrometer"
    assert graph.voxel_size.in_unit("nm").spacing == (40.0, 4.0, 4.0)  # also where they descend
    plain = agglo.region_graph(LABELS, CUE, spacing=graph.spacing)
    assert (graph.boundaries == plain.boundaries).all()
    assert agglo.region_graph(named(LABELS), named(CUE)).spacing == (1.0, 1.0, 1.0)
    assert agglo.region_graph(named(LABELS, **GRID), CUE, spacing=(9, 1, 1)).spacing[0] == 9.0


def test_an_axis_without_numbers_has_the_spacing_1():
    channels = named(np.zeros((2, 4, 6)), "cyx", c=["red", "blue"], y=GRID["y"])
    assert spacing_of(channels) == (1.0, 4.0, 1.0)
    assert spacing_of(named(CUE)) is None
    assert spacing_of(named(CUE[:1], z=[3.0])) is None


def test_spacing_and_unit_reach_a_file(tmp_path):
    path = agglo.write_labels(tmp_path / "labels.tif", named(LABELS.astype(np.uint16), **GRID))
    assert open_volume(path).spacing == (0.04, 0.004, 0.004)  # µm


@pytest.mark.parametrize("chunks", [None, 2])
def test_values_are_those_of_the_array(chunks):
    array = named(LABELS) if chunks is None else named(LABELS).chunk(chunks)
    assert (check_labels(array) == LABELS).all()
    assert (agglo.oversegment(named(CUE)) == agglo.oversegment(CUE)).all()


@pytest.mark.parametrize(
    ("dims", "remedy"),
    [
        ("xyz", ".transpose('z', 'y', 'x')"),
        ("yxz", ".transpose('z', 'y', 'x')"),
        (("plane", "column", "row"), ".transpose('plane', 'row', 'column')"),
    ],
)
def test_axes_in_another_order_are_refused(dims, remedy):
    with refuses("superpixels", remedy):
        agglo.region_graph(named(LABELS, dims), CUE)
    with refuses("cues['boundary']", remedy):
        agglo.region_graph(LABELS, named(CUE, dims))


def test_axes_of_other_names_must_agree():
    labels, cue = named(LABELS, "abc"), named(CUE.transpose(), "cba")
    with refuses("cues['boundary']", ".transpose('a', 'b', 'c')"):
        agglo.region_graph(labels, cue, spacing=(1, 1, 1))
    assert agglo.region_graph(labels, cue.transpose(*"abc")).n_regions == 12


def test_uneven_coordinates_are_refused():
    with refuses("superpixels", ".drop_vars('z')"):
        agglo.region_graph(named(LABELS, z=[0.0, 1.0, 5.0]), CUE)


def test_different_spacings_are_refused():
    with refuses("cues['boundary']"):
        agglo.region_graph(named(LABELS, **GRID), named(CUE, z=[0.0, 1.0, 2.0]))


@pytest.mark.parametrize(
    ("axes", "remedy"), [((2, 1, 0), "cues['boundary'].T"), ((1, 2, 0), "(2, 0, 1))")]
)
def test_a_transposed_cue_is_refused_with_the_call_that_helps(axes, remedy):
    with refuses("superpixels", remedy):
        agglo.region_graph(LABELS, CUE.transpose(axes))


def test_a_volume_pickles():
    volume = Volume(CUE, (40.0, 4.0, 4.0), "cue", {"offsets": [1, 2]}, "nanometer")
    again = pickle.loads(pickle.dumps(volume))
    assert (again.load() == CUE).all()
    assert (again.spacing, again.name, again.unit) == (volume.spacing, "cue", "nanometer")
    assert again.attributes == {"offsets": [1, 2]}
