"""The price of a merge in files crossed, and of a tick of the slider in tables looked up."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from windows import draw, settle

import napari_agglo as agglo
from napari_agglo.agglomeration import MergeTree
from napari_agglo.widgets import HierarchyWidget

PACKAGE = Path(agglo.__file__).parent
MOST_FILES = 30  # until the edit is on the disk, on the canvas and in the panels that follow


@contextmanager
def files_crossed():
    """Note the files of the package whose functions are called on the main thread."""
    found: set[str] = set()
    here = f"{PACKAGE}{os.sep}"

    paths: set[str] = set()

    def note(frame, event, _):  # of calls alone, as no function that traces their lines is returned
        paths.add(frame.f_code.co_filename)

    assert threading.current_thread() is threading.main_thread()
    sys.settrace(note)
    try:
        yield found
    finally:
        sys.settrace(None)
        found |= {str(Path(path).relative_to(PACKAGE)) for path in paths if path.startswith(here)}


def test_a_merge_by_shift_click_crosses_few_files(viewer, hands):
    viewer.window.add_dock_widget(HierarchyWidget(viewer), name="Hierarchy")
    draw()
    first = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(first)[0]))
    other = hands.neighbour(first)
    spot = hands.spot(hands.pixel_of(hands.superpixels_of(other)[0]))
    before = hands.project.n_segments
    with files_crossed() as found:
        QTest.mouseClick(
            hands.canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier, spot
        )
    with files_crossed() as later:
        hands.settle()
    assert hands.project.n_segments == before - 1
    assert {"widgets/proofread/_gestures.py", "widgets/_scene.py"} <= found, "test invalid"
    assert "widgets/proofread/_segment_panel.py" in later, "test invalid"
    assert len(found | later) <= MOST_FILES, "\n".join(sorted(found | later))


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
