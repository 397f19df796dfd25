"""A block-wise run in a real window: opened from its folder, edited, evaluated, saved; never whole.

The volume is said to be larger than memory by limits that are small.
"""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest
import zarr
from qtpy.QtTest import QTest
from refusals import refuses
from windows import draw, limit_voxels, project_of, scene_of

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.volumes import DiskLabels, is_lazy, open_levels, open_volume
from napari_agglo.widgets import EvaluateWidget
from napari_agglo.widgets.hierarchy._build_tree import Plan, build
from napari_agglo.widgets.proofread import open_run
from napari_agglo.widgets.proofread._segment_table import ERROR


@pytest.fixture
def run(tmp_path, block, monkeypatch):
    """Write a small volume to Zarr, with gold, and run blocks on it; return the results folder."""
    shape = block.gold.shape
    chunks = tuple(n // 2 for n in shape)
    for name, array in {"boundary": block.cues["boundary"], "gold": block.gold}.items():
        zarr.create_array(str(tmp_path / f"{name}.zarr"), data=array, chunks=chunks)
    monkeypatch.setattr(
        "napari_agglo.volumes._ome_zarr_metadata._SMALL", 4096
    )  # so that there are levels
    folder = tmp_path / "cells.blocks"
    blocks.plan(
        folder, str(tmp_path / "boundary.zarr"), gold=str(tmp_path / "gold.zarr"), block=chunks,
        spacing=block.spacing, threshold=0.3,
    )  # fmt: skip
    blocks.run(folder)
    return folder


@pytest.fixture
def never_whole(monkeypatch, block):
    """Refuse to read level 0 as a whole, but for slabs of the count of overlaps."""
    read = zarr.Array.__getitem__

    def refuse(self, *arguments, **options):
        raise AssertionError("the volume was read whole")

    def counted(self, index):
        part = read(self, index)
        if np.shape(part) == self.shape == block.gold.shape:
            raise AssertionError(f"{self} was read whole")
        return part

    monkeypatch.setattr(DiskLabels, "__array__", refuse)
    # Files are known by a sample of boxes, as those of large volumes are.
    monkeypatch.setattr("napari_agglo.session._store.manifest._LARGE", 1000)
    monkeypatch.setattr("napari_agglo.session._store.manifest._SIDE", 16)
    monkeypatch.setattr(zarr.Array, "__getitem__", counted)


def inside(graph, superpixel):
    box = tuple(slice(a, b) for a, b in graph.boxes[superpixel].T.tolist())
    return np.argwhere(graph.superpixels.image[box] == superpixel) + graph.boxes[superpixel, 0]


@pytest.fixture
def opened(viewer, free_hands, run, monkeypatch, never_whole):
    """Open the run in a window, as a volume that is larger than memory."""
    limit_voxels(monkeypatch, 20_000, 10_000)
    # Kernels that this test does not need are not waited for.
    monkeypatch.setattr(
        "napari_agglo.widgets.proofread._open_session.start_warm_up", lambda _: None
    )
    open_run(viewer, run)
    free_hands.settle()
    return free_hands


def test_a_run_is_shown_lazily(viewer, opened, run, monkeypatch):
    hands, project, scene = opened, project_of(viewer), scene_of(viewer)
    session = project.session
    assert session is not None
    assert session.path == run.with_name("cells.agglo")
    assert session.threshold == 0.3
    # Labels, cue and gold are lazy, with levels that end in one for 3-D.
    layer = scene.segmentation
    assert layer.multiscale
    assert layer.data[0].shape == open_volume(run / "superpixels.ome.zarr").shape
    assert np.prod(layer.data[-1].shape) <= 20_000
    assert {one.name for one in viewer.layers} >= {"Segmentation", "boundary.zarr", "gold.zarr"}
    assert viewer.layers["boundary.zarr"].visible, "without an image there is a cue to look at"
    plane = viewer.dims.current_step[0]
    expected = open_levels(run / "labels.ome.zarr")[0].data[plane]
    shown = session.graph.ids[np.asarray(layer.data[0][plane])]
    assert np.array_equal(shown, expected)

    # A tick of the slider is a look-up in the slice in view, which is not read again.
    reads = []
    monkeypatch.setattr(DiskLabels, "__getitem__", noted(DiskLabels.__getitem__, reads))
    project.threshold = 0.5
    hands.settle()
    assert not reads
    assert np.array_equal(
        session.graph.ids[np.asarray(layer.data[0][plane])], session.labels(np.s_[plane])
    )


def test_no_step_reads_a_volume_whole(viewer, opened, tmp_path, monkeypatch):
    """Neither superpixels, cue nor gold: slider, errors, a cut, a new hierarchy, a file."""
    monkeypatch.setattr("napari_agglo.volumes._contingency._CHUNK", 1000)  # slabs of a count
    monkeypatch.setattr(
        "napari_agglo.volumes._label_pyramid.default_chunks",
        lambda shape: tuple(min(n, 16) for n in shape),
    )
    hands, project, scene = opened, project_of(viewer), scene_of(viewer)
    session, graph = project.session, project.session.graph
    project.threshold = 0.4
    hands.settle()
    evaluate = EvaluateWidget(viewer)
    viewer.window.add_dock_widget(evaluate, name="Evaluate")
    await_(hands, lambda: evaluate.comparison.numbers is not None)
    largest = int(graph.sizes[1:].argmax()) + 1
    pixels = inside(graph, largest)
    first, last = tuple(map(int, pixels[0])), tuple(map(int, pixels[-1]))
    session.cut(session.segments.at(first), points=[[first], [last]])
    project.has_edited()
    hands.settle()
    assert session.graph.n_regions > graph.n_regions
    (written,) = scene.segmentation.save(str(tmp_path / "out.ome.zarr"), plugin="napari-agglo")
    assert open_levels(written)[0].data[0].max() > 0
    hands.proofreader.close_session()
    draw()
    # Step 3 with the regions of the run, against its gold.
    assert is_lazy(project.gold)
    built, error = build(Plan.of(project), lambda state: None)
    assert error is None
    assert built.curve["vi"].min() < built.curve["vi"].iloc[0]


@pytest.mark.slow
def test_a_run_is_proofread(viewer, opened, run, monkeypatch, tmp_path):
    hands, project, scene = opened, project_of(viewer), scene_of(viewer)
    session, layer = project.session, scene.segmentation
    plane = viewer.dims.current_step[0]
    # Click a segment, cut through its largest superpixel, undo.
    graph = session.graph
    here = np.unique(graph.superpixels.image[plane])
    largest = int(max(here[here > 0], key=lambda one: graph.sizes[one]))
    pixels = inside(graph, largest)
    pixels = pixels[pixels[:, 0] == plane]
    first, last = tuple(map(int, pixels[0])), tuple(map(int, pixels[-1]))
    hands.click(first)
    assert project.active == int(project.table()[largest])
    segment = session.segments.at(first)
    n, vi = graph.n_regions, session.errors.now().vi
    session.cut(segment, points=[[first], [last]])
    project.has_edited()
    hands.settle()
    assert session.graph.n_regions > n
    pieces = np.asarray(layer.data[0][plane])[pixels[:, 1], pixels[:, 2]]
    assert len(np.unique(pieces)) > 1, "pieces are drawn on the labels of the file"
    assert session.errors.now().vi != vi
    hands.press("undo")
    assert session.graph.n_regions == n
    assert len(np.unique(np.asarray(layer.data[0][plane])[pixels[:, 1], pixels[:, 2]])) == 1

    # 3-D shows the coarsest level, and a click there finds a superpixel.
    viewer.dims.ndisplay = 3
    hands.settle()
    assert np.asarray(layer.data[-1]).max() > 0
    assert layer._data_view.shape == layer.data[-1].shape
    viewer.dims.ndisplay = 2
    hands.settle()

    # Saved block by block, and opened again where it was.
    monkeypatch.setattr(
        "napari_agglo.volumes._label_pyramid.default_chunks",
        lambda shape: tuple(min(n, 16) for n in shape),
    )
    (written,) = layer.save(str(tmp_path / "out.ome.zarr"), plugin="napari-agglo")
    saved = open_levels(written)
    assert np.array_equal(saved[0].data[plane], session.labels(np.s_[plane]))
    merged = session.segments.neighbours(segment)
    session.merge(segment, int(merged[0]))
    n_segments = len(session.segments)
    hands.proofreader.close_session()
    draw()
    open_run(viewer, run)
    hands.settle()
    assert len(project.session.segments) == n_segments


@pytest.mark.slow
def test_overlaps_of_a_run_are_asked_by_the_worker(
    viewer, step, free_hands, run, monkeypatch, tmp_path
):
    """A session allows one call at a time, and counting, which takes no lock, is the exception."""
    hands, project = free_hands, project_of(viewer)
    monkeypatch.setattr(
        "napari_agglo.widgets.proofread._open_session.start_warm_up", lambda _: None
    )
    open_run(viewer, run)
    hands.settle()
    session, asked = project.session, []
    ask, main = type(session.errors).overlaps, threading.main_thread()

    def overlaps(errors, progress=None):
        asked.append((threading.current_thread() is not main, project.worker.busy))
        return ask(errors, progress)

    monkeypatch.setattr(type(session.errors), "overlaps", overlaps)
    # The table of segments has errors, once overlaps are counted: a run has counted them.
    tabs = step.tabs
    tabs.setCurrentIndex([tabs.tabText(k) for k in range(tabs.count())].index("Segments"))
    model = step.segments.model

    def first_error():
        return model.data(model.index(0, ERROR))

    await_(hands, lambda: model.columnCount() == 5 and first_error())
    assert len(asked) >= 1

    # As if they were not counted, and could not be kept, such as in a folder that is read-only.
    monkeypatch.setattr(type(session.errors), "are_counted", property(lambda _: False))
    n = len(asked)
    evaluate = EvaluateWidget(viewer)
    viewer.window.add_dock_widget(evaluate, name="Evaluate")
    await_(hands, lambda: evaluate.comparison.numbers is not None)
    assert evaluate.comparison.counts.table.total == session.errors.count().total
    assert len(asked) > n

    # The curve with edits, as it is saved.
    first = session.segments.ids()[0]
    session.merge(int(first), int(session.segments.neighbours(int(first))[0]))
    project.has_edited()
    hands.settle()
    n = len(asked)
    evaluate.export.write_curve(str(tmp_path / "curve.csv"))
    await_(hands, (tmp_path / "curve.csv").exists)
    written = pd.read_csv(tmp_path / "curve.csv")
    assert written["vi"].iloc[-1] == pytest.approx(
        agglo.vi_curve(session.tree, np.asarray(session.errors.gold))["vi"].iloc[-1]
    )
    assert len(asked) > n
    assert set(asked) == {(True, True)}


def await_(hands, condition):
    """Wait until a condition holds, for some seconds at most."""
    for _ in range(200):
        hands.settle()
        if condition():
            return
        QTest.qWait(20)
    raise AssertionError("it never came")


def test_the_reader_knows_results_folders(tmp_path):
    from napari_agglo.widgets._readers import run_reader

    folder = tmp_path / "cells.blocks"
    folder.mkdir()
    assert run_reader(str(folder)) is None
    (folder / "plan.json").write_text('{"format": "napari-agglo blocks 1"}')
    assert run_reader(str(folder)) is run_reader(str(folder / "plan.json")) is not None
    other = tmp_path / "plan.json"
    other.write_text("{}")
    assert run_reader(str(other)) is None
    assert run_reader([str(folder)]) is None
    with refuses("path", "blocks run"):
        open_run(None, tmp_path / "nothing")


def noted(read, notes):
    def reading(self, index):
        notes.append(index)
        return read(self, index)

    return reading
