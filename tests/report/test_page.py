"""The page: whole, self-contained, safe against any name, right where there is little to show."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import Cancelled, InvalidInput
from napari_agglo.errors import SetOption
from napari_agglo.evaluate import human_agreement, metrics, minimum
from napari_agglo.report import examine, html_report
from napari_agglo.report._page import Page, Row, summary_table
from napari_agglo.volumes import DenseLabels, DiskLabels

VOID = {"meta", "br", "link", "img", "input", "hr"}
RECORD = {
    "strategy": "agglo", "epochs": 3, "examples": 40, "accuracy": 0.9, "held_out": True,
    "calibration": [[0.1, 0.2, 30], [0.9, 0.9, 10]], "importances": {"boundary/<b>": 0.5},
}  # fmt: skip


class Reader(HTMLParser):
    """Read a page; every element must be closed where it should be."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.ids, self.words = [], [], [], [], []
        self.rows, self.bad = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.bad.append(tag)

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if self.open and self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def read(page):
    """Read a page and hold it to what every page must keep."""
    reader = Reader(page)
    assert reader.bad == []
    assert reader.open == []
    assert not {"script", "iframe", "link", "object", "embed", "base", "form"} & set(reader.tags)
    for tag, name, value in reader.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("src", "href", "xlink:href", "action", "srcset", "poster"):
            assert value.startswith(("#", "data:image/png;base64,")), (tag, name, value[:80])
            if value.startswith("#"):
                assert value[1:] in reader.ids
        for used in re.findall(r"url\(([^)]*)\)", value):
            assert used.startswith("#")
            assert used[1:] in reader.ids
    assert len(reader.ids) == len(set(reader.ids)), "an id may come once"
    assert not re.search(r"https?://|//[a-z]+\.|@import", page)
    return reader


def tree_of(superpixels, boundary):
    return agglo.agglomerate(agglo.region_graph(superpixels, boundary), "mean")


