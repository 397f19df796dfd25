"""Random histories of edits, moves, looks, undo and redo, compared with the run from scratch."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import strategies as st
from oracles.edits import adjacency, asleep, constraints, policy_score, tree_of_edits
from oracles.moves import shown
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

from napari_agglo import InvalidInput
from napari_agglo.session._actions import Cut, Lock, Merge, Override, as_ids, fingerprint
from napari_agglo.session._hierarchy import forest_cells, superpixels
from napari_agglo.session._hierarchy.hierarchy import Hierarchy
from napari_agglo.session._threshold_view import Frontier

KINDS = (*["edit"] * 4, "divide", "look", "undo", "redo", "move", "move", "make real")
COMPARED = Counter()  # what has been compared in this process: histories, edits, looks, ...


class History:
    """A tree under edits, the run from scratch that it must equal, and the way back."""

    def __init__(self, graph, kind, seed):
        self.kind, self.seed = kind, seed
        self.tree = Hierarchy(graph, as_scores(graph, kind, seed)[0])
        self.edits, self.past, self.undone = [], [], []
        self.moves = []  # up and down; edits and undo may hide them, and show them again
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
        state = state_of(self.tree)
        self.past.append((state, self.graph, self.edits, [*self.moves], edit, divisions))
        n_scored = self.tree.n_scored
        self.tree.do(edit, divisions=divisions)
        if type(edit).__name__ != "Cut":
            assert self.tree.n_scored == n_scored, "only a cut may ask the policy at its own scale"
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
        state, graph, self.edits, self.moves, edit, divisions = self.past.pop()
        assert state_of(self.tree) == state
        self.undone.append((edit, divisions))
        if divisions:
            self._read(graph)
        COMPARED["undos"] += 1

    def frontier(self, scale):
        """Return the view at a scale, with the moves that are possible now."""
        frontier = Frontier(self.tree, scale)
        for move in self.moves:
            if move.scale == scale:
                with suppress(InvalidInput):
                    frontier.apply(move)
        return frontier

    def move(self, direction, scale, superpixel):
        """Show the segment at a superpixel one step up or down; compare the view."""
        frontier = self.frontier(scale)
        members = self.tree.members(frontier.shown(superpixel))
        move = Override(direction, scale, superpixel, fingerprint(members))
        try:
            frontier.apply(move)
        except InvalidInput:  # it is locked, or its branch ends: the run agrees
            self.compare_view(scale, [*self.moves, move])
        else:
            before = self.seen(scale)
            self.moves.append(move)
            assert self.seen(scale) != before
        self.compare_view(scale, self.moves)
        COMPARED["moves"] += 1

    def make_real(self, scale, superpixel):
        """Turn the moves at a scale into an edit where a superpixel is, and drop the others."""
        frontier = self.frontier(scale)
        edit = frontier.edit_for(superpixel)
        if edit is None:
            return
        members, region = self.tree.members, self.tree.region(superpixel, scale)
        touched = frozenset({*members(region), *members(frontier.shown(superpixel))})
        seen, apart = self.seen(scale), partition(self.tree, scale)
        COMPARED["moves made real"] += 1
        self.do(edit)
        self.undone.clear()
        self.moves = [move for move in self.moves if move.scale != scale]
        assert partition(self.tree, scale) == (
            {segment for segment in seen if segment <= touched}
            | {segment for segment in apart if not segment & touched}
        )

    def seen(self, scale):
        """Return the segments of the view as sets."""
        frontier = self.frontier(scale)
        nodes = {frontier.shown(superpixel) for superpixel in self.neighbours}
        return {frozenset(self.tree.members(node).tolist()) for node in nodes}

    def compare_view(self, scale, moves):
        assert self.seen(scale) == shown(self.run(), self.edits, scale, moves)

    def compare(self):
        """Compare all merges, what is asleep, and the views that have moves."""
        expected = self.run()
        assert nodes_of(self.tree) == expected.nodes()
        assert set(self.tree.asleep()) == asleep(expected, self.edits)
        for scale in {move.scale for move in self.moves}:
            assert self.seen(scale) == shown(expected, self.edits, scale, self.moves)
        COMPARED["looks"] += 1


def check_against_oracle(data, graph, kind, seed, most, look_always=False, kinds=KINDS):
    """Edit, look, move, undo and redo at random; compare each with the run from scratch."""
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
        elif action == "move":
            superpixel = draw(st.integers(1, history.graph.n_regions))
            if history.edits and draw(st.booleans()):  # where one has just been made
                scale, superpixel = place_of(history.edits[-1])
            history.move(draw(st.sampled_from(["up", "down"])), scale, superpixel)
        elif action == "make real" and history.moves:
            move = draw(st.sampled_from(history.moves))
            history.make_real(move.scale, move.superpixel)
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


def place_of(edit):
    """Return the scale of an edit, and a superpixel of what it concerns."""
    if isinstance(edit, Merge):
        return edit.scale, edit.pairs[0][0]
    if isinstance(edit, Cut):
        return edit.scale, int(edit.parts[0][0])
    return edit.scale, int(edit.members[0]) if isinstance(edit, Lock) else edit.superpixel


def check_cells(data, graph, seed, most):
    """Do the same by a forest that keeps few cells, from the beginning or after some questions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(superpixels.Scorer, "few", data.draw(st.sampled_from([0, 0, 10])))
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
