"""One gold standard, or several of the same image."""

from __future__ import annotations

from typing import Any

from napari_agglo.errors import InvalidInput
from napari_agglo.volumes import DenseLabels, check_same_shape, dense_labels


def dense_golds(gold: Any, like: Any, like_name: str) -> list[DenseLabels]:
    """Return gold standards on dense ids, of the shape of `like`; a list or tuple holds several."""
    given = list(gold) if isinstance(gold, (list, tuple)) else [gold]
    if not given:
        raise InvalidInput("`gold` must hold a gold standard at least, got an empty list.")
    out = []
    for number, one in enumerate(given):
        name = "gold" if len(given) == 1 else f"gold[{number}]"
        dense = one if isinstance(one, DenseLabels) else dense_labels(one, name)
        check_same_shape(dense.image, like, name, like_name)
        out.append(dense)
    return out
