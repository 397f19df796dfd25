"""Exports are read back by the readers of other programs."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo import Session, agglomerate, region_graph
from napari_agglo.agglomeration import MergeTree
from napari_agglo.errors import Cancelled, Install, SetOption
from napari_agglo.graph import contracted
from napari_agglo.session import export_kinds
from napari_agglo.session._exports import write_export
from napari_agglo.session._exports.csv_tables import EditRow, MergeRows, segment_table
from napari_agglo.session._exports.webknossos import agglomerate_arrays, representative_pixels
from napari_agglo.session._marks import MarkChange, Marks
from napari_agglo.volumes import Volume, open_volume, read_mapping

LABELS = np.array(
    [
        [10, 10, 20, 20, 0, 70],
        [10, 30, 30, 20, 0, 70],
        [40, 40, 30, 50, 50, 70],
        [40, 40, 40, 50, 60, 60],
    ],
    np.uint16,
)
LUT = [0, 1, 1, 3, 3, 5, 5, 7]  # dense ids 1..7: {10, 20}, {30, 40}, {50, 60}, {70}


def drawn(labels=LABELS, spacing=(2.0, 3.0)):
    cue = np.linspace(0, 1, labels.size).reshape(labels.shape)
    return region_graph(labels, {"boundary": cue, "dark": 1 - cue}, spacing=spacing)


def blocks(shape=(3, 4, 5)):
    """Return superpixels in 3-D that are numbered without gaps."""
    labels = np.indices(shape).sum(axis=0) // 2 + 1
    return drawn(labels, (3.0, 2.0, 1.0))


def some_marks():
    marks = Marks()
    marks.apply(MarkChange(3, name='a, "b"', comment="two\nlines, Ünïcode", reviewed=True))
    marks.apply(MarkChange(99, name="gone"))
    return marks


@dataclass
class View:
    """An export view without a session."""

    graph: object
    lut: object
    marks: Marks = field(default_factory=Marks)
    boundary_scores: tuple = (np.zeros((0, 2), np.uint64), np.zeros(0))
    edits: list = field(default_factory=list)
    merges: MergeRows | None = None
    threshold: float = 0.5


def write(kind, path, graph, lut, *, overwrite=False, progress=None, marks=None, **more):
    """Export a partition of a graph; of `more`, fields of the view are not options."""
    own = {name: more.pop(name) for name in ("boundary_scores", "edits", "merges") if name in more}
    view = View(graph, np.asarray(lut, np.uint64), marks or Marks(), **own)
    return write_export(view, path, kind, overwrite=overwrite, progress=progress, options=more)


def rows_of(tree, priorities=None, edits=None):
    """Return the merges of a tree as an export sees them."""
    edits = np.zeros(tree.n_merges, np.int64) if edits is None else np.array(edits)
    message = tree.priorities if priorities is None else np.array(priorities)
    return MergeRows(tree, message, edits, tree.name_inheritance)


# ------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("name", ["a.tif", "a.ome.zarr", "a.h5", "a.npz"])
def test_labels_come_back(tmp_path, name):
    path = write("labels", tmp_path / name, drawn(), LUT)
    volume = open_volume(path)
    assert np.array_equal(volume.load(), np.array(LUT)[drawn().superpixels.image])
    assert volume.load().dtype == np.uint16
    assert volume.spacing == (2.0, 3.0)


def test_labels_get_a_wider_type_only_if_they_need_it(tmp_path):
    path = write("labels", tmp_path / "a.npy", drawn(), [0, *[2**40] * 7])
    assert open_volume(path).load().max() == 2**40


# ------------------------------------------------------------------------------------ regions


def test_regions_are_those_of_the_merged_image(tmp_path):
    graph = drawn()
    path = write("regions", tmp_path / "regions.csv", graph, LUT, marks=some_marks())
    table = pd.read_csv(path, keep_default_na=False)
    merged = region_graph(
        np.array(LUT)[graph.superpixels.image],
        {"boundary": np.linspace(0, 1, 24).reshape(4, 6)},
        spacing=(2.0, 3.0),
    ).region_table()
    assert table["superpixels"].tolist() == [2, 2, 2, 1]
    for column in merged:
        assert np.allclose(table[column], merged[column]), column
    assert np.allclose(table["dark_mean"], 1 - table["boundary_mean"], atol=0.01)
    assert table["name"].tolist() == ["", 'a, "b"', "", ""]
    assert table["comment"][1] == "two\nlines, Ünïcode"
    assert table["reviewed"].tolist() == [False, True, False, False]


@given(st.data())
def test_segment_table_agrees_with_the_contracted_graph(data):
    labels = np.array(data.draw(st.lists(st.integers(1, 9), min_size=16, max_size=16)))
    graph = drawn(labels.reshape(4, 4))
    n = graph.n_regions
    lut = np.array([0, *data.draw(st.lists(st.integers(1, n), min_size=n, max_size=n))])
    slow = contracted(graph, lut.astype(np.uint32))
    table = segment_table(graph, lut)
    assert table["size"].tolist() == slow.sizes[1:].tolist()
    assert np.allclose(table[["centroid_0", "centroid_1"]], slow.centroids()[1:] * [2, 3])
    assert np.allclose(table["boundary_mean"], slow.region_mean()[1:])
    assert table["box_stop_1"].tolist() == slow.boxes[1:, 1, 1].tolist()


# -------------------------------------------------------------------------------------- edits


def test_edits_come_back(tmp_path):
    rows = [
        EditRow(1, "2031-05-04T13:02:01.250+00:00", "merge", 0.5, (7, 2**63 + 1), "live",
                '{"steps": [{"merge": [[7, 8]], "scale": 0.5}]}', "2x3:4:0123"),
        EditRow(2, "2031-05-04T13:02:02.000+00:00", "cut", 0.25, (7,), "undone"),
        EditRow(5, "2031-05-04T13:02:03.000+00:00", "undo", None, (), "asleep"),
    ]  # fmt: skip
    path = write("edits", tmp_path / "edits.csv", None, LUT, edits=rows)
    table = pd.read_csv(path, keep_default_na=False)
    assert list(table) == [
        "sequence",
        "time",
        "kind",
        "scale",
        "ids",
        "state",
        "superpixels",
        "details",
    ]
    back = [
        EditRow(
            row.sequence,
            row.time,
            row.kind,
            float(row.scale) if row.scale else None,
            tuple(int(one) for one in row.ids.split()),
            row.state,
            row.details,
            row.superpixels,
        )
        for row in table.itertuples()
    ]
    assert back == rows
    assert pd.to_datetime(table["time"]).is_monotonic_increasing


def test_no_edits_is_a_table_too(tmp_path):
    assert len(pd.read_csv(write("edits", tmp_path / "none.csv", None, LUT))) == 0


# --------------------------------------------------------------------------------------- tree


def test_a_tree_without_edits_is_the_tree(tmp_path):
    tree = agglomerate(drawn())
    plain = pd.read_csv(tree.to_csv(tmp_path / "plain.csv"))
    path = write("tree", tmp_path / "tree.csv", drawn(), LUT, merges=rows_of(tree))
    table = pd.read_csv(path)
    assert table.pop("edit").isna().all()
    pd.testing.assert_frame_equal(table, plain)


def test_winners_are_those_of_the_tree(tmp_path):
    sides = np.array([1, 1]), np.array([2, 4]), np.array([0.1, 0.5])
    tree = MergeTree(drawn(np.array([[1, 2, 2, 3, 4, 4, 4, 4]])).superpixels, *sides)
    table = pd.read_csv(write("tree", tmp_path / "tree.csv", None, LUT, merges=rows_of(tree)))
    ids = tree.superpixels.ids
    assert table["winner"].tolist() == ids[tree.winners].tolist()
    assert table["loser"].tolist() == ids[tree.losers].tolist()
    assert table[["left", "right"]].values.tolist() == tree.children.tolist()
    assert (table["kept"] != table["winner"]).any(), "test invalid: every winner keeps its name"


def test_a_merge_by_hand_names_its_edit(tmp_path):
    tree = MergeTree(drawn().superpixels, np.array([1, 1]), np.array([2, 7]), np.array([0.1, 0.5]))
    rows = rows_of(tree, [0.1, np.nan], [0, 12])
    table = pd.read_csv(write("tree", tmp_path / "tree.csv", None, LUT, merges=rows))
    assert table["edit"].isna().tolist() == [True, False]
    assert table["edit"][1] == 12
    assert table["priority"].isna().tolist() == [False, True]
    assert table["loser"].tolist() == [20, 70]
    assert table["height"].tolist() == [0.1, 0.5]


# ------------------------------------------------------------------------------------- GraphML


def test_graphml_is_the_graph_of_the_segments(tmp_path):
    graph = drawn()
    scores = np.array([[5, 1], [3, 5]], np.uint64), np.array([0.25, 0.75])
    path = write(
        "graphml", tmp_path / "g.graphml", graph, LUT, marks=some_marks(), boundary_scores=scores
    )
    read = nx.read_graphml(path, node_type=int)
    merged = region_graph(
        np.array(LUT)[graph.superpixels.image],
        {"boundary": np.linspace(0, 1, 24).reshape(4, 6)},
        spacing=(2.0, 3.0),
    ).to_networkx()
    assert set(read.nodes) == set(merged.nodes) == {1, 3, 5, 7}
    assert {frozenset(e) for e in read.edges} == {frozenset(e) for e in merged.edges}
    for u, v, message in merged.edges(data=True):
        for key, value in message.items():
            assert read.edges[u, v][key] == pytest.approx(value), (u, v, key)
    assert read.edges[1, 5]["priority"] == 0.25
    assert read.edges[3, 5]["priority"] == 0.75
    assert "priority" not in read.edges[1, 3]
    assert read.nodes[3]["comment"] == "two\nlines, Ünïcode"
    assert read.nodes[3]["reviewed"] is True
    assert read.nodes[1]["size"] == 6


@pytest.mark.parametrize(
    "text", ["<a> & \"b\" 'c'", "one\rtwo\r\nthree\n", "\u2028 \U0001f9e0 ]]>"]
)
def test_graphml_keeps_any_text(tmp_path, text):
    marks = Marks()
    marks.apply(MarkChange(1, comment=text))
    cue = np.zeros(LABELS.shape)
    graph = region_graph(LABELS, {'a<b&"c': cue})
    read = nx.read_graphml(
        write("graphml", tmp_path / "g.graphml", graph, LUT, marks=marks), node_type=int
    )
    assert read.nodes[1]["comment"] == text
    assert read.nodes[1]['a<b&"c_mean'] == 0


def test_graphml_is_what_networkx_would_have_written(tmp_path):
    graph = drawn()
    ours = nx.read_graphml(write("graphml", tmp_path / "ours.graphml", graph, np.arange(8)))
    nx.write_graphml(graph.to_networkx(), tmp_path / "theirs.graphml")
    theirs = nx.read_graphml(tmp_path / "theirs.graphml")
    numbers = {str(graph.ids[k]): str(k) for k in range(1, 8)}
    theirs = nx.relabel_nodes(theirs, numbers)
    assert set(ours.nodes) == set(theirs.nodes)
    for node, message in theirs.nodes(data=True):
        assert {key: ours.nodes[node][key] for key in message} == message
    assert {frozenset(e): message for *e, message in ours.edges(data=True)} == {
        frozenset(e): message for *e, message in theirs.edges(data=True)
    }


def test_graphml_can_be_cancelled(tmp_path):
    def cancel(progress):
        raise Cancelled

    with pytest.raises(Cancelled):
        write("graphml", tmp_path / "g.graphml", drawn(), LUT, progress=cancel)
    assert not any(tmp_path.iterdir())


# ------------------------------------------------------------------------- agglomerate attachment


def test_the_worked_example_of_the_specification():
    """Segments 1..7, edges 1-2, 2-3, 3-4, 5-6, 1-7: the arrays as the specification prints them."""
    pairs = [(1, 2), (1, 7), (2, 3), (3, 4), (4, 5), (5, 6)]
    labels = np.zeros((13, 3), int)
    for k, (u, v) in enumerate(pairs):
        labels[2 * k, :2] = u, v
    graph = drawn(labels, None)
    assert graph.edges.tolist() == [list(pair) for pair in pairs], "test invalid"
    affinities = np.array([124.0, 65.5, 0.0, 250.5, 99.0, 80.0])
    pixels = np.arange(16, dtype=np.int32).reshape(8, 2)
    arrays = agglomerate_arrays(
        graph, np.array([0, 4, 4, 4, 4, 9, 9, 4], np.uint64), affinities, pixels
    )
    plain = {name: array.tolist() for name, array in arrays.items()}
    assert plain == {
        "segment_to_agglomerate": [0, 1, 1, 1, 1, 2, 2, 1],
        "agglomerate_to_segments_offsets": [0, 0, 5, 7],
        "agglomerate_to_segments": [1, 2, 3, 4, 7, 5, 6],
        "agglomerate_to_edges_offsets": [0, 0, 4, 5],
        "agglomerate_to_edges": [[0, 1], [0, 4], [1, 2], [2, 3], [0, 1]],
        "agglomerate_to_affinities": [124.0, 65.5, 0.0, 250.5, 80.0],
        "agglomerate_to_positions": [
            [3, 2, 0], [5, 4, 0], [7, 6, 0], [9, 8, 0], [15, 14, 0], [11, 10, 0], [13, 12, 0]
        ],
    }  # fmt: skip
    assert {name: str(array.dtype) for name, array in arrays.items()} == {
        "segment_to_agglomerate": "uint64",
        "agglomerate_to_segments_offsets": "uint64",
        "agglomerate_to_segments": "uint32",
        "agglomerate_to_edges_offsets": "uint64",
        "agglomerate_to_edges": "uint32",
        "agglomerate_to_affinities": "float32",
        "agglomerate_to_positions": "int32",
    }


def read_as_webknossos_does(path):
    """Return the graph that webKnossos' own reader builds from an attachment."""
    group = zarr.open_group(path, mode="r")
    return graph_of({name: group[name][...] for name in group.array_keys()})