def rooms(*shape):
    """Blocks of 2 in every direction, and gold of two halves along the last axis."""
    index = np.indices(shape) // 2
    superpixels = np.ravel_multi_index(index, [-(-n // 2) for n in shape]) + 1
    gold = np.where(np.indices(shape)[-1] < shape[-1] // 2, 7, 8)
    rng = np.random.default_rng(0)
    return superpixels, gold, rng.random(shape).astype(np.float32)


@pytest.fixture(scope="module")
def two():
    """Two policies on one image, both with errors."""
    superpixels, gold, noise = rooms(16, 20)
    wall = np.abs(np.indices(gold.shape)[-1] - 9.5) < 1
    good = np.clip(0.3 * noise + 0.7 * wall, 0, 1)
    good[:4] = 0.2
    found = [
        examine(tree_of(superpixels, cue), gold, policy=name, image="i.tif", backdrop=noise)
        for name, cue in (("noisy", noise), ("good", good))
    ]
    return found, gold, superpixels


def whole(found):
    """Make a page with everything on it. Its plots take a second: tests share it."""
    best = {"i.tif": {"vi": 0.25, "false_merge": 0.125, "false_split": 0.125}}
    return html_report(
        found, title="A title", best=best, records={"good": RECORD}, settings={"gold": "g.tif"}
    )


@pytest.fixture(scope="module")
def page(two):
    return whole(two[0])


def test_the_page_holds_everything(two, page):
    found, _, _ = two
    reader = read(page)
    for words in ("A title", "Summary", "Split VI", "VI by threshold", "Boundaries", "Breakdown",
                  "Error maps", "The worst errors", "Reliability of good",
                  "Features of good", "best possible", "Settings", "g.tif"):  # fmt: skip
        assert words in reader.text, words
    rows = {row[0]: row for row in reader.rows}
    assert rows["noisy"][1] == f"{found[0].scores['vi']:.3f}"
    assert rows["good"][1] == f"{found[1].scores['vi']:.3f}"
    assert rows["best possible (A*)"][1] == "0.250"
    assert "prefers-color-scheme: dark" in page
    assert reader.tags.count("svg") >= 8


def test_the_same_findings_give_the_same_page(two, page):
    assert whole(two[0]) == page


def test_findings_are_right(two):
    (noisy, good), gold, superpixels = two
    assert good.scores["vi"] < noisy.scores["vi"], "test invalid"
    assert noisy.scores["vi"] == pytest.approx(
        noisy.gold["contribution"].sum() + noisy.segments["contribution"].sum()
    )
    costs = [error.contribution for error in noisy.errors]
    assert costs == sorted(costs, reverse=True)
    assert 0 < len(costs) <= 10
    assert noisy.shape == gold.shape
    for error in noisy.errors:
        inside = gold[error.voxel] if error.kind == "false split" else superpixels[error.voxel]
        if error.kind == "false split":
            assert inside == error.id


def test_colours_of_plots_become_those_of_the_page(page):
    svgs = re.findall(r'<svg [^>]*class="plot">.*?</svg>', page, re.DOTALL)
    assert len(svgs) >= 4
    for svg in svgs:
        fixed = set(re.findall(r"#[0-9a-f]{6}\b", svg))
        assert fixed <= {"#000000", "#ffffff"}, fixed
        for used in re.findall(r"var\((--[\w-]+)\)", svg):
            assert f"{used}:" in page


HOSTILE = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "$\\frac{a\nb",
           "'&amp;]]>--><b>\x00\x07", "日本語" + "x" * 400]  # fmt: skip


@pytest.mark.slow
def test_any_name_is_only_a_name(two):
    from dataclasses import replace

    everything = "".join(HOSTILE)
    found = [replace(two[0][0], policy=name, image=everything) for name in HOSTILE]
    records = {
        name: RECORD | {"strategy": name, "importances": dict.fromkeys(HOSTILE, 1.0)}
        for name in HOSTILE[:2]
    }
    page = html_report(
        found,
        title=everything,
        best={everything: {"vi": 0.1, "false_merge": 0.0, "false_split": 0.1}},
        records=records,
        settings={name: name for name in HOSTILE},
    )
    reader = read(page)
    assert "img" not in reader.tags
    for name in HOSTILE:
        if name.isprintable():
            assert reader.text.count(" ".join(name.split())) > 5


def test_no_error_at_all():
    _, gold, _ = rooms(8, 8)
    perfect = np.where(gold == 7, 1, 2)
    found = examine(tree_of(perfect, np.ones(gold.shape)), gold, policy="perfect", threshold=0.5)
    assert found.scores["vi"] == 0
    assert found.errors == ()
    reader = read(html_report([found]))
    assert "perfect has no error at 0.5." in reader.text
    assert "No error: every segment is a gold segment." in reader.text
    assert "policies" not in reader.text.split("Summary")[0]


def test_one_policy_has_no_rival(two):
    assert 'class="best"' not in Page(two[0][:1], {}, None, {}).summary()
    assert 'class="best"' in Page(two[0], {}, None, {}).summary()


def test_a_policy_without_a_record_is_left_out_of_the_records(two):
    for records in ({}, {"good": {}}, {"another": RECORD}):
        assert Page(two[0], {}, None, records).policies() == ""
    message = Page(two[0], {}, None, {"good": {"strategy": "flat"}}).policies()
    assert "Reliability of good" in message  # and the plot says that there is no record of it


def test_a_record_from_a_file_cannot_break_the_page(two):
    wrong = {
        "strategy": ["agglo"], "epochs": "3", "examples": -1, "accuracy": "high",
        "calibration": [[1, 2], "abc", [0.1, float("nan"), 3]], "importances": ["a"],
    }  # fmt: skip
    page = Page(two[0], {}, None, {"good": wrong})
    assert page.records == {"good": {"calibration": []}}
    assert "Reliability of good" in page.policies()


@pytest.mark.parametrize(
    ("other", "compared"),
    [
        ({"strategy": "flat", "epochs": 0}, True),
        ({}, False),
        ({"strategy": "lash", "epochs": 1}, False),
        ({"strategy": "agglo", "epochs": "none"}, False),
    ],
)
def test_epochs_are_compared_where_they_differ(two, other, compared):
    page = Page(two[0], {}, None, {"noisy": RECORD | other, "good": RECORD})
    assert (page._epochs() is not None) == compared
    assert "VI by epoch" in page.curves() if compared else True


def images(*shapes, policy):
    found = []
    for k, shape in enumerate(shapes):
        superpixels, gold, noise = rooms(*shape)
        tree = tree_of(superpixels, noise if policy == "noisy" else noise * (gold == 7))
        found.append(examine(tree, gold, policy=policy, image=f"image {k}", boundaries=False))
    return found


def test_several_images_are_averaged():
    shapes = [(8, 8), (10, 12), (8, 16)]
    noisy, half = images(*shapes, policy="noisy"), images(*shapes, policy="half")
    reader = read(html_report([*noisy, *half]))
    mean = np.mean([one.scores["vi"] for one in noisy])
    row = next(row for row in reader.rows if row[0] == "noisy")
    assert row[1].startswith(f"{mean:.3f} ± ")
    assert "3 images" in reader.text
    assert "Image by image" in reader.text
    assert "VI of each" in reader.text
    assert "image 1" in reader.text


def test_people_have_a_row(two):
    import pandas as pd

    human = pd.DataFrame({"vi": [0.5, 0.7], "false_merge": [0.1, 0.2], "false_split": [0.4, 0.5]})
    page = Page(two[0], {}, human, {})
    row = next(row for row in Reader(page.summary()).rows if row[0] == "human against human")
    assert row[1] == "0.600", "pairs of people of one image are no samples of an error"
    assert "people against each other" in page.curves()


def test_people_of_each_image_count_once():
    import pandas as pd

    found = images((8, 8), (10, 12), policy="noisy")
    golds = [np.repeat([1, 2], 4), np.repeat([1, 1, 2, 2], 2), np.repeat([1, 2, 3, 4], 2)]
    golds.append(np.arange(1, 9))
    first, second = human_agreement(golds), human_agreement(golds[:2])
    assert second["vi"].mean() == 0 != first["vi"].mean(), "test invalid"
    human = pd.concat([first.assign(image="image 0"), second.assign(image="image 1")])
    page = Page(found, {}, human, {})
    row = next(row for row in Reader(page.summary()).rows if row[0] == "human against human")
    mean = first["vi"].mean() / 2
    assert row[1] == f"{mean:.3f} ± {mean:.3f}"
    assert len(page.pairs_of_people()) == 6 + 1, "VI is the same both ways"


@pytest.mark.parametrize("shape", [(24,), (12, 12), (6, 8, 10), (3, 4, 6, 8)])
def test_any_number_of_axes(shape):
    superpixels, gold, noise = rooms(*shape)
    found = examine(tree_of(superpixels, noise), gold, policy="p", spacing=(2.0,) * len(shape))
    page = Page([found], {}, None, {})
    reader = read(page.lead() + page.summary() + page.maps() + page.errors())
    assert " × ".join(map(str, shape)) in reader.text
    assert all(len(error.voxel) == len(shape) for error in found.errors)
    assert found.errors


def test_colour_images_lie_under_the_errors():
    superpixels, gold, noise = rooms(8, 8)
    rgb = np.stack([noise, noise, 1 - noise], axis=-1)
    tree = tree_of(superpixels, noise)
    assert examine(tree, gold, backdrop=rgb).error_map != examine(tree, gold).error_map
    with refuses("backdrop", "pass the same crop of both"):
        examine(tree, gold, backdrop=np.zeros((3, 3)))


def test_several_golds_are_averaged():
    superpixels, gold, noise = rooms(12, 12)
    other = np.where(np.indices(gold.shape)[0] < 6, 1, 2)
    tree = tree_of(superpixels, noise)
    found = examine(tree, [gold, other], threshold=0.4)
    labels = tree.segment(0.4)
    for name in ("vi", "covering", "edit_distance"):
        both = [metrics(labels, one)[name] for one in (gold, other)]
        assert found.scores[name] == pytest.approx(np.mean(both))
    at = found.curve[found.curve["threshold"] <= 0.4].iloc[-1]
    for name in ("vi", "rand", "covering"):
        assert at[name] == pytest.approx(found.scores[name]), name


def test_invalid_gold_of_a_report_is_refused():
    superpixels, gold, noise = rooms(8, 8)
    tree = tree_of(superpixels, noise)
    with refuses("gold", "pass a label image whose objects have ids"):
        examine(tree, np.zeros_like(gold))
    with refuses("gold[1]", "use the same crop of both"):
        examine(tree, [gold, gold[:4]])
    with refuses("gold", "pass one label image or more"):
        examine(tree, [])
    with refuses("plane", "leave it out", facts=("(1,)",)):
        examine(tree, gold, plane=(1,))
    with refuses("spacing", SetOption("spacing", (1.0, 1.0), when="if it is not known")):
        examine(tree, gold, spacing=(1.0,))
    volume, truth, cue = rooms(4, 4, 4)
    solid = tree_of(volume, cue)
    with refuses("plane", "leave it out", facts=("0 to 3 along axis 0", "(4,)")):
        examine(solid, truth, plane=(4,), boundaries=False)
    with pytest.raises(InvalidInput) as caught:
        html_report([])
    assert caught.value.argument == "findings"


def test_pictures_can_be_cancelled():
    superpixels, gold, noise = rooms(8, 8)
    stages = set()

    def cancel(progress):
        stages.add(progress.stage)
        if progress.stage == "pictures":
            raise Cancelled

    with pytest.raises(Cancelled):
        examine(tree_of(superpixels, noise), gold, progress=cancel)
    assert {"overlap", "places"} <= stages


def test_the_best_of_each_column_is_marked():
    rows = [
        Row("a", {"vi": [1.0, 2.0], "covering": [0.5, 0.5], "segments": [3, 3]}),
        Row("b", {"vi": [1.0, 1.0], "covering": [0.4, 0.4], "segments": [9, 9]}),
        Row("c", {"vi": [1.0, 1.0], "covering": [0.1, 0.1], "segments": [1, 1]}),
        Row("reference", {"vi": [0.1]}, reference=True),
    ]
    html = summary_table(rows)
    found = {row[0]: row for row in Reader(html).rows}
    assert found["a"][1] == "1.500 ± 0.500"
    assert found["reference"] == ["reference", "0.100", "–", "–"]
    marked = re.findall(r'<td class="best">([^ <]*)', html)
    assert marked == ["0.500", "1.000", "1.000"], "equal ones both; fewer segments are no better"


def test_a_policy_on_its_own_training_data_does_not_lead(two):
    findings = [replace(one, training=one.policy == "good") for one in two[0]]
    page = Page(findings, {}, None, {"good": {"strategy": "agglo", "epochs": 5}})
    assert page.leader == "noisy"
    lead = page.lead()
    assert "expect a larger error on other data" in lead
    assert "the least of" not in lead, "there is one policy to compare"
    assert "good, on its own training data" in page.summary()
    dotted = {name: curve.attrs["training"] for name, curve in page.mean_curves().items()}
    assert dotted == {"good, on its own training data": True, "noisy": False}
    assert not any(one.curve.attrs for one in findings), "the curves of the user stay as they are"


def test_the_lead_compares_each_policy_at_its_best_too(two):
    page = Page(two[0], {}, None, {})
    least = {one.policy: minimum(one.curve)["vi"] for one in two[0]}
    best = min(least, key=least.get)
    assert f"Each at its best threshold, <b>{best}</b> has" in page.lead()
    assert f"{least[best]:.3f} bits" in page.lead()


def test_the_leader_is_the_one_with_the_least_vi(two):
    page = Page(two[0], {}, None, {})
    assert page.leader == "good"
    assert page.ordered() == ["good", "noisy"]
    least = {one.policy: minimum(one.curve)["vi"] for one in two[0]}
    assert f"{least['good']:.3f}" in page.summary()


class Reads:
    """A volume on disk that counts the voxels that are read, and is never read by `asarray`."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.voxels = array, array.shape, array.dtype, 0

    def __getitem__(self, index):
        part = self.array[index]
        self.voxels += part.size
        return part

    def __array__(self, *_, **__):
        raise AssertionError("the volume was read whole")


def a_volume():
    """Return a tree, its gold standard, and an image to draw below."""
    rng = np.random.default_rng(0)
    superpixels = np.indices((24, 30, 32)).sum(axis=0) // 6 + 1
    tree = agglo.agglomerate(agglo.region_graph(superpixels, rng.random(superpixels.shape)))
    return tree, superpixels // 3 + 1, rng.random(superpixels.shape).astype(np.float32)


def test_volumes_on_disk_are_read_once_and_their_image_plane_by_plane():
    tree, gold, image = a_volume()
    lazy, backdrop = Reads(gold), Reads(image)
    found = examine(tree, lazy, backdrop=backdrop, threshold=0.5, worst=3)
    assert found.errors
    assert html_report([found]) == html_report(
        [examine(tree, gold, backdrop=image, threshold=0.5, worst=3)]
    )
    assert lazy.voxels == gold.size
    assert 0 < backdrop.voxels <= 4 * 30 * 32, "three errors and a map"


def test_a_volume_that_does_not_fit_is_refused_before_it_is_read(monkeypatch):
    tree, gold, image = a_volume()
    lazy, backdrop = Reads(gold), Reads(image)
    monkeypatch.setattr("napari_agglo.volumes._volume.available_memory", lambda: gold.size)
    for golds in (lazy, [gold, lazy]):
        with refuses("superpixels", "vi_curve"):
            examine(tree, golds, backdrop=backdrop)
    assert lazy.voxels == backdrop.voxels == 0
    on_disk = DenseLabels(
        DiskLabels(tree.superpixels.ids[tree.superpixels.image], tree.superpixels.ids),
        tree.superpixels.ids,
        np.dtype("u4"),
    )
    with refuses("superpixels", "vi_curve"):
        examine(replace(tree, superpixels=on_disk), gold)
    monkeypatch.setattr("napari_agglo.volumes._volume.available_memory", lambda: 10**9)
    with refuses("gold"):
        examine(tree, Reads(gold[1:]))
