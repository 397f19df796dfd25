"""What an edit teaches: rows of features as they were when it was made, for the journal."""

from __future__ import annotations

import base64
import itertools
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput
from napari_agglo.features import FeatureMap, feature_map
from napari_agglo.graph import RegionGraph
from napari_agglo.policy import Policy, policy_features
from napari_agglo.session._edits import Ids
from napari_agglo.session._relearn import pair_row

# Of a cut into many parts, so many boundaries are noted: rows are long, and an edit must be quick.
_MOST = 16


def features_of(graph: RegionGraph, policy: Policy) -> FeatureMap | None:
    """Return the features that edits are noted with; None if the graph has only means."""
    features = policy_features(policy)
    if features is None and graph.layout.powers != 1:
        return feature_map(graph)
    return features


def noted(
    graph: RegionGraph, policy: Policy, pairs: Iterable[tuple[Ids, Ids]], label: int
) -> dict[str, Any] | None:
    """Return the rows of pairs of regions that touch, as plain data; None if there are none."""
    try:
        features = features_of(graph, policy)
        if features is None:
            return None
        found = (pair_row(graph, features, a, b) for a, b in pairs)
        known = (row for row in found if row is not None and np.isfinite(row).all())
        rows = list(itertools.islice(known, _MOST))
    except (InvalidInput, ArithmeticError):  # an edit does not fail for want of an example
        return None
    if not rows:
        return None
    packed = zlib.compress(np.stack(rows).astype("<f4").tobytes(), 1)
    return {"label": label, "width": len(rows[0]), "rows": base64.b64encode(packed).decode("ascii")}


def rows_of(plain: dict[str, Any]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Return the rows and labels that `noted` made plain data of."""
    try:
        data = zlib.decompress(base64.b64decode(plain["rows"]))
        rows = np.frombuffer(data, "<f4").astype(np.float32).reshape(-1, int(plain["width"]))
        label = int(plain["label"])
        if label not in (-1, 1) or not np.isfinite(rows).all():
            raise ValueError("values that are no example")
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise InvalidInput(f"The examples of an entry cannot be read: {error}.") from error
    return rows, np.full(len(rows), label, np.int8)