def graph_of(held):
    """Return the graph that the arrays of an attachment mean; assert what they must fulfil."""
    graph = nx.Graph()
    starts, edge_starts = (
        held[f"agglomerate_to_{what}_offsets"].astype(int) for what in ("segments", "edges")
    )
    for agglomerate_id in range(1, len(starts) - 1):
        here = slice(starts[agglomerate_id], starts[agglomerate_id + 1])
        segments = held["agglomerate_to_segments"][here].tolist()
        assert segments == sorted(segments)
        for segment, position in zip(segments, held["agglomerate_to_positions"][here], strict=True):
            graph.add_node(segment, position=tuple(position.tolist()), of=agglomerate_id)
            assert held["segment_to_agglomerate"][segment] == agglomerate_id
        there = slice(edge_starts[agglomerate_id], edge_starts[agglomerate_id + 1])
        pairs = held["agglomerate_to_edges"][there].tolist()
        assert pairs == sorted(pairs)
        for (a, b), affinity in zip(pairs, held["agglomerate_to_affinities"][there], strict=True):
            assert a < b
            graph.add_edge(segments[a], segments[b], affinity=float(affinity))
    return graph


def partition(lut):
    return {frozenset(np.flatnonzero(lut == one).tolist()) for one in set(lut[1:].tolist())}


