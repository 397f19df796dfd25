"""The width of the dock: no name, however long, makes a step wider than its place in the window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from qtpy.QtWidgets import QWidget
from windows import draw, give_policy, settle, show

import napari_agglo as agglo
from napari_agglo.policy import MeanPolicy
from napari_agglo.widgets import Dock
from napari_agglo.widgets.proofread import open_session

NAME = "membranes_of_the_second_animal_" * 3


def too_wide(dock: Dock) -> list[str]:
    """Return the widgets of each step that are wider than the part of the dock that shows them."""
    area, wide = dock.guide.area, []
    port = area.viewport()
    assert port is not None
    bar = area.horizontalScrollBar()
    assert bar is not None
    for key, step in dock.guide.steps.items():
        dock.guide.open(key)
        draw()
        draw()
        parts = [one for one in step.findChildren(QWidget) if one.isVisible()]
        parts = [one for one in parts if one.width() > port.width()]
        wide += [f"{key}: {type(one).__name__} {one.objectName()}" for one in parts]
        if bar.maximum() > 0:
            wide.append(f"{key}: the step, by {bar.maximum()} pixels")
    return wide


@pytest.mark.parametrize("kind", ["dataset", "dataset3d"])
def test_long_names_do_not_widen_the_dock(
    viewer: Any, project: Any, kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    dataset = replace(request.getfixturevalue(kind), name=NAME)
    viewer.add_image(dataset.image, name=NAME)
    viewer.add_labels(dataset.gold, name=f"{NAME}gold")
    show(project, dataset)
    policy = agglo.train(dataset.graph(), dataset.gold, strategy="flat")
    give_policy(project, policy)
    give_policy(project, MeanPolicy())
    dock = Dock(viewer)
    viewer.window.add_dock_widget(dock, name="Agglo", area="right")
    draw()
    former = dock.guide.steps["train"].files.former
    for width in (270, 330):
        dock.setFixedWidth(width)
        assert too_wide(dock) == []
        assert NAME in former.toolTip()
    agglo.Session.create(tmp_path / f"{NAME}.agglo", project.graph).close()
    open_session(viewer, tmp_path / f"{NAME}.agglo")
    settle(project)
    for width in (270, 330):
        dock.setFixedWidth(width)
        assert too_wide(dock) == []
    dock.guide.steps["proofread"].bar.close_.click()
    settle(project)
    assert too_wide(dock) == []
