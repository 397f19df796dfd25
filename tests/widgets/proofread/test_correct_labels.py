"""Labels of another tool are corrected, reviewed segments become gold, tables are applied."""

from __future__ import annotations

import numpy as np
import pytest
import tifffile
from napari.layers import Labels
from qtpy.QtWidgets import QApplication, QLabel, QPushButton
from windows import draw, proofreader_of, role_of, selection_of, settle

from napari_agglo.widgets.proofread import open_session


def answer(project, text):
    """Answer the question that is open."""
    (question,) = [
        one for one in QApplication.topLevelWidgets()
        if one.objectName() == "agglo question" and one.isVisible()
    ]  # fmt: skip
    question.findChild(QPushButton, text).click()
    settle(project, 300)


@pytest.mark.parametrize("kind", ["image", pytest.param("labels", marks=pytest.mark.slow)])
def test_from_another_tools_labels_to_gold_and_a_table_of_edits(
    viewer, project, step, tmp_path, monkeypatch, notices, kind
):
    theirs = np.kron(np.array([[3, 8, 5], [3, 3, 9]]), np.ones((20, 20), int))
    step.bar.correct.click()
    assert any("list of layers" in one for one in notices)
    if kind == "image":  # as napari opens a file of labels
        viewer.add_image(theirs / 7, name="tool", scale=(2, 1))
        step.bar.correct.click()
        answer(project, "Use it as labels")
        assert project.session is None
        assert "tool" in step.findChild(QLabel, "failure convert").text()
        viewer.layers.remove("tool")
        viewer.add_image(theirs.astype("u2"), name="tool", scale=(2, 1))
        step.bar.correct.click()
        assert project.session is None, "nothing is guessed"
        answer(project, "Use it as labels")
    else:
        viewer.add_labels(theirs, name="tool", scale=(2, 1))
        step.bar.correct.click()
        settle(project, 300)
    layer, session = viewer.layers["tool"], project.session
    assert isinstance(layer, Labels)
    np.testing.assert_array_equal(session.labels(), theirs)
    assert session.graph.spacing == (2, 1)
    assert not layer.visible
    assert not step.bar.correct.isVisible()

    session.marks.review(3)
    session.marks.review(9)
    step.tabs.setCurrentIndex(2)
    step.gold.click()
    settle(project, 300)
    draw()
    gold = selection_of(viewer).gold
    np.testing.assert_array_equal(gold.data, np.where(np.isin(theirs, [3, 9]), theirs, 0))
    assert tuple(gold.scale) == (2, 1)
    session.marks.review(8)
    step.gold.click()
    settle(project, 300)
    assert selection_of(viewer).gold is gold, "the same layer, up to date"
    assert 8 in np.asarray(gold.data)

    project.has_edited(session.merge(8, 5))
    session.export(tmp_path / "edits.csv", "edits")
    project.has_edited(session.undo())
    project.has_edited(session.lock(9))
    file = str(tmp_path / "edits.csv")
    monkeypatch.setattr("qtpy.QtWidgets.QFileDialog.getOpenFileName", lambda *_: (file, ""))
    step.tabs.setCurrentIndex(3)
    step.apply.click()
    settle(project, 300)
    assert session.segments.at((5, 45)) == 8
    assert any("1 edit" in one for one in notices), notices

    table = session.history.table()
    table["superpixels"] = "9x9:3:0123456789ab"  # of another crop
    table[table["kind"] == "merge"].to_csv(file, index=False)
    project.has_edited(session.undo())
    assert session.segments.at((5, 45)) == 5
    step.apply.click()
    settle(project, 300)
    assert session.segments.at((5, 45)) == 5, "the user is asked first"
    answer(project, "Apply all the same")
    assert session.segments.at((5, 45)) == 8


@pytest.mark.parametrize("cue", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_corrected_segmentation_has_its_image_cues_and_gold(
    viewer, project, step, crop, tmp_path, cue
):
    """They measure errors, and are there when the session is opened again."""
    labels = viewer.add_labels(crop.gold.astype("u4") // 2 + 1, name="tool")
    tifffile.imwrite(tmp_path / "em.tif", crop.image)
    (image,) = viewer.open(str(tmp_path / "em.tif"), plugin="napari")
    gold = viewer.add_labels(crop.gold.astype("u2"), name="people")
    boundary = viewer.add_image(crop.cues["boundary"], name="membrane") if cue else None
    chosen = selection_of(viewer)
    chosen.choose_all(image, gold, {"boundary": (boundary, None)} if cue else {})
    proofreader_of(viewer).inputs.layers = {"image": labels}  # of a session before
    viewer.layers.selection.active = labels
    step.bar.correct.click()
    settle(project, 300)
    session = project.session
    assert set(session.sources) == {"image", "gold"} | ({"cue boundary"} if cue else set())
    assert session.sources["image"].path == str(tmp_path / "em.tif")
    assert proofreader_of(viewer).inputs.layers["image"] is image
    vi = session.errors.now().vi
    assert vi > 0
    assert project.gold is not None
    image.contrast_limits = (30, 200)
    path = session.path
    step.bar.close_.click()
    viewer.layers.clear()
    open_session(viewer, path)
    settle(project, 300)
    draw()
    layers = {role_of(layer): layer for layer in viewer.layers}
    assert layers["image", ""].contrast_limits == [30, 200]
    np.testing.assert_array_equal(layers["gold", ""].data, crop.gold)
    assert (("cue", "boundary") in layers) == cue
    assert project.session.errors.now().vi == vi
    assert (chosen.image, chosen.gold) == (layers["image", ""], layers["gold", ""])
    assert (project.dataset is not None) == cue


def test_labels_to_correct_are_neither_image_nor_gold(viewer, project, step):
    theirs = np.kron(np.array([[3, 8, 5], [3, 3, 9]]), np.ones((20, 20), int))
    viewer.add_image(theirs.astype("u2"), name="tool")
    assert selection_of(viewer).image is viewer.layers["tool"]
    step.bar.correct.click()
    answer(project, "Use it as labels")
    assert set(project.session.sources) == set()
    step.bar.close_.click()
    labels = viewer.layers["tool"]
    selection_of(viewer).choose("gold", labels)
    labels.visible, viewer.layers.selection.active = True, labels
    step.bar.correct.click()
    settle(project, 300)
    assert set(project.session.sources) == set()
    assert not project.session.errors.has_gold
