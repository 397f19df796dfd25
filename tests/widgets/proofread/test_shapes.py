"""Surfaces of the selected segments in 3-D: they follow edits, in the colours of the slices."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtTest import QTest
from windows import draw

import napari_agglo as agglo

pytestmark = pytest.mark.usefixtures("painted")  # colours are compared with pixels


def rest(hands):
    QTest.qWait(80)  # surfaces are computed a moment after a change
    hands.settle()


def layer_of(hands):
    return hands.proofreader.shapes.layer


def assert_shown(hands, *names):
    """Compare the layer with the surfaces of some segments by the library."""
    session, project, layer = hands.project.session, hands.project, layer_of(hands)
    assert layer.visible
    assert not hands.scene.segmentation.visible
    meshes = [session.segments.mesh(project.id_of(name)) for name in names]
    assert len(layer.data[1]) == sum(len(one.faces) for one in meshes)
    world = np.asarray(layer.data[0]) * layer.scale + layer.translate
    wanted = np.concatenate([one.vertices for one in meshes])
    np.testing.assert_allclose(world, wanted, atol=1e-3)
    colours = [hands.scene.segmentation.get_color(name) for name in names]
    counts = [len(one.vertices) for one in meshes]
    np.testing.assert_allclose(layer.vertex_colors, np.repeat(colours, counts, axis=0), atol=1e-6)


def test_surfaces_follow_the_selection_merges_cuts_undo_and_the_slider(deep, tmp_path, monkeypatch):
    project, panel, session = deep.project, deep.step.shapes, deep.project.session
    assert panel.box.isVisible()
    assert not panel.save.isVisible()
    name = deep.largest()[0]
    project.select(name)
    panel.box.click()
    rest(deep)
    assert deep.viewer.dims.ndisplay == 3
    assert_shown(deep, name)
    picture = deep.viewer.screenshot(canvas_only=True, flash=False)[..., :3].astype(int)
    colour = 255 * np.asarray(deep.scene.segmentation.get_color(name))[:3]
    lit = picture[(np.abs(picture - picture[2, 2]).max(axis=2) > 20)]
    assert len(lit) > 2000, "nothing is seen"
    hue = lit.mean(axis=0) / np.linalg.norm(lit.mean(axis=0))
    assert hue @ colour / np.linalg.norm(colour) > 0.9

    other = deep.neighbour(name)
    project.select(name, other)
    rest(deep)
    assert_shown(deep, name, other)
    deep.proofreader.commands.merge([other])
    rest(deep)
    assert_shown(deep, project.active)
    merged = len(layer_of(deep).data[1])
    deep.press("undo")
    rest(deep)
    assert len(layer_of(deep).data[1]) != merged
    assert_shown(deep, project.active)

    project.select(deep.largest()[0])
    deep.proofreader.commands.cut_children()
    rest(deep)
    assert_shown(deep, project.active, *project.selected)
    project.threshold = 0.1
    rest(deep)
    assert_shown(deep, project.active, *project.selected)

    file = tmp_path / "one.obj"
    chosen = [(str(file), "OBJ (*.obj)"), (str(tmp_path / "mesh"), "Neuroglancer folder (*)")]
    monkeypatch.setattr("qtpy.QtWidgets.QFileDialog.getSaveFileName", lambda *_: chosen.pop(0))
    panel.save.click()
    rest(deep)
    id_ = project.id_of(project.active)
    assert file.read_text().startswith(f"o segment_{id_}")
    panel.save.click()
    rest(deep)
    assert (tmp_path / "mesh" / f"{id_}:0").exists()

    # Back in the slices, and in a new session, everything is as before.
    deep.viewer.dims.ndisplay = 2
    rest(deep)
    assert not panel.box.isChecked()
    assert not layer_of(deep).visible
    assert deep.scene.segmentation.visible
    assert not deep.scene.isolated
    panel.box.click()
    rest(deep)
    panel.box.click()  # which had switched the view to 3-D
    rest(deep)
    assert deep.viewer.dims.ndisplay == 2
    panel.box.click()
    rest(deep)
    path = session.path
    deep.proofreader.close_session()
    draw()
    assert layer_of(deep) is None
    assert deep.scene.segmentation.visible
    assert "Segmentation" not in (path / "view.json").read_text().partition('"hidden"')[2][:60]
    agglo.Session.open(path).close()


@pytest.mark.slow
def test_a_newer_selection_replaces_a_running_one_and_cancel_ends_surfaces(deep, monkeypatch):
    project, panel = deep.project, deep.step.shapes
    a, b = deep.largest(2)
    project.select(a)
    panel.box.click()
    QTest.qWait(60)
    project.select(b)
    rest(deep)
    assert_shown(deep, b)
    project.select(*[int(one) for one in np.unique(project.table())[1:]])
    QTest.qWait(60)
    assert panel.run.isVisible() or project.jobs["shapes"] is None
    if project.jobs["shapes"] is not None:
        panel.run.button.click()
        rest(deep)
        assert not deep.proofreader.shapes.on
        assert not panel.box.isChecked()
