"""Data that differ from those of a training: reported, and adapted."""

import warnings
from functools import cache

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo

# No kernels of its own: as plain Python, those that make the graphs would take minutes.
pytestmark = [
    pytest.mark.compiled,
    # of the graph, whose cue is inverted on purpose; here it is compared with that of a training
    pytest.mark.filterwarnings("ignore:.cues\\['boundary'\\]. is lower where regions touch"),
]


@cache
def sample(seed=0):
    """Return superpixels, boundary and gold of generated cells."""
    cells = agglo.sample("cells2d", seed=seed)
    boundary = cells.cues["boundary"][:160, :160]
    return agglo.oversegment(boundary), boundary, cells.gold[:160, :160]


@cache
def policy():
    superpixels, boundary, gold = sample()
    graph = agglo.region_graph(superpixels, boundary, spacing=(0.5, 0.5))
    return agglo.train(graph, gold, strategy="flat", preset="minimal")


def graph_of(boundary=None, superpixels=None, spacing=(0.5, 0.5), seed=1):
    own_superpixels, own_boundary, _ = sample(seed)
    return agglo.region_graph(
        own_superpixels if superpixels is None else superpixels,
        own_boundary if boundary is None else boundary,
        spacing=spacing,
    )


def kinds(graph):
    return [one.kind for one in agglo.data_differences(policy(), graph)]


def test_data_of_the_training_and_data_like_them_do_not_differ():
    assert kinds(graph_of(seed=0)) == kinds(graph_of(seed=1)) == []


def test_the_mean_policy_differs_from_nothing():
    assert agglo.data_differences(agglo.MeanPolicy(), graph_of(1 - sample(1)[1])) == ()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda b: 1 - b, "inverted"),
        (lambda b: 0.5 * b, "strength"),
        (lambda b: np.minimum(3 * b, 1), "strength"),
        (lambda b: 0.3 + 0.7 * b, "values"),
    ],
)
def test_a_changed_cue_is_reported(change, kind):
    assert kinds(graph_of(change(sample()[1]), seed=0)) == [kind]


def test_an_inverted_boundary_makes_no_other_cue_look_inverted():
    """Superpixels of the inverted map lie elsewhere, and with them the contrast of all cues."""
    drawn = agglo.sample("neuropil2d")
    crop = (slice(0, 200), slice(0, 200))
    cues = {name: cue[crop] for name, cue in drawn.cues.items()}
    graph = agglo.region_graph(agglo.oversegment(cues["boundary"]), cues)
    learned = agglo.train(graph, drawn.gold[crop], strategy="flat", preset="minimal")
    cues["boundary"] = 1 - cues["boundary"]
    with warnings.catch_warnings(action="ignore"):  # it is high nearly everywhere
        superpixels = agglo.oversegment(cues["boundary"])
    found = agglo.data_differences(learned, agglo.region_graph(superpixels, cues))
    assert [(one.kind, one.cue) for one in found if one.cue] == [("inverted", "boundary")]


def test_another_resolution_is_reported():
    # Pixels of twice the length: superpixels of as many pixels are four times as large.
    assert "spacing" in kinds(graph_of(spacing=(1.0, 1.2)))
    assert kinds(graph_of(spacing=(1, 1))) == []  # not known: nothing to compare


def test_superpixels_of_another_size_are_reported():
    coarse = agglo.agglomerate(graph_of()).segment(0.25)
    assert "superpixels" in kinds(graph_of(superpixels=coarse))


def test_an_axis_more_is_reported():
    superpixels, boundary, _ = sample(1)
    volume = agglo.region_graph(superpixels[None], boundary[None])
    (difference,) = agglo.data_differences(policy(), volume)
    assert difference.kind == "spacing"
    assert "3-D" in str(difference)


@pytest.mark.parametrize(
    "change", [lambda b: 1 - b, lambda b: 0.5 * b, lambda b: np.minimum(3 * b, 1)]
)
def test_adapted_cues_have_no_difference_and_give_a_better_segmentation(change):
    _, boundary, gold = sample(1)
    other = graph_of(change(boundary))
    adapted = graph_of(agglo.adapt_cues(policy(), other)["boundary"])
    assert kinds(adapted) == []

    def vi(graph):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", agglo.DataWarning)
            tree = agglo.agglomerate(graph, policy())
        return sum(agglo.split_vi(tree.segment(0.5), gold))

    assert vi(adapted) < vi(other) - 0.3


