"""Curves: every measure at every state of a merge tree, their minima and means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback
from napari_agglo.agglomeration import MergeTree, plain_thresholds
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate._covering_by_merge import covering_path
from napari_agglo.evaluate._metrics import check_weight, dense_golds, empty_gold
from napari_agglo.evaluate._vi_by_merge import ErrorPath, error_path
from napari_agglo.volumes import Contingency, contingency

if TYPE_CHECKING:
    import pandas as pd

# Most thresholds at which `mean_curve` averages by default.
_POINTS = 1000


def check_curves(curves: Mapping[Any, pd.DataFrame], *needed: str) -> Mapping[Any, pd.DataFrame]:
    """Return the curves; refuse a curve without rows, or without a needed column."""
    if not isinstance(curves, Mapping) or not curves:
        raise InvalidInput(
            f"`curves` must map names to curves, got {type(curves).__name__}"
            + (" without entries" if isinstance(curves, Mapping) else ""),
            argument="curves",
            remedy='pass {"mean": vi_curve(tree, gold)}',
        )
    for name, one in curves.items():
        missing = [column for column in needed if column not in one.columns]
        if missing or len(one) == 0:
            raise InvalidInput(
                f"`curves[{name!r}]` must have rows and the columns {', '.join(needed)}; it has "
                f"{len(one)} rows of {', '.join(map(str, one.columns))}",
                argument=f"curves[{name!r}]",
                remedy="make it with vi_curve or boundary_curve",
            )
    return curves


# A curve is a step function of the threshold: a row holds from its threshold to below the next.


def all_thresholds(curves: Mapping[Any, pd.DataFrame]) -> NDArray[np.float64]:
    """Return the thresholds at which any curve has a row, ascending."""
    return np.unique(np.concatenate([one["threshold"].to_numpy() for one in curves.values()]))


def rows_at(curve: pd.DataFrame, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the row that holds at each threshold; below all of them, the first."""
    rows = np.searchsorted(curve["threshold"].to_numpy(), thresholds, side="right") - 1
    return np.maximum(rows, 0)


class CommonBest(NamedTuple):
    """Threshold that is best for several curves together.

    Attributes
    ----------
    threshold, following : float
        The state lasts from `threshold` to below `following`.
    mean : float
        Mean of the measure over the curves.
    """

    threshold: float
    following: float
    mean: float


def best_together(curves: Mapping[Any, pd.DataFrame], quantity: str = "vi") -> CommonBest:
    """Return the threshold at which the mean of a measure over several curves is least.

    Parameters
    ----------
    curves : mapping of DataFrame
        Results of `vi_curve`, by any key.
    quantity : str
        The column to average.

    Returns
    -------
    CommonBest
        The threshold, the next one at which the mean changes, and the mean.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"threshold": [0.0, 0.4, 0.6], "vi": [3.0, 1.0, 2.0]})
    >>> two = pd.DataFrame({"threshold": [0.0, 0.5, 0.7], "vi": [3.0, 2.0, 0.0]})
    >>> best_together({"one": one, "two": two})
    CommonBest(threshold=0.7, following=inf, mean=1.0)
    """
    at = np.concatenate([one["threshold"].to_numpy() for one in curves.values()])
    values = [one[quantity].to_numpy(float) for one in curves.values()]
    # Steps of the sum; below its first row a curve has the value of that row.
    steps = np.concatenate([np.diff(one, prepend=one[0]) for one in values])
    order = np.argsort(at, kind="stable")
    at, total = at[order], np.cumsum(steps[order])
    last = np.flatnonzero(np.append(at[1:] != at[:-1], True))  # of equal thresholds
    row = int(total[last].argmin())
    best = float(at[last[row]])
    following = float(at[last[row + 1]]) if row + 1 < last.size else math.inf
    mean = float(np.mean([state_at(one, best)[quantity] for one in curves.values()]))
    return CommonBest(best, following, mean)


def first_threshold(curves: Mapping[Any, pd.DataFrame]) -> float:
    """Return the threshold of the first merge in any of some curves.

    Parameters
    ----------
    curves : mapping of DataFrame
        Results of `vi_curve`, by any key.

    Returns
    -------
    float
        The least threshold after that of the superpixels, inf if nothing merges; -inf if a curve
        does not begin with the superpixels.

    Examples
    --------
    >>> import pandas as pd
    >>> first_threshold({"one": pd.DataFrame({"threshold": [-math.inf, 0.4, 0.6]})})
    0.4
    """
    firsts = []
    for curve in curves.values():
        start, first = [*curve["threshold"].tolist()[:2], math.inf][:2]
        firsts.append(first if start == -math.inf else -math.inf)
    return float(min(firsts, default=-math.inf))


