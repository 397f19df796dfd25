"""What a user asks to learn from, and how; refused in words before any work is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.graph import RegionGraph
from napari_agglo.learning import STRATEGIES

Volume = tuple[RegionGraph, Any]
Volumes = Volume | Iterable[Volume]

FEW = 100  # examples; of fewer, without a training set, no good policy comes
_MOST = 1000  # times that an edit counts


def check_volumes(volumes: Any) -> list[Volume]:
    """Return what to learn from as pairs of a graph and its gold standard; one pair will do.

    Examples
    --------
    >>> check_volumes([])
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: `volumes` must be pairs (graph, gold), got none; leave it out.
    """
    if isinstance(volumes, (tuple, list)) and len(volumes) == 2:
        first, second = volumes
        if isinstance(first, RegionGraph) and not _is_pair(second):
            volumes = [(first, second)]
    if isinstance(volumes, (str, bytes, Mapping, RegionGraph)) or not isinstance(volumes, Iterable):
        raise _no_pairs(type(volumes).__name__)
    given = []
    for one in volumes:
        if not _is_pair(one):
            raise _no_pairs(f"{one!r:.80} for one")
        given.append((one[0], one[1]))
    if not given:
        raise InvalidInput("`volumes` must be pairs (graph, gold), got none; leave it out.")
    return given


def _is_pair(one: Any) -> bool:
    if not isinstance(one, (tuple, list)) or len(one) != 2:
        return False
    return isinstance(one[0], RegionGraph) and one[1] is not None


def _no_pairs(came: str) -> InvalidInput:
    return InvalidInput(
        "`volumes` must be pairs of a RegionGraph and its gold standard, [(graph, gold), ...], got "
        f"{came}; pass what the policy was trained on, or leave it out."
    )


def check_options(strategy: Any, weight: Any, seed: Any, others: Mapping[str, Any]) -> None:
    """Refuse a way to learn that there is not."""
    for name in others:
        raise InvalidInput(
            f"`{name}` is no argument of relearn(); it has volumes, strategy, weight, seed and "
            "progress."
        )
    if strategy is not None and strategy not in STRATEGIES:
        raise InvalidInput(
            f"`strategy` must be one of {', '.join(STRATEGIES)}, got {strategy!r}; or leave it out."
        )
    if not is_whole(weight) or not 1 <= weight <= _MOST:
        raise InvalidInput(
            f"`weight` must be a whole number from 1 to {_MOST}, got {weight!r}; it says how many "
            "examples an edit counts for."
        )
    if not is_whole(seed) or not 0 <= seed < 2**32:
        raise InvalidInput(
            f"`seed` must be a whole number from 0 to {2**32 - 1}, got {seed!r}; 0, say."
        )
