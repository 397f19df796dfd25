"""Layers are chosen by themselves, and by hand; what cannot be used is said at once."""

from __future__ import annotations

import numpy as np
import pytest
from napari.components import ViewerModel
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QVBoxLayout, QWidget
from scipy import ndimage
from windows import add_sample, draw, selection_of, settle, status

import napari_agglo as agglo
from napari_agglo.errors import InvalidInput, LabelComponents, PickIndex, SetOption, alternatives
from napari_agglo.widgets import DataWidget

USED, LAYER, RANGE = range(3)  # columns of the table of cues


def row_of(step, layer_name):
    table = step.cues
    texts = [table.item(k, LAYER).text() for k in range(table.rowCount())]
    return texts.index(layer_name)


def tick(step, layer_name, on=True):
    item = step.cues.item(row_of(step, layer_name), USED)
    item.setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)
    draw()


def message(step):
    return step.trouble.message.text() if step.trouble.isVisibleTo(step) else ""


def test_nothing_there(step, project):
    assert status(DataWidget, project) == "empty"
    assert "File > Open Sample > Agglo" in message(step)
    assert not step.run.button.isEnabled()


def test_a_sample_needs_no_choice(opened, project, crop):
    """A sample in one window."""
    # A sample needs no choice.
    dataset = project.dataset
    assert status(DataWidget, project) == "ready"
    assert list(dataset.cues) == ["boundary", "cytoplasm", "mitochondria"]
    assert dataset.cues["boundary"] is crop.cues["boundary"]
    assert dataset.gold is crop.gold
    assert dataset.image is crop.image
    assert dataset.spacing == pytest.approx(crop.spacing)
    assert opened.roles["image"].current_choice == "neuropil2d image"
    assert opened.roles["gold"].current_choice == "neuropil2d gold"
    assert message(opened) == ""

    # All controls have a tooltip.
    from qtpy.QtWidgets import QCheckBox, QComboBox, QPushButton, QSpinBox

    for kind in (QPushButton, QCheckBox, QSpinBox, QComboBox):
        for control in opened.findChildren(kind):
            assert control.toolTip(), control.objectName() or control.text()


def test_names_alone_will_do(viewer, step, project, crop):
    viewer.add_image(crop.image, name="raw")
    viewer.add_image(crop.cues["boundary"], name="membrane prob")
    viewer.add_labels(crop.gold, name="train_gt")
    assert list(project.dataset.cues) == ["boundary"]
    assert project.dataset.gold is crop.gold
    assert project.dataset.name == "raw"


def test_build(opened, project):
    opened.run.button.click()
    assert status(DataWidget, project) == "running"
    settle(project, 240)
    assert status(DataWidget, project) == "done"
    assert f"{project.graph.n_regions:,} superpixels" in opened.counts.text()
    assert project.graph.cue_names == ("boundary", "cytoplasm", "mitochondria")
    opened.superpixels.options["min_size"].value = 60
    assert status(DataWidget, project) == "stale"
    before = project.graph.n_regions
    opened.run.button.click()
    settle(project, 240)
    assert project.graph.n_regions < before


@pytest.mark.slow
def test_choices_made_during_a_run_are_kept(opened, project):
    opened.run.button.click()
    opened.superpixels.options["min_size"].value = 200
    settle(project, 240)
    assert project.dataset.options["min_size"] == 200
    assert status(DataWidget, project) == "stale"


def test_cancel_leaves_all_as_it_was(opened, project):
    opened.run.button.click()
    opened.run.button.click()
    settle(project, 240)
    assert project.graph is None
    assert status(DataWidget, project) == "ready"


def test_without_a_cue_one_click_makes_it(viewer, step, project, crop):
    viewer.add_image(crop.image, name="raw", scale=crop.spacing)
    assert "Make a boundary cue" in message(step)
    step.make.button.click()
    settle(project, 240)
    made = viewer.layers["raw boundary (dark lines)"]  # the kind that was chosen
    assert project.dataset.cues["boundary"] is made.data
    np.testing.assert_allclose(made.scale, crop.spacing)
    assert message(step) == ""
    step.run.button.click()
    settle(project, 240)
    assert status(DataWidget, project) == "done"