def plain_curve(curve: pd.DataFrame) -> pd.DataFrame:
    """Return a curve for a file: the threshold of every state before any merge is -inf.

    Parameters
    ----------
    curve : DataFrame
        A `vi_curve`, such as that of a session with edits before any merge.

    Returns
    -------
    pandas.DataFrame
        The same rows.

    Examples
    --------
    >>> import pandas as pd
    >>> plain_curve(pd.DataFrame({"threshold": [-math.inf, -5e-324, 0.5]}))["threshold"].tolist()
    [-inf, -inf, 0.5]
    """
    return curve.assign(threshold=plain_thresholds(curve["threshold"]))


def shortest_threshold(low: float, high: float, decimals: int = 1) -> float:
    """Return the threshold of fewest decimals, `decimals` at least, from `low` to below `high`.

    Parameters
    ----------
    low, high : float
        The range of thresholds that are as good as each other.
    decimals : int
        The least number of decimals.

    Returns
    -------
    float
        A threshold in that range.

    Examples
    --------
    >>> shortest_threshold(0.62614, 0.6267), shortest_threshold(0.62614, 0.8)
    (0.6262, 0.7)
    >>> shortest_threshold(0.1, 0.3)
    0.1
    """
    exact = Decimal(repr(float(low)))  # not Decimal(low): 0.1 is stored as a little more than 0.1
    for digits in range(decimals, 18):
        rounded = float(exact.quantize(Decimal(1).scaleb(-digits), ROUND_CEILING))
        if low <= rounded < high:
            return rounded
    return low


def mean_curve(
    curves: Mapping[Any, pd.DataFrame] | Iterable[pd.DataFrame],
    thresholds: Iterable[float] | None = None,
) -> pd.DataFrame:
    """Return the mean of curves at each threshold, with the standard error of the mean.

    Parameters
    ----------
    curves : dict of name to curve, or list of curves
        A `vi_curve` (or `boundary_curve`) of each volume.
    thresholds : iterable of float, optional
        Thresholds at which to average. By default every threshold at which a curve has a row; of
        more than 1000, about 1000 of them that include the one of least mean VI.

    Returns
    -------
    pandas.DataFrame
        ``threshold``; each measure that all curves have, e.g. ``vi``, and ``vi_sem``, NaN for a
        single curve; ``n``, the number of curves.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"threshold": [0.0, 0.5], "vi": [3.0, 1.0]})
    >>> two = pd.DataFrame({"threshold": [0.0, 0.7], "vi": [1.0, 2.0]})
    >>> mean_curve([one, two])
       threshold   vi  vi_sem  n
    0        0.0  2.0     1.0  2
    1        0.5  1.0     0.0  2
    2        0.7  1.5     0.5  2
    """
    import pandas as pd

    named = curves if isinstance(curves, Mapping) else dict(enumerate(curves))
    tables = list(check_curves(named, "threshold").values())
    if thresholds is None:
        grid = all_thresholds(named)
        if grid.size > _POINTS:
            grid = grid[np.linspace(0, grid.size - 1, _POINTS).round().astype(int)]
            if all("vi" in one.columns for one in tables):
                grid = np.union1d(grid, best_together(named).threshold)
    else:
        grid = np.unique(np.asarray(list(thresholds), float))
    n = len(tables)
    columns: dict[str, Any] = {"threshold": grid}
    shared = [c for c in tables[0].columns if all(c in one.columns for one in tables)]
    for name in shared:
        if name in ("threshold", "merges"):
            continue
        values = np.stack([one[name].to_numpy(float)[rows_at(one, grid)] for one in tables])
        columns[name] = values.mean(axis=0)
        spread = np.full(grid.size, math.nan) if n == 1 else values.std(axis=0, ddof=1)
        columns[f"{name}_sem"] = spread / math.sqrt(n)
    return pd.DataFrame(columns | {"n": np.full(grid.size, n)})


def state_at(curve: pd.DataFrame, threshold: float) -> dict[str, float]:
    """Return the row of a `vi_curve` that holds when the tree is cut at `threshold`.

    Parameters
    ----------
    curve : DataFrame
        The result of `vi_curve`.
    threshold : float
        The threshold.

    Returns
    -------
    dict of str to float
        The columns of that row.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"threshold": [-float("inf"), 0.2, 0.7], "vi": [3.0, 1.0, 2.0]})
    >>> state_at(curve, 0.5)["vi"]
    1.0
    """
    return _row(curve, int(rows_at(curve, np.array([threshold]))[0]))


