"""Hash tables of kernels, against a dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_agglo._numba import kernel
from napari_agglo._numba.hash_tables import find_entry, find_or_enter, key_place, pair_hash


@kernel
def _enter_all(wanted, unordered, pairs, table, out):
    """Look each pair up and enter it if it is new; return the number of entries."""
    n = np.int64(0)
    for k in range(wanted.shape[0]):
        u, v = wanted[k, 0], wanted[k, 1]
        known = find_or_enter(n, u, v, unordered, pairs, table)
        if known < 0:
            known = n
            pairs[n, 0] = u
            pairs[n, 1] = v
            n += 1
        out[k] = known
    return n


@kernel
def _find_all(wanted, unordered, pairs, table, out):
    for k in range(wanted.shape[0]):
        out[k] = find_entry(wanted[k, 0], wanted[k, 1], unordered, pairs, table)


@kernel
def _move_all(moves, pairs, table):
    """Give entries another pair, and enter them anew."""
    for k in range(moves.shape[0]):
        entry, u, v = moves[k, 0], moves[k, 1], moves[k, 2]
        if find_or_enter(entry, u, v, False, pairs, table) < 0:
            pairs[entry, 0] = u
            pairs[entry, 1] = v


# Few numbers, so that pairs come again, and the highest ones that a table must bear.
numbers = st.integers(0, 4) | st.sampled_from([2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
pairs_of_numbers = st.lists(st.tuples(numbers, numbers), max_size=31)


def _array(pairs, width=2):
    return np.array(pairs, np.int64).reshape(-1, width)


@pytest.mark.parametrize("unordered", [False, True])
@given(pairs_of_numbers, pairs_of_numbers)
def test_a_pair_is_entered_once_and_found_again(unordered, entered, wanted):
    def name(pair):
        return tuple(sorted(pair)) if unordered else pair

    pairs, table = np.zeros((32, 2), np.int64), np.zeros(32, np.int64)
    out = np.zeros(32, np.int64)
    n = _enter_all(_array(entered), unordered, pairs, table, out)
    expected = {}
    assert out[: len(entered)].tolist() == [
        expected.setdefault(name(pair), len(expected)) for pair in entered
    ]
    assert n == len(expected)
    _find_all(_array(wanted), unordered, pairs, table, out)
    assert out[: len(wanted)].tolist() == [expected.get(name(pair), -1) for pair in wanted]


@given(st.lists(st.tuples(st.integers(0, 3), numbers, numbers), max_size=27), pairs_of_numbers)
def test_an_entry_that_has_moved_is_found_under_its_new_pair_alone(moves, wanted):
    pairs, table = np.zeros((4, 2), np.int64), np.zeros(32, np.int64)
    out = np.zeros(32, np.int64)
    first = [(10 + k, k) for k in range(4)]
    _enter_all(_array(first), False, pairs, table, out)
    _move_all(_array(moves, 3), pairs, table)
    place = dict(enumerate(first))
    for entry, u, v in moves:
        if (u, v) not in place.values():
            place[entry] = (u, v)
    known = {pair: entry for entry, pair in place.items()}
    found = np.zeros(len(wanted) + 4, np.int64)
    _find_all(_array([*wanted, *first]), False, pairs, table, found)
    assert found.tolist() == [known.get(pair, -1) for pair in [*wanted, *first]]


@kernel
def _count(numbers, keys, counts):
    for k in range(numbers.size):
        place = key_place(numbers[k], pair_hash(numbers[k] >> 31, numbers[k] & 0x7FFFFFFF), keys)
        keys[place] = numbers[k]
        counts[place] += 1


@given(st.lists(st.integers(1, 5) | st.integers(1, 2**62), max_size=31))
def test_keys_are_counted(numbers):
    keys, counts = np.zeros(32, np.int64), np.zeros(32, np.int64)
    _count(np.array(numbers, np.int64), keys, counts)
    found = dict(zip(keys[keys > 0].tolist(), counts[keys > 0].tolist(), strict=True))
    assert found == {key: numbers.count(key) for key in numbers}
