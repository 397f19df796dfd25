"""A superpixel divided in a graph, against the graph of the divided labels."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from refusals import refuses

from napari_agglo import region_graph
from napari_agglo.graph import Division, divide, divided, edge_positions, edges_within

shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)
TABLES = ("edges", "regions", "boundaries", "boxes")


@st.composite
def graphs(draw):
    shape = draw(shapes)
    labels = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 5)))
    assume((np.unique(labels[labels > 0], return_counts=True)[1] > 1).any())
    labels[labels > 0] += 300  # a single 1 or 255 in pieces is refused as a mask
    cues = {
        name: draw(hnp.arrays(np.float32, shape, elements=st.sampled_from([0, 0.25, 1, np.nan])))
        for name in ("boundary", "texture")
    }
    options = {
        "dams": draw(st.booleans()),
        "spacing": draw(st.sampled_from([(1.0, 0.5, 3.0, 7.0), (1.0,) * 4]))[: len(shape)],
        "statistics": draw(st.sampled_from(["all", "mean"])),
        "nan": "boundary",
    }
    return region_graph(labels, cues, **options), cues, options


@st.composite
def divisions(draw):
    graph, cues, options = draw(graphs())
    large = np.flatnonzero(graph.sizes > 1)
    superpixel = int(draw(st.sampled_from(large.tolist())))
    return graph, cues, options, superpixel, drawn_pieces(draw, graph, superpixel)


def drawn_pieces(draw, graph, superpixel):
    box = tuple(slice(*pair) for pair in graph.boxes[superpixel].T.tolist())
    inside = graph.superpixels.image[box] == superpixel
    pieces = draw(hnp.arrays(np.int64, inside.shape, elements=st.integers(1, 3))) * 10
    pieces[~inside] = 0
    assume(len(np.unique(pieces[inside])) > 1)
    return pieces


def assert_same(one, other):
    for name in TABLES:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
        assert getattr(one, name).dtype == getattr(other, name).dtype
    assert np.array_equal(one.superpixels.image, other.superpixels.image)
    assert np.array_equal(one.ids, other.ids)
    assert one.superpixels.dtype == other.superpixels.dtype


@given(divisions())
def test_divided_graph_equals_that_of_the_divided_labels(case):
    graph, cues, options, superpixel, pieces = case
    after = divided(graph, superpixel, pieces)
    # The new ids follow the others, so the graph from scratch has the very same numbers.
    labels = after.ids[after.superpixels.image].astype(after.superpixels.dtype)
    again = region_graph(labels, cues, **options)
    assert_same(after, again)
    assert np.array_equal(after.cues, again.cues)


@given(divisions())
def test_nothing_else_changes(case):
    graph, _, _, superpixel, pieces = case
    before = {name: getattr(graph, name).copy() for name in TABLES}
    image = graph.superpixels.image.copy()
    after = divided(graph, superpixel, pieces)
    for name in TABLES:
        assert np.array_equal(getattr(graph, name), before[name]), name
    assert np.array_equal(graph.superpixels.image, image)
    others = np.setdiff1d(np.arange(graph.n_regions + 1), superpixel)
    assert np.array_equal(after.regions[others], graph.regions[others])
    assert np.array_equal(after.boxes[others], graph.boxes[others])
    far = ~(graph.edges == superpixel).any(axis=1)
    known = {
        tuple(e): r.tolist() for e, r in zip(after.edges.tolist(), after.boundaries, strict=True)
    }
    for edge, row in zip(graph.edges[far].tolist(), graph.boundaries[far], strict=True):
        assert known[tuple(edge)] == row.tolist()
    inside = graph.superpixels.image == superpixel
    assert np.array_equal(after.superpixels.image[~inside], image[~inside])
    # The largest piece keeps the number.
    assert after.sizes[superpixel] == max(np.unique(pieces[pieces > 0], return_counts=True)[1])


@given(st.data())
def test_divisions_are_taken_back_bit_for_bit(data):
    graph, _, _ = data.draw(graphs())
    owned = graph.superpixels.image.copy()
    states, done = [graph], []
    for _ in range(data.draw(st.integers(1, 4))):
        now = states[-1]
        large = np.flatnonzero(now.sizes > 1)
        if not len(large):
            break
        superpixel = int(data.draw(st.sampled_from(large.tolist())))
        division = divide(now, superpixel, drawn_pieces(data.draw, now, superpixel))
        in_place = division.apply(
            dataclasses.replace(now, superpixels=labels_on(now, owned)), owned
        )
        states.append(division.apply(now))
        assert_same(in_place, states[-1])
        assert np.shares_memory(in_place.superpixels.image, owned)
        assert not in_place.superpixels.image.flags.writeable
        done.append(division)
    now = states[-1]
    for division, expected in zip(reversed(done), reversed(states[:-1]), strict=True):
        now = division.revert(dataclasses.replace(now, superpixels=labels_on(now, owned)), owned)
        assert_same(now, expected)


def labels_on(graph, image):
    return dataclasses.replace(graph.superpixels, image=image)


def chain(**options):
    labels = np.array([[3, 3, 3, 8, 8]])
    return region_graph(labels, np.array([[0.0, 0.2, 0.4, 0.6, 0.8]]), **options)


def test_a_drawn_example():
    division = divide(chain(), 1, np.array([[7, 5, 5]]))
    assert repr(division) == "Division(superpixel 1 in 2 pieces)"
    assert division.members.tolist() == [1, 3]
    assert division.dense_ids(np.array([[7, 5, 5]])) == {5: 1, 7: 3}
    assert division.box == (slice(0, 1), slice(0, 3))
    after = division.apply(chain())
    assert after.superpixels.image.tolist() == [[3, 1, 1, 2, 2]]
    assert after.ids.tolist() == [0, 3, 8, 9]
    assert after.boundary_table()["boundary_mean"].tolist() == pytest.approx([0.5, 0.1], abs=0.002)


def test_a_dam_within_a_superpixel_becomes_a_boundary():
    labels = np.array([[3, 0, 3, 3, 8]])
    cue = np.array([[0.0, 1.0, 0.0, 0.0, 0.0]])
    graph = region_graph(labels, cue, dams=True)
    assert graph.edges.tolist() == [[1, 2]], "test invalid"
    after = divided(graph, 1, np.array([[2, 0, 1, 1]]))
    assert after.edges.tolist() == [[1, 2], [1, 3]]
    assert after.boundary_mean().tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("dtype", "highest", "widened"),
    [
        (np.uint8, 254, np.uint8),
        (np.uint8, 255, np.uint16),
        (np.int16, 2**15 - 1, np.uint16),
        (np.int64, 2**63 - 1, np.uint64),
    ],
)
def test_a_type_too_small_for_the_new_id_is_widened(dtype, highest, widened):
    labels = np.array([[5, 5, highest]], dtype)
    graph = region_graph(labels, np.zeros(labels.shape))
    division = divide(graph, 1, np.array([[1, 2]]))
    after = division.apply(graph)
    assert after.ids.tolist() == [0, 5, highest, highest + 1]
    assert after.superpixels.dtype == widened
    assert division.revert(after).superpixels.dtype == dtype


def test_the_last_id_of_all_has_no_next():
    labels = np.array([[5, 5, 2**64 - 1]], np.uint64)
    graph = region_graph(labels, np.zeros(labels.shape))
    with refuses("graph", "renumber the superpixels and build the"):
        divide(graph, 1, np.array([[1, 2]]))


@pytest.mark.parametrize(
    ("superpixel", "pieces", "refusal"),
    [
        (0, [[1, 1, 2]], ("superpixel", "look it up in graph.ids")),
        (3, [[1, 1, 2]], ("superpixel", "look it up in graph.ids")),
        (1.0, [[1, 1, 2]], ("superpixel", "look it up in graph.ids")),
        (1, [[1, 1]], ("pieces", "take the box from graph.boxes")),
        (1, [[1.0, 1.0, 2.0]], ("pieces", "take the box from graph.boxes")),
        (1, [[1, 0, 2]], ("pieces", "set them to 0, or to the label of a piece")),
        (1, [[4, 4, 4]], ("pieces", "label the parts by different numbers")),
    ],
)
def test_an_invalid_division_is_refused(superpixel, pieces, refusal):
    with refuses(*refusal):
        divide(chain(), superpixel, np.array(pieces))


def test_a_graph_without_cues_says_how_to_get_them():
    assert chain(keep_cues=False).cues is None
    with refuses("graph", "build it again with"):
        divide(chain(keep_cues=False), 1, np.array([[1, 1, 2]]))
    assert not chain().cues.flags.writeable


def test_the_wrong_graph_or_image_is_refused():
    graph = chain()
    division = divide(graph, 1, np.array([[1, 1, 2]]))
    assert isinstance(division, Division)
    with refuses("graph", "in the opposite order", facts=("3 regions", "revert", "got 2")):
        division.revert(graph)
    with refuses("graph", "in the opposite order", facts=("2 regions", "apply", "got 3")):
        division.apply(division.apply(graph))
    copy = "pass graph.superpixels.image.copy()"
    with refuses("image", copy, facts=("got a read-only one of uint32",)):
        division.apply(graph, graph.superpixels.image)
    with refuses("image", copy, facts=("int64",)):
        division.apply(graph, graph.superpixels.image.astype(np.int64))
    with refuses("image", copy, facts=("labels of `graph`",)):
        division.apply(graph, np.zeros_like(graph.superpixels.image))


@given(st.sets(st.tuples(st.integers(1, 9), st.integers(1, 9))), st.sets(st.integers(1, 9)))
def test_look_ups_equal_loops(pairs, members):
    edges = np.array(sorted({(min(p), max(p)) for p in pairs if p[0] != p[1]})).reshape(-1, 2)
    edges = edges.astype(np.int64)
    wanted = [k for k, (u, v) in enumerate(edges.tolist()) if u in members and v in members]
    assert edges_within(edges, np.array(sorted(members), np.int64)).tolist() == wanted
    asked = np.array([[u, v] for u in range(10) for v in range(10)])
    rows = [tuple(edge) for edge in edges.tolist()]
    expected = [sum(row < tuple(pair) for row in rows) for pair in asked.tolist()]
    assert edge_positions(edges, asked).tolist() == expected
