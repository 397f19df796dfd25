"""N5 and precomputed volumes, as others write them; files at URLs."""

from __future__ import annotations

import functools
import http.server
import json
import os
import pickle
import threading

import fsspec
import numpy as np
import pytest
import tifffile
import zarr
from refusals import refuses

from napari_agglo.errors import Install
from napari_agglo.volumes import downsample_labels, open_channels, open_volume, write_labels
from napari_agglo.volumes._precomputed import write_precomputed

ts = pytest.importorskip("tensorstore")
IMAGE = np.random.default_rng(0).integers(0, 2**60, (20, 33, 70)).astype(np.uint64)
LABELS = (IMAGE % 7) * np.uint64(2**50)
PARTS = (
    np.s_[...],
    np.s_[3],
    np.s_[2:9:3, ::-2, 60:],
    np.s_[:, 32, 69],
    np.s_[5:5],
    np.s_[-1, 0, 0],
)


def same_parts(data, expected):
    for part in PARTS:
        np.testing.assert_array_equal(data[part], expected[part], err_msg=str(part))


# N5 -----------------------------------------------------------------------------------------


def write_n5(path, array, compression, **attributes):
    """Write by tensorstore, in the order x, y, z."""
    kind = {"type": compression} if isinstance(compression, str) else compression
    store = ts.open(
        {
            "driver": "n5",
            "kvstore": {"driver": "file", "path": str(path)},
            "metadata": {"compression": kind, "blockSize": [16, 10, 8], **attributes},
        },
        create=True,
        dtype=array.dtype,
        shape=array.shape[::-1],
    ).result()
    store[...] = array.transpose()
    return path


@pytest.mark.parametrize(
    "compression",
    ["raw", "gzip", "bzip2", "xz", {"type": "gzip", "useZlib": True},
     {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}],
)  # fmt: skip
def test_n5_is_read(tmp_path, compression):
    path = write_n5(tmp_path / "a.n5" / "volumes" / "raw", IMAGE, compression)
    for source in (path, f"{tmp_path / 'a.n5'}:volumes/raw", tmp_path / "a.n5"):
        volume = open_volume(source)
        assert (volume.shape, volume.dtype, volume.data.chunks) == (IMAGE.shape, "u8", (8, 10, 16))
        same_parts(volume.data, IMAGE)
    assert volume.spacing is None


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "i8"])
def test_types_and_missing_blocks_of_n5(tmp_path, dtype):
    array = (IMAGE % 100).astype(dtype)
    path = write_n5(tmp_path / "a.n5", array, "gzip")
    os.remove(path / "1" / "0" / "2")
    expected = array.copy()
    expected[16:20, 0:10, 16:32] = 0  # as N5 has it
    volume = open_volume(path)
    assert volume.dtype == dtype
    same_parts(volume.data, expected)
    assert pickle.loads(pickle.dumps(volume)).load().sum() == expected.sum()


def test_lz4_of_java(tmp_path):
    from numcodecs import lz4

    path = write_n5(tmp_path / "a.n5", IMAGE, "raw")
    described = json.loads((path / "attributes.json").read_text())
    described["compression"] = {"type": "lz4", "blockSize": 65536}
    (path / "attributes.json").write_text(json.dumps(described))
    for file in path.rglob("*"):
        if file.is_file() and file.name != "attributes.json":
            head, body = file.read_bytes()[:16], file.read_bytes()[16:]
            packed = lz4.compress(body)[4:]
            sizes = len(packed).to_bytes(4, "little") + len(body).to_bytes(4, "little")
            end = b"LZ4Block\x10" + bytes(12)
            file.write_bytes(head + b"LZ4Block\x26" + sizes + bytes(4) + packed + end)
    same_parts(open_volume(path).data, IMAGE)


