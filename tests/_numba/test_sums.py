"""Compensated sums of kernels, against fractions."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from napari_agglo._numba import kernel
from napari_agglo._numba.sums import rounding_error

numbers = st.floats(-1e100, 1e100, allow_subnormal=False)


@kernel
def _error(a, b):
    return rounding_error(a, b)


@given(numbers, numbers)
def test_a_sum_and_its_rounding_error_are_exact(a, b):
    assert Fraction(a + b) + Fraction(_error(a, b)) == Fraction(a) + Fraction(b)
