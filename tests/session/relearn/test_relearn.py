"""Examples of the edits of a session, and relearning as one action."""

from __future__ import annotations

import errno

import numpy as np
import pytest
from oracles.disks import Disk
from oracles.sessions import journal, observed
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Cancelled, Session
from napari_agglo.features import feature_matrix
from napari_agglo.session import NotSaved

pytestmark = pytest.mark.compiled


@pytest.fixture
def session(tmp_path, small_sample):
    _, cues, _ = small_sample
    superpixels = agglo.oversegment(cues["boundary"])
    graph = agglo.region_graph(superpixels, cues)
    with Session.create(tmp_path / "a.agglo", graph) as made:
        made.threshold = 0.2
        yield made


def edited(session):
    """Merge two pairs, and cut two segments."""
    for _ in range(2):
        for first in session.segments.ids().tolist():
            near = session.segments.neighbours(first).tolist()
            if near:
                session.merge(first, near[0])
                break
    cut = 0
    for segment in session.segments.ids().tolist()[::-1]:
        if cut < 2 and len(session.segments.members(segment)) > 1:
            session.cut_children(segment)
            cut += 1
    assert cut == 2, "test invalid: nothing to cut"


def test_examples_are_the_rows_at_the_time(session):
    first = int(session.segments.ids()[0])
    other = int(session.segments.neighbours(first)[0])
    graph = session.graph
    session.threshold = np.nextafter(
        0.0, -1.0
    )  # superpixels: the rows are those of the graph itself
    a, b = (int(graph.ids[k]) for k in graph.edges[0])
    session.merge(a, b)
    rows, labels = session.history.examples()
    assert labels.tolist() == [-1]
    policy = agglo.train(graph, np.ones(graph.superpixels.image.shape, int) * 0 + 1 + (
        np.arange(graph.superpixels.image.shape[1]) > 20), strategy="flat", epochs=1)  # fmt: skip
    assert (rows[0] == feature_matrix(graph, policy.features)[0]).all()
    session.undo()
    assert session.history.examples()[0].shape == (0, rows.shape[1])
    session.threshold = 0.2
    session.merge(first, other)
    session.cut_children(first)
    assert session.history.examples()[1].tolist() == [-1, 1]
    split = session.queue.next(1, kind="false_split")
    made = session.queue.next(1, kind="false_merge")
    session.queue.reject(split[0])
    session.queue.reject(made[0])
    assert session.history.examples()[1].tolist() == [-1, 1, 1, -1]


def test_relearning_is_one_action(session):
    edited(session)
    before = observed(session)
    policy = session.policy
    steps = [step for entry in journal(session.path) for step in entry["steps"]]
    pairs = [pair for step in steps for pair in step.get("pairs", ())]
    assert len(pairs) == 2
    change = session.relearn()
    assert change.words == "learned from the edits at 0.2"
    assert isinstance(session.policy, agglo.LearnedPolicy)
    names = session.lut(dense=True)
    assert len(change.notes) > 1 or all(names[a] == names[b] for a, b in pairs), "the first is few"
    after = observed(session)
    session.undo()
    assert observed(session) == before
    assert session.policy is policy
    session.redo()
    assert observed(session) == after
    first = int(session.segments.ids()[0])
    session.merge(first, int(session.segments.neighbours(first)[0]))
    session.history.asleep()
    session.undo()
    path = session.path
    session.close()
    with Session.open(path) as again:
        assert observed(again) == after
        again.undo()
        assert observed(again) == before
        again.redo()
        assert observed(again) == after


def test_a_failure_leaves_all_as_it_was(session):
    with refuses("volumes", "cut a wrong segment, answer suggestions"):
        session.relearn()
    edited(session)
    before, journal = observed(session), (session.path / "journal.jsonl").read_bytes()

    def stop(_):
        raise Cancelled

    with pytest.raises(Cancelled):
        session.relearn(progress=stop)
    for at in range(12):
        with Disk(at, errno.ENOSPC).in_use() as disk:
            try:
                session.relearn()
                session.undo()
                break
            except NotSaved:
                assert disk.failed
        assert observed(session) == before
        assert (session.path / "journal.jsonl").read_bytes() == journal
    assert observed(session) == before