@given(st.data())
def test_readers_find_the_same_partition(data):
    labels = np.array(data.draw(st.lists(st.integers(0, 7), min_size=12, max_size=12)))
    labels = np.unique(np.append(labels, 0), return_inverse=True)[1][:-1].reshape(3, 4)
    graph = drawn(labels, None)
    n = graph.n_regions
    lut = np.array([0, *data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))])
    places = representative_pixels(graph)
    read = graph_of(
        agglomerate_arrays(graph, lut.astype(np.uint64), 1 - graph.boundary_mean(), places)
    )
    assert set(read.nodes) == set(range(1, n + 1))
    # Also where a segment is in several pieces: connected components are how readers see it.
    assert {frozenset(part) for part in nx.connected_components(read)} == partition(lut)
    for segment, message in read.nodes(data=True):
        x, y, z = message["position"]
        assert (labels[y, x], z) == (segment, 0)


def test_positions_in_three_dimensions_are_x_y_z(tmp_path):
    graph = blocks()
    lut = np.array([0, *[1, 2] * 20])[: graph.n_regions + 1]
    read = read_as_webknossos_does(write("agglomerate", tmp_path / "mapping", graph, lut))
    for segment, message in read.nodes(data=True):
        assert graph.superpixels.image[message["position"][::-1]] == segment