def test_a_picture_in_colours(viewer, step, project, crop):
    picture = np.stack([crop.image] * 3, axis=-1)
    viewer.add_image(picture, name="photo", rgb=True)
    assert step.cues.rowCount() == 0
    step.make.button.click()
    settle(project, 240)
    assert project.dataset.shape == crop.image.shape
    assert project.dataset.image is viewer.layers["photo"].data


@pytest.mark.slow
def test_a_made_cue_takes_the_place_of_the_one_before(viewer, opened, project):
    made = []
    for kind in ("edges", "bright lines"):
        opened.make.form["kind"].native.setCurrentText(kind)
        opened.make.button.click()
        settle(project, 240)
        made.append(viewer.layers[f"neuropil2d image boundary ({kind})"])
        assert project.dataset.cues["boundary"] is made[-1].data
        assert list(project.dataset.cues) == ["boundary", "cytoplasm", "mitochondria"]
    assert [one.visible for one in made] == [False, True], "they would add up"


def test_cues_are_ticked_named_and_ranged(opened, project):
    tick(opened, "neuropil2d cytoplasm", on=False)
    assert list(project.dataset.cues) == ["boundary", "mitochondria"]
    table = opened.cues
    table.item(row_of(opened, "neuropil2d mitochondria"), USED).setText("mito")
    assert list(project.dataset.cues) == ["boundary", "mito"]
    table.item(row_of(opened, "neuropil2d boundary"), RANGE).setText("1:0")
    assert project.dataset.ranges == {"boundary": (1, 0)}
    table.item(row_of(opened, "neuropil2d boundary"), RANGE).setText("high")
    assert project.dataset is None
    assert "0:255" in message(opened)
    table.item(row_of(opened, "neuropil2d boundary"), RANGE).setText("")
    assert project.dataset.ranges == {}
    table.item(row_of(opened, "neuropil2d boundary"), USED).setText("mito")
    assert "“mito”" in message(opened)
    table.item(row_of(opened, "neuropil2d boundary"), USED).setText("edge")
    assert "called “boundary”" in message(opened)


def test_channels_are_cues_of_their_own(viewer, step, project, crop):
    viewer.add_image(crop.image, name="raw")
    stack = np.stack(list(crop.cues.values()))
    viewer.add_image(stack, name="probabilities")
    names = [step.cues.item(k, LAYER).text() for k in range(step.cues.rowCount())]
    assert names[:3] == [f"probabilities [{k}]" for k in range(3)]
    assert len(project.dataset.cues) == 3
    assert "boundary" in project.dataset.cues
    step.run.button.click()
    settle(project, 240)
    assert status(DataWidget, project) == "done"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data": np.zeros((9, 8), int)}, ["(120, 140)", "(9, 8)", "one shape"]),
        ({"data": np.zeros((140, 120), int)}, ["another order", "transpose"]),
        pytest.param({"data": np.zeros((2, 120, 140), int)}, ["more axes"], marks=pytest.mark.slow),
        ({"rotate": 10}, ["rotated"]),
    ],
)
def test_gold_that_does_not_fit(viewer, opened, project, crop, options, words):
    given = {"data": crop.gold, "scale": None, "name": "mine", **options}
    if "data" not in options:
        given["scale"] = crop.spacing
    layer = viewer.add_labels(**given)
    opened.roles["gold"].value = layer
    assert project.dataset is None
    assert "“mine”" in message(opened)
    for word in words:
        assert word in message(opened)
    assert not opened.run.button.isEnabled()
    opened.roles["gold"].value = None
    assert project.dataset is not None
    assert project.dataset.gold is None


def test_layers_at_another_place_are_moved_by_a_click(viewer, opened, project, crop):
    viewer.layers["neuropil2d gold"].translate = (3, 4)
    assert "different placements" in message(opened)
    assert "“neuropil2d boundary”" in opened.trouble.button.text()
    opened.trouble.button.click()
    np.testing.assert_allclose(viewer.layers["neuropil2d gold"].translate, 0)
    assert project.dataset.gold is crop.gold


