"""Random histories of edits, looks, undo and redo, compared with the run from scratch."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st
from oracles.edits import adjacency, asleep, constraints, policy_score, tree_of_edits
from oracles.proofreader import SCALES, draw_cut_through, draw_edit
from oracles.repairs import (
    as_scores,
    hub_graph,
    nodes_of,
    partition,
    score_by_mean,
    score_by_sizes,
    state_of,
)
from oracles.sessions import with_pieces

from napari_agglo.session._actions import Cut, Lock, Merge, as_ids
from napari_agglo.session._hierarchy import forest_cells, superpixels
from napari_agglo.session._hierarchy.hierarchy import Hierarchy

KINDS = ("edit", "edit", "edit", "edit", "divide", "look", "undo", "redo")
COMPARED = Counter()  # histories, edits, looks and undos that have been compared in this process


class History:
    """A tree under edits, the run from scratch that it must equal, and the way back."""

    def __init__(self, graph, kind, seed):
        self.kind, self.seed = kind, seed
        self.tree = Hierarchy(graph, as_scores(graph, kind, seed)[0])
        self.edits, self.past, self.undone = [], [], []
        self._read(graph)

    def _read(self, graph):
        self.graph, self.neighbours = graph, adjacency(graph)
        if self.kind == "callable":
            self.score = score_by_sizes(graph, self.seed)
        else:
            self.score = policy_score(graph, as_scores(graph, self.kind, self.seed)[1])

    def run(self):
        """Return the tree from scratch."""
        return tree_of_edits(self.neighbours, self.score, self.edits)

    def do(self, edit, divisions=()):
        self.tree.look(edit.scale)
        self.past.append((state_of(self.tree), self.graph, self.edits, edit, divisions))
        asked = self.tree.n_scored
        self.tree.do(edit, divisions=divisions)
        if type(edit).__name__ != "Cut":
            assert self.tree.n_scored == asked, "only a cut may ask the policy at its own scale"
        graph = self.graph
        for division in divisions:
            graph = division.apply(graph)
            self.edits = [with_pieces(one, division) for one in self.edits]
        if divisions:
            self._read(graph)
        self.edits = [*self.edits, edit]
        COMPARED["edits"] += 1

    def undo(self):
        self.tree.undo()
        state, graph, self.edits, edit, divisions = self.past.pop()
        assert state_of(self.tree) == state
        self.undone.append((edit, divisions))
        if divisions:
            self._read(graph)
        COMPARED["undos"] += 1

    def compare(self):
        """Compare all merges, and what is asleep."""
        expected = self.run()
        assert nodes_of(self.tree) == expected.nodes()
        assert set(self.tree.asleep()) == asleep(expected, self.edits)
        COMPARED["looks"] += 1


def check_against_oracle(data, graph, kind, seed, most, look_always=False, kinds=KINDS):
    """Edit, look, undo and redo at random; after each compare with the run from scratch."""
    history = History(graph, kind, seed)
    history.compare()
    tree, draw = history.tree, data.draw
    for _ in range(draw(st.integers(1, most), label="steps")):
        action = draw(st.sampled_from(kinds))
        scale = draw(SCALES)
        if action == "undo" and history.edits:
            history.undo()
        elif action == "redo" and history.undone:
            history.do(*history.undone.pop())
        elif action in ("edit", "divide"):
            seen = history.run().partition(scale)
            locks = constraints(history.edits)[1]
            if action == "edit":
                drawn = draw_edit(draw, history.neighbours, seen, locks, scale)
            else:
                drawn = draw_cut_through(draw, history.graph, seen, locks, scale)
            if drawn is not None:
                edit, expected, *divisions = drawn
                history.do(edit, *divisions)
                history.undone.clear()
                assert partition(tree, scale) == expected
        elif action == "look":
            assert partition(tree, scale) == history.run().partition(scale)
            COMPARED["looks"] += 1
        if look_always:
            tree.look(math.inf)
    expected = history.run()
    for scale in draw(st.lists(SCALES, max_size=2)):
        assert partition(tree, scale) == expected.partition(scale)
        COMPARED["looks"] += 1
    history.compare()
    while history.past:
        history.undo()
    COMPARED["histories"] += 1


def check_cells(data, graph, seed, most):
    """Do the same by a forest that keeps few cells, from the beginning or after some questions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(superpixels.Asker, "few", data.draw(st.sampled_from([0, 0, 10])))
        patch.setattr(forest_cells, "_EDGES", 5)
        patch.setattr(forest_cells, "_SLOTS", 3)
        check_against_oracle(data, graph, "forest", seed, most)


def check_hub(n, seed, edits, kind="callable"):
    """Edit the region that touches all the others, and these; compare with the run from scratch."""
    rng = np.random.default_rng(seed)
    history = History(hub_graph(n, seed), kind, seed)
    if kind == "mean":
        history.score = score_by_mean(history.graph)
    for _ in range(edits):
        scale = float(rng.choice([0.0, 0.25, 0.5, 0.75]))
        seen = sorted(history.run().partition(scale), key=len)
        free = [region for region in seen if region not in constraints(history.edits)[1]]
        if not free:
            break
        largest, other = free[-1], free[rng.integers(len(free))]
        if len(largest) > 1 and rng.random() < 0.5:
            members = rng.permutation(sorted(largest))
            at = rng.integers(1, len(members))
            edit = Cut(scale, (as_ids(members[:at]), as_ids(members[at:])))
        elif largest != other:
            edit = Merge(scale, ((min(largest), min(other)),))
        else:
            edit = Lock(scale, as_ids(largest))
        history.do(edit)
        scale = float(rng.choice([scale, 0.3, 0.6, 0.9]))
        assert partition(history.tree, scale) == history.run().partition(scale)
        COMPARED["looks"] += 1
    history.compare()
    while history.past:
        history.undo()
    COMPARED["histories"] += 1
