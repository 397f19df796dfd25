"""OME-Zarr: pyramids, labels inside an image, versions, and metadata that cannot be right."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import warnings
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import zarr
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from refusals import refuses

from napari_agglo.errors import Cancelled, SetOption
from napari_agglo.volumes import (
    create_levels,
    downsample_labels,
    fill_level,
    open_volume,
    plan_image,
    read_image,
    shard_boxes,
    warn_of_places,
    write_labels,
)

BLOCKS = np.repeat(np.repeat(np.arange(1, 13).reshape(1, 3, 4), 8, axis=1), 8, axis=2)


def commonest(labels, factors, shape):
    """Count each window, the slow way, of equals the one that comes first."""
    out = np.empty(shape, labels.dtype)
    for index in product(*map(range, shape)):
        window = labels[
            tuple(slice(i * f, (i + 1) * f) for i, f in zip(index, factors, strict=True))
        ]
        out[index] = Counter(window.reshape(-1).tolist()).most_common(1)[0][0]
    return out


@examples(60)
@given(
    npst.arrays(
        st.sampled_from(["u1", "i2", "u4", "i8", "u8"]),
        npst.array_shapes(min_dims=1, max_dims=4, max_side=6),
        elements=st.integers(0, 3),
    ),
    st.data(),
)
def test_the_commonest_id_of_each_window(labels, data):
    factors = tuple(
        data.draw(st.integers(1, 3)) if axis >= labels.ndim - 3 else 1
        for axis in range(labels.ndim)
    )
    shape = tuple(-(-n // f) for n, f in zip(labels.shape, factors, strict=True))
    cut = tuple(data.draw(st.integers(1, n)) for n in shape)
    small = downsample_labels(labels, factors)
    assert small.dtype == labels.dtype
    np.testing.assert_array_equal(small, commonest(labels, factors, shape))
    inner = downsample_labels(labels, factors, shape=cut)
    np.testing.assert_array_equal(inner, small[tuple(map(slice, cut))])
    first = downsample_labels(labels, factors, method="nearest")
    np.testing.assert_array_equal(first, labels[tuple(slice(None, None, f) for f in factors)])


def test_every_window_of_two_pixels_an_axis_with_few_ids():
    ids = np.array(list(product(range(3), repeat=8)), np.uint32).reshape(-1, 2, 2, 2)
    labels = np.concatenate(list(ids), axis=2)
    expected = [Counter(one.reshape(-1).tolist()).most_common(1)[0][0] for one in ids]
    assert downsample_labels(labels, 2).reshape(-1).tolist() == expected


def test_large_ids_keep_all_their_digits():
    ids = np.array([2**64 - 1, 2**64 - 2, 2**64 - 2], np.uint64)
    assert downsample_labels(ids, 3).tolist() == [2**64 - 2]


def test_refusals_of_downsampling():
    with refuses("factors", SetOption("factors", 2)):
        downsample_labels(BLOCKS, (2, 2))
    with refuses("factors"):
        downsample_labels(BLOCKS[None], (2, 1, 1, 1))
    with refuses("method", SetOption("method", "mode")):
        downsample_labels(BLOCKS, 2, method="mean")
    with refuses("shape", SetOption("shape", (1, 12, 16))):
        downsample_labels(BLOCKS, 2, shape=(1, 13, 16))


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("method", ["mode", "nearest"])
def test_a_pyramid_is_written_and_every_level_read_back(tmp_path, version, method):
    labels = np.random.default_rng(0).integers(0, 9, (5, 40, 41)).astype(np.uint16)
    path = write_labels(
        tmp_path / "a.ome.zarr", labels, spacing=(40, 4, 4), unit="nm", version=version, levels=4,
        downsample=method, chunks=(2, 16, 16),
    )  # fmt: skip
    group = zarr.open_group(str(path), mode="r")
    assert group.metadata.zarr_format == (2 if version == "0.4" else 3)
    image = read_image(group.attrs.asdict(), path)
    assert (image.version, image.method, len(image.levels)) == (version, method, 4)
    expected = labels
    for k, level in enumerate(image.levels):
        volume = open_volume(f"{path}:{k}")
        np.testing.assert_array_equal(volume.load(), expected)
        halved = k < 3  # then the planes are as thick as wide, and are halved too
        assert volume.spacing == pytest.approx((0.04, 0.004 * 2**k, 0.004 * 2**k))
        shift = (2**k - 1) * 2.0 if method == "mode" else 0.0
        assert level.translation == (0.0, shift, shift)
        expected = downsample_labels(expected, (1, 2, 2) if halved else 2, method=method)
    np.testing.assert_array_equal(open_volume(path).load(), labels)
    assert write_labels(path, labels + np.uint16(1), version=version) == path, "may be replaced"


def test_levels_end_when_they_are_small():
    image = plan_image("a", (1, 4000, 100), (1.0, 1.0, 1.0))
    assert image.shapes == ((1, 4000, 100), (1, 2000, 50))
    assert plan_image("a", (64, 64, 64)).shapes == ((64, 64, 64),)
    assert len(plan_image("a", (4, 4), levels=9).shapes) == 3, "1 x 1 cannot be halved"
    assert plan_image("a", (0, 4)).shapes == ((0, 4),)


def test_shards_are_written_whole_in_any_order(tmp_path):
    labels = np.random.default_rng(0).integers(0, 9, (20, 33, 34)).astype(np.uint32)
    whole = write_labels(
        tmp_path / "whole.zarr", labels, levels=3, chunks=(4, 4, 4), shards=(8, 16, 16)
    )
    image = plan_image("parts", labels.shape, levels=3)
    arrays = create_levels(
        tmp_path / "parts.zarr", image, labels.dtype, chunks=(4, 4, 4), shards=(8, 16, 16)
    )
    assert arrays[0].shards == (8, 16, 16)
    for k, array in enumerate(arrays):
        boxes = list(shard_boxes(array))
        assert sum(np.prod([s.stop - s.start for s in box]) for box in boxes) == array.size

        def work(some, k=k, array=array):
            for box in some:
                if k:
                    fill_level(arrays[k - 1], array, image.factors[k], box)
                else:
                    array[box] = labels[box]

        threads = [threading.Thread(target=work, args=(boxes[n::3],)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for k in range(3):
        parts = open_volume(f"{tmp_path / 'parts.zarr'}:{k}")
        assert parts.data.chunks[0] in (8, 12), "readers take whole shards"
        np.testing.assert_array_equal(parts.load(), open_volume(f"{whole}:{k}").load())


def test_options_that_do_not_go_together(tmp_path):
    with refuses("shards", SetOption("version", "0.5")):
        write_labels(tmp_path / "a.zarr", BLOCKS, version="0.4", shards=(1, 8, 8))
    with refuses("version", SetOption("version", "0.5")):
        write_labels(tmp_path / "a.zarr", BLOCKS, version="0.6")
    with refuses("chunks", SetOption("chunks", (64, 64, 64))):
        write_labels(tmp_path / "a.zarr", BLOCKS, chunks=(8, 8))
    with refuses("path", "end it in .ome.zarr"):
        write_labels(tmp_path / "a.tif", BLOCKS, levels=2)
    with refuses("downsample", SetOption("downsample", "mode")):
        write_labels(tmp_path / "a.zarr", BLOCKS, downsample="mean")
    assert os.listdir(tmp_path) == []


def test_cancel_leaves_nothing(tmp_path):
    def stop(progress):
        raise Cancelled

    with pytest.raises(Cancelled):
        write_labels(tmp_path / "a.zarr", BLOCKS, progress=stop)
    assert os.listdir(tmp_path) == []


# Labels of an image that exists -------------------------------------------------------------


def image_group(path, version="0.5", axes="tczyx", consolidated=False):
    """Make an image of two levels as other programs do: cut to whole windows."""
    shape = {"t": 1, "c": 2, "z": 1, "y": 24, "x": 33}
    kinds = {"t": "time", "c": "channel"}
    described = [{"name": a, "type": kinds.get(a, "space")} for a in axes]
    for one in described:
        if one["type"] == "space":
            one["unit"] = "nanometer"
    levels = []
    for k in range(2):
        scale = [4.0 * 2**k if a in "yx" else 40.0 if a == "z" else 1.0 for a in axes]
        transforms = [{"type": "scale", "scale": scale}]
        levels.append({"path": f"s{k}", "coordinateTransformations": transforms})
    image = {"axes": described, "datasets": levels, "name": "cells"}
    if version == "0.4":
        attributes = {"multiscales": [{**image, "version": "0.4"}]}
    else:
        attributes = {"ome": {"version": version, "multiscales": [image]}}
    form = 2 if version == "0.4" else 3
    group = zarr.create_group(str(path), zarr_format=form, attributes=attributes)
    for k in range(2):
        sizes = [shape[a] // 2**k if a in "yx" else shape[a] for a in axes]
        group.create_array(f"s{k}", shape=sizes, dtype="u1", chunks=[1] * (len(axes) - 2) + [8, 8])
    if consolidated:
        zarr.consolidate_metadata(str(path), zarr_format=form)
    return path


def files_of(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


LABELS = np.pad(BLOCKS, ((0, 0), (0, 0), (0, 1)), mode="edge").astype(np.uint32)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.filterwarnings("ignore:Consolidated metadata")  # of Zarr 3, says zarr
def test_labels_in_an_image(tmp_path, version, consolidated):
    root = image_group(tmp_path / "a.ome.zarr", version, consolidated=consolidated)
    before = files_of(root)
    for name in ("cells", "nuclei", "cells"):
        folder = write_labels(f"{root}:labels/{name}", LABELS)
        assert folder == root / "labels" / name
    after = files_of(root)
    changed = {str(p) for p in before if after[p] != before[p]}
    assert changed <= ({"zarr.json", ".zmetadata"} if consolidated else set())
    group = zarr.open_group(str(root), mode="r")
    ome = group["labels"].attrs.asdict()
    ome = ome if version == "0.4" else ome["ome"]
    assert ome["labels"] == ["cells", "nuclei"], "each once, in the order of writing"
    image = read_image(group["labels/cells"].attrs.asdict(), "cells")
    assert image.version == version
    assert image.letters == ["z", "y", "x"]
    assert [level.scale for level in image.levels] == [(40.0, 4.0, 4.0), (40.0, 8.0, 8.0)]
    volume = open_volume(f"{root}:labels/cells")
    assert volume.spacing == (0.04, 0.004, 0.004)
    np.testing.assert_array_equal(volume.load(), LABELS)
    coarse = open_volume(f"{root}:labels/cells/1").load()
    np.testing.assert_array_equal(coarse, downsample_labels(LABELS, (1, 2, 2), shape=(1, 12, 16)))
    if consolidated:
        assert group.metadata.consolidated_metadata is not None, "test invalid"
        assert group["labels/nuclei/0"].shape == LABELS.shape


@pytest.mark.parametrize(
    ("key", "argument"),
    [("labels", "path"), ("cells", "path"), ("labels/../x", "path"), ("labels/a/b", "path")],
)
def test_keys_that_are_no_labels(tmp_path, key, argument):
    root = image_group(tmp_path / "a.zarr")
    with refuses(argument, "labels/segments"):
        write_labels(f"{root}:{key}", LABELS)


def test_labels_that_do_not_fit_the_image(tmp_path):
    root = image_group(tmp_path / "a.zarr")
    before = files_of(root)
    with refuses("labels", "NAME.ome.zarr"):
        write_labels(f"{root}:labels/cells", LABELS[:, 1:])
    with refuses("spacing", SetOption("spacing", (40.0, 4.0, 4.0))):
        write_labels(f"{root}:labels/cells", LABELS, spacing=(40, 5, 5), unit="nm")
    with refuses("levels", "leave the option out"):
        write_labels(f"{root}:labels/cells", LABELS, levels=3)
    with refuses("path", "NAME.ome.zarr"):
        write_labels(f"{tmp_path / 'none.zarr'}:labels/cells", LABELS)
    plain = tmp_path / "plain.zarr"
    zarr.create_group(str(plain)).create_array("0", data=LABELS)
    with refuses("path", "NAME.ome.zarr"):
        write_labels(f"{plain}:labels/cells", LABELS)
    assert files_of(root) == before
    for spacing, unit in (((40, 4, 4), "nm"), ((0.04, 0.004, 0.004), None), ((1, 1, 1), None)):
        write_labels(f"{root}:labels/cells", LABELS, spacing=spacing, unit=unit)


def test_labels_of_others_stay(tmp_path):
    root = image_group(tmp_path / "a.zarr")
    write_labels(f"{root}:labels/cells", LABELS)
    (root / "labels" / "cells" / "notes.txt").write_text("important")
    with refuses("path", "choose another name"):
        write_labels(f"{root}:labels/cells", LABELS)
    assert (root / "labels" / "cells" / "notes.txt").read_text() == "important"


def test_two_writers_lose_no_name(tmp_path):
    root = image_group(tmp_path / "a.zarr")
    names = [f"n{k}" for k in range(8)]
    threads = [
        threading.Thread(target=write_labels, args=(f"{root}:labels/{name}", LABELS))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    listed = json.loads((root / "labels" / "zarr.json").read_text())["attributes"]["ome"]["labels"]
    assert sorted(listed) == names


# Metadata of others -------------------------------------------------------------------------


def with_metadata(path: Path, change):
    write_labels(path, BLOCKS, spacing=(3, 2, 1))
    described = json.loads((path / "zarr.json").read_text())
    change(described["attributes"]["ome"])
    (path / "zarr.json").write_text(json.dumps(described))
    return path


def as_0_6(transforms, axes="zyx"):
    def change(ome):
        ome["version"] = "0.6"
        image = ome["multiscales"][0]
        del image["axes"]
        named = [{"name": a, "type": "space", "unit": "nanometer"} for a in axes]
        image["coordinateSystems"] = [
            {"name": "other", "axes": [{"name": "i"}] * 3}, {"name": "physical", "axes": named}
        ]  # fmt: skip
        image["datasets"][0]["coordinateTransformations"] = transforms
        image["coordinateTransformations"] = [
            {"type": "affine", "input": "physical", "output": "other", "affine": []}
        ]

    return change


def leads(**transform):
    return [{"input": "0", "output": "physical", **transform}]


def placed(path, offset):
    """Write labels whose first voxel is at an offset, in voxels; None for no translation."""

    def change(ome):
        (level,) = ome["multiscales"][0]["datasets"]
        transforms = level["coordinateTransformations"]
        if offset is not None:
            shift = [a * b for a, b in zip(offset, (3, 2, 1), strict=True)]
            transforms.append({"type": "translation", "translation": shift})

    return open_volume(with_metadata(path, change))


@given(st.tuples(*[st.integers(-500, 500)] * 3), st.tuples(*[st.integers(-2, 2)] * 3))
@examples(20, deadline=None)
def test_crops_from_other_places_are_noticed(offset, shift):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        moved = tuple(a + b for a, b in zip(offset, shift, strict=True))
        image, gold = placed(folder / "a.zarr", offset), placed(folder / "b.zarr", moved)
        assert image.origin == pytest.approx(offset)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warn_of_places({"image": image, "cue": BLOCKS, "gold": gold})
            warn_of_places({"image": image, "gold": placed(folder / "c.zarr", None)})
        assert len(told) == (shift != (0, 0, 0))
        assert all(one.message.argument == "gold" for one in told)


@pytest.mark.parametrize(
    "transforms",
    [
        leads(type="scale", scale=[40, 4, 4]),
        leads(
            type="sequence",
            transformations=[
                {"type": "scale", "scale": [20, 2, 2]},
                {"type": "translation", "translation": [1, 2, 3]},
                {"type": "identity"},
                {"type": "scale", "scale": [2, 2, 2]},
            ],
        ),
    ],
)  # fmt: skip
def test_0_6_is_read(tmp_path, transforms):
    path = with_metadata(tmp_path / "a.zarr", as_0_6(transforms))
    volume = open_volume(path)
    assert (volume.spacing, volume.unit) == ((0.04, 0.004, 0.004), "micrometer")
    np.testing.assert_array_equal(volume.load(), BLOCKS)
    image = read_image(json.loads((path / "zarr.json").read_text())["attributes"], path)
    assert image.version == "0.6"
    assert image.levels[0].translation in ((0.0, 0.0, 0.0), (2.0, 4.0, 6.0))


def setting(*path, to):
    def change(ome):
        for key in path[:-1]:
            ome = ome[key]
        ome[path[-1]] = to

    return change


LEVEL = ("multiscales", 0, "datasets", 0)


@pytest.mark.parametrize(
    "change",
    [
        as_0_6(leads(type="affine", affine=[[1, 0], [0, 1]])),
        as_0_6(leads(type="rotation", rotation=[])),
        as_0_6(leads(type="sequence")),
        as_0_6(leads(type="scale", scale=[4, 4])),
        setting("version", to="0.9"),
        setting("multiscales", to={"a": 1}),
        setting("multiscales", 0, "datasets", to=[]),
        setting("multiscales", 0, "axes", to="zyx"),
        setting("multiscales", 0, "axes", 0, to={"type": "space"}),
        setting(*LEVEL, "path", to=None),
        setting(*LEVEL, "path", to="../0"),
        setting(*LEVEL, "coordinateTransformations", to=[{"type": "scale", "scale": [1, 2]}]),
        setting(*LEVEL, "coordinateTransformations", to=[{"type": "scale", "scale": [0, 1, 1]}]),
        setting(*LEVEL, "coordinateTransformations", to=[{"type": "scale", "scale": "path"}]),
        setting(*LEVEL, "coordinateTransformations", to=[{"type": "scale", "scale": ["a", 1, 1]}]),
        setting(*LEVEL, "coordinateTransformations", to="scale"),
    ],
)
def test_metadata_that_cannot_be_right(tmp_path, change):
    path = with_metadata(tmp_path / "a.zarr", change)
    with refuses("source", "PATH:0") as caught:
        open_volume(path)
    assert str(path) in caught.value.problem
    volume = open_volume(f"{path}:0")  # the way out
    np.testing.assert_array_equal(volume.load(), BLOCKS)


def test_more_axes_than_the_array_has(tmp_path):
    def change(ome):
        image = ome["multiscales"][0]
        image["axes"].insert(0, {"name": "t", "type": "time"})
        image["datasets"][0]["coordinateTransformations"][0]["scale"].insert(0, 1)

    path = with_metadata(tmp_path / "a.zarr", change)
    with refuses("source", "correct the metadata"):
        open_volume(path)
    np.testing.assert_array_equal(open_volume(f"{path}:0").load(), BLOCKS)


def test_a_level_that_is_not_there(tmp_path):
    path = with_metadata(tmp_path / "a.zarr", setting(*LEVEL, "path", to="7"))
    with refuses("source", "it holds: 0"):
        open_volume(path)
