"""Role of a layer, by its name or by its metadata."""

from __future__ import annotations

import numpy as np
import pytest
from napari.layers import Image, Labels
from refusals import refuses

from napari_agglo.errors import Advice
from napari_agglo.widgets._napari import role
from napari_agglo.widgets.data import _guess_roles
from napari_agglo.widgets.data._layers import (
    as_labels,
    channel_axis,
    channel_of,
    is_turned,
    placement_of,
)

MAP = np.zeros((4, 5), np.float32)
IDS = np.ones((4, 5), int)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gold", "gold"), ("train_gt", "gold"), ("GT", "gold"), ("Ground truth", "gold"),
        ("manual annotation", "gold"), ("superpixels", "superpixels"), ("ws", "superpixels"),
        ("supervoxels_3", "superpixels"), ("watershed fragments", "superpixels"),
        ("lights", None), ("news", None), ("Labels", None),
    ],
)  # fmt: skip
def test_labels_by_name(name, kind):
    layer = Labels(IDS, name=name)
    assert _guess_roles.has_role(layer, "gold") == (kind == "gold")
    assert _guess_roles.has_role(layer, "superpixels") == (kind == "superpixels")
    assert not _guess_roles.has_role(Image(MAP, name=name), "gold")


@pytest.mark.parametrize(
    ("name", "evidence"),
    [("boundary", True), ("Membrane probabilities", True), ("x_prob", True), ("ucm", True),
     ("edge", True), ("knowledge", False), ("raw", False), ("image", False)],
)  # fmt: skip
def test_cues_by_name(name, evidence):
    assert _guess_roles.has_role(Image(MAP, name=name), "cue") == evidence


def test_metadata_of_a_layer_count_more_than_its_name():
    assert not _guess_roles.has_role(Image(MAP, name="boundary", metadata=role("image")), "cue")
    cue = Image(MAP, name="anything", metadata=role("cue", "mito"))
    assert _guess_roles.has_role(cue, "cue")
    assert _guess_roles.boundary_rank(cue) > 0
    assert _guess_roles.cue_name(cue) == "mito"


def test_the_picture_is_what_is_no_cue():
    boundary, raw = Image(MAP, name="boundary"), Image(MAP, name="raw")
    assert _guess_roles.guess_image([raw, boundary]) is raw
    assert _guess_roles.guess_image([boundary]) is None
    message = Image(MAP, name="x", metadata=role("image"))
    assert _guess_roles.guess_image([message, raw]) is message


def test_channels():
    layer = Image(np.arange(40).reshape(2, 4, 5), scale=(9, 3, 2), translate=(7, 1, 0))
    assert channel_axis(layer, (4, 5)) == 0
    assert channel_axis(layer, (2, 4)) == 2
    assert channel_axis(layer, (2, 4, 5)) is None
    np.testing.assert_array_equal(channel_of(layer, 0, 1), layer.data[1])
    place = placement_of(layer, 0)
    assert (place.scale, place.translate) == ((3, 2), (1, 0))


def test_turned():
    assert not is_turned(Image(MAP, scale=(2, 3), translate=(1, 1)))
    assert is_turned(Image(MAP, rotate=20))
    assert is_turned(Image(MAP, shear=[0.2]))
    assert is_turned(Image(MAP, affine=[[1, 0, 5], [0, 1, 0], [0, 0, 1]]))


def test_whole_numbers_become_labels():
    assert as_labels(np.array([[0.0, 7.0]]), "a").dtype == np.uint32
    assert as_labels(np.array([[0, 2**40]]), "a").tolist() == [[0, 2**40]]
    for value, named in ((0.5, "“a”"), (np.nan, "NaN"), (-1.0, "-1")):
        with refuses("a", Advice) as caught:
            as_labels(np.array([value]), "a")
        assert named in caught.value.problem
