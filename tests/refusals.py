"""Refusals as values: the argument that was refused, and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from napari_agglo.errors import InvalidInput, Remedy, alternatives


@contextmanager
def refuses(
    argument: str | None,
    remedy: Remedy | type | str | None = None,
    *,
    kind: type[InvalidInput] = InvalidInput,
    facts: tuple[str, ...] = (),
) -> Iterator[pytest.ExceptionInfo[InvalidInput]]:
    """Expect that an argument is refused, and that the error offers a remedy.

    Parameters
    ----------
    argument
        The argument of the error, or None if an action is refused as it is.
    remedy
        One of the remedies that it offers, its type, or words of it. By default any will do.
    kind
        The error.
    facts
        Values in the problem: numbers, shapes, types and names of this case. They tell apart
        refusals of one argument with one remedy.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.argument == argument, error
    assert error.remedy is not None, error
    assert [fact for fact in facts if fact not in error.problem] == [], error
    if isinstance(remedy, str):
        assert remedy in str(error.remedy)
    elif isinstance(remedy, type):
        assert any(isinstance(one, remedy) for one in alternatives(error.remedy)), error
    elif remedy is not None:
        assert remedy in alternatives(error.remedy)
