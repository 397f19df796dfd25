"""Promises of a session, on images small enough to draw."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from oracles.disks import Disk, tree_of
from oracles.repairs import random_forest
from oracles.sessions import observed
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput, Session
from napari_agglo.errors import SetOption
from napari_agglo.evaluate import split_vi
from napari_agglo.features import feature_map
from napari_agglo.graph import contracted
from napari_agglo.policy import LearnedPolicy
from napari_agglo.session import NotSaved, Refused, SessionDamaged, SessionLocked

# By the mean, 5 and 6 are one at 0.3, 7 joins them at 0.5, and 900 later.
SUPERPIXELS = np.array([[5, 5, 6, 6, 7, 7, 900, 900]] * 3)
BOUNDARY = np.array([[0.0, 0.1, 0.1, 0.3, 0.7, 0.1, 0.9, 0.8]] * 3)
GOLD = np.array([[1, 1, 1, 1, 1, 2, 2, 2]] * 3)


def graph(**options):
    return agglo.region_graph(SUPERPIXELS, {"boundary": BOUNDARY}, **options)


@pytest.fixture
def session(tmp_path):
    with Session.create(tmp_path / "cells.agglo", graph(), gold=GOLD) as made:
        made.threshold = 0.3
        yield made


def row(session):
    return session.labels()[0].tolist()


def test_segments_at_a_threshold(session):
    assert row(session) == [5, 5, 5, 5, 7, 7, 900, 900]
    assert session.labels(np.s_[1]).tolist() == row(session)
    assert session.labels(np.s_[:, 3:5]).tolist() == [[5, 7]] * 3
    assert session.segments.ids().tolist() == [5, 7, 900]
    assert len(session.segments) == 3
    assert session.segments.members(5).tolist() == [5, 6]
    assert session.segments.neighbours(7).tolist() == [5, 900]
    assert session.segments.superpixel_at((0, 2)) == 6
    assert session.segments.at((0, 2)) == 5
    assert (session.lut()[session.graph.superpixels.image] == session.labels()).all()
    assert "4 superpixels" in repr(session)


def test_the_table_for_a_screen_is_no_copy_and_cannot_be_written(session):
    dense = session.lut(dense=True)
    assert dense.dtype == np.uint32
    assert (session.graph.ids[dense] == session.lut()).all()
    assert np.shares_memory(dense, session.lut(dense=True))
    with pytest.raises(ValueError, match="read-only"):
        dense[1] = 2
    session.merge(7, 5)
    assert (session.graph.ids[session.lut(dense=True)] == session.lut()).all()
    assert session.lut().tolist() == [0, 7, 7, 7, 900]


def test_the_version_is_another_whenever_what_is_seen_may_be(session):
    seen = [session._view.version]

    def changed(work):
        work()
        seen.append(session._view.version)
        return seen[-1] not in seen[:-1]

    assert changed(lambda: session.merge(7, 5))
    assert changed(session.undo)
    assert changed(session.redo)
    assert changed(lambda: setattr(session, "threshold", 0.05))
    assert changed(lambda: session.up(5))
    assert changed(lambda: session.cut_children(5))
    assert not changed(lambda: session.marks.rename(5, "axon")), "a mark is not seen"
    assert not changed(session.labels)


def test_merge_cut_undo_redo(session):
    change = session.merge(7, 5)
    assert row(session) == [7, 7, 7, 7, 7, 7, 900, 900]
    assert change.segments == (7,)
    assert str(change) == "merged 5 into 7 at 0.3."
    assert set(session.cut(7, [[5], [7]], method="tree").segments) == {7, 5}
    crossing = session.merge(*session.segments.ids().tolist()[:2])
    assert "crosses an earlier cut" in str(crossing)
    for _ in range(3):
        session.undo()
    assert row(session) == [5, 5, 5, 5, 7, 7, 900, 900]
    session.redo()
    assert row(session) == [7, 7, 7, 7, 7, 7, 900, 900]
    assert [item.undone for item in session.history] == [False, True, True]
    assert str(session.history[1]).endswith("(undone)")


def test_a_cut_through_a_superpixel(session):
    change = session.cut(900, points=[[(0, 6)], [(2, 7)]])
    assert sorted(change.segments) == [900, 901]
    assert session.segments.superpixel_at((2, 7)) != session.segments.superpixel_at((0, 6))
    assert session.segments.members(901).tolist() == [901]
    before = observed(session)
    session.undo()
    assert session.graph.n_regions == 4
    session.redo()
    assert observed(session) == before


def test_a_cut_through_two_superpixels(session):
    session.merge(7, 900)
    seen = observed(session)
    points = [[(0, 4), (0, 6)], [(2, 4), (2, 7)]]
    for method in ("min_cut", "seeded", "tree"):
        parts = session.preview(7, points=points, method=method).parts
        assert observed(session) == seen
        change = session.cut(7, points=points, method=method)
        assert "into 2 parts through 2 superpixels" in str(change)
        table = session.labels()
        assert table[0, 4] == table[0, 6] != table[2, 4] == table[2, 7]
        assert session.graph.n_regions == 6
        held = {frozenset(session.segments.members(k).tolist()) for k in session.segments.ids()}
        assert {frozenset(part.tolist()) for part in parts} <= held
        cut = observed(session)
        session.close()
        session = Session.open(session.path)
        assert observed(session) == cut
        session.undo()
        assert observed(session) == seen
        session.redo()
        assert observed(session) == cut
        session.undo()
    session.close()


def test_a_cut_between_superpixels_by_points(session):
    session.merge(5, 7)
    seen = observed(session)
    for method in ("min_cut", "seeded", "tree"):
        parts = session.preview(5, points=[[(0, 0)], [(0, 4)]], method=method).parts
        session.cut(5, points=[[(0, 0)], [(0, 4)]], method=method)
        held = {frozenset(session.segments.members(k).tolist()) for k in session.segments.ids()}
        assert {frozenset(part.tolist()) for part in parts} <= held
        session.undo()
        assert observed(session) == seen


REFUSALS = [
    (lambda s: s.merge(5), "others", "pass the segments to merge with 5"),
    (lambda s: s.merge(5, 5), "others", "name each segment once"),
    (lambda s: s.merge(5, 900), "others", "merge those between them"),
    (lambda s: s.merge(5, 6), "others", "use segment 5, or change the threshold"),
    (lambda s: s.merge(5, 17), "others", "get one by segments.at(index)"),
    (lambda s: s.merge(0, 5), "first", "get one by segments.at(index)"),
    (lambda s: s.merge("a", 5), "first", "get one by segments.at(index)"),
    (lambda s: s.cut(5), "seeds", "pass `seeds` or `parts`"),
    (lambda s: s.cut(5, [[5], [6]], parts=[[5], [6]]), "seeds", "pass `seeds` or `parts`"),
    (lambda s: s.cut(5, [[5]]), "seeds", "put a seed into each part"),
    (lambda s: s.cut(5, [[5], [7]]), "seeds", "remove that seed"),
    (lambda s: s.cut(5, [[5], []]), "seeds", "leave the group out"),
    (lambda s: s.cut(5, [5, 6]), "seeds", "pass a list of groups of superpixels"),
    (lambda s: s.cut(5, [[5], [6]], "mincut"), "method", SetOption("method", "min_cut")),
    (lambda s: s.cut(5, parts=[[5]]), "parts", "pass the superpixels of each part"),
    (lambda s: s.cut(5, parts=[[5], [7]]), "parts", "use detach()"),
    (lambda s: s.cut_children(7), "segment", "place points in it"),
    (lambda s: s.detach(5, [7]), "superpixels", "detach it from the segment that contains it"),
    (lambda s: s.detach(5, [5, 6]), "superpixels", "leave out those that should stay"),
    (lambda s: s.detach(5, []), "superpixels", "choose the superpixels"),
    (lambda s: s.cut(7, points=[[(0, 4)]]), "points", "put a point into each part"),
    (lambda s: s.cut(7, points=7), "points", "pass a list of groups of pixels"),
    (lambda s: s.cut(7, points=[4, 5]), "points", "pass a list of groups of pixels"),
    (lambda s: s.queue.next(within=[[0, 0], [5]]), "within", "leave it out"),
    (lambda s: s.cut(7, points=[[(0, 4)], [(0, 0)]]), "points", "remove that point"),
    (lambda s: s.cut(7, points=[[(0, 4)], [(9, 9)]]), "index", "round the coordinates"),
    (lambda s: s.cut(7, points=[[(0, 4)], []]), "points", "leave the group out"),
    (lambda s: s.cut(7, points=[[(0, 4)], [(0, 4)]]), "seeds", None),
    (lambda s: s.preview(7, [[7]], points=[[(0, 4)], [(0, 5)]]), "seeds", "pass `seeds` or"),
    (lambda s: s.unlock(5), "segment", "see segments.locked()"),
    (lambda s: s.down(7), "segment", "place points in it"),
    (lambda s: s.marks.rename(5, "a\nb"), "name", "remove the control characters"),
    (lambda s: s.marks.review(17), "segment", "get one by segments.at(index)"),
    (lambda s: s.queue.accept("yes"), "suggestion", "pass one of queue.next()"),
    (lambda s: setattr(s, "threshold", float("nan")), "threshold", "pass 0.5"),
    (lambda s: setattr(s, "threshold", np.inf), "threshold", "pass 0.5"),
    (lambda s: s.segments.at((0, 99)), "index", "round the coordinates"),
    (lambda s: s.export("x.csv", "table"), "export kind", "use one of"),
    (lambda s: s.export("x.csv", "edits", superpixels="y"), "superpixels", "leave it out"),
]


@pytest.mark.parametrize(("work", "argument", "remedy"), REFUSALS)
def test_a_refusal_has_a_reason_and_leaves_no_trace(session, work, argument, remedy):
    files, seen = tree_of(session.path), observed(session)
    with refuses(argument, remedy):
        work(session)
    assert tree_of(session.path) == files
    assert observed(session) == seen


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (lambda s: s.undo(), "nothing to undo"),
        (lambda s: s.redo(), "nothing to redo"),
    ],
)
def test_an_edit_without_effect_is_refused_without_remedy(session, work, words):
    files, seen = tree_of(session.path), observed(session)
    with pytest.raises(Refused, match=words):
        work(session)
    assert tree_of(session.path) == files
    assert observed(session) == seen


def test_a_merge_of_what_does_not_touch_can_be_forced(session):
    with pytest.raises(Refused) as refusal:
        session.merge(5, 900)
    assert refusal.value.forceable
    assert "do not touch" in str(session.merge(5, 900, force=True))
    assert row(session) == [5, 5, 5, 5, 7, 7, 5, 5]
    with refuses("segment", "undo the merge that joined them, or detach"):
        session.cut(5, [[5], [900]])
    session.cut_children(5)
    assert row(session) == [5, 5, 5, 5, 7, 7, 900, 900]


def test_a_locked_segment_is_whole_and_alone(session):
    session.lock(7)
    assert session.segments.locked().tolist() == [7]
    for argument, work in (
        ("others", lambda: session.merge(5, 7)),
        ("segment", lambda: session.cut(7, points=[[(0, 4)], [(0, 5)]])),
        ("segment", lambda: session.up(7)),
        ("segment", lambda: session.lock(7)),
    ):
        with refuses(argument, "call unlock(7) first", kind=Refused):
            work()
    session.threshold = 1.0
    assert session.segments.members(7).tolist() == [7]
    session.unlock(7)
    assert not session.segments.is_locked(7)


def test_up_and_down_are_seen_and_an_edit_makes_them_real(session):
    session.down(5)
    assert row(session) == [5, 5, 6, 6, 7, 7, 900, 900]
    session.threshold = 0.31
    assert row(session) == [5, 5, 5, 5, 7, 7, 900, 900]
    session.threshold = 0.3
    session.merge(7, 6)
    assert row(session) == [5, 5, 7, 7, 7, 7, 900, 900]
    session.undo()
    assert row(session) == [5, 5, 6, 6, 7, 7, 900, 900]
    session.undo()
    assert row(session) == [5, 5, 5, 5, 7, 7, 900, 900]
    session.up(5)
    assert row(session) == [5, 5, 5, 5, 5, 5, 900, 900]
    session.cut(5, parts=[[5], [6, 7]])
    assert len(set(row(session))) == 3
    session.undo()
    assert row(session) == [5, 5, 5, 5, 5, 5, 900, 900]


def test_marks_survive_as_ids_do(session):
    session.marks.rename(7, "axon")
    session.marks.review(5)
    session.marks.comment(5, "odd")
    assert (session.marks.progress.reviewed, session.marks.progress.left) == (1, 2)
    session.merge(7, 5)
    assert session.marks.of(7).name == "axon"
    assert session.marks.named("axon") == [7]
    assert (session.marks.progress.reviewed, session.marks.progress.left) == (0, 2)
    session.undo()
    assert session.marks.of(5).comment == "odd"
    session.undo()
    assert session.marks.of(5).comment == ""
    path = session.path
    session.close()
    with Session.open(path) as again:
        assert again.marks.of(7).name == "axon"
        assert again.marks.of(5).reviewed


def test_errors_follow_edits(session):
    def check():
        expected = split_vi(session.labels(), GOLD)
        assert (session.errors.false_merge, session.errors.false_split) == pytest.approx(expected)
        assert session.errors.vi == pytest.approx(sum(expected))

    check()
    session.merge(5, 7)
    check()
    session.cut(5, points=[[(0, 4)], [(0, 5)]], method="seeded")
    check()
    session.threshold = 0.0
    check()
    session.undo()
    check()
    session.redo()
    session.threshold = 0.3
    check()
    session.undo()
    session.undo()
    check()


def test_without_gold_there_are_no_errors(tmp_path):
    with (
        Session.create(tmp_path / "a.agglo", graph()) as made,
        refuses("gold", "create it with Session.create(path, graph", kind=Refused),
    ):
        made.errors.now()


def test_a_suggestion_to_cut_is_about_the_two_regions_that_were_merged(tmp_path):
    """Also where a region has taken the place of an older one, and so has a higher number."""
    rng = np.random.default_rng(0)
    labels = np.kron(rng.permutation(np.arange(1, 65)).reshape(8, 8), np.ones((2, 2), int))
    graph = agglo.region_graph(labels, {"boundary": rng.integers(0, 9, labels.shape) / 8})
    with Session.create(tmp_path / "many.agglo", graph) as session:
        checked = 0
        for _ in range(8):
            session.threshold = float(rng.choice([0.3, 0.4, 0.5]))
            a = int(rng.choice(session.segments.ids()))
            session.merge(a, int(rng.choice(session.segments.neighbours(a))))
            session.threshold = 0.45
            tree = session._state.tree
            for one in session.queue.next(99, kind="false_merge"):
                node = tree.region(one.superpixels[0], 0.45)
                while True:
                    held = [tree.members(child) for child in tree.children(node)]
                    sides = [k for s in one.superpixels for k, m in enumerate(held) if s in m]
                    if sides[0] != sides[1]:
                        break
                    node = tree.children(node)[sides[0]]
                expected = sorted(int(graph.sizes[held[k]].sum()) for k in sides)
                assert sorted(one.sizes) == expected
                checked += 1
        assert checked > 100, "test invalid"


@pytest.mark.parametrize("learned", [False, True])
def test_asking_about_what_changed_is_as_asking_about_everything(tmp_path, learned):
    rng = np.random.default_rng(1)
    labels = np.kron(rng.permutation(np.arange(1, 65)).reshape(8, 8), np.ones((2, 2), int))
    graph = agglo.region_graph(labels, {"boundary": rng.integers(0, 9, labels.shape) / 8})
    features = feature_map(graph)
    policy = LearnedPolicy(features, random_forest(1, features.width)) if learned else "mean"
    with Session.create(tmp_path / "many.agglo", graph, policy) as session:
        session.threshold = 0.3
        asked, divided = [], set()

        def check():
            """Compare the priorities in an export with the scores of the graph contracted anew."""
            moved = session._view.moved_since(session._view.boundary_scores._version)
            asked.append(session.graph.n_regions if moved is None else len(moved))
            divided.add(session.graph.n_regions)
            path = session.export(tmp_path / "now.graphml", "graphml", overwrite=True)
            written = nx.read_graphml(path, node_type=int)
            _, first, which = np.unique(session.lut(), return_index=True, return_inverse=True)
            coarse = contracted(session.graph, first[which].astype(np.uint32))
            scores = session.policy.score(coarse).tolist()
            pairs = session.lut()[np.unique(first)][coarse.edges].tolist()
            assert {
                frozenset(pair): row["priority"] for *pair, row in written.edges(data=True)
            } == {frozenset(pair): score for pair, score in zip(pairs, scores, strict=True)}

        check()
        for k in range(25):
            a = int(rng.choice(session.segments.ids()))
            near = session.segments.neighbours(a)
            try:
                if k % 5 == 4:
                    session.undo()
                elif k % 5 == 3:
                    pixels = np.argwhere(session.labels() == a).tolist()
                    session.cut(a, points=[[pixels[0]], [pixels[-1]]], method="seeded")
                elif k % 5 == 2:
                    session.cut_children(a)
                elif len(near):
                    session.merge(a, int(near[0]))
            except InvalidInput:
                pass
            check()
        assert sum(0 < n < 0.1 * len(labels) ** 2 for n in asked) > 0, "test invalid"
        assert len(divided) > 1, "test invalid: no superpixel was divided"


def test_suggestions_are_answered_once(session):
    asked = {(one.kind, one.superpixels) for one in session.queue.next(20)}
    assert {kind for kind, _ in asked} == {"false_split", "false_merge"}
    effort = session.queue.effort().wrong_decisions
    split = session.queue.next(1, kind="false_split")[0]
    assert split.question == "Merge these two?"
    session.queue.reject(split)
    assert (split.kind, split.superpixels) not in {
        (one.kind, one.superpixels) for one in session.queue.next(20)
    }
    assert session.queue.effort().wrong_decisions < effort
    merged = session.queue.next(1, kind="false_merge")[0]
    session.queue.skip(merged)
    assert not session.queue.next(1, kind="false_merge")
    session.undo()
    before = row(session)
    session.queue.accept(merged)
    assert row(session) == [5, 5, 6, 6, 7, 7, 900, 900]
    with refuses("suggestion", "call queue.next() again", kind=Refused):
        session.queue.accept(merged)
    session.undo()
    assert row(session) == before
    other = session.queue.next(1, kind="false_split")[0]
    session.queue.accept(other)
    assert len(session.segments) == 2
    session.close()
    with Session.open(session.path) as again:
        assert len(again.segments) == 2
        assert not again.queue.next(5, kind="false_split"), "the other was rejected"


def test_exports(session, tmp_path):
    session.merge(5, 7)
    session.cut(5, points=[[(0, 4)], [(0, 5)]], method="seeded")
    session.undo()
    for kind, name in (
        ("labels", "a.tif"), ("regions", "a.csv"), ("edits", "e.csv"), ("tree", "t.csv"),
        ("graphml", "g.graphml"),
    ):  # fmt: skip
        assert session.export(tmp_path / name, kind).exists()
        with refuses("path", "choose another name, or pass overwrite=True"):
            session.export(tmp_path / name, kind)
    session.export(tmp_path / "wk", "agglomerate", superpixels=tmp_path / "s.ome.zarr")
    assert (agglo.open_volume(tmp_path / "a.tif").load() == session.labels()).all()
    assert list(pd.read_csv(tmp_path / "e.csv")["state"]) == ["live", "undone"]
    tree = (tmp_path / "t.csv").read_text().splitlines()
    assert len(tree) == 4
    assert [line.split(",")[-1] for line in tree[1:]].count("1") == 1, "one merge is the user's"


def test_the_threshold_is_saved_and_not_undone(session):
    session.merge(5, 7)
    session.threshold = 0.05
    session.undo()
    assert session.threshold == 0.05
    session.threshold = 0.07
    path = session.path
    session.close()
    with Session.open(path) as again:
        assert again.threshold == 0.07
        again.redo()
        again.threshold = 0.9
        copy = path.with_name("copy.agglo")
        shutil.copytree(path, copy)  # a crash: as it was at the last entry
        with Session.open(copy, steal_lock=True) as other:
            assert other.threshold == 0.07


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("kind", ["merge", "cut", "points", "lock", "up", "mark", "undo", "redo"])
def test_a_failing_disk_leaves_all_as_it_was(session, code, kind):
    work = {
        "merge": lambda: session.merge(5, 7),
        "cut": lambda: session.cut_children(5),
        "points": lambda: session.cut(7, points=[[(0, 4)], [(0, 5)]]),
        "lock": lambda: session.lock(5),
        "up": lambda: session.up(5),
        "mark": lambda: session.marks.rename(5, "soma"),
        "undo": session.undo,
        "redo": session.redo,
    }[kind]
    session.cut(900, points=[[(0, 6)], [(2, 7)]])
    session.lock(900)
    session.unlock(900)
    session.undo()
    seen, journal = observed(session), (session.path / "journal.jsonl").read_bytes()
    for at in range(2):  # the write, the synchronisation
        with Disk(at, code).in_use(), pytest.raises(NotSaved):
            work()
        assert observed(session) == seen
        assert (session.path / "journal.jsonl").read_bytes() == journal
    work()
    now = observed(session)
    assert now != seen or kind == "undo"
    session.close()
    with Session.open(session.path) as again:
        assert observed(again) == now


def test_read_only(session, tmp_path):
    with Session.open(session.path, read_only=True) as reader:
        assert reader.read_only
        assert observed(reader)[1:] == observed(session)[1:]
        for work in (lambda: reader.merge(5, 7), lambda: reader.lock(5), reader.undo, reader.redo):
            with refuses("path", "open it for writing", kind=NotSaved):
                work()
    with pytest.raises(SessionLocked):
        Session.open(session.path)


def test_marks_and_skipped_suggestions_are_no_edits(session):
    session.marks.review(5)
    session.queue.skip(session.queue.next(1)[0])
    assert [item.is_edit for item in session.history] == [False, False]
    assert session.history.n_edits == 0
    session.merge(5, 7)
    session.lock(5)
    assert (len(session.history), session.history.n_edits) == (4, 2)
    session.undo()
    assert session.history.n_edits == 1


def test_moved_and_renamed(session, tmp_path):
    session.merge(5, 7)
    seen = observed(session)
    session.close()
    path = session.path.rename(tmp_path / "Zellen ñ 細胞.agglo")
    with Session.open(path) as again:
        assert observed(again) == seen
        again.undo()


@pytest.mark.parametrize(
    "entry",
    [
        {"action": "dance", "ids": [], "threshold": 0.3},
        {"action": "merge", "threshold": 0.3},
        {"action": "merge", "ids": [5], "threshold": 0.3, "steps": [{"edit": "merge"}]},
        {"action": "undo", "of": 7},
        {"action": "redo", "of": 1},
        {"action": "up", "ids": [5], "threshold": 0.3,
         "override": {"edit": "up", "scale": 0.3, "superpixel": 10**9}},
        *(
            {"action": "cut", "ids": [5], "threshold": 0.3, "steps": [step]}
            for step in (
                {"edit": "merge", "scale": 0.3, "pairs": [[1, 99]]},
                {"edit": "merge", "scale": 0.3, "pairs": [[-1, 2]]},
                {"edit": "cut", "scale": 0.3, "parts": [[1], [3]]},
                {"edit": "cut", "scale": 0.3, "parts": [[1], []]},
                {"edit": "cut", "scale": 0.3, "parts": [[1], [2, 77]]},
                {"edit": "cut", "scale": 0.3, "parts": []},
                {"edit": "lock", "scale": 0.3, "members": [1]},
                {"edit": "lock", "scale": 0.3, "members": []},
                {"edit": "lock", "scale": 0.3, "members": [1, 2**32 + 2]},
                {"edit": "unlock", "scale": 0.3, "superpixel": 2},
                {"edit": "up", "scale": 0.3, "superpixel": 2},
                {"edit": "cut", "scale": 0.3, "parts": [[4], [5]],
                 "division": {"superpixel": 4, "runs": [1, 2]}},
            )
        ),
    ],
    ids=lambda entry: json.dumps(entry)[:60],
)  # fmt: skip
def test_a_journal_that_makes_no_sense_is_refused_in_words(session, entry):
    session._store.journal.append(entry)
    session._store.close()
    with refuses("path", kind=SessionDamaged) as caught:
        Session.open(session.path)
    assert f"{session.path} cannot be opened" in caught.value.problem


def kill_again_and_again(path, times, seed):
    """Kill a program that edits in a loop; return how many entries it had acknowledged."""
    rng = np.random.default_rng(seed)
    tests = Path(__file__).parents[1]
    paths = os.pathsep.join([str(tests.parent), str(tests)])
    entries = 0
    with subprocess.Popen(
        [sys.executable, "-m", "oracles.editor", str(path)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}, text=True, bufsize=1,
    ) as editor:  # fmt: skip
        for _ in range(times):
            editor.stdin.write("start\n")
            child, last = None, None
            while child is None or last is None:  # either may speak first
                word, number = editor.stdout.readline().split()
                child, last = (int(number), last) if word == "pid" else (child, int(number))
                assert word != "ended", "test invalid: the editor failed"
            time.sleep(rng.uniform(0, 0.1))
            os.kill(child, signal.SIGKILL)
            while (words := editor.stdout.readline().split())[0] != "ended":
                last = int(words[1])
            with Session.open(path, read_only=True) as session:
                entries = session.history.report.kept
                assert session.history.report.lost == 0
                assert len(session.history) > 0
            # A double undo is two entries, acknowledged together.
            assert last <= entries <= last + 2, "some may be there and not yet acknowledged"
        editor.stdin.close()
    return entries


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_kill_nine(tmp_path):
    Session.create(tmp_path / "killed.agglo", graph()).close()
    assert kill_again_and_again(tmp_path / "killed.agglo", 5, seed=0) >= 5


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_kill_nine_a_hundred_times(tmp_path):
    Session.create(tmp_path / "killed.agglo", graph()).close()
    acknowledged = kill_again_and_again(tmp_path / "killed.agglo", 100, seed=1)
    print(f"\n100 kills of a program that edits: {acknowledged} entries, none lost")
    assert acknowledged > 100
