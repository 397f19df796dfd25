"""Classifiers and their settings: decision trees bagged by gold segment, or logistic regression.

A tree learns from a bootstrap of *gold segments* with all their examples, not of single examples:
boundaries of one segment are much alike, and the policy will be used on other segments. So the
scores of a segment's boundaries by the trees that did not draw it are scores as of unseen tissue.
They give an unbiased accuracy, and an epoch of agglomerative learning then makes the errors that
the policy would make elsewhere, instead of repeating its training labels.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput, SetOption
from napari_agglo.features import FeatureMap
from napari_agglo.learning._decision_tree import Binned, grow_tree, join_forests
from napari_agglo.policy import Forest, Logistic, Model, flatten_trees


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples that a classifier learns from.

    Parameters
    ----------
    rows : ndarray of float32, shape (k, features)
        Features of two regions and their boundary.
    labels : ndarray of int8, shape (k,)
        -1 should merge, +1 should not.
    owners : ndarray of int64, shape (k,)
        The gold segment that the example counts for, numbered across all volumes.
    """

    rows: NDArray[np.float32]
    labels: NDArray[np.int8]
    owners: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def unique(self) -> Examples:
        """Return the examples without exact duplicates, each at its first place."""
        both = np.concatenate([self.rows, self.labels[:, None].astype(np.float32)], axis=1)
        both += np.float32(0)  # -0.0 and 0.0 are equal and must be the same bytes
        bits = both.view(np.uint32)
        factors = np.random.default_rng(0).integers(1, 2**63, bits.shape[1], np.uint64)
        hashes = np.empty(len(bits), np.uint64)
        for start in range(0, len(bits), _HASHED):
            part = slice(start, start + _HASHED)
            hashes[part] = bits[part].astype(np.uint64) @ factors
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        alike = first[group]  # the first row with the same hash
        copies = np.flatnonzero(alike != np.arange(len(bits)))
        if not np.array_equal(bits[alike[copies]], bits[copies]):  # other rows: improbable
            _, first = np.unique(bits, axis=0, return_index=True)
        first.sort()
        return Examples(self.rows[first], self.labels[first], self.owners[first])


def joined(parts: Iterable[Examples], width: int) -> Examples:
    """Return all examples, in order."""
    listed = list(parts)
    return Examples(
        np.concatenate([np.zeros((0, width), np.float32), *(part.rows for part in listed)]),
        np.concatenate([np.zeros(0, np.int8), *(part.labels for part in listed)]),
        np.concatenate([np.zeros(0, np.int64), *(part.owners for part in listed)]),
    )


_HASHED = 512  # rows whose hashes are computed at once, few enough to stay in the cache
# With fewer gold segments, single examples are drawn: a bag would leave too many segments out.
_LEAST_OWNERS = 8
# Seconds between two reports of progress while a tree is grown.
_INTERVAL = 0.1


