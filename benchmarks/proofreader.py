"""A simulated proofreader, who answers by the gold standard, in several orders.

The questions that `Session.queue` has at the start are asked in random order or the largest
boundary first, without those that earlier answers have made pointless. The order "queue" is that of
`Session.queue` itself, computed anew after each answer.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import napari_agglo as agglo
from napari_agglo.evaluate import contingency
from napari_agglo.graph import RegionGraph
from napari_agglo.session._suggestions import Suggestion

Order = Literal["queue", "random", "largest boundary"]
ALL = 1_000_000


@dataclass(frozen=True, eq=False)
class Truth:
    """Overlaps of superpixels with gold segments."""

    ids: NDArray[np.uint64]
    shared: NDArray[np.int64]  # pixels by superpixel and gold segment, dense

    @classmethod
    def of(cls, graph: RegionGraph, gold: Any) -> Truth:
        """Count the overlaps once."""
        table = contingency(graph.superpixels, gold)
        shared = np.zeros((graph.n_regions + 1, table.column_ids.size), np.int64)
        shared[table.rows, table.columns] = table.counts
        return cls(graph.ids, shared)

    def object_of(self, superpixels: NDArray[Any]) -> int:
        """Return the gold segment that holds most of these superpixels (ids); 0 if none is."""
        return int(self.shared[np.searchsorted(self.ids, superpixels)].sum(axis=0).argmax())


def segment_of(session: agglo.Session, superpixel: int) -> int:
    """Return the present segment of a superpixel."""
    return int(session.lut()[np.searchsorted(session.graph.ids, superpixel)])


def answer(session: agglo.Session, truth: Truth, asked: Suggestion) -> bool:
    """Answer one question, and return whether it still made sense.

    The two sides are one object if the gold segment that holds most of either is the same.
    """
    try:
        sides = sides_of(session, asked)
        first, second = (truth.object_of(side) for side in sides)
        if 0 in (first, second):
            session.queue.skip(asked)
        elif (first == second) == (asked.kind == "false_split"):
            session.queue.accept(asked)
        else:
            session.queue.reject(asked)
    except agglo.InvalidInput:  # what it was about has changed, or it cannot be cut
        with suppress(agglo.InvalidInput):
            session.queue.skip(asked)  # if it still is a question, it is not to come again
        return False
    return True


def sides_of(session: agglo.Session, asked: Suggestion) -> list[NDArray[np.uint64]]:
    """Return the superpixels of the two segments, or of the two parts of one."""
    a, b = asked.superpixels
    if asked.kind == "false_split":
        return [session.segments.members(segment_of(session, one)) for one in (a, b)]
    parts = session.preview(segment_of(session, a), [[a], [b]], method="tree").parts
    return [next(part for part in parts if one in part) for one in (a, b)]


def questions(
    session: agglo.Session, order: Order, rng: np.random.Generator
) -> Iterator[Suggestion]:
    """Yield the questions, one after the other."""
    if order == "queue":
        while found := session.queue.next(1):
            yield found[0]
        return
    while found := session.queue.next(ALL):
        if order == "random":
            chosen = rng.permutation(len(found))
        else:
            chosen = np.argsort([-_faces(session, one) for one in found], kind="stable")
        for k in chosen:
            yield found[k]


def _faces(session: agglo.Session, asked: Suggestion) -> int:
    """Return the faces of the boundary between the two sides of a question."""
    try:
        sides = sides_of(session, asked)
    except agglo.InvalidInput:
        return 0
    graph = session.graph
    side = np.zeros(graph.n_regions + 1, np.int8)
    for k, members in enumerate(sides, start=1):
        side[np.searchsorted(graph.ids, members)] = k
    ends = np.sort(side[graph.edges], axis=1)
    between = (ends == [1, 2]).all(axis=1)
    return int(graph.boundaries[between][:, graph.layout.faces].sum())


def proofread(
    graph: RegionGraph,
    gold: Any,
    policy: Any,
    order: Order,
    decisions: int,
    *,
    seed: int = 0,
    threshold: float = 0.5,
    relearn_every: int | None = None,
    volumes: Any = None,
) -> NDArray[np.float64]:
    """Return the VI after 0, 1, 2, ... decisions; the last one stays where no question is left.

    Parameters
    ----------
    graph, gold, policy
        The volume, the answers, and the policy of the session.
    order : str
        Order of the questions.
    decisions : int
        Number of answers.
    seed : int
        Seed of the random order, and of refits.
    threshold : float
        Threshold of the session.
    relearn_every : int, optional
        Learn from the answers after so many of them.
    volumes : list of (graph, gold), optional
        Volumes that the policy was trained on, to learn from again beside the answers.
    """
    truth = Truth.of(graph, gold)
    out: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "volume.agglo"
        with agglo.Session.create(path, graph, policy, gold=gold) as session:
            session.threshold = threshold
            out.append(session.errors.vi)
            rng = np.random.default_rng(seed)
            for asked in questions(session, order, rng):
                if not answer(session, truth, asked):
                    continue
                if relearn_every and len(out) % relearn_every == 0:
                    session.relearn(volumes, seed=seed)
                out.append(session.errors.vi)
                if len(out) > decisions:
                    break
    return np.array(out + out[-1:] * (decisions + 1 - len(out)))
