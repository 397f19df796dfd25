"""Segments shown up and down their branches, on sets: what a move at a scale makes of those seen.

Up puts the parent of a segment in the place of all segments within it, down its children in its
own place. A move of another segment than it was made of, or of a locked one, shows nothing.
"""

from __future__ import annotations

from oracles.edits import constraints

from napari_agglo.session._actions import as_ids, fingerprint, from_json


def moves_of(entries):
    """Return the moves of the live entries of a journal that no later entry has made real."""
    moves = []
    for entry in entries:
        dropped = entry.get("dropped", ())
        moves = [move for k, move in enumerate(moves) if k not in dropped]
        if entry.get("override"):
            moves.append(from_json(entry["override"]))
    return moves


def shown(tree, edits, scale, moves):
    """Return the segments that are seen at a scale, as a set of sets of superpixels."""
    locked = frozenset().union(*constraints(edits)[1])
    made = {merge.union: merge for merge in tree.merges}
    into = {part: merge for merge in tree.merges for part in (merge.first, merge.second)}
    seen = tree.partition(scale)
    for move in moves:
        if move.scale != scale or move.superpixel in locked:
            continue
        (segment,) = (region for region in seen if move.superpixel in region)
        if move.of and move.of != fingerprint(as_ids(segment)):
            continue
        new = parents(segment, into) if move.direction == "up" else children(segment, made)
        if new:
            whole = frozenset().union(*new)
            seen = {region for region in seen if not region & whole} | new
    return seen


def parents(region, into):
    """Return the region that one becomes a part of, all that an edit joins with it; or none."""
    merge = into.get(region)
    while merge is not None:
        above = into.get(merge.union)
        if merge.edit is None or above is None or above.edit != merge.edit:
            return {merge.union}
        merge = above
    return set()


def children(region, made):
    """Return the regions that one was made of, all that an edit has joined; or none."""
    merge = made.get(region)
    if merge is None:
        return set()
    found, waiting = set(), [merge.first, merge.second]
    while waiting:
        piece = waiting.pop()
        within = made.get(piece)
        if merge.edit is not None and within is not None and within.edit == merge.edit:
            waiting += [within.first, within.second]
        else:
            found.add(piece)
    return found