def minimum(curve: pd.DataFrame) -> dict[str, float]:
    """Return the row of least variation of information; of ties, the first.

    Parameters
    ----------
    curve : DataFrame
        The result of `vi_curve`.

    Returns
    -------
    dict of str to float
        The columns of that row.

    Examples
    --------
    >>> import pandas as pd
    >>> minimum(pd.DataFrame({"threshold": [0.1, 0.2, 0.7], "vi": [3.0, 1.0, 2.0]}))
    {'threshold': 0.2, 'vi': 1.0}
    """
    return _row(curve, _least(curve["vi"].to_numpy()))


def tangent_point(curve: pd.DataFrame, a: float = 1.0) -> dict[str, float]:
    """Return the row where a line of slope -a touches the split-VI curve from below.

    This state is best when one bit of false merge is as bad as `a` bits of false split.

    Parameters
    ----------
    curve : pandas.DataFrame
        A `vi_curve`, or a `merge_curve`.
    a : float
        The weight of false merges, above 0.

    Returns
    -------
    dict
        The row that minimises ``a * false_merge + false_split``; of ties, the first.

    Examples
    --------
    >>> import pandas as pd
    >>> curve = pd.DataFrame({"false_merge": [0.0, 0.3, 2.0], "false_split": [1.0, 0.6, 0.0]})
    >>> tangent_point(curve, 1.0)["false_merge"], tangent_point(curve, 10.0)["false_merge"]
    (0.3, 0.0)
    """
    check_weight(a)
    weighted = a * curve["false_merge"].to_numpy() + curve["false_split"].to_numpy()
    return _row(curve, _least(weighted))


def _least(values: NDArray[np.float64]) -> int:
    return int(values.argmin()) if values.size else 0


def _row(curve: pd.DataFrame, row: int) -> dict[str, float]:
    if len(curve) == 0:
        raise InvalidInput("`curve` has no rows", argument="curve", remedy="make it with vi_curve")
    return {str(name): curve[name].to_numpy()[row].item() for name in curve.columns}


