"""Seeds, the preview, and cuts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from windows import draw

from napari_agglo.session._cut_methods import cut_methods
from napari_agglo.widgets.proofread._seeded_cut import CutPanel


def far_apart(hands, n=2):
    """Return the largest segment, and pixels in superpixels of it that lie far from each other."""
    name = hands.largest()[0]
    superpixels = hands.superpixels_of(name)
    assert len(superpixels) > 5, "test invalid"
    graph = hands.project.graph
    big = superpixels[graph.sizes[superpixels] > 12]
    centres = graph.centroids()[big]
    chosen = [int(np.argmin(centres[:, 0])), int(np.argmax(centres[:, 0]))]
    while len(chosen) < n:
        away = np.min([((centres - centres[k]) ** 2).sum(axis=1) for k in chosen], axis=0)
        chosen.append(int(np.argmax(away)))
    return name, [hands.pixel_of(big[k]) for k in chosen]


def preview(hands):
    """Return the part of each superpixel as the preview shows it; None if it shows nothing."""
    layer = hands.scene.layer("Cut preview")
    return None if layer is None or not layer.visible else np.asarray(layer.data)


@pytest.mark.parametrize(
    "method", ["min_cut", *(pytest.param(m, marks=pytest.mark.slow) for m in ("seeded", "tree"))]
)
def test_seeds_preview_enter(hands, method):
    name, (a, b) = far_apart(hands)
    at = hands.step.cut.method.findData(method)
    hands.step.cut.method.setCurrentIndex(at)
    hands.step.cut.method.activated.emit(at)
    hands.click(a, "ctrl")
    assert hands.project.active == name
    assert preview(hands) is None
    assert hands.step.strip.text() == f"CUTTING segment {hands.project.id_of(name)} · group 1"
    hands.press("G")
    hands.click(b, "ctrl")
    shown = preview(hands)
    assert shown[a] != shown[b]
    assert set(np.unique(shown)) == {0, 1, 2}
    np.testing.assert_array_equal(shown > 0, np.asarray(hands.scene.segmentation.data) == name)
    assert hands.step.cut.commit.isEnabled()
    assert not hands.project.session.history, "a preview changes nothing"
    hands.press("enter")
    assert hands.id_at(a) != hands.id_at(b)
    # What was shown is what was made.
    made = np.asarray(hands.scene.segmentation.data)
    for part in (1, 2):
        assert len(np.unique(made[shown == part])) == 1
    assert not hands.proofreader.seeds
    assert preview(hands) is None
    assert hands.project.active in (hands.name_at(a), hands.name_at(b))


@pytest.mark.slow
def test_seeds_have_the_colours_of_their_groups_and_a_third_group_can_be_placed(hands):
    _, spots = far_apart(hands, 3)
    for k, spot in enumerate(spots):
        hands.click(spot, "ctrl")
        layer = hands.proofreader.seeds.layer
        assert len(layer.data) == k + 1
        hands.press("G")
    from napari.utils.colormaps.standardize_color import transform_color

    expected = transform_color(["#e69f00", "#56b4e9", "#009e73"])
    np.testing.assert_allclose(layer.face_color, expected, atol=1e-3)
    np.testing.assert_array_equal(layer.data, spots)
    assert len(np.unique(preview(hands))) == 4
    assert hands.viewer.layers[-1] is layer, "a seed must not be hidden"
    hands.press("enter")
    assert len({hands.id_at(spot) for spot in spots}) == 3


@pytest.mark.slow
def test_ctrl_click_on_a_seed_takes_it_away_and_escape_all(hands):
    _, (a, b) = far_apart(hands)
    hands.click(a, "ctrl")
    hands.press("G")
    hands.click(b, "ctrl")
    assert preview(hands) is not None
    hands.click(b, "ctrl")
    assert [seed.index for seed in hands.proofreader.seeds.placed] == [a]
    assert preview(hands) is None
    hands.press("escape")
    assert not hands.proofreader.seeds
    assert not hands.project.session.history
    assert "CUTTING" not in hands.step.strip.text()


@pytest.mark.slow
def test_g_goes_round_the_groups_in_use(hands):
    _, (a, b) = far_apart(hands)
    seeds = hands.proofreader.seeds
    hands.click(a, "ctrl")
    groups = []
    for _ in range(3):
        hands.press("G")
        groups.append(seeds.group)
    assert groups == [1, 0, 1]
    hands.click(b, "ctrl")
    groups = []
    for _ in range(3):
        hands.press("G")
        groups.append(seeds.group)
    assert groups == [2, 0, 1]


def ends_of_the_largest(hands):
    """Return two pixels of the largest superpixel of the largest segment, far from each other."""
    superpixels = hands.superpixels_of(hands.largest()[0])
    one = int(superpixels[np.argmax(hands.project.graph.sizes[superpixels])])
    inside = np.argwhere(hands.project.graph.superpixels.image == one)
    return tuple(tuple(int(i) for i in inside[k]) for k in (0, -1))


@pytest.mark.parametrize(
    "method", ["min_cut", *(pytest.param(m, marks=pytest.mark.slow) for m in ("seeded", "tree"))]
)
def test_two_seeds_in_one_superpixel_divide_it_where_the_preview_says(hands, method):
    name = hands.largest()[0]
    a, b = ends_of_the_largest(hands)
    at = hands.step.cut.method.findData(method)
    hands.step.cut.method.setCurrentIndex(at)
    hands.step.cut.method.activated.emit(at)
    n = hands.project.graph.n_regions
    hands.click(a, "ctrl")
    hands.press("G")
    hands.click(b, "ctrl")
    assert "divided" in hands.step.cut.message.text()
    shown = preview(hands).copy()
    segment = np.asarray(hands.scene.segmentation.data) == name
    np.testing.assert_array_equal(shown > 0, segment)
    assert (shown[a], shown[b]) == (1, 2)
    assert len(np.unique(shown[segment])) == 2
    sizes = [f"{int((shown == part).sum()):,}" for part in (1, 2)]
    assert all(words in hands.step.cut.message.text() for words in ("2 parts", " + ".join(sizes)))
    assert hands.project.graph.n_regions == hands.project.session.graph.n_regions == n
    assert not hands.project.session.history, "a preview changes nothing"
    hands.press("enter")
    assert hands.project.graph.n_regions > n
    made = np.asarray(hands.scene.segmentation.data)
    for part in (1, 2):
        (label,) = np.unique(made[shown == part])
        assert (made == label).sum() == (shown == part).sum(), "exactly these pixels"
    assert preview(hands) is None
    hands.press("undo")
    assert hands.project.graph.n_regions == n
    made = np.asarray(hands.scene.segmentation.data)
    assert made[a] == made[b]
    # Again, on an image that was divided and is whole again; and then between superpixels.
    hands.click(a, "ctrl")
    hands.press("G")
    hands.click(b, "ctrl")
    np.testing.assert_array_equal(preview(hands), shown)
    hands.press("escape")
    _, (a, b) = far_apart(hands)
    hands.click(a, "ctrl")
    hands.press("G")
    hands.click(b, "ctrl")
    image = hands.project.graph.superpixels.image
    assert all(len(np.unique(preview(hands)[image == k])) == 1 for k in np.unique(image[segment]))


@pytest.mark.slow
def test_a_preview_has_the_colours_of_the_seeds_also_if_a_group_is_left_out(hands):
    a, b = ends_of_the_largest(hands)
    hands.click(a, "ctrl")
    QTest.mouseClick(hands.step.cut.swatches[3], Qt.MouseButton.LeftButton)
    hands.click(b, "ctrl")
    shown = preview(hands)
    assert (shown[a], shown[b]) == (1, 4)
    assert set(np.unique(shown)) == {0, 1, 4}


@pytest.mark.slow
def test_a_cut_that_cannot_be_made_says_why(hands):
    _, (a, b) = far_apart(hands)
    hands.click(a, "ctrl")
    hands.press("enter")
    assert "two groups" in hands.step.message.text()
    hands.press("G")
    hands.click(b, "ctrl")
    # The segment is gone from under the seeds: they are in two now.
    session = hands.project.session
    segment = hands.id_at(a)
    hands.proofreader.commands.cut(
        hands.name_at(a),
        [[session.segments.superpixel_at(a)], [session.segments.superpixel_at(b)]],
        "tree",
        lambda: None,
        points=False,
    )
    hands.settle()
    assert hands.id_at(a) != hands.id_at(b), "test invalid"
    assert "several segments" in hands.step.cut.message.text()
    assert not hands.step.cut.commit.isEnabled()
    assert preview(hands) is None
    hands.press("undo")
    assert hands.id_at(a) == hands.id_at(b) == segment
    assert preview(hands) is not None


@pytest.mark.slow
def test_the_layer_of_seeds_may_be_deleted(hands):
    _, (a, b) = far_apart(hands)
    hands.click(a, "ctrl")
    hands.viewer.layers.remove(hands.proofreader.seeds.layer)
    draw()
    hands.press("G")
    hands.click(b, "ctrl")
    assert len(hands.proofreader.seeds.layer.data) == 2
    hands.viewer.layers.remove(hands.scene.layer("Cut preview"))
    hands.press("enter")
    assert hands.id_at(a) != hands.id_at(b)


def test_buttons_and_refusals_of_a_cut(hands):
    """Cuts by buttons and cuts that cannot be, in one window."""
    # The buttons do what the keys do.
    _, (a, b) = far_apart(hands)
    left = Qt.MouseButton.LeftButton
    hands.click(a, "ctrl")
    QTest.mouseClick(hands.step.cut.swatches[1], left)
    hands.click(b, "ctrl")
    QTest.mouseClick(hands.step.cut.commit, left)
    hands.settle()
    assert hands.id_at(a) != hands.id_at(b)
    hands.click(a)
    n = hands.project.n_segments
    QTest.mouseClick(hands.step.details.children_, left)
    hands.settle()
    assert hands.project.n_segments == n + 1
    assert len(hands.project.session.history) == 2

    # A seed in another segment is refused.
    hands.press("undo")
    hands.press("undo")
    _, (a, _) = far_apart(hands)
    other = hands.pixel_of(hands.superpixels_of(hands.largest(2)[1])[0])
    hands.click(a, "ctrl")
    hands.click(other, "ctrl")
    assert len(hands.proofreader.seeds.placed) == 1
    assert "not in" in hands.step.message.text()

    # A locked segment has no preview but a reason.
    hands.press("escape")
    assert not hands.proofreader.seeds
    _, (a, b) = far_apart(hands)
    hands.click(a)
    hands.press("H")
    hands.click(a, "ctrl")
    hands.press("G")
    hands.click(b, "ctrl")
    assert "locked" in hands.step.cut.message.text()
    assert not hands.step.cut.commit.isEnabled()


def test_a_method_of_another_package_is_in_the_list_and_cuts(hands, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "example_package")
    from agglo_example.cuts import cut_to_nearest

    monkeypatch.setitem(cut_methods._values, cut_to_nearest.name, cut_to_nearest)
    panel = CutPanel(hands.proofreader)
    assert panel.method.findData("nearest") >= 0
    panel.method.setCurrentIndex(panel.method.findData("nearest"))
    panel.method.activated.emit(panel.method.currentIndex())
    name, (a, b) = far_apart(hands)
    superpixels = hands.superpixels_of(name)
    hands.click(a, "ctrl")
    panel.swatches[1].click()
    hands.click(b, "ctrl")
    assert panel.commit.isEnabled()
    panel.commit.click()
    hands.settle()
    (item,) = hands.project.session.history
    assert item.words.startswith("cut ")
    ids = [hands.id_at(hands.pixel_of(k)) for k in superpixels]
    assert {hands.id_at(a), hands.id_at(b)} == set(ids)
    assert hands.id_at(a) != hands.id_at(b)
    panel.close()
