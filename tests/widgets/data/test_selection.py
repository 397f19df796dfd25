"""Image and cues are guessed anew when one of them changes, but what was ticked stays."""

from __future__ import annotations

import numpy as np
import pytest
from windows import selection_of

ZEROS = np.zeros((20, 30), np.uint8)


@pytest.fixture
def picture():
    """Return bytes of all greys, as of a microscope."""
    return np.random.default_rng(0).integers(40, 200, ZEROS.shape).astype(np.uint8)


@pytest.fixture
def lines():
    """Return bytes that are 0 but for some lines, as of a boundary map."""
    image = ZEROS.copy()
    image[::6] = 250
    return image


def row_of(selection, layer):
    return next(row for row in selection.rows if row.layer is layer)


def ticked(selection):
    return [row.layer.name for row in selection.rows if row.used]


@pytest.mark.parametrize("names", [("stack", "my_map"), ("first", "second")])
def test_a_map_is_no_picture_if_there_is_another(viewer, step, picture, lines, names):
    stack = viewer.add_image(picture, name=names[0])
    viewer.add_image(lines, name=names[1])
    assert selection_of(viewer).image is stack


def test_a_map_by_name_is_no_picture_whatever_its_values(viewer, step, picture):
    stack = viewer.add_image(picture, name="stack")
    viewer.add_image(picture[::-1].copy(), name="map of depth")
    assert selection_of(viewer).image is stack
    another = viewer.add_image(picture.copy(), name="roadmaps")
    assert selection_of(viewer).image is another


def test_a_map_is_the_picture_if_there_is_no_other(viewer, step, lines):
    only = viewer.add_image(lines, name="my_map")
    assert selection_of(viewer).image is only


def test_a_map_beside_a_sample_is_not_offered_as_the_picture(viewer, opened, picture, lines):
    stack = viewer.add_image(picture, name="my_stack")
    viewer.add_image(lines, name="my_map")
    assert opened.opened.image is stack


def test_a_layer_that_is_ticked_as_a_cue_is_not_also_the_picture(viewer, step, project, picture):
    first, second = (viewer.add_image(picture.copy(), name=name) for name in ("first", "second"))
    selection = selection_of(viewer)
    assert selection.image is second, "test invalid"
    selection.set_cue(row_of(selection, second), used=True)
    assert selection.image is first
    assert ticked(selection) == ["second"]
    assert project.dataset.name == "first"
    viewer.add_image(ZEROS[:4], name="of another size")
    selection.choose("image", second)
    selection.set_cue(row_of(selection, first), used=True)
    assert selection.image is second, "it was chosen by hand"


def test_an_only_image_is_picture_and_cue(viewer, step, project, picture, lines):
    viewer.add_image(picture[:4], name="of another size")
    only = viewer.add_image(picture, name="only")
    selection = selection_of(viewer)
    selection.set_cue(row_of(selection, only), used=True)
    assert selection.image is only
    assert project.dataset is not None
    viewer.add_labels(lines, name="no image")
    assert selection.image is only


def test_a_tick_stays_when_another_image_is_chosen(viewer, step, project, picture, lines):
    stack = viewer.add_image(picture, name="stack")
    cue = viewer.add_image(lines, name="lines")
    selection = selection_of(viewer)
    selection.choose("image", cue)
    selection.set_cue(row_of(selection, cue), used=True)
    for image in (stack, None, stack):
        selection.choose("image", image)
        assert ticked(selection) == ["lines"]
        assert list(project.dataset.cues) == ["boundary"]
    other = viewer.add_image(picture[:10], name="of another size")
    selection.choose("image", other)
    assert ticked(selection) == []


def test_a_tick_gives_way_to_cues_of_the_other_image(viewer, opened, crop):
    selection = opened.selection
    sample = selection.image
    mine = viewer.add_image(crop.image.copy(), name="mine")
    viewer.add_image(crop.cues["boundary"].copy(), name="my boundary")
    extra = viewer.add_image(crop.image.copy(), name="extra")
    selection.choose("image", mine)
    selection.set_cue(row_of(selection, extra), used=True)
    selection.choose("image", sample)
    assert not row_of(selection, extra).used, "it is of no sample"
