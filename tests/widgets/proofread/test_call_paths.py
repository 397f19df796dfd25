"""The price of a merge in files crossed, and of a tick of the slider in tables looked up."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from napari.qt.threading import FunctionWorker
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from windows import draw, settle

import napari_agglo as agglo
from napari_agglo.agglomeration import MergeTree
from napari_agglo.widgets import HierarchyWidget

PACKAGE = Path(agglo.__file__).parent
MOST_FILES = 30  # on the main thread, until the edit is on the disk, the canvas and the panels
MOST_WITH_WORKERS = 33  # with those that compute the panels in workers


@dataclass
class Crossed:
    """Files of the package whose functions are called, on the main thread and in workers."""

    main: set[str] = field(default_factory=set)
    workers: set[str] = field(default_factory=set)


@contextmanager
def files_crossed():
    """Note the files that are crossed, also in workers, whose threads are of Qt, and in others."""
    crossed = Crossed()
    here, main = f"{PACKAGE}{os.sep}", threading.main_thread().ident

    def note(frame, event, _):  # of calls alone, as no function that traces their lines is returned
        path = frame.f_code.co_filename
        if path.startswith(here):
            side = crossed.main if threading.get_ident() == main else crossed.workers
            side.add(path.removeprefix(here))

    work = FunctionWorker.work

    def traced(worker):  # threading.settrace does not reach a thread of Qt
        sys.settrace(note)
        try:
            return work(worker)
        finally:
            sys.settrace(None)

    assert threading.get_ident() == main
    FunctionWorker.work = traced
    threading.settrace(note)
    sys.settrace(note)
    try:
        yield crossed
    finally:
        sys.settrace(None)
        threading.settrace(None)
        FunctionWorker.work = work


def test_a_merge_by_shift_click_crosses_few_files(viewer, hands):
    viewer.window.add_dock_widget(HierarchyWidget(viewer), name="Hierarchy")
    draw()
    first = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(first)[0]))
    other = hands.neighbour(first)
    spot = hands.spot(hands.pixel_of(hands.superpixels_of(other)[0]))
    before = hands.project.n_segments
    with files_crossed() as crossed:
        QTest.mouseClick(
            hands.canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, spot
        )
        hands.settle()
        for _ in range(2000):  # the scores wait for a pause, and are then computed in a worker
            if crossed.workers:
                break
            QTest.qWait(5)
        hands.settle()
    assert hands.project.n_segments == before - 1
    path = {"gestures", "segment_panel"}
    assert {f"widgets/proofread/_{one}.py" for one in path} <= crossed.main, "test invalid"
    assert crossed.workers, "test invalid: no panel was computed in a worker"
    assert len(crossed.main) <= MOST_FILES, "\n".join(sorted(crossed.main))
    every = crossed.main | crossed.workers
    assert len(every) <= MOST_WITH_WORKERS, "\n".join(sorted(every - crossed.main))


@pytest.mark.parametrize("with_session", [False, True])
def test_one_table_is_looked_up_for_a_tick(viewer, shown, with_session, monkeypatch, tmp_path):
    from napari_agglo.widgets.proofread import ProofreadWidget

    step = HierarchyWidget(viewer)
    for widget in (step, ProofreadWidget(viewer)):
        viewer.window.add_dock_widget(widget, name=widget.title)
    if with_session:
        graph, policy = shown.built.regions.graph, shown.built.policy
        session = agglo.Session.create(tmp_path / "a.agglo", graph, policy, tree=shown.tree)
        session.threshold = shown.threshold
        shown.set_session(session, shown.built)
    shown.select(int(shown.table().max()))
    draw()
    settle(shown)
    owner = agglo.Session if with_session else MergeTree
    calls, look_up = [], owner.lut

    def counted(*given, **options):
        calls.append(given[1:])
        return look_up(*given, **options)

    monkeypatch.setattr(owner, "lut", counted)
    slider = step.scale.slider.slider
    for share in (0.2, 0.3, 0.45):
        calls.clear()
        before = shown.threshold
        slider.setValue(round(share * slider.maximum()))
        assert shown.threshold != before, "test invalid"
        draw()
        settle(shown)
        assert len(calls) == 1, calls
