"""Panels share a colour where they share most, and tell where they differ."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.partition import build_tree
from napari_agglo.volumes import dense_labels
from napari_agglo.widgets._qt import shortened
from napari_agglo.widgets.compare._choices import Choice, Cut, Mode, PanelData, PanelSource, prepare
from napari_agglo.widgets.compare._comparison import Comparison, Focus, Pieces


@pytest.fixture(scope="module")
def graph(dataset):
    return dataset.graph()


def compared(graph, dataset, *choices, policies=None):
    shared = PanelData(graph, dataset.gold, policies or {})
    made = prepare(list(choices), shared, lambda _: None)
    return Comparison.of(made, graph, None)


def shown(panel):
    return panel.shown.values[panel.base.image]


def test_two_of_the_same_have_the_same_colours_everywhere(graph, dataset):
    two = compared(graph, dataset, Choice("a", "mean"), Choice("b", "mean"))
    for position in (0.1, 0.3, 0.5):
        two.set(position=position)
        np.testing.assert_array_equal(shown(two.panels[0]), shown(two.panels[1]))
        assert not two.codes(1).any()


def test_gold_gets_the_colour_of_what_it_overlaps_most(graph, dataset):
    two = compared(graph, dataset, Choice("mean", "mean"), Choice("gold", "gold", dataset.gold))
    two.set(position=0.3)
    ours, gold = shown(two.panels[0]), shown(two.panels[1])
    annotated = dataset.gold > 0
    assert (ours[annotated] == gold[annotated]).mean() > 0.5
    # One colour for each gold object, and each colour for one object only.
    pairs = np.unique(np.stack([dataset.gold[annotated], gold[annotated]]), axis=1)
    assert pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1]))


def test_colours_hold_still_while_scrubbing(graph, dataset):
    two = compared(graph, dataset, Choice("mean", "mean"), Choice("gold", "gold", dataset.gold))
    two.set(position=0.30)
    before = shown(two.panels[1]).copy()
    two.set(position=0.31)
    assert (before == shown(two.panels[1])).mean() > 0.9


def test_fixed_names_over_superpixels(graph, dataset):
    table = agglo.agglomerate(graph).lut(0.4)
    two = compared(graph, dataset, Choice("mean", "mean"), Choice("kept", "table", table))
    two.set(position=0.2)
    assert two.panels[1].n_segments == len(np.unique(table[1:]))
    assert set(np.unique(two.codes(1))) <= {0, 2}  # the finer one splits, and merges nothing
    found = two.differences(1)(lambda _: None).largest(5)
    assert (found["kind"] == "split").all()
    two.set(position=0.4)
    assert not two.codes(1).any()


def test_differences_from_gold_are_those_of_the_images(graph, dataset):
    two = compared(graph, dataset, Choice("mean", "mean"), Choice("gold", "gold", dataset.gold))
    two.set(position=0.3)
    found = two.differences(1)(lambda _: None)
    labels = two.panels[0].cut.tree.segment(0.3)
    merged, split = agglo.split_vi(labels, dataset.gold)
    assert found.merged_bits == pytest.approx(merged)
    assert found.split_bits == pytest.approx(split)


def test_numbers_of_a_panel(graph, dataset):
    one = compared(graph, dataset, Choice("mean", "mean"), Choice("gold", "gold", dataset.gold))
    one.set(position=0.3, mode=Mode.THRESHOLD)
    tree = one.panels[0].cut.tree
    assert one.panels[0].n_segments == tree.n_segments(0.3)
    assert one.panels[0].vi() == pytest.approx(sum(agglo.split_vi(tree.segment(0.3), dataset.gold)))
    assert one.panels[1].n_segments == len(np.unique(dataset.gold[dataset.gold > 0]))
    assert one.panels[1].vi() is None


def test_strategies_are_trained_once(graph, dataset):
    policy = agglo.train(graph, dataset.gold, strategy="flat", preset="minimal")
    two = compared(
        graph, dataset, Choice("flat", "strategy", "flat"), Choice("mean", "mean"),
        policies={"flat": policy},
    )  # fmt: skip
    expected = agglo.agglomerate(graph, policy).lut(0.5)
    two.set(position=0.5)
    np.testing.assert_array_equal(two.panels[0].names, expected)


def test_a_threshold_for_each_place_beside_one_for_all(graph, dataset):
    part = dataset.gold.copy()
    part[:20] = 0  # on what it has learned from, both are the same
    policy = agglo.train(graph, part, strategy="flat", preset="minimal")
    two = compared(
        graph, dataset, Choice("flat", "strategy", "flat"),
        Choice("adaptive of flat", "strategy", "flat", "adaptive"), policies={"flat": policy},
    )  # fmt: skip
    plain = agglo.agglomerate(graph, policy)
    adaptive = agglo.adaptive_cut(plain, policy)
    two.set(position=0.5)
    np.testing.assert_array_equal(two.panels[0].names, plain.lut(0.5))
    np.testing.assert_array_equal(two.panels[1].names, adaptive.lut(0.5))
    assert not np.array_equal(plain.lut(0.5), adaptive.lut(0.5)), "test invalid"


@pytest.mark.parametrize("method", ["multicut", "mutex"])
def test_partitions_that_need_a_solver(graph, dataset, method):
    pytest.importorskip("bioimage_cpp", reason="the solver is not installed")
    two = compared(graph, dataset, Choice("m", "mean"), Choice(method, "mean", None, method))
    expected = build_tree(graph, "mean", method).lut(0.5)
    two.set(position=0.5)
    np.testing.assert_array_equal(two.panels[1].names, expected)
    assert not np.array_equal(two.panels[0].names, expected), "test invalid"


def test_a_saved_policy(graph, dataset, tmp_path):
    policy = agglo.train(graph, dataset.gold, strategy="flat", preset="minimal")
    policy.save(tmp_path / "p.npz")
    two = compared(graph, dataset, Choice("p", "file", tmp_path / "p.npz"), Choice("m", "mean"))
    two.set(position=0.5)
    np.testing.assert_array_equal(two.panels[0].names, agglo.agglomerate(graph, policy).lut(0.5))


def test_panels_that_cannot_be_compared_are_named(graph, dataset):
    with refuses("other", "same image") as caught:
        compared(graph, dataset, Choice("other", "labels", np.zeros((3, 3), int)))
    assert "(3, 3)" in caught.value.problem
    without = PanelData(graph, None, {})
    with refuses("gold", "step 1"):
        prepare([Choice("agglo", "strategy", "agglo")], without, lambda _: None)


def test_pieces_lie_within_one_label_of_each(graph):
    rng = np.random.default_rng(1)
    shape = graph.superpixels.image.shape
    one, two = (dense_labels(rng.integers(0, 5, shape) * 10, "labels") for _ in range(2))
    bases = [one, graph.superpixels, two, one]
    pieces = Pieces.common(bases, graph)
    for base, of in zip(bases, pieces.of, strict=True):
        np.testing.assert_array_equal(of[pieces.image], base.image)
    seen = np.bincount(pieces.image.ravel(), minlength=len(pieces.sizes))
    np.testing.assert_array_equal(pieces.sizes[1:], seen[1:])
    assert (seen[1:] > 0).all()
    alone = Pieces.common([graph.superpixels] * 2, graph)
    assert alone.image is graph.superpixels.image


def test_segments_missing_from_the_first_panel_have_one_colour(graph, dataset):
    """The first has merged everything: what the others agree on is theirs to match."""
    whole = np.ones(graph.n_regions + 1, np.uint32)
    whole[0] = 0
    fine = agglo.agglomerate(graph).lut(0.2)
    four = compared(
        graph, dataset, Choice("whole", "table", whole), Choice("a", "table", fine),
        Choice("b", "table", fine), Choice("gold", "gold", dataset.gold),
    )  # fmt: skip
    _, a, b, gold = (shown(panel) for panel in four.panels)
    np.testing.assert_array_equal(a, b)
    inside = dataset.gold > 0
    assert (a == gold)[inside].mean() > 0.5
    # No colour stands for two objects: whoever has one overlaps all others that have it.
    for label in np.intersect1d(a, gold[inside]):
        assert ((a == label) & (gold == label)).any()


def test_gold_where_no_superpixel_is_has_a_colour_too(dataset):
    superpixels = np.zeros((4, 6), np.int64)
    superpixels[:2] = 1
    superpixels[2, :3] = 2
    graph = agglo.region_graph(superpixels, np.zeros((4, 6)))
    gold = np.array([[5] * 6, [5] * 6, [0] * 6, [7] * 6])
    two = compared(graph, dataset, Choice("a", "table", np.arange(3, dtype=np.uint32)),
                   Choice("gold", "gold", gold))  # fmt: skip
    assert (shown(two.panels[1])[3] > 0).all()


def test_only_what_belongs_to_a_difference(graph, dataset):
    two = compared(graph, dataset, Choice("mean", "mean"), Choice("gold", "gold", dataset.gold))
    two.set(position=0.3)
    everything = [shown(panel).copy() for panel in two.panels]
    worst = two.differences(1)(lambda _: None).largest(1, kind="merged").iloc[0]
    at = (int(worst["voxel_0"]), int(worst["voxel_1"]))
    two.focus = Focus(at, 0)
    two.update()
    whole, parts = (shown(panel) for panel in two.panels)
    names = two.panels[0].names[graph.superpixels.image]
    np.testing.assert_array_equal(whole > 0, names == names[at])
    assert parts[at] == everything[1][at]
    inside = whole > 0
    for label in np.unique(everything[1][dataset.gold > 0]):
        mine = everything[1] == label
        assert (parts[mine] > 0).all() == (2 * (mine & inside).sum() > mine.sum() or mine[at])
    assert not two.codes(1)[two.pieces.image][~inside].any()
    two.focus = None
    two.update()
    np.testing.assert_array_equal(shown(two.panels[0]), everything[0])


def test_a_short_name_stays_whole():
    assert shortened("gold", 3) == "gold"


def test_results_that_exist_are_shown_at_once(viewer, project, dock):
    tree = agglo.agglomerate(project.graph)
    before, after = project.table().copy(), tree.lut(0.6)
    dock.controller.show(
        [
            PanelSource(Choice("before", "table"), table=before),
            PanelSource(Choice("after", "current"), cut=Cut(tree)),
        ],
        project.graph,
    )
    dock.controller.set(position=0.6)
    np.testing.assert_array_equal(
        np.asarray(dock.controller.grid.cells[0].segments.data),
        before[project.graph.superpixels.image],
    )
    np.testing.assert_array_equal(dock.controller.comparison.panels[1].names, after)
    dock.controller.leave()
