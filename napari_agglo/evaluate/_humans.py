"""How far people are from each other: what no program need surpass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from napari_agglo._progress import ProgressCallback, report
from napari_agglo.errors import InvalidInput
from napari_agglo.evaluate._metrics import metrics
from napari_agglo.volumes import dense_labels

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = ["vi", "false_merge", "false_split", "rand", "covering"]


def human_agreement(
    golds: Sequence[Any], *, progress: ProgressCallback | None = None
) -> pd.DataFrame:
    """Compare each gold standard of an image with each of the others.

    Parameters
    ----------
    golds : list of arrays of int
        Two or more gold standards of one image; 0 is not annotated, in both of a pair.
    progress : callable, optional
        Called with a `Progress` at each pair; it may raise `Cancelled`.

    Returns
    -------
    pandas.DataFrame
        A row for each ordered pair: ``labels``, the number of the gold standard that is taken for a
        segmentation, ``gold``, of the one that it is compared with, and ``vi``, ``false_merge``,
        ``false_split``, ``rand``, ``covering``.

    Examples
    --------
    >>> import numpy as np
    >>> found = human_agreement([np.array([1, 1, 1, 1]), np.array([1, 1, 2, 2])])
    >>> found[["labels", "gold", "false_merge", "false_split"]]
       labels  gold  false_merge  false_split
    0       0     1          1.0          0.0
    1       1     0          0.0          1.0
    """
    import pandas as pd

    if not isinstance(golds, (list, tuple)) or len(golds) < 2:
        raise InvalidInput("`golds` must be a list of two gold standards or more of one image.")
    dense = [dense_labels(one, f"golds[{number}]") for number, one in enumerate(golds)]
    pairs = [(a, b) for a in range(len(dense)) for b in range(len(dense)) if a != b]
    rows = []
    for done, (a, b) in enumerate(pairs):
        report(progress, "agreement", done, len(pairs))
        found = metrics(dense[a], dense[b], ignore_labels=True)
        rows.append({"labels": a, "gold": b} | found[_SHOWN].to_dict())
    report(progress, "agreement", len(pairs), len(pairs))
    return pd.DataFrame(rows)
