"""Every control of the dock is reachable by Tab, in the order of the screen, and has a name."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyqtgraph as pg
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
    QSlider,
    QTabBar,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)
from windows import draw, settle, show

import napari_agglo as agglo
from napari_agglo.widgets import CompareWidget, Dock
from napari_agglo.widgets._colours import FOCUS
from napari_agglo.widgets._key_bindings import KEY_OF
from napari_agglo.widgets._qt import FocusRing, FocusRings
from napari_agglo.widgets.hierarchy._slider import Marks
from napari_agglo.widgets.proofread import open_session

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QSlider,
    QTabBar,
    Marks,
    pg.PlotWidget,
)


def controls(root: QWidget) -> list[QWidget]:
    """Return the controls on the screen, without the parts that Qt makes them of."""

    def inner(widget: QWidget) -> bool:
        parent = widget.parentWidget()
        while parent is not None and parent is not root:
            if isinstance(parent, CONTROLS):
                return True
            parent = parent.parentWidget()
        return False

    return [
        widget
        for widget in root.findChildren(QWidget)
        if isinstance(widget, CONTROLS)
        and widget.isVisible()
        and widget.isEnabled()
        and not inner(widget)
    ]


def name(widget: QWidget) -> str:
    """Return the name of a control for a screen reader: its own, its text, or its label."""
    text = widget.text() if isinstance(widget, QAbstractButton) else ""
    own = widget.accessibleName() or (text if any(map(str.isalnum, text)) else "")
    labels = [] if own else widget.parentWidget().findChildren(QLabel)
    return own or next((one.text() for one in labels if one.buddy() is widget), "")


def walk(root: QWidget, first: QWidget) -> list[QWidget]:
    """Return the controls that Tab goes to, from one on, until it leaves the widget."""
    first.setFocus()
    window, visited = root.window(), [first]
    known = set(controls(root))
    for _ in range(200):
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        focused = window.focusWidget()
        while focused is not None and focused not in known and root.isAncestorOf(focused):
            focused = focused.parentWidget()
        if focused is first or focused is None or not root.isAncestorOf(focused):
            return visited
        if focused in known and focused is not visited[-1]:
            visited.append(focused)
    raise AssertionError(f"Tab does not leave {visited[-1].objectName()!r}")


def disorder(root: QWidget, visited: list[QWidget]) -> list[tuple[str, str]]:
    """Return the pairs of controls, one after the other, that jump up or back to the left."""
    pairs = []
    for a, b in pairwise(visited):
        box_a, box_b = (one.rect().translated(one.mapTo(root, QPoint())) for one in (a, b))
        above = box_b.bottom() <= box_a.top()
        row = min(box_a.bottom(), box_b.bottom()) - max(box_a.top(), box_b.top())
        same_row = row > min(box_a.height(), box_b.height()) / 2
        if above or (same_row and box_b.left() < box_a.left()):
            pairs.append((name(a), name(b)))
    return pairs


def check(root: QWidget, first: QWidget) -> None:
    draw()
    visible = controls(root)
    assert [widget for widget in visible if not name(widget)] == []
    visited = walk(root, first)
    missed = [name(widget) for widget in visible if widget not in visited]
    assert missed == []
    assert disorder(root, visited) == []


def test_the_check_finds_what_it_looks_for(qapp: Any) -> None:
    box = QWidget()
    first, second, third = (QPushButton(text) for text in ("first", "second", "third"))
    slider = QSlider()
    layout = QVBoxLayout(box)
    for widget in (first, third, second, slider):
        layout.addWidget(widget)
    box.show()
    QWidget.setTabOrder(first, second)
    QWidget.setTabOrder(second, third)
    draw()
    assert disorder(box, walk(box, first)) == [("second", "third")]
    with pytest.raises(AssertionError, match="QSlider"):
        check(box, first)  # it has no name
    slider.setAccessibleName("slider")
    third.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    with pytest.raises(AssertionError, match="third"):
        check(box, first)
    box.close()


def test_the_control_that_the_keyboard_acts_on_is_framed(qapp: Any, qtbot: Any) -> None:
    box = QWidget()
    first, second = QPushButton("first"), QPushButton("second")
    layout = QVBoxLayout(box)
    layout.addWidget(first)
    layout.addWidget(second)
    FocusRings(box)
    FocusRings(first.parentWidget())  # of a step inside the dock: still one frame

    def framed() -> list[QWidget]:
        return [one.control for one in box.findChildren(FocusRing) if one.isVisible()]

    with qtbot.waitActive(box):
        box.show()
        box.activateWindow()
    first.setFocus()
    assert framed() == []  # no key was pressed
    QTest.keyClick(first, Qt.Key.Key_Tab)
    assert framed() == [second]
    frame = box.findChild(FocusRing)
    assert frame.geometry().contains(second.geometry())
    left = frame.geometry().topLeft() + QPoint(0, frame.height() // 2)
    assert box.grab().toImage().pixelColor(left).name() == FOCUS
    box.resize(400, 300)
    draw()
    assert frame.geometry().contains(second.geometry())
    QTest.keyClick(second, Qt.Key.Key_Tab)
    assert framed() == [first]
    first.hide()
    draw()
    assert framed() == []  # the frame goes with its control
    box.close()


def test_all_controls_of_the_dock(viewer: Any, project: Any, dataset: Any, tmp_path: Any) -> None:
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    show(project, dataset)
    dock.guide.steps["data"].more.expand(animate=False)
    first = dock.findChild(QAbstractButton, "help")
    for key in ("data", "train", "hierarchy"):
        dock.guide.open(key)
        check(dock, first)
    dock.guide.open("evaluate")
    settle(project)
    check_tabs(dock, first, "evaluation")

    agglo.Session.create(tmp_path / "one.agglo", project.graph, gold=dataset.gold).close()
    open_session(viewer, tmp_path / "one.agglo")
    settle(project)
    segment = int(project.table()[1])
    project.select(segment)
    dock.guide.steps["proofread"].segments._compute()
    settle(project)
    check_tabs(dock, first, "proofread tabs")

    # An action of the history is chosen by the keyboard, too.
    history = dock.guide.steps["proofread"].history
    project.session.marks.rename(project.id_of(segment), "one")
    project.has_edited()
    draw()
    assert project.session.history.can_undo
    history.list.setFocus()
    history.list.setCurrentRow(0)
    QTest.keyClick(history.list, Qt.Key.Key_Return)
    settle(project)
    assert not project.session.history.can_undo

    compare = CompareWidget(viewer)
    viewer.window.add_dock_widget(compare, name="Compare", area="right")
    check(compare, compare.hint.button)


def check_tabs(dock: Dock, first: QWidget, name: str) -> None:
    """Check the dock with the first tab open, then the other tabs."""
    check(dock, first)
    tabs = dock.findChild(QTabWidget, name)
    for k in range(1, tabs.count()):
        tabs.setCurrentIndex(k)
        check(tabs, tabs.tabBar())


def test_every_key_is_in_the_table_of_the_page() -> None:
    page = Path(__file__).parents[2] / "docs" / "keys.md"
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    named = {key for cell in rows for key in re.findall(r"`([^`]+)`", cell)}
    keys = {key.replace("Control", "Ctrl").replace("-", " + ") for key in KEY_OF.values()}
    assert {"W", "Shift + A", ","} <= keys, "test invalid"
    assert keys <= named
