"""Layers in pixels beside layers in micrometres: the Data step says so, and a click mends it."""

from __future__ import annotations

import numpy as np
import pytest
from napari.layers import Labels
from windows import show


@pytest.fixture
def both(viewer, opened, crop):
    """Return the Data step with the layers of a sample, and an image and gold without a unit."""
    viewer.add_image(crop.image.copy(), name="mine")
    viewer.add_image(crop.cues["boundary"].copy(), name="my boundary")
    viewer.add_labels(np.stack([crop.gold] * 3), name="three people")
    return opened


def is_mixed(viewer):
    """Return whether napari finds no units for all layers, and warns."""
    return viewer.layers.extent.units is None


def units_of(viewer, name):
    return [str(one) for one in viewer.layers[name].units]


def test_nothing_is_said_of_layers_of_one_kind(viewer, opened):
    assert not opened.units.isVisibleTo(opened)
    viewer.layers["neuropil2d gold"].units = ("nm", "nm")  # napari converts lengths
    assert not is_mixed(viewer)
    assert not opened.units.isVisibleTo(opened)


def test_all_layers_get_the_units_of_the_image(viewer, both):
    assert is_mixed(viewer), "test invalid"
    both.selection.choose("image", viewer.layers["neuropil2d image"])
    assert both.units.isVisibleTo(both)
    assert all(
        word in both.units.message.text() for word in ("neuropil2d image", "“mine”", "pixels")
    )
    assert "neuropil2d image" in both.units.give.text()
    scales = [tuple(layer.scale) for layer in viewer.layers]
    both.units.give.click()
    assert not is_mixed(viewer)
    assert not both.units.isVisibleTo(both)
    assert units_of(viewer, "mine") == ["micrometer"] * 2
    assert units_of(viewer, "three people") == ["pixel", "micrometer", "micrometer"]
    assert [tuple(layer.scale) for layer in viewer.layers] == scales
    viewer.layers["mine"].units = ("pixel", "pixel")
    assert both.units.isVisibleTo(both)


def test_a_chosen_sample_is_removed_by_a_click(viewer, both, project):
    """The first choice is not to declare the user's pixels micrometres."""
    assert both.selection.image.name == "neuropil2d image", "test invalid"
    units = both.units
    assert units.remove.isVisibleTo(both)
    assert units.layout().indexOf(units.remove) < units.layout().indexOf(units.give)
    units.remove.click()
    assert {layer.name for layer in viewer.layers} == {"mine", "my boundary", "three people"}
    assert not units.isVisibleTo(both)
    assert project.dataset.name == "mine"
    assert units_of(viewer, "mine") == ["pixel"] * 2


def test_an_image_that_is_opened_beside_a_sample_is_used_by_a_click(viewer, opened, crop):
    assert not opened.opened.isVisibleTo(opened)
    viewer.add_image(crop.cues["boundary"].copy(), name="my boundary")
    assert not opened.opened.isVisibleTo(opened), "a cue is no picture"
    viewer.add_image(crop.image.copy(), name="stack")
    assert opened.opened.isVisibleTo(opened)
    assert opened.opened.message.text() == "“stack” is open:"
    assert opened.selection.image.name == "neuropil2d image", "no choice changes by itself"
    opened.opened.use.click()
    assert opened.selection.image is viewer.layers["stack"]
    assert opened.roles["image"].current_choice == "stack"
    assert not opened.opened.isVisibleTo(opened)
    opened.selection.choose("image", viewer.layers["neuropil2d image"])
    viewer.layers.remove("stack")
    assert not opened.opened.isVisibleTo(opened)


def test_the_sample_is_removed_by_a_click_with_its_segmentation(viewer, both, project, dataset):
    show(project, dataset)
    assert "Segmentation" in viewer.layers
    cues = {"boundary": (viewer.layers["my boundary"], None)}
    both.selection.choose_all(viewer.layers["mine"], None, cues)
    assert project.dataset.name == "mine"
    assert "“mine”" in both.units.give.text()
    assert both.units.remove.isVisibleTo(both)
    both.units.remove.click()
    assert {layer.name for layer in viewer.layers} == {"mine", "my boundary", "three people"}
    assert not project.has_hierarchy
    assert not is_mixed(viewer)
    assert not both.units.isVisibleTo(both)
    assert project.dataset.name == "mine"


def test_one_place_is_one_unit_too(viewer, opened, crop):
    """The remedy for layers of different places gives all of them the units of the first."""
    mine = viewer.add_labels(crop.gold.copy(), name="mine")
    opened.roles["gold"].value = mine
    assert opened.trouble.isVisibleTo(opened)
    opened.trouble.button.click()
    assert not opened.trouble.isVisibleTo(opened)
    assert not is_mixed(viewer)
    assert units_of(viewer, "mine") == ["micrometer"] * 2
    assert isinstance(mine, Labels)
