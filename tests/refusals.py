"""Refusals as values: the argument that was refused, and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from napari_agglo.errors import InvalidInput, Remedy, alternatives


@contextmanager
def refuses(
    argument: str,
    remedy: Remedy | type | str | None = None,
    *,
    kind: type[InvalidInput] = InvalidInput,
) -> Iterator[pytest.ExceptionInfo[InvalidInput]]:
    """Expect that an argument is refused, and that the error offers a remedy.

    Parameters
    ----------
    argument
        The argument of the error.
    remedy
        One of the remedies that it offers, its type, or words of it. By default any will do.
    kind
        The error.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.argument == argument, error
    assert error.remedy is not None, error
    if isinstance(remedy, str):
        assert remedy in str(error.remedy)
    elif isinstance(remedy, type):
        assert any(isinstance(one, remedy) for one in alternatives(error.remedy)), error
    elif remedy is not None:
        assert remedy in alternatives(error.remedy)
