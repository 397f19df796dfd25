"""The region graph against loops over pixels, in one to four dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import statistics
from refusals import refuses

from napari_agglo import Cancelled, Volume, region_graph
from napari_agglo.errors import DataWarning, SetOption
from napari_agglo.graph import _build_graph, contracted

shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


@st.composite
def volumes(draw, labels_up_to=6, n_cues=2):
    shape = draw(shapes)
    labels = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, labels_up_to)))
    if np.unique(labels[labels > 0]).tolist() == [1]:
        labels.flat[0] = 2  # a single 1 in pieces is refused as a mask
    cues = [draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 255))) for _ in range(n_cues)]
    return labels, cues


def graph_of(labels, cues, **options):
    named = {f"cue{k}": cue for k, cue in enumerate(cues)}
    return region_graph(labels, named, ranges=(0, 255), **options)


def assert_equals_loops(graph, labels, cues, bins, dams=False):
    regions, boundaries = statistics.statistics_by_loops(labels, cues, bins, dams)
    assert graph.ids[1:].tolist() == sorted(regions)
    for dense, label in enumerate(graph.ids[1:].tolist(), start=1):
        assert graph.regions[dense].tolist() == statistics.region_row(regions[label], bins)
        assert graph.boxes[dense].tolist() == statistics.region_box(regions[label])
    assert not graph.regions[0].any()
    pairs = [tuple(pair) for pair in graph.ids[graph.edges].tolist()]
    assert pairs == sorted(boundaries)
    for pair, row in zip(pairs, graph.boundaries.tolist(), strict=True):
        assert row == statistics.boundary_row(boundaries[pair], bins)


@given(volumes(), st.sampled_from([1, 7, 25, 256]), st.booleans())
def test_every_statistic_equals_loops_over_pixels(volume, bins, dams):
    labels, cues = volume
    graph = graph_of(labels, cues, bins=bins, dams=dams)
    assert_equals_loops(graph, labels, cues, bins, dams)


def test_a_drawn_example():
    labels = np.array([[7, 7, 2], [4, 7, 2], [4, 4, 0]])
    cue = np.array([[0, 10, 20], [30, 40, 50], [60, 70, 80]], np.uint8)
    graph = region_graph(labels, cue, ranges=(0, 255), spacing=(3.0, 1.0))
    table = graph.boundary_table()
    assert table[["u", "v", "faces"]].values.tolist() == [[2, 7, 2], [4, 7, 3]]
    # 2|7: two faces across a column border, each as high as a row, 3.
    # 4|7: 4-7 in row 1 (height 3), 7 over 4 twice (width 1).
    assert table["area"].tolist() == [6.0, 5.0]
    assert table["boundary_mean"][0] == pytest.approx((10 + 20 + 40 + 50) / 4 / 255)
    assert table["boundary_mean"][1] == pytest.approx((30 + 40 + 0 + 30 + 40 + 70) / 6 / 255)
    regions = graph.region_table().set_index("id")
    assert regions.loc[7, "size"] == 3
    assert regions.loc[7, "centroid_0"] == pytest.approx(1.0)  # a third of a row, times 3
    assert regions.loc[4, ["box_start_0", "box_stop_0"]].tolist() == [1, 3]
    assert regions.loc[2, "border_faces"] == 3


def test_a_dam_separates_unless_asked():
    labels = np.array([[1, 0, 2], [1, 0, 2]])
    cue = np.array([[0.0, 1.0, 0.0], [0.0, 0.6, 0.0]])
    assert region_graph(labels, cue).n_boundaries == 0
    graph = region_graph(labels, cue, dams=True)
    assert graph.edges.tolist() == [[1, 2]]
    assert graph.boundary_mean().tolist() == [pytest.approx(0.8)]
    thick = np.array([[1, 0, 0, 2]])
    assert region_graph(thick, np.zeros((1, 4)), dams=True).n_boundaries == 0


@given(volumes(), st.booleans())
def test_the_mean_alone_is_part_of_all(volume, dams):
    labels, cues = volume
    full = graph_of(labels, cues, dams=dams)
    light = graph_of(labels, cues, dams=dams, statistics="mean")
    assert np.array_equal(light.edges, full.edges)
    assert np.array_equal(light.boxes, full.boxes)
    assert np.array_equal(light.contact_area(), full.contact_area())
    start = full.layout.region_cues
    assert np.array_equal(light.regions[:, :start], full.regions[:, :start])
    for name in full.cue_names:
        assert np.array_equal(light.boundary_mean(name), full.boundary_mean(name))
        assert np.array_equal(light.region_mean(name), full.region_mean(name))


@given(
    volumes(labels_up_to=40, n_cues=1), st.integers(1, 50), st.sampled_from([0, 12, 1000]),
    st.sampled_from(["all", "mean"]),
)  # fmt: skip
def test_neither_slices_nor_growth_nor_room_change_anything(volume, size, encoded, statistics):
    labels, cues = volume
    whole = graph_of(labels, cues, statistics=statistics)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_build_graph, "_SLICE", size)
        patch.setattr(_build_graph, "_ROOM", 0)
        patch.setattr(_build_graph, "_MOST_ENCODED", encoded)
        pieces = graph_of(labels, cues, statistics=statistics)
    for name in ("edges", "regions", "boundaries", "boxes"):
        assert np.array_equal(getattr(whole, name), getattr(pieces, name))


@given(volumes(labels_up_to=4, n_cues=2), st.booleans(), st.data())
def test_merged_rows_equal_those_of_merged_pixels(volume, dams, data):
    labels, cues = volume
    graph = graph_of(labels, cues, dams=dams)
    lut = [0]
    for dense in range(1, graph.n_regions + 1):
        lut.append(data.draw(st.sampled_from(sorted({*lut, dense} - {0}))))
    lut = np.array(lut)
    added = contracted(graph, lut)
    # Ids from 300 on, so that one id in pieces is not taken for a mask.
    image = graph.ids[lut[graph.superpixels.image]].astype(np.int64)
    again = graph_of(np.where(image > 0, image + 300, 0), cues, dams=dams)
    for name in ("edges", "regions", "boundaries", "boxes"):
        assert np.array_equal(getattr(added, name), getattr(again, name)), name
    assert np.array_equal(added.ids[1:] + 300, again.ids[1:])


@pytest.mark.compiled
def test_moments_of_a_very_long_row_are_exact():
    labels = np.ones(2_000_000, np.uint8)
    labels[1_000_000:] = 2
    graph = region_graph(labels, np.zeros(labels.shape), statistics="mean")
    second = sum(k * k for k in range(1_000_000, 2_000_000))
    assert graph.regions[2, graph.layout.products].tolist() == [second]
    assert graph.n_boundaries == 1


@pytest.mark.parametrize("offset", [0, 2**20, 2**40, 2**63])
def test_huge_and_sparse_ids(offset):
    labels = np.array([[3, 3, 9], [5, 5, 9]], np.uint64)
    cue = np.arange(6).reshape(2, 3) / 5
    plain = region_graph(labels, cue)
    moved = region_graph(labels + np.uint64(offset), cue)
    assert (moved.ids[1:] - np.uint64(offset)).tolist() == plain.ids[1:].tolist() == [3, 5, 9]
    assert np.array_equal(moved.edges, plain.edges)
    assert np.array_equal(moved.regions, plain.regions)
    assert np.array_equal(moved.boundaries, plain.boundaries)


def test_read_only_and_strided_input_is_not_changed():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 9, (6, 8, 10))[::-1, ::2].transpose(2, 0, 1)
    cue = np.asfortranarray(rng.random(labels.shape))
    labels.flags.writeable = cue.flags.writeable = False
    graph = region_graph(labels, cue)
    plain = region_graph(np.ascontiguousarray(labels), np.ascontiguousarray(cue))
    assert np.array_equal(graph.boundaries, plain.boundaries)
    assert np.array_equal(graph.regions, plain.regions)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0, 2), (2, 3)])
def test_nothing_gives_an_empty_graph(shape):
    graph = region_graph(np.zeros(shape, int), np.zeros(shape))
    assert (graph.n_regions, graph.n_boundaries) == (0, 0)
    assert graph.region_table().empty
    assert graph.to_networkx().number_of_nodes() == 0


def test_one_region_has_no_boundary():
    graph = region_graph(np.ones((3, 4), int), np.zeros((3, 4)))
    assert (graph.n_regions, graph.n_boundaries) == (1, 0)
    assert graph.regions[1, graph.layout.border].tolist() == [8, 6]


def test_a_cue_that_is_not_there_is_named():
    graph = region_graph(np.array([1, 1, 2]), {"glia": np.zeros(3)})
    with refuses("cue", SetOption("cues", None, "boundary")):
        graph.boundary_mean()


def test_networkx_and_graphml(tmp_path):
    import networkx as nx

    labels = np.array([[10, 10, 30], [20, 20, 30]])
    graph = region_graph(labels, {"boundary": np.full((2, 3), 0.2), "mito": np.ones((2, 3))})
    out = graph.to_networkx()
    assert sorted(out.nodes) == [10, 20, 30]
    assert out.nodes[30]["size"] == 2
    assert out.edges[10, 20]["faces"] == 2
    assert out.edges[10, 20]["mito_mean"] == 1.0
    path = graph.to_graphml(tmp_path / "graph.graphml")
    again = nx.read_graphml(path, node_type=int)
    assert dict(again.nodes(data=True)) == dict(out.nodes(data=True))
    assert again.graph["spacing"] == "1.0 1.0"
    assert again.graph["cues"] == "boundary mito"
    assert {frozenset(e[:2]): e[2] for e in again.edges(data=True)} == {
        frozenset(e[:2]): e[2] for e in out.edges(data=True)
    }


def test_spacing_of_volumes_is_used_and_must_agree():
    labels = Volume(np.array([[1, 2]]), (5.0, 2.0), "labels")
    cue = Volume(np.zeros((1, 2)), (5.0, 2.0), "cue")
    assert region_graph(labels, cue).contact_area().tolist() == [5.0]
    other = Volume(np.zeros((1, 2)), (5.0, 3.0), "cue")
    with refuses("cues['boundary']", SetOption("spacing", None, when="for all")):
        region_graph(labels, other)
    assert region_graph(labels, other, spacing=(1, 1)).spacing == (1.0, 1.0)


@pytest.mark.parametrize("bins", [0, 257, 2.5, "many"])
def test_bins_are_refused_by_name(bins):
    with refuses("bins", SetOption("bins", 1)):
        region_graph(np.array([1, 2]), np.zeros(2), bins=bins)


def test_statistics_are_refused_by_name():
    with refuses("statistics", SetOption("statistics", "all")):
        region_graph(np.array([1, 2]), np.zeros(2), statistics="some")


def test_cancel_comes_through(monkeypatch):
    monkeypatch.setattr(_build_graph, "_SLICE", 4)
    seen = []

    def stop_at_half(progress):
        seen.append(progress)
        if progress.stage == "graph" and progress.fraction >= 0.5:
            raise Cancelled

    labels = np.arange(1, 65).reshape(16, 4)
    with pytest.raises(Cancelled):
        region_graph(labels, np.zeros((16, 4)), progress=stop_at_half)
    assert 0.5 <= seen[-1].fraction < 1


@pytest.mark.parametrize("statistics", ["all", "mean"])
def test_a_boundary_map_of_the_wrong_sign_is_said_to_be_inverted(statistics):
    rows, columns = np.indices((80, 80))
    labels = 1 + rows // 20 * 4 + columns // 20
    near = np.minimum(
        np.minimum(rows % 20, 19 - rows % 20), np.minimum(columns % 20, 19 - columns % 20)
    )
    boundary, noise = np.exp(-near / 2.0), np.random.default_rng(0).random((80, 80))
    options = {"statistics": statistics}
    region_graph(labels, boundary, **options)  # no warning
    with pytest.warns(DataWarning) as caught:
        region_graph(labels, 1 - boundary, **options)
    assert caught[0].message.argument == "cues['boundary']"
    assert caught[0].message.remedy == SetOption("ranges", (1.0, 0.0), "boundary", when="if it is")
    region_graph(labels, 1 - boundary, ranges=(1, 0), **options)  # no warning with the remedy
    region_graph(labels, {"interior": 1 - boundary}, **options)  # nor for a cue of another name
    region_graph(labels, noise, **options)  # nor for noise
