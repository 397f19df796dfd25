"""Slow, obvious versions of the kernels: dictionaries, heapq, and no padding."""

from __future__ import annotations

import heapq
from itertools import product

import numpy as np


def neighbours(index, shape, axes):
    """Face neighbours along `axes`, in raster order."""
    found = []
    for axis in axes:
        for step in (-1, 1):
            other = list(index)
            other[axis] += step
            if 0 <= other[axis] < shape[axis]:
                found.append(tuple(other))
    return sorted(found)


def indices(shape):
    return list(product(*(range(n) for n in shape)))


def pieces(values, inside, axes):
    """List the connected sets of equal value in `inside`, in raster order of the first voxel."""
    seen, found = set(), []
    for index in indices(values.shape):
        if index in seen or not inside[index]:
            continue
        seen.add(index)
        piece = [index]
        for voxel in piece:  # grows while it is read
            for other in neighbours(voxel, values.shape, axes):
                if inside[other] and other not in seen and values[other] == values[index]:
                    seen.add(other)
                    piece.append(other)
        found.append(piece)
    return found


def minima(levels, inside, axes):
    """Label image of the regional minima."""
    labels = np.zeros(levels.shape, int)
    for piece in pieces(levels, inside, axes):
        around = [o for v in piece for o in neighbours(v, levels.shape, axes) if inside[o]]
        if all(levels[other] >= levels[piece[0]] for other in around):
            labels[tuple(np.transpose(piece))] = labels.max() + 1
    return labels


def flood(levels, labels, inside, axes):
    """Flood a copy of `labels` over `inside`."""
    labels = labels.copy()
    queue, entries = [], 0

    def dry(index):
        near = neighbours(index, levels.shape, axes)
        return [other for other in near if inside[other] and labels[other] == 0]

    for index in indices(levels.shape):
        if labels[index] and dry(index):
            heapq.heappush(queue, (levels[index], entries, index))
            entries += 1
    while queue:
        level, _, index = heapq.heappop(queue)
        for other in dry(index):
            labels[other] = labels[index]
            heapq.heappush(queue, (max(level, levels[other]), entries, other))
            entries += 1
    return labels


def dissolve(levels, labels, inside, axes, min_size):
    """Dissolve a label that is too small and touches another, of fewest bits first, and again."""
    while True:
        sizes = np.bincount(labels.ravel())
        for label in sorted(
            set(labels[labels > 0]), key=lambda one: (int(sizes[one]).bit_length(), one)
        ):
            voxels = np.argwhere(labels == label)
            around = {labels[o] for v in voxels for o in neighbours(v, labels.shape, axes)}
            if sizes[label] < min_size and around - {0, label}:
                dried = np.where(labels == label, 0, labels)
                labels = flood(levels, dried, inside, axes)
                break
        else:
            return labels


def number(labels):
    """Dense labels in raster order of the first voxel."""
    given = {0: 0}
    return np.array([given.setdefault(one, len(given)) for one in labels.ravel()]).reshape(
        labels.shape
    )


def oversegment(levels, inside, axes, min_size=1, seeds=None):
    """Go through all of it, from integer levels to canonical labels."""
    if seeds is None:
        labels = minima(levels, inside, axes)
    else:
        labels = np.zeros(levels.shape, int)
        for piece in pieces(seeds, inside & (seeds > 0), axes):
            labels[tuple(np.transpose(piece))] = labels.max() + 1
    labels = flood(levels, labels, inside, axes)
    for piece in pieces(labels, inside & (labels == 0), axes):
        labels[tuple(np.transpose(piece))] = labels.max() + 1
    return number(dissolve(levels, labels, inside, axes, min_size))


def is_connected(region, axes):
    """Whether the true voxels of `region` make one piece."""
    return len(pieces(region, region, axes)) == 1
