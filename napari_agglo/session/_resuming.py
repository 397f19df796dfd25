"""A state as it was after an entry of the journal, kept as arrays so that opening need not replay.

It is a cache. What is written down is the tree with all that undoing needs; all else is cheap and
is read off the journal. If it is damaged, of another version or of another history, the journal is
replayed instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.graph import Division
from napari_agglo.session._actions import Action
from napari_agglo.session._edits import Edit
from napari_agglo.session._hierarchy.frozen_tree import frozen, thawed
from napari_agglo.session._state import State

NAME = "state"
_FORMAT = 1  # another number when trees or names come about in another way


def state_arrays(state: State) -> dict[str, NDArray[Any]]:
    """Return the trees of a state as arrays: one, and one for each time that it has learned."""
    trees = [applied.before[1] for applied in state.done if applied.before is not None]
    found = {"format": np.array([_FORMAT, len(trees) + 1], np.int64)}
    for k, tree in enumerate([*trees, state.tree]):
        found |= {f"tree{k}_{name}": array for name, array in frozen(tree).items()}
    return found


def resume(state: State, actions: Iterable[Action], arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Bring a new state to where it was after `actions`; return whether the arrays were of use.

    If they were not, the state is to be thrown away.
    """
    try:
        version, n_trees = arrays["format"].tolist()
        if version != _FORMAT:
            return False
        start, number = state.graph, 0
        edits: list[Edit] = []
        divisions: list[tuple[Division, ...]] = []

        def put_tree() -> None:
            prefix = f"tree{number}_"
            own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
            state.tree = thawed(start, state.policy, own, edits, divisions)

        for action in actions:
            if action.policy is None:
                applied = state.retrace(action)
            else:
                put_tree()
                start, number, edits, divisions = state.graph, number + 1, [], []
                applied = state.retrace(action, state.recall(action.policy))
            edits += [step.edit for step in action.steps]
            divisions += applied.divisions
        put_tree()
        return bool(number + 1 == n_trees)
    except (InvalidInput, KeyError, ValueError, IndexError, TypeError):
        return False
