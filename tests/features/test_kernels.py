"""Features against numpy on the pixels themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from refusals import refuses
from scipy.spatial.distance import jensenshannon
from scipy.special import gamma

from napari_agglo import region_graph
from napari_agglo.errors import SetOption
from napari_agglo.features import PRESETS, FeatureMap, feature_map, feature_matrix, feature_table


def faces_between(labels, u, v):
    """Index pairs of all faces between two labels, by axis."""
    out = []
    for axis in range(labels.ndim):
        lower = np.moveaxis(labels, axis, 0)[:-1]
        upper = np.moveaxis(labels, axis, 0)[1:]
        found = np.argwhere(((lower == u) & (upper == v)) | ((lower == v) & (upper == u)))
        for index in found:
            first = np.insert(index[1:], axis, index[0])
            second = first.copy()
            second[axis] += 1
            out.append((axis, tuple(first), tuple(second)))
    return out


def block(values, bins, quantiles, histogram):
    """Mean, central moments, quantiles by interpolated histogram, histogram; values 0..255."""
    x = np.asarray(values) / 255
    out = [x.mean(), *(((x - x.mean()) ** k).mean() for k in (2, 3, 4))]
    counts = np.bincount(np.asarray(values) * bins // 256, minlength=bins)
    edges = np.arange(bins + 1) / bins
    below = np.concatenate([[0], np.cumsum(counts)]) / len(values)
    for q in quantiles:
        k = int(np.searchsorted(below[1:], q - 1e-12))
        inside = (q - below[k]) / (below[k + 1] - below[k])
        out.append(edges[k] + inside / bins)
    return out + (list(counts / len(values)) if histogram else [])


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from(sorted(PRESETS)))
def test_every_feature_equals_numpy_on_the_pixels(seed, ndim, preset):
    rng = np.random.default_rng(seed)
    ndim = max(ndim, 3) if preset == "stack" else ndim
    shape = (5, 4, 3, 2)[:ndim]
    labels = rng.integers(1, 4, shape)
    cues = {name: rng.integers(0, 256, shape).astype(np.uint8) for name in ("boundary", "mito")}
    spacing = rng.integers(1, 5, ndim).astype(float)
    graph = region_graph(labels, cues, ranges=(0, 255), bins=8, spacing=spacing)
    features = feature_map(graph, preset)
    matrix = feature_matrix(graph, features)
    assert matrix.shape == (graph.n_boundaries, features.width)
    assert matrix.dtype == np.float32
    assert len(features.names) == len(set(features.names)) == features.width
    shown = PRESETS[preset]
    for edge, row in zip(graph.edges, matrix, strict=True):
        u, v = sorted(graph.ids[edge].tolist(), key=lambda k: ((labels == k).sum(), k))
        faces = faces_between(labels, u, v)
        expected = []
        for pick in ("u", "v", "edge"):
            for cue in cues.values():
                if pick == "edge":
                    values = [cue[p] for _, *both in faces for p in both]
                else:
                    values = cue[labels == (u if pick == "u" else v)]
                expected += block(np.array(values, int), 8, shown[1], shown[0])
        for cue in cues.values():
            one, two = (block(cue[labels == k].astype(int), 8, (), True) for k in (u, v))
            expected += [abs(a - b) for a, b in zip(one[:4], two[:4], strict=True)]
            expected.append(jensenshannon(one[4:], two[4:], base=2) ** 2)
        area = sum(np.delete(spacing, axis).prod() for axis, *_ in faces)
        sizes = [(labels == k).sum() for k in (u, v)]
        expected += [*np.log2(sizes), np.log2(area)]
        for k in (u, v):
            others = [o for o in np.unique(labels) if o != k]
            surface = sum(
                np.delete(spacing, axis).prod()
                for o in others
                for axis, *_ in faces_between(labels, k, o)
            )
            expected.append(area / surface)
        if shown[3]:
            expected += shapes(labels, cues, u, v, spacing, faces)
        if shown.links:
            expected += links(labels, u, v, spacing, faces)
        if shown[2]:
            expected += angles(labels, u, v, spacing)
        assert row == pytest.approx(np.array(expected), abs=2e-6), (u, v)


def shapes(labels, cues, u, v, spacing, faces):
    """Contact, ellipsoids, shares of the surface on the border, and contrasts."""
    ndim, areas = labels.ndim, [np.delete(spacing, axis).prod() for axis in range(labels.ndim)]
    contact = sum(areas[axis] for axis, *_ in faces)
    out = [contact / ((labels == k).sum() * spacing.prod()) ** ((ndim - 1) / ndim) for k in (u, v)]
    for group in ((u, v), (u,), (v,)):
        points = np.argwhere(np.isin(labels, group))
        moments = np.cov(points.T, bias=True).reshape(ndim, ndim) + np.eye(ndim) / 12
        # the half axes of an ellipsoid are sqrt(ndim + 2) standard deviations
        half_axes = np.sqrt((ndim + 2) * np.linalg.eigvalsh(moments))
        ball = np.pi ** (ndim / 2) / gamma(ndim / 2 + 1)
        out.append(len(points) / (ball * half_axes.prod()))
    for k in (u, v):
        inside = np.pad(labels == k, 1)
        surface = sum(areas[a] * np.abs(np.diff(inside.astype(int), axis=a)).sum()
                      for a in range(ndim))  # fmt: skip
        border = sum(areas[a] * (np.take(labels == k, (0, -1), axis=a)).sum() for a in range(ndim))
        out.append(border / surface)
    for cue in cues.values():
        mean = np.mean([cue[p] for _, *both in faces for p in both])
        out += [(mean - cue[labels == k].mean()) / 255 for k in (u, v)]
    return out


def links(labels, u, v, spacing, faces):
    """Overlaps of two regions across planes, displacements of centroids, distance of planes."""
    areas = [np.delete(spacing, axis).prod() for axis in range(labels.ndim)]
    overlap = areas[0] * sum(axis == 0 for axis, *_ in faces)
    points = [np.argwhere(labels == k).astype(float) for k in (u, v)]
    planes = [p[:, 0] for p in points]
    extents = [np.sqrt(12 * z.var() + 1) for z in planes]
    sections = [areas[0] * len(z) / n for z, n in zip(planes, extents, strict=True)]
    side = np.sign(planes[1].mean() - planes[0].mean())
    ends = [planes[0].mean() + side * extents[0] / 2, planes[1].mean() - side * extents[1] / 2]
    meet = np.mean(ends)

    def centre_at(p, plane):
        """Return the point on the line of least squares through the centres of the planes."""
        if np.ptp(p[:, 0]) == 0:
            return p[:, 1:].mean(axis=0)
        return np.array([np.polyval(np.polyfit(p[:, 0], p[:, a], 1), plane)
                         for a in range(1, labels.ndim)])  # fmt: skip

    length = np.mean(sections) ** (1 / (labels.ndim - 1))
    centroids = [p.mean(axis=0)[1:] for p in points]
    continued = [centre_at(p, meet) for p in points]
    union = sum(sections) - overlap
    return [
        overlap / sum(areas[axis] for axis, *_ in faces),
        overlap / sections[0],
        overlap / sections[1],
        overlap / union if union > overlap else 1.0,
        np.linalg.norm((centroids[1] - centroids[0]) * spacing[1:]) / length,
        np.linalg.norm((continued[1] - continued[0]) * spacing[1:]) / length,
        abs(planes[1].mean() - planes[0].mean()) / np.mean(extents),
    ]


def angles(labels, u, v, spacing):
    """Angles between the regions' long axes, and of each to the line of centroids; 0..1."""
    places = [np.argwhere(labels == k) * spacing for k in (u, v)]
    axes, known = [], []
    for points in places:
        moments = np.cov(points.T, bias=True).reshape(labels.ndim, labels.ndim)
        values, vectors = np.linalg.eigh(moments)
        known.append(values[-1] > 1e-12)
        axes.append(vectors[:, -1])
        if len(values) > 1 and values[-1] - values[-2] < 1e-6 * max(values[-1], 1):
            reject()  # no long axis: the two largest moments are equal
    line = places[1].mean(axis=0) - places[0].mean(axis=0)
    apart = np.linalg.norm(line) > 1e-12

    def angle(a, b, sure):
        cosine = abs(a @ b) / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-300)
        return np.arccos(min(cosine, 1.0)) / (np.pi / 2) if sure else 1.0

    return [
        angle(axes[0], axes[1], all(known)),
        angle(axes[0], line, known[0] and apart),
        angle(axes[1], line, known[1] and apart),
    ]


