"""Slow, obvious twins of what `napari_agglo.compare` does."""

from __future__ import annotations

from collections import Counter
from math import log2


def shared(a, b, sizes):
    """Pixels that each pair of segments shares, 0 left out."""
    out = Counter()
    for one, two, size in zip(a, b, sizes, strict=True):
        if one and two and size:
            out[int(one), int(two)] += int(size)
    return out


def greedy(pairs, kept=()):
    """Partner of each second segment: pairs that are kept first, then the largest of all."""
    order = sorted(pairs, key=lambda pair: (pair not in kept, -pairs[pair], pair))
    taken, partner = set(), {}
    for one, two in order:
        if one not in taken and two not in partner:
            taken.add(one)
            partner[two] = one
    return partner


def parts(pairs, axis):
    """Overlaps that are not the largest of their segment on a side: (main one, bits)."""
    total = sum(pairs.values())
    out = {}
    for name in {pair[axis] for pair in pairs}:
        own = sorted((pair for pair in pairs if pair[axis] == name), key=lambda p: (-pairs[p], p))
        whole = sum(pairs[pair] for pair in own)
        bits = {pair: pairs[pair] * log2(whole / pairs[pair]) / total for pair in own}
        main, *rest = own
        for pair in rest:
            share = pairs[pair] / (whole - pairs[main])
            out[pair] = main, bits[pair] + bits[main] * share
    return out
