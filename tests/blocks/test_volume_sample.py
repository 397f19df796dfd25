"""Sample of a volume for its plan: density of superpixels, and plans whose graph does not fit."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from block_runs import stored
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.blocks import _budget, _tables, _volume_sample
from napari_agglo.blocks._volume_sample import owned, sample_boxes
from napari_agglo.errors import DataWarning, SetOption


@pytest.fixture(scope="module")
def tissue():
    return agglo.sample("neuropil3d").cues["boundary"][:40, :56, :48]


@pytest.mark.parametrize("given", [False, True])
def test_a_sample_of_the_whole_counts_its_graph(tissue, given):
    superpixels = agglo.oversegment(tissue)
    graph = agglo.region_graph(superpixels, tissue)
    with stored(boundary=tissue, superpixels=superpixels) as where:
        sources = {"superpixels": str(where / "superpixels.zarr")} if given else {}
        plan = blocks.plan(None, str(where / "boundary.zarr"), block=20, **sources)
        cost = blocks.estimate(plan)
    assert graph.n_regions > 100, "test invalid"
    assert (cost.superpixels, cost.boundaries) == (graph.n_regions, graph.n_boundaries)


def test_superpixels_of_a_mask_alone_are_counted(tissue):
    mask = np.zeros(tissue.shape, np.uint8)
    mask[:, :20] = 1
    inside = agglo.region_graph(agglo.oversegment(tissue, mask=mask), tissue)
    with stored(boundary=tissue, mask=mask) as where:
        plan = blocks.plan(None, str(where / "boundary.zarr"), mask=str(where / "mask.zarr"))
        cost = blocks.estimate(plan)
    assert (cost.superpixels, cost.boundaries) == (inside.n_regions, inside.n_boundaries)


@pytest.mark.parametrize("dams", [False, True])
@pytest.mark.parametrize("shape", [(30, 40), (12, 14, 16), (5, 6, 5, 6)])
def test_pairs_are_those_of_the_graph(shape, dams):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 60, shape).astype(np.uint32)
    graph = agglo.region_graph(labels, rng.random(shape, np.float32), dams=dams)
    assert owned(labels, [], dams) == (graph.n_regions, graph.n_boundaries, labels.size)


def test_boxes_that_fill_a_volume_count_each_superpixel_about_once(tissue):
    superpixels = agglo.oversegment(tissue)
    n, edges, size = owned(superpixels, [], False)
    parts = [owned(superpixels[:, :28], [], False), owned(superpixels[:, 27:], [1], False)]
    found, pairs, voxels = np.sum(parts, axis=0)
    assert voxels == size
    assert found == pytest.approx(n, rel=0.01)
    assert pairs == pytest.approx(edges, rel=0.02)
    naive = parts[0][0] + owned(superpixels[:, 28:], [], False)[0]
    assert naive > 1.1 * n, "test invalid"


@pytest.mark.parametrize(
    ("shape", "per_plane", "number"),
    [((40, 50), False, 1), ((4096, 2**14), False, 9), ((300, 2000, 900), False, 9),
     ((2**30,), False, 9), ((1000, 2000, 2000), True, 9), ((9, 500, 500, 500), False, 9)],
)  # fmt: skip
def test_boxes_of_a_sample_lie_in_the_volume_and_apart(shape, per_plane, number):
    boxes = sample_boxes(shape, per_plane)
    assert len(boxes) == number
    voxels = [np.prod([s.stop - s.start for s in box]) for box in boxes]
    assert max(voxels) <= 2**20
    assert all(0 <= s.start < s.stop <= n for box in boxes for s, n in zip(box, shape, strict=True))


def in_small_boxes(patch):
    """Let nine boxes be a fifth of a small volume."""
    for name, voxels in (("_LARGE", 1), ("_MIDDLE", 64**3), ("_OTHERS", 44**3)):
        patch.setattr(_volume_sample, name, voxels)


@pytest.mark.parametrize("given", [False, True])
def test_the_graph_of_a_volume_is_known_from_a_sample(given):
    """In a volume whose outer superpixels are many, and have fewer neighbours, within a tenth."""
    boundary = agglo.sample("neuropil3d").cues["boundary"]
    superpixels = agglo.oversegment(boundary)
    graph = agglo.region_graph(superpixels, boundary, statistics="mean", keep_cues=False)
    with pytest.MonkeyPatch.context() as patch, stored(boundary=boundary, s=superpixels) as where:
        in_small_boxes(patch)
        sources = {"superpixels": str(where / "s.zarr")} if given else {}
        cost = blocks.estimate(blocks.plan(None, str(where / "boundary.zarr"), **sources))
    assert cost.superpixels == pytest.approx(graph.n_regions, rel=0.05)
    assert cost.boundaries == pytest.approx(graph.n_boundaries, rel=0.1)


def test_a_large_volume_is_sampled_in_several_places():
    """Two thirds of it are empty, and a box in the middle, of tissue, would not tell."""
    boundary = agglo.sample("neuropil3d").cues["boundary"]
    tissue = agglo.oversegment(boundary)
    superpixels = np.zeros_like(np.concatenate([tissue] * 3))
    superpixels[80:176] = tissue
    with pytest.MonkeyPatch.context() as patch, stored(s=superpixels) as where:
        in_small_boxes(patch)
        zarr.save_array(str(where / "boundary.zarr"), np.zeros(superpixels.shape, np.uint8))
        plan = blocks.plan(None, str(where / "boundary.zarr"), ranges=(0, 255),
                           superpixels=str(where / "s.zarr"))  # fmt: skip
    share = blocks.estimate(plan).superpixels / int(tissue.max())
    assert 0.6 < share < 1.6, "where a box of tissue alone gives three times as many"


def test_a_volume_without_superpixels_in_the_sample_has_an_assumed_density(tmp_path):
    zarr.create_array(str(tmp_path / "empty.zarr"), shape=(500, 500, 500), chunks=(100,) * 3,
                      dtype="u1")  # fmt: skip
    plan = blocks.plan(None, str(tmp_path / "empty.zarr"), ranges=(0, 255))
    assert plan.superpixel_density == 0
    assert blocks.estimate(plan).superpixels == 500**3 // 500 + 1


def test_values_that_cannot_be_used_are_refused_by_blocks_not_by_the_sample(tissue):
    bad = tissue.copy()
    bad[0, 0, 0] = np.nan
    with stored(boundary=bad) as where:
        plan = blocks.plan(None, str(where / "boundary.zarr"))
    assert (plan.superpixel_density, plan.halo) == (0, 16)


@pytest.fixture
def small_programs(monkeypatch):
    """Let programs and blocks take nearly no memory, so that a small graph is most of a run."""
    monkeypatch.setattr(_budget, "BASE", 1000)
    monkeypatch.setattr(_budget, "block_bytes", lambda plan, block: 1000)
    monkeypatch.setattr(_tables, "_PIECE", 64)


@pytest.fixture
def place(tmp_path, tissue):
    zarr.save_array(str(tmp_path / "boundary.zarr"), tissue)
    return tmp_path


def room(place, **options):
    """Return the least budget, by the estimate, of a plan in blocks of 20."""
    plan = blocks.plan(None, str(place / "boundary.zarr"), block=20, workers=1, force=True,
                       memory="1GB", **options)  # fmt: skip
    return blocks.estimate(plan).peak_bytes


def test_a_graph_that_does_not_fit_is_refused_by_the_plan(place, small_programs):
    source, folder = str(place / "boundary.zarr"), place / "result"
    options = {"block": 20, "workers": 1}
    least = room(place)
    with refuses("memory", SetOption("hierarchical", True)) as refused:
        blocks.plan(folder, source, memory=int(0.89 * least), **options)
    for remedy in ("memory=", "min_size", "force=True"):
        assert remedy in str(refused.value.remedy)
    for figure in ("superpixels (", "voxels each)", "boundaries", "GB"):
        assert figure in str(refused.value)
    assert not folder.exists(), "nothing is written"
    blocks.plan(folder, source, memory=least, **options)
    # Insisted on, the run refuses it with the figures of the graph.
    plan = blocks.plan(folder, source, memory=int(0.89 * least), force=True, **options)
    with refuses("folder") as refused:
        blocks.run(folder)
    assert "stage graph" in str(refused.value)
    state = blocks.status(folder)
    assert state.next_stage == "graph"
    # and a plan with more memory goes on where it stopped
    blocks.plan(folder, source, memory=least, **options)
    assert "statistics" not in blocks.run(folder).done
    assert blocks.open(folder).graph.n_regions == blocks.estimate(plan).superpixels


def test_a_hierarchical_plan_has_room_for_less_and_is_refused_with_the_rest(place, small_programs):
    whole, rest = room(place), room(place, hierarchical=True)
    assert rest < whole
    source = str(place / "boundary.zarr")
    with refuses("memory", "force=True") as refused:
        blocks.plan(None, source, block=20, memory=rest // 2, workers=1, hierarchical=True)
    assert "hierarchical" not in str(refused.value.remedy)
    assert "leave about half" in str(refused.value)


def test_a_graph_that_may_fit_gives_a_warning(place, small_programs):
    """By a sample that is a few per cent wrong, it may as well not."""
    least = room(place)
    with pytest.warns(DataWarning, match="`run` may refuse the graph"):
        plan = blocks.plan(None, str(place / "boundary.zarr"), memory=least - 1, block=20,
                           workers=1)  # fmt: skip
    assert plan.memory == least - 1


def test_larger_superpixels_are_the_remedy_of_given_ones_without_settings(place, small_programs):
    zarr.save_array(
        str(place / "superpixels.zarr"),
        agglo.oversegment(zarr.open_array(str(place / "boundary.zarr"))[...]),
    )
    given = {"superpixels": str(place / "superpixels.zarr")}
    least = room(place, **given)
    with refuses("memory", "force=True") as refused:
        blocks.plan(None, str(place / "boundary.zarr"), memory=least // 2, block=20, workers=1,
                    **given)  # fmt: skip
    assert "min_size" not in str(refused.value)


def test_a_graph_that_needs_more_memory_by_groups_too_is_refused_with_both_figures(
    place, small_programs
):
    least = room(place, hierarchical=True)
    with refuses("memory", SetOption("hierarchical", True, when="with 0.1GB of `memory`")):
        blocks.plan(None, str(place / "boundary.zarr"), memory=least // 2, block=20, workers=1)


@pytest.mark.parametrize("policy", ["random", "learned"])
def test_other_policies_are_not_offered_the_merges_of_the_mean(place, small_programs, policy):
    if policy == "learned":
        sample = agglo.sample("neuropil2d")
        graph = agglo.region_graph(
            agglo.oversegment(sample.cues["boundary"]), sample.cues["boundary"]
        )
        policy = str(place / "policy.npz")
        agglo.train(graph, sample.gold, epochs=1).save(policy)
    least = room(place, policy=policy)
    with refuses("memory", "force=True") as refused:
        blocks.plan(None, str(place / "boundary.zarr"), memory=least // 2, block=20, workers=1,
                    policy=policy)  # fmt: skip
    assert "hierarchical=True" not in str(refused.value)
    assert ("approximate=0.05" in str(refused.value)) == (policy != "random")


def test_a_map_that_is_high_but_for_its_middle_gives_a_warning(monkeypatch):
    """The middle may lie in an object: boxes all over the volume tell the sign of a map."""
    monkeypatch.setattr(_volume_sample, "_MIDDLE", 32**2)
    monkeypatch.setattr(_volume_sample, "_OTHERS", 32**2)
    values = np.random.default_rng(0).random((256, 256), np.float32) ** 16  # mostly low
    values[104:152, 104:152] = 0.9
    with stored(boundary=values) as where:
        blocks.plan(None, str(where / "boundary.zarr"))  # warnings are errors
        with pytest.warns(DataWarning, match="high inside objects"):
            blocks.plan(None, str(where / "boundary.zarr"), ranges=(1, 0))
        with pytest.warns(DataWarning, match="of the range 0 to 255"):
            blocks.plan(None, str(where / "boundary.zarr"), ranges=(0, 255))


@pytest.mark.parametrize("given", [False, True])
def test_a_map_of_the_wrong_sign_gives_a_warning(tissue, given):
    levels = np.rint(255 * tissue**3).astype(np.uint8)  # mostly low, as thin boundaries are
    superpixels = agglo.oversegment(tissue)
    with stored(boundary=levels, superpixels=superpixels) as where:
        source = str(where / "boundary.zarr")
        options = {"superpixels": str(where / "superpixels.zarr")} if given else {}
        blocks.plan(None, source, ranges=(0, 255), block=20, **options)  # warnings are errors
        with pytest.warns(DataWarning, match="high inside objects") as told:
            blocks.plan(None, source, ranges=(255, 0), block=20, **options)
    (warning,) = [one.message for one in told]
    assert warning.argument == "cues['boundary']"
    assert warning.remedy == SetOption("ranges", (0.0, 255.0), "boundary", when="if it is")
