"""Mappings of volara, webKnossos and Neuroglancer, read as a lut over superpixels."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import h5py
import numpy as np
import pytest
import zarr
from refusals import refuses

from napari_agglo.errors import SetOption
from napari_agglo.volumes import SegmentMapping, read_mapping

LABELS = np.array([[0, 1, 2], [3, 4, 5]], np.uint8)


def as_dict(mapping):
    return dict(zip(mapping.superpixels.tolist(), mapping.segments.tolist(), strict=True))


def test_a_lut_of_volara_without_unpickling(tmp_path):
    lut = np.array([[5, 1, 2], [2, 1, 2]])
    edges = np.array([None, "code"], object)  # as volara writes where there are no edges
    np.savez_compressed(tmp_path / "lut.npz", fragment_segment_lut=lut, edges=edges)
    mapping = read_mapping(tmp_path / "lut.npz")
    assert as_dict(mapping) == {1: 1, 2: 2, 5: 2}
    assert mapping.apply(LABELS).tolist() == [[0, 1, 2], [3, 4, 2]]
    np.savez(tmp_path / "other.npz", a=lut)
    with refuses("mapping", "check that this is a mapping"):
        read_mapping(tmp_path / "other.npz")


def volara_graph(path, high=2**64 - 5):
    """Write the tables of volara; SQLite has signed numbers only."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE nodes (id INTEGER, size INTEGER)")
        database.execute('CREATE TABLE edges (u INTEGER, v INTEGER, "z aff" REAL, distance REAL)')
        signed = high - 2**64
        nodes = [(k, 10) for k in (1, 2, 3, 4, signed)]
        database.executemany("INSERT INTO nodes VALUES (?, ?)", nodes)
        edges = [(1, 3, 0.9, 1), (3, signed, 0.8, 1), (2, 4, 0.2, 1), (1, 2, None, 1)]
        database.executemany("INSERT INTO edges VALUES (?, ?, ?, ?)", edges)
    return path


def test_a_graph_of_volara(tmp_path):
    path = volara_graph(tmp_path / "db.sqlite")
    mapping = read_mapping(path, score="z aff", threshold=0.5)
    assert as_dict(mapping) == {1: 1, 3: 1, 2**64 - 5: 1, 2: 2, 4: 4}
    with refuses("score", SetOption("score", "z aff")):
        read_mapping(path)
    with refuses("threshold", SetOption("threshold", 0.5)):
        read_mapping(path, score="z aff")


def test_mappings_of_webknossos_and_neuroglancer(tmp_path):
    table = np.array([0, 7, 8, 7], np.uint64)
    group = zarr.create_group(str(tmp_path / "attachment"))
    group.create_array("segment_to_agglomerate", data=table)
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["segment_to_agglomerate"] = table
    for name in ("attachment", "a.hdf5"):
        assert as_dict(read_mapping(tmp_path / name)) == {1: 7, 2: 8, 3: 7}
    (tmp_path / "m.json").write_text(json.dumps({"name": "m", "classes": [[3, 1], [2]]}))
    layers = [{"type": "image"}, {"type": "segmentation", "equivalences": [["3", "1"], ["2"]]}]
    (tmp_path / "state.json").write_text(json.dumps({"layers": layers}))
    for name in ("m.json", "state.json"):
        assert as_dict(read_mapping(tmp_path / name)) == {1: 1, 2: 2, 3: 1}


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"layers": []}', '{"classes": [[1, "x"]]}', '{"classes": 3}']
)
def test_files_that_are_no_mapping(tmp_path, content):
    (tmp_path / "m.json").write_text(content)
    with refuses("mapping"):
        read_mapping(tmp_path / "m.json")


def test_paths_that_are_no_mapping(tmp_path):
    (tmp_path / "m.txt").write_text("1 2")
    for path in (tmp_path, tmp_path / "none", tmp_path / "m.txt", None):
        with refuses("mapping"):
            read_mapping(path)


def test_superpixels_that_a_mapping_lacks():
    mapping = SegmentMapping.of([1, 2, 3], [9, 9, 300])
    assert mapping.apply(LABELS).tolist() == [[0, 9, 9], [300, 4, 5]]
    assert mapping.apply(LABELS).dtype == np.uint16, "300 does not fit in a byte"
    assert mapping.apply(LABELS, "zero").tolist() == [[0, 9, 9], [300, 0, 0]]
    with refuses("mapping", SetOption("unmapped", "keep")):
        mapping.apply(LABELS, "refuse")
    with refuses("mapping", SetOption("unmapped", "zero")):
        SegmentMapping.of([1], [5]).apply(LABELS)
    assert SegmentMapping.of([], []).apply(LABELS).tolist() == LABELS.tolist()


def test_two_segments_for_one_superpixel():
    assert as_dict(SegmentMapping.of([1, 1, 0], [2, 2, 4])) == {1: 2}
    with refuses("mapping"):
        SegmentMapping.of([1, 1], [2, 3])
    with refuses("mapping"):
        SegmentMapping.of([1, 1], [2])
    with refuses("mapping"):
        SegmentMapping.of([1.5], [2])