@dataclass(frozen=True)
class ForestSettings:
    """Parameters of trees; the defaults were chosen by ``python -m benchmarks.judge``.

    Parameters
    ----------
    trees : int
        Number of trees of the policy.
    pooled_epochs : int
        Number of epochs, the last ones, that the trees are from in equal parts. An epoch alone
        differs from the next one by chance, as seeds do.
    early_trees : int
        Least number of trees that collect the examples of the next epoch.
    leaf : int
        Least number of examples in a leaf.
    depth : int, optional
        Largest number of splits from root to leaf.
    columns : "sqrt" or float
        Number, or share, of the features that each split chooses from.
    exact : bool
        Whether scikit-learn grows the trees, with a threshold between any two values of a feature.
        By default a feature has at most 256 bins, which takes a fifth of the time.
    neutral : float
        Probability by trees of *agglo* that the policy calls 0.5, its natural threshold: it gives
        ``0.5 / neutral`` of theirs. Near misses are boundaries to keep, more of them than an
        agglomeration meets, so that the trees themselves keep too many.
    """

    trees: int = 200
    pooled_epochs: int = 5
    early_trees: int = 50
    leaf: int = 2
    depth: int | None = None
    columns: float | str = "sqrt"
    exact: bool = False
    neutral: float = 0.6

    def __post_init__(self) -> None:
        if not 0.5 <= self.neutral <= 1:
            raise InvalidInput(
                f"`neutral` must be 0.5 to 1, got {self.neutral!r}",
                argument="neutral",
                remedy=SetOption("neutral", 0.6),
            )


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, the owners that each tree learned from (or empty), and importances of features."""

    model: Model
    in_bag: NDArray[np.uint8]
    importances: NDArray[np.float64]


def fit(
    examples: Examples,
    classifier: str,
    settings: ForestSettings,
    n_owners: int,
    seed: int,
    progress: ProgressCallback | None,
    stage: str,
) -> Fitted:
    """Fit a classifier to examples of both kinds."""
    wrong = (examples.labels > 0).astype(np.int64)
    if len(wrong) == 0 or wrong.min() == wrong.max():
        kind = "none" if len(wrong) == 0 else "merges" if wrong[0] == 0 else "boundaries to keep"
        raise InvalidInput(
            "`gold` gives no examples of both kinds (pairs to merge and pairs to keep apart), only "
            f"{kind}",
            argument="gold",
            remedy="annotate at least two segments, one of them of several superpixels",
        )
    if classifier == "logistic":
        return _fit_logistic(examples.rows, wrong, progress, stage)
    return _fit_forest(examples, wrong, settings, n_owners, seed, progress, stage)


def _fit_forest(
    examples: Examples,
    wrong: NDArray[np.int64],
    settings: ForestSettings,
    n_owners: int,
    seed: int,
    progress: ProgressCallback | None,
    stage: str,
) -> Fitted:
    rows = np.ascontiguousarray(examples.rows)
    present = np.unique(examples.owners)
    by_owner = len(present) >= _LEAST_OWNERS
    in_bag = np.zeros((settings.trees if by_owner else 0, n_owners if by_owner else 0), np.uint8)
    grow = (
        _exact_growth(rows, wrong, settings) if settings.exact else _growth(rows, wrong, settings)
    )

    def grow_one(tree: int) -> Any:
        # each tree has its own generator, so that the order of threads does not matter
        rng = np.random.default_rng([seed, tree])
        while True:
            if by_owner:
                drawn = np.bincount(rng.choice(present, len(present)), minlength=n_owners)
                weights = drawn[examples.owners]
            else:
                weights = rng.multinomial(len(wrong), np.full(len(wrong), 1 / len(wrong)))
            if len(np.unique(wrong[weights > 0])) == 2:  # one kind alone gives no classifier
                break
        if by_owner:
            in_bag[tree] = drawn > 0
        return grow(weights, int(rng.integers(2**31)))

    done = _in_threads(grow_one, settings.trees, progress, stage)
    if settings.exact:
        importances = np.mean([tree.feature_importances_ for tree in done], axis=0)
        return Fitted(flatten_trees([tree.tree_ for tree in done]), in_bag, importances)
    return Fitted(
        join_forests([tree.forest() for tree in done]),
        in_bag,
        np.mean([tree.gains for tree in done], axis=0),
    )


def pool_fits(fits: list[Fitted], share: int) -> Fitted:
    """Return a forest of `share` trees of each fit and all of the last; or the last logistic."""
    last = fits[-1]
    forests = [one.model for one in fits if isinstance(one.model, Forest)]
    if len(forests) < 2:
        return last
    sizes = [*(min(share, len(forest.roots)) for forest in forests[:-1]), len(forests[-1].roots)]
    in_bag = [one.in_bag[:n] for one, n in zip(fits, sizes, strict=True)]
    return Fitted(
        join_forests([forest.first(n) for forest, n in zip(forests, sizes, strict=True)]),
        np.concatenate(in_bag) if all(part.size for part in in_bag) else in_bag[-1][:0, :0],
        np.average([one.importances for one in fits], axis=0, weights=sizes),
    )


def with_neutral(model: Model, neutral: float) -> Model:
    """Return a forest of the same order, but for rounding, that gives 0.5 instead of `neutral`."""
    if not isinstance(model, Forest):
        return model
    return Forest(model.roots, model.nodes, model.values * (0.5 / neutral))


def with_prior(model: Forest, column: int, middle: float, slope: float, share: float) -> Forest:
    """Return a forest that gives a share to the logistic of one feature.

    The logistic is the mean of many stumps, a split of the feature each, whose thresholds are its
    quantiles. So it is made of trees as the rest, and costs little.

    Examples
    --------
    >>> leaf = np.array([[0, np.float32(np.inf).view(np.uint32), 0, 0]], np.uint32)
    >>> never = Forest(np.zeros(1, np.uint32), leaf, np.zeros(1))  # every merge is right
    >>> rows = np.array([[0.2], [0.5], [0.8]], np.float32)
    >>> with_prior(never, 0, 0.5, 10.0, 0.5).predict(rows).round(2)
    array([0.02, 0.25, 0.48])
    """
    odds = share / (1 - share)
    times = math.ceil(_STUMPS / odds / len(model.roots))  # of the forest; 1 but for a small one
    n = round(times * len(model.roots) * odds)
    place = (np.arange(n) + 0.5) / n
    cuts = (middle + np.log(place / (1 - place)) / slope).astype(np.float32)
    nodes = np.zeros((n, 3, 4), np.uint32)
    root = 3 * np.arange(n, dtype=np.uint32)
    nodes[:, 0] = np.stack([np.full(n, column), cuts.view(np.uint32), root + 1, root + 2], axis=1)
    for leaf in (1, 2):
        nodes[:, leaf, 1] = np.float32(np.inf).view(np.uint32)
        nodes[:, leaf, 2:] = (root + leaf)[:, None]
    stumps = Forest(root, nodes.reshape(-1, 4), np.tile([0.0, 0.0, 1.0], n))
    return join_forests([stumps, *[model] * times])


_STUMPS = 20  # of a prior, at the least


def _growth(
    rows: NDArray[np.float32], wrong: NDArray[np.int64], settings: ForestSettings
) -> Callable[[NDArray[np.int64], int], Any]:
    """Return a function of weights and seed that grows a tree by bins."""
    binned, width = Binned.of(rows), rows.shape[1]
    columns = width**0.5 if settings.columns == "sqrt" else float(settings.columns) * width

    def grow(weights: NDArray[np.int64], seed: int) -> Any:
        return grow_tree(
            binned, wrong, weights, columns=max(1, int(columns)), leaf=settings.leaf,
            depth=settings.depth, seed=seed,
        )  # fmt: skip

    return grow


def _exact_growth(
    rows: NDArray[np.float32], wrong: NDArray[np.int64], settings: ForestSettings
) -> Callable[[NDArray[np.int64], int], Any]:
    """Return a function of weights and seed that grows a tree by scikit-learn."""
    from sklearn.tree import DecisionTreeClassifier

    def grow(weights: NDArray[np.int64], seed: int) -> Any:
        tree = DecisionTreeClassifier(
            criterion="entropy", max_features=settings.columns, min_samples_leaf=settings.leaf,
            max_depth=settings.depth, random_state=seed,
        )  # fmt: skip
        kept = np.flatnonzero(weights)
        sample_weight = weights[kept].astype(np.float64)
        return tree.fit(rows[kept], wrong[kept], sample_weight=sample_weight, check_input=False)

    return grow


def _in_threads(
    grow: Callable[[int], Any], trees: int, progress: ProgressCallback | None, stage: str
) -> list[Any]:
    """Grow all trees; report progress several times a second, and stop on a cancel."""
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        futures = [pool.submit(grow, tree) for tree in range(trees)]
        done: list[Any] = []
        while len(done) < trees:
            report(progress, stage, len(done), trees)
            with suppress(TimeoutError):
                done.append(futures[len(done)].result(timeout=_INTERVAL))
        return done
    finally:
        # do not wait for unfinished trees, so that a cancel is immediate
        pool.shutdown(wait=False, cancel_futures=True)


def _fit_logistic(
    rows: NDArray[np.float32],
    wrong: NDArray[np.int64],
    progress: ProgressCallback | None,
    stage: str,
) -> Fitted:
    from sklearn.linear_model import LogisticRegression

    report(progress, stage, 0, 1)
    values = rows.astype(np.float64)
    middle = values.mean(axis=0)
    spread = values.std(axis=0)
    spread[spread == 0] = 1.0
    fitted = LogisticRegression(max_iter=2000, C=1.0).fit((values - middle) / spread, wrong)
    slope = fitted.coef_[0] / spread
    weights = np.append(slope, fitted.intercept_[0] - slope @ middle)
    size = np.abs(fitted.coef_[0])
    importances = size / size.sum() if size.sum() > 0 else size
    return Fitted(Logistic(weights), np.zeros((0, 0), np.uint8), importances)


def logistic_of(values: NDArray[np.float64], wrong: NDArray[np.bool_]) -> tuple[float, float]:
    """Return middle and slope of the logistic of one feature that fits examples of both kinds."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(max_iter=2000, C=_FREE).fit(values[:, None], wrong)
    slope = float(fitted.coef_[0, 0])
    return float(-fitted.intercept_[0] / slope) if slope else 0.0, slope


