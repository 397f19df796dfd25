"""Inputs of block-wise runs (affinities, N5, URLs, absent chunks), and formats of their results."""

from __future__ import annotations

import itertools
import json
import shutil
import struct
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.errors import DataWarning, SetOption
from napari_agglo.features import FeatureBlock, FeatureMap, feature_blocks
from napari_agglo.volumes import affinities, open_volume

TABLES = ("ids", "edges", "regions", "boundaries", "boxes")
MERGES = ("winners", "losers", "priorities")
LONG = ((-1, 0), (0, -1), (0, -3), (-2, 2))


@given(
    st.tuples(st.integers(3, 12), st.integers(4, 13)),
    st.tuples(st.integers(1, 12), st.integers(1, 13)),
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, LONG]),
    st.booleans(),
)
@examples(20, deadline=None)
def test_affinities_of_blocks_are_those_of_the_whole(shape, block, seed, offsets, dams):
    rng = np.random.default_rng(seed)
    channels = (rng.random((len(offsets or shape), *shape)) ** 0.3).astype(np.float32)
    labels = rng.integers(0, 5, shape).astype(np.uint16)
    other = rng.integers(0, 256, shape).astype(np.uint8)
    cues = {"affinity": affinities(channels, offsets), "other": other}
    graph = agglo.region_graph(labels, cues, ranges=(0, 255), dams=dams, keep_cues=False)
    tree = agglo.agglomerate(graph)
    where = Path(tempfile.mkdtemp())
    try:
        for name, array in (("channels", channels), ("labels", labels), ("other", other)):
            zarr.create_array(str(where / f"{name}.zarr"), data=array, chunks=array.shape)
        blocks.plan(
            where / "result", {"other": str(where / "other.zarr")},
            affinities=str(where / "channels.zarr"), offsets=offsets,
            superpixels=str(where / "labels.zarr"), ranges={"other": (0, 255)}, dams=dams,
            statistics="all", block=block,
        )  # fmt: skip
        blocks.run(where / "result")
        result = blocks.open(where / "result")
        assert result.graph.cue_names == graph.cue_names
        assert result.graph.cue_ranges == graph.cue_ranges
        for name in TABLES:
            assert np.array_equal(getattr(result.graph, name), getattr(graph, name)), name
        for name in MERGES:
            assert np.array_equal(getattr(result.tree, name), getattr(tree, name)), name
    finally:
        shutil.rmtree(where)


@pytest.fixture(scope="module")
def boundary():
    sample = agglo.sample("neuropil2d")
    return np.rint(255 * sample.cues["boundary"][:160, :200]).astype(np.uint8)


def as_affinities(boundary):
    """Return affinities that fall where a boundary map is high."""
    value = 1 - boundary / np.float32(255)
    below = np.concatenate([value[:1], value[:-1]])
    left = np.concatenate([value[:, :1], value[:, :-1]], axis=1)
    return np.stack([np.minimum(value, below), np.minimum(value, left)])


def test_superpixels_of_affinities_are_those_of_the_whole(tmp_path, boundary):
    channels = as_affinities(boundary)
    zarr.create_array(str(tmp_path / "a.zarr"), data=channels, chunks=(2, 50, 50))
    plan = blocks.plan(tmp_path / "result", affinities=str(tmp_path / "a.zarr"), block=(70, 90))
    assert plan.boundary == "affinity"
    blocks.run(tmp_path / "result")
    result = blocks.open(tmp_path / "result")
    expected = agglo.oversegment(affinities(channels))
    assert sum(agglo.split_vi(result.superpixels[0][...], expected)) == 0.0
    with refuses("ranges"):
        blocks.plan(None, affinities=str(tmp_path / "a.zarr"), ranges={"boundary": (0, 1)})


