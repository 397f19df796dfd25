"""Gain by learning from edits, by the number of edits and the weight of each.

``python -m benchmarks.experiment_edits [faded]``: a policy of one neuropil2d, edits by the gold
standard on another, VI at 0.5 on three more. With ``faded`` all but the first have a squared and
noisy boundary cue, so that there is something to learn. Takes some minutes.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

import napari_agglo as agglo
from napari_agglo.session._cut_methods import connected_pieces
from napari_agglo.session._pair_features import pair_row
from napari_agglo.session._relearn import refit


def volume(seed, faded):
    """Return the graph and the gold standard of a sample, its cue faded or not."""
    sample = agglo.sample("neuropil2d", seed=seed)
    cues = dict(sample.cues)
    superpixels = agglo.oversegment(cues["boundary"])
    if faded:
        noise = 0.08 * np.random.default_rng(seed).standard_normal(superpixels.shape)
        cues["boundary"] = np.clip(0.9 * cues["boundary"] ** 2 + noise, 0, 1).astype(np.float32)
    return agglo.region_graph(superpixels, cues), sample.gold


def edits_of(graph, gold, policy):
    """Return edits as lists of (row, label), with the segments at the end: cuts, then merges."""
    truth = majority(graph, gold)
    lut = agglo.agglomerate(graph, policy).lut(0.5)
    edits, segments = [], []
    for name in np.unique(lut[1:]):
        members = np.flatnonzero(lut == name)
        parts = [
            piece
            for own in np.unique(truth[members])
            for piece in connected_pieces(graph, members[truth[members] == own])
        ]
        if len(set(truth[members]) - {0}) < 2:
            parts = [members]
        segments += parts
        rows = [
            (pair_row(graph, policy.features, a, b), 1)
            for a, b in itertools.combinations(parts, 2)
            if 0 < truth[a[0]] != truth[b[0]] > 0
        ]
        edits += [[(row, label) for row, label in rows if row is not None]] * (len(parts) > 1)
    of = np.zeros(graph.n_regions + 1, np.int64)
    for k, members in enumerate(segments):
        of[members] = k
    own = [max(truth[members]) for members in segments]
    for u, v in graph.edges[np.random.default_rng(0).permutation(graph.n_boundaries)]:
        a, b = of[u], of[v]
        if a != b and own[a] == own[b] > 0:
            row = pair_row(
                graph, policy.features, *(np.flatnonzero(of[1:] == k) + 1 for k in (a, b))
            )
            edits.append([(row, -1)])
            of[1:][of[1:] == b] = a
    order = np.random.default_rng(1).permutation(len(edits))
    return [edits[k] for k in order if edits[k]], of + 1


def majority(graph, gold):
    """Return the gold segment of each superpixel; 0 where there is none."""
    table = np.zeros((graph.n_regions + 1, int(gold.max()) + 1), np.int64)
    np.add.at(table, (graph.superpixels.image, gold), 1)
    table[:, 0] = 0
    return table.argmax(axis=1)


def vi(policy, tests):
    """Return the mean VI at 0.5 over some volumes."""
    total = 0.0
    for graph, gold in tests:
        lut = agglo.agglomerate(graph, policy).lut(0.5)
        total += sum(agglo.split_vi(lut[graph.superpixels.image], gold))
    return total / len(tests)


def main(faded):
    """Print the VI without edits and after refits with more and more of them."""
    lesson = volume(0, False)
    policy = agglo.train([lesson], epochs=3)
    here = volume(1, faded)
    tests = [volume(seed, faded) for seed in (2, 3, 4)]
    edits, corrected = edits_of(*here, policy)
    print(f"without edits: {vi(policy, tests):.3f}; there are {len(edits)} to make", flush=True)
    gold = corrected[here[0].superpixels.image]
    for n in (10, 30, len(edits)):
        rows, labels = (np.array(x) for x in zip(*itertools.chain(*edits[:n]), strict=True))
        results = [f"{vi(refit(policy, rows, labels), tests):.3f} alone"]
        for weight in (1, 5, 20):
            new = refit(policy, rows, labels, volumes=[lesson], weight=weight)
            results.append(f"{vi(new, tests):.3f} x{weight}")
        print(f"{n} edits, {len(rows)} examples: {', '.join(results)}", flush=True)
    new = refit(policy, rows, labels, volumes=[(here[0], gold)])
    print(f"all edits, and the corrected segments as gold: {vi(new, tests):.3f}")


if __name__ == "__main__":
    main("faded" in sys.argv[1:])
