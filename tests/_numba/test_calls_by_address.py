"""Kernels that other kernels call by their address."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from napari_agglo._numba import kernel

# Kernels are called by address inside of the package only; there is no public door to it.
from napari_agglo._numba.calls_by_address import call_kernel, kernel_address


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
    kernel_address(add, np.int64(0), np.zeros(1, np.int64))
    with pytest.raises(TypingError, match="add has no code for"):
        add_twice(0, 3, np.zeros(1, np.int16))


@kernel
def double(out):
    out[0] *= 2


@kernel
def double_or_not(address, out):
    if address != 0:
        call_kernel(double, address, (out,))


@pytest.mark.compiled
def test_a_loop_that_does_not_call_may_be_compiled_first():
    """As one of a policy without features, before any policy with features."""
    out = np.full(1, 3, np.int64)
    double_or_not(0, out)
    assert out[0] == 3
    double_or_not(kernel_address(double, out), out)
    assert out[0] == 6
