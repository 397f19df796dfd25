"""The guided dock: where it opens, what it says, and that nothing of it is cut off."""

from __future__ import annotations

from typing import Any

import pytest
from pytestqt.qtbot import QtBot
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QAbstractButton, QLabel
from windows import STEPS, add_sample, draw, give_policy, settle, show

import napari_agglo as agglo
from napari_agglo.policy import RandomPolicy
from napari_agglo.widgets import Dock
from napari_agglo.widgets.proofread import open_session


@pytest.fixture
def docked(viewer: Any, project: Any) -> Dock:
    """Return the dock in the window."""
    return put(viewer)


def put(viewer: Any) -> Dock:
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    draw()
    return dock


def opened(dock: Dock) -> str:
    (found,) = [step for step, header in dock.guide.headers.items() if header.button.isChecked()]
    return found


def click(dock: Dock, step: str) -> None:
    if not dock.guide.headers[step].button.isChecked():  # a click on an open one closes it
        QTest.mouseClick(dock.guide.headers[step].button, Qt.MouseButton.LeftButton)
    draw()


def hint_of(dock: Dock, step: str) -> str:
    return dock.guide.steps[step].hint.text()


def cut_off(dock: Dock) -> list[str]:
    """Return the texts that do not fit where they are shown."""
    found = []
    for part in dock.findChildren(QLabel) + dock.findChildren(QAbstractButton):
        text = part.text()
        if not part.isVisible() or not text or part.height() == 0:
            continue
        if isinstance(part, QLabel) and part.wordWrap():
            fits = part.height() >= part.heightForWidth(part.width())
        else:
            fits = part.width() >= part.minimumSizeHint().width()
        corner = part.mapTo(dock, part.rect().topRight())
        if not fits or corner.x() > dock.width():
            found.append(text)
    return found


def test_nothing_is_cut_off_before_there_is_anything(docked: Dock) -> None:
    for step in docked.guide.steps:
        click(docked, step)
        assert opened(docked) is step
        assert cut_off(docked) == []


def test_a_low_dock_begins_at_the_top(viewer: Any, project: Any, crop: Any, qtbot: QtBot) -> None:
    add_sample(viewer, crop)
    viewer.window.resize(1040, 500)
    dock = put(viewer)
    bar = dock.guide.area.verticalScrollBar()
    qtbot.wait(150)
    assert bar.maximum() > 0, "test invalid"
    assert bar.value() == 0
    click(dock, "train")
    qtbot.wait(150)
    click(dock, "data")
    qtbot.waitUntil(lambda: bar.value() > 0)  # what is opened later is revealed


def test_nothing_is_cut_off_without_gold(docked: Dock, dataset: Any) -> None:
    show(docked.guide.project, dataset.__class__(dataset.name, dataset.placement, dataset.cues,
                                            superpixels=dataset.superpixels))  # fmt: skip
    for step in docked.guide.steps:
        click(docked, step)
        assert cut_off(docked) == []
    click(docked, "evaluate")
    hint = hint_of(docked, "evaluate")
    assert all(words in hint for words in ("gold", "step 1"))
    assert "step 3" not in hint, "it is done"
    docked.guide.project.drop_hierarchy()
    assert "step 3" in hint_of(docked, "evaluate")
    assert not docked.guide.steps["hierarchy"].view.isVisible()


def test_selected_only_stays_while_steps_follow_the_project(docked: Dock, dataset: Any) -> None:
    show(docked.guide.project, dataset)
    docked.guide.project.select(1)
    docked.guide.steps["hierarchy"].view.isolate.click()
    docked.guide.project.status_changed.emit()
    assert docked.guide.steps["proofread"].scene.isolated


def test_the_hierarchy_says_by_what_it_merges(docked: Dock, dataset: Any) -> None:
    docked.guide.project.set_dataset(dataset)
    hint = docked.guide.steps["hierarchy"].hint
    assert "trained policy" in hint.text()
    give_policy(docked.guide.project, RandomPolicy(0))
    assert "step 2" in hint.text()


def test_dock_opens_where_the_work_is(viewer: Any, shown: Any, tmp_path: Any, qtbot: QtBot) -> None:
    first = put(viewer)
    assert opened(first) == "hierarchy"
    agglo.Session.create(tmp_path / "one.agglo", shown.graph).close()
    open_session(viewer, tmp_path / "one.agglo")
    settle(shown)
    assert opened(first) == "proofread"
    cut = first.guide.steps["proofread"].cut
    for button in (cut.commit, first.guide.headers["proofread"].button):  # without scrolling
        qtbot.waitUntil(lambda b=button: b.visibleRegion().boundingRect() == b.rect())
    click(first, "data")
    shown.threshold = 0.2
    draw()
    assert opened(first) == "data"  # it is the same session: nobody is sent away
    viewer.window.remove_dock_widget(first)
    assert opened(put(viewer)) == "proofread"


def test_the_arrow_of_a_folded_panel_points_aside(docked: Dock) -> None:
    button = docked.guide.steps["data"].more.toggleButton()
    assert button.text() == "▸  More"
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert button.text() == "▾  More"


def test_dock_is_shown_before_its_steps_which_come_one_by_one(viewer: Any, project: Any) -> None:
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    numbers = []
    while not numbers or numbers[-1] < 5:
        QTest.qWait(1)
        numbers.append(sum(len(dock.findChildren(step)) for step in STEPS))
    assert sorted(numbers) == numbers
    assert len(set(numbers)) > 2, "all of them were built in one turn"
    assert list(dock.guide.steps) == ["data", "train", "hierarchy", "evaluate", "proofread"]


def test_the_dock_may_be_closed_before_it_is_complete(viewer: Any, project: Any) -> None:
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    viewer.window.remove_dock_widget(dock)
    dock.deleteLater()
    QTest.qWait(50)
    assert opened(put(viewer)) == "data"