def vi_curve(
    tree: MergeTree,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> pd.DataFrame:
    """Evaluate a merge tree against the gold standard at every threshold at once.

    Overlaps are counted once, for the superpixels; each merge then updates a few sums. The result
    equals ``metrics(tree.segment(t), gold)`` at every threshold t.

    Parameters
    ----------
    tree : MergeTree
    gold : array of int, of the shape of the superpixels, or list of arrays
        The gold standard; voxels of 0 are not annotated and are left out, and one that is 0
        everywhere is refused. Several of one image give the mean of every measure over them.
    ignore_labels : bool
        Leave out voxels without a superpixel (0) too; otherwise they count as one segment.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    curve : pandas.DataFrame
        One row for each distinct state, by ascending threshold. Columns: ``threshold``,
        ``segments`` (number of segments in the whole image, annotated or not), ``false_merge``,
        ``false_split`` and their sum ``vi``, in bits, ``rand`` and ``covering``. The first row, at
        -inf, is the superpixels. A cut at t gives the last row whose threshold is at most t.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> superpixels = np.array([[1, 1, 2, 2, 3, 3]])
    >>> boundary = np.array([[0, 0, 0, 0, 1, 1]], float)
    >>> graph = agglo.region_graph(superpixels, boundary)
    >>> tree = agglo.agglomerate(graph, "mean")
    >>> curve = agglo.vi_curve(tree, np.array([[4, 4, 4, 4, 5, 5]]))
    >>> curve["vi"].round(3).tolist(), curve["covering"].round(3).tolist()
    ([0.667, 0.0, 0.918], [0.667, 1.0, 0.556])
    """
    return _curve(tree, _measures(tree, gold, ignore_labels, progress))


def table_curve(
    tree: MergeTree, table: Contingency, *, progress: ProgressCallback | None = None
) -> pd.DataFrame:
    """Return the curve of `vi_curve` from the overlaps of the superpixels, without any image.

    Parameters
    ----------
    tree : MergeTree
    table : Contingency
        Of the superpixels, whose rows are the dense ids of `tree`, and the gold standard.
    progress : callable, optional
        Called with a `Progress` now and then; it may raise `Cancelled`.

    Returns
    -------
    DataFrame
        The columns of `vi_curve`.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> from napari_agglo.volumes import Contingency, contingency
    >>> graph = agglo.region_graph(np.array([1, 2, 3]), np.zeros(3))
    >>> tree = agglo.agglomerate(graph)
    >>> table = contingency(graph.superpixels, np.array([1, 1, 2]))
    >>> table_curve(tree, table)["vi"].round(3).tolist()
    [0.667, 0.918]
    """
    return _curve(tree, _means([_path(tree, table, progress)]))


def _curve(tree: MergeTree, measures: dict[str, NDArray[np.float64]]) -> pd.DataFrame:
    import pandas as pd  # takes half a second, so only where a table is made

    # A plateau of equal heights is one state: the one after its last merge.
    last = np.flatnonzero(np.diff(tree.heights, append=math.inf)) + 1
    state = np.concatenate([[0], last])
    columns = {
        "threshold": np.concatenate([[-math.inf], tree.heights[last - 1]]),
        "segments": tree.n_superpixels - state,
    }
    return pd.DataFrame(columns | {name: value[state] for name, value in measures.items()})


def merge_curve(
    tree: MergeTree,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> pd.DataFrame:
    """Evaluate a merge tree against the gold standard after each single merge.

    Parameters
    ----------
    tree, gold, ignore_labels, progress
        As for `vi_curve`.

    Returns
    -------
    curve : pandas.DataFrame
        Row k is the state after k merges, ``tree.segment(merges=k)``. Columns: ``merges`` and
        those of `vi_curve`; the threshold is the least at which these merges are done. Of rows
        with equal thresholds, a cut at that threshold gives the last.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([1, 2, 3]), np.zeros(3))
    >>> curve = merge_curve(agglo.agglomerate(graph), np.array([1, 1, 2]))
    >>> curve[["merges", "threshold", "segments", "false_merge"]].round(3)
       merges  threshold  segments  false_merge
    0       0       -inf         3        0.000
    1       1        0.0         2        0.000
    2       2        0.0         1        0.918
    """
    import pandas as pd

    measures = _measures(tree, gold, ignore_labels, progress)
    merges = np.arange(tree.n_merges + 1)
    columns = {
        "merges": merges,
        "threshold": np.concatenate([[-math.inf], tree.heights]),
        "segments": tree.n_superpixels - merges,
    }
    return pd.DataFrame(columns | measures)


def best_covering(
    tree: MergeTree,
    gold: Any,
    *,
    ignore_labels: bool = False,
    progress: ProgressCallback | None = None,
) -> float:
    """Return the covering when each gold segment chooses the best node of the whole tree.

    The chosen nodes may lie at different scales and inside each other: an upper bound on the
    hierarchy, which no single threshold reaches in general.

    Parameters
    ----------
    tree, gold, ignore_labels, progress
        As for `vi_curve`.

    Returns
    -------
    float
        From 0 to 1, the best.

    Examples
    --------
    >>> import numpy as np
    >>> import napari_agglo as agglo
    >>> graph = agglo.region_graph(np.array([1, 2, 3]), np.array([0.0, 0.0, 1.0]))
    >>> best_covering(agglo.agglomerate(graph), np.array([1, 1, 2]))
    1.0
    """
    paths = _paths(tree, gold, ignore_labels, progress)
    return float(np.mean([best for _, _, best in paths]))


def _measures(
    tree: MergeTree,
    gold: Any,
    ignore_labels: bool,
    progress: ProgressCallback | None,
) -> dict[str, NDArray[np.float64]]:
    """Return every measure after 0, 1, ... merges, as the mean over the gold standards."""
    return _means(list(_paths(tree, gold, ignore_labels, progress)))


def _means(
    each: Sequence[tuple[ErrorPath, NDArray[np.float64], float]],
) -> dict[str, NDArray[np.float64]]:
    paths, coverings, _ = zip(*each, strict=True)
    false_merge = np.mean([path.false_merge for path in paths], axis=0)
    false_split = np.mean([path.false_split for path in paths], axis=0)
    return {
        "false_merge": false_merge,
        "false_split": false_split,
        "vi": false_merge + false_split,
        "rand": np.mean([path.rand for path in paths], axis=0),
        "covering": np.mean(coverings, axis=0),
    }


def _paths(
    tree: MergeTree, gold: Any, ignore_labels: bool, progress: ProgressCallback | None
) -> Iterator[tuple[ErrorPath, NDArray[np.float64], float]]:
    """Yield the errors, the covering and the best covering along a tree, for each gold standard."""
    if not isinstance(tree, MergeTree):
        raise InvalidInput(
            f"`tree` must be a MergeTree, got {type(tree).__name__}",
            argument="tree",
            remedy="pass the result of agglomerate; for a label image, call metrics(labels, gold)",
        )
    for one in dense_golds(gold, tree.superpixels.image, "the superpixels of the tree"):
        table = contingency(tree.superpixels, one, ignore_labels=ignore_labels, progress=progress)
        if not table.total:  # gold on disk, which was not looked through before
            raise empty_gold()
        yield _path(tree, table, progress)


def _path(
    tree: MergeTree, table: Contingency, progress: ProgressCallback | None
) -> tuple[ErrorPath, NDArray[np.float64], float]:
    path = error_path(table, tree.winners, tree.losers, progress=progress)
    return path, *covering_path(table, tree.winners, tree.losers, path, progress=progress)
