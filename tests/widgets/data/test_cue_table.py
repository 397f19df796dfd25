"""Affinities, maps of the opposite sign and borders of labels in the Data step."""

from __future__ import annotations

import numpy as np
from windows import draw, settle

import napari_agglo as agglo

GOLD = np.ones((6, 20, 24), np.uint16)
GOLD[:, :, 12:] = 2
ARRAY = np.random.default_rng(0).integers(200, 256, (3, *GOLD.shape)).astype(np.uint8)
ARRAY[2, :, :, 12] = 20
INSIDE = (np.roll(GOLD, 1, axis=2) == GOLD).astype(np.float32)  # low on the boundary


def texts(step, column):
    return [step.cues.item(k, column).text() for k in range(step.cues.rowCount())]


def test_the_sign_by_name(viewer, step):
    inside = ["affinity map", "Membrane affinity", "pred_affs", "prob_interior", "cellprob",
              "foreground probability"]  # fmt: skip
    others = ["staffs", "boundary probability", "membrane inside out", "raw"]
    for name in (*inside, *others):
        viewer.add_image(INSIDE, name=name)
    draw()
    ranges = dict(zip(texts(step, 1), texts(step, 2), strict=True))
    assert ranges == {**dict.fromkeys(inside, "1:0"), **dict.fromkeys(others, "auto")}


def test_affinities_are_one_cue_and_make_regions(viewer, step, project):
    viewer.add_image(np.zeros(GOLD.shape), name="raw")
    viewer.add_image(ARRAY, name="affinities")
    draw()
    assert texts(step, 0) == ["affinity", "raw"]
    assert texts(step, 2)[0] == "255:0"
    assert all(words in step.notes.text() for words in ("affinities", "3 channels"))
    assert list(project.dataset.cues) == ["affinity"]
    assert project.dataset.shape == GOLD.shape
    before = project.dataset
    viewer.layers["raw"].name = "picture"
    assert project.dataset.cues["affinity"].array is before.cues["affinity"].array

    step.superpixels.preview.button.click()  # the plane in view, by the affinities within it
    settle(project)
    assert any("(preview)" in layer.name for layer in viewer.layers)

    step.run.button.click()
    settle(project)
    graph = project.regions.graph
    assert graph.cue_names == ("affinity", "affinity_z", "affinity_y", "affinity_x")
    expected = agglo.affinities(ARRAY)
    known = agglo.region_graph(agglo.oversegment(expected), {"affinity": expected})
    assert np.array_equal(graph.boundaries, known.boundaries)
    tree = agglo.agglomerate(graph)
    assert agglo.split_vi(tree.segment(0.4), GOLD) == (0, 0)


def test_affinities_without_a_picture_and_more_channels_than_axes(viewer, step, project):
    viewer.add_image(ARRAY / 255, name="affs")
    draw()
    assert texts(step, 2) == ["1:0"]
    viewer.add_image(np.zeros(GOLD.shape), name="raw")
    more = viewer.add_image(np.concatenate([ARRAY, ARRAY[:2]]), name="long affinities")
    draw()
    step.selection.set_cue(step.selection.rows[0], used=False)
    row = next(row for row in step.selection.rows if row.layer is more)
    step.selection.set_cue(row, used=True)
    assert "3 of 5" in step.notes.text()
    # The field for offsets: all channels, then too many, then what is no list, then cleared.
    field = step.offsets.line
    assert field.text() == "[-1,0,0], [0,-1,0], [0,0,-1]"
    field.setText("[-1,0,0], [0,-1,0], [0,0,-1], [0,-3,0], [0,0,-3]")
    field.editingFinished.emit()
    assert project.dataset.cues["affinity"].offsets[-1] == (0, 0, -3)
    assert "5 channels" in step.notes.text()
    for wrong in ("[-1,0,0], [0,-1,0], [0,0,-1], [0,-3,0], [0,0,-3], [0,3,3]", "nothing", "[1,0]"):
        field.setText(wrong)
        field.editingFinished.emit()
        assert project.dataset is None
        assert step.selection.problem.argument == "offsets"
        assert step.selection.problem.remedy is not None
    field.clear()
    field.editingFinished.emit()
    assert len(project.dataset.cues["affinity"].offsets) == 3
    more.metadata["offsets"] = [*np.diag([-1, -1, -1]).tolist(), [0, 3, 0], [0, 0, -3]]
    assert len(row.data.offsets) == 5


def test_affinities_that_came_as_an_image_are_read_by_a_click(viewer, step, project):
    array = np.full((4, 20, 24, 28), 250, np.uint8)
    array[:, :, :, 14] = 20
    layer = viewer.add_image(array, name="prediction")
    step.selection.set_cue(step.selection.rows[0], used=True)
    step.run.button.click()
    settle(project)
    assert project.graph is None
    box = step.trouble
    assert "looks like affinities" in box.message.text()
    assert all(words in box.button.text() for words in ("“prediction”", "affinities"))
    assert "each plane by itself" in box.second.text()
    box.button.click()
    assert layer.name == "prediction affinities"
    assert project.dataset.shape == (20, 24, 28)
    assert all(words in step.notes.text() for words in ("recognised as affinities", "3 of 4"))
    assert not box.isVisibleTo(step)
    step.run.button.click()
    settle(project)
    assert project.graph.cue_names[0] == "affinity"


