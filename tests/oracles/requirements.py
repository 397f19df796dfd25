"""Requirements of live edits at one scale, pair of superpixels by pair: slow and plain."""

from __future__ import annotations

import itertools

from napari_agglo.session._actions import Cut, Lock, Merge, Unlock


def components(together):
    """Return a function to the set of all that is to be together with a superpixel."""

    def of(superpixel):
        found, waiting = {superpixel}, [superpixel]
        while waiting:
            s = waiting.pop()
            for pair in together:
                if s in pair:
                    waiting += set(pair) - found
                    found |= set(pair)
        return frozenset(found)

    return of


def is_possible(together, apart):
    of = components(together)
    return not any(b in of(a) for a, b in apart)


def requirements(edits, n):
    """Return pairs to be together, pairs to be apart, live locks, and what is set aside.

    From the newest edit to the oldest, what contradicts the newer ones is left out: a pair of a
    merge, two parts of a cut, a lock.
    """
    locks = {}
    for index, edit in enumerate(edits):
        if isinstance(edit, Lock):
            locks[index] = frozenset(edit.members.tolist())
        elif isinstance(edit, Unlock):
            locks = {k: inside for k, inside in locks.items() if edit.superpixel not in inside}
    together, apart, aside = set(), set(), set()
    for index, edit in reversed(list(enumerate(edits))):
        if isinstance(edit, Merge):
            for k, pair in reversed(list(enumerate(edit.pairs))):
                if is_possible({*together, pair}, apart):
                    together.add(pair)
                else:
                    aside.add((index, (k,)))
        elif isinstance(edit, Cut):
            new = set()
            for (i, p), (j, q) in itertools.combinations(enumerate(edit.parts), 2):
                pairs = set(itertools.product(p.tolist(), q.tolist()))
                if is_possible(together, pairs):
                    new |= pairs
                else:
                    aside.add((index, (i, j)))
            apart |= new
        elif index in locks:
            inside = locks[index]
            more = set(zip(sorted(inside), sorted(inside)[1:], strict=False))
            outside = {(a, b) for a in inside for b in range(1, n + 1) if b not in inside}
            if is_possible(together | more, apart | outside):
                together |= more
                apart |= outside
            else:
                aside.add((index, ()))
                del locks[index]
    return together, apart, list(locks.values()), aside
