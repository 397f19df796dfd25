"""Sessions on volumes that stay on disk: equal to sessions in memory, and never read whole."""

from __future__ import annotations

import shutil
from pathlib import Path

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
from napari_agglo.evaluate import vi_curve
from napari_agglo.volumes import DiskLabels, disk_labels, open_levels, open_volume

SHAPE, CHUNKS = (24, 40, 36), (12, 20, 18)


def smooth(rng, shape):
    from scipy import ndimage

    values = ndimage.gaussian_filter(rng.random(shape), 1.5)
    return ((values - values.min()) / np.ptp(values)).astype(np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run blocks with cues and gold; return the graph of the same volume in memory, too."""
    where = tmp_path_factory.mktemp("disk")
    rng = np.random.default_rng(3)
    boundary = smooth(rng, SHAPE)
    gold = (np.arange(SHAPE[1])[:, None] // 14 + np.zeros(SHAPE, int) + 1).astype(np.uint16)
    gold[:3] = 0
    for name, array in {"boundary": boundary, "gold": gold}.items():
        zarr.create_array(str(where / f"{name}.zarr"), data=array, chunks=CHUNKS)
    blocks.plan(
        where / "result", str(where / "boundary.zarr"), gold=str(where / "gold.zarr"),
        block=CHUNKS, statistics="all", threshold=0.35,
    )  # fmt: skip
    blocks.run(where / "result")
    result = blocks.open(where / "result")
    graph = agglo.region_graph(open_volume(result.superpixels_path).load(), boundary)
    return where, result, graph, gold


@pytest.fixture
def never_whole(monkeypatch):
    def refuse(self, *arguments, **options):
        raise AssertionError("the volume was read whole")

    monkeypatch.setattr(DiskLabels, "__array__", refuse)


def test_the_graph_of_a_run_reads_its_cues_box_by_box(run):
    _, result, graph, _ = run
    assert graph.cues is not None
    whole = graph.cues.reshape(-1, *SHAPE)
    assert np.array_equal(result.graph.cues[:, 2:9, 3:30, :], whole[:, 2:9, 3:30, :])
    assert np.array_equal(result.graph.cues[0, 5, 3:30, 7:8], whole[0, 5, 3:30, 7:8])


@given(st.integers(0, 10**6), st.integers(4, 14))
@examples(30, few=5, deadline=None)
def test_edits_on_disk_are_those_in_memory(run, tmp_path_factory, seed, steps):
    """The same words, labels, statistics and errors, also after divisions, and opened again."""
    _, result, graph, gold = run
    place = tmp_path_factory.mktemp("walk")
    known = agglo.Session.create(place / "memory.agglo", graph, gold=gold)
    lazy = result.create_session(place / "disk.agglo")
    try:
        known.threshold = lazy.threshold
        assert walk(lazy, seed, steps) == walk(known, seed, steps)
        assert same_graphs(lazy.graph, known.graph)
        assert np.array_equal(lazy.labels(), known.labels())
        assert lazy.errors.now().vi == pytest.approx(known.errors.now().vi, abs=1e-12)
        lazy.close()
        with agglo.Session.open(place / "disk.agglo", read_only=True) as again:
            assert isinstance(again.graph.superpixels.image, DiskLabels)
            assert same_graphs(again.graph, known.graph)
            assert np.array_equal(again.labels(), known.labels())
            assert again.errors.are_counted
            assert again.errors.now().vi == pytest.approx(known.errors.now().vi, abs=1e-12)
    finally:
        known.close()
        lazy.close()
        shutil.rmtree(place)


def divided(session):
    """Cut the largest superpixel of a session in two; return the superpixel."""
    session.threshold = 0.0
    graph = session.graph
    largest = int(graph.sizes[1:].argmax()) + 1
    points = points_in(graph, largest, np.random.default_rng(0))
    session.cut(int(graph.ids[largest]), points=points)
    assert session.graph.n_regions > graph.n_regions
    return largest


def test_a_divided_superpixel_needs_no_cue_to_be_opened(run, tmp_path):
    """The session keeps the cues around it; a further cut names the file that is missing."""
    where, result, _, _ = run
    moved = shutil.copytree(where / "boundary.zarr", tmp_path / "boundary.zarr")
    with result.create_session(tmp_path / "s.agglo") as session:
        session.sources.move("cue boundary", moved)
        divided(session)
        expected, graph = session.labels(), session.graph
    moved = moved.rename(tmp_path / "elsewhere.zarr")
    away = where / "away.zarr"
    (where / "boundary.zarr").rename(away)
    try:
        with agglo.Session.open(tmp_path / "s.agglo") as session:
            assert np.array_equal(session.labels(), expected)
            assert same_graphs(session.graph, graph)
            with refuses("key", "sources.move"):
                divided(session)
            assert np.array_equal(session.labels(), expected)
            session.sources.move("cue boundary", moved)
            divided(session)
            session.undo()
            session.undo()
            assert session.graph.n_regions == result.graph.n_regions
    finally:
        away.rename(where / "boundary.zarr")


def test_a_cue_with_other_values_is_refused(run, tmp_path):
    where, result, _, _ = run
    moved = shutil.copytree(where / "boundary.zarr", tmp_path / "boundary.zarr")
    zarr.open_array(str(moved), mode="r+")[0, 0, 0] = 0.123
    with result.create_session(tmp_path / "s.agglo") as session:
        session.sources.move("cue boundary", moved)
        with refuses("key", "sources.move"):
            divided(session)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.ome.zarr", "labels"), ("a.tif", "labels"), ("a.precomputed", "labels"),
     ("a", "neuroglancer"), ("a", "agglomerate"), ("a.ome.zarr", "gold"), ("a.ply", "mesh")],
)  # fmt: skip
def test_exports_are_those_of_a_session_in_memory(run, tmp_path, never_whole, name, kind):
    _, result, graph, gold = run
    written = {}
    for which in ("disk", "memory"):
        (tmp_path / which).mkdir()
        path = tmp_path / f"{which}.agglo"
        session = (
            result.create_session(path)
            if which == "disk"
            else agglo.Session.create(path, graph, gold=gold)
        )
        with session:
            divided(session)
            session.threshold = 0.35
            session.marks.review(int(session.segments.ids()[0]))
            options = {"superpixels": tmp_path / which / "s.ome.zarr"}
            options = options if kind == "agglomerate" else {}
            target = session.export(tmp_path / which / name, kind, **options)
            written[which] = files_in(target.parent)
    assert written["disk"].keys() == written["memory"].keys()
    for file, data in written["disk"].items():
        assert np.array_equal(data, written["memory"][file]), file


def files_in(folder: Path):
    """Return the bytes of all files; of a TIFF, which has a number of its own, the pixels."""
    kept = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            whole = open_volume(path).load() if path.suffix == ".tif" else None
            data = np.frombuffer(path.read_bytes(), np.uint8) if whole is None else whole
            kept[path.relative_to(folder).as_posix()] = data
    return kept


def test_errors_are_counted_slab_by_slab(run, tmp_path, never_whole):
    """Also without tables of a run; a curve of a tree on disk against gold on disk too."""
    where, result, graph, gold = run
    lazy = open_volume(where / "gold.zarr")
    curve = vi_curve(result.tree, lazy)
    assert np.allclose(curve["vi"], vi_curve(agglo.agglomerate(graph), gold)["vi"], atol=1e-12)
    path = tmp_path / "s.agglo"
    source = result.superpixels_path
    seen = []
    with agglo.Session.create(path, result.graph, tree=result.tree, source=source,
                              gold=where / "gold.zarr") as session:  # fmt: skip
        assert not session.errors.are_counted
        first = session.errors.now(progress=seen.append)
        assert session.errors.are_counted
    assert seen
    with agglo.Session.open(path) as session:
        assert session.errors.are_counted
        assert session.errors.now() == first
        other = session.errors.count()
        with refuses("table"):
            session.errors.keep(type(other)(other.rows, other.columns, other.counts,
                                            other.row_ids + 1, other.column_ids))  # fmt: skip
    with refuses("gold", "path"):
        agglo.Session.create(tmp_path / "t.agglo", result.graph, tree=result.tree, source=source,
                             gold=lazy)  # fmt: skip


def test_a_session_starts_from_segments_of_a_volume_on_disk(run, tmp_path, never_whole):
    _, result, graph, _ = run
    segments = agglo.agglomerate(graph).segment(0.3)
    options = {"tree": result.tree, "source": result.superpixels_path}
    with agglo.Session.create(tmp_path / "s.agglo", result.graph, segmentation=segments,
                              **options) as session:  # fmt: skip
        one, two = np.unique(segments, return_inverse=True)[1], session.labels()
        assert len(np.unique(two)) == len(np.unique(segments))
        assert len(np.unique(one.reshape(-1) * 10**6 + two.reshape(-1))) == len(np.unique(two))
    crossing = np.indices(SHAPE)[2] // 7 + 1
    with refuses("segmentation"):
        agglo.Session.create(tmp_path / "t.agglo", result.graph, segmentation=crossing, **options)


# A volume of 10 gigavoxels, nearly all of it absent chunks.

WHOLE, WHOLE_CHUNKS = (1024, 4096, 2560), (64, 128, 128)


class Reads(list):
    """Boxes that were read from Zarr arrays, and the number of their voxels."""

    @property
    def voxels(self):
        return sum(int(np.prod([s.stop - s.start for s in box])) for box in self)

    def inside(self, window):
        return all(
            a.start >= b.start and a.stop <= b.stop
            for box in self
            for a, b in zip(box, window, strict=True)
        )


@pytest.fixture
def reads(monkeypatch, never_whole):
    seen = Reads()
    read = zarr.Array.__getitem__

    def counted(self, index):
        if len(self.shape) == 3:
            keys = [slice(k, k + 1) if isinstance(k, int) else k for k in np.index_exp[index]]
            seen.append([slice(*k.indices(n)[:2]) for k, n in zip(keys, self.shape, strict=True)])
        return read(self, index)

    monkeypatch.setattr(zarr.Array, "__getitem__", counted)
    for place in (
        "napari_agglo.volumes._labels_on_disk.available_memory",
        "napari_agglo.volumes._write_labels.available_memory",
    ):
        monkeypatch.setattr(place, lambda: 10**9)
    return seen


@pytest.fixture(scope="module")
def sparse(run, tmp_path_factory):
    """Write superpixels, cues and gold of the small run to the corner of a large volume."""
    where, _, graph, gold = run
    place = tmp_path_factory.mktemp("sparse")
    labels = graph.ids[graph.superpixels.image].astype(np.uint32)
    cue = open_volume(where / "boundary.zarr").load()
    corner = tuple(slice(n) for n in SHAPE)
    for name, array in {"cue": cue, "gold": gold, "image": cue}.items():
        stored = zarr.create_array(
            str(place / f"{name}.zarr"), shape=WHOLE, chunks=WHOLE_CHUNKS, dtype=array.dtype
        )
        stored[corner] = array
    group = zarr.create_group(str(place / "superpixels.ome.zarr"))
    datasets = []
    for level in range(6):
        shape = tuple(-(-n // 2**level) for n in WHOLE)
        array = group.create_array(str(level), shape=shape, chunks=WHOLE_CHUNKS, dtype=np.uint32)
        part = labels[(slice(None, None, 2**level),) * 3]
        array[tuple(slice(n) for n in part.shape)] = part
        scale = [{"type": "scale", "scale": [2.0**level] * 3}]
        datasets.append({"path": str(level), "coordinateTransformations": scale})
    axes = [{"name": name, "type": "space"} for name in "zyx"]
    group.attrs["ome"] = {
        "version": "0.5",
        "multiscales": [{"axes": axes, "datasets": datasets}],
    }
    return place


@pytest.fixture
def large(sparse, run, tmp_path):
    """Return the path of a session on the large volume."""
    from dataclasses import replace

    _, _, graph, _ = run
    data, *coarser = (level.data for level in open_levels(sparse / "superpixels.ome.zarr"))
    labels = disk_labels(data, graph.ids, np.uint32, coarser)
    lazy = replace(graph, superpixels=labels, cues=None)
    tree = replace(agglo.agglomerate(graph), superpixels=labels)
    sources = {"cue boundary": sparse / "cue.zarr", "image": sparse / "image.zarr"}
    path = tmp_path / "large.agglo"
    with agglo.Session.create(
        path, lazy, tree=tree, source=sparse / "superpixels.ome.zarr", sources=sources
    ) as session:
        session.threshold = 0.35
    return path


def test_ten_gigavoxels_are_never_read(large, run, reads):
    """Open, slider, click, merge, cut by points and through a superpixel, undo: small parts."""
    reads.clear()
    with agglo.Session.open(large) as session:
        assert session.graph.superpixels.image.size > 10**10
        assert reads.voxels < 2**24, "a sample tells whether the superpixels are the same"
        reads.clear()
        session.threshold = 0.5
        session.threshold = 0.35
        session.lut(dense=True)
        assert not reads, "the slider reads a table"
        segment = session.segments.at((5, 6, 7))
        assert reads.voxels == 1
        session.merge(segment, int(session.segments.neighbours(segment)[0]))
        session.undo()
        assert reads.voxels == 1
        graph = session.graph
        members = np.searchsorted(graph.ids, session.segments.members(segment))
        if len(members) > 1:
            session.cut(segment, [[int(graph.ids[members[0]])], [int(graph.ids[members[-1]])]])
            session.undo()
            assert reads.voxels == 1
        largest = int(graph.sizes[1:].argmax()) + 1
        reads.clear()
        first = session.sources.read("cue boundary")
        assert first.shape == WHOLE
        sampled = reads.voxels
        assert sampled < 2**24, "and whether the cue is the same"
        reads.clear()
        points = points_in(graph, largest, np.random.default_rng(0))
        of = session.segments.at(points[0][0])
        change = session.cut(of, points=points)
        assert "cut" in str(change)
        around = [slice(max(0, a - 1), b + 1) for a, b in graph.boxes[largest].T.tolist()]
        outside = Reads(box for box in reads if not Reads([box]).inside(around))
        assert outside.voxels <= sampled, "the first cut compares the file with its fingerprint"
        session.undo()
        reads.clear()
        session.cut(of, points=points)
        assert reads.inside(around), "a voxel around the superpixel"
        assert reads.voxels <= 8 * np.prod([s.stop - s.start for s in around])
        reads.clear()
        session.undo()
        session.redo()
        assert reads.inside(around)
        assert session.graph.n_regions > graph.n_regions
        with refuses("index", ".ome.zarr"):
            session.labels()
        levels = session.graph.superpixels.image.levels
        assert [level.shape for level in levels][-1] == (32, 128, 80)
        assert levels[-1][...].max() > 0


def test_meshes_and_pictures_of_a_large_volume_read_boxes(large, reads, tmp_path):
    with agglo.Session.open(large) as session:
        reads.clear()
        segment = session.segments.at((5, 6, 7))
        session.export(tmp_path / "one.ply", "mesh", segments=[segment])
        assert reads.inside([slice(0, n) for n in SHAPE])
        reads.clear()
        (suggestion,) = session.queue.next(1)
        session.queue.picture(suggestion, image=session.sources.read("image"))
        assert reads.voxels < 2**24
        with refuses("path", ".ome.zarr"):
            session.export(tmp_path / "all.tif")