def test_spacing_of_n5(tmp_path):
    root = tmp_path / "a.n5"
    write_n5(root / "s0", IMAGE, "raw")
    write_n5(root / "s1", IMAGE[:, ::2, ::2], "raw", downsamplingFactors=[2, 2, 1])
    group = {"n5": "4.0.0", "pixelResolution": {"unit": "nm", "dimensions": [4, 5, 40]}}
    (root / "attributes.json").write_text(json.dumps(group))
    assert open_volume(root).spacing == (0.04, 0.005, 0.004)
    assert open_volume(f"{root}:s1").spacing == (0.04, 0.01, 0.008)
    paintera = {"resolution": [4.0, 5.0, 40.0], "n5": "2.5"}
    (root / "attributes.json").write_text(json.dumps(paintera))
    assert (open_volume(root).spacing, open_volume(root).unit) == ((40.0, 5.0, 4.0), None)


def test_refusals_of_n5(tmp_path):
    for name in ("a", "b"):
        write_n5(tmp_path / "x.n5" / name, IMAGE[:2], "raw")
    with refuses("source", "a, b"):
        open_volume(tmp_path / "x.n5")
    with refuses("source"):
        open_volume(f"{tmp_path / 'x.n5'}:../x.n5/a")
    file = tmp_path / "x.n5" / "a" / "attributes.json"
    good = json.loads(file.read_text())
    for change in ({"compression": {"type": "bogus"}}, {"dataType": "object"}, {"blockSize": [1]}):
        file.write_text(json.dumps({**good, **change}))
        with refuses("source"):
            open_volume(f"{tmp_path / 'x.n5'}:a")
    file.write_text(json.dumps(good))
    block = tmp_path / "x.n5" / "a" / "0" / "0" / "0"
    block.write_bytes(block.read_bytes()[:30])
    with refuses("source", "save it again"):
        open_volume(f"{tmp_path / 'x.n5'}:a").load()


# Precomputed --------------------------------------------------------------------------------


def by_tensorstore(path, scale=0):
    spec = {
        "driver": "neuroglancer_precomputed", "scale_index": scale,
        "kvstore": {"driver": "file", "path": str(path)},
    }  # fmt: skip
    return ts.open(spec).result()[..., 0].read().result().transpose()


@pytest.mark.parametrize("encoding", ["compressed_segmentation", "raw"])
@pytest.mark.parametrize("labels", [LABELS, IMAGE, LABELS[:, 0], LABELS[:1]], ids=str)
def test_a_segmentation_is_read_back_and_by_tensorstore(tmp_path, encoding, labels):
    path = tmp_path / "a.precomputed"
    spacing = (40.0, 5.0, 4.0)[-labels.ndim :]
    write_precomputed(path, labels, spacing, "nanometer", encoding=encoding, levels=2)
    volume = open_volume(path)
    assert volume.spacing == pytest.approx([one / 1000 for one in spacing])
    same = labels.reshape((1,) * (3 - labels.ndim) + labels.shape)
    np.testing.assert_array_equal(volume.load(), labels)
    np.testing.assert_array_equal(by_tensorstore(path), same)
    steps = (1,) * (labels.ndim - 2) + (2, 2)
    coarse = downsample_labels(labels, steps)
    np.testing.assert_array_equal(open_volume(f"{path}:1").load(), coarse)
    np.testing.assert_array_equal(by_tensorstore(path, 1).reshape(coarse.shape), coarse)
    if labels.ndim == 3 and len(labels) > 1:
        same_parts(volume.data, labels)


