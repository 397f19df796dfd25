"""Sessions begin, are opened again as they were, are copied and closed; and what may go wrong."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QFileDialog
from windows import (
    build,
    camera,
    draw,
    project_of,
    replace_samples,
    scene_of,
    settle,
    show,
    text_overlay,
)

import napari_agglo as agglo
from napari_agglo.session import NotSaved, SessionDamaged
from napari_agglo.widgets._dataset import Placement
from napari_agglo.widgets.proofread import (
    ProofreadWidget,
    _open_session,
    create_session,
    open_session,
)
from napari_agglo.widgets.proofread._open_session import free_path, save_as
from napari_agglo.widgets.proofread._view_state import NAME, read_state

LEFT = Qt.MouseButton.LeftButton


def press(button):
    assert button.isEnabled()
    assert button.isVisible()
    QTest.mouseClick(button, LEFT)


def test_the_first_click_works_and_keeps_the_threshold(hands, home):
    session = hands.project.session
    assert session.path.parent == home / "napari-agglo"
    assert session.threshold == hands.project.threshold == 0.3
    assert session.errors.has_gold
    assert "saved" in hands.step.bar.saved.text()
    assert hands.step.tabs.isVisible()


def test_a_second_session_gets_a_free_name(home):
    first = free_path("cells.tif")
    first.mkdir(parents=True)
    assert free_path("cells.tif").name == "cells-2.agglo"
    assert free_path("a/b:c").suffix == ".agglo"


def test_without_a_hierarchy_the_button_says_what_is_missing(viewer, step):
    assert not step.bar.run.button.isEnabled()
    assert "hierarchy" in step.bar.run.button.toolTip()
    assert step.bar.open.isEnabled()


@pytest.mark.slow
def test_a_place_that_is_taken_is_refused(hands, notices, tmp_path):
    path = hands.project.session.path
    hands.proofreader.close_session()
    hands.step.bar.path.setText(str(path))
    press(hands.step.bar.run.button)
    hands.settle()
    assert hands.project.session is None
    assert any(".agglo" in told and "another name" in told for told in notices)


@pytest.mark.slow
def test_a_session_that_is_cancelled_leaves_nothing(viewer, shown, step, home):
    press(step.bar.run.button)
    shown.jobs["proofread"].cancel()
    settle(shown)
    assert shown.session is None
    assert not list((home / "napari-agglo").glob("*.agglo"))
    press(step.bar.run.button)
    settle(shown)
    assert shown.session is not None


def edited(hands):
    """Make a few edits; return the table."""
    first = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(first)[0]))
    hands.proofreader.commands.merge([hands.neighbour(first)])
    hands.proofreader.commands.rename("soma")
    hands.proofreader.commands.cut_children()
    hands.settle()
    assert len(hands.project.session.history) == 3
    return hands.project.table().copy()


def test_closing_gives_the_canvas_back(hands):
    helped = "Shift + click merges"
    edited(hands)
    hands.proofreader.seeds.place((60, 70), 1)
    hands.scene.preview([np.array([1])])
    assert {"Seeds", "Cut preview", "Selected"} <= {one.name for one in hands.viewer.layers}
    assert helped in hands.scene.segmentation.help
    hands.project.worker.message.emit("Cut 12 into 2 parts.")
    assert hands.viewer.status == "Cut 12 into 2 parts."
    press(hands.step.bar.close_)
    draw()
    assert not {"Seeds", "Cut preview", "Selected"} & {one.name for one in hands.viewer.layers}
    assert hands.scene.segmentation in hands.viewer.layers
    assert helped not in hands.scene.segmentation.help
    assert helped not in hands.viewer.help
    assert "Cut 12" not in str(hands.viewer.status)
    assert hands.project.session is None
    assert not text_overlay(hands.viewer).visible
    assert not [one for one in hands.viewer.mouse_drag_callbacks if "agglo" in one.__module__]
    assert not hands.viewer.keymap
    hands.click((60, 70))
    assert hands.project.active == 0
    assert hands.step.bar.path.text().endswith("-2.agglo")


def test_a_closed_session_is_opened_again_with_its_edits(hands):
    bar, path = hands.step.bar, hands.project.session.path
    assert not bar.reopen.isVisibleTo(hands.step)
    first = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(first)[0]))
    hands.proofreader.commands.merge([hands.neighbour(first)])
    hands.settle()
    table = hands.project.table().copy()
    press(bar.close_)
    assert not np.array_equal(hands.project.table(), table), "test invalid"
    assert f"{path.name} is closed with 1 edit," in bar.closed.text()
    press(bar.reopen)
    hands.settle()
    assert hands.project.session.path == path
    np.testing.assert_array_equal(hands.project.table(), table)
    assert not bar.closed.isVisibleTo(hands.step)
    press(bar.close_)
    hands.project.built = build(hands.project)
    assert not bar.reopen.isVisibleTo(hands.step), "another hierarchy, another session"


def test_opened_again_all_is_as_it_was(hands, make_napari_viewer):
    table = edited(hands)
    hands.project.threshold = 0.35
    hands.settle()
    looked_at = hands.project.table().copy()
    lens = camera(hands.viewer)
    lens.center, lens.zoom = (0.0, 41.0, 52.0), 9.5
    hands.scene.segmentation.opacity = 0.5
    path = hands.project.session.path
    press(hands.step.bar.close_)
    other = make_napari_viewer(show=True)
    other.window.resize(1280, 800)
    job = open_session(other, path)
    assert job is not None
    project = project_of(other)
    settle(project)
    draw()
    assert project.threshold == 0.35
    np.testing.assert_array_equal(project.table(), looked_at)
    layer = scene_of(other).segmentation
    np.testing.assert_allclose(layer.scale, hands.project.placement.scale)
    np.testing.assert_allclose(camera(other).center, (0, 41, 52))
    assert camera(other).zoom == pytest.approx(9.5)
    project.threshold = 0.3
    settle(project)
    np.testing.assert_array_equal(project.table(), table)
    assert project.session.history.can_undo
    assert project.gold is not None
    project.jobs.close()
    project.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", '{"camera": 3, "point": "x", "ndisplay": 7, "placement": {"scale": [0]}}',
     '{"camera": {"center": [1, 2], "zoom": -4, "angles": null}, "images": [3, {"name": 4}]}'],
)  # fmt: skip
def test_a_damaged_view_is_ignored(hands, damage):
    path = hands.project.session.path
    press(hands.step.bar.close_)
    (path / NAME).write_text(damage)
    open_session(hands.viewer, path)
    hands.settle()
    assert hands.project.session is not None
    layer = hands.scene.segmentation
    np.testing.assert_allclose(layer.scale, hands.project.graph.spacing)


@pytest.mark.slow
def test_samples_are_computed_in_the_worker(hands, monkeypatch, crop):
    threads = []

    def compute(kind):
        threads.append(threading.get_ident())
        return crop

    replace_samples(monkeypatch, compute)
    path = hands.project.session.path
    press(hands.step.bar.close_)
    state = json.loads((path / NAME).read_text())
    pairs = [("image", "neuropil2d"), ("gold", "neuropil2d"), ("another", "no such sample")]
    state["images"] = [
        {"name": f"{crop.name} {name}", "sample": ["napari-agglo", kind]} for name, kind in pairs
    ]
    (path / NAME).write_text(json.dumps(state))
    open_session(hands.viewer, path)
    hands.settle()
    assert f"{crop.name} gold" in hands.viewer.layers
    assert hands.project.session is not None
    assert len(threads) == 1, "computed once for all layers"
    assert threads != [threading.get_ident()], "computed in the main thread"


@pytest.mark.slow
def test_images_are_opened_again_from_where_they_were(hands, tmp_path, crop):
    import tifffile

    file = tmp_path / "picture.tif"
    tifffile.imwrite(file, crop.image)
    hands.viewer.open(str(file), plugin="napari")
    path = hands.project.session.path
    press(hands.step.bar.close_)
    assert read_state(path)["images"][0]["path"] == str(file)
    hands.viewer.layers.remove(hands.viewer.layers["picture"])
    open_session(hands.viewer, path)
    hands.settle()
    assert "picture" in hands.viewer.layers
    press(hands.step.bar.close_)
    hands.viewer.layers.remove(hands.viewer.layers["picture"])
    file.unlink()
    open_session(hands.viewer, path)  # a picture that is gone keeps nobody from working
    hands.settle()
    assert hands.project.session is not None


@pytest.mark.slow
def test_a_session_in_use_is_opened_read_only(hands, notices):
    path = hands.project.session.path
    first = hands.largest()[0]
    hands.click(hands.pixel_of(hands.superpixels_of(first)[0]))
    other = agglo.Session.open(path, read_only=True)  # test that it may be read beside
    other.close()
    # From within this program the lock is held by the session that is shown, so open it again.
    open_session(hands.viewer, path)
    hands.settle()
    hands.answer("Open read-only")
    assert hands.project.session.read_only
    assert "read-only" in hands.step.bar.saved.text()
    assert "READ-ONLY" in hands.step.strip.text()
    hands.click(hands.pixel_of(hands.superpixels_of(first)[0]))
    hands.press("H")
    assert any("read-only" in told for told in notices)


@pytest.mark.slow
def test_a_damaged_session_is_mended_if_one_says_so(hands, notices):
    edited(hands)
    path = hands.project.session.path
    press(hands.step.bar.close_)
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text()[:-40])
    open_session(hands.viewer, path)
    hands.settle()
    assert hands.project.session is None
    hands.answer("Repair")
    assert any("repaired" in told for told in notices)


@pytest.mark.slow
def test_a_folder_that_is_no_session_is_refused(hands, notices, tmp_path):
    before = hands.project.session
    (tmp_path / "x.agglo").mkdir()
    open_session(hands.viewer, tmp_path / "x.agglo")
    hands.settle()
    hands.answer("Cancel")
    assert hands.project.session is before
    open_session(hands.viewer, tmp_path / "nowhere.agglo")
    hands.settle()
    assert any("no session" in told for told in notices)


@pytest.mark.slow
def test_the_function_of_a_session_runs_only_if_the_person_agrees(
    hands, notices, tmp_path, monkeypatch
):
    source = "def by_area(graph):\n    return 1 / graph.contact_area()\n"
    (tmp_path / "rules_of_a_session.py").write_text(source)
    graph, path = hands.project.built.regions.graph, tmp_path / "by_area.agglo"
    with monkeypatch.context() as context:
        context.syspath_prepend(tmp_path)
        agglo.Session.create(path, graph, "rules_of_a_session:by_area").close()
        sys.modules.pop("rules_of_a_session")
        open_session(hands.viewer, path)
        hands.settle()
        assert "rules_of_a_session" not in sys.modules, "no file has code run by its name"
        hands.answer("Open read-only")
        assert hands.project.session.path == path
        assert hands.project.session.read_only
        assert "rules_of_a_session" not in sys.modules
        open_session(hands.viewer, path)
        hands.settle()
        hands.answer("Run the function")
        assert not hands.project.session.read_only
        sys.modules.pop("rules_of_a_session")
    press(hands.step.bar.close_)
    open_session(hands.viewer, path)
    hands.settle()
    hands.answer("Run the function")
    assert any("PYTHONPATH" in told for told in notices)


@pytest.mark.slow
def test_a_killed_session_of_a_function_asks_for_it_and_offers_no_repair(
    hands, tmp_path, monkeypatch
):
    source = "def by_area(graph):\n    return 1 / graph.contact_area()\n"
    (tmp_path / "rules_of_a_killed.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    graph, path = hands.project.built.regions.graph, tmp_path / "killed.agglo"
    with agglo.Session.create(tmp_path / "a.agglo", graph, "rules_of_a_killed:by_area") as session:
        session.threshold = float(session.history.unedited_tree.heights[-1])
        ids, sizes = np.unique(session.lut()[1:], return_counts=True)
        members = session.segments.members(int(ids[sizes.argmax()]))
        session.cut(int(ids[sizes.argmax()]), [members[:1], members[-1:]], "seeded")
        shutil.copytree(session.path, path, ignore=shutil.ignore_patterns("*lock*"))
    with pytest.raises(SessionDamaged, match="cut"):  # which needs the function
        agglo.Session.open(path, read_only=True)
    open_session(hands.viewer, path)
    hands.settle()
    hands.answer("Run the function")
    assert hands.project.session.path == path
    assert not hands.project.session.read_only


@pytest.mark.slow
def test_save_as_goes_on_in_the_copy(hands, monkeypatch, tmp_path):
    table = edited(hands)
    old = hands.project.session.path
    target = tmp_path / "copies" / "second"
    target.parent.mkdir()
    chosen = (str(target), "")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: chosen)
    press(hands.step.bar.copy)
    hands.settle()
    session = hands.project.session
    assert session.path == target.with_suffix(".agglo")
    np.testing.assert_array_equal(hands.project.table(), table)
    hands.press("undo")
    assert len([item for item in session.history if not item.undone]) == 2
    with agglo.Session.open(old) as first:  # free, and as it was
        assert not any(item.undone for item in first.history)
    assert not list(tmp_path.glob("copies/.*"))


CLASS = """
class Large:
    name, probabilistic = "large first", False
    check = kernel = lambda self, graph: None
    score = lambda self, graph: 1 / graph.contact_area()
    to_json = lambda self: {"kind": "large first"}
