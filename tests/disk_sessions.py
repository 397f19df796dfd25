"""Random edits of sessions, for comparing those on disk with those in memory."""

from __future__ import annotations

import numpy as np

from napari_agglo.errors import InvalidInput


def points_in(graph, superpixel, rng):
    """Return two pixels of a superpixel, far from each other."""
    box = tuple(slice(a, b) for a, b in graph.boxes[superpixel].T.tolist())
    inside = np.argwhere(np.asarray(graph.superpixels.image[box]) == superpixel)
    inside += graph.boxes[superpixel, 0]
    first = inside[rng.integers(len(inside))]
    far = np.abs(inside - first).sum(axis=1).argmax()
    return [[tuple(first.tolist())], [tuple(inside[far].tolist())]]


def walk(session, seed, steps):
    """Make random edits; return what was said, refusals too."""
    rng, said = np.random.default_rng(seed), []
    for _ in range(steps):
        verb = rng.choice(["threshold", "merge", "points", "points", "undo", "redo", "lock"])
        ids = session.segments.ids()
        segment = int(rng.choice(ids))
        try:
            if verb == "threshold":
                session.threshold = float(rng.choice([0.2, 0.35, 0.5]))
            elif verb == "merge":
                others = session.segments.neighbours(segment)
                said.append(str(session.merge(segment, int(rng.choice(others)))))
            elif verb == "points":
                graph = session.graph
                members = np.searchsorted(graph.ids, session.segments.members(segment))
                large = members[graph.sizes[members] > 4]
                points = points_in(graph, int(rng.choice(large)), rng)
                said.append(str(session.preview(segment, points=points).sizes))
                said.append(str(session.cut(segment, points=points)))
            else:
                arguments = (segment,) if verb == "lock" else ()
                said.append(str(getattr(session, verb)(*arguments)))
        except (InvalidInput, ValueError) as error:  # ValueError: there is nothing to choose from
            said.append(str(error))
    return said


def same_graphs(one, other):
    names = ("ids", "edges", "regions", "boundaries", "boxes")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)