def test_write_labels_to_a_precomputed_folder(tmp_path):
    path = write_labels(tmp_path / "a.precomputed", LABELS, spacing=(40, 5, 4))
    assert (open_volume(path).spacing, open_volume(path).unit) == ((40.0, 5.0, 4.0), None)
    write_labels(path, LABELS, spacing=(40, 5, 4), unit="nm")
    info = json.loads((path / "info").read_text())
    assert info["scales"][0]["resolution"] == [4.0, 5.0, 40.0]
    assert (info["type"], info["data_type"]) == ("segmentation", "uint64")
    (path / "notes.txt").write_text("important")
    with refuses("path", "choose another name"):
        write_labels(path, LABELS)
    with refuses("path", "leave them out"):
        write_labels(tmp_path / "b.precomputed", LABELS, shards=(8, 8, 8))
    with refuses("path", "write .ome.zarr"):
        write_labels(tmp_path / "b.precomputed", LABELS[None])


@pytest.mark.parametrize(("shape", "origin"), [((20, 70, 33), (3, 125, -64)), ((70, 33), (5, 6))])
def test_a_precomputed_folder_keeps_the_place_of_a_crop(tmp_path, shape, origin):
    labels = np.random.default_rng(0).integers(0, 2**40, shape).astype(np.uint64)
    path = write_labels(tmp_path / "a.precomputed", labels, origin=origin, levels=2)
    volume = open_volume(path)
    assert volume.origin == origin
    assert np.array_equal(volume.load(), labels)
    assert write_labels(tmp_path / "b.precomputed", volume).is_dir()
    assert open_volume(tmp_path / "b.precomputed").origin == origin, "that of a Volume"
    scales = json.loads((path / "info").read_text())["scales"]
    first, second = (scale["voxel_offset"][::-1][-len(shape) :] for scale in scales)
    steps = [b / a for a, b in zip(scales[0]["resolution"], scales[1]["resolution"], strict=True)]
    for fine, coarse, step in zip(first, second, steps[::-1][-len(shape) :], strict=True):
        assert abs(coarse - fine / step) <= 0.5
    spec = {"driver": "neuroglancer_precomputed",
            "kvstore": {"driver": "file", "path": str(path)}}  # fmt: skip
    theirs = ts.open(spec).result()
    begin = theirs.domain.origin[:3][::-1]
    assert begin[-len(shape) :] == origin
    assert np.array_equal(theirs[..., 0].read().result().T.reshape(shape), labels)
    coarse = ts.open({**spec, "scale_index": 1}).result()
    assert coarse[..., 0].read().result().T.any(), "chunks are where the info says"


def test_precomputed_of_others(tmp_path):
    grey = (IMAGE % 200).astype(np.uint8)
    spec = {
        "driver": "neuroglancer_precomputed",
        "kvstore": {"driver": "file", "path": str(tmp_path / "grey")},
        "multiscale_metadata": {"type": "image", "data_type": "uint8", "num_channels": 2},
        "scale_metadata": {
            "size": [70, 33, 20], "resolution": [4, 4, 40], "voxel_offset": [5, 6, 7],
            "chunk_size": [32, 16, 8], "encoding": "raw",
        },
    }  # fmt: skip
    store = ts.open(spec, create=True).result()
    store[..., 0] = grey.transpose()
    store[..., 1] = 255 - grey.transpose()
    with refuses("source", "c=0"):
        open_volume(tmp_path / "grey")
    same_parts(open_volume(f"{tmp_path / 'grey'}:c=0").data, grey)
    same_parts(open_channels(tmp_path / "grey")["channel_1"].data, 255 - grey)
    info = tmp_path / "grey" / "info"
    good = info.read_text()
    for old, new in (('"raw"', '"jpeg"'), ('"raw"', '"raw", "sharding": {}')):
        info.write_text(good.replace(old, new))
        with refuses("source", "onvert it"):
            open_volume(f"{tmp_path / 'grey'}:c=0")
    info.write_text(good.replace('"scales"', '"scales_"'))
    with refuses("source"):
        open_volume(tmp_path / "grey")