def test_a_representative_is_the_nearest_to_the_centroid():
    graph = blocks()
    centroids, places = graph.centroids(), representative_pixels(graph)
    for k in range(1, graph.n_regions + 1):
        pixels = np.argwhere(graph.superpixels.image == k)
        away = (((pixels - centroids[k]) * graph.spacing) ** 2).sum(axis=1)
        assert places[k].tolist() in pixels[np.isclose(away, away.min())].tolist()


def test_layout_is_that_of_the_specification(tmp_path):
    graph = blocks((4, 9, 9))
    path = write("agglomerate", tmp_path / "agglomerate_view_50", graph, (np.arange(11) + 1) // 2)
    message = json.loads((path / "zarr.json").read_text())
    assert (message["zarr_format"], message["node_type"]) == (3, "group")
    assert message["attributes"]["voxelytics"] == {
        "artifact_schema_version": 4,
        "artifact_class": "AgglomerateViewArtifact",
    }
    for name in os.listdir(path):
        if name == "zarr.json":
            continue
        (sharding,) = json.loads((path / name / "zarr.json").read_text())["codecs"]
        inner = sharding["configuration"]
        assert sharding["name"] == "sharding_indexed"
        assert inner["codecs"] == [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "zstd", "configuration": {"level": 5, "checksum": True}},
        ]
        assert [codec["name"] for codec in inner["index_codecs"]] == ["bytes", "crc32c"]