_FREE = 100.0  # inverse of the penalty on the slope; values are 0 to 1


def held_out_scores(fitted: Fitted, examples: Examples) -> NDArray[np.float64] | None:
    """Return the scores of examples by the trees that did not learn from their owners."""
    if not isinstance(fitted.model, Forest) or fitted.in_bag.size == 0:
        return None
    model, in_bag = fitted.model, fitted.in_bag
    assert model.trees.roots.size  # packed once, before the threads
    parts = np.array_split(np.arange(len(examples)), os.cpu_count() or 1)
    with ThreadPoolExecutor(len(parts)) as pool:
        scores = pool.map(
            lambda part: model.predict_out_of_bag(
                examples.rows[part], examples.owners[part], in_bag
            ),
            parts,
        )
        return np.concatenate(list(scores))


_BINS = 10
_MOST = 20  # importances to list


def fit_quality(
    fitted: Fitted,
    examples: Examples,
    features: FeatureMap,
    held_out: NDArray[np.float64] | None,
) -> dict[str, Any]:
    """Return accuracy, calibration and importances as plain numbers for the record of a policy.

    "accuracy" is that of held-out examples if there are any ("held_out"), else that of the training
    examples, which is too high. "calibration" lists, for each tenth of the probability, the mean
    probability, the share of wrong merges, and the number of examples.
    """
    wrong = examples.labels > 0
    scores = fitted.model.predict(examples.rows) if held_out is None else held_out
    calibration = []
    tenth = np.minimum((scores * _BINS).astype(np.int64), _BINS - 1)
    for k in range(_BINS):
        inside = tenth == k
        if inside.any():
            mean, share = float(scores[inside].mean()), float(wrong[inside].mean())
            calibration.append([round(mean, 4), round(share, 4), int(inside.sum())])
    order = np.argsort(-fitted.importances, kind="stable")[:_MOST]
    return {
        "held_out": held_out is not None,
        "accuracy": round(float(((scores > 0.5) == wrong).mean()), 4),
        "calibration": calibration,
        "importances": {features.names[k]: round(float(fitted.importances[k]), 5) for k in order},
    }
