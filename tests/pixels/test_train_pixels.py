"""Training: strokes and gold in, probabilities out; and refusals of what cannot be learned from."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.strokes import cells, strokes
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.errors import Cancelled, DataWarning, SetOption, alternatives
from napari_agglo.pixels import FilterBank, LiveTraining, _train_pixels, check_classes
from napari_agglo.pixels._pixel_image import PixelImage
from napari_agglo.pixels._predict_classes import threads
from napari_agglo.pixels._train_pixels import _runs, features_at, gold_classes
from napari_agglo.volumes import Volume

pytestmark = pytest.mark.compiled
QUICK = {"trees": 8, "scales": (1.0, 2.0)}


@pytest.fixture
def flat():
    return cells((40, 48))


@pytest.fixture
def deep():
    return cells((24, 32, 30))


def share_right(probability, wall):
    """Return the balanced share of pixels on the right side of one half."""
    return ((probability[wall] > 0.5).mean() + (probability[~wall] < 0.5).mean()) / 2


@pytest.mark.parametrize("shape", [(40, 48), (24, 32, 30)])
def test_a_few_strokes_find_the_walls(shape):
    image, _, wall = cells(shape)
    classifier = agglo.train_pixels(image, strokes(wall), **QUICK)
    unseen, _, elsewhere = cells(shape, seed=1)
    probability = classifier.predict(unseen)["boundary"]
    assert probability.dtype == np.float32
    assert share_right(probability, elsewhere) > 0.95
    assert share_right(classifier.predict(255 - unseen)["boundary"], elsewhere) < 0.7, (
        "test invalid"
    )
    assert classifier.bank.axes == len(shape)
    assert classifier.record["examples"].keys() == {"boundary", "cytoplasm"}


def test_walls_are_learned_from_gold_too(deep):
    image, gold, _ = deep
    classifier = agglo.train_pixels([image, image], gold=[gold, gold], examples=500, **QUICK)
    assert classifier.names == ("boundary", "interior")
    assert classifier.record["examples"] == {"boundary": 500, "interior": 500}
    assert classifier.record["volumes"] == 2
    border = gold_classes(gold, False)
    probability = classifier.predict(image)["boundary"]
    assert probability[border == 1].mean() > probability[border == 2].mean() + 0.4


def test_all_of_the_boundary_of_gold_is_learned_from_but_strokes_are_limited(flat, monkeypatch):
    image, gold, wall = flat
    monkeypatch.setattr(_train_pixels, "_MOST", 60)
    borders = int((gold_classes(gold[None], True) == 1).sum())
    assert 60 < borders < gold.size / 2, "test invalid"
    from_gold = agglo.train_pixels(image, gold=gold, **QUICK)
    assert from_gold.record["examples"] == {"boundary": borders, "interior": borders}
    fewer = agglo.train_pixels(image, gold=gold, examples=70, **QUICK)
    assert fewer.record["examples"] == {"boundary": 70, "interior": 70}
    labels = strokes(wall, every=1)
    from_strokes = agglo.train_pixels(image, labels, **QUICK)
    assert from_strokes.record["examples"] == {"boundary": 60, "cytoplasm": 60}
    all_of_them = agglo.train_pixels(image, labels, examples=labels.size, **QUICK)
    assert sum(all_of_them.record["examples"].values()) == (labels > 0).sum()
    monkeypatch.setattr(_train_pixels, "available_memory", lambda: 1000)
    with refuses("examples", SetOption("examples", 60)):
        agglo.train_pixels(image, gold=gold, **QUICK)


def test_three_classes_sum_to_one_and_each_is_found(flat):
    image, _, wall = flat
    image = image.copy()
    image[20:30, 10:30] = 255  # an organelle
    kinds = np.where(wall, 1, 2)
    kinds[20:30, 10:30] = 3
    labels = np.where(np.arange(image.size).reshape(image.shape) % 4 == 0, kinds, 0)
    classifier = agglo.train_pixels(image, labels, **QUICK)
    assert classifier.names == ("boundary", "cytoplasm", "mitochondria")
    cues = classifier.predict(image)
    both = np.stack(list(cues.values()))
    np.testing.assert_allclose(both.sum(axis=0), 1, atol=1e-5)
    assert (both.argmax(axis=0) + 1 == kinds).mean() > 0.9


def test_the_same_input_gives_the_same_classifier(flat):
    image, _, wall = flat
    one, two, other = (
        agglo.train_pixels(image, strokes(wall), seed=seed, **QUICK) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.forest.nodes, two.forest.nodes)
    assert not np.array_equal(one.forest.nodes, other.forest.nodes)


def test_features_of_scattered_pixels_are_those_of_the_whole(deep):
    image, _, _ = deep
    source, bank = PixelImage.of(image), FilterBank(scales=(1.0,))
    some = np.random.default_rng(0).permutation(image.size)[:200]
    with threads() as pool:
        everything, values = features_at(source, bank, np.arange(image.size), pool)
        few, theirs = features_at(source, bank, some, pool)
    np.testing.assert_array_equal(few, everything[some])
    np.testing.assert_array_equal(values[:, 0], image.reshape(-1))
    np.testing.assert_array_equal(theirs, values[some])


def test_runs_of_lines():
    lines = np.array([0, 0, 1, 2, 9, 10, 10])
    assert list(_runs(lines)) == [(0, 3, 0, 4), (9, 11, 4, 7)]
    assert list(_runs(np.arange(100))) == [(0, 64, 0, 64), (64, 100, 64, 100)]


def test_thick_planes_are_filtered_one_by_one(deep):
    image, _, wall = deep
    thin = agglo.train_pixels(Volume(image, (2.0, 1.0, 1.0)), strokes(wall), **QUICK)
    thick = agglo.train_pixels(Volume(image, (5.0, 1.0, 1.0)), strokes(wall), **QUICK)
    assert (thin.bank.axes, thick.bank.axes) == (3, 2)
    plane = thick.predict(image[7])["boundary"]
    np.testing.assert_array_equal(plane, thick.predict(image)["boundary"][7])
    with refuses("image", "per_plane=True"):
        thin.predict(image[7])


@pytest.mark.parametrize("axis", [0, -1])
def test_colours_may_come_first_or_last(flat, axis):
    image, _, wall = flat
    colours = np.stack([image, 255 - image, image // 2], axis=axis)
    classifier = agglo.train_pixels(colours, strokes(wall), channel_axis=axis, **QUICK)
    assert classifier.bank.channels == 3
    assert share_right(classifier.predict(colours, channel_axis=axis)["boundary"], wall) > 0.9
    with refuses("image"):
        classifier.predict(image)


def test_colours_where_grey_is_meant(flat):
    image, _, wall = flat
    classifier = agglo.train_pixels(image, strokes(wall), **QUICK)
    with refuses("image", "convert it to grey"):
        classifier.predict(np.stack([image] * 3, axis=-1))
    with refuses("images", SetOption("channel_axis", 0, when="if these are channels")):
        agglo.train_pixels(np.stack([image] * 5), strokes(wall))
    with refuses("images[1]"):
        agglo.train_pixels([image, np.stack([image] * 3, axis=-1)], [strokes(wall)] * 2)


@pytest.mark.parametrize(("shape", "axis"), [((3, 40, 48), 0), ((40, 48, 3), 2)])
def test_an_axis_that_may_be_of_channels_is_named(flat, shape, axis):
    image, _, wall = flat
    coloured = np.moveaxis(np.stack([image] * 3).astype(np.float32), 0, axis)
    wanted = SetOption("channel_axis", axis, when="if these are channels")
    labels = np.moveaxis(np.stack([strokes(wall)] * 3), 0, axis)
    with pytest.warns(DataWarning) as caught:
        taken_for_space = agglo.train_pixels(coloured, labels, trees=2)
    assert alternatives(caught[0].message.remedy)[0] == wanted
    assert taken_for_space.bank.channels == 1
    with pytest.warns(DataWarning) as caught:
        LiveTraining(coloured)
    assert alternatives(caught[0].message.remedy)[0] == wanted
    if axis == 0:  # the other is refused as a picture in colours
        with pytest.warns(DataWarning) as caught:
            agglo.train_pixels(image, strokes(wall), trees=2).predict(coloured)
        assert alternatives(caught[0].message.remedy)[0] == wanted
    agglo.train_pixels(coloured, strokes(wall), channel_axis=axis, trees=2)  # no warning


def test_labels_that_nothing_can_be_learned_from(flat):
    image, gold, wall = flat
    good = strokes(wall)
    for bad, remedy in [
        (np.zeros_like(good), "paint a few strokes of each class: boundary, cytoplasm"),
        (np.where(good == 1, 1, 0), "paint a stroke of cytoplasm"),
        (np.where(good == 2, 3, good), "paint a stroke of cytoplasm"),  # the class vanished
    ]:
        with refuses("labels", remedy):
            agglo.train_pixels(image, bad)
    with refuses("labels", "erase that label"):
        agglo.train_pixels(image, np.where(good == 2, 3, good), classes=["a", "b"])
    with refuses("labels"):
        agglo.train_pixels(image, good[:-1].astype(float))
    with refuses("images"):
        agglo.train_pixels(image[:-1], good)
    with refuses("labels"):
        agglo.train_pixels(image)
    with refuses("labels"):
        agglo.train_pixels(image, good, gold=gold)
    with refuses("labels"):
        agglo.train_pixels([image, image], good)
    with refuses("gold"):
        agglo.train_pixels(image, gold=np.ones(image.shape, int))


def test_images_that_nothing_can_be_learned_from(flat):
    image, _, wall = flat
    labels = strokes(wall)
    with refuses("images", "use the image that shows the objects"):
        agglo.train_pixels(np.full(image.shape, 7.0), labels)
    broken = image.astype(float)
    broken[0, 3] = np.nan
    with refuses("image", "replace them by numbers"):
        agglo.train_pixels(broken, labels)
    classifier = agglo.train_pixels(image, labels, **QUICK)
    with refuses("image", "replace them by numbers", facts=("(0, 3)",)):
        classifier.predict(broken)
    with refuses("images"):
        agglo.train_pixels(np.zeros((2, 3, 4, 5)), np.zeros((2, 3, 4, 5), int))
    with refuses("images"):
        agglo.train_pixels([], [])
    with refuses("images"):
        agglo.train_pixels(image > 100, labels)


def test_strokes_in_an_empty_plane(deep):
    """The planes around it leave traces in the features, so that these alone would teach."""
    image, _, wall = deep
    image = image.copy()
    image[5] = 0
    labels = np.zeros(image.shape, np.uint8)
    labels[5, 3, :20], labels[5, 9, :20] = 1, 2
    with refuses("images", "paint where it does"):
        agglo.train_pixels(image, labels, **QUICK)
    with refuses("images", "paint where it does"):
        LiveTraining(image).train(labels, check_classes(None, 2))
    labels[9][wall[9]] = 1  # one class in the tissue too, the other only in the empty plane
    with pytest.warns(DataWarning) as caught:
        agglo.train_pixels(image, labels, **QUICK)
    (one,) = caught
    assert all(words in one.message.problem for words in ("cytoplasm", "0 everywhere"))
    assert str(one.message.remedy) == "paint where the image shows the objects"
    image[5, 20, 20] = 9
    agglo.train_pixels(image, labels, **QUICK)  # no warning: black may be how that class looks


@pytest.mark.parametrize(
    ("option", "value"),
    [("classes", ["one"]), ("classes", ["a", "a"]), ("classes", ["a b", "c"]),
     ("classes", {"a": "red", "b": "#000000"}), ("scales", ()), ("scales", (0,)),
     ("scales", (1, 1)), ("trees", 0), ("depth", 1.5), ("examples", 0), ("seed", -1),
     ("per_plane", False), ("spacing", (1.0,)), ("channel_axis", 5), ("progress", True)],
)  # fmt: skip
def test_options_are_checked(flat, option, value):
    image, _, wall = flat
    with refuses(option):
        agglo.train_pixels(image, strokes(wall), **{option: value})


def test_a_gold_with_lines_of_zero(flat):
    _, gold, wall = flat
    lined = np.where(wall, 0, gold)[None]
    classes = gold_classes(lined, True)
    inner = (slice(None), slice(0, -1), slice(0, -1))
    assert (classes[inner][wall[None][inner]] == 1).mean() > 0.95
    assert (classes == 2).any()
    assert not (classes[~wall[None]] == 1).any()


def test_cancel_and_progress(deep):
    image, _, wall = deep
    states = []
    classifier = agglo.train_pixels(image, strokes(wall), progress=states.append, **QUICK)
    assert {"filtering", "growing trees"} <= {state.stage for state in states}
    assert [s.whole for s in states] == sorted(s.whole for s in states)
    assert states[-1].whole == 1

    def stop(state):
        raise Cancelled

    for work in (
        lambda: agglo.train_pixels(image, strokes(wall), progress=stop),
        lambda: classifier.predict(image, progress=stop),
    ):
        with pytest.raises(Cancelled):
            work()


@pytest.mark.parametrize("shape", [(40, 48), (12, 32, 30)])
def test_live_training_by_other_features(shape):
    image, _, wall = cells(shape)
    labels, classes = strokes(wall), check_classes(None, 2)
    live = LiveTraining(image)
    before = live.train(labels, classes)
    other = live.with_bank(FilterBank((1.0, 3.0), 2, 1, True))
    classifier = other.train(labels, classes)
    want = agglo.train_pixels(image, labels, scales=(1, 3), structure=True, per_plane=True)
    assert classifier.bank == want.bank != before.bank
    part = other.predict(classifier, (0,) * len(shape), shape)
    np.testing.assert_array_equal(part, np.stack(list(want.predict(image).values())))
    assert live.train(labels, classes).bank == before.bank, "the former one is as it was"
    with refuses("image", "convert it to grey"):
        LiveTraining(np.stack([image] * 3, -1), channel_axis=-1).with_bank(other.bank)
    if shape == (40, 48):
        with refuses("image", "per_plane"):
            live.with_bank(FilterBank())


@pytest.mark.parametrize("shape", [(40, 48), (12, 32, 30)])
def test_live_training_is_the_training(shape):
    image, _, wall = cells(shape)
    classes = check_classes(None, 2)
    live = LiveTraining(image)
    labels = strokes(wall)
    first = np.where(np.cumsum(labels > 0).reshape(shape) < 60, labels, 0)
    live.train(first, classes)
    classifier = live.train(labels, classes)  # with features kept from the first strokes
    again = agglo.train_pixels(image, labels)
    np.testing.assert_array_equal(classifier.forest.nodes, again.forest.nodes)
    whole = np.stack(list(classifier.predict(image).values()))
    start, stop = [n // 3 for n in shape], [2 * n // 3 for n in shape]
    index = tuple(slice(a, b) for a, b in zip(start, stop, strict=True))
    for _ in range(2):  # with features of the view kept the second time
        part = live.predict(classifier, start, stop)
        np.testing.assert_array_equal(part, whole[(slice(None), *index)])
    with refuses("labels", "paint a stroke of boundary"):
        live.train(np.where(labels == 2, 2, 0), classes)
