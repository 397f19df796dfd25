"""The edits of a session, done again on the tree of another policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.policy import Policy
from napari_agglo.session._edits import Cut, Edit, Lock, Merge
from napari_agglo.session._learning._classes import Classes
from napari_agglo.session._learning._divide import divided_segments
from napari_agglo.session._learning._wishes import NotReplayed, Wishes
from napari_agglo.session._repair._hierarchy import Hierarchy


def replayed(
    hierarchy: Hierarchy,
    old_edits: Sequence[Edit],
    threshold: float,
    progress: ProgressCallback | None = None,
    policy: Policy | None = None,
) -> tuple[list[Edit], list[NotReplayed]]:
    """Do edits again on another tree, as wishes of superpixels to be together or apart.

    Afterwards, at the threshold: the two anchors of every pair of a merge are in one segment; two
    superpixels of different parts of a cut are in two; a locked segment is whole, alone and locked.
    Wishes that contradict a newer edit are not fulfilled but returned. A segment that holds what is
    to be apart is cut along the merges of the new tree, and what belongs to no part goes where it
    is tied most; a segment that holds no such thing is left as the new policy made it.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree of the new policy, without edits; it is changed. After an error, or a cancel, it
        may have some of the edits and should be thrown away.
    old_edits : sequence of Edit
        Live edits, oldest first, whatever their scales; superpixels as numbered in `hierarchy`.
    threshold : float
        The scale at which they are done again.
    progress : callable, optional
        Told how far we are; may raise `Cancelled`.
    policy : Policy, optional
        What says how much a boundary ties; without one its area does.

    Returns
    -------
    new_edits : list of Edit
        What was done, in order: cuts of segments, every merge with what is left of its pairs, and
        locks. They are as many as are needed, not one for each old edit.
    not_replayed : list of NotReplayed
        What newer edits do not allow, in the order of the edits.

    Examples
    --------
    >>> import numpy as np
    >>> from napari_agglo import region_graph
    >>> from napari_agglo.policy import MeanPolicy
    >>> from napari_agglo.session._edits import as_ids
    >>> row = np.array([[1, 2, 3, 4]])
    >>> tree = Hierarchy(region_graph(row, np.array([[0.1, 0.1, 0.2, 0.9]])), MeanPolicy())
    >>> tree.table(0.3)
    array([0, 1, 1, 1, 4], dtype=uint32)
    >>> edits = [Merge(0.2, ((1, 3),)), Cut(0.2, (as_ids([1]), as_ids([3]))), Merge(0.9, ((3, 4),))]
    >>> new_edits, not_replayed = replayed(tree, edits, 0.3)
    >>> tree.table(0.3)
    array([0, 1, 1, 3, 3], dtype=uint32)
    >>> [one.words for one in not_replayed]
    ['Superpixels 1 and 3 are not merged: a newer cut forbids it.']
    """
    if hierarchy.edits:
        raise InvalidInput(
            f"`hierarchy` has {len(hierarchy.edits)} edits already; make a new one for the policy."
        )
    ids = hierarchy.record.ground.graph.ids
    for edit in old_edits:
        _check(edit, len(ids) - 1)
    hierarchy.look(threshold, progress)
    wishes = Wishes(old_edits, ids)
    edits: list[Edit] = []
    troubled = _troubled(hierarchy, wishes, threshold)
    for k, nodes in enumerate(troubled):
        report(progress, "cut", k, len(troubled))
        for parts in divided_segments(hierarchy, wishes, nodes, policy):
            edits.append(Cut(threshold, parts))
    edits += [Merge(threshold, tuple(wishes.pairs[index])) for index in sorted(wishes.pairs)]
    for index in sorted(wishes.locks):
        first, *others = wishes.locks[index].tolist()
        if others:
            edits.append(Merge(threshold, tuple((first, other) for other in others)))
        edits.append(Lock(threshold, wishes.locks[index]))
    for k, edit in enumerate(edits):
        report(progress, "replay", k, len(edits))
        hierarchy.do(edit)
    return edits, wishes.not_replayed


def _check(edit: Edit, n: int) -> None:
    """Refuse an edit of superpixels that are not there."""
    if isinstance(edit, Merge):
        named = np.array(edit.pairs).reshape(-1)
    elif isinstance(edit, Cut):
        named = np.concatenate(edit.parts)
    else:
        named = edit.members if isinstance(edit, Lock) else np.array([edit.superpixel])
    if len(named) and not (named.min() >= 1 and named.max() <= n):
        raise InvalidInput(
            f"`old_edits` has an edit of superpixel {named.max()}, and `hierarchy` has 1 to {n}; "
            "pass the edits of a session on these superpixels."
        )


def _troubled(hierarchy: Hierarchy, wishes: Wishes, threshold: float) -> list[list[int]]:
    """Return the segments that cannot stay as they are, those that are to be joined as one list."""
    regions = hierarchy.regions(threshold)
    sizes = np.bincount(regions[1:])
    groups = Classes()  # of segments
    for members in wishes.together.several():
        nodes = np.unique(regions[members]).tolist()
        for node in nodes[1:]:
            groups.unite(nodes[0], node)
    for index, parts in wishes.cuts.items():
        for k, part in enumerate(parts):
            for node in np.unique(regions[part]).tolist():
                groups.add_reach(node, index, k)
    found = {
        name
        for name, reach in groups.reach.items()
        if any(wishes.keeps_apart(cut, parts, parts) for cut, parts in reach.items())
    }
    for locked in wishes.locks.values():
        name = groups.find(int(regions[locked[0]]))
        if sizes[groups.members(name)].sum() > len(locked):
            found.add(name)
    return [sorted(groups.members(name)) for name in sorted(found)]