@pytest.mark.slow
def test_layers_go_to_the_one_that_knows_its_scale(viewer, step, project, block):
    viewer.add_image(block.image, name="stack", scale=(4, 1, 1))
    viewer.add_image(block.cues["boundary"], name="prob")
    assert "“stack”" in step.trouble.button.text()
    step.trouble.button.click()
    assert project.dataset.spacing == (4, 1, 1)
    assert project.dataset.options[
        "per_plane"
    ]  # planes that are now known to be thick are taken one by one


@pytest.mark.slow
def test_regions_built_are_not_stale_because_they_are_shown(viewer, step, project, block):
    viewer.add_image(block.cues["boundary"], name="prob")
    step.run.button.click()
    settle(project, 240)
    viewer.layers["prob"].scale = (4, 1, 1)
    dataset = project.dataset
    viewer.add_labels(block.gold, name="others")  # as any layer that comes, ours too
    assert project.dataset is dataset
    assert not dataset.options["per_plane"]


def test_a_tick_moves_no_control(viewer, step, picture_and_map):
    parts = (step.roles["image"].native, step.cues, step.make.button, step.paint.begin,
             step.superpixels.preview.button, step.run.button)  # fmt: skip
    room = QWidget()
    layout = QVBoxLayout(room)
    layout.addWidget(step)
    layout.addStretch(1)  # as in the dock
    room.resize(320, 1200)
    room.show()
    places = []
    for on in (False, True, False):
        tick(step, "lines", on)
        assert step.trouble.isVisibleTo(step) != on, "test invalid"
        places.append([part.mapTo(step, part.rect().topLeft()).y() for part in parts])
    step.setParent(None)
    assert places[0] == places[1] == places[2]


@pytest.fixture
def picture_and_map(viewer, block):
    """Add an image and a cue of a volume, whose names say nothing."""
    viewer.add_image(block.image, name="stack")
    viewer.add_image(block.cues["boundary"], name="lines")


def test_ticks_are_advised_only_if_there_are_layers(viewer, step):
    colours = viewer.add_image(np.zeros((20, 24, 3), np.uint8), name="photo", rgb=True)
    assert "tick" not in message(step)
    assert "Make a boundary cue" in message(step)
    viewer.layers.remove(colours)
    viewer.add_image(np.zeros((20, 24), np.uint8), name="grey")
    assert "tick" in message(step)


@pytest.mark.parametrize("picture", [False, True])
def test_a_boundary_map_that_came_in_colours_is_named(viewer, step, picture):
    if picture:
        viewer.add_image(np.zeros((20, 24), np.uint8), name="grey")
    saved = viewer.add_image(np.zeros((20, 24, 3), np.uint8), name="boundary", rgb=True)
    assert all(words in message(step) for words in ("“boundary”", "in colours", "Split RGB"))
    for name, plane in zip("RGB", np.moveaxis(saved.data, -1, 0), strict=True):
        viewer.add_image(plane, name=f"boundary {name}")  # as napari splits it
    assert "colours" not in message(step)


def test_gold_that_came_as_floats_is_converted_by_a_click(viewer, opened, project, crop):
    layer = viewer.add_image(crop.gold.astype(float), name="floats", scale=crop.spacing)
    opened.roles["gold"].value = layer
    assert opened.selection.problem.argument == "gold"
    assert message(opened)
    opened.trouble.button.click()
    settle(project, 240)
    np.testing.assert_array_equal(project.dataset.gold, crop.gold)
    assert opened.roles["gold"].current_choice == "floats"
    assert [one.name for one in viewer.layers].count("floats") == 1, "and no image on top of it"
    assert layer not in viewer.layers


def test_lazy_and_multiscale_layers(viewer, step, project, crop):
    import dask.array as da

    cue = crop.cues["boundary"]
    viewer.add_image([cue, cue[::2, ::2]], name="boundary", multiscale=True)
    viewer.add_labels(da.from_array(crop.gold, chunks=50), name="gold")
    assert project.dataset.cues["boundary"] is cue
    step.run.button.click()
    settle(project, 240)
    assert status(DataWidget, project) == "done"


