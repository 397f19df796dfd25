"""Registry of cut methods: functions from groups of seeds to the parts of a segment.

The decorator `cut_method` makes a function a `CutMethod`. The folder's ``__init__`` registers the
methods of this folder; another package names its own in the entry point group
``napari_agglo.cuts``. `Session.cut` and the dock read the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._registry import Registry, named_errors
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy
from napari_agglo.session._cut_methods.segment_graph import check_seeds

Part = NDArray[np.int64]  # superpixels, dense ids, ascending


@dataclass(frozen=True, eq=False)
class CutProblem:
    """A segment to cut, and the groups of seeds to separate.

    Attributes
    ----------
    graph : RegionGraph
        The superpixels, as they are divided for this cut.
    members : ndarray of int
        The superpixels of the segment, dense ids.
    seeds : list of groups of int
        Two groups or more of superpixels of the segment, dense ids.
    policy : Policy
        The policy of the session.
    branches : callable
        Returns the merge tree of the segment: its node, and a function from a node to its children
        (none for a superpixel, which is its dense id).
    divided : bool
        Whether superpixels were divided for this cut, because points of two groups lay in one.
    """

    graph: RegionGraph
    members: NDArray[Any]
    seeds: list[list[int]]
    policy: Policy
    branches: Callable[[], tuple[int, Callable[[int], Sequence[int]]]]
    divided: bool = False


@dataclass(frozen=True)
class CutMethod:
    """A method of cutting a segment between seeds; made by `cut_method`.

    Attributes
    ----------
    name : str
        The method, as in ``session.cut(segment, seeds, name)``.
    label : str
        Text for menus.
    cut : callable
        Function from a `CutProblem` to the superpixels of each group's part.
    """

    name: str
    label: str
    cut: Callable[[CutProblem], Sequence[NDArray[Any]]]

    def parts(self, problem: CutProblem) -> list[Part]:
        """Cut a segment; refuse seeds that cannot be cut apart, and parts that are no such cut.

        The parts must be a partition of the segment with one group of seeds each.
        """
        check_seeds(problem.graph, np.unique(problem.members), problem.seeds)
        with named_errors("cut method", self.name):
            returned = self.cut(problem)
        try:
            parts = [np.unique(np.asarray(part, np.int64)) for part in returned]
        except (TypeError, ValueError):
            raise InvalidInput(
                f"The cut method {self.name!r} must return the superpixels of each part, "
                f"got {returned!r:.60}",
                argument="method",
                remedy="choose another method, and report the fault to the package of this one",
            ) from None
        every = np.concatenate([np.zeros(0, np.int64), *parts])
        if (
            len(parts) != len(problem.seeds)
            or not np.array_equal(np.sort(every), np.unique(problem.members))
            or not all(np.isin(s, p).all() for s, p in zip(problem.seeds, parts, strict=True))
        ):
            raise InvalidInput(
                f"The cut method {self.name!r} did not return a part for each group of seeds, "
                "with its seeds, which together are the segment",
                argument="method",
                remedy="choose another method, and report the fault to the package of this one",
            )
        return parts


cut_methods: Registry[CutMethod] = Registry(
    "napari_agglo.cuts", "cut method", CutMethod, made_by="the decorator cut_method"
)


def cut_method(
    name: str, *, label: str
) -> Callable[[Callable[[CutProblem], Sequence[NDArray[Any]]]], CutMethod]:
    """Return a decorator that makes a function from a `CutProblem` to parts a cut method.

    Parameters
    ----------
    name : str
        The name, as `Session.cut` takes it.
    label : str
        Text for menus.

    Returns
    -------
    callable
        The decorator; it returns a `CutMethod`, which is registered.

    Examples
    --------
    >>> @cut_method("halves", label="the second seed alone")
    ... def cut_off(problem):
    ...     rest = np.setdiff1d(problem.members, problem.seeds[1])
    ...     return [rest, np.array(problem.seeds[1])]
    >>> problem = CutProblem(None, np.array([1, 2, 3]), [[1], [3]], None, None)
    >>> [part.tolist() for part in cut_off.parts(problem)]
    [[1, 2], [3]]
    """
    return lambda cut: CutMethod(name, label, cut)
