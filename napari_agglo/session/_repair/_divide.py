"""A superpixel in pieces: what follows it (leaves, rows, neighbours, edits), and the way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_agglo.graph import Division
from napari_agglo.session._edits import Ids, as_ids
from napari_agglo.session._repair._nodes import BIRTH, LEVEL, LOW, MARK, PARENT, PEAK, UNTIL

if TYPE_CHECKING:
    from napari_agglo.session._repair._record import Record


@dataclass(frozen=True, eq=False)
class Divided:
    """What a division changed, to take it back."""

    n: int  # superpixels before
    superpixel: int
    leaf: int
    row: int
    around: NDArray[np.int64]  # superpixels whose neighbours changed, and where these were
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    adjacent: int
    rows: tuple[int, int]
    count: int
    pooled: int
    parts: dict[int, tuple[Ids, ...]]


def divide(record: Record, division: Division) -> Divided:
    """Put the pieces of a superpixel in its place: each a leaf of which nothing is recorded.

    What older edits say of the superpixel they say of each piece; an anchor stays with the largest,
    which keeps the id.
    """
    nodes, ground, constraints = record.nodes, record.ground, record.constraints
    s = division.superpixel
    pieces = division.members
    around = np.unique(division.new.edges)
    old = around[around < len(nodes.leaves)]
    concerned = [(edit, k) for edit, k in constraints.entries(s) if k >= 0]
    divided = Divided(
        n=len(nodes.leaves) - 1,
        superpixel=s,
        leaf=int(nodes.leaves[s]),
        row=int(ground.row_of[s]),
        around=old,
        start=ground.start[old],
        stop=ground.stop[old],
        adjacent=ground.n_adjacent,
        rows=(len(ground.more_regions), len(ground.more_boundaries)),
        count=nodes.count,
        pooled=constraints.pooled,
        parts={edit: constraints.parts[edit] for edit, _ in concerned},
    )
    n = divided.n + len(pieces) - 1
    resize(record, n)
    ground.divide(division)
    nodes.make_room(len(pieces))
    rows = np.arange(nodes.count, nodes.count + len(pieces))
    nodes.links[rows] = -1
    nodes.links[rows, MARK] = 0
    nodes.links[rows, PEAK] = rows
    nodes.links[rows, LOW] = pieces
    nodes.links[rows, PARENT] = divided.leaf
    nodes.scales[rows] = np.inf
    nodes.scales[rows, BIRTH] = nodes.scales[rows, LEVEL] = nodes.scales[rows, UNTIL] = -np.inf
    nodes.sizes[rows] = division.new.regions[:, 0]
    nodes.leaves[pieces] = rows
    nodes.count += len(pieces)
    for edit, k in concerned:
        parts = list(constraints.parts[edit])
        parts[k] = as_ids(np.concatenate([parts[k], pieces[1:]]))
        constraints.parts[edit] = tuple(parts)
        constraints.enter_again(pieces[1:], edit, k)
    return divided


def make_whole(record: Record, divided: Divided) -> None:
    """Take a division back, the last one."""
    nodes, ground, constraints = record.nodes, record.ground, record.constraints
    s = divided.superpixel
    resize(record, divided.n)
    nodes.leaves[s] = divided.leaf
    nodes.count = divided.count
    ground.start[divided.around] = divided.start
    ground.stop[divided.around] = divided.stop
    ground.row_of[s] = divided.row
    ground.n_adjacent = divided.adjacent
    ground.more_regions = ground.more_regions[: divided.rows[0]]
    ground.more_boundaries = ground.more_boundaries[: divided.rows[1]]
    constraints.pooled = divided.pooled
    for edit, parts in divided.parts.items():
        constraints.parts[edit] = parts


def resize(record: Record, n: int) -> None:
    """Make every table of superpixels one of 1..`n`."""
    record.names.extend(n)
    for owner, attribute, value in (
        (record.nodes, "leaves", 0),
        (record.ground, "start", 0),
        (record.ground, "stop", 0),
        (record.ground, "row_of", 0),
        (record.constraints, "heads", -1),
        (record.constraints, "lock_of", 0),
        (record.places, "slot_of", -1),
        (record.places, "leaf_next", 0),
    ):
        table = getattr(owner, attribute)[: n + 1]
        more = np.full(n + 1 - len(table), value, table.dtype)
        setattr(owner, attribute, np.concatenate([table, more]))