def test_links_of_a_process_that_continues_and_of_one_beside_it():
    labels = np.zeros((4, 6, 12), int)
    for plane in range(4):  # a square of 4 x 4 that moves by one column a plane, in two pieces
        labels[plane, 1:5, 1 + plane : 5 + plane] = 1 + (plane >= 2)
        labels[plane, 1:5, 5 + plane : 8 + plane] = 3
    graph = region_graph(labels, np.zeros(labels.shape), spacing=(5, 1, 1))
    table = feature_table(graph, "stack").set_index(["u", "v"]).filter(like="link/")
    table.columns = [name.removeprefix("link/") for name in table.columns]
    after, beside = table.loc[1, 2], table.loc[1, 3]
    # planes 1 and 2 share 4 x 3 faces, of 16 pixels a plane; the line of centres goes on
    assert after["between_share"] == 1
    assert after["node_min/overlap"] == pytest.approx(12 / 16)
    assert after["overlap_of_union"] == pytest.approx(12 / 20)
    assert after["displacement"] == pytest.approx(2 / 4)
    assert after["continued_displacement"] == pytest.approx(0, abs=1e-6)
    assert after["plane_distance"] == pytest.approx(1)
    assert beside["between_share"] < 0.5
    assert beside["continued_displacement"] > 0.9


