"""Making real what is seen through overrides: the edits that do, and the overrides they replace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from napari_agglo.session._edits import Edit, Override
from napari_agglo.session._view import View


@dataclass(frozen=True, eq=False)
class Real:
    """Edits after which segments are at this scale as they are seen.

    Attributes
    ----------
    edits : tuple of Edit
        In order.
    dropped : tuple of int
        The overrides that count no more, by their place.
    sets : set of bytes
        The segments that are then no longer seen through an override, as `moved_sets` gives them.
    """

    edits: tuple[Edit, ...] = ()
    dropped: tuple[int, ...] = ()
    sets: frozenset[bytes] = frozenset()


def making_real(view: View, overrides: tuple[Override, ...], superpixels: Iterable[int]) -> Real:
    """Make real what is seen at these superpixels, and no more than that takes."""
    tree = view.tree
    moved = {node: set(tree.members(node).tolist()) for node in view.moved()}
    edits: list[Edit] = []
    touched: set[int] = set()
    for superpixel in superpixels:
        if superpixel in touched:
            continue
        edit = view.making_real(superpixel)
        if edit is not None:
            edits.append(edit)
            shown = tree.members(view.shown(superpixel)).tolist()
            touched |= {*shown, *tree.members(tree.region(superpixel, view.scale)).tolist()}
    dropped = tuple(
        k for k, o in enumerate(overrides) if o.scale == view.scale and o.superpixel in touched
    )
    sets = {tree.members(node).tobytes() for node, held in moved.items() if held <= touched}
    return Real(tuple(edits), dropped, frozenset(sets))


def everything(view: View, overrides: tuple[Override, ...]) -> Real:
    """Make real all that is seen at this scale through an override."""
    anchors = [int(view.tree.members(node)[0]) for node in sorted(view.moved())]
    real = making_real(view, overrides, anchors)
    dropped = tuple(k for k, o in enumerate(overrides) if o.scale == view.scale)
    return Real(real.edits, dropped, real.sets)
