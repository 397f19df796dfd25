"""Check by a sample of merges that a tree is the agglomeration of a graph by a policy.

The policy scores regions again after edits, so another tree must be refused. Agglomerating again to
compare would take far longer.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.agglomeration import MergeTree, merge_greedily, threshold_text
from napari_agglo.errors import InvalidInput
from napari_agglo.graph import RegionGraph, graph_of_pairs, part_of, sample_of_pairs
from napari_agglo.policy import (
    Policy,
    checked_scores,
    graph_for,
    is_informative,
    policy_features,
)
from napari_agglo.policy._callable import MAKE_LOCAL, not_local
from napari_agglo.session._pair_features import pair_graph
from napari_agglo.session._store.manifest import digest_sample
from napari_agglo.session._store.stored_policy import needs_code
from napari_agglo.volumes import is_on_disk

_SAMPLE = 100  # merges that are scored again
_LARGEST = 1000  # superpixels of a merge in the sample, which determine the time
_TOLERANCE = 1e-6
_BOUNDARIES = 64  # that a policy scores before the first merge


def check_scores(policy: Policy, graph: RegionGraph) -> None:
    """Refuse a policy of others whose merges it would not score alike when a session is opened.

    Its scores must be local, and those of its kernel must be the same.
    """
    if not needs_code(policy) or policy_features(policy) or not is_informative(policy):
        return
    if graph.n_boundaries == 0:
        return
    words = f"A session cannot store the policy {policy.name!r}: "
    if problem := not_local(policy, graph):
        raise InvalidInput(words + problem, argument="policy", remedy=MAKE_LOCAL)
    if policy.kernel(graph) is None:
        return
    # A graph of pairs has regions of its own for each boundary, which is thus its first merge.
    pairs = sample_of_pairs(graph, _BOUNDARIES)
    part = graph_of_pairs(graph, pairs)
    boxes = np.zeros((len(part.regions), 2, part.layout.ndim), np.int32)
    merges = merge_greedily(dataclasses.replace(part, boxes=boxes), policy)
    row = np.searchsorted(part.edges[:, 0], merges.winners)
    compiled = np.full(part.n_boundaries, np.nan)
    compiled[row] = merges.priorities
    scores = checked_scores(policy, part)
    wrong = np.flatnonzero(~(np.abs(compiled - scores) <= _TOLERANCE))
    if len(wrong):
        k = int(wrong[0])
        raise InvalidInput(
            f"{words}its kernel gives {compiled[k]:.6g} to a boundary, and its score "
            f"{scores[k]:.6g}, so that its merges would be taken for those of another policy",
            argument="policy",
            remedy="let its kernel return None, or the record of a policy of the same scores",
        )


def check_tree(tree: Any, graph: RegionGraph, policy: Policy) -> None:
    """Refuse a tree that is not ``agglomerate(graph, policy)``, as far as a sample tells.

    It must be of the superpixels of the graph, merge all that touch, and the priorities of a
    hundred merges (or all, if there are fewer) must be the scores of the policy.

    Examples
    --------
    >>> import numpy as np, napari_agglo as agglo
    >>> boundary = np.array([[0.0, 0.2, 0.6, 0.8]])
    >>> graph = agglo.region_graph(np.array([[5, 6, 7, 8]]), boundary)
    >>> other = agglo.region_graph(np.array([[5, 6, 7, 8]]), 1 - boundary)
    >>> check_tree(agglo.agglomerate(graph), graph, agglo.MeanPolicy())
    >>> check_tree(agglo.agglomerate(other), graph, agglo.MeanPolicy())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: `tree` must be agglomerate(graph, policy), but merges 8 ...
    """
    if not isinstance(tree, MergeTree):
        raise InvalidInput(
            f"`tree` must be a MergeTree, got {type(tree).__name__}",
            argument="tree",
            remedy="pass agglomerate(graph, policy), or leave it out",
        )
    ours, theirs = graph.superpixels, tree.superpixels
    if not (
        ours is theirs
        or (
            np.array_equal(ours.ids, theirs.ids)
            and (ours.image is theirs.image or _same_images(ours.image, theirs.image))
        )
    ):
        raise InvalidInput(
            f"`tree` must be of the {graph.n_regions} superpixels of the graph, and is of "
            f"{tree.n_superpixels} others",
            argument="tree",
            remedy="agglomerate the RegionGraph that the session gets: edges alone have no image"
            if ours.image.shape != theirs.image.shape and np.array_equal(ours.ids, theirs.ids)
            else "agglomerate this graph",
        )
    names = tree.lut(np.inf)
    apart = names[graph.edges[:, 0]] != names[graph.edges[:, 1]]
    if apart.any():
        a, b = graph.ids[graph.edges[int(np.argmax(apart))]]
        raise InvalidInput(
            f"`tree` must merge all superpixels that touch, but never merges {a} and {b}",
            argument="tree",
            remedy="leave out `cannot_link` and `locked`, and lock segments in the session",
        )
    wrong = first_difference(tree, graph, policy)
    if wrong is not None:
        raise InvalidInput(
            f"`tree` must be agglomerate(graph, policy), but merges {wrong.first} with "
            f"{wrong.second} at {wrong.texts[0]}, where the score of the policy is "
            f"{wrong.texts[1]}",
            argument="tree",
            remedy="pass the tree of this graph and policy, or leave it out",
        )


@dataclasses.dataclass(frozen=True)
class WrongMerge:
    """A merge of a tree whose priority is not the score of a policy; the larger id is `first`."""

    first: int
    second: int
    priority: float
    score: float

    @property
    def texts(self) -> tuple[str, str]:
        """The priority and the score, with as many digits as tell them apart.

        Examples
        --------
        >>> WrongMerge(2, 1, 0.25, 1 / 3).texts, WrongMerge(2, 1, 0.12345678, 0.123456789).texts
        (('0.25', '0.333333'), ('0.12345678', '0.123456789'))
        >>> WrongMerge(2, 1, 1 / 3, 1 / 3 + 1e-9).texts
        ('0.3333333333333333', '0.33333333433333334')
        """
        first, second = threshold_text(self.priority), threshold_text(self.score)
        return (first, second) if first != second else (repr(self.priority), repr(self.score))


def first_difference(tree: MergeTree, graph: RegionGraph, policy: Policy) -> WrongMerge | None:
    """Return the first of a hundred merges that a policy scores otherwise; None if it has none."""
    sample = _sampled(tree)
    priorities = tree.priorities[sample]
    right = _scored(tree, graph, policy, sample)
    wrong = np.flatnonzero(~(np.abs(priorities - right) <= _TOLERANCE))
    if not len(wrong):
        return None
    k = int(wrong[0])
    a, b = graph.ids[[tree.winners[sample[k]], tree.losers[sample[k]]]].tolist()
    return WrongMerge(max(a, b), min(a, b), float(priorities[k]), float(right[k]))


def _sampled(tree: MergeTree) -> NDArray[np.int64]:
    """Return evenly spaced merges of regions that are not large; all merges if there are few."""
    if tree.n_merges <= _SAMPLE:
        return np.arange(tree.n_merges)
    _, start, stop = tree._intervals
    nodes = np.arange(tree.n_merges) + tree.n_superpixels + 1
    small = np.flatnonzero(stop[nodes] - start[nodes] <= _LARGEST)
    return small[np.linspace(0, len(small) - 1, min(_SAMPLE, len(small))).astype(np.int64)]


def _same_images(one: Any, other: Any) -> bool:
    """Return whether two images are equal; of images on disk, a sample is compared."""
    if is_on_disk(one) or is_on_disk(other):
        return digest_sample(one) == digest_sample(other)
    return np.array_equal(one, other)


def _scored(
    tree: MergeTree, graph: RegionGraph, policy: Policy, sample: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the priorities of some merges by the policy; NaN of regions that do not touch."""
    if not is_informative(policy):  # scores depend on the ids alone
        ids = np.stack([tree.winners[sample], tree.losers[sample]], axis=1)
        return policy.score(dataclasses.replace(graph, edges=ids))
    graph = graph_for(policy, graph)
    out = np.full(len(sample), np.nan)
    for k, merge in enumerate(sample.tolist()):
        pair = pair_graph(graph, *(tree.members(node) for node in tree.children[merge].tolist()))
        if pair is not None:
            part = pair if policy_features(policy) else part_of(pair)
            out[k] = checked_scores(policy, part)[0]
    return out