# URLs ---------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path):
    """Serve a folder on this machine; yield the folder and its address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Quiet, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield tmp_path, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_files_at_a_url(served):
    folder, url = served
    write_labels(folder / "a.ome.zarr", LABELS, spacing=(40, 4, 4), unit="nm", levels=2)
    write_labels(folder / "b.zarr", LABELS, spacing=(40, 4, 4), unit="nm", version="0.4")
    write_precomputed(folder / "p", LABELS, (40.0, 4.0, 4.0), "nanometer", levels=1)
    write_n5(folder / "c.n5" / "raw", LABELS, "gzip")
    write_labels(folder / "d.h5", LABELS)
    tifffile.imwrite(folder / "e.tif", (LABELS % 251).astype(np.uint8))
    for name in ("a.ome.zarr", "a.ome.zarr:0", "b.zarr", "p", "c.n5:raw", "d.h5:stack"):
        volume = open_volume(f"{url}/{name}")
        assert volume.shape == LABELS.shape
        same_parts(volume.data, LABELS)
        if name[0] in "abp":
            assert volume.spacing == (0.04, 0.004, 0.004)
        again = pickle.loads(pickle.dumps(volume))
        np.testing.assert_array_equal(again.data[3], LABELS[3])
    assert open_volume(f"{url}/e.tif").dtype == np.uint8
    assert open_volume(f"{url}/a.ome.zarr:1,0=2").ndim == 2
    for name in ("none.zarr", "none.tif", "none", "a.ome.zarr:none", "c.n5:none"):
        with refuses("source"):
            open_volume(f"{url}/{name}")


def test_memory_and_protocols(monkeypatch):
    store = zarr.storage.FsspecStore.from_url("memory://cells.zarr")
    zarr.create_array(store, data=LABELS[:2, :3])
    np.testing.assert_array_equal(open_volume("memory://cells.zarr").load(), LABELS[:2, :3])
    with refuses("source", "https://"):
        open_volume("nonsense://a/b.zarr")

    def missing(*_, **__):
        raise ImportError("Please install s3fs")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with refuses("source", Install('"napari-agglo[remote]"')):
        open_volume("s3://bucket/a.zarr")

    def nobody(*_, **__):
        raise RuntimeError("Unable to locate credentials")

    monkeypatch.setattr(fsspec.core, "url_to_fs", nobody)
    with refuses("source", "FSSPEC_S3_ANON"):
        open_volume("s3://bucket/a.zarr")


# Pickling -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".tif", ".zarr", ".h5", ".npz", ".npy", ".png", ".precomputed"])
def test_volumes_pickle_without_their_voxels(tmp_path, suffix):
    labels = (LABELS[:, :, :50] % 200).astype(np.uint8)[5] if suffix == ".png" else LABELS
    path = write_labels(tmp_path / f"a{suffix}", labels, spacing=(2,) * labels.ndim, unit="nm")
    volume = open_volume(path)
    data = pickle.dumps(volume)
    again = pickle.loads(data)
    np.testing.assert_array_equal(again.load(), labels)
    assert (again.spacing, again.unit, again.name) == (volume.spacing, volume.unit, volume.name)
    if suffix != ".png":
        assert len(data) < 10_000


def test_memory_maps_and_picks_pickle(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", IMAGE)
    for source in ("a.tif", "a.tif:0=7", "a.tif:1=2"):
        volume = open_volume(f"{tmp_path}/{source}")
        again = pickle.loads(pickle.dumps(volume))
        np.testing.assert_array_equal(again.load(), volume.load())
    assert len(pickle.dumps(open_volume(f"{tmp_path}/a.tif:0=7"))) < 10_000
    tifffile.imwrite(tmp_path / "b.tif", IMAGE, compression="zlib", metadata={"axes": "CYX"})
    channel = open_channels(tmp_path / "b.tif")["channel_3"]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(channel)).load(), IMAGE[3])
    for k in range(3):
        tifffile.imwrite(tmp_path / f"s{k}.tif", IMAGE[k])
    stack = open_volume(f"{tmp_path}/s*.tif")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(stack)).load(), IMAGE[:3])
