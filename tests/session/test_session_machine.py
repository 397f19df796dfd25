"""A session against a naive model, through edits at mixed scales, undo, restarts and crashes."""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from oracles.edits import Cut, Merge
from oracles.moves import moves_of, shown
from oracles.repairs import POLICIES, as_scores, graphs
from oracles.sessions import SCALES, from_scratch, journal, live, observed, partition
from refusals import refuses

from napari_agglo import InvalidInput, Session
from napari_agglo.session import NotSaved


def sets_of(table):
    """Return a table of labels as sets of superpixels."""
    return {frozenset(np.flatnonzero(table == k).tolist()) for k in np.unique(table[1:])}


class Proofreading(RuleBasedStateMachine):
    """The model is what was seen before each live action, and the journal read by hand."""

    @initialize(graph=graphs(most=7), policy=POLICIES)
    def begin(self, graph, policy):
        self.folder = Path(tempfile.mkdtemp())
        self.graph, self.policy = graph, policy
        self.path = self.folder / "a ü.agglo"
        chosen = as_scores(graph, *policy)[0]
        # A file only names a function of Python: who opens the session must pass it.
        self.open = partial(Session.open, policy=getattr(chosen, "function", None))
        self.session = Session.create(self.path, graph, chosen)
        self.before, self.after = [], []  # what was seen before each live action, after each undone

    # Everything that is done goes through here.

    def act(self, work, *, expected=None, undoable=True):
        """Do something: it is refused and leaves no trace, or does just what was expected."""
        session = self.session
        message = (self.path / "journal.jsonl").read_bytes()
        was, old = observed(session), partition(session)
        try:
            change = work()
        except InvalidInput:
            assert (self.path / "journal.jsonl").read_bytes() == message
            assert observed(session) == was
            return None
        assert (self.path / "journal.jsonl").read_bytes() != message
        shown = session.lut().tolist()
        session._view.forget()
        assert session.lut().tolist() == shown, "what was not looked up anew is out of date"
        if undoable:
            self.before.append(was)
            self.after = []
        if expected is not None:
            self.check(old, partition(session), expected(change))
        return change

    def check(self, old, new, touched):
        """Check that what was not touched is there, under its id."""
        for segment, members in old.items():
            if not members & touched:
                assert new.get(segment) == members, "another segment changed"
        assert frozenset().union(*(m for m in new.values() if m & touched)) <= touched

    def some(self, data, of=None):
        return data.draw(st.sampled_from(sorted(of or self.session.segments.ids().tolist())))

    @rule(threshold=st.sampled_from((*SCALES, -5e-324)) | st.floats(0, 1))
    def set_threshold(self, threshold):
        self.session.threshold = threshold

    @rule(data=st.data())
    def merge(self, data):
        session = self.session
        ids = session.segments.ids().tolist()
        chosen = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
        if data.draw(st.booleans()):
            near = session.segments.neighbours(chosen[0]).tolist()
            chosen = chosen[:1] + near[:1]
        force = data.draw(st.booleans())
        old = partition(session)
        whole = frozenset().union(*(old[k] for k in chosen))
        change = self.act(lambda: session.merge(*chosen, force=force), expected=lambda _: whole)
        if change is not None:
            assert partition(session)[chosen[0]] == whole
            assert change.segments == (chosen[0],)

    def cut(self, segment, work):
        session = self.session
        old = partition(session)[segment]
        n = session.graph.n_regions

        def expected(change):
            return old | set(range(n + 1, session.graph.n_regions + 1))

        change = self.act(work, expected=expected)
        if change is not None:
            assert len(change.segments) > 1
            assert segment in change.segments, "the largest part keeps the id"
            new = partition(session)
            pixels = {k: int(session.graph.sizes[list(new[k])].sum()) for k in change.segments}
            assert pixels[segment] == max(pixels.values())

    @rule(data=st.data(), method=st.sampled_from(["min_cut", "seeded", "tree"]))
    def cut_by_seeds(self, data, method):
        session = self.session
        segment = self.some(data)
        members = data.draw(st.permutations(session.segments.members(segment).tolist()))
        seeds = [[s] for s in members[:2]]
        if len(members) > 3 and data.draw(st.booleans()):
            seeds[0].append(members[2])
        message = (self.path / "journal.jsonl").read_bytes()
        try:
            parts = session.preview(segment, seeds, method).parts
        except InvalidInput:
            parts = None
        assert (self.path / "journal.jsonl").read_bytes() == message
        self.cut(segment, lambda: session.cut(segment, seeds, method))
        if parts is not None:
            ids = session.graph.ids.tolist()
            new = partition(session).values()
            for part in parts:
                assert frozenset(ids.index(s) for s in part.tolist()) in new, "as in the preview"

    @rule(data=st.data())
    def cut_into_children(self, data):
        segment = self.some(data)
        self.cut(segment, lambda: self.session.cut_children(segment))

    @rule(data=st.data())
    def cut_into_parts(self, data):
        segment = self.some(data)
        members = self.session.segments.members(segment).tolist()
        at = data.draw(st.integers(0, len(members)))
        self.cut(segment, lambda: self.session.cut(segment, parts=[members[:at], members[at:]]))

    @rule(data=st.data())
    def detach(self, data):
        segment = self.some(data)
        members = self.session.segments.members(segment).tolist()
        leaving = data.draw(st.lists(st.sampled_from(members), min_size=1, max_size=2))
        self.cut(segment, lambda: self.session.detach(segment, leaving))

    @rule(data=st.data(), method=st.sampled_from(["min_cut", "seeded", "tree"]))
    def cut_between_points(self, data, method):
        session = self.session
        if session.graph.n_regions > 12:
            return  # the naive model is slow
        segment = self.some(data)
        pixels = np.argwhere(session.labels() == segment).tolist()
        chosen = data.draw(st.permutations(pixels))[:4]
        points = [[p] for p in chosen[:2]]
        for point in chosen[2:]:
            points[data.draw(st.integers(0, 1))].append(point)
        was = observed(session)
        try:
            parts = session.preview(segment, points=points, method=method).parts
        except InvalidInput:
            parts = None
        assert observed(session) == was
        self.cut(segment, lambda: session.cut(segment, points=points, method=method))
        if parts is not None:
            new = {
                frozenset(session.graph.ids[list(s)].tolist()) for s in partition(session).values()
            }
            assert {frozenset(part.tolist()) for part in parts} <= new

    @rule(data=st.data(), way=st.sampled_from(["up", "down"]))
    def move_along_the_branch(self, data, way):
        segment = self.some(data)
        self.act(lambda: getattr(self.session, way)(segment))

    @rule(data=st.data())
    def lock(self, data):
        segment = self.some(data)
        if len(self.session.segments.locked()) < 2:
            self.act(lambda: self.session.lock(segment), expected=lambda _: frozenset())

    @rule(data=st.data())
    def unlock(self, data):
        segment = self.some(data, self.session.segments.locked().tolist() or None)
        self.act(lambda: self.session.unlock(segment), expected=lambda _: frozenset())

    @rule(
        data=st.data(),
        message=st.sampled_from([("rename", "axon ü"), ("rename", ""), ("comment", "ends\nhere")])
        | st.tuples(st.just("review"), st.booleans()),
    )
    def mark(self, data, message):
        session = self.session
        segment = self.some(data)
        what, value = message
        others = {k: mark for k, mark in session.marks.all().items() if k != segment}
        self.act(
            lambda: getattr(session.marks, what)(segment, value), expected=lambda _: frozenset()
        )
        field = {"rename": "name", "comment": "comment", "review": "reviewed"}[what]
        assert getattr(session.marks.of(segment), field) == value
        now = session.marks.all()
        assert {k: mark for k, mark in now.items() if k != segment} == others
        there = session.segments.ids().tolist()
        assert session.marks.progress.reviewed == sum(session.marks.of(k).reviewed for k in there)
        if what == "rename" and value:
            assert segment in session.marks.named(value)

    @rule(data=st.data(), answer=st.sampled_from(["accept", "reject", "skip"]))
    def answer(self, data, answer):
        """Answer what is suggested: an edit of these segments only, or none; never asked again."""
        session = self.session
        found = session.queue.next(5)
        if not found:
            return
        one = found[data.draw(st.integers(0, len(found) - 1))]
        where = partition(session)
        assert set(one.segments) <= where.keys()
        about = frozenset().union(*(where[segment] for segment in one.segments))
        touched = about if answer == "accept" else frozenset()
        if (
            self.act(lambda: getattr(session.queue, answer)(one), expected=lambda _: touched)
            is None
        ):
            return
        asked = {(again.kind, again.superpixels) for again in session.queue.next(1000)}
        assert (one.kind, one.superpixels) not in asked
        if answer == "accept":
            table, ids = session.lut(), session.graph.ids.tolist()
            a, b = (table[ids.index(superpixel)] for superpixel in one.superpixels)
            assert (a == b) == (one.kind == "false_split")

    @rule()
    def export_the_tree(self):
        """See that merges are in an order in which they can be done, with the ids of labels."""
        session, at = self.session, self.session.threshold
        table = pd.read_csv(session.export(self.folder / "tree.csv", "tree", overwrite=True))
        for scale in {*SCALES, 1.0} - {override.scale for override in session._state.overrides}:
            session.threshold = scale
            seen = partition(session)
            assert sets_of(session.tree.lut(scale)) == set(seen.values())
            if len(session.segments.locked()):
                continue  # a locked segment is whole already where the merges within it are not yet
            own = session.graph.ids[session._state.tree.names.of_superpixel].tolist()
            names = {own[k]: frozenset([k]) for k in range(1, len(own))}
            for row in table[table["height"] <= scale].itertuples():
                names[row.kept] |= names.pop(row.dropped)
            assert names == seen
        session.threshold = at

    @precondition(lambda self: self.before)
    @rule()
    def undo(self):
        now = observed(self.session)
        self.act(self.session.undo, undoable=False)
        expected = self.before.pop()
        self.after.append(now)
        self.same(expected)

    @precondition(lambda self: self.after)
    @rule()
    def redo(self):
        now = observed(self.session)
        self.act(self.session.redo, undoable=False)
        self.before.append(now)
        self.same(self.after.pop())

    def same(self, expected):
        seen, *rest = observed(self.session)
        seen_then, *rest_then = expected
        for scale in SCALES:
            assert seen[scale] == seen_then[scale]
        assert rest == rest_then

    @rule()
    def nothing_more_to_undo(self):
        if not self.before:
            self.act(self.session.undo)
        if not self.after:
            self.act(self.session.redo)

    @rule()
    def close_and_reopen(self):
        was = observed(self.session)
        self.session.close()
        with refuses("path", "open it for writing", kind=NotSaved):
            self.session.undo()
        self.session = self.open(self.path)
        assert observed(self.session) == was

    @rule()
    def checkpoint(self):
        """Spare the next one who opens it the work; nothing else is to change."""
        was = observed(self.session)
        self.session.history.checkpoint()
        assert not self.session.history.checkpoint(), "there is nothing new"
        assert observed(self.session) == was

    @rule()
    def crash(self):
        """Nothing is closed: what is on the disk at this moment is all there is."""
        was = observed(self.session)
        copy = self.folder / f"{len(list(self.folder.iterdir()))}.agglo"
        shutil.copytree(self.path, copy)
        self.session.close()
        self.path = copy
        self.session = self.open(copy, steal_lock=True)
        self.session.threshold = self.session.threshold
        self.same(was)

    @rule()
    def look_beside(self):
        with self.open(self.path, read_only=True) as reader:
            reader.threshold = self.session.threshold
            assert observed(reader) == observed(self.session)
            with refuses("path", "open it for writing", kind=NotSaved):
                reader.merge(*reader.segments.ids().tolist()[:2])

    @invariant()
    def equals_the_run_from_scratch(self):
        if not hasattr(self, "session"):
            return
        session = self.session
        entries = journal(self.path)
        graph, edits, run = from_scratch(self.graph, *self.policy, entries)
        assert graph.superpixels.image.tolist() == session.graph.superpixels.image.tolist()
        assert len(session.history) == sum(e["action"] not in ("undo", "redo") for e in entries)
        assert len(live(entries)) == len(self.before)
        threshold = session.threshold
        moves = moves_of(live(entries))
        moved = {move.scale for move in moves}
        previous = None
        for scale in sorted({*SCALES, 1.0, *moved}):
            session.threshold = scale
            seen = set(partition(session).values())
            assert seen == shown(run, edits, scale, moves)
            assert sum(map(len, seen)) == graph.n_regions
            if scale in moved:
                continue  # a segment that was moved up may reach beyond one of a higher scale
            assert seen == run.partition(scale)
            if previous is not None:
                assert all(any(small <= large for large in seen) for small in previous), "nested"
            previous = seen
        session.threshold = threshold
        self.constraints_hold(edits)

    def constraints_hold(self, edits):
        """Check that the last edit, if it is a merge or a cut, is fulfilled where it was made."""
        session = self.session
        if not edits or not isinstance(edits[-1], (Merge, Cut)):
            return
        regions = session._state.tree.regions(edits[-1].scale)
        if isinstance(edits[-1], Merge):
            assert all(regions[a] == regions[b] for a, b in edits[-1].pairs)
        else:
            held = [set(regions[part].tolist()) for part in edits[-1].parts]
            assert all(len(each) == 1 for each in held)
            assert len(set.union(*held)) == len(held)

    def teardown(self):
        if hasattr(self, "session"):
            self.session.close()
            shutil.rmtree(self.folder)


TestProofreading = pytest.mark.compiled(Proofreading.TestCase)
TestProofreading.settings = examples(9, stateful_step_count=15)


class LongProofreading(Proofreading):
    """The same, for longer."""


TestLongProofreading = pytest.mark.slow(LongProofreading.TestCase)
TestLongProofreading.settings = examples(400, stateful_step_count=40)
