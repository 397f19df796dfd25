"""Learning by agglomerating: labels, epochs, strategies, against slow or drawn answers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from sklearn.metrics import rand_score

import napari_agglo as agglo
from napari_agglo import Cancelled, InvalidInput, agglomerate, region_graph
from napari_agglo.errors import DataWarning, SetOption
from napari_agglo.features import feature_map, feature_matrix
from napari_agglo.learning import (
    ForestSettings,
    _collect_examples,
    _training_volume,
    assign,
    boundary_labels,
    train,
)
from napari_agglo.learning._fit import Examples, fit, held_out_scores
from napari_agglo.learning._training_volume import training_volume
from napari_agglo.policy import MeanPolicy, RandomPolicy, load_policy

NOBODY = np.zeros((0, 0), np.uint8)


def silent(merges, most, examples):
    pass


def checkerboard(shape=(6, 6), seed=0, side=2):
    """Return superpixels that are small blocks, a boundary cue, and gold of two halves."""
    rng = np.random.default_rng(seed)
    index = np.indices(shape)
    blocks = index // side
    superpixels = np.ravel_multi_index(blocks, [-(-n // side) for n in shape]) + 1
    gold = np.where(index[-1] < shape[-1] // 2, 1, 2)
    edge = np.abs(index[-1] - (shape[-1] - 1) / 2) < 1
    cue = np.clip(0.6 * edge + 0.4 * rng.random(shape), 0, 1)
    return superpixels, cue, gold


def test_the_assignment_takes_the_largest_overlap_and_of_equal_ones_the_smallest_id():
    superpixels = np.array([1, 1, 1, 2, 2, 3, 3, 4])
    gold = np.array([7, 9, 9, 9, 7, 0, 8, 0])
    graph = region_graph(superpixels, np.zeros(8))
    assert assign(graph, gold).tolist() == [0, 9, 7, 8, 0]
    mask = np.array([1, 0, 0, 1, 1, 1, 0, 1], bool)
    assert assign(graph, gold, mask=mask).tolist() == [0, 7, 7, 0, 0]


def test_labels_of_several_golds_are_the_sign_of_their_sum():
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    golds = np.array([[1, 1, 2, 0], [1, 1, 1, 1], [1, 2, 3, 3]])
    assert boundary_labels(edges[:, :], golds[:1]).tolist() == [-1, 1, 0, 0]
    assert boundary_labels(edges, golds).tolist() == [-1, 1, -1, 0]


def test_an_epoch_drawn_by_hand():
    # Four superpixels in a row, gold joins 1 2 | 3 4; the mean says first 2|3, then 1|2, then 3|4.
    superpixels = np.array([[1, 2, 3, 4]])
    gold = np.array([[5, 5, 6, 6]])
    cue = np.array([[0.4, 0.0, 0.0, 0.8]])
    graph = region_graph(superpixels, cue)
    features = feature_map(graph, "minimal")
    volume = training_volume(graph, [gold], None, 0)
    flat = volume.flat(features)
    assert flat.labels.tolist() == [-1, 1, -1]
    assert np.array_equal(flat.rows, feature_matrix(graph, features))
    noted = volume.strict(features, MeanPolicy(), NOBODY, silent)
    # 2|3 is suggested and refused; 1|2 is done, which changes 12|3; that is suggested and refused
    # again; 3|4 is done; what is left, 12|34, is noted once at the end.
    assert noted.labels.tolist() == [1, -1, 1, -1, 1]
    one = region_graph(np.array([[1, 1, 3, 4]]), cue)
    both = region_graph(np.array([[1, 1, 3, 3]]), cue)
    expected = [flat.rows[1], flat.rows[0], feature_matrix(one, features)[0], flat.rows[2],
                feature_matrix(both, features)[0]]  # fmt: skip
    assert np.array_equal(noted.rows, np.array(expected))
    # With near misses, 12|3 is noted as soon as 1 and 2 are one, and 12|34 once 3 and 4 are.
    noted = volume.strict(features, MeanPolicy(), NOBODY, silent, near_misses=True)
    assert noted.labels.tolist() == [1, -1, 1, 1, -1, 1, 1]
    expected = [expected[k] for k in (0, 1, 2, 2, 3, 4, 4)]
    assert np.array_equal(noted.rows, np.array(expected))


def test_the_near_miss_is_the_boundary_that_the_policy_came_closest_to_merging():
    # 1 and 2 are one object, 3 and 4 objects of their own; of 12|3 and 12|4 the second is weaker.
    superpixels = np.array([[3, 1, 2, 4]])
    cue = np.array([[0.9, 0.2, 0.0, 0.8]])
    graph = region_graph(superpixels, cue)
    features = feature_map(graph, "minimal")
    volume = training_volume(graph, [np.array([[7, 5, 5, 8]])], None, 0)
    noted = volume.strict(features, MeanPolicy(), NOBODY, silent, near_misses=True)
    after = feature_matrix(region_graph(np.array([[3, 1, 1, 4]]), cue), features)
    assert noted.labels.tolist() == [-1, 1, 1, 1]
    assert np.array_equal(noted.rows[1], after[1])  # boundaries in order: 1|3, 1|4


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.integers(2, 4))
def test_an_epoch_ends_at_the_connected_parts_of_the_best_agglomeration(
    seed, mean, near_misses, room
):
    rng = np.random.default_rng(seed)
    superpixels = rng.integers(1, 15, (6, 5))
    gold = rng.integers(0, 4, (6, 5))
    graph = region_graph(superpixels, rng.random((6, 5)))
    features = feature_map(graph, "minimal")
    volume = training_volume(graph, [gold], None, 0)
    policy = MeanPolicy() if mean else RandomPolicy(seed % 1000)
    ends = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_training_volume, "_ROOM", room)
        original = _training_volume.collect_strict

        def watched(adjacency, *args):
            over = original(adjacency, *args)
            ends.update(ends=adjacency.ends, labels=args[6])
            return over

        patch.setattr(_training_volume, "collect_strict", watched)
        noted = volume.strict(features, policy, NOBODY, silent, near_misses=near_misses)
    # What is left are boundaries that should not be merged, or of which nothing is known.
    alive = ends["ends"][:, 0] >= 0
    assert (ends["labels"][alive] >= 0).all()
    # Each merge is one example labelled -1: superpixels less connected parts of A*.
    known = volume.assigned[0]
    part = np.arange(graph.n_regions + 1)
    for u, v in itertools.chain(*[graph.edges.tolist()] * graph.n_regions):
        if known[u] == known[v] > 0:
            part[[u, v]] = min(part[u], part[v])
    parts = len(np.unique(part[1:]))
    assert (noted.labels < 0).sum() == graph.n_regions - parts
    left = {tuple(sorted((part[u], part[v]))) for u, v in graph.edges.tolist()
            if part[u] != part[v] and known[u] and known[v]}  # fmt: skip
    assert (noted.labels > 0).sum() >= len(left)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_lash_notes_the_sign_of_the_change_in_the_rand_index(seed, n_golds):
    rng = np.random.default_rng(seed)
    superpixels = rng.integers(1, 9, (4, 5))
    golds = [rng.integers(0 if n_golds == 1 else 1, 4, (4, 5)) for _ in range(n_golds)]
    graph = region_graph(superpixels, rng.random((4, 5)))
    features = feature_map(graph, "minimal")
    volume = training_volume(graph, golds, None, 0)
    policy = RandomPolicy(3)
    noted = volume.loose(features, policy, NOBODY, silent)
    known = (volume.assigned > 0).any(axis=0)
    forbidden = [k for k in range(1, graph.n_regions + 1) if not known[k]]
    tree = agglomerate(graph, policy, locked=graph.ids[forbidden].tolist())
    expected = []
    before = tree.segment(merges=0)
    for k in range(tree.n_merges):
        after = tree.segment(merges=k + 1)
        message = 0
        for gold in golds:
            seen = gold > 0
            if seen.sum() > 1:
                change = rand_score(gold[seen], after[seen]) - rand_score(gold[seen], before[seen])
                message += np.sign(np.round(change, 12))
        if message:
            expected.append(-int(np.sign(message)))
        before = after
    assert noted.labels.tolist() == expected


def test_cells_of_two_regions_merge_like_sorted_lists():
    head = np.array([-1, 0, 3])
    following = np.array([1, 2, -1, 4, -1])
    key = np.array([1, 4, 9, 0, 4])
    count = np.array([10, 20, 30, 5, 7])
    cells = _collect_examples.Cells(
        head, following, key, count, np.zeros(10, int), np.zeros((1, 3))
    )
    function = _collect_examples.merge_cells
    getattr(function, "py_func", function)(1, 2, cells)
    at, seen = head[1], []
    while at >= 0:
        seen.append((int(key[at]), int(count[at])))
        at = following[at]
    assert seen == [(0, 5), (1, 10), (4, 27), (9, 30)]


def test_exact_duplicates_are_removed_and_order_is_kept():
    rows = np.array([[1, 2], [0.0, 1], [1, 2], [-0.0, 1], [1, 2]], np.float32)
    labels = np.array([1, -1, 1, -1, -1], np.int8)
    kept = Examples(rows, labels, np.arange(5)).unique()
    assert kept.owners.tolist() == [0, 1, 4]


def test_held_out_scores_in_threads_are_those_of_one_call():
    rng = np.random.default_rng(0)
    rows = rng.random((301, 3), np.float32)
    labels = np.where(rows[:, 0] + rng.normal(0, 0.2, 301) > 0.5, 1, -1).astype(np.int8)
    examples = Examples(rows, labels, rng.integers(0, 12, 301))
    fitted = fit(examples, "forest", ForestSettings(trees=7), 12, 0, None, "fit")
    whole = fitted.model.predict_out_of_bag(rows, examples.owners, fitted.in_bag)
    np.testing.assert_array_equal(held_out_scores(fitted, examples), whole)
    assert len(np.unique(whole)) > 10


@pytest.mark.compiled
@pytest.mark.parametrize("strategy", ["flat", "agglo", "lash", "mixed"])
@pytest.mark.parametrize("start", ["flat", "mean", "random"])
def test_training_is_repeatable_and_separates_the_halves(strategy, start):
    superpixels, cue, gold = checkerboard((12, 12))
    graph = region_graph(superpixels, cue)
    options = {"strategy": strategy, "start": start, "epochs": 2, "preset": "minimal"}
    one, again, other = (train(graph, gold, seed=seed, **options) for seed in (1, 1, 2))
    assert np.array_equal(one.model.values, again.model.values)
    assert np.array_equal(one.model.nodes, again.model.nodes)
    assert not np.array_equal(one.model.values, other.model.values)
    assert one.record == again.record
    if strategy in ("agglo", "mixed") and start == "flat":
        labels = agglomerate(graph, one).segment(0.5)
        assert len(np.unique(labels)) == 2
        assert len(np.unique(np.stack([labels, gold]).reshape(2, -1), axis=1).T) == 2


@pytest.mark.compiled
def test_a_policy_has_trees_of_its_last_epochs_in_equal_parts():
    superpixels, cue, gold = checkerboard((12, 24), side=2)
    gold = gold + 2 * (np.indices(gold.shape)[0] // 3)  # enough segments for bags of segments
    graph = region_graph(superpixels, cue)
    rows = feature_matrix(graph, feature_map(graph))

    def learned(pooled, trees):
        single = {}
        settings = ForestSettings(trees=trees, early_trees=6, pooled_epochs=pooled)
        policy = train(
            graph, gold, epochs=3, settings=settings,
            each_epoch=lambda epoch, policy: single.update({epoch: policy.model}),
        )  # fmt: skip
        return policy, single

    policy, _ = learned(2, 8)
    _, single = learned(1, 8)
    assert len(policy.model.roots) == 8
    second, third = (single[epoch].first(4).predict(rows) for epoch in (2, 3))
    assert not np.array_equal(second, third), "test invalid"
    assert policy.model.predict(rows) == pytest.approx((second + third) / 2)
    assert policy.record["held_out"]


@pytest.mark.compiled
def test_neutral_moves_the_threshold_and_leaves_the_order_of_merges(tmp_path):
    superpixels, cue, gold = checkerboard((12, 24))
    graph = region_graph(superpixels, cue)

    def learned(strategy, neutral):
        settings = ForestSettings(trees=20, neutral=neutral)
        options = {"strategy": strategy, "settings": settings, "preset": "minimal", "epochs": 2}
        return train(graph, gold, **options)

    plain, moved = learned("agglo", 0.5), learned("agglo", 1.0)  # a factor without rounding
    trees = [
        agglomerate(graph, one) for one in (plain, load_policy(moved.save(tmp_path / "p.npz")))
    ]
    assert trees[1].winners.tolist() == trees[0].winners.tolist()
    assert (trees[1].priorities == trees[0].priorities / 2).all()
    assert trees[0].priorities.max() > 0, "test invalid"
    assert moved.record["calibration"] == plain.record["calibration"], "that of the trees"
    flat = [learned("flat", neutral).model.values for neutral in (0.5, 1.0)]
    assert np.array_equal(*flat), "only agglo has near misses"
    with refuses("neutral", SetOption):
        ForestSettings(neutral=0.4)


@pytest.mark.compiled
@pytest.mark.parametrize("ndim", [2, 3, 4])
@pytest.mark.parametrize("classifier", ["forest", "logistic"])
def test_any_dimension_and_a_saved_policy_gives_the_same_tree(ndim, classifier, tmp_path):
    superpixels, cue, gold = checkerboard((6,) * ndim if ndim < 4 else (4, 4, 4, 8), side=2)
    graph = region_graph(superpixels, cue)
    preset = "natural" if ndim == 2 else "angles"  # hulls are of planes
    policy = train(graph, gold, epochs=1, preset=preset, classifier=classifier)
    path = policy.save(tmp_path / "policy.npz")
    trees = [agglomerate(graph, one) for one in (policy, load_policy(path))]
    assert np.array_equal(trees[0].priorities, trees[1].priorities)
    assert np.array_equal(trees[0].winners, trees[1].winners)
    assert trees[0].n_merges == graph.n_regions - 1


@pytest.mark.compiled
def test_gold_that_covers_a_part_teaches_what_a_crop_of_it_teaches():
    superpixels, cue, gold = checkerboard((8, 12))
    partial = gold.copy()
    partial[4:] = 0
    whole = training_volume(region_graph(superpixels, cue), [partial], None, 0)
    crop = training_volume(region_graph(superpixels[:4], cue[:4]), [gold[:4]], None, 0)
    assert (whole.assigned[0][superpixels[4:].min() :] == 0).all()
    features = feature_map(whole.graph, "minimal")
    # Sizes and cue statistics agree; contact shares differ, as the rest of the image is there.
    same = [k for k, name in enumerate(features.names) if "contact_share" not in name]
    for how in ("flat", "strict"):
        if how == "flat":
            one, two = (volume.flat(features) for volume in (whole, crop))
        else:
            one, two = (
                volume.strict(features, MeanPolicy(), NOBODY, silent) for volume in (whole, crop)
            )
        assert one.labels.tolist() == two.labels.tolist()
        assert np.array_equal(one.rows[:, same], two.rows[:, same])
    masked = training_volume(whole.graph, [gold], partial > 0, 0)
    assert np.array_equal(masked.assigned, whole.assigned)


@pytest.mark.compiled
def test_two_volumes_together_are_the_examples_of_both():
    boards = [checkerboard((8, 8), seed) for seed in (0, 1)]
    graphs = [region_graph(superpixels, cue) for superpixels, cue, _ in boards]
    together = train([(g, one[2]) for g, one in zip(graphs, boards, strict=True)],
                     strategy="flat", preset="minimal")  # fmt: skip
    alone = [
        train(g, one[2], strategy="flat", preset="minimal")
        for g, one in zip(graphs, boards, strict=True)
    ]
    assert together.record["examples"] == sum(policy.record["examples"] for policy in alone)


@pytest.mark.compiled
def test_several_golds_of_one_image():
    superpixels, cue, gold = checkerboard((8, 8))
    graph = region_graph(superpixels, cue)
    agree = train(graph, [gold, gold], strategy="flat", preset="minimal")
    alone = train(graph, gold, strategy="flat", preset="minimal")
    assert np.array_equal(agree.model.values, alone.model.values)
    opposite = np.ones_like(gold)  # everything is one: disagrees where gold keeps apart
    mixed = train(graph, [gold, gold, opposite], preset="minimal", epochs=1)
    assert mixed.record["to_merge"] < mixed.record["examples"]


@pytest.mark.compiled
def test_progress_and_cancel():
    superpixels, cue, gold = checkerboard((12, 12))
    graph = region_graph(superpixels, cue)
    seen = []
    train(graph, gold, epochs=2, preset="minimal", progress=seen.append)
    assert {message.stage for message in seen} == {"agglomerate", "fit"}
    epochs = [message.detail.partition(",")[0] for message in seen]
    assert epochs == sorted(epochs)
    assert epochs[-1] == "epoch 2"
    shares = [message.share for message in seen]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1
    for stage in ("agglomerate", "fit"):

        def stop(message, stage=stage):
            if message.stage == stage and message.detail.startswith("epoch 1,"):
                raise Cancelled

        with pytest.raises(Cancelled):
            train(graph, gold, epochs=2, preset="minimal", progress=stop)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"strategy": "deep"}, ("strategy", SetOption("strategy", "flat"))),
        ({"start": "gold"}, ("start", SetOption("start", "flat"))),
        ({"classifier": "svm"}, ("classifier", SetOption("classifier", "forest"))),
        ({"preset": "big"}, ("preset", SetOption("preset", "shape"))),
        ({"epochs": -1}, ("epochs", SetOption("epochs", 0))),
        ({"seed": 1.5}, ("seed", SetOption("seed", 0))),
        ({"gold": None}, ("gold", SetOption("gold"))),
        ({"gold": np.ones((6, 6), int)}, ("gold", "annotate at least two segments, one of them")),
        ({"gold": np.zeros((6, 6), int)}, ("gold", "annotate at least two segments, one of them")),
        ({"gold": np.ones((5, 6), int)}, ("superpixels", "use the same crop of both")),
    ],
)
def test_refusals(options, refusal):
    superpixels, cue, gold = checkerboard()
    options = {"gold": gold, **options}
    with refuses(*refusal):
        train(region_graph(superpixels, cue), options.pop("gold"), **options)


def test_a_policy_for_other_cues_or_bins_is_refused_with_the_difference():
    superpixels, cue, gold = checkerboard()
    policy = train(region_graph(superpixels, cue), gold, strategy="flat", preset="minimal")
    for graph, facts in (
        (region_graph(superpixels, {"mito": cue}), ("['mito']", "['boundary']")),
        (region_graph(superpixels, cue, bins=10), ("bins=10", "25")),
        (region_graph(superpixels, cue, statistics="mean"), ("statistics='mean'", "'all'")),
    ):
        with refuses("policy", "build the graph as for the training", facts=facts):
            agglomerate(graph, policy)


@pytest.mark.compiled
def test_extra_examples_are_learned_from_and_checked():
    superpixels, cue, gold = checkerboard((12, 12))
    graph = region_graph(superpixels, cue)
    options = {"epochs": 1, "preset": "minimal"}
    plain = train(graph, gold, **options)
    rows = feature_matrix(graph, plain.features)[:4]
    # A person insists, many times over, that what the gold standard joins must stay apart.
    many = np.repeat(rows, 50, axis=0) + np.linspace(0, 1e-3, 200)[:, None]
    taught = train(graph, gold, extra=(many, np.ones(200)), **options)
    assert taught.record["extra_examples"] == 200
    assert taught.record["examples"] > plain.record["examples"]
    assert taught.model.predict(rows).mean() > plain.model.predict(rows).mean()
    for bad in (
        (rows[:, 1:], np.ones(4)),
        (rows, np.ones(3)),
        (rows, np.zeros(4)),
        (rows * np.nan, np.ones(4)),
    ):
        with refuses("extra"):
            train(graph, gold, extra=bad, **options)


@pytest.mark.compiled
def test_the_same_training_gives_the_same_file(tmp_path):
    superpixels, cue, gold = checkerboard((12, 12))
    graph = region_graph(superpixels, cue)
    one, again = (
        train(graph, gold, epochs=1, preset="minimal").save(tmp_path / f"{k}.npz").read_bytes()
        for k in range(2)
    )
    assert one == again


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda graph, gold: train((graph, gold)), "graph"),
        (lambda graph, gold: train(gold), "graph"),
        (lambda graph, gold: train([]), "graph"),
        (lambda graph, gold: train([(gold, gold)]), "graph"),
        (lambda graph, gold: train(graph), "gold"),
        (lambda graph, gold: train(graph, gold, preset=["em"]), "preset"),
        (lambda graph, gold: train(graph, gold, strategy=["flat"]), "strategy"),
        (lambda graph, gold: train(graph, gold, progress=True), "progress"),
        (lambda graph, gold: train(graph, gold, epochs=-1), "epochs"),
        (lambda graph, gold: train(graph, gold, seed=0.5), "seed"),
        (lambda graph, gold: agglomerate(graph, progress=True), "progress"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(call, argument):
    superpixels, cue, gold = checkerboard((12, 12))
    with pytest.raises(InvalidInput) as refusal:
        call(region_graph(superpixels, cue), gold)
    assert refusal.value.argument == argument
    assert refusal.value.remedy is not None


def test_gold_whose_axes_are_exchanged_gives_a_warning():
    sample = agglo.sample("cells2d")
    superpixels = agglo.oversegment(sample.cues["boundary"])
    graph = agglo.region_graph(superpixels, sample.cues)
    options = {"preset": "minimal", "strategy": "flat"}
    agglo.train(graph, sample.gold, **options)  # warnings are errors
    with pytest.warns(DataWarning, match="no better than chance") as caught:
        agglo.train(graph, np.ascontiguousarray(sample.gold.T), **options)
    assert caught[0].message.argument == "gold"
