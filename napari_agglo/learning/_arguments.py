"""What training is given: volumes with their gold standards, and further examples, all checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from napari_agglo.errors import InvalidInput
from napari_agglo.features import FeatureMap
from napari_agglo.graph import RegionGraph
from napari_agglo.learning._epoch import Lesson, lesson
from napari_agglo.learning._examples import Examples, joined


def choose(name: str, given: str, known: Sequence[str]) -> None:
    """Refuse a word that is not one of `known`."""
    if given not in known:
        raise InvalidInput(f"`{name}` must be one of {', '.join(known)}; got {given!r}.")


def extra_examples(given: tuple[Any, Any] | None, features: FeatureMap, first: int) -> Examples:
    """Return the examples that a caller brings, each an owner of its own.

    Copies have one owner: a tree learns from all of them, or from none.
    """
    if given is None:
        return joined([], features.width)
    rows, labels = np.asarray(given[0], np.float32), np.asarray(given[1])
    if rows.ndim != 2 or rows.shape[1] != features.width or len(rows) != len(labels):
        raise InvalidInput(
            f"`extra` must be rows of the {features.width} features of {features.preset!r} and a "
            f"label for each, got arrays of shape {rows.shape} and {labels.shape}."
        )
    if not (np.isfinite(rows).all() and np.isin(labels, (-1, 1)).all()):
        raise InvalidInput("`extra` must have finite features and labels of -1 (merge) or +1.")
    owners = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return Examples(rows, labels.astype(np.int8), first + owners)


def lessons_of(graph: Any, gold: Any, mask: Any) -> list[Lesson]:
    """Return the volumes to learn from, compared with their gold standards."""
    if isinstance(graph, RegionGraph):
        if gold is None:
            raise InvalidInput("`gold` is missing: train(graph, gold) needs a gold standard.")
        given = [(graph, gold)]
    else:
        given = [tuple(one) for one in graph]
        if gold is not None or not given or any(len(one) != 2 for one in given):
            raise InvalidInput(
                "`graph` must be a RegionGraph with its `gold`, or a list of pairs "
                "(graph, gold) and no `gold`."
            )
        if mask is not None and len(given) > 1:
            raise InvalidInput("`mask` is for one volume; set gold to 0 where it is not annotated.")
    out: list[Lesson] = []
    owners = 0
    for one, truth in given:
        first = given[0][0]
        if one.cue_names != first.cue_names or one.layout != first.layout:
            raise InvalidInput(
                "All graphs must have the same cues, bins and number of axes; got "
                f"{first.cue_names}, {first.layout} and {one.cue_names}, {one.layout}."
            )
        golds = list(truth) if isinstance(truth, (list, tuple)) else [truth]
        out.append(lesson(one, golds, mask, owners))
        owners += out[-1].n_owners
    return out
