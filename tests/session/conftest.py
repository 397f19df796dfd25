"""Fixtures of all tests of sessions."""

from __future__ import annotations

import os

import pytest
from kernels import compile_edits


@pytest.fixture(scope="session", autouse=True)
def _compiled_edits():
    """Compile what edits need before the first test, which would seem to take minutes otherwise."""
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        compile_edits()
