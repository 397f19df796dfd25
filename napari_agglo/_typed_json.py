"""Decode plain JSON into typed values; every field is checked before any is used."""

from __future__ import annotations

import dataclasses
import sys
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from napari_agglo.errors import InvalidInput


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _generic(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind), get_args(kind)


def decode(kind: Any, plain: Any, at: str = "it") -> Any:
    """Return `plain`, as `json.loads` gives it, as a value of type `kind`; refuse any other value.

    Parameters
    ----------
    kind : type
        A dataclass, int (0 or more), float (finite), str, bool, None, `Any`, ``dict[str, K]``,
        ``tuple[K, ...]``, ``tuple[K, L]`` or a union of these.
    plain
        The value. A dataclass is a dict of just its fields; those with defaults may be absent.
    at : str
        Name of the value in messages.

    Examples
    --------
    >>> decode(tuple[int, ...], [3, 4])
    (3, 4)
    >>> decode(dict[str, float | None], {"a": 1, "b": "x"}, "scores")
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: scores.b must be float | None, got 'x'
    """
    # Whole numbers come first, and lists of them are not gone through: a journal has very many.
    if kind is int and type(plain) is int and plain >= 0:
        return plain
    origin, inner = _generic(kind)
    is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
    if kind is Any or (kind in (str, bool, NoneType) and isinstance(plain, kind)):
        return plain
    if kind is float and is_number and abs(plain) <= sys.float_info.max:
        return float(plain)
    if origin is UnionType:
        for choice in inner:
            try:
                return decode(choice, plain, at)
            except InvalidInput:
                continue
    elif origin is dict and isinstance(plain, dict):
        return {k: decode(inner[1], v, f"{at}.{k}") for k, v in plain.items()}
    elif origin is tuple and isinstance(plain, list):
        if inner == (int, ...) and all(type(v) is int and v >= 0 for v in plain):
            return tuple(plain)
        kinds = inner[:1] * len(plain) if inner[-1] is ... else inner
        if len(kinds) == len(plain):
            return tuple(decode(k, v, f"{at}[{n}]") for n, (k, v) in enumerate(zip(kinds, plain)))  # noqa: B905
    elif dataclasses.is_dataclass(kind) and isinstance(plain, dict):
        make: Any = kind
        hints = _hints(make)
        needed = {f.name for f in dataclasses.fields(kind) if _is_needed(f)}
        if needed <= plain.keys() <= hints.keys():
            return make(**{k: decode(hints[k], v, f"{at}.{k}") for k, v in plain.items()})
    name = getattr(kind, "__name__", str(kind)) if origin is None else str(kind)
    raise InvalidInput(f"{at} must be {name}, got {plain!r:.80}", argument=at)


def _is_needed(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing
