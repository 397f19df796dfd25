"""The unit of the spacing: kept from the files to a session, and converted by every export."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Session
from napari_agglo.errors import SetOption
from napari_agglo.volumes import Volume, open_volume, write_labels

LABELS = (
    np.repeat(np.arange(1, 9, dtype=np.uint16).reshape(2, 2, 2), 3, 2).repeat(3, 1).repeat(3, 0)
)
CUE = np.linspace(0, 1, LABELS.size, dtype=np.float32).reshape(LABELS.shape)
LENGTHS = {"nm": 1e-3, "um": 1.0, "mm": 1e3, "angstrom": 1e-4}  # in µm
SUFFIXES = (".tif", ".ome.zarr", ".h5", ".npz", ".precomputed")


def made(folder, spacing, unit):
    """Return a session of a volume with this spacing."""
    graph = agglo.region_graph(Volume(LABELS, spacing, unit=unit), CUE)
    return Session.create(folder / "a.agglo", graph)


@given(
    st.tuples(*[st.floats(0.01, 1000).map(lambda x: float(f"{x:.4g}"))] * 3),
    st.sampled_from(sorted(LENGTHS)),
    st.sampled_from(["", *sorted(LENGTHS)]),
    st.sampled_from(SUFFIXES),
)
@examples(40, deadline=None)
def test_an_export_in_any_unit_has_the_same_physical_spacing(spacing, unit, asked, suffix):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_labels(folder / "in.ome.zarr", LABELS, spacing=spacing, unit=unit)
        graph = agglo.region_graph(open_volume(folder / "in.ome.zarr"), CUE)
        assert graph.unit == "micrometer"
        Session.create(folder / "a.agglo", graph).close()
        with Session.open(folder / "a.agglo", read_only=True) as session:
            assert session.graph.unit == "micrometer"
            session.export(folder / f"out{suffix}", unit=asked)
        again = open_volume(folder / f"out{suffix}")
        expected = [value * LENGTHS[unit] for value in spacing]
        assert again.unit == "micrometer"
        np.testing.assert_allclose(again.spacing, expected, rtol=1e-6)


def test_the_unit_of_the_numbers_in_the_file_is_the_one_asked_for(tmp_path):
    with made(tmp_path, (0.03, 0.006, 0.006), "um") as session:
        session.export(tmp_path / "a.ome.zarr", unit="nm")
    plain = json.loads((tmp_path / "a.ome.zarr" / "zarr.json").read_text())
    image = plain["attributes"]["ome"]["multiscales"][0]
    assert {axis["unit"] for axis in image["axes"]} == {"nanometer"}
    scale = image["datasets"][0]["coordinateTransformations"][0]["scale"]
    assert scale == [30.0, 6.0, 6.0]


def test_a_unit_that_is_not_known_is_named_by_the_user(tmp_path):
    with made(tmp_path, (30.0, 6.0, 6.0), None) as session:
        assert session.graph.unit is None
        session.export(tmp_path / "a.tif")
        assert (open_volume(tmp_path / "a.tif").spacing, open_volume(tmp_path / "a.tif").unit) == (
            (30.0, 6.0, 6.0),
            None,
        )
        session.export(tmp_path / "b.tif", unit="nm")
        assert open_volume(tmp_path / "b.tif").spacing == (0.03, 0.006, 0.006)
        with refuses("unit", SetOption("unit", "nm")):
            session.export(tmp_path / "c.tif", unit="furlong")
        assert "unit" not in json.loads((session.path / "manifest.json").read_text())["graph"]


@pytest.mark.parametrize(
    ("spacing", "unit", "asked"),
    [((0.03, 0.006, 0.006), "um", ""), ((30.0, 6.0, 6.0), "nm", ""), ((30.0, 6.0, 6.0), None, ""),
     ((0.03, 0.006, 0.006), None, "um"), ((30.0, 6.0, 6.0), "nm", "mm")],
)  # fmt: skip
def test_neuroglancer_gets_nanometres(tmp_path, spacing, unit, asked):
    with made(tmp_path, spacing, unit) as session:
        session.threshold = 1.0
        session.export(tmp_path / "n", "neuroglancer", unit=asked)
        session.export(tmp_path / "mesh", "precomputed_mesh", unit=asked, smooth=0)
        (segment,) = session.segments.ids()
    scale = json.loads((tmp_path / "n" / "info").read_text())["scales"][0]
    np.testing.assert_allclose(scale["resolution"], [6, 6, 30])
    assert open_volume(tmp_path / "n").unit == "micrometer"
    state = json.loads((tmp_path / "n" / "state.json").read_text())
    assert state["dimensions"]["z"] == [pytest.approx(30e-9), "m"]
    fragment = (tmp_path / "mesh" / str(segment)).read_bytes()
    n = int(np.frombuffer(fragment[:4], "<u4")[0])
    xyz = np.frombuffer(fragment[4 : 4 + 12 * n], "<f4").reshape(n, 3)
    np.testing.assert_allclose(xyz.max(axis=0), [36, 36, 180], rtol=1e-5)  # 6 voxels along each


def test_surfaces_are_written_in_a_unit(tmp_path):
    def extent(path):
        rows = [one.split()[1:] for one in path.read_text().splitlines() if one.startswith("v ")]
        return np.ptp(np.array(rows, float), axis=0)

    with made(tmp_path, (0.03, 0.006, 0.006), "um") as session:
        session.threshold = 1.0
        session.export(tmp_path / "um.obj", "mesh", smooth=0)
        session.export(tmp_path / "nm.obj", "mesh", smooth=0, unit="nm")
    np.testing.assert_allclose(extent(tmp_path / "nm.obj"), [36, 36, 180], rtol=1e-4)
    np.testing.assert_allclose(
        1000 * extent(tmp_path / "um.obj"), extent(tmp_path / "nm.obj"), rtol=1e-3
    )


def test_volumes_in_two_units_are_on_one_grid():
    labels = Volume(LABELS, (30.0, 6.0, 6.0), unit="nm")
    cue = Volume(CUE, (0.03, 0.006, 0.006), unit="um")
    for superpixels, boundary in ((labels, cue), (labels, CUE), (np.asarray(LABELS), cue)):
        graph = agglo.region_graph(superpixels, boundary)
        assert (graph.spacing, graph.unit) == ((0.03, 0.006, 0.006), "micrometer")
    with refuses("cues['boundary']", SetOption("spacing", None, when="for all")):
        agglo.region_graph(labels, Volume(CUE, (30.0, 6.0, 6.0), unit="um"))


def test_a_spacing_is_given_with_its_unit():
    graph = agglo.region_graph(LABELS, CUE, spacing=(30, 6, 6), unit="nm")
    assert (graph.spacing, graph.unit) == ((0.03, 0.006, 0.006), "micrometer")
    assert graph.voxel_size.in_unit("nm").spacing == (30.0, 6.0, 6.0)
    assert agglo.region_graph(LABELS, CUE, unit="nm").unit is None  # no spacing is known
    with refuses("unit", SetOption("unit", "nm")):
        agglo.region_graph(LABELS, CUE, spacing=(30, 6, 6), unit="pixel")
    pair = agglo.RegionGraph.from_edges(
        [(1, 2)], [0.5], superpixels=Volume(LABELS, (30.0, 6.0, 6.0), unit="nm")
    )
    assert (pair.spacing, pair.unit) == ((0.03, 0.006, 0.006), "micrometer")


def test_affinities_words_and_segmentations_keep_the_unit(tmp_path):
    channels = np.ones((3, *LABELS.shape), np.float32)
    found = agglo.affinities(Volume(channels, (1.0, 30.0, 6.0, 6.0), unit="nm"))
    graph = agglo.region_graph(LABELS, {"affinity": found})
    assert (graph.spacing, graph.unit) == ((0.03, 0.006, 0.006), "micrometer")
    pixels = agglo.volumes.word_cue(Volume(LABELS % 4, (30.0, 6.0, 6.0), unit="nm"), 4)
    graph = agglo.region_graph(LABELS, {"boundary": CUE, "words": pixels})
    assert graph.unit == "micrometer"
    segments = Volume(LABELS, (30.0, 6.0, 6.0), unit="nm")
    with Session.create(tmp_path / "b.agglo", segmentation=segments) as session:
        assert (session.graph.spacing, session.graph.unit) == ((0.03, 0.006, 0.006), "micrometer")
