"""The four promises of edits, on the slow oracle T(E), under random edits at mixed scales."""

from __future__ import annotations

import math
import zlib

from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.edits import Cut, Merge, above, asleep, constraints, tree_of_edits
from oracles.proofreader import SCALES, draw_edit


@st.composite
def neighbourhoods(draw, most=7):
    """Draw small graphs, most of them connected."""
    n = draw(st.integers(2, most))
    pairs = [(u, v) for u in range(1, n + 1) for v in range(u + 1, n + 1)]
    edges = set(draw(st.lists(st.sampled_from(pairs), max_size=2 * n)))
    edges |= {(k, k + 1) for k in range(1, n) if draw(st.booleans()) or draw(st.booleans())}
    neighbours = {k: set() for k in range(1, n + 1)}
    for u, v in edges:
        neighbours[u].add(v)
        neighbours[v].add(u)
    return neighbours


def adversary(seed):
    """Return a policy that says anything of any two regions, the same each time it is asked."""

    def score(u, v):
        pair = sorted((sorted(u), sorted(v)))
        return zlib.crc32(repr((seed, pair)).encode()) % 9 / 8

    return score


@st.composite
def histories(draw, most=6):
    """Draw a graph, a policy, and edits with the tree before each and what must be seen after."""
    neighbours = draw(neighbourhoods())
    score = adversary(draw(st.integers(0, 2**16)))
    edits, steps = [], []
    tree = tree_of_edits(neighbours, score)
    for _ in range(draw(st.integers(1, most))):
        scale = draw(SCALES)
        seen = tree.partition(scale)
        locks = constraints(edits)[1]
        drawn = draw_edit(draw, neighbours, seen, locks, scale)
        if drawn is None:
            break
        edit, expected = drawn
        edits = [*edits, edit]
        after = tree_of_edits(neighbours, score, edits)
        steps.append((edit, expected, tree, after))
        tree = after
    return neighbours, score, edits, steps


def scales_of(*trees):
    values = {s for tree in trees for s in tree.scales()}
    return sorted({-1.0, 2.0, *values, *(math.nextafter(s, -1) for s in values)})


@examples(300)
@given(histories())
def test_an_edit_gives_the_expected_segments_at_its_scale(history):
    *_, steps = history
    for edit, expected, _, after in steps:
        assert after.partition(edit.scale) == expected


@examples(200)
@given(histories())
def test_below_its_scale_a_merge_changes_nothing(history):
    *_, steps = history
    for edit, _, before, after in steps:
        if isinstance(edit, Merge):
            early = [m for m in before.merges if m.birth < edit.scale]
            assert [m for m in after.merges if m.birth < edit.scale] == early


@examples(200)
@given(histories())
def test_a_cut_holds_at_every_scale_until_a_newer_edit_crosses_it(history):
    *_, steps = history
    for n, (edit, _, _, after) in enumerate(steps):
        if isinstance(edit, Cut):
            parts = [frozenset(part.tolist()) for part in edit.parts]
            for scale in scales_of(after):
                for region in after.partition(scale):
                    assert sum(bool(region & part) for part in parts) <= 1
            last = steps[-1][3]
            for merge in last.merges:
                inside = [
                    {k for k, part in enumerate(parts) if side & part}
                    for side in (merge.first, merge.second)
                ]
                if all(inside) and not inside[0] & inside[1]:
                    assert merge.edit is not None
                    assert merge.edit > n


@examples(200)
@given(histories())
def test_locked_segments_are_whole_and_alone_at_every_scale(history):
    _, _, edits, steps = history
    for n, (*_, after) in enumerate(steps):
        for lock in constraints(edits[: n + 1])[1]:
            assert all(lock in after.partition(scale) for scale in scales_of(after))


@examples(200)
@given(histories(), st.data())
def test_restarting_from_any_frontier_gives_the_same_tail(history, data):
    neighbours, score, edits, steps = history
    tree = steps[-1][3] if steps else tree_of_edits(neighbours, score)
    scale = data.draw(st.sampled_from(scales_of(tree)))
    again = tree_of_edits(neighbours, score, edits, tree.partition(scale), scale)
    tail = [m for m in tree.merges if m.birth > scale]
    assert len(again.merges) == len(tail)
    for was, now in zip(tail, again.merges, strict=True):
        assert (was.first, was.second, was.priority, was.edit) == (
            now.first,
            now.second,
            now.priority,
            now.edit,
        )
        assert was.birth == max(now.birth, above(scale)) or was.edit is not None


@given(histories())
def test_partitions_are_nested_and_births_ascend(history):
    *_, steps = history
    for *_, after in steps:
        births = [merge.birth for merge in after.merges]
        assert births == sorted(births)


@given(neighbourhoods(), st.integers(0, 2**16))
def test_without_edits_it_is_plain_greedy_agglomeration(neighbours, seed):
    score = adversary(seed)
    regions = {frozenset([k]) for k in neighbours}
    plain = []
    while True:
        keys = sorted(
            (score(u, v), min(u), min(v))
            for u in regions
            for v in regions
            if min(u) < min(v) and any(neighbours[s] & v for s in u)
        )
        if not keys:
            break
        priority, a, b = keys[0]
        u, v = (next(r for r in regions if min(r) == k) for k in (a, b))
        regions = regions - {u, v} | {u | v}
        plain.append((u, v, priority))
    tree = tree_of_edits(neighbours, score)
    assert [(m.first, m.second, m.priority) for m in tree.merges] == plain
    highest = -math.inf
    for merge in tree.merges:
        highest = max(highest, merge.priority)
        assert merge.birth == highest


def test_the_histories_are_worth_their_name():
    """The drawn histories have sleeping edits, superseded cuts and unlocked segments."""
    seen = set()

    @settings(max_examples=300, database=None)
    @given(histories())
    def look(history):
        _, _, edits, steps = history
        for edit, *_, after in steps:
            seen.add(type(edit).__name__)
            if any(m.edit is not None and isinstance(edits[m.edit], Cut) for m in after.merges):
                seen.add("assembled")
        for index, _ in asleep(steps[-1][3], edits) if steps else ():
            seen.add("asleep " + type(edits[index]).__name__)

    look()
    assert seen >= {"Merge", "Cut", "Lock", "Unlock", "asleep Merge", "asleep Cut", "assembled"}