def test_affinities_are_those_given_or_one_less_the_cue(tmp_path):
    graph = blocks()
    whole = np.minimum(np.arange(graph.n_regions + 1), 1)
    read = read_as_webknossos_does(write("agglomerate", tmp_path / "a", graph, whole))
    for (u, v), mean in zip(graph.edges.tolist(), graph.boundary_mean(), strict=True):
        assert read.edges[u, v]["affinity"] == pytest.approx(1 - mean, abs=1e-6)
    given_ones = np.arange(graph.n_boundaries) / 4
    read = read_as_webknossos_does(
        write("agglomerate", tmp_path / "b", graph, whole, affinities=given_ones)
    )
    values = [read.edges[u, v]["affinity"] for u, v in graph.edges.tolist()]
    assert values == given_ones.tolist()
    with refuses("affinities", "pass 1 - graph.boundary_mean()"):
        write("agglomerate", tmp_path / "c", graph, whole, affinities=given_ones[1:])


def test_superpixels_with_gaps_are_renumbered_or_refused(tmp_path):
    graph = drawn()
    with refuses("superpixels", SetOption("superpixels", "FILE.ome.zarr")):
        write("agglomerate", tmp_path / "mapping", graph, LUT)
    assert not any(tmp_path.iterdir())
    layer = tmp_path / "superpixels.ome.zarr"
    path = write("agglomerate", tmp_path / "mapping", graph, LUT, superpixels=layer)
    labels = open_volume(layer).load()
    mapping = zarr.open_group(path, mode="r")["segment_to_agglomerate"][...]
    assert labels.dtype == np.uint32
    assert np.array_equal(
        mapping[labels], np.unique(LUT, return_inverse=True)[1][graph.superpixels.image]
    )


def test_an_image_without_regions(tmp_path):
    graph = drawn(np.zeros((2, 3), int), None)
    read = read_as_webknossos_does(write("agglomerate", tmp_path / "mapping", graph, [0]))
    assert len(read) == 0
    assert len(segment_table(graph, [0])) == 0
    assert len(nx.read_graphml(write("graphml", tmp_path / "g.graphml", graph, [0]))) == 0


def test_four_axes_are_refused(tmp_path):
    graph = drawn(np.arange(1, 17).reshape(2, 2, 2, 2), None)
    with refuses("kind", "export the labels instead"):
        write("agglomerate", tmp_path / "mapping", graph, np.arange(17))


# ------------------------------------------------------------------------ what all have in common

TREE = rows_of(MergeTree(drawn().superpixels, np.array([1]), np.array([2]), np.array([0.5])))
EXPORTS = {
    "labels.tif": lambda path, **more: write("labels", path, drawn(), LUT, **more),
    "labels.ome.zarr": lambda path, **more: write("labels", path, drawn(), LUT, **more),
    "regions.csv": lambda path, **more: write("regions", path, drawn(), LUT, **more),
    "edits.csv": lambda path, **more: write("edits", path, None, LUT, **more),
    "tree.csv": lambda path, **more: write("tree", path, None, LUT, merges=TREE, **more),
    "g.graphml": lambda path, **more: write("graphml", path, drawn(), LUT, **more),
    "mapping": lambda path, **more: write("agglomerate", path, blocks(), np.arange(6), **more),
    "gold.tif": lambda path, **more: write("gold", path, drawn(), LUT, marks=some_marks(), **more),
    "mesh.ply": lambda path, **more: write("mesh", path, blocks(), np.arange(6), **more),
    "precomputed_mesh": lambda path, **more: write(
        "precomputed_mesh", path, blocks(), np.arange(6), **more
    ),
}


def test_every_kind_is_tried_here():
    kinds = {"mapping": "agglomerate", "g": "graphml"}
    tried = {kinds.get(name.split(".")[0], name.split(".")[0]) for name in EXPORTS}
    ours = {k.name for k in export_kinds() if k.write.__module__.startswith("napari_agglo.")}
    assert tried | {"neuroglancer"} == ours, "neuroglancer has tests of its own, below"


