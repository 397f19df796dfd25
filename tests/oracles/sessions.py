"""A session as seen from outside, and what its journal must amount to, from scratch."""

from __future__ import annotations

import json

import numpy as np
from oracles.edits import adjacency, policy_score, tree_of_edits
from oracles.repairs import as_scores

from napari_agglo.graph import divide, runs_to_pieces
from napari_agglo.session._edits import Cut, as_ids, from_json

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
            said = [plain["division"]] if "division" in plain else plain.get("divisions", [])
            for through in said:
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
    if not isinstance(edit, Cut):
        return edit
    parts = [
        as_ids({*part.tolist(), *division.members.tolist()})
        if division.superpixel in part
        else part
        for part in edit.parts
    ]
    return Cut(edit.scale, tuple(parts))


def partition(session):
    """Return the segments that are seen: sets of superpixels (dense ids) by segment id."""
    table = session.lut().tolist()
    assert session.n_segments == len(set(table[1:]))
    assert session.segments().tolist() == sorted(set(table[1:]))
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
        seen[scale] = session.labels().tolist(), session.n_segments, session.locked().tolist()
    session.threshold = threshold
    return (
        seen,
        session.graph.ids.tolist(),
        session.graph.edges.tolist(),
        session.graph.boundaries.tolist(),
        session.graph.regions.tolist(),
        session.asleep(),
        session._state.overrides,
        session._state.answers,
        {k: session._state.marks[k] for k in session._state.marks},
        [item.words for item in session.history if not item.undone],
    )


def sizes(session, segments):
    """Return the pixels of sets of superpixels."""
    return [int(np.sum(session.graph.sizes[list(s)])) for s in segments]
