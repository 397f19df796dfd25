"""Images with dark walls between bright cells, and strokes on them."""

from __future__ import annotations

import numpy as np


def cells(shape, seed=0):
    """Return an image of bright boxes of 8 pixels with dark, noisy walls; its gold; its walls."""
    grid = np.indices(shape)
    wall = (grid % 8 == 7).any(axis=0)
    gold = np.ravel_multi_index(tuple(g // 8 for g in grid), tuple(n // 8 + 1 for n in shape)) + 1
    noise = np.random.default_rng(seed).normal(0, 12, shape)
    return np.clip(np.where(wall, 70, 170) + noise, 0, 255).astype(np.uint8), gold, wall


def strokes(wall, every=5):
    """Return labels on few pixels of the first half: 1 on walls, 2 inside cells."""
    labels = np.where(wall, 1, 2).astype(np.uint8)
    keep = np.zeros(wall.size, bool)
    keep[: wall.size // 2 : every] = True
    labels[~keep.reshape(wall.shape)] = 0
    return labels