def test_not_a_number_is_refused_until_it_is_said_to_be_boundary(viewer, step, project, crop):
    cue = crop.cues["boundary"].copy()
    cue[:5] = np.nan
    viewer.add_image(cue, name="boundary", contrast_limits=(0, 1))
    step.run.button.click()
    settle(project, 240)
    assert project.graph is None
    step.options["nan"].value = "boundary"
    step.run.button.click()
    settle(project, 240)
    assert project.graph is not None


@pytest.mark.slow
def test_superpixels_of_ones_own(viewer, opened, project, dataset):
    own = dataset.superpixels.astype(np.int64) * 1000
    layer = viewer.add_labels(own, name="ws", scale=dataset.spacing)
    assert project.dataset.superpixels is own, "it is called like one"
    assert not opened.superpixels.options.isVisibleTo(opened)
    opened.run.button.click()
    settle(project, 240)
    assert project.graph.ids[1] == 1000
    assert status(DataWidget, project) == "done"
    opened.superpixels.role["superpixels"].value = None
    assert project.dataset.superpixels is None
    viewer.layers.remove(layer)


@pytest.mark.slow
def test_starting_from_another_segmentation(viewer, opened, project, crop):
    other = np.kron(np.arange(1, 13).reshape(3, 4), np.ones((40, 35), int))
    layer = viewer.add_labels(other, name="tool", scale=crop.spacing)
    opened.start_from["start"].value = layer
    opened.run.button.click()
    settle(project, 240)
    assert status(DataWidget, project) == "done"
    image = project.graph.superpixels.image
    np.testing.assert_array_equal(project.regions.dataset.partition[image], other)


def test_preview(viewer, opened, project):
    opened.superpixels.preview.button.click()
    settle(project, 240)
    shown = [layer for layer in viewer.layers if "preview" in layer.name]
    assert len(shown) == 1
    assert shown[0].contour == 1
    assert "preview" not in " ".join(str(one) for one in opened.roles["gold"].choices)
    opened.superpixels.preview.button.click()
    settle(project, 240)
    assert len([layer for layer in viewer.layers if "preview" in layer.name]) == 1
    draw()
    opened.run.button.click()
    settle(project, 240)
    assert not [layer for layer in viewer.layers if "preview" in layer.name]


@pytest.mark.slow
def test_preview_of_a_volume_lies_on_its_plane(viewer, step, project, block):
    add_sample(viewer, block)
    viewer.dims.set_current_step(0, 7)
    step.superpixels.preview.button.click()
    settle(project, 240)
    shown = next(layer for layer in viewer.layers if "preview" in layer.name)
    assert shown.data.shape == (1, 60, 64)
    assert shown.translate[0] == pytest.approx(7 * block.spacing[0])


def test_thick_planes_are_taken_one_by_one(viewer, step, project, block):
    cue = block.cues["boundary"]
    layer = viewer.add_image(cue, name="boundary", scale=(4, 1, 1))
    assert project.dataset.options["per_plane"]
    step.superpixels.options["per_plane"].native.click()
    assert not project.dataset.options["per_plane"]
    layer.scale = (5, 1, 1)
    assert not project.dataset.options["per_plane"], "what was chosen by hand stays"


@pytest.mark.slow
def test_layers_come_go_and_are_renamed(viewer, opened, project, crop):
    viewer.layers["neuropil2d gold"].name = "truth"
    assert opened.roles["gold"].current_choice == "truth"
    viewer.layers.remove("truth")
    assert project.dataset.gold is None
    assert opened.roles["gold"].current_choice == "none"
    viewer.layers["neuropil2d boundary"].visible = True
    viewer.layers.move(1, 3)
    assert "boundary" in project.dataset.cues
    draw()
    viewer.layers.clear()
    assert project.dataset is None


@pytest.mark.slow
def test_other_layers_do_not_disturb_what_was_built(viewer, opened, project):
    opened.run.button.click()
    settle(project, 240)
    viewer.add_image(np.random.default_rng(0).random((50, 50)), name="another boundary")
    viewer.add_points([[1, 2]])
    assert status(DataWidget, project) == "done"


