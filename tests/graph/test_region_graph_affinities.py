"""Graphs of affinities against loops over faces, waterz, and their way through the pipeline."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.statistics import cue_block
from refusals import refuses

import napari_agglo as agglo
from napari_agglo.features import feature_table
from napari_agglo.graph import divided
from napari_agglo.policy import MeanPolicy
from napari_agglo.volumes import OrientedCue

WATERZ = Path(__file__).parents[1] / "data" / "waterz_partitions.npz"


def faces_by_loops(labels, array, dams=False):
    """By pair of labels: the axis and the two samples, as bytes, of each face between them.

    A face has the affinity kept at its upper voxel, twice; a dam those of its two faces.
    """
    out: dict[tuple[int, int], list[tuple[int, list[int]]]] = {}
    for voxel in itertools.product(*map(range, labels.shape)):
        for axis in range(labels.ndim):
            above = tuple(i + (a == axis) for a, i in enumerate(voxel))
            beyond = tuple(i + 2 * (a == axis) for a, i in enumerate(voxel))
            if above[axis] >= labels.shape[axis] or not labels[voxel]:
                continue
            samples = [255 - int(array[(axis, *above)])] * 2
            other = int(labels[above])
            if dams and other == 0 and beyond[axis] < labels.shape[axis]:
                other = int(labels[beyond])
                samples[1] = 255 - int(array[(axis, *beyond)])
            if other not in (0, labels[voxel]):
                pair = (min(int(labels[voxel]), other), max(int(labels[voxel]), other))
                out.setdefault(pair, []).append((axis, samples))
    return out


@st.composite
def volumes(draw):
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(ndim))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    labels = random.integers(0, 5, shape) + 300
    labels[labels == 300] = 0
    return labels, random.integers(100, 256, (ndim, *shape)).astype(np.uint8)


@given(volumes(), st.sampled_from([1, 25]), st.booleans())
@pytest.mark.filterwarnings("ignore:Most affinities")
def test_statistics_equal_loops_over_faces(volume, bins, dams):
    labels, array = volume
    plain = np.full(labels.shape, 7, np.uint8)
    cues = {"affinity": agglo.affinities(array), "plain": plain}
    ranges = {"plain": (0, 255)}
    graph = agglo.region_graph(labels, cues, ranges=ranges, bins=bins, dams=dams)
    letters = ["z", "y", "x"][-labels.ndim :]
    assert graph.cue_names == ("affinity", *(f"affinity_{n}" for n in letters), "plain")
    expected = faces_by_loops(labels, array, dams)
    assert [tuple(pair) for pair in graph.ids[graph.edges].tolist()] == sorted(expected)
    layout = graph.layout
    for row, pair in zip(graph.boundaries, sorted(expected), strict=True):
        for cue in range(layout.n_cues - 1):
            known = [v for axis, s in expected[pair] for v in s if cue in (0, axis + 1)]
            start = layout.boundary_sums(cue).start
            assert row[start : start + layout.cue_width].tolist() == cue_block(known, bins)
        n = len(expected[pair])
        assert row[layout.boundary_sums(layout.n_cues - 1).start] == 7 * 2 * n


def agglomerated_by_loops(labels, array):
    """Merge the pair of the lowest mean of 1 - affinity again and again; return the merges."""
    labels, merges = labels.copy(), []
    while True:
        means = {
            pair: np.mean([s[0] for _, s in faces])
            for pair, faces in faces_by_loops(labels, array).items()
        }
        if not means:
            return merges
        pair = min(means, key=lambda one: (means[one], one))
        merges.append((*pair, means[pair] / 255))
        labels[labels == pair[1]] = pair[0]


@given(volumes())
@pytest.mark.filterwarnings("ignore:Most affinities")
def test_mean_agglomeration_equals_a_slow_one(volume):
    labels, array = volume
    if len(np.unique(labels)) < 2:
        return
    graph = agglo.region_graph(labels, {"affinity": agglo.affinities(array)}, statistics="mean")
    tree = agglo.agglomerate(graph)
    expected = agglomerated_by_loops(labels, array)
    for threshold in (0.1, 0.25, 0.5, 1.0):
        known = labels.copy()
        for keep, drop, priority in expected:
            if priority > threshold + 1e-12:
                break
            known[known == drop] = keep
        # a mean never falls below its parts, so that the merges come in ascending order
        assert same_partition(tree.segment(threshold), known)


def same_partition(first, second):
    pairs = np.unique(np.stack([first.ravel(), second.ravel()]), axis=1)
    return pairs.shape[1] == len(np.unique(first)) == len(np.unique(second))


def blobs(seed=3, shape=(12, 24, 24)):
    """Superpixels, affinities as bytes, and gold, of noisy cells."""
    random = np.random.default_rng(seed)
    points = random.random((7, 3)) * shape
    grid = np.stack(np.indices(shape), axis=-1)
    gold = np.argmin(((grid[..., None, :] - points) ** 2).sum(-1), axis=-1) + 1
    array = np.full((3, *shape), 230.0)
    for axis in range(3):
        below = np.roll(gold, 1, axis=axis)
        array[axis][below != gold] = 60.0
    noisy = np.clip(array + random.normal(0, 40, array.shape), 0, 255).astype(np.uint8)
    affinities = agglo.affinities(noisy)
    return agglo.oversegment(affinities, min_size=10), noisy, gold


THRESHOLDS = [0.3001, 0.3501, 0.3801, 0.4001]  # that no mean is equal to


def cubes_and_affinities():
    """Cubes of 4 x 4 x 4: the means of 16 faces of random bytes have few ties."""
    number = np.arange(24) // 4
    cubes = number[:, None, None] * 36 + number[:, None] * 6 + number + 300
    random = np.random.default_rng(1)
    return cubes, random.integers(60, 256, (3, 24, 24, 24)).astype(np.uint8)


def segments_of_waterz():
    """Return the segment of each cube at each threshold, by waterz itself."""
    import waterz

    cubes, array = cubes_and_affinities()
    found = waterz.agglomerate(
        np.ascontiguousarray(array / 255, np.float32),
        THRESHOLDS,
        fragments=cubes.astype(np.uint64) - 299,
        scoring_function="OneMinus<MeanAffinity<RegionGraphType, ScoreValue>>",
        discretize_queue=0,
    )
    return np.array([one[::4, ::4, ::4].ravel().copy() for one in found])


def test_waterz_finds_the_same_segments():
    cubes, array = cubes_and_affinities()
    with np.load(WATERZ) as file:
        known, digest = file["segments"], int(file["crc32"])
    assert zlib.crc32(array.tobytes()) == digest, "other random numbers: write the file again"
    tree = agglo.agglomerate(agglo.region_graph(cubes, {"affinity": agglo.affinities(array)}))
    counts = []
    for threshold, segments in zip(THRESHOLDS, known, strict=True):
        assert same_partition(tree.segment(threshold), segments[cubes - 300])
        counts.append(len(np.unique(segments)))
    assert 216 > counts[0] > counts[1] > counts[2] > 1


def test_the_file_has_the_segments_of_waterz():
    pytest.importorskip("waterz")
    with np.load(WATERZ) as file:
        for here, known in zip(segments_of_waterz(), file["segments"], strict=True):
            assert same_partition(here, known)


def test_the_mean_is_that_of_the_faces_of_one_direction():
    superpixels, noisy, _ = blobs()
    graph = agglo.region_graph(superpixels, {"affinity": agglo.affinities(noisy)})
    table = feature_table(graph, "minimal").set_index(["u", "v"])
    for pair, faces in list(faces_by_loops(superpixels, noisy).items())[:20]:
        for axis, name in enumerate(("affinity_z", "affinity_y", "affinity_x")):
            values = [s[0] / 255 for a, s in faces if a == axis]
            mean = np.mean(values) if values else 0.0
            assert table.loc[pair, f"{name}/edge/mean"] == pytest.approx(mean, abs=1e-6)
    by_axis = graph.boundary_mean("affinity_z")
    assert (by_axis[graph.boundaries[:, 0] == 0] == 0.5).all()  # no face across z


def test_the_mean_of_one_direction_is_refused():
    superpixels, noisy, _ = blobs()
    graph = agglo.region_graph(superpixels, {"affinity": agglo.affinities(noisy)})
    with refuses("cue"):
        agglo.agglomerate(graph, MeanPolicy("affinity_z"))


def test_a_division_equals_a_graph_of_the_changed_labels():
    superpixels, noisy, _ = blobs()
    affinities = agglo.affinities(noisy)
    graph = agglo.region_graph(superpixels, {"affinity": affinities})
    largest = int(graph.sizes.argmax())
    box = tuple(slice(a, b) for a, b in graph.boxes[largest].T)
    pieces = (graph.superpixels.image[box] == largest) * 1
    half = pieces.shape[2] // 2
    pieces[:, :, half:] *= 2
    after = divided(graph, largest, pieces)
    anew = agglo.region_graph(after.ids[after.superpixels.image], {"affinity": affinities})
    for name in ("edges", "regions", "boundaries", "boxes"):
        assert np.array_equal(getattr(after, name), getattr(anew, name))


@pytest.mark.compiled
def test_policies_learn_from_affinities(tmp_path):
    superpixels, noisy, gold = blobs()
    graph = agglo.region_graph(superpixels, {"affinity": agglo.affinities(noisy)})
    policy = agglo.train(graph, gold, strategy="flat")
    path = policy.save(tmp_path / "p.npz")
    again = agglo.load_policy(path)
    tree = agglo.agglomerate(graph, policy)
    assert np.array_equal(tree.segment(0.5), agglo.agglomerate(graph, again).segment(0.5))
    assert sum(agglo.split_vi(tree.segment(0.5), gold)) < 0.2 * sum(
        agglo.split_vi(superpixels, gold)
    )
    assert agglo.data_differences(again, graph) == ()
    with pytest.warns(agglo.DataWarning):
        inverted = agglo.affinities(noisy, value_range=(0, 255))
    other = agglo.region_graph(superpixels, {"affinity": inverted})
    found = {one.cue for one in agglo.data_differences(again, other) if one.kind == "inverted"}
    assert found == set(graph.cue_names)
    cues = agglo.adapt_cues(again, other)
    assert all(isinstance(cue, OrientedCue) for cue in cues.values())
    adapted = agglo.region_graph(superpixels, cues)
    assert np.array_equal(adapted.boundaries, graph.boundaries)
    plain = dict.fromkeys(graph.cue_names, np.zeros(superpixels.shape))
    kinds = [
        one.kind for one in agglo.data_differences(again, agglo.region_graph(superpixels, plain))
    ]
    assert kinds == ["oriented"] * 4


def test_a_session_of_affinities_cuts_superpixels_and_opens_again(tmp_path):
    superpixels, noisy, _ = blobs()
    graph = agglo.region_graph(superpixels, {"affinity": agglo.affinities(noisy)})
    with agglo.Session.create(tmp_path / "a.agglo", graph) as session:
        session.threshold = 0.3
        at = np.argwhere(session.labels() == session.labels()[6, 12, 12])
        inside = int(session.labels()[6, 12, 12])
        session.cut(inside, points=[[tuple(at[0])], [tuple(at[-1])]])
        known = session.labels()
        assert known[tuple(at[0])] != known[tuple(at[-1])]
    with agglo.Session.open(tmp_path / "a.agglo") as session:
        assert np.array_equal(session.labels(), known)
        assert session.graph.layout == graph.layout
        session.undo()
        assert len(np.unique(session.labels()[tuple(at.T)])) == 1


# python tests/graph/test_region_graph_affinities.py, where waterz is installed
if __name__ == "__main__":
    from importlib.metadata import version

    values = cubes_and_affinities()[1]
    np.savez_compressed(
        WATERZ,
        segments=segments_of_waterz().astype(np.uint16),
        crc32=zlib.crc32(values.tobytes()),
        waterz=version("waterz"),
    )
