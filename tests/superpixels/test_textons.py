"""Textons: words of colour and texture, the same for the same seed, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.superpixels import texton_dictionary, textons

pytestmark = pytest.mark.compiled


def halves(colours=True):
    """Return an image whose left half is plain and whose right half has stripes."""
    rows, columns = np.mgrid[:40, :48]
    grey = np.where(columns < 24, 110, 110 + 60 * ((rows + columns) // 2 % 2)).astype(np.uint8)
    return np.stack([grey, grey // 2, 255 - grey], axis=-1) if colours else grey


@pytest.mark.parametrize("colours", [True, False])
def test_words_tell_two_textures_apart(colours):
    found = textons(halves(colours), 12)
    assert found.words.dtype == np.uint8
    assert found.shape == (40, 48)
    assert found.n_words == 12
    assert int(found.words.max()) < 12
    labels = np.where(np.arange(48) < 24, 1, 2) * np.ones((40, 1), int)
    graph = agglo.region_graph(labels, {"boundary": np.zeros((40, 48)), "textons": found})
    left, right = graph.word_counts("textons")[1:] / 960
    assert 0.5 * ((left - right) ** 2 / np.maximum(left + right, 1e-9)).sum() > 0.8


def test_the_same_seed_gives_the_same_words_and_a_dictionary_those_of_its_images():
    image = halves()
    first, again = textons(image, 9), textons(image, 9)
    assert np.array_equal(first.words, again.words)
    dictionary = texton_dictionary([image, image[:, ::-1]], 9)
    assert dictionary.shape == (9, 11)
    one = textons(image, dictionary=dictionary)
    mirrored = textons(image[:, ::-1], dictionary=dictionary)
    # words do not change when the image is mirrored, but for rounding between two centres
    assert (one.words == mirrored.words[:, ::-1]).mean() > 0.95
    assert np.array_equal(one.words, textons(image, dictionary=dictionary).words)


def test_any_type_and_channel_axis():
    image = halves()
    found = textons(image, 6)
    moved = textons(np.moveaxis(image, -1, 0).astype(np.uint16), 6, channel_axis=0)
    assert np.array_equal(found.words, moved.words)
    two = textons(image[..., :2].astype(np.float32), 6, channel_axis=-1)  # no colours
    assert two.shape == (40, 48)


def test_progress_and_cancel():
    states = []
    textons(halves(), 6, progress=states.append)
    assert states[-1].fraction == 1

    def cancel(state):
        raise agglo.Cancelled("stop")

    with pytest.raises(agglo.Cancelled):
        textons(halves(), 6, progress=cancel)


def test_bad_images_are_refused_with_a_way_out():
    with refuses("image"):
        textons(np.zeros((4, 30, 30)))
    with refuses("image"):
        textons(np.full((30, 30), 7))
    broken = halves(False).astype(float)
    broken[3, 4] = np.inf
    with refuses("image"):
        textons(broken)
    with refuses("n_words"):
        textons(halves(), 300)
    with refuses("n_words"):
        textons(np.arange(20.0).reshape(4, 5), 30)
    grey = texton_dictionary([halves(False)], 6)
    with refuses("dictionary"):
        textons(halves(), dictionary=grey)
    with refuses("dictionary"):
        textons(halves(False), dictionary=grey * np.nan)
    with refuses("images"):
        texton_dictionary([halves(), halves(False)], 6)
    with refuses("images"):
        texton_dictionary([])
