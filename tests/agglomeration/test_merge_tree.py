"""The merge tree against sets of superpixels, merged one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from napari_agglo import InvalidInput, MergeTree, agglomerate, region_graph
from napari_agglo.errors import SetOption
from napari_agglo.volumes import DenseLabels, dense_labels


@st.composite
def trees(draw, most=15):
    """Draw trees, or forests, of random merges with priorities that rise and fall."""
    n = draw(st.integers(1, most))
    ids = np.array([0, *sorted(draw(st.sets(st.integers(1, 2**50), min_size=n, max_size=n)))])
    alive = list(range(1, n + 1))
    winners, losers = [], []
    for _ in range(draw(st.integers(0, n - 1))):
        pair = draw(st.lists(st.sampled_from(alive), min_size=2, max_size=2, unique=True))
        winners.append(min(pair))
        losers.append(max(pair))
        alive.remove(max(pair))
    m = len(winners)
    priorities = draw(st.lists(st.integers(0, 10), min_size=m, max_size=m))
    more = draw(st.lists(st.integers(0, n), min_size=n + 1, max_size=n + 1))
    image = draw(st.permutations([*range(n + 1), *more]))
    return MergeTree(
        DenseLabels(
            np.array(image, np.uint32).reshape(2, -1), ids.astype(np.uint64), np.dtype(np.int64)
        ),
        np.array(winners, np.int64),
        np.array(losers, np.int64),
        np.array(priorities, float) / 10,
    )


def members_after(tree, merges):
    """Return the sets of dense ids after so many merges, by region."""
    members = {k: {k} for k in range(1, tree.n_superpixels + 1)}
    for winner, loser in zip(tree.winners[:merges], tree.losers[:merges], strict=True):
        members[int(winner)] |= members.pop(int(loser))
    return members


def names_after(tree, merges):
    """Return the name of each region after so many merges: the larger of two passes its name on."""
    members = {k: {k} for k in range(1, tree.n_superpixels + 1)}
    names = {k: k for k in members}
    for winner, loser in zip(tree.winners[:merges], tree.losers[:merges], strict=True):
        w, v = int(winner), int(loser)
        of_w, of_v = (int(np.isin(tree.superpixels.image, [*members[k]]).sum()) for k in (w, v))
        other = names.pop(v)
        names[w] = other if of_v > of_w else names[w]
        members[w] |= members.pop(v)
    return names


def nodes_of(tree):
    """Return the set of dense ids of every node, by its number."""
    nodes = {k: {k} for k in range(1, tree.n_superpixels + 1)}
    current = {k: k for k in nodes}
    for k, (winner, loser) in enumerate(zip(tree.winners, tree.losers, strict=True)):
        node = tree.n_superpixels + 1 + k
        nodes[node] = nodes[current[int(winner)]] | nodes[current[int(loser)]]
        current[int(winner)] = node
    return nodes


@given(trees())
def test_lut_after_every_merge(tree):
    for merges in range(tree.n_merges + 1):
        lut = tree.lut(merges=merges)
        assert lut.dtype == np.uint32
        assert lut[0] == 0
        names = names_after(tree, merges)
        for region, members in members_after(tree, merges).items():
            assert set(np.flatnonzero(lut == names[region]).tolist()) == members
            assert names[region] in members


def test_a_large_segment_keeps_its_name_while_it_takes_in_small_ones():
    tree = agglomerate(region_graph(np.array([[1, 2, 3, 3, 3, 4]]), np.zeros((1, 6))))
    assert tree.winners.tolist() == [1, 1, 1], "test invalid: 3 must meet smaller ids"
    assert [tree.segment(merges=k)[0, 3] for k in range(4)] == [3, 3, 3, 3]
    assert tree.segment(merges=1).tolist() == [[1, 1, 3, 3, 3, 4]], "of two equal ones the first"


@given(trees())
def test_sizes_need_not_be_given(tree):
    counted = np.bincount(tree.superpixels.image.reshape(-1), minlength=tree.n_superpixels + 1)
    given = MergeTree(tree.superpixels, tree.winners, tree.losers, tree.priorities, counted)
    assert np.array_equal(given.lut(1.0), tree.lut(1.0))
    with refuses("sizes", "leave it out, and pixels are counted"):
        MergeTree(tree.superpixels, tree.winners, tree.losers, tree.priorities, counted[1:])


@given(trees(), st.floats(0, 1) | st.sampled_from([-np.inf, -5e-324, np.inf]))
def test_a_threshold_does_the_merges_up_to_the_first_above_it(tree, threshold):
    done = 0
    while done < tree.n_merges and tree.priorities[done] <= threshold:
        done += 1
    assert tree.n_merges_at(threshold) == done
    assert np.array_equal(tree.lut(threshold), tree.lut(merges=done))
    assert tree.n_segments(threshold) == tree.n_superpixels - done


@given(trees(), st.floats(0, 1), st.floats(0, 1))
def test_partitions_are_nested(tree, a, b):
    fine, coarse = tree.lut(min(a, b)), tree.lut(max(a, b))
    assert np.array_equal(coarse[fine], coarse)


@given(trees())
def test_nothing_changes_between_thresholds(tree):
    steps = tree.thresholds()
    states = [tree.lut(-np.inf)]
    for at, after in itertools.pairwise([*steps, 1.0]):
        states.append(tree.lut(at))
        assert np.array_equal(tree.lut(at), tree.lut((at + after) / 2))
    for before, now in itertools.pairwise(states):
        assert not np.array_equal(before, now)


@given(trees(), st.floats(0, 1))
def test_segments_are_in_the_users_ids_and_type(tree, threshold):
    image = tree.superpixels.ids[tree.lut(threshold)][tree.superpixels.image]
    whole = tree.segment(threshold)
    assert whole.dtype == np.int64
    assert np.array_equal(whole, image)
    for index in (1, np.s_[:, 0], np.s_[..., 1:], np.s_[1, 0]):
        part = tree.segment(threshold, index=index)
        assert np.array_equal(part, image[index])
        assert part.shape == np.shape(image[index])


@given(trees())
def test_nodes_parents_children_members(tree):
    nodes = nodes_of(tree)
    assert len(tree.parents) == len(nodes) + 1
    for node, members in nodes.items():
        assert tree.members(node).tolist() == sorted(members)
        above = tree.ancestors(node).tolist()
        assert [nodes[a] for a in above] == sorted(
            (m for n, m in nodes.items() if m > members), key=len
        )
    for k, (left, right) in enumerate(tree.children.tolist()):
        assert nodes[left] | nodes[right] == nodes[tree.n_superpixels + 1 + k]
        assert min(nodes[left]) == tree.winners[k]
        assert min(nodes[right]) == tree.losers[k]
        assert tree.node_height(tree.n_superpixels + 1 + k) == tree.heights[k]
    assert tree.node_height(1) == -np.inf


@given(trees(most=8))
def test_lowest_common_ancestor(tree):
    nodes = nodes_of(tree)
    for a in nodes:
        for b in nodes:
            both = [n for n, members in nodes.items() if nodes[a] | nodes[b] <= members]
            expected = min(both, key=lambda n: (len(nodes[n]), n), default=None)
            assert tree.lowest_common_ancestor(a, b) == expected


@given(trees())
def test_csv_says_it_all(tmp_path_factory, tree):
    path = tree.to_csv(tmp_path_factory.mktemp("tree") / "tree.csv")
    table = pd.read_csv(path)
    nodes = nodes_of(tree)
    for k, row in enumerate(table.itertuples()):
        before, after = (tree.superpixels.ids[tree.lut(merges=m)] for m in (k, k + 1))
        names = [{before[s] for s in nodes[node]} for node in (row.left, row.right)]
        assert {row.kept} in names
        assert {row.dropped} == next(name for name in names if name != {row.kept})
        assert {row.kept} == {after[s] for s in nodes[row.parent]}, "the name in the labels"
        ids = tree.superpixels.ids
        assert row.winner == min(ids[s] for s in nodes[row.left]), "as in tree.winners"
        assert row.loser == min(ids[s] for s in nodes[row.right])
    assert table["priority"].tolist() == tree.priorities.tolist()
    assert table["height"].tolist() == tree.heights.tolist()
    assert table[["left", "right"]].values.tolist() == tree.children.tolist()


def test_a_chain_of_many_merges_needs_no_recursion():
    n = 30_000
    ids = np.arange(n + 1, dtype=np.uint64)
    tree = MergeTree(
        DenseLabels(np.arange(n, dtype=np.uint32) + 1, ids, np.dtype(np.uint16)),
        np.ones(n - 1, np.int64),
        np.arange(2, n + 1),
        np.linspace(0, 1, n - 1),
    )
    assert set(tree.lut(1.0)[1:].tolist()) == {1}
    assert len(tree.members(2 * n - 1)) == n
    assert tree.lowest_common_ancestor(1, n) == 2 * n - 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.int64, np.uint64, ">i4"])
def test_labels_come_back_in_their_own_type(dtype):
    labels = np.array([[1, 1, 100], [9, 9, 100]]).astype(dtype)
    tree = agglomerate(region_graph(labels, np.zeros((2, 3))))
    out = tree.segment(merges=0)
    assert out.dtype == np.dtype(dtype).newbyteorder("=")
    assert np.array_equal(out, labels)
    assert np.array_equal(tree.segment(1.0), np.ones((2, 3)))


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda t: t.lut(float("nan")), ("threshold", "choose one such as 0.5")),
        (lambda t: t.lut("0.5"), ("threshold", "choose one such as 0.5")),
        (lambda t: t.lut(merges=0.5), ("merges", SetOption("merges", 1))),
        (lambda t: t.lut(merges=True), ("merges", SetOption("merges", 1))),
        (lambda t: t.members(1.5), ("node", "take a node of `children` or `ancestors`")),
        (lambda t: t.lut(0.5, merges=1), ("merges", "leave one of them out")),
        (lambda t: t.lut(merges=2), ("merges", SetOption("merges", 1))),
        (lambda t: t.members(0), ("node", "take a node of `children` or `ancestors`")),
        (lambda t: t.ancestors(4), ("node", "take a node of `children` or `ancestors`")),
    ],
)
def test_refusals(call, refusal):
    tree = agglomerate(region_graph(np.array([1, 2]), np.zeros(2)))
    with refuses(*refusal):
        call(tree)


@pytest.mark.parametrize(
    ("merges", "refusal"),
    [
        (([1], [2, 3], [0.1]), ("priorities", "pass three values for each merge")),
        (([1], [10**9], [0.1]), ("winners", "number regions by their smallest")),
        (([0], [1], [0.1]), ("winners", "number regions by their smallest")),
        (([2], [1], [0.1]), ("winners", "number regions by their smallest")),
        (([1, 1], [3, 3], [0.1, 0.2]), ("losers", "name the winner of that merge instead")),
        (([1, 2], [2, 3], [0.1, 0.2]), ("losers", "name the winner of that merge instead")),
        (([1], [2], [float("nan")]), ("priorities", "leave such merges out")),
    ],
)
def test_merges_that_cannot_be_are_refused(merges, refusal):
    ids = np.arange(4, dtype=np.uint64)
    labels = DenseLabels(np.array([1, 2, 3], np.uint32), ids, np.dtype(int))
    with refuses(*refusal):
        MergeTree(labels, *(np.array(part) for part in merges))


@pytest.mark.parametrize(
    ("parts", "argument"),
    [
        ((np.array([[1, 2]]), *(np.zeros(0, int),) * 2, np.zeros(0)), "superpixels"),
        ((None, [], np.zeros(0, int), np.zeros(0)), "winners"),
        ((None, np.zeros(0, int), np.zeros((0, 2), int), np.zeros(0)), "losers"),
        ((None, np.zeros(0, int), np.zeros(0, int), np.array(["a"])), "priorities"),
        ((None, np.zeros(0), np.zeros(0, int), np.zeros(0)), "winners"),
    ],
)
def test_invalid_arrays_of_merges_are_refused(parts, argument):
    labels, *rest = parts
    if labels is None:
        labels = DenseLabels(np.array([1], np.uint32), np.arange(2, dtype=np.uint64), np.dtype(int))
    with pytest.raises(InvalidInput) as refusal:
        MergeTree(labels, *rest)
    assert refusal.value.argument == argument
    assert refusal.value.remedy is not None


def test_a_threshold_that_no_priority_can_reach_is_refused():
    boundary = np.random.default_rng(0).random((8, 8))
    tree = agglomerate(region_graph(np.arange(1, 65).reshape(8, 8), boundary))
    for threshold, option in ((30, "merges"), (30.0, "merges"), (5.5, None), (-1, None)):
        for method in (tree.segment, tree.lut, tree.n_segments, tree.n_merges_at):
            with pytest.raises(InvalidInput) as refusal:
                method(threshold)
            assert refusal.value.argument == "threshold"
            counted = method in (tree.segment, tree.lut)  # these have the parameter `merges`
            assert getattr(refusal.value.remedy, "option", None) == (option if counted else None)
    assert len(np.unique(tree.segment(np.inf))) == 1
    assert len(np.unique(tree.segment(-np.inf))) == 64
    above = MergeTree(tree.superpixels, tree.winners, tree.losers, tree.priorities + 4)
    assert len(np.unique(above.segment(30))) == 1, "other priorities, other thresholds"


def test_the_text_of_a_tree_has_no_number_for_a_merge_before_any():
    """Edits of a session at the state before any merge are merges at the number below 0."""
    labels = dense_labels(np.array([[1, 2, 3]]))
    tree = MergeTree(labels, np.array([1, 1]), np.array([2, 3]), np.array([-5e-324, 0.25]))
    assert "before any merge to 0.25" in repr(tree)
