"""Hashes and hash tables for kernels.

All tables use open addressing with linear probing, are a power of two long, and mark an empty place
by 0. Nothing is ever deleted. At least one place must stay empty, or a search does not end.

The arithmetic never overflows 64 bits, so that results are the same with the JIT switched off
(numpy warns of an overflow where compiled code is silent).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from napari_agglo._numba import inlined, kernel


@inlined
def pair_slot(u: Any, v: Any, mask: Any) -> Any:
    """Return the place to look first for the pair (`u`, `v`) in a table of ``mask + 1`` places.

    Labels are below 2**32 and both odd multipliers below 2**31, so products stay below 2**63.
    """
    mixed = (u * 0x119DE1F3) ^ (v * 0x45D9F3B)
    return (mixed ^ (mixed >> 16)) & mask


@inlined
def pair_hash(u: Any, v: Any) -> Any:
    """Return 63 bits of hash of a pair of numbers below 2**32; both halves look random."""
    mixed = (u * 0x119DE1F3) ^ (v * 0x45D9F3B)
    low = (mixed ^ (mixed >> 16)) & 0xFFFFFFFF
    high = ((mixed ^ (mixed >> 32)) & 0x7FFFFFFF) * 0x5BD1E995 >> 16 & 0x7FFFFFFF
    return high << 32 | low


# A table of pairs: a place has the number of an entry plus one and, in the upper half, 31 bits of
# the hash of its pair. The pair itself is read from the entry, ``pairs[entry, :2]``; thanks to the
# 31 bits, an entry with another pair is hardly ever read. An entry whose pair has changed is
# entered again; a search no longer returns it from its old place, as its pair differs.
#
# Both functions have the same loop: one helper for both would pass the arrays on once more, and
# counting their references took a tenth of the time of a merge.


@inlined
def find_entry(u: Any, v: Any, unordered: Any, pairs: Any, table: Any) -> Any:
    """Return the entry of the pair, or -1. If `unordered`, (v, u) is the same pair."""
    mixed = pair_hash(min(u, v), max(u, v)) if unordered else pair_hash(u, v)
    mark = mixed >> 32 << 32
    mask = table.size - 1
    place = mixed & mask
    while table[place] != 0:
        if table[place] >> 32 << 32 == mark:
            known = (table[place] & 0xFFFFFFFF) - 1
            a = pairs[known, 0]
            b = pairs[known, 1]
            if (a == u and b == v) or (unordered and a == v and b == u):
                return known
        place = (place + 1) & mask
    return np.int64(-1)


@inlined
def find_or_enter(entry: Any, u: Any, v: Any, unordered: Any, pairs: Any, table: Any) -> Any:
    """Return the entry of the pair; if there is none, enter `entry` for it and return -1."""
    mixed = pair_hash(min(u, v), max(u, v)) if unordered else pair_hash(u, v)
    mark = mixed >> 32 << 32
    mask = table.size - 1
    place = mixed & mask
    while table[place] != 0:
        if table[place] >> 32 << 32 == mark:
            known = (table[place] & 0xFFFFFFFF) - 1
            a = pairs[known, 0]
            b = pairs[known, 1]
            if (a == u and b == v) or (unordered and a == v and b == u):
                return known
        place = (place + 1) & mask
    table[place] = mark | (entry + 1)
    return np.int64(-1)


@inlined
def key_place(key: Any, mixed: Any, keys: Any) -> Any:
    """Return the place of `key`, of which `mixed` is a hash, or the empty place to enter it at.

    This is a table of the keys themselves, none of them 0; their values are in another array.
    """
    mask = keys.size - 1
    place = mixed & mask
    while keys[place] != 0 and keys[place] != key:
        place = (place + 1) & mask
    return place


@inlined
def _mix(word: Any) -> Any:
    """Scramble a 32-bit word: every bit of the input changes about half the bits of the output."""
    word = ((word ^ (word >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    word = ((word ^ (word >> 15)) * 0x119DE1F3) & 0xFFFFFFFF
    return word ^ (word >> 16)


@kernel
def uniform(seed: Any, u: Any, v: Any) -> Any:
    """Return a number in [0, 1) that depends on the three words alone and looks random."""
    high = _mix(_mix(_mix(seed) ^ u) ^ v)
    low = _mix(_mix(high ^ v) ^ u)
    return ((high >> 6) * 67108864.0 + (low >> 6)) / 4503599627370496.0