def test_links_need_planes():
    graph = region_graph(np.array([[1, 2]]), np.zeros((1, 2)))
    with refuses("preset", SetOption("preset", "shape")):
        feature_map(graph, "stack")


@given(st.integers(0, 2**32 - 1), st.sampled_from(["natural", "shape"]))
def test_swapping_the_ids_of_two_regions_gives_the_same_vector(seed, preset):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random((5, 5)) < 0.6, 1, 2)
    labels[0, 0], labels[0, 1] = 1, 2
    if (labels == 1).sum() == (labels == 2).sum():
        labels[4, 4] = 1
        labels[4, 3] = 1
    if (labels == 1).sum() == (labels == 2).sum():
        return
    cue = rng.random((5, 5))
    matrices = [
        feature_matrix(graph, feature_map(graph, preset))
        for graph in (region_graph(labels, cue), region_graph(3 - labels, cue))
    ]
    assert np.array_equal(*matrices)


def test_the_named_columns_of_a_table():
    labels = np.array([[1, 1, 2, 2]])
    graph = region_graph(labels, {"mito": np.array([[0.0, 0.0, 1.0, 1.0]])})
    table = feature_table(graph)
    assert table["mito/node_min/mean"].tolist() == [0.0]
    assert table["mito/node_max/mean"].tolist() == [1.0]
    assert table["mito/edge/quantile_0.5"].tolist() == [pytest.approx(0.04)]  # of bins 0 and 24
    assert table["mito/difference/jensen_shannon"].tolist() == [1.0]
    assert table[["u", "v"]].values.tolist() == [[1, 2]]


def test_refusals():
    with refuses("preset", SetOption("preset", "shape")):
        FeatureMap("large", ("boundary",), 25)
    light = region_graph(np.array([1, 2]), np.zeros(2), statistics="mean")
    with refuses("graph", SetOption("statistics", "all")):
        feature_map(light)