@pytest.mark.slow
def test_layers_removed_during_a_run(viewer, opened, project):
    opened.run.button.click()
    viewer.layers.clear()
    settle(project, 240)
    assert project.graph is not None
    assert project.dataset is None


@pytest.mark.slow
def test_choosing_another_image_brings_its_cues(viewer, opened, project, crop):
    half = {name: cue[:60].copy() for name, cue in crop.cues.items()}
    layer = viewer.add_image(crop.image[:60], name="half", scale=crop.spacing)
    viewer.add_image(half["boundary"], name="half boundary", scale=crop.spacing)
    viewer.add_labels(crop.gold[:60], name="half gold", scale=crop.spacing)
    opened.roles["image"].value = layer
    assert project.dataset.shape == (60, 140)
    assert project.dataset.cues["boundary"] is half["boundary"]
    assert opened.roles["gold"].current_choice == "half gold"


@pytest.mark.slow
def test_the_dock_closed_and_opened_again_shows_the_same(viewer, opened, project):
    tick(opened, "neuropil2d cytoplasm", on=False)
    opened.superpixels.options["min_size"].value = 33
    dataset = project.dataset
    again = DataWidget(viewer)
    again.show()
    assert project.dataset is dataset
    assert again.superpixels.options["min_size"].value == 33
    assert again.selection is opened.selection
    again.superpixels.options["min_size"].value = 44
    assert opened.superpixels.options["min_size"].value == 44


def test_volumes_kept_for_training(viewer, opened, project):
    opened.training.add.click()
    assert [one.name for one in project.training] == ["neuropil2d image"]
    opened.training.add.click()
    assert len(project.training) == 1
    opened.roles["gold"].value = None
    assert not opened.training.add.isEnabled()
    opened.training.remove.click()
    assert project.training == ()


def test_two_viewers_have_a_choice_each(viewer, opened):
    other = ViewerModel()
    assert selection_of(other) is not selection_of(viewer)
    assert selection_of(other).image is None


def test_a_range_is_declared_by_a_click(viewer, step, project, crop):
    viewer.add_image(crop.cues["boundary"] * 254.5, name="boundary")
    step.run.button.click()
    settle(project, 240)
    assert project.graph is None
    error = step.selection.problem
    assert error.argument == "cues['boundary']"
    assert error.remedy == SetOption("ranges", (0, 255), "boundary")
    assert all(words in step.trouble.button.text() for words in ("“boundary”", "0:255"))
    step.trouble.button.click()
    assert project.dataset.ranges == {"boundary": (0, 255)}
    assert message(step) == ""
    step.run.button.click()
    settle(project, 240)
    assert status(DataWidget, project) == "done"


def doubt(step):
    return step.doubt.message.text() if step.doubt.isVisibleTo(step) else ""


def test_an_inverted_map_is_noticed_and_inverted_by_a_click(viewer, step, project, crop):
    viewer.add_image(crop.image, name="raw")
    viewer.add_image(1 - crop.cues["boundary"], name="map")  # a name that says nothing of its sign
    tick(step, "map")
    assert project.dataset.ranges == {}
    assert doubt(step) == ""
    step.run.button.click()
    settle(project, 240)
    before = project.regions.dataset.superpixels
    assert all(words in doubt(step) for words in ("“boundary”", "high inside objects"))
    assert all(words in step.doubt.button.text() for words in ("“boundary”", "1:0"))
    step.doubt.button.click()
    assert project.dataset.ranges == {"boundary": (1, 0)}
    assert doubt(step) == "", "the regions are stale, and the reason is known"
    step.run.button.click()
    settle(project, 240)
    assert doubt(step) == ""
    after = project.regions.dataset.superpixels
    np.testing.assert_array_equal(
        after, agglo.oversegment(viewer.layers["map"].data, value_range=(1, 0))
    )
    assert not np.array_equal(after, before)


