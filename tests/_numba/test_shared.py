"""Kernels that other kernels call by their address."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from napari_agglo._numba import kernel

# Kernels are called by address inside of the package only; there is no public door to it.
from napari_agglo._numba.shared import call_kernel, kernel_address


@kernel
def add(number, out):
    out[0] += number


@kernel
def add_twice(address, number, out):
    for _ in range(2):
        call_kernel(add, address, (np.int64(number), out))


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_the_code_of_the_types_is_called(kind):
    out = np.zeros(1, kind)
    address = kernel_address(add, np.int64(0), out)
    add_twice(address, 3, out)
    assert out[0] == 6


@pytest.mark.compiled
def test_without_code_for_the_types_nothing_is_called():
    with pytest.raises(TypingError, match="add has no code for"):
        add_twice(0, 3, np.zeros(1, np.int16))
