"""Sessions of runs with affinities on disk: superpixels are divided as in memory, box by box."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import zarr
from disk_sessions import points_in, same_graphs, walk
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.session import SessionSources
from napari_agglo.volumes import affinities, open_volume

SHAPE, BLOCK = (10, 24, 22), (5, 12, 22)
LONG = ((-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 0, -3), (-2, 2, 0))


def smooth_channels(rng, n):
    from scipy import ndimage

    values = ndimage.gaussian_filter(rng.random((n, *SHAPE)), (0, 1, 1.5, 1.5))
    return (((values - values.min()) / np.ptp(values)) ** 0.4).astype(np.float32)


@pytest.fixture(scope="module", params=["nearest", "long"])
def run(request, tmp_path_factory):
    """Run blocks with affinities and another cue; return their graph in memory, too."""
    where = tmp_path_factory.mktemp("faces")
    rng = np.random.default_rng(5)
    offsets = None if request.param == "nearest" else LONG
    channels = smooth_channels(rng, 3 if offsets is None else len(offsets))
    other = rng.integers(0, 256, SHAPE).astype(np.uint8)
    zarr.create_array(str(where / "a.zarr"), data=channels, chunks=(len(channels), 5, 12, 11))
    zarr.create_array(str(where / "other.zarr"), data=other, chunks=BLOCK)
    blocks.plan(
        where / "r", {"other": str(where / "other.zarr")}, affinities=str(where / "a.zarr"),
        offsets=offsets, ranges={"other": (0, 255)}, block=BLOCK, statistics="all", threshold=0.4,
        min_size=30,
    )  # fmt: skip
    blocks.run(where / "r")
    result = blocks.open(where / "r")
    labels = open_volume(result.superpixels_path).load()
    cues = {"affinity": affinities(channels, offsets), "other": other}
    return where, result, agglo.region_graph(labels, cues, ranges={"other": (0, 255)})


def test_faces_of_any_box_are_those_of_the_whole(run):
    _, result, graph = run
    assert same_graphs(result.graph, graph), "test invalid"
    lazy, whole = result.graph.cues, graph.cues.reshape(-1, *SHAPE)
    assert lazy.shape == whole.shape
    rng = np.random.default_rng(0)
    for _ in range(30):
        ends = [np.sort(rng.choice(n + 1, 2, replace=False)) for n in SHAPE]
        box = tuple(slice(int(a), int(b)) for a, b in ends)
        assert np.array_equal(lazy[(slice(None), *box)], whole[(slice(None), *box)])
    for plane in range(len(whole)):
        assert np.array_equal(lazy[plane, 4, 3:20, 7:8], whole[plane, 4, 3:20, 7:8])


@given(st.integers(0, 10**6), st.integers(4, 12))
@examples(20, few=4, deadline=None)
def test_edits_with_affinities_on_disk_are_those_in_memory(run, tmp_path_factory, seed, steps):
    _, result, graph = run
    place = tmp_path_factory.mktemp("walk")
    known = agglo.Session.create(place / "memory.agglo", graph)
    lazy = result.create_session(place / "disk.agglo")
    try:
        known.threshold = lazy.threshold
        assert walk(lazy, seed, steps) == walk(known, seed, steps)
        assert same_graphs(lazy.graph, known.graph)
        assert np.array_equal(lazy.labels(), known.labels())
        lazy.close()
        with agglo.Session.open(place / "disk.agglo", read_only=True) as again:
            assert same_graphs(again.graph, known.graph)
            assert np.array_equal(again.labels(), known.labels())
    finally:
        known.close()
        lazy.close()
        shutil.rmtree(place)


def divided(session):
    """Cut the largest superpixel of a session in two; return the superpixel and its graph."""
    session.threshold = 0.0
    graph = session.graph
    largest = int(graph.sizes[1:].argmax()) + 1
    points = points_in(graph, largest, np.random.default_rng(0))
    session.cut(int(graph.ids[largest]), points=points)
    assert session.graph.n_regions == graph.n_regions + 1
    return largest, graph


def test_a_cut_reads_the_box_of_its_superpixel_and_the_reach_of_the_offsets(
    run, tmp_path, monkeypatch
):
    _, result, _ = run
    with result.create_session(tmp_path / "s.agglo") as session:
        divided(session)  # the first cut compares the file with its fingerprint
        seen = []
        read = zarr.Array.__getitem__

        def counted(self, index):
            if self.ndim == 4:
                seen.append([slice(*k.indices(n)[:2]) for k, n in zip(index, self.shape)])  # noqa: B905
            return read(self, index)

        monkeypatch.setattr(zarr.Array, "__getitem__", counted)
        largest, graph = divided(session)
        reach = [1 + max(abs(one[k]) for one in result.graph.cues.faces.offsets) for k in range(3)]
        assert seen
        for _, *box in seen:
            for side, far, (low, high) in zip(box, reach, graph.boxes[largest].T, strict=True):
                assert side.start >= low - 1 - far, "a voxel around the superpixel, and the reach"
                assert side.stop <= high + 1 + far
        read_of = [np.prod([side.stop - side.start for side in box[1:]]) for box in seen]
        assert max(read_of) < np.prod(SHAPE), "test invalid"


def test_a_divided_superpixel_needs_no_affinities_to_be_opened(run, tmp_path):
    where, result, _ = run
    moved = shutil.copytree(where / "a.zarr", tmp_path / "a.zarr")
    with result.create_session(tmp_path / "s.agglo") as session:
        assert isinstance(session.sources, SessionSources)
        assert set(session.sources) == {"affinities", "cue other"}
        session.sources.move("affinities", f"{moved}:c=*")
        divided(session)
        expected = session.labels()
    elsewhere = moved.rename(tmp_path / "elsewhere.zarr")
    away = where / "away.zarr"
    (where / "a.zarr").rename(away)
    try:
        with agglo.Session.open(tmp_path / "s.agglo") as session:
            assert np.array_equal(session.labels(), expected)
            with refuses("key", "sources.move"):
                divided(session)
            session.sources.move("affinities", f"{elsewhere}:c=*")
            divided(session)
    finally:
        away.rename(where / "a.zarr")


def test_affinities_of_another_shape_are_refused(run, tmp_path, monkeypatch):
    where, result, _ = run
    zarr.create_array(str(tmp_path / "b.zarr"), data=np.zeros((3, 4, 8, 6), np.float32))
    with result.create_session(tmp_path / "s.agglo") as session:
        session.sources.move("affinities", f"{tmp_path / 'b.zarr'}:c=*")
        with refuses("key", "sources.move"):
            divided(session)
    faces = result.graph.cues.faces
    assert faces.path == f"{where / 'a.zarr'}:c=*"
    faces = type(faces)(
        lambda: np.zeros((3, 4, 8, 6)), faces.offsets, faces.limits, SHAPE, faces.n_planes
    )
    with refuses("cues"):
        faces.read((slice(0, 1),) * 3)


def test_a_session_without_the_offsets_divides_no_superpixel(run, tmp_path):
    """Those of earlier versions name no affinities; all else works."""
    _, result, _ = run
    labels = result.graph.superpixels
    unnamed = replace(result.graph, cues=None)
    path = tmp_path / "s.agglo"
    with agglo.Session.create(
        path, unnamed, tree=replace(result.tree, superpixels=labels),
        source=result.superpixels_path,
    ) as session:  # fmt: skip
        with refuses("points", "between superpixels"):
            divided(session)
        one = int(session.segments.ids()[0])
        session.merge(one, int(session.segments.neighbours(one)[0]))
    with agglo.Session.open(path) as again:
        assert len(again.segments.ids()) == result.graph.n_regions - 1
