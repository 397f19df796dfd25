"""Arrays of a replay: slots, leaves, edges and the recorded stream; see `replay_kernels`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration._adjacency import Adjacency

SLOT = np.dtype(
    [
        ("node", np.int32),  # row of the log
        ("low", np.int32),  # smallest superpixel
        ("part", np.int32),  # of the cut that is made: slots of different parts do not meet
        ("locked", np.int32),
        ("fence_set", np.int32),  # see `fences`
        ("first", np.int32),  # leaves, chained by `next`: the first, the last, and ...
        ("last", np.int32),
        ("unsummed", np.int32),  # ... the first whose statistics are not added up; see `add_up`
        ("closed", np.int32),  # leaves that are not open, chained by `next_closed`
        ("last_closed", np.int32),
        ("size", np.int64),
        ("level", np.float64),
        ("hash_a", np.int64),
        ("hash_b", np.int64),
    ]
)
LEAF = np.dtype(
    [
        ("superpixel", np.int32),
        ("next", np.int32),
        ("next_closed", np.int32),
        ("is_open", np.int32),
        ("home", np.int32),  # the slot in whose row it is counted, -1 at first
    ]
)
EDGE = np.dtype(
    [
        ("first", np.int32),  # places in `chain` of the boundaries that it is made of
        ("last", np.int32),
        ("summed", np.int32),  # the last of them whose statistics are added up, -1 at first
        ("known", np.int32),  # whether `priority` is that of its present regions
        ("wanted", np.int32),
        ("unused", np.int32),
        ("priority", np.float64),
        ("floor", np.float64),  # level below which it cannot merge
    ]
)
RECORDED = np.dtype(
    [
        ("row", np.int32),  # of the log
        ("above", np.int32),  # the recorded merge of its stretch that takes it in, or -1
        ("waiting", np.int32),  # number of its regions that merges of its stretch have yet to make
        ("crosses", np.int32),  # whether it joins parts of the cut that is made
    ]
)


class Work(NamedTuple):
    """Regions of a replay: the root of each slot, the slots, and their superpixels."""

    joined: NDArray[np.int32]
    slots: NDArray[np.void]  # SLOT
    slot_of: NDArray[np.int32]  # of each superpixel of the session, -1 outside of the replay
    leaves: NDArray[np.void]  # LEAF


class KeyQueue(NamedTuple):
    """Indexed heap of edges, and of recorded merges, whose items follow those of the edges."""

    keys: NDArray[np.float64]  # (items, 2): level and priority
    ties: NDArray[np.int64]
    heap: NDArray[np.int32]
    place: NDArray[np.int32]
    size: NDArray[np.int64]  # (1,)


class Dirty(NamedTuple):
    """Hash table of regions that only one run has; see `_toggle` in `replay_kernels`."""

    hashes: NDArray[np.int64]
    nodes: NDArray[np.int32]  # the row of each
    marks: NDArray[np.int8]


class Cuts(NamedTuple):
    """Parts of live cuts that each slot has superpixels of; see `fences`."""

    fence_sets: NDArray[np.int64]
    entries: NDArray[np.int64]
    places: NDArray[np.int64]
    tops: NDArray[np.float64]
    used: NDArray[np.int64]
    scales: NDArray[np.float64]  # of all edits


class Lists(NamedTuple):
    """Results of a replay, and lists of what is to be done; their lengths are in `state`."""

    made: NDArray[np.void]  # ROW: new rows of the log
    done: NDArray[np.int32]  # (merges, 3): rows, with the rows of their two parts
    gone: NDArray[np.int32]  # recorded merges that do not happen
    pending: NDArray[np.int32]  # slots
    wanted: NDArray[np.int32]  # edges


class Run(NamedTuple):
    """All arrays of a replay."""

    state: NDArray[np.int64]
    rows: NDArray[np.void]  # of the log
    stream: NDArray[np.void]  # RECORDED
    work: Work
    graph: Adjacency
    edges: NDArray[np.void]  # EDGE
    chain: NDArray[np.int32]
    queue: KeyQueue
    dirty: Dirty
    cuts: Cuts
    lists: Lists


class Limits(NamedTuple):
    """The key at which `advance` stops, and what it may do before."""

    target: float  # boundaries of higher levels need not enter the heap: the replay ends there
    stop: float  # level ...
    stop_tie: int  # ... and, after all automatic merges of that level, tie of the key
    holds: bool  # whether boundaries of pending slots need not be in the heap yet
    believes: bool  # whether the record is believed, with its edits
    steady: bool  # whether the priority of a boundary depends on that boundary alone
    most: int  # merges


# Counters in `state`, and the merge that an edit wants done.
N_WANTED, N_PENDING, N_MADE, N_DONE, N_GONE, N_EDGES, N_LINKS = range(7)
JOIN_U, JOIN_V, JOIN_EDIT, IS_ACTIVE, TOP = range(7, 12)
# Reasons why `advance` returns.
STOPPED, OFFER, PAUSED, DIVERGED, JOINED = range(5)
