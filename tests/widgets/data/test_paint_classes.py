"""Strokes on the canvas: classes, live probabilities of the plane in view, and cues."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
from oracles.strokes import cells, strokes
from qtpy.QtWidgets import QApplication, QFileDialog, QMessageBox
from windows import dataset_of, draw, selection_of, settle_strokes

import napari_agglo as agglo
from napari_agglo.errors import InvalidInput
from napari_agglo.pixels import FilterBank
from napari_agglo.volumes import open_volume

pytestmark = pytest.mark.compiled


@pytest.fixture
def painter(step):
    return step.paint.painter


def paint(painter, project, labels):
    """Put labels on the canvas, as the brush does."""
    index = np.nonzero(labels)
    painter.strokes.data_setitem(index, labels[index])
    settle_strokes(painter)


def answer(words):
    """Press a button of the open question."""
    open_ones = [one for one in QApplication.topLevelWidgets() if isinstance(one, QMessageBox)]
    boxes = [one for one in open_ones if one.objectName() == "agglo question" and one.isVisible()]
    (button,) = [b for b in boxes[-1].buttons() if b.text().replace("&", "") == words]
    button.click()
    draw()


@pytest.mark.parametrize("shape", [(40, 48), (16, 32, 30)])
def test_from_strokes_to_regions(viewer, step, painter, project, shape):
    image, _, wall = cells(shape)
    viewer.add_image(image, name="raw")
    draw()
    assert not painter.preview()
    step.paint.begin.click()
    assert viewer.layers.selection.active is painter.strokes
    assert (painter.strokes.mode, painter.strokes.selected_label) == ("paint", 1)
    settle_strokes(painter)
    assert "strokes" in step.paint.line.text()
    step.paint.live.setChecked(False)
    assert "strokes" not in step.paint.line.text(), "nothing is asked for"
    step.paint.live.setChecked(True)
    assert not step.paint.run.button.isEnabled()
    assert selection_of(viewer).image.name == "raw"

    labels = strokes(wall)
    paint(painter, project, np.where(labels == 1, 1, 0))
    counts, _, problem = step.paint.line.text().partition(". ")
    assert "0 cytoplasm" in counts
    for words in ("strokes", "cytoplasm", "Add", "Remove"):
        assert words in problem
    assert "boundary" not in problem, "it has strokes"
    paint(painter, project, labels)
    live = painter.preview()
    assert list(live) == ["boundary", "cytoplasm"]
    want = agglo.train_pixels(image, labels).predict(image)["boundary"]
    plane = tuple(int(n) for n in viewer.dims.current_step[:-2])
    np.testing.assert_array_equal(live["boundary"].data[plane], want[plane])
    if len(shape) == 3:
        assert not live["boundary"].data[plane[0] + 1].any(), "only the plane in view"
        viewer.dims.set_current_step(0, plane[0] + 1)
        settle_strokes(painter)
        np.testing.assert_array_equal(live["boundary"].data[plane[0] + 1], want[plane[0] + 1])
    assert project.dataset is None, "live layers are no cues yet"

    step.paint.run.button.click()
    settle_strokes(painter)
    assert not painter.preview()
    assert list(project.dataset.cues) == ["boundary", "cytoplasm"]
    np.testing.assert_array_equal(project.dataset.cues["boundary"], want)
    step.run.button.click()
    settle_strokes(painter)
    assert project.regions.graph.n_regions > 4
    before = viewer.layers["raw boundary"]
    step.paint.run.button.click()  # again: the same layers have new data
    settle_strokes(painter)
    assert viewer.layers["raw boundary"] is before
    assert len([one for one in viewer.layers if "boundary" in one.name]) == 1


def test_classes_are_named_coloured_added_and_removed(viewer, step, painter, project):
    image, _, wall = cells((40, 48))
    viewer.add_image(image, name="raw")
    step.paint.begin.click()
    step.paint.add.click()
    assert [one.name for one in painter.classes] == ["boundary", "cytoplasm", "mitochondria"]
    assert painter.strokes.selected_label == 3
    step.paint.list.item(2).setText("red cells")
    assert painter.classes[2].name == "red_cells"
    step.paint.list.item(2).setText("boundary")  # taken
    draw()
    assert painter.classes[2].name == "red_cells"
    assert step.paint.list.item(2).text() == "red_cells"
    painter.change_class(2, colour="#102030")
    assert painter.strokes.colormap.color_dict[3][:3] == pytest.approx(
        (16 / 255, 32 / 255, 48 / 255)
    )
    labels = strokes(wall)
    labels[0, :4] = 3
    paint(painter, project, labels)
    assert list(painter.preview()) == ["boundary", "cytoplasm", "red_cells"]
    step.paint.remove.click()
    assert len(painter.classes) == 3, "its strokes would be lost"
    answer("Cancel")
    assert painter.counts()[2] == 4
    step.paint.remove.click()
    answer("Remove class and strokes")
    settle_strokes(painter)
    assert painter.counts() == [(labels == 1).sum(), (labels == 2).sum()]
    assert list(painter.preview()) == ["boundary", "cytoplasm"]
    step.paint.list.setCurrentRow(1)
    assert painter.strokes.selected_label == 2

    # A class in the middle: the strokes of the next one keep their class, by another number.
    step.paint.add.click()
    painter.strokes.data_setitem((np.zeros(4, int), np.arange(4)), 3)
    index = np.nonzero(painter.strokes.data == 2)
    painter.strokes.data_setitem(index, 0)
    step.paint.list.setCurrentRow(1)
    names = [one.name for one in painter.classes]
    step.paint.remove.click()
    settle_strokes(painter)
    assert [one.name for one in painter.classes] == [names[0], names[2]]
    assert painter.counts()[1] == 4
    assert list(painter.preview()) == [names[0], names[2]]
    painter.strokes.undo()
    assert painter.strokes.data.max() <= 2, "an undo brought back a number of before"
    step.paint.live.setChecked(False)
    assert not painter.preview()
    paint(painter, project, strokes(wall))
    assert not painter.preview()


def test_a_first_look_by_few_trees_then_all(viewer, step, painter, project, monkeypatch):
    image, _, wall = cells((40, 48))
    viewer.add_image(image, name="raw")
    step.paint.begin.click()
    go_on, train = threading.Event(), painter._training.train

    def held(labels, classes, *, trees, progress):
        if trees is None:
            go_on.wait(60)
        return train(labels, classes, trees=trees, progress=progress)

    monkeypatch.setattr(painter._training, "train", held)
    painter.strokes.data = strokes(wall)
    while painter.is_awaited:
        draw()
    assert painter.is_pending, "all trees are still to come"
    assert painter.classifier is None, "a classifier of few trees could be saved"
    rough = painter.preview()["boundary"].data.copy()
    more = strokes(wall)
    more[0, :4] = 2
    painter.strokes.data = more  # a stroke while all trees are at work
    assert painter.is_awaited
    go_on.set()
    settle_strokes(painter)
    assert painter.classifier.record["trees"] == 50
    want = agglo.train_pixels(image, more, classes=["boundary", "cytoplasm"]).predict(image)
    np.testing.assert_array_equal(painter.preview()["boundary"].data, want["boundary"])
    assert 0 < np.abs(rough - want["boundary"]).mean() < 0.1


def test_a_classifier_in_a_file(viewer, step, painter, project, tmp_path, monkeypatch):
    image, _, wall = cells((40, 48))
    classifier = agglo.train_pixels(image, strokes(wall), classes=["boundary", "cell"], trees=5)
    path = classifier.save(tmp_path / "c.npz")
    viewer.add_image(image, name="raw")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    step.paint.load.click()
    step.paint.run.button.click()
    settle_strokes(painter)
    assert list(project.dataset.cues) == ["boundary", "cell"]
    np.testing.assert_array_equal(project.dataset.cues["cell"], classifier.predict(image)["cell"])
    saved = tmp_path / "d.npz"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(saved), ""))
    step.paint.save.click()
    assert agglo.load_pixel_classifier(saved).names == ("boundary", "cell")


def test_cues_larger_than_memory_are_written_to_a_file(
    viewer, step, painter, project, tmp_path, monkeypatch
):
    image, _, wall = cells((16, 32, 30))
    viewer.add_image(image, name="raw", scale=(40, 8, 8), units="nm")
    classifier = agglo.train_pixels(image, strokes(wall), spacing=(40, 8, 8), trees=5)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    path = classifier.save(tmp_path / "c.npz")
    step.paint.load.click()
    settle_strokes(painter)
    names = iter(["", str(tmp_path / "cues"), str(tmp_path / "cues")])
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (next(names), ""))
    monkeypatch.setattr("napari_agglo.volumes._volume.available_memory", lambda: 1000)
    step.paint.run.button.click()
    settle_strokes(painter)
    assert "memory" in painter.message
    assert project.dataset is None, "no file was named"
    for _ in range(2):  # again: the layers are those of the new file
        step.paint.run.button.click()
        settle_strokes(painter)
    assert painter.message == ""
    written = open_volume(f"{tmp_path / 'cues.zarr'}:boundary")
    assert written.spacing == pytest.approx((0.04, 0.008, 0.008))
    monkeypatch.undo()
    want = classifier.predict(image, spacing=(40, 8, 8))
    for name in want:
        (layer,) = [one for one in viewer.layers if one.name == f"raw {name}"]
        data = layer.data[0] if layer.multiscale else layer.data
        assert not isinstance(data, np.ndarray), "it stays in its file"
        np.testing.assert_array_equal(np.asarray(data), want[name])
    assert list(project.dataset.cues) == list(want)


def test_an_axis_that_may_be_of_channels_is_named_while_one_paints(viewer, step, painter):
    image, _, wall = cells((40, 48))
    photo = viewer.add_image(np.stack([image] * 3), name="photo")
    step.paint.begin.click()
    settle_strokes(painter)
    words = ("“photo”", "channels", "Split Stack")
    assert all(one in step.paint.line.text() for one in words)
    paint(painter, painter.project, np.stack([strokes(wall)] * 3))
    assert painter.message == ""
    assert all(one in step.paint.line.text() for one in words), "it is not lost by a stroke"
    viewer.layers.remove(photo)
    viewer.add_image(image, name="raw")
    painter.start()
    assert not any(one in step.paint.line.text() for one in words)


def test_strokes_in_an_empty_plane_are_named(viewer, step, painter, project):
    image, _, wall = cells((10, 24, 30))
    image[5] = 0
    viewer.add_image(image, name="raw")
    step.paint.begin.click()
    labels = np.zeros(image.shape, np.uint8)
    labels[5, 3, :20], labels[5, 9, :20] = 1, 2
    paint(painter, project, labels)
    assert all(words in step.paint.line.text() for words in ("is 0 wherever", "paint where"))
    labels[7][wall[7]] = 1
    paint(painter, project, labels)
    assert list(painter.preview()) == ["boundary", "cytoplasm"], "it may be meant so"
    assert all(words in step.paint.line.text() for words in ("of cytoplasm", "is 0 everywhere"))
    labels[7, 1:3, 1:3] = 2
    paint(painter, project, labels)
    assert "is 0" not in step.paint.line.text()


def test_gold_teaches_in_place_of_strokes(viewer, step, painter, project):
    image, gold, wall = cells((40, 48))
    viewer.add_image(image, name="raw")
    assert not step.paint.gold.isVisibleTo(step)
    viewer.add_labels(gold, name="gold")
    step.paint.gold.click()
    settle_strokes(painter)
    known = agglo.train_pixels(image, gold=gold)
    assert [one.name for one in painter.classes] == ["boundary", "interior"]
    want = known.predict(image)
    np.testing.assert_array_equal(painter.preview()["boundary"].data, want["boundary"])
    assert "gold" in step.paint.line.text()
    step.paint.run.button.click()
    settle_strokes(painter)
    assert list(project.dataset.cues) == ["boundary", "interior"]
    np.testing.assert_array_equal(project.dataset.cues["boundary"], want["boundary"])

    paint(painter, project, strokes(wall))  # a stroke takes over
    assert "gold" not in step.paint.line.text()
    taught = agglo.train_pixels(image, strokes(wall), classes=["boundary", "interior"])
    live = painter.preview()["boundary"].data
    np.testing.assert_array_equal(live, taught.predict(image)["boundary"])
    step.paint.gold.click()
    settle_strokes(painter)
    np.testing.assert_array_equal(painter.preview()["boundary"].data, want["boundary"])
    assert painter.counts() == [(strokes(wall) == k).sum() for k in (1, 2)], "strokes stay"
    step.paint.add.click()
    step.paint.gold.click()
    assert "pixels" not in project.jobs.running(), "strokes may be of a class that gold lacks"


def test_nothing_is_lost_when_an_image_cannot_be_used(viewer, step, painter, project):
    image, _, wall = cells((40, 48))
    broken = image.astype(np.float32)
    broken[0, 0] = np.nan
    viewer.add_image(broken, name="raw")
    step.paint.begin.click()
    paint(painter, project, strokes(wall))
    assert "numbers" in step.paint.line.text()
    assert painter.strokes.data.any()
    step.paint.run.button.click()
    settle_strokes(painter)
    assert project.dataset is None
    assert painter.strokes.data.any()
    viewer.layers.remove(painter.strokes)
    assert painter.strokes is None
    assert step.paint.begin.isVisibleTo(step)


def test_gold_of_kept_volumes_teaches_too(viewer, step, painter, project, notices):
    image, gold, _ = cells((40, 48))
    other, further, _ = cells((48, 40), seed=1)
    viewer.add_image(image, name="raw")
    viewer.add_labels(gold, name="gold")
    step.paint.gold.click()
    settle_strokes(painter)
    step.paint.run.button.click()  # a volume is kept with its cues
    settle_strokes(painter)
    step.training.add.click()
    assert step.paint.gold.text() == "Learn from gold", "the same volume counts once"
    (kept,) = project.training
    for layer in list(viewer.layers):
        viewer.layers.remove(layer)

    viewer.add_image(other, name="second")
    draw()
    assert step.paint.gold.text() == "Learn from gold", "a volume without gold can be classified"
    assert step.paint.gold.isVisibleTo(step)
    viewer.add_labels(further, name="second gold")
    draw()
    assert step.paint.gold.text() == "Learn from gold of 2 volumes"
    nothing = replace(kept, name="no picture", image=None, gold=gold.copy())
    project.training = [*project.training, nothing]
    step.paint.gold.click()
    settle_strokes(painter)
    want = agglo.train_pixels([other, image], gold=[further, gold])
    alone = agglo.train_pixels(other, gold=further)
    live = painter.preview()["boundary"].data
    np.testing.assert_array_equal(live, want.predict(other)["boundary"])
    assert (live != alone.predict(other)["boundary"]).any(), "test invalid"
    for name in ("“second”", "“raw”", "“no picture”"):
        assert name in step.paint.line.text()

    before = painter.classifier
    photo = np.stack([image] * 3, axis=-1)
    project.training = [replace(kept, name="photo", image=photo)]
    step.paint.gold.click()
    draw()  # the plane in view may be classified again, by the same classifier
    assert "pixels" not in project.jobs.running()
    assert painter.classifier is before
    assert all(words in notices[-1] for words in ("“photo” is in colours", "“second” in grey"))
    project.training = [replace(kept, name="blank", gold=np.ones_like(gold))]
    step.paint.gold.click()
    settle_strokes(painter)
    assert "gold labels of “blank”" in step.paint.line.text()


def test_gold_of_thick_and_thin_planes_teaches_plane_by_plane(viewer, step, painter, project):
    image, gold, _ = cells((16, 32, 30))
    thick = dataset_of(gold, scale=(5.0, 1.0, 1.0))
    project.training = [replace(thick, image=image, gold=gold)]
    viewer.add_image(image, name="raw")
    step.paint.gold.click()
    settle_strokes(painter)
    want = agglo.train_pixels(image, gold=gold, spacing=(5, 1, 1))
    assert painter.bank == want.bank == FilterBank(axes=2)
    assert step.paint.features["per_plane"].value
    plane = viewer.dims.current_step[0]
    live = painter.preview()["boundary"].data[plane]
    np.testing.assert_array_equal(live, want.predict(image)["boundary"][plane])


def type_scales(form, text):
    """Type scales, as a person does."""
    form["scales"].value = text
    form.line.editingFinished.emit()


def test_features_are_chosen(viewer, step, painter, project, notices):
    image, gold, wall = cells((16, 32, 30))
    viewer.add_image(image, name="raw")
    form = step.paint.features
    assert not form.isVisibleTo(step)
    step.paint.begin.click()
    assert form.isVisibleTo(step)
    labels = strokes(wall)
    paint(painter, project, labels)
    known = painter.preview()["boundary"].data.copy()
    plane = viewer.dims.current_step[0]

    def assert_live(**features):
        settle_strokes(painter)
        want = agglo.train_pixels(image, labels, **features)
        assert painter.bank == want.bank
        live = painter.preview()["boundary"].data
        np.testing.assert_array_equal(live[plane], want.predict(image)["boundary"][plane])
        assert (live[plane] != known[plane]).any(), "test invalid"

    form["structure"].value = True
    assert_live(structure=True)
    type_scales(form, "3 1.5")
    assert form["scales"].value == "1.5, 3"
    assert_live(structure=True, scales=(1.5, 3))
    form["per_plane"].value = True
    assert_live(structure=True, scales=(1.5, 3), per_plane=True)
    for refused in ("much", "0.1, 1", ""):
        type_scales(form, refused)
        assert form["scales"].value == "1.5, 3"
        assert "scales" in notices[-1]
    assert painter.bank.scales == (1.5, 3)

    viewer.add_labels(gold, name="gold")
    step.paint.gold.click()
    settle_strokes(painter)
    assert painter.classifier.record["source"] == "gold"
    assert painter.classifier.bank == painter.bank == FilterBank((1.5, 3.0), 2, 1, True)
    painter.strokes.data = np.zeros_like(labels)
    settle_strokes(painter)
    step.paint.gold.click()
    settle_strokes(painter)
    form["structure"].value = False
    settle_strokes(painter)
    assert painter.classifier is None
    assert not painter.preview(), "nothing of the former features is on the screen"
    assert "learn from gold again" in step.paint.line.text()
    paint(painter, project, labels)
    assert "again" not in step.paint.line.text()

    viewer.layers.remove(painter.strokes)
    viewer.layers["raw"].visible = False
    viewer.add_image(image[plane], name="picture")
    selection_of(viewer).choose("image", viewer.layers["picture"])
    painter.start()
    assert painter.bank == FilterBank((1.5, 3.0), 2), "the next image has the same features"
    assert not form["per_plane"].enabled


def test_an_opened_classifier_brings_its_features(viewer, step, painter, project, tmp_path):
    image, _, wall = cells((16, 32, 30))
    labels = strokes(wall)
    classifier = agglo.train_pixels(
        image, labels, classes=["boundary", "cell"], trees=5, scales=(1, 3), structure=True,
        per_plane=True,
    )  # fmt: skip
    photo = np.stack([image] * 3, axis=-1)
    coloured = agglo.train_pixels(photo, labels, trees=5)
    viewer.add_image(image, name="raw")
    painter.load(classifier.save(tmp_path / "c.npz"))
    settle_strokes(painter)
    plane = viewer.dims.current_step[0]
    live = painter.preview()["cell"].data[plane]
    np.testing.assert_array_equal(live, classifier.predict(image)["cell"][plane])
    form = step.paint.features
    assert form.values() == {"structure": True, "per_plane": True, "scales": "1, 3"}
    assert "opened" in step.paint.line.text()

    with pytest.raises(InvalidInput) as error:
        painter.load(coloured.save(tmp_path / "colours.npz"))
    assert error.value.argument == "image"
    settle_strokes(painter)
    assert painter.classifier.names == ("boundary", "cell"), "the former one stays"
    np.testing.assert_array_equal(painter.preview()["cell"].data[plane], live)

    paint(painter, project, labels)
    want = agglo.train_pixels(
        image, labels, classes=["boundary", "cell"], scales=(1, 3), structure=True, per_plane=True
    )
    live = painter.preview()["cell"].data[plane]
    np.testing.assert_array_equal(live, want.predict(image)["cell"][plane])


def test_values_of_another_range_than_those_of_an_opened_classifier_are_named(
    viewer, step, painter, tmp_path
):
    image, _, wall = cells((40, 48))
    classifier = agglo.train_pixels(image, strokes(wall), trees=5)
    viewer.add_image(image.astype(np.float32) / 255, name="raw")
    painter.load(classifier.save(tmp_path / "c.npz"))
    settle_strokes(painter)
    assert painter.preview()
    assert "differ much" in step.paint.line.text()
