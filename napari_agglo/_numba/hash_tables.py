"""Hashes for kernels.

Their arithmetic never overflows 64 bits, so that results are the same with the JIT switched off
(numpy warns of an overflow where compiled code is silent).
"""

from __future__ import annotations

from typing import Any

from napari_agglo._numba import inlined


@inlined
def pair_slot(u: Any, v: Any, mask: Any) -> Any:
    """Where to look first for the pair (`u`, `v`) in a table of ``mask + 1`` slots.

    Labels are below 2**32 and both odd multipliers below 2**31, so products stay below 2**63.
    """
    mixed = (u * 0x119DE1F3) ^ (v * 0x45D9F3B)
    return (mixed ^ (mixed >> 16)) & mask


@inlined
def pair_hash(u: Any, v: Any) -> Any:
    """Return 63 bits of hash of a pair of numbers below 2**31; both halves look random."""
    mixed = (u * 0x119DE1F3) ^ (v * 0x45D9F3B)
    low = (mixed ^ (mixed >> 16)) & 0xFFFFFFFF
    high = ((mixed ^ (mixed >> 32)) & 0x7FFFFFFF) * 0x5BD1E995 >> 16 & 0x7FFFFFFF
    return high << 32 | low


@inlined
def _mix(word: Any) -> Any:
    """Scramble a 32-bit word: every bit of the input changes about half the bits of the output."""
    word = ((word ^ (word >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    word = ((word ^ (word >> 15)) * 0x119DE1F3) & 0xFFFFFFFF
    return word ^ (word >> 16)


@inlined
def uniform(seed: Any, u: Any, v: Any) -> Any:
    """Return a number in [0, 1) that depends on the three words alone and looks random."""
    high = _mix(_mix(_mix(seed) ^ u) ^ v)
    low = _mix(_mix(high ^ v) ^ u)
    return ((high >> 6) * 67108864.0 + (low >> 6)) / 4503599627370496.0
