"""Merge tree: a sequence of merges, and the partitions at all thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._numba import kernel
from napari_agglo.agglomeration._format_threshold import (
    is_beyond,
    plain_thresholds,
    threshold_text,
)
from napari_agglo.errors import ConvertTo, InvalidInput, SetOption, is_number, is_whole
from napari_agglo.volumes import DenseLabels, replacing

if TYPE_CHECKING:
    import pandas as pd

# Kernels of the merge tree: all linear, none recursive.


@kernel
def pass_names(
    winners: Any, losers: Any, sizes: Any, name: Any, kept: Any, dropped: Any, from_loser: Any
) -> None:
    """Write the name that each merge keeps, that of the larger region. No bounds checking.

    The caller passes `sizes` and `name` of the superpixels; of equal sizes the winner's is kept.
    """
    for k in range(winners.size):
        u = winners[k]
        v = losers[k]
        from_loser[k] = sizes[v] > sizes[u]
        kept[k] = name[v] if from_loser[k] else name[u]
        dropped[k] = name[u] if from_loser[k] else name[v]
        name[u] = kept[k]
        sizes[u] += sizes[v]


@kernel
def fill_lut(kept: Any, dropped: Any, n_merges: Any, table: Any) -> None:
    """Set ``table[id]`` to the name of `id` after `n_merges` merges. No bounds checking.

    The caller passes 0, 1, 2, ... as `table`. Invariant: in reverse order of the merges, the final
    name of the name that a merge keeps is known already, and a name is given up once: one step per
    merge, without union-find.
    """
    for k in range(n_merges - 1, -1, -1):
        table[dropped[k]] = table[kept[k]]


@kernel
def count_labels(labels: Any, counts: Any) -> None:
    """Add the pixels of each label to `counts`; all flat. No bounds checking."""
    for i in range(labels.size):
        counts[labels[i]] += 1


@kernel
def map_labels(labels: Any, table: Any, out: Any) -> None:
    """Write ``table[labels]`` to `out`; all flat. No bounds checking."""
    for i in range(labels.size):
        out[i] = table[labels[i]]


@kernel
def common_ancestor(parents: Any, first: Any, second: Any) -> Any:
    """Return the lowest node above both, or -1. A parent has a higher number than its children."""
    while first != second:
        if first < second:
            first = parents[first]
            if first < 0:
                return first
        else:
            second = parents[second]
            if second < 0:
                return second
    return first


@kernel
def leaf_intervals(parents: Any, n_leaves: Any, order: Any, start: Any, stop: Any) -> None:
    """Order the leaves so that those of each node are neighbours: ``order[start[n]:stop[n]]``.

    No bounds checking. Children come before parents in the numbering, so sizes are summed in
    ascending order and places are assigned in descending order; `stop` first has the sizes, then
    the beginning of the next child of a node, and at the end the ends.
    """
    for node in range(1, parents.size):
        if node <= n_leaves:
            stop[node] = 1
        if parents[node] >= 0:
            stop[parents[node]] += stop[node]
    place = 0
    for node in range(parents.size - 1, 0, -1):
        size = stop[node]
        parent = parents[node]
        if parent < 0:
            start[node] = place
            place += size
        else:
            start[node] = stop[parent]
            stop[parent] += size
        stop[node] = start[node]
        if node <= n_leaves:
            order[start[node]] = node
            stop[node] += 1


class NameInheritance(NamedTuple):
    """The name that each merge keeps, and the one that it drops; dense ids, shape (m,).

    `from_loser` is true where the name is that of the loser, the larger region then.
    """

    kept: NDArray[np.uint32]
    dropped: NDArray[np.uint32]
    from_loser: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MergeTree:
    """A hierarchy of partitions of a label image.

    A *region* has the dense id of its smallest superpixel. Of the two regions of a merge the
    *winner* has the smaller id, which becomes that of the merged region, and the *loser* the larger
    one, whatever their sizes; winner and loser mean this everywhere.

    A region also has a *name*, its label in label images. The merged region keeps the name of the
    region of more pixels (of equal ones, of the winner), so that a large segment keeps its name
    while it absorbs small ones.

    A *node* is a region at one moment: nodes 1..n are the superpixels, node n + 1 + k is the result
    of merge k.

    Parameters
    ----------
    superpixels : DenseLabels
        The label image on dense ids 1..n, and the user's ids.
    winners, losers : ndarray of int64, shape (m,)
        The regions of each merge, ``winners < losers``; the loser becomes part of the winner.
    priorities : ndarray of float64, shape (m,)
        The priority of each merge by the policy. They need not ascend.
    sizes : ndarray of int64, shape (n + 1,), optional
        Pixels of each superpixel; by default they are counted in the image.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([[5, 6, 7, 8]]), np.array([[0.0, 0.0, 1.0, 1.0]]))
    >>> tree = agglo.agglomerate(graph)
    >>> tree
    MergeTree(4 superpixels, 3 merges, priorities 0 to 1)
    >>> tree.segment(0.5)
    array([[5, 5, 5, 8]])
    >>> tree.thresholds()
    array([0. , 0.5, 1. ])
    """

    superpixels: DenseLabels
    winners: NDArray[np.int64]
    losers: NDArray[np.int64]
    priorities: NDArray[np.float64]
    sizes: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        # The check of merges from outside of this package: kernels rely on it.
        if not isinstance(self.superpixels, DenseLabels):
            raise InvalidInput(
                f"`superpixels` must be DenseLabels, got {type(self.superpixels).__name__}",
                argument="superpixels",
                remedy="pass graph.superpixels or napari_agglo.volumes.dense_labels(labels)",
            )
        for name in ("winners", "losers", "priorities"):
            part, kinds = getattr(self, name), "iuf" if name == "priorities" else "iu"
            if not (isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in kinds):
                raise InvalidInput(
                    f"`{name}` must be a one-dimensional array of numbers, got "
                    f"{type(part).__name__}",
                    argument=name,
                    remedy=ConvertTo("float64" if name == "priorities" else "int64"),
                )
        m = len(self.winners)
        if not len(self.losers) == len(self.priorities) == m:
            raise InvalidInput(
                "`winners`, `losers` and `priorities` must be of one length, got "
                f"{m}, {len(self.losers)} and {len(self.priorities)}",
                argument="priorities",
                remedy="pass three values for each merge",
            )
        if self.sizes is not None and np.shape(self.sizes) != (self.n_superpixels + 1,):
            raise InvalidInput(
                f"`sizes` must have a number for 0 and each of {self.n_superpixels} superpixels, "
                f"got shape {np.shape(self.sizes)}",
                argument="sizes",
                remedy="leave it out, and pixels are counted",
            )
        if m == 0:
            return
        right = (self.winners >= 1) & (self.winners < self.losers)
        right &= self.losers <= self.n_superpixels
        if not right.all():
            k = int(np.argmin(right))
            raise InvalidInput(
                f"Merge {k} must have 1 <= winner < loser <= {self.n_superpixels}, the number of "
                f"superpixels; got winner {self.winners[k]} and loser {self.losers[k]}",
                argument="winners",
                remedy="number regions by their smallest superpixel; the winner's is smaller",
            )
        order = np.arange(m)
        lost = np.full(self.n_superpixels + 1, m, np.int64)
        lost[self.losers] = order  # of a region that loses twice, the last time stands
        if (lost[self.losers] != order).any() or (lost[self.winners] < order).any():
            raise InvalidInput(
                "A region that has lost a merge must not appear in a later one",
                argument="losers",
                remedy="name the winner of that merge instead",
            )
        if np.isnan(self.priorities).any():
            raise InvalidInput(
                "`priorities` must be numbers, and some are NaN",
                argument="priorities",
                remedy="leave such merges out",
            )

    @classmethod
    def _of(
        cls,
        superpixels: DenseLabels,
        winners: NDArray[np.int64],
        losers: NDArray[np.int64],
        priorities: NDArray[np.float64],
        sizes: NDArray[np.int64] | None = None,
    ) -> MergeTree:
        """Return the tree of merges from a loop of this package, unchecked."""
        tree = object.__new__(cls)
        tree.__dict__.update(
            superpixels=superpixels,
            winners=winners,
            losers=losers,
            priorities=priorities,
            sizes=sizes,
        )
        return tree

    def __repr__(self) -> str:
        span = ""
        if self.n_merges:
            ends = (f"{end:.3g}" for end in (self.priorities.min(), self.priorities.max()))
            first, last = (threshold_text(float(end)) for end in ends)
            span = f", priorities {first} to {last}"
        return f"MergeTree({self.n_superpixels} superpixels, {self.n_merges} merges{span})"

    @property
    def n_superpixels(self) -> int:
        """Number of superpixels, the leaves."""
        return len(self.superpixels.ids) - 1

    @property
    def n_merges(self) -> int:
        """Number of merges."""
        return len(self.winners)

    @cached_property
    def heights(self) -> NDArray[np.float64]:
        """The threshold from which each merge counts: the running maximum of the priorities.

        Priorities may fall after a merge; partitions at rising thresholds are nested all the same.
        """
        return np.maximum.accumulate(self.priorities)

    def thresholds(self) -> NDArray[np.float64]:
        """Return the thresholds at which the partition changes, ascending.

        Returns
        -------
        ndarray of float
            Heights of the merges, each once.
        """
        return np.unique(self.heights)

    def n_merges_at(self, threshold: float) -> int:
        """Return the number of merges that are done at `threshold`.

        Parameters
        ----------
        threshold : float
            The height at which the tree is cut. If all priorities are in [0, 1], a threshold
            outside is refused; ``inf`` is after all merges.

        Returns
        -------
        int
            The number of merges, from the first on.
        """
        self._check_threshold(threshold)
        return int(np.searchsorted(self.heights, threshold, side="right"))

    def n_segments(self, threshold: float) -> int:
        """Return the number of segments at `threshold`; 0, "no region", is not one.

        Parameters
        ----------
        threshold : float
            As for `n_merges_at`.

        Returns
        -------
        int
            The number of segments.
        """
        return self.n_superpixels - self.n_merges_at(threshold)

    def lut(
        self, threshold: float | None = None, *, merges: int | None = None
    ) -> NDArray[np.uint32]:
        """Return the name of the region of each superpixel, as a table over dense ids 0..n.

        Parameters
        ----------
        threshold : float, optional
            Do every merge up to the first one whose priority exceeds this; 0.5 by default. If all
            priorities are in [0, 1], a threshold outside is refused; ``inf`` does all merges.
        merges : int, optional
            Number of merges to do, instead of a threshold.

        Returns
        -------
        ndarray of uint32, shape (n + 1,)
            Name of each region, the dense id of one of its superpixels; 0 for 0.
        """
        table = np.arange(self.n_superpixels + 1, dtype=np.uint32)
        kept, dropped, _ = self.name_inheritance
        fill_lut(kept, dropped, self._count(threshold, merges), table)
        return table

    @cached_property
    def name_inheritance(self) -> NameInheritance:
        """Name that each merge keeps."""
        if self.sizes is None:
            sizes = np.zeros(self.n_superpixels + 1, np.int64)
            count_labels(np.ascontiguousarray(self.superpixels.image).reshape(-1), sizes)
        else:
            sizes = np.array(self.sizes, np.int64)
        kept, dropped = (np.zeros(self.n_merges, np.uint32) for _ in range(2))
        from_loser = np.zeros(self.n_merges, np.bool_)
        name = np.arange(self.n_superpixels + 1, dtype=np.uint32)
        pass_names(self.winners, self.losers, sizes, name, kept, dropped, from_loser)
        return NameInheritance(kept, dropped, from_loser)

    def segment(
        self, threshold: float | None = None, *, merges: int | None = None, index: Any = ...
    ) -> NDArray[Any]:
        """Return the label image at a threshold (or after so many merges), or a part of it.

        Parameters
        ----------
        threshold, merges : optional
            As for `lut`.
        index : optional
            Part of the image to return, as in ``image[index]``; only that part is computed.

        Returns
        -------
        ndarray
            Labels in the user's ids and type: each segment has the id of one of its superpixels,
            and keeps it while it absorbs smaller ones.
        """
        table = self._ids[self.lut(threshold, merges=merges)]
        part = self.superpixels.image[index]
        out = np.empty(np.shape(part), table.dtype)
        map_labels(np.ascontiguousarray(part).reshape(-1), table, out.reshape(-1))
        return out

    @cached_property
    def _ids(self) -> NDArray[Any]:
        """The user's ids in the user's type."""
        return self.superpixels.ids.astype(self.superpixels.dtype.newbyteorder("="))

    @cached_property
    def children(self) -> NDArray[np.int64]:
        """The two nodes of each merge, the winner's first, shape (m, 2)."""
        nodes = np.arange(self.n_merges) + self.n_superpixels + 1
        pairs = np.stack([self.winners, self.losers], axis=1)
        if not self.n_merges:
            return pairs
        # A region's node before merge k is the result of its latest earlier merge. A loser was a
        # winner in its earlier merges; so the winner's column alone has the last merge of a region.
        order = np.argsort(self.winners, kind="stable")
        region = self.winners[order]
        for column in (0, 1):
            keys = pairs[:, column] * (self.n_merges + 1) + np.arange(self.n_merges)
            known = region * (self.n_merges + 1) + order
            at = np.searchsorted(known, keys) - 1
            earlier = (at >= 0) & (region[at] == pairs[:, column])
            pairs[:, column] = np.where(earlier, nodes[order[at]], pairs[:, column])
        return pairs

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """The node that each node was merged into, shape (n + 1 + m,); -1 for a root and for 0."""
        out = np.full(self.n_superpixels + 1 + self.n_merges, -1, np.int64)
        nodes = np.arange(self.n_merges) + self.n_superpixels + 1
        out[self.children] = nodes[:, None]
        return out

    def ancestors(self, node: int) -> NDArray[np.int64]:
        """Return the nodes that contain `node`, from its parent to its root.

        Parameters
        ----------
        node : int
            A node: the dense id of a superpixel, or the number of a merge after them.

        Returns
        -------
        ndarray of int
            Nodes; none for a root.
        """
        out = []
        at = int(self.parents[self._node(node)])
        while at >= 0:
            out.append(at)
            at = int(self.parents[at])
        return np.array(out, np.int64)

    def lowest_common_ancestor(self, first: int, second: int) -> int | None:
        """Return the smallest node that contains both nodes; None if there is none.

        Parameters
        ----------
        first, second : int
            Two nodes.

        Returns
        -------
        int or None
            The node.
        """
        node = int(common_ancestor(self.parents, self._node(first), self._node(second)))
        return node if node >= 0 else None

    def members(self, node: int) -> NDArray[np.int64]:
        """Return the superpixels (dense ids) of a node, ascending.

        Parameters
        ----------
        node : int
            A node: the dense id of a superpixel, or the number of a merge after them.

        Returns
        -------
        ndarray of int
            Dense ids.
        """
        order, start, stop = self._intervals
        at = self._node(node)
        return np.sort(order[start[at] : stop[at]])

    def node_height(self, node: int) -> float:
        """Return the threshold from which a node exists; -inf for a superpixel.

        Parameters
        ----------
        node : int
            A node: the dense id of a superpixel, or the number of a merge after them.

        Returns
        -------
        float
            The height of its merge.
        """
        merge = self._node(node) - self.n_superpixels - 1
        return float(self.heights[merge]) if merge >= 0 else -np.inf

    def _check_threshold(self, threshold: float, *, or_merges: bool = False) -> None:
        """Refuse a threshold that is no number, or outside [0, 1] where priorities are inside."""
        if not is_number(threshold):
            raise InvalidInput(
                f"`threshold` must be a number, got {threshold!r}",
                argument="threshold",
                remedy="choose one such as 0.5",
            )
        within = self.n_merges and is_beyond(threshold) and self.heights[-1] <= 1
        if within and self.priorities.min() >= 0:
            count = or_merges and float(threshold).is_integer() and 1 < threshold <= self.n_merges
            raise InvalidInput(
                f"`threshold` must be from 0 to 1, as the priorities of this tree are; got "
                f"{threshold!r}",
                argument="threshold",
                remedy=SetOption("merges", int(threshold)) if count else "choose one such as 0.5",
            )

    def to_csv(self, path: str | PathLike[str]) -> Path:
        """Write the merges as a table, in order and in the user's ids, whole or not at all.

        Columns: merge (a number); winner, loser (regions by their smallest superpixel, as in
        `winners` and `losers`); kept, dropped (names of the two in a label image: that of the
        merged region, and the other); left, right, parent (nodes, the winner's first; a superpixel
        is its dense id); priority; height. Both
        are -inf for edits of a session before any merge.

        Parameters
        ----------
        path : path-like
            The file to write.

        Returns
        -------
        Path
            The file that was written.
        """
        target = Path(path)
        with replacing(target) as temporary:
            merge_table(self, self.name_inheritance).to_csv(temporary, index=False)
        return target

    @cached_property
    def _intervals(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        order = np.empty(self.n_superpixels, np.int64)
        start = np.zeros(len(self.parents), np.int64)
        stop = np.zeros(len(self.parents), np.int64)
        leaf_intervals(self.parents, self.n_superpixels, order, start, stop)
        return order, start, stop

    def _count(self, threshold: float | None, merges: int | None) -> int:
        if merges is None:
            threshold = 0.5 if threshold is None else threshold
            self._check_threshold(threshold, or_merges=True)
            return self.n_merges_at(threshold)
        if threshold is not None:
            raise InvalidInput(
                "Give `threshold` or `merges`, not both",
                argument="merges",
                remedy="leave one of them out",
            )
        if not (is_whole(merges) and 0 <= merges <= self.n_merges):
            raise InvalidInput(
                f"`merges` must be 0 to {self.n_merges}, the merges of this tree; got {merges!r}",
                argument="merges",
                remedy=SetOption("merges", self.n_merges),
            )
        return int(merges)

    def _node(self, node: int) -> int:
        if not (is_whole(node) and 1 <= node <= self.n_superpixels + self.n_merges):
            raise InvalidInput(
                f"`node` must be 1 to {self.n_superpixels + self.n_merges}: superpixels 1 to "
                f"{self.n_superpixels}, then one for each merge; got {node!r}",
                argument="node",
                remedy="take a node of `children` or `ancestors`",
            )
        return int(node)


def merge_table(tree: MergeTree, names: NameInheritance) -> pd.DataFrame:
    """Return the merges of a tree as a table, with the `names` that merges keep and drop."""
    import pandas as pd

    ids = tree.superpixels.ids
    return pd.DataFrame(
        {
            "merge": np.arange(tree.n_merges),
            "winner": ids[tree.winners],
            "loser": ids[tree.losers],
            "kept": ids[names.kept],
            "dropped": ids[names.dropped],
            "left": tree.children[:, 0],
            "right": tree.children[:, 1],
            "parent": np.arange(tree.n_merges) + tree.n_superpixels + 1,
            "priority": plain_thresholds(tree.priorities),
            "height": plain_thresholds(tree.heights),
        }
    )