def test_cues_without_a_difference_are_kept():
    graph = graph_of()
    same = agglo.adapt_cues(policy(), graph)["boundary"]
    np.testing.assert_allclose(same, sample(1)[1], atol=0.5 / 255 + 1e-6)


def test_agglomerate_warns_before_it_merges():
    other = graph_of(1 - sample(1)[1])

    def stop(_):
        raise AssertionError("merging has begun")

    with pytest.warns(agglo.DataWarning, match="inverted"), pytest.raises(AssertionError):
        agglo.agglomerate(other, policy(), progress=stop)


def test_training_on_an_inverted_cue_warns():
    superpixels, boundary, gold = sample()
    graph = agglo.region_graph(superpixels, 1 - boundary)
    with pytest.warns(agglo.DataWarning, match="looks inverted") as told:
        agglo.train(graph, gold, strategy="flat", preset="minimal")
    remedy = told[0].message.remedy
    assert (remedy.option, remedy.key, remedy.value) == ("ranges", "boundary", (1, 0))


def test_cues_that_cannot_be_adapted_are_refused():
    with refuses("policy", "train it again"):
        agglo.adapt_cues(agglo.MeanPolicy(), graph_of())
    superpixels, boundary, _ = sample(1)
    lean = agglo.region_graph(superpixels, boundary, keep_cues=False)
    with refuses("graph", "keep_cues"):
        agglo.adapt_cues(policy(), lean)


def test_a_policy_file_keeps_the_profile(tmp_path):
    policy().save(tmp_path / "policy.npz")
    read = agglo.load_policy(tmp_path / "policy.npz")
    other = graph_of(1 - sample(1)[1])
    assert agglo.data_differences(read, other) == agglo.data_differences(policy(), other)


def test_the_training_data_are_known_again():
    from napari_agglo.policy import is_training_data

    assert is_training_data(policy(), graph_of(seed=0))
    assert not is_training_data(policy(), graph_of(seed=1))
    assert not is_training_data(agglo.MeanPolicy(), graph_of(seed=0))


def test_the_training_data_are_known_again_among_several_volumes_of_one_shape():
    from napari_agglo.policy import is_training_data

    pairs = [(graph_of(seed=seed), sample(seed)[2]) for seed in (0, 1)]
    both = agglo.train(pairs, strategy="flat", preset="minimal")
    coarser = [agglo.oversegment(sample(seed)[1], min_size=40) for seed in (0, 1, 2)]
    again = [graph_of(superpixels=coarser[seed], seed=seed) for seed in (0, 1, 2)]
    assert [is_training_data(both, graph) for graph in again] == [True, True, False]


def test_the_training_data_are_known_again_by_other_superpixels():
    from napari_agglo.policy import is_training_data

    superpixels, boundary, _ = sample()
    other = agglo.oversegment(boundary, min_size=40)
    assert other.max() < superpixels.max()
    assert is_training_data(policy(), graph_of(boundary, other))
    assert not is_training_data(policy(), graph_of(1 - boundary, other))
    # A constant cue says nothing, and a graph without its cues is known as a whole only.
    assert not is_training_data(policy(), graph_of(np.zeros_like(boundary), other))
    lean = agglo.region_graph(other, boundary, spacing=(0.5, 0.5), keep_cues=False)
    assert not is_training_data(policy(), lean)


def test_the_size_of_superpixels_is_given_in_pixels_of_the_data():
    (pixel, size) = agglo.data_differences(policy(), graph_of(spacing=(2.0, 2.0)))
    assert (pixel.kind, size.kind) == ("spacing", "superpixels")
    wanted = policy().record["data"]["superpixel_size"] / 16
    assert f"those of the training would have {max(1, wanted):,.0f};" in size.text


def test_a_unit_that_was_mistaken_is_named_and_sizes_are_not_compared():
    superpixels, boundary, gold = sample(1)

    def graph(unit):
        return agglo.region_graph(superpixels, boundary, spacing=(10, 10), unit=unit)

    learned = agglo.train(graph("nm"), gold, strategy="flat", preset="minimal")
    assert agglo.data_differences(learned, graph("nm")) == ()
    (pixel,) = agglo.data_differences(learned, graph("um"))
    assert pixel.kind == "spacing"
    assert "10 x 10 µm" in pixel.text
    assert "0.01 x 0.01 µm" in pixel.text
    assert "unit" in pixel.text
    (unknown,) = agglo.data_differences(learned, graph(None))
    assert "10 x 10 (unit not known)" in unknown.text
