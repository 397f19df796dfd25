"""Prediction block by block is prediction of the whole; files give back what they were given."""

from __future__ import annotations

import json
import re

import dask.array
import numpy as np
import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from oracles.strokes import cells, strokes
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.cli import main
from napari_agglo.errors import DataWarning, InvalidInput
from napari_agglo.pixels import PixelClass, _pixel_image
from napari_agglo.pixels._predict_classes import class_probabilities

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def classifiers():
    """Return a classifier of planes and one of volumes."""
    result = {}
    for shape in ((40, 48), (24, 32, 30)):
        image, _, wall = cells(shape)
        result[len(shape)] = agglo.train_pixels(
            image, strokes(wall), trees=6, scales=(0.7, 2.0), structure=len(shape) == 3
        )
    return result


@examples(24, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.integers(1, 14), min_size=2, max_size=3),
    sides=st.tuples(*[st.integers(1, 9)] * 3),
    spacing=st.sampled_from([(1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (1.0, 2.0, 0.5)]),
    seed=st.integers(0, 9),
)
def test_blocks_give_the_values_of_the_whole(classifiers, monkeypatch, shape, sides, spacing, seed):
    axes = 3 if len(shape) == 3 and shape[0] > 1 else 2
    image = np.random.default_rng(seed).integers(0, 255, shape, dtype=np.uint16)
    if image.size < 2:
        return
    classifier, spacing = classifiers[axes], spacing[-len(shape) :]
    whole = classifier.predict(image, spacing=spacing)
    with monkeypatch.context() as patch:
        patch.setattr(_pixel_image, "_BLOCKS", {2: sides, 3: sides})
        parts = classifier.predict(image, spacing=spacing)
        lazy = dask.array.from_array(image, chunks=5)
        from_disk = classifier.predict(lazy, spacing=spacing)
    for name, probability in whole.items():
        np.testing.assert_array_equal(parts[name], probability)
        np.testing.assert_array_equal(from_disk[name], probability)
        assert ((probability >= 0) & (probability <= 1)).all()


def test_the_kernel_is_the_mean_of_the_trees(classifiers):
    rows = np.random.default_rng(0).normal(100, 50, (150, 20)).astype(np.float32)
    forest = classifiers[2].forest
    want = forest.predict(rows[:, : classifiers[2].bank.width].copy())
    rows = rows[:, : classifiers[2].bank.width].copy()
    got = class_probabilities(rows, forest, 2)
    np.testing.assert_allclose(got, [want, 1 - want], atol=1e-6)
    three = class_probabilities(rows, forest, 3)  # two of the six trees for each class
    parts = []
    for k in range(3):
        stop = forest.roots[2 * k + 2] if k < 2 else len(forest.nodes)
        nodes = forest.nodes[forest.roots[2 * k] : stop].copy()
        nodes[:, 2:] -= forest.roots[2 * k]
        roots = forest.roots[2 * k : 2 * k + 2] - forest.roots[2 * k]
        values = forest.values[forest.roots[2 * k] : stop]
        parts.append(type(forest)(roots, nodes, values).predict(rows))
    parts = np.array(parts)
    total = parts.sum(axis=0)
    want = np.where(total > 0, parts / np.where(total > 0, total, 1), 1 / 3)
    np.testing.assert_allclose(three, want, atol=1e-6)


def test_a_file_gives_back_the_classifier(classifiers, tmp_path):
    image, _, _ = cells((24, 32, 30))
    one = classifiers[3]
    path = one.save(tmp_path / "c.npz")
    again = agglo.load_pixel_classifier(path)
    assert (again.classes, again.bank, again.record) == (one.classes, one.bank, one.record)
    for name, probability in one.predict(image).items():
        np.testing.assert_array_equal(again.predict(image)[name], probability)


def rewritten(path, target, **changes):
    """Copy a file with some of its arrays, or its header, replaced."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].tobytes())
    header.update(changes.pop("header", {}))
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez(target, **{**arrays, **changes})
    return target


@pytest.mark.parametrize(
    "header",
    [{"format": "napari-agglo policy"}, {"schema": 99}, {"classes": [["a", "#000000"]]},
     {"classes": [["a", "red"], ["b", "#000000"]]}, {"classes": 3}, {"axes": 4}, {"scales": []},
     {"scales": [0.0]}, {"scales": "12"}, {"channels": -1}, {"record": None},
     {"channels": 10**9}, {"scales": [1.0]}],
)  # fmt: skip
def test_files_that_are_not_classifiers(classifiers, tmp_path, header):
    path = classifiers[3].save(tmp_path / "c.npz")
    with refuses("path"):
        agglo.load_pixel_classifier(rewritten(path, tmp_path / "d.npz", header=header))


def test_damaged_files(classifiers, tmp_path):
    path = classifiers[3].save(tmp_path / "c.npz")
    with refuses("path", "correct the path"):
        agglo.load_pixel_classifier(tmp_path / "none.npz")
    nodes = classifiers[3].forest.nodes.copy()
    nodes[0, 2] = 10**6
    with refuses("path"):
        agglo.load_pixel_classifier(rewritten(path, tmp_path / "d.npz", nodes=nodes))
    data = path.read_bytes()
    for n in (0, 10, len(data) // 2, len(data) - 5):
        path.write_bytes(data[:n])
        with pytest.raises(InvalidInput):
            agglo.load_pixel_classifier(path)
    with refuses("path", "choose another folder"):
        classifiers[3].save("/proc/c.npz")


def test_other_values_than_those_of_the_training(classifiers):
    image, _, _ = cells((40, 48), seed=2)
    with pytest.warns(DataWarning, match="scale the image"):
        classifiers[2].predict(image / 255)
    with pytest.warns(DataWarning, match="scale the image"):
        classifiers[2].predict(image.astype(np.uint16) * 257)
    with pytest.warns(DataWarning, match="scale the image"):
        classifiers[2].predict(np.full_like(image, image[0, 0]))  # as of an empty plane


def test_class_names_and_colours(classifiers):
    assert classifiers[2].classes[0] == PixelClass("boundary", "#e69f00")
    image, _, wall = cells((16, 24))
    given = {"wall": "#112233", "cell": "#445566"}
    classifier = agglo.train_pixels(image, strokes(wall), classes=given, trees=2)
    assert {one.name: one.colour for one in classifier.classes} == given
    assert list(classifier.predict(image)) == ["wall", "cell"]


class OnePlane:
    """A volume that is larger than memory; only a plane of it, to compare its values, is read."""

    shape, dtype, ndim = (40, 200, 200), np.dtype(np.uint8), 3

    def __getitem__(self, index):
        part = np.broadcast_to(np.arange(200, dtype=np.uint8), self.shape)[index]
        assert part.size <= 200 * 200, "the image was read"
        return part


def test_probabilities_larger_than_memory_are_refused_with_other_ways(
    classifiers, monkeypatch, capsys
):
    """The commands that the remedy names have the options that it names."""
    monkeypatch.setattr("napari_agglo.volumes._volume.available_memory", lambda: 10**6)
    with refuses("image") as refused:
        classifiers[3].predict(OnePlane())
    ways = [way.text for way in refused.value.remedy.remedies]
    for command in ("pixels predict", "blocks plan"):
        (way,) = [way for way in ways if f"napari-agglo {command} " in way]
        assert main([*command.split(), "--help"]) == 0
        options = [word for word in way.split() if word.startswith("-")]
        assert options
        assert set(options) <= set(re.findall(r"(?<!\S)--?[a-z]+", capsys.readouterr().out))
