"""Slow, obvious versions of what the graph kernel does."""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np


def statistics_by_loops(labels, cues, bins, dams=False):
    """Everything that a region graph holds, pixel by pixel, as dictionaries by label.

    `cues` are arrays of whole numbers 0..255. Returns (regions, boundaries): a region is a dict of
    count, border, open, contact, coordinates, products, box, values (a list a cue); a boundary, by
    (u, v), a dict of faces and values.
    """
    ndim = labels.ndim

    def new_region():
        return {
            "count": 0,
            "border": [0] * ndim,
            "open": [0] * ndim,
            "contact": [0] * ndim,
            "pixels": [],
            "values": [[] for _ in cues],
        }

    regions = defaultdict(new_region)
    boundaries = defaultdict(lambda: {"faces": [0] * ndim, "values": [[] for _ in cues]})

    def label_at(index):
        inside = all(0 <= i < n for i, n in zip(index, labels.shape, strict=True))
        return int(labels[index]) if inside else None

    def moved(index, axis, by):
        return tuple(i + by * (a == axis) for a, i in enumerate(index))

    for index in itertools.product(*(range(n) for n in labels.shape)):
        here = int(labels[index])
        if here:
            region = regions[here]
            region["count"] += 1
            region["pixels"].append(index)
            for values, cue in zip(region["values"], cues, strict=True):
                values.append(int(cue[index]))
        for axis in range(ndim):
            for by in (-1, 1):
                if not here:
                    continue
                there = label_at(moved(index, axis, by))
                across = label_at(moved(index, axis, 2 * by))
                if there is None:
                    regions[here]["border"][axis] += 1
                elif there == 0:
                    regions[here]["open"][axis] += 1
                    if dams and across not in (None, 0, here):
                        dam = moved(index, axis, by)
                        _add_face(regions, boundaries, here, across, axis, by, (dam, dam), cues)
                elif there != here:
                    pair = (index, moved(index, axis, by))
                    _add_face(regions, boundaries, here, there, axis, by, pair, cues)
    return dict(regions), dict(boundaries)


def _add_face(regions, boundaries, here, there, axis, by, pixels, cues):
    regions[here]["contact"][axis] += 1
    if by > 0:  # each face once
        boundary = boundaries[min(here, there), max(here, there)]
        boundary["faces"][axis] += 1
        for values, cue in zip(boundary["values"], cues, strict=True):
            values.extend(int(cue[pixel]) for pixel in pixels)


def cue_block(values, bins):
    """Return sums of powers 1..4 and the histogram of a list of whole numbers 0..255."""
    sums = [sum(v**power for v in values) for power in (1, 2, 3, 4)]
    histogram = [0] * bins
    for v in values:
        histogram[v * bins // 256] += 1
    return sums + histogram


def region_row(region, bins):
    """Return the row of a region, in the order that the layout documents."""
    pixels = region["pixels"]
    ndim = len(region["border"])
    coordinates = [sum(p[a] for p in pixels) for a in range(ndim)]
    products = [sum(p[a] * p[b] for p in pixels) for a in range(ndim) for b in range(a, ndim)]
    row = [region["count"], *region["border"], *region["open"], *region["contact"]]
    row += coordinates + products
    for values in region["values"]:
        row += cue_block(values, bins)
    return row


def boundary_row(boundary, bins):
    """Return the row of a boundary."""
    row = list(boundary["faces"])
    for values in boundary["values"]:
        row += cue_block(values, bins)
    return row


def region_box(region):
    """First and one past the last index of a region."""
    pixels = np.array(region["pixels"])
    return [pixels.min(axis=0).tolist(), (pixels.max(axis=0) + 1).tolist()]
