"""Places of errors: drawn, and by hand."""

from __future__ import annotations

import numpy as np

import napari_agglo as agglo
from napari_agglo.evaluate import breakdown
from napari_agglo.widgets.evaluate._error_position import place_of

# Superpixels a..d; segment "a" is a + b and merges gold 1 and 2; gold 2 is split into "a" and "c".
SUPERPIXELS = np.repeat([[10, 20, 30, 40]], 4, axis=0).repeat(3, axis=1)
GOLD = np.repeat([[1, 2, 2, 3]], 4, axis=0).repeat(3, axis=1)
TABLE = np.array([0, 1, 1, 3, 4], np.uint32)


def found():
    graph = agglo.region_graph(SUPERPIXELS, np.zeros(SUPERPIXELS.shape))
    labels = graph.ids[TABLE][graph.superpixels.image]
    return graph, breakdown(labels, GOLD)


def test_a_false_merge_and_who_else_has_of_it():
    graph, table = found()
    place = place_of(table, "false merge", 10, graph, TABLE)
    assert place.active == 1
    assert place.partners == (3,)
    assert place.box.tolist() == [[0, 0], [4, 6]]
    assert GOLD[place.index] in (1, 2)
    assert SUPERPIXELS[place.index] in (10, 20)


def test_a_false_split_and_its_pieces():
    graph, table = found()
    place = place_of(table, "false split", 2, graph, TABLE)
    assert {place.active, *place.partners} == {1, 3}
    assert place.box.tolist() == [[0, 0], [4, 9]]
    assert GOLD[place.index] == 2


def test_a_missing_segment_has_no_place():
    graph, table = found()
    assert place_of(table, "false merge", 77, graph, TABLE) is None
    assert place_of(table, "false split", 77, graph, TABLE) is None
    assert place_of(table, "false merge", 40, graph, np.ones(5, np.uint32)) is None
