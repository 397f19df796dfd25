"""Opening from a snapshot equals replaying the journal; a damaged snapshot is ignored."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from oracles.disks import tree_of
from oracles.repairs import state_of
from oracles.sessions import busy_session as made
from oracles.sessions import journal, observed
from refusals import refuses

from napari_agglo import Session
from napari_agglo.agglomeration import merge_greedily
from napari_agglo.session import NotSaved
from napari_agglo.session._hierarchy.frozen_tree import frozen, thawed
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._state import State, resume, state_arrays

pytestmark = pytest.mark.compiled  # long histories: minutes as plain Python

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]


def replayed(path, tmp_path):
    """Open a copy of a session without its snapshot."""
    copy = tmp_path / "replayed.agglo"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    shutil.rmtree(copy / "snapshots", ignore_errors=True)
    return Session.open(copy, steal_lock=True)


def uses_snapshot(session):
    return session.history.to_replay < len(journal(session.path))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_session_goes_on_from_a_snapshot_as_if_replayed(tmp_path, seed):
    session = made(tmp_path / "a.agglo", seed=seed)
    tree = session._state.tree
    assert any(step.divided for step in tree.steps), "test invalid"
    assert any(step.entered is None for step in tree.steps), "test invalid: no look"
    session.close()
    with Session.open(session.path) as again, replayed(session.path, tmp_path) as other:
        assert uses_snapshot(again), "test invalid"
        assert not uses_snapshot(other), "test invalid"
        while True:
            assert observed(again) == observed(other)
            if not other.history.can_undo:
                break
            again.undo()
            other.undo()
        while other.history.can_redo:
            again.redo()
            other.redo()
        assert observed(again) == observed(other)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_a_tree_comes_back_bit_for_bit_with_every_state_before_it(tmp_path, seed):
    with made(tmp_path / "a.agglo", seed=seed) as session:
        state = session._state
        tree = state.tree
        edits = [step.edit for applied in state.done for step in applied.action.steps]
        divisions = [d for applied in state.done for d in applied.divisions]
        again = thawed(session._store.data.graph, state.policy, frozen(tree), edits, divisions)
        while True:
            assert state_of(again) == state_of(tree)
            if not tree.edits:
                break
            assert again.undo() is tree.undo()


def test_a_snapshot_that_is_behind_or_of_what_was_undone_is_a_start(tmp_path):
    session = made(tmp_path / "a.agglo", 12, seed=1)
    assert session.history.checkpoint()
    assert not session.history.checkpoint(), "there is nothing new"
    for _ in range(5):  # what the snapshot has is taken back, and other things are done
        session.undo()
    session.threshold = 0.4
    a = int(session.segments.ids()[0])
    session.marks.rename(a, "other")
    session.lock(a)
    was = observed(session)
    with replayed(session.path, tmp_path) as other:
        assert observed(other) == was
    copy = tmp_path / "crashed.agglo"
    shutil.copytree(session.path, copy)
    session.close()
    with Session.open(copy, steal_lock=True) as again:
        assert uses_snapshot(again), "test invalid"
        assert observed(again) == was
        while again.history.can_undo:
            again.undo()


@pytest.mark.slow
def test_a_snapshot_through_learning(tmp_path):
    session = made(tmp_path / "a.agglo", 30, seed=2)
    session.relearn(weight=2) if len(set(session.history.examples()[1].tolist())) == 2 else None
    assert session.history[-1].words.startswith("learned"), "test invalid"
    session.threshold = 0.4
    session.merge(*session.segments.ids()[:2].tolist(), force=True)
    assert session.history.checkpoint()
    was = observed(session)
    session.close()
    with Session.open(session.path) as again:
        assert uses_snapshot(again), "test invalid"
        assert observed(again) == was
        for _ in range(4):
            again.undo()
        with replayed(session.path, tmp_path) as other:
            assert observed(again) == observed(other)


@pytest.mark.slow
def test_damaged_missing_or_of_another_history_it_is_not_believed(tmp_path):
    session = made(tmp_path / "a.agglo", 25)
    was = observed(session)
    session.close()
    file = session.path / "snapshots" / "state.npz"
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    for damage in range(30):
        data = bytearray(whole)
        match damage:
            case 0:
                data.clear()
            case 1:
                del data[len(data) // 2 :]
            case _:
                data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        file.write_bytes(bytes(data))
        with Session.open(session.path, read_only=True) as again:
            assert observed(again) == was
    file.unlink()
    with Session.open(session.path, read_only=True) as again:
        assert not uses_snapshot(again)
        assert observed(again) == was
    other = made(tmp_path / "b.agglo", 25, seed=3)
    other.close()
    shutil.copy(other.path / "snapshots" / "state.npz", file)
    with Session.open(session.path, read_only=True) as again:
        assert not uses_snapshot(again)
        assert observed(again) == was


def altered(arrays):
    """Give copies of arrays of a snapshot, each wrong in one place, with what is wrong."""
    for name, value in (
        ("links", 10**6), ("links", -7), ("sizes", 0), ("sizes", 10**6), ("scales", np.nan),
        ("hashes", 7), ("steps", 10**6), ("steps", -1), ("horizons", np.nan), ("horizons", -9.0),
        ("changes", 10**6), ("changes", -2), ("fresh", 10**6), ("fresh", 0),
    ):  # fmt: skip
        wrong = {key: array.copy() for key, array in arrays.items()}
        flat = wrong[f"tree0_{name}"].reshape(-1)
        if flat.size:
            flat[-2 if name == "scales" else -1] = value  # the last birth, not its priority
            yield f"{name} = {value}", wrong
    for name in arrays:
        yield f"no {name}", {key: array for key, array in arrays.items() if key != name}
        if arrays[name].size:
            yield f"{name} too short", arrays | {name: arrays[name][:-1]}
        if name != "format":
            yield f"{name} of another type", arrays | {name: arrays[name].astype(np.float32)}
    yield "format", arrays | {"format": arrays["format"] + [1, 0]}
    yield "trees", arrays | {"format": arrays["format"] + [0, 1]}
    turned = arrays["tree0_links"].copy()
    turned[[1, 2], 0] = 2, 1
    yield "a parent of its parent", arrays | {"tree0_links": turned}


def test_arrays_that_no_kernel_may_have_are_refused(tmp_path):
    with made(tmp_path / "a.agglo", 25) as session:
        arrays = state_arrays(session._state)
        actions = [entry.action for entry in session._history.done]
        graph, policy = session._store.data.graph, session.policy
        merges = merge_greedily(graph, policy)

        def is_used(arrays):
            state = State(graph, policy, lambda: Hierarchy(graph, policy, merges))
            return resume(state, actions, arrays)

        assert is_used(arrays), "test invalid"
        tried = 0
        for what, wrong in altered(arrays):
            assert not is_used(wrong), what
            tried += 1
        assert tried > 40, "test invalid"


def test_reading_writes_nothing(tmp_path):
    session = made(tmp_path / "a.agglo", 25)
    session.close()
    (session.path / "snapshots" / "state.npz").unlink()
    before = tree_of(session.path)
    again = Session.open(session.path, read_only=True)
    with again, refuses("path", "open it for writing", kind=NotSaved):
        again.history.checkpoint()
    assert tree_of(session.path) == before
