"""The edits of segments as methods of `Session`, their undo and redo.

In its own file because the documentation of the edits is as long as the class around them. Each
function takes the session as `self`, and `Session` has it as a method of the same name. A planner
of `_plan_edits` or `_plan_cuts` decides what an edit does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from napari_agglo._progress import ProgressCallback
from napari_agglo.session._actions import Change
from napari_agglo.session._plan_cuts import (
    CutPreview,
    plan_cut,
    plan_cut_children,
    plan_detach,
    preview_cut,
)
from napari_agglo.session._plan_edits import plan_lock, plan_merge, plan_move, plan_unlock

if TYPE_CHECKING:
    from napari_agglo.session._session import Session

Groups = Sequence[Sequence[int]]  # of superpixels
Points = Sequence[Sequence[Sequence[int]]]  # groups of pixel indices


def merge(
    self: Session,
    first: int,
    *others: int,
    force: bool = False,
    progress: ProgressCallback | None = None,
) -> Change:
    """Merge segments; the first keeps its id.

    At the threshold exactly these segments become one; below it nothing changes.

    Parameters
    ----------
    first : int
        The segment that keeps its id.
    *others : int
        The segments to merge with it, one or more.
    force : bool
        Merge segments also if they do not touch, neither directly nor through others of them.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop, and nothing changes.

    Returns
    -------
    Change
        The edit in words, and the merged segment.

    Raises
    ------
    Refused
        If a segment is not there at the threshold, is locked or is named twice, or if the segments
        do not touch; nothing changes.
    """
    return self._do(plan_merge, (first, *others), force=force, progress=progress)


def cut(
    self: Session,
    segment: int,
    seeds: Groups | None = None,
    method: str = "min_cut",
    *,
    parts: Groups | None = None,
    points: Points | None = None,
    progress: ProgressCallback | None = None,
) -> Change:
    """Cut a segment between groups of superpixels or of pixels, or into given parts.

    The largest part keeps the id. A cut holds at every scale until a later merge crosses it.

    Parameters
    ----------
    segment : int
        The segment to cut.
    seeds : list of groups of superpixels
        Two groups or more, ``[[a], [b, c]]``.
    method : {"min_cut", "seeded", "tree"}
        The cut of least cost; agglomeration of the segment with groups that never merge; or undoing
        the merges that brought the groups together. A method of another package by its name.
    parts : list of groups of superpixels
        Instead of seeds: all superpixels of the segment, each once.
    points : list of groups of pixels
        Instead of seeds: two groups or more of indices, ``[[(3, 10, 12)], [(3, 10, 40)]]``. A
        superpixel with points of different groups is divided first, by flooding the boundary cue
        from them: its largest piece keeps its id, the others get new ones.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop, and nothing changes.

    Returns
    -------
    Change
        The edit in words, and the segments of the parts.

    Raises
    ------
    Refused
        If the segment is not there at the threshold or is locked, or if the groups are not inside
        it or cannot be separated; nothing changes.
    """
    return self._do(plan_cut, segment, seeds, method, parts=parts, points=points, progress=progress)


def preview(
    self: Session,
    segment: int,
    seeds: Groups | None = None,
    method: str = "min_cut",
    *,
    parts: Groups | None = None,
    points: Points | None = None,
) -> CutPreview:
    """Return the parts that `cut` would make with these arguments, and change nothing.

    Parameters
    ----------
    segment, seeds, method, parts, points
        As for `cut`.

    Returns
    -------
    CutPreview
        The superpixels and sizes of each part; ``paint`` draws them.

    Raises
    ------
    Refused
        If `cut` would refuse these arguments.
    """
    with self._lock:
        return preview_cut(self._view, segment, seeds, method, parts=parts, points=points)


def cut_children(
    self: Session, segment: int, *, progress: ProgressCallback | None = None
) -> Change:
    """Cut a segment into its children in the tree: two, or all that one merge edit joined.

    Parameters
    ----------
    segment : int
        The segment to cut.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop, and nothing changes.

    Returns
    -------
    Change
        The edit in words, and the segments of the children.

    Raises
    ------
    Refused
        If the segment is a single superpixel, is locked, or is not there at the threshold.
    """
    return self._do(plan_cut_children, segment, progress=progress)


def detach(
    self: Session,
    segment: int,
    superpixels: Sequence[int],
    *,
    progress: ProgressCallback | None = None,
) -> Change:
    """Take superpixels out of a segment; each connected piece of them becomes a segment.

    Parameters
    ----------
    segment : int
        The segment to take them from.
    superpixels : sequence of int
        Some superpixels of the segment, but not all.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop, and nothing changes.

    Returns
    -------
    Change
        The edit in words, and the resulting segments.

    Raises
    ------
    Refused
        If a superpixel is not in the segment, if none would be left, or if the segment is locked or
        is not there at the threshold.
    """
    return self._do(plan_detach, segment, superpixels, progress=progress)


def lock(self: Session, segment: int, *, progress: ProgressCallback | None = None) -> Change:
    """Keep a segment whole and alone at every scale, until it is unlocked.

    Parameters
    ----------
    segment : int
        The segment to lock.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop, and nothing changes.

    Returns
    -------
    Change
        The edit in words, and the segment.

    Raises
    ------
    Refused
        If the segment is locked already, or is not there at the threshold.
    """
    return self._do(plan_lock, segment, progress=progress)


def unlock(self: Session, segment: int, *, progress: ProgressCallback | None = None) -> Change:
    """Unlock a segment; at the threshold nothing changes.

    Parameters
    ----------
    segment : int
        A locked segment.
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop, and nothing changes.

    Returns
    -------
    Change
        The edit in words, and the segment.

    Raises
    ------
    Refused
        If the segment is not locked, or is not there at the threshold.
    """
    return self._do(plan_unlock, segment, progress=progress)


def up(self: Session, segment: int) -> Change:
    """Show the parent of a segment in its place; other segments stay.

    Parameters
    ----------
    segment : int
        The segment to replace.

    Returns
    -------
    Change
        The move in words, and the parent.

    Raises
    ------
    Refused
        If the segment has no parent in the tree, is locked, or is not there at the threshold.
    """
    return self._do(plan_move, segment, "up")


def down(self: Session, segment: int) -> Change:
    """Show the children of a segment in its place; other segments stay.

    Parameters
    ----------
    segment : int
        The segment to replace.

    Returns
    -------
    Change
        The move in words, and the children.

    Raises
    ------
    Refused
        If the segment is a single superpixel, is locked, or is not there at the threshold.
    """
    return self._do(plan_move, segment, "down")


def undo(self: Session) -> Change:
    """Take back the last action, without limit, also after the session was reopened.

    Returns
    -------
    Change
        The action that was undone, in words, and the segments that came back.

    Raises
    ------
    Refused
        If there is nothing to undo.
    """
    return self._emit(self._transactions.undo())


def redo(self: Session, progress: ProgressCallback | None = None) -> Change:
    """Repeat the action that was undone last; a new action clears those to redo.

    Parameters
    ----------
    progress : callable, optional
        Called with the progress so far; raise `Cancelled` in it to stop, and nothing changes.

    Returns
    -------
    Change
        The action that was redone, in words, and its segments.

    Raises
    ------
    Refused
        If there is nothing to redo.
    """
    return self._emit(self._transactions.redo(progress))