"""


def test_a_copy_with_a_policy_of_no_entry_point_can_be_edited(hands, monkeypatch, tmp_path):
    (tmp_path / "rules_of_a_copy.py").write_text(CLASS)
    monkeypatch.syspath_prepend(tmp_path)
    graph, path = hands.project.built.regions.graph, tmp_path / "first.agglo"
    agglo.Session.create(path, graph, "rules_of_a_copy:Large").close()
    open_session(hands.viewer, path, policy="rules_of_a_copy:Large")
    hands.settle()
    assert hands.project.session.path == path
    save_as(hands.viewer, tmp_path / "second.agglo")
    hands.settle()
    assert hands.project.session.path == tmp_path / "second.agglo"
    assert not hands.project.session.read_only


def test_an_edit_that_is_not_saved_is_shown_in_red(hands, monkeypatch):
    session = hands.project.session
    hands.click(hands.pixel_of(hands.superpixels_of(hands.largest()[0])[0]))

    def full(entry):
        raise NotSaved("The disk is full; free some space.")

    monkeypatch.setattr(session._store.journal, "append", full)
    hands.press("U")
    assert "NOT SAVED" in hands.step.bar.saved.text()
    assert "disk is full" in hands.step.bar.saved.text()
    monkeypatch.undo()
    hands.press("U")
    assert "NOT SAVED" not in hands.step.bar.saved.text()
    assert session.marks.of(hands.project.id_of(hands.project.active)).reviewed


@pytest.mark.slow
def test_the_dock_closed_and_opened_again(hands, viewer):
    first = hands.largest()[0]
    a = hands.pixel_of(hands.superpixels_of(first)[0])
    b = hands.pixel_of(hands.superpixels_of(hands.neighbour(first))[0])
    viewer.window.remove_dock_widget(hands.step)
    hands.step.deleteLater()
    draw()
    hands.click(a)
    hands.click(b, "shift")  # gestures are the viewer's
    assert hands.id_at(a) == hands.id_at(b)
    assert len(hands.project.session.history) == 1
    again = ProofreadWidget(viewer)
    viewer.window.add_dock_widget(again, name="Proofread")
    draw()
    assert len([one for one in viewer.mouse_drag_callbacks if "agglo" in one.__module__]) == 1
    assert f"Segment {hands.id_at(a)}" in again.details.title.text()
    assert "saved" in again.bar.saved.text()
    hands.press("undo")
    assert hands.id_at(a) != hands.id_at(b)
    assert again.history.redo.isEnabled()


@pytest.mark.slow
def test_two_viewers_do_not_know_each_other(hands, make_napari_viewer, dataset):
    other = make_napari_viewer(show=True, title="other")
    project = project_of(other)
    scene_of(other)
    show(project, dataset)
    create_session(other, free_path("other"))
    settle(project)
    hands.click(hands.pixel_of(hands.superpixels_of(hands.largest()[0])[0]))
    assert hands.project.active
    assert project.active == 0
    assert project.session.path != hands.project.session.path
    project.jobs.close()
    project.close()


@pytest.mark.slow
def test_a_viewer_closed_while_a_session_is_made(make_napari_viewer, dataset):
    viewer = make_napari_viewer(show=True)
    project = project_of(viewer)
    scene_of(viewer)
    widget = ProofreadWidget(viewer)
    viewer.window.add_dock_widget(widget)
    show(project, dataset)
    path = free_path("short")
    create_session(viewer, path)
    project.close()
    viewer.close()
    settle(project)
    assert project.session is None
    shutil.rmtree(path, ignore_errors=True)


def test_a_segmentation_of_another_tool_is_what_one_starts_from(viewer, shown, step, crop):
    gold = crop.gold
    image = shown.graph.superpixels.image
    counts = np.zeros((shown.graph.n_regions + 1, int(gold.max()) + 1), np.int64)
    np.add.at(counts, (image, gold), 1)
    partition = counts.argmax(axis=1)
    partition[0] = 0
    plain = shown.regions.dataset
    dataset = replace(plain, partition=partition.astype(np.uint64), origin=plain)
    shown.regions = replace(shown.regions, dataset=dataset)
    shown.built = replace(shown.built, regions=shown.regions)
    press(step.bar.run.button)
    settle(shown)
    table = shown.table()
    for segment in np.unique(partition[1:]):
        members = np.flatnonzero(partition == segment)
        members = members[members > 0]
        if segment:
            assert len(np.unique(table[members])) == 1
    pairs = {(int(a), int(b)) for a, b in zip(partition, table, strict=True) if a}
    assert len(pairs) == len({b for _, b in pairs}), "none of them were merged with each other"
    # And the policy goes on from there.
    n = shown.n_segments
    shown.threshold = 0.5
    for _ in range(1000):
        settle(shown)
        if shown.worker.settled:
            break
        QTest.qWait(5)
    assert shown.n_segments < n
    assert len(shown.session.history) > 0


@pytest.mark.slow
def test_the_view_is_kept_every_so_often(hands):
    path = hands.project.session.path
    hands.proofreader.save_view()
    written = json.loads((path / NAME).read_text())
    assert Placement(*(tuple(written["placement"][k]) for k in ("scale", "translate"))).matches(
        hands.project.placement
    )
    assert Path(path / NAME).stat().st_size < 10_000


def test_new_sessions_go_to_the_folder_of_the_settings(tmp_path, monkeypatch):
    assert _open_session.free_path("cells") == tmp_path / "napari-agglo" / "cells.agglo"
    folder = tmp_path / "elsewhere"
    monkeypatch.setattr(_open_session, "setting", lambda *_: str(folder))
    assert _open_session.free_path("cells") == folder / "cells.agglo"
    monkeypatch.setattr(_open_session, "setting", lambda *_: "~/mine")
    assert _open_session.free_path("cells") == tmp_path / "mine" / "cells.agglo"