def test_a_map_that_is_high_inside_is_inverted_and_the_user_may_object(viewer, step, project):
    viewer.add_image(np.zeros(GOLD.shape), name="raw")
    viewer.add_image(INSIDE, name="prob_interior")
    draw()
    assert texts(step, 2)[0] == "1:0"
    assert all(words in step.notes.text() for words in ("“prob_interior”", "inside"))
    assert project.dataset.ranges == {"boundary": (1.0, 0.0)}
    step.cues.item(0, 2).setText("")
    draw()
    assert "not inverted" in step.notes.text()
    assert project.dataset.ranges == {}


def test_the_likeliest_of_several_cues_is_the_boundary(viewer, step, project):
    for other in ("cytoplasm prob", "prob_interior"):
        for names in ((other, "membrane prob"), ("membrane prob", other)):
            viewer.layers.clear()
            for name in names:
                viewer.add_image(INSIDE.copy(), name=name)
            for row in list(step.selection.rows):
                step.selection.set_cue(row, used=True)
            wall = viewer.layers["membrane prob"].data
            assert project.dataset.cues["boundary"] is wall, names
            assert len(project.dataset.cues) == 2
            assert "taken for" not in step.notes.text(), "its name says so"


def test_a_guess_among_cues_whose_names_say_nothing_is_told(viewer, step, project):
    for name in ("Label_1", "Label_2"):
        viewer.add_image(INSIDE.copy(), name=name)
    first, second = step.selection.rows
    step.selection.set_cue(first, used=True)
    assert "taken for" not in step.notes.text(), "there is no other"
    step.selection.set_cue(second, used=True)
    assert all(words in step.notes.text() for words in ("“Label_1”", "taken for", "double-click"))
    assert project.dataset.cues["boundary"] is first.layer.data
    step.cues.item(texts(step, 1).index("Label_2"), 0).setText("boundary")
    assert list(project.dataset.cues) == ["boundary", "label_1"]
    assert project.dataset.cues["boundary"] is second.layer.data
    assert "taken for" not in step.notes.text()


def test_the_boundary_of_the_regions_stays_when_a_likelier_cue_comes(viewer, step, project):
    viewer.add_image(INSIDE.copy(), name="cytoplasm prob")
    step.run.button.click()
    settle(project)
    before = viewer.layers["cytoplasm prob"]
    likelier = viewer.add_image(INSIDE.copy(), name="membrane prob")
    assert project.dataset.cues == {"boundary": before.data}
    row = next(row for row in step.selection.rows if row.layer is likelier)
    step.selection.set_cue(row, used=True)
    assert project.dataset.cues["boundary"] is before.data
    assert "“cytoplasm prob”" in step.notes.text()
    row = next(row for row in step.selection.rows if row.layer is before)
    step.selection.set_cue(row, used=False)
    assert project.dataset.cues == {"boundary": likelier.data}


def test_the_borders_of_selected_labels_are_the_boundary(viewer, step, project):
    viewer.add_image(np.zeros(GOLD.shape), name="raw")
    first = viewer.add_labels(GOLD, name="cellpose", scale=(2, 1, 1))
    second = viewer.add_labels(np.roll(GOLD, 1, axis=2), name="sam", scale=(2, 1, 1))
    viewer.layers["raw"].scale = (2, 1, 1)
    viewer.layers.selection = {first, second}
    draw()
    step.make.labels.click()
    settle(project)
    found = project.dataset.cues["boundary"]
    expected = agglo.boundary_from_labels([first.data, second.data], spacing=(2, 1, 1))
    assert np.array_equal(found, expected)
    viewer.layers.selection = {viewer.layers["raw"]}
    before = list(viewer.layers)
    step.make.labels.click()  # only a message: no Labels layer is selected
    settle(project)
    assert list(viewer.layers) == before


def test_a_photograph_has_directions_and_textons_by_one_choice(viewer, step, project):
    photo = np.full((40, 48, 3), (120, 140, 90), np.uint8)
    photo[:, 24:] = (170, 90, 60)
    viewer.add_image(photo, name="photo", rgb=True)
    step.make.form["kind"].native.setCurrentText("photograph")
    step.make.button.click()
    settle(project, 240)
    made = viewer.layers["photo boundary (photograph)"]
    assert made.data.shape == (40, 48)
    assert list(project.dataset.cues) == ["boundary", "textons"]
    step.superpixels.preview.button.click()
    settle(project, 240)
    assert any("(preview)" in layer.name for layer in viewer.layers)
    step.run.button.click()
    settle(project, 240)
    graph = project.regions.graph
    assert graph.cue_names == ("boundary", "boundary_oriented")
    assert graph.word_names == ("textons",)
    labels = agglo.agglomerate(graph, "oriented mean").segment(0.3)
    assert labels[20, 5] != labels[20, 43]
    made.metadata = {}  # as after the layer was saved and opened: a plain cue
    made.name = "boundary"
    assert list(project.dataset.cues) == ["boundary"]
