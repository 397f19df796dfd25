"""A session as seen from outside, and what its journal must amount to, from scratch."""

from __future__ import annotations

import json

import numpy as np
from oracles.edits import adjacency, policy_score, tree_of_edits
from oracles.repairs import as_scores, random_forest

import napari_agglo as agglo
from napari_agglo import InvalidInput, Session
from napari_agglo.features import feature_map
from napari_agglo.graph import divide, runs_to_pieces
from napari_agglo.policy import LearnedPolicy
from napari_agglo.session._actions import Cut, Lock, as_ids, from_json

SCALES = (0.0, 0.25, 0.5, 0.75)


def journal(path):
    """Return the entries of a journal, read by hand."""
    lines = (path / "journal.jsonl").read_text(encoding="ascii").splitlines()
    return [json.loads(line)["entry"] for line in lines]


def live(entries):
    """Return the entries that count, oldest first."""
    done, undone = [], []
    for number, entry in enumerate(entries, start=1):
        if entry["action"] == "undo":
            undone.append(done.pop())
            assert undone[-1][0] == entry["of"]
        elif entry["action"] == "redo":
            done.append(undone.pop())
            assert done[-1][0] == entry["of"]
        else:
            done.append((number, entry))
            undone = []
    return [entry for _, entry in done]


def from_scratch(graph, kind, seed, entries):
    """Return the divided graph, the live edits on it, and the tree that they make."""
    edits = []
    for entry in live(entries):
        for plain in entry.get("steps", ()):
            divisions = [plain["division"]] if "division" in plain else plain.get("divisions", [])
            for through in divisions:
                s = through["superpixel"]
                start, stop = graph.boxes[s]
                pieces = runs_to_pieces(through["runs"], (stop - start).tolist())
                division = divide(graph, s, pieces)
                graph = division.apply(graph)
                edits = [with_pieces(edit, division) for edit in edits]
            edits.append(from_json(plain))
    score = policy_score(graph, as_scores(graph, kind, seed)[1])
    return graph, edits, tree_of_edits(adjacency(graph), score, edits)


def with_pieces(edit, division):
    """Return an older edit as it is after a division: what it says of one it says of all pieces."""

    def whole(part):
        if division.superpixel not in part:
            return part
        return as_ids({*part.tolist(), *division.members.tolist()})

    if isinstance(edit, Cut):
        return Cut(edit.scale, tuple(whole(part) for part in edit.parts))
    if isinstance(edit, Lock):  # which has been unlocked since, so that this could be divided
        return Lock(edit.scale, whole(edit.members))
    return edit


def partition(session):
    """Return the segments that are seen: sets of superpixels (dense ids) by segment id."""
    table = session.lut().tolist()
    assert len(session.segments) == len(set(table[1:]))
    assert session.segments.ids().tolist() == sorted(set(table[1:]))
    return {
        segment: frozenset(s for s, k in enumerate(table) if k == segment)
        for segment in set(table[1:])
    }


def observed(session):
    """Return all that is to be the same again after an undo: pictures, ids, marks, words."""
    threshold = session.threshold
    seen = {}
    for scale in (*SCALES, threshold):
        session.threshold = scale
        seen[scale] = (
            session.labels().tolist(),
            len(session.segments),
            session.segments.locked().tolist(),
        )
    session.threshold = threshold
    return (
        seen,
        session.graph.ids.tolist(),
        session.graph.edges.tolist(),
        session.graph.boundaries.tolist(),
        session.graph.regions.tolist(),
        session.history.asleep(),
        session._state.overrides,
        session._state.answers,
        session.marks.all(),
        [item.words for item in session.history if not item.undone],
    )


def sizes(session, segments):
    """Return the pixels of sets of superpixels."""
    return [int(np.sum(session.graph.sizes[list(s)])) for s in segments]


def busy_session(path, n_edits=40, seed=0, after=lambda session: None):
    """Return an open session with edits of every kind at mixed scales, divisions among them.

    `after` is called after each of them, with the session.
    """
    rng = np.random.default_rng(seed)
    labels = np.kron(rng.permutation(np.arange(1, 37)).reshape(6, 6), np.ones((3, 3), int))
    graph = agglo.region_graph(labels, {"boundary": rng.integers(0, 9, labels.shape) / 8})
    features = feature_map(graph)
    policy = LearnedPolicy(features, random_forest(seed, features.width, trees=5))
    session = Session.create(path, graph, policy)
    kinds = ["merge", "merge", "children", "points", "lock", "unlock", "up", "down", "mark", "undo"]
    while len(session.history) < n_edits:
        session.threshold = float(rng.choice((0.2, 0.4, 0.6, 0.8)))
        a = int(rng.choice(session.segments.ids()))
        try:
            match rng.choice(kinds):
                case "merge":
                    session.merge(a, int(rng.choice(session.segments.neighbours(a))))
                case "children":
                    session.cut_children(a)
                case "points":
                    pixels = np.argwhere(session.labels() == a)
                    chosen = pixels[rng.choice(len(pixels), 2, replace=False)].tolist()
                    session.cut(a, points=[[chosen[0]], [chosen[1]]], method="seeded")
                case "lock":
                    session.lock(a)
                case "unlock":
                    session.unlock(int(rng.choice(session.segments.locked())))
                case "mark":
                    session.marks.rename(a, f"cell {a}")
                case "undo":
                    session.undo()
                case way:
                    getattr(session, way)(a)
        except (InvalidInput, ValueError):  # refused, or nothing to choose from
            continue
        after(session)
    return session