def test_a_doubt_can_be_dismissed(viewer, step, project, crop, dataset):
    viewer.add_image(1 - crop.cues["boundary"], name="boundary")
    viewer.add_labels(dataset.superpixels, name="superpixels")
    for _ in range(2):  # the second time the regions are new, and so is the doubt
        step.run.button.click()
        settle(project, 240)
        assert "lower where regions touch" in doubt(step)
        assert "1:0" in step.doubt.button.text()
        step.doubt.keep.click()
        assert doubt(step) == ""
        assert project.dataset.ranges == {}


def test_values_that_hardly_fill_their_range_are_noticed(viewer, step, project, crop):
    levels = (crop.cues["boundary"] * 4).astype(np.uint8)  # 0 to 4 of 255
    viewer.add_image(levels, name="boundary")
    step.run.button.click()
    settle(project, 240)
    assert all(words in doubt(step) for words in ("“boundary”", "0 to 255", "the range"))
    assert not step.doubt.button.isVisibleTo(step), "only the user knows the range"


def test_an_axis_like_one_of_channels_is_noticed(viewer, step, project, crop):
    viewer.add_image(np.stack([crop.image] * 3), name="photo")
    step.make.button.click()
    settle(project, 240)
    note = step.make.note
    assert note.isVisibleTo(step)
    assert all(words in note.text() for words in ("“photo”", "channels", "Split Stack"))
    viewer.add_image(crop.image, name="raw")
    assert not note.isVisibleTo(step), "of another image"


def test_nan_is_taken_for_boundary_by_a_click(viewer, step, project, crop):
    cue = crop.cues["boundary"].copy()
    cue[:5] = np.nan
    viewer.add_image(cue, name="boundary", contrast_limits=(0, 1))
    step.run.button.click()
    settle(project, 240)
    assert all(words in step.trouble.button.text() for words in ("NaN", "boundary"))
    assert "another cue" in message(step)
    step.trouble.button.click()
    assert project.dataset.nan == "boundary"
    assert step.options["nan"].value == "boundary"


@pytest.mark.slow
def test_a_plane_is_taken_by_a_click(viewer, opened, project, crop):
    stack = np.stack([np.zeros_like(crop.gold), crop.gold, crop.gold])
    layer = viewer.add_labels(stack, name="stack", scale=(1, *crop.spacing), units=("um",) * 3)
    viewer.dims.set_current_step(0, 1)
    opened.roles["gold"].value = layer
    assert PickIndex((0,), 3) in alternatives(opened.selection.problem.remedy)
    opened.trouble.second.click()  # the first takes them for three gold standards
    np.testing.assert_array_equal(project.dataset.gold, crop.gold)
    assert viewer.layers[-1].units == layer.units[1:]


def test_remedies_name_options_by_the_labels_of_their_controls(opened):
    forms = {"min_size": opened.superpixels, "per_plane": opened.superpixels, "sigma": opened}
    for name, value in (("min_size", 7), ("per_plane", True), ("sigma", 1.5)):
        label = forms[name].options[name].label
        for many in (False, True):  # as a button, and in a sentence where a click does not help
            remedy = SetOption(name, None if many else value)
            opened.selection.refuse(InvalidInput("Not possible", remedy=remedy))
            trouble = opened.trouble
            told = message(opened) if many else trouble.button.text()
            assert f"“{label}”" in told


def test_remedies_of_the_library_have_buttons(opened, project, crop):
    error = InvalidInput("`gold` is a mask", argument="gold", remedy=LabelComponents())
    opened.selection.refuse(error)
    assert message(opened).startswith(error.problem)
    opened.trouble.button.click()
    settle(project, 240)
    assert opened.roles["gold"].current_choice == "neuropil2d gold labels"
    np.testing.assert_array_equal(project.dataset.gold, ndimage.label(crop.gold)[0])
    opened.selection.refuse(InvalidInput("Too small", remedy=SetOption("min_size", 7)))
    assert opened.superpixels.options["min_size"].label in opened.trouble.button.text()
    opened.trouble.button.click()
    assert opened.superpixels.options["min_size"].value == 7
    opened.selection.refuse(InvalidInput("Not there", remedy="look elsewhere"))
    assert message(opened) == "Not there; look elsewhere."
    assert not opened.trouble.button.isVisible()
