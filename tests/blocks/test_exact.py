"""Block-wise graph, tree and labels equal those of the whole volume, bit for bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import zarr
from block_runs import MERGES, check_exact, stored, volumes
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

import napari_agglo as agglo
from napari_agglo import blocks
from napari_agglo.volumes import downsample_labels


@given(volumes(), st.booleans(), st.sampled_from(["all", "mean"]), st.integers(1, 3))
@examples(60, few=5, deadline=None)
def test_blocks_give_what_the_whole_gives(volume, dams, statistics, workers):
    check_exact(volume, dams, statistics, workers=workers)


@pytest.fixture(scope="module")
def tissue():
    sample = agglo.sample("neuropil3d")
    crop = np.s_[:40, :56, :48]
    return sample.cues["boundary"][crop], sample.gold[crop]


@pytest.mark.parametrize("block", [(40, 56, 48), (24, 31, 48), (40, 20, 17)])
def test_superpixels_do_not_depend_on_blocks(tissue, block):
    boundary, gold = tissue
    expected = agglo.oversegment(boundary)
    with stored(boundary=boundary, gold=gold) as where:
        blocks.plan(
            where / "result", str(where / "boundary.zarr"), gold=str(where / "gold.zarr"),
            block=block,
        )  # fmt: skip
        blocks.run(where / "result", workers=2)
        result = blocks.open(where / "result")
        made = result.superpixels[0][...]
        # The same regions; numbers follow the blocks. With this halo the floods agree everywhere.
        assert sum(agglo.split_vi(made, expected)) == 0.0
        assert made.max() == expected.max()
        whole = agglo.vi_curve(agglo.agglomerate(agglo.region_graph(made, boundary)), gold)
        assert np.allclose(result.curve["vi"], whole["vi"], rtol=0, atol=1e-12)


def test_a_learned_policy_of_a_crop_serves_the_whole(tissue):
    boundary, gold = tissue
    superpixels = agglo.oversegment(boundary)
    policy = agglo.train(agglo.region_graph(superpixels[:20], boundary[:20]), gold[:20], epochs=1)
    graph = agglo.region_graph(superpixels, boundary, bins=policy.features.bins)
    tree = agglo.agglomerate(graph, policy)
    with stored(boundary=boundary, superpixels=superpixels) as where:
        policy.save(where / "policy.npz")
        blocks.plan(
            where / "result", str(where / "boundary.zarr"),
            superpixels=str(where / "superpixels.zarr"), policy=str(where / "policy.npz"),
            block=(16, 30, 48),
        )  # fmt: skip
        blocks.run(where / "result")
        result = blocks.open(where / "result")
        for name in MERGES:
            assert np.array_equal(getattr(result.tree, name), getattr(tree, name)), name


@pytest.fixture(scope="module")
def learned():
    """Give a policy of two cues that was trained on noise, with few and with many thresholds."""
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.arange(1, 145)).reshape(12, 12).repeat(4, 0).repeat(4, 1)
    gold = np.arange(1, 17).reshape(4, 4).repeat(12, 0).repeat(12, 1)
    cues = {name: rng.integers(0, 256, labels.shape).astype(np.uint8) for name in CUES}
    graph = agglo.region_graph(labels, cues, ranges=(0, 255), spacing=(1, 1))
    return agglo.train(graph, gold, epochs=1)


CUES = ("boundary", "other")


@pytest.mark.filterwarnings("ignore::napari_agglo.errors.DataWarning")  # other than trained on
@given(volumes(), st.booleans(), st.integers(1, 3))
@examples(20, few=3, deadline=None)
def test_a_learned_policy_gives_what_the_whole_gives(learned, volume, dams, workers):
    labels, cues, block = volume
    bins = learned.features.bins
    graph = agglo.region_graph(labels, cues, ranges=(0, 255), dams=dams, bins=bins)
    tree = agglo.agglomerate(graph, learned)
    with stored(labels=labels, **cues) as where:
        learned.save(where / "policy.npz")
        blocks.plan(
            where / "result", {name: str(where / f"{name}.zarr") for name in cues},
            superpixels=str(where / "labels.zarr"), policy=str(where / "policy.npz"),
            ranges=(0, 255), dams=dams, block=block,
        )  # fmt: skip
        blocks.run(where / "result", workers=workers)
        result = blocks.open(where / "result")
        for name in MERGES:
            assert np.array_equal(getattr(result.tree, name), getattr(tree, name)), name
        assert np.array_equal(result.labels[0][...], tree.segment(0.5))


def test_predictions_of_a_pixel_classifier_are_those_of_the_whole():
    sample = agglo.sample("neuropil2d")
    image = sample.image[:150, :130]
    classifier = agglo.train_pixels(image, gold=sample.gold[:150, :130], examples=300)
    expected = classifier.predict(image)["boundary"]
    with stored(image=image) as where:
        classifier.save(where / "classifier.npz")
        plan = blocks.plan(
            where / "result", image=str(where / "image.zarr"),
            classifier=str(where / "classifier.npz"), block=(64, 50),
        )  # fmt: skip
        assert plan.cue_names == ("boundary", "interior")
        assert blocks.run(where / "result").is_complete
        written = zarr.open_array(str(where / "result" / "cue_boundary.ome.zarr" / "0"))[...]
        assert np.array_equal(written, np.rint(expected * np.float32(65535)).astype(np.uint16))


@pytest.mark.parametrize(
    ("shards", "chunks", "first"),
    [(False, (80, 50), 2), (False, (80, 40), 1), (True, (80, 50), 1)],
)
def test_the_pyramid_is_that_of_the_whole_and_has_the_unit(shards, chunks, first):
    rng = np.random.default_rng(0)
    labels = rng.integers(1, 300, (60, 55)).repeat(10, 0).repeat(10, 1).astype(np.uint16)
    with stored(labels=labels, boundary=rng.random(labels.shape, np.float32)) as where:
        plan = blocks.plan(
            where / "result", str(where / "boundary.zarr"),
            superpixels=str(where / "labels.zarr"), block=(160, 200), spacing=(8, 4), unit="nm",
            shards=shards, chunks=chunks,
        )  # fmt: skip
        done = blocks.run(where / "result").done
        # level 1 has a stage of its own where its chunks or shards lie in several blocks
        stages = [name for name in done if name.startswith("pyramid")]
        assert stages == [f"pyramid-{level}" for level in range(first, plan.levels)]
        check_pyramid(blocks.open(where / "result").labels, shards)
        volume = agglo.open_volume(where / "result" / "labels.ome.zarr")
        assert volume.spacing == pytest.approx((0.008, 0.004))
        assert np.array_equal(volume.load(), blocks.open(where / "result").labels[0][...])


def check_pyramid(levels, shards):
    """Check that there are coarser levels, each of which is that of the level before it."""
    assert len(levels) >= 2
    assert all((level.shards is not None) == shards for level in levels)
    for fine, coarse in pairwise(levels):
        factors = tuple(-(-a // b) for a, b in zip(fine.shape, coarse.shape, strict=True))
        assert np.array_equal(coarse[...], downsample_labels(fine[...], factors))


@pytest.mark.parametrize(("block", "chunks"), [((40, 36, 130), (20, 18, 65)), (50, 25), (37, 37)])
def test_the_pyramid_of_superpixels_in_blocks_of_any_side(block, chunks):
    values = np.random.default_rng(0).random((67, 71, 130), np.float32)
    with stored(boundary=values) as where:
        blocks.plan(where / "result", str(where / "boundary.zarr"), block=block, chunks=chunks)
        blocks.run(where / "result")
        result = blocks.open(where / "result")
        check_pyramid(result.superpixels, False)
        check_pyramid(result.labels, False)