def write_n5(path, array, block):
    """Write bytes as N5 without compression: a header of sizes, x first, before each block."""
    described = {
        "dimensions": array.shape[::-1], "blockSize": block[::-1], "dataType": "uint8",
        "compression": {"type": "raw"},
    }  # fmt: skip
    path.mkdir()
    (path / "attributes.json").write_text(json.dumps(described))
    for at in itertools.product(*(range(-(-n // b)) for n, b in zip(array.shape, block))):  # noqa: B905
        part = array[tuple(slice(k * b, (k + 1) * b) for k, b in zip(at, block))]  # noqa: B905
        file = path / "/".join(map(str, at[::-1]))
        file.parent.mkdir(parents=True, exist_ok=True)
        head = struct.pack(f">HH{array.ndim}I", 0, array.ndim, *part.shape[::-1])
        file.write_bytes(head + part.tobytes())


def copy_to_memory(folder, url):
    """Copy a folder to the file system of fsspec in memory, which is read as any other URL."""
    import fsspec

    system, root = fsspec.core.url_to_fs(url)
    for file in folder.rglob("*"):
        if file.is_file():
            system.pipe_file(f"{root}/{file.relative_to(folder)}", file.read_bytes())


@pytest.fixture(scope="module")
def expected(tmp_path_factory, boundary):
    """Give the labels of the same volume from a Zarr array on disk."""
    where = tmp_path_factory.mktemp("plain")
    zarr.create_array(str(where / "b.zarr"), data=boundary, chunks=(40, 50))
    return segmented(where, str(where / "b.zarr"))


def segmented(where, source, **options):
    blocks.plan(
        where / "result", source, ranges=(0, 255), block=(80, 120), threshold=0.3, **options
    )
    blocks.run(where / "result")
    return blocks.open(where / "result").labels[0][...]


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("kind", ["zarr", "zarr2", "shards", "n5", "channel"])
def test_inputs_of_other_formats_and_absent_chunks(tmp_path, boundary, expected, kind, remote):
    path = tmp_path / ("b.n5" if kind == "n5" else "b.zarr")
    key = ""
    if kind == "n5":
        write_n5(path, boundary, (40, 50))
        chunk = path / "3" / "2"
    elif kind == "channel":  # one of two, along an axis that is named
        zarr.create_array(
            str(path), data=np.stack([255 - boundary, boundary]), chunks=(1, 40, 50),
            dimension_names=("c", "y", "x"),
        )  # fmt: skip
        key, chunk = ":0=1", path / "c" / "1" / "2" / "3"
    else:
        whole = {"chunks": (20, 25), "shards": (40, 50)} if kind == "shards" else {}
        zarr.create_array(
            str(path), data=boundary, zarr_format=2 if kind == "zarr2" else 3,
            **{"chunks": (40, 50), **whole},
        )  # fmt: skip
        chunk = path / ("2.3" if kind == "zarr2" else "c/2/3")
    for lost in (False, True):
        if lost:
            chunk.unlink()
        url = f"memory://{tmp_path.name}-{kind}-{lost}/{path.name}"
        if remote:
            copy_to_memory(path, url)
        source = f"{url if remote else path}{key}"
        where = tmp_path / f"lost-{lost}"
        labels = segmented(where, source)
        absent = blocks.status(where / "result").absent
        if not lost:
            assert absent == {}
            assert np.array_equal(labels, expected)
        else:  # read with the halo and again for the statistics, by one block or more
            assert absent == {"cues['boundary']": 1}
    if not remote:
        with refuses("cues['boundary']"):  # the first plan is of another state of the input
            blocks.run(tmp_path / "lost-False" / "result")


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("block", [(80, 100), (33, 41)])
def test_absent_chunks_of_an_image_are_counted_once(
    tmp_path, monkeypatch, undisturbed, block, remote
):
    # Parts of a block are filtered one after the other, each with the voxels around it.
    monkeypatch.setattr("napari_agglo.pixels._pixel_image._BLOCKS", {2: (4, 30, 40)})
    image = zarr.open_array(str(undisturbed.where / "image.zarr"))[...]
    path = tmp_path / "image.zarr"
    zarr.create_array(str(path), data=image, chunks=(20, 25))
    for row, column in [(0, 0), (1, 2), (3, 3)]:
        (path / "c" / str(row) / str(column)).unlink()
    source = str(path)
    if remote:
        source = f"memory://{tmp_path.name}/image.zarr"
        copy_to_memory(path, source)
    classifier = str(undisturbed.where / "classifier.npz")
    blocks.plan(tmp_path / "result", image=source, classifier=classifier, block=block)
    run = blocks.run(tmp_path / "result", stage="predict")
    assert run.absent == {"image": 3}
    assert blocks.status(tmp_path / "result").absent == run.absent


def test_labels_in_all_formats(tmp_path, boundary):
    big = np.pad(boundary, ((0, 380), (0, 310)), mode="reflect")
    zarr.create_array(str(tmp_path / "b.zarr"), data=big, chunks=(100, 100))
    blocks.plan(
        tmp_path / "result", str(tmp_path / "b.zarr"), ranges=(0, 255), block=(300, 200),
        threshold=0.3, spacing=(8, 4), unit="nm", version="0.4", precomputed=True,
    )  # fmt: skip
    blocks.run(tmp_path / "result")
    result = blocks.open(tmp_path / "result")
    assert result.labels[0].metadata.zarr_format == 2
    volume = open_volume(tmp_path / "result" / "labels.ome.zarr")
    assert volume.spacing == pytest.approx((0.008, 0.004))
    labels = volume.load()
    assert len(result.labels) > 1
    for level, array in enumerate(result.labels):
        scale = open_volume(f"{result.precomputed_path}:{level}")
        assert np.array_equal(scale.load(), array[...])
    assert open_volume(result.precomputed_path).spacing == pytest.approx((0.008, 0.004))
    assert blocks.run(tmp_path / "result").done == {}
    (result.precomputed_path / "info").unlink()
    shutil.rmtree(tmp_path / "result" / "done" / "precomputed-0")
    blocks.run(tmp_path / "result", stage="precomputed-0")
    assert np.array_equal(open_volume(result.precomputed_path).load(), labels)


def test_formats_that_cannot_be_written_are_refused(tmp_path, boundary):
    zarr.create_array(str(tmp_path / "b.zarr"), data=boundary, chunks=(40, 50))
    source = str(tmp_path / "b.zarr")
    with refuses("shards", SetOption):
        blocks.plan(None, source, ranges=(0, 255), version="0.4", shards=True)
    with refuses("version"):
        blocks.plan(None, source, ranges=(0, 255), version="0.3")
    zarr.create_array(str(tmp_path / "t.zarr"), data=boundary[None, None], chunks=(1, 1, 40, 50))
    with refuses("precomputed", SetOption):
        blocks.plan(None, str(tmp_path / "t.zarr"), ranges=(0, 255), precomputed=True)
    with refuses("folder"):
        blocks.plan("s3://bucket/result", source, ranges=(0, 255))


def test_the_halo_follows_the_superpixels(tmp_path, boundary):
    zarr.create_array(str(tmp_path / "b.zarr"), data=boundary, chunks=(40, 50))
    source = str(tmp_path / "b.zarr")
    small = blocks.plan(None, source, ranges=(0, 255), min_size=1, sigma=0).halo
    large = blocks.plan(None, source, ranges=(0, 255), sigma=6, min_size=900).halo
    assert 16 <= small < large
    with pytest.warns(DataWarning) as caught:
        blocks.plan(
            tmp_path / "result", source, ranges=(0, 255), halo=2, sigma=4, min_size=400, block=60
        )
    assert caught[0].message.argument == "halo"
    blocks.run(tmp_path / "result")
    assert blocks.status(tmp_path / "result").disagreement > 0.001, "and the run notices it"
    blocks.plan(tmp_path / "good", source, ranges=(0, 255), sigma=4, min_size=400, block=60)
    blocks.run(tmp_path / "good")
    assert blocks.status(tmp_path / "good").disagreement < 0.001


def test_policies_with_features_that_do_not_add_are_refused(tmp_path, boundary, monkeypatch):
    zarr.create_array(str(tmp_path / "b.zarr"), data=boundary, chunks=(40, 50))
    block = FeatureBlock("hull", ("hull",), lambda graph: graph.contact_area(), adds=False)
    feature_blocks.register("hull", block)
    for features in (
        FeatureMap("minimal+hull", ("boundary",), 25),
        FeatureMap("minimal", ("boundary",), 25, ("textons",)),
        FeatureMap("natural", ("boundary",), 25),  # convex hulls
    ):
        policy = SimpleNamespace(features=features)
        monkeypatch.setattr("napari_agglo.policy.load_policy", lambda path, policy=policy: policy)
        with refuses("policy"):
            blocks.plan(None, str(tmp_path / "b.zarr"), ranges=(0, 255), policy="policy.npz")
