"""Fixtures of all tests of sessions."""

from __future__ import annotations

import os

import pytest

from napari_agglo.session import warm_up


@pytest.fixture(scope="session", autouse=True)
def _compiled_edits():
    """Compile what edits need before the first test, which would seem to take minutes otherwise."""
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        warm_up(["edit"])