@pytest.mark.parametrize("name", EXPORTS)
def test_nothing_is_overwritten_unless_asked(tmp_path, name):
    path = EXPORTS[name](tmp_path / name)
    with refuses("path", "choose another name, or pass overwrite=True"):
        EXPORTS[name](tmp_path / name)
    assert EXPORTS[name](tmp_path / name, overwrite=True) == path
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", EXPORTS)
def test_a_failure_leaves_nothing(tmp_path, name, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with refuses("path", "free some space, or choose another folder"):
        EXPORTS[name](tmp_path / name)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", EXPORTS)
def test_a_missing_folder_is_named(tmp_path, name):
    with refuses("path", "nowhere first"):
        EXPORTS[name](tmp_path / "nowhere" / name)


def test_a_folder_with_other_things_in_it_stays(tmp_path):
    path = EXPORTS["mapping"](tmp_path / "mapping")
    (path / "notes.txt").write_text("mine")
    with refuses("path", "choose another name, or remove it first"):
        EXPORTS["mapping"](path, overwrite=True)
    assert (path / "notes.txt").read_text() == "mine"


def test_a_volume_can_be_opened_from_an_h5_with_a_key(tmp_path):
    write("labels", f"{tmp_path / 'a.h5'}:one", drawn(), LUT)
    with refuses("path", "choose another name, or pass overwrite=True"):
        write("labels", f"{tmp_path / 'a.h5'}:one", drawn(), LUT)
    write("labels", f"{tmp_path / 'a.h5'}:two", drawn(), LUT)
    assert isinstance(open_volume(f"{tmp_path / 'a.h5'}:one"), Volume)


def test_a_folder_for_neuroglancer(tmp_path):
    """Superpixels, segments as equivalences, and properties by the smallest superpixel."""
    image = np.array([[[3, 3, 5], [9, 9, 5]]])
    graph = region_graph(image, np.full(image.shape, 0.9), spacing=(40, 4, 4))
    with Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.0
        session.merge(5, 9)
        (merged,) = {int(one) for one in np.unique(session.labels())} - {3}
        session.marks.rename(merged, "axon")
        session.marks.review(merged)
        path = session.export(tmp_path / "seg", "neuroglancer", url="https://a.org/data/")
        session.export(path, "neuroglancer", overwrite=True)
        session.export(path, "neuroglancer", overwrite=True, url="https://a.org/data/")
    np.testing.assert_array_equal(open_volume(path).load(), image)
    assert open_volume(path).spacing == (0.04, 0.004, 0.004)
    state = json.loads((path / "state.json").read_text())
    assert state["layers"][0]["source"] == "precomputed://https://a.org/data/seg"
    assert state["layers"][0]["equivalences"] == [["5", "9"]]
    assert state["dimensions"]["z"] == [40e-9, "m"]
    segments = read_mapping(path / "state.json").apply(image)
    assert segments.tolist() == [[[3, 3, 5], [5, 5, 5]]]
    info = json.loads((path / "segment_properties" / "info").read_text())["inline"]
    assert sorted(info["ids"]) == ["3", "5"]
    values = {one["id"]: one["values"][info["ids"].index("5")] for one in info["properties"]}
    assert values == {"label": "axon", "comment": "", "tags": [0], "size": 4.0}
    (path / "notes.txt").write_text("important")
    with refuses("path", "choose another name"), Session.open(tmp_path / "a.agglo") as session:
        session.export(path, "neuroglancer", overwrite=True)


@pytest.mark.parametrize("kind", ["regions", "edits", "tree"])
def test_tables_as_parquet(tmp_path, kind, monkeypatch):
    image = np.array([[3, 3, 5], [9, 9, 5]])
    graph = region_graph(image, np.full(image.shape, 0.9))
    with Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.0
        session.merge(5, 9)
        session.export(tmp_path / "a.parquet", kind)
        session.export(tmp_path / "a.csv", kind)
        with refuses("path", "choose another name"):
            session.export(tmp_path / "a.parquet", kind)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "pyarrow", None)
            with refuses("path", Install('"napari-agglo[parquet]"')):
                session.export(tmp_path / "b.parquet", kind)
    table, same = pd.read_parquet(tmp_path / "a.parquet"), pd.read_csv(tmp_path / "a.csv")
    assert list(table.columns) == list(same.columns)
    assert len(table) == len(same)
    assert table.iloc[:, 0].tolist() == same.iloc[:, 0].tolist()
    assert not (tmp_path / "b.parquet").exists()
