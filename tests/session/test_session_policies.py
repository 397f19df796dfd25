"""Policies of other packages in sessions: what a folder could not give back is refused at once."""

from __future__ import annotations

from contextlib import nullcontext
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from refusals import refuses

from napari_agglo import MeanPolicy, Session, agglomerate, load_policy, region_graph, train
from napari_agglo.cli import main
from napari_agglo.errors import DataWarning
from napari_agglo.features import FeatureBlock, feature_blocks
from napari_agglo.policy import RandomPolicy, policies
from napari_agglo.session import NotSaved


class Power:
    """A policy with a parameter."""

    name = "power"
    probabilistic = False

    def __init__(self, power=1.0):
        self.power = power

    def check(self, graph):
        graph.cue_index("boundary")

    def score(self, graph):
        return graph.boundary_mean("boundary") ** self.power

    def kernel(self, graph):
        return None

    def to_json(self):
        return {"kind": self.name, "power": self.power}

    @classmethod
    def from_json(cls, words):
        return cls(words["power"])


@pytest.fixture
def graph():
    labels = np.arange(1, 26).reshape(5, 5).repeat(3, 0).repeat(3, 1)
    return region_graph(labels, np.random.default_rng(3).random(labels.shape))


@pytest.fixture
def known(monkeypatch):
    """Register a class for the time of a test, as an entry point would, of a package."""

    def register(kind):
        monkeypatch.setitem(policies._values, kind.name, kind)
        monkeypatch.setattr(policies, "package_of", lambda name: "agglo-power")
        return kind

    return register


def variant(**members):
    return type("Variant", (Power,), members)


@pytest.mark.parametrize(
    ("members", "power", "remedy"),
    [
        ({"to_json": lambda self: {"kind": "power", "power": 1.0}}, 3.0, "return all"),
        ({"to_json": lambda self: {"kind": "power", "power": np.float32(3)}}, 3.0, "float(value)"),
        ({"to_json": lambda self: {"power": self.power}}, 3.0, "as its kind"),
        ({"to_json": lambda self: {"kind": "power"}}, 3.0, "let from_json take"),
    ],
)
def test_a_policy_that_is_not_made_again_is_refused(graph, known, tmp_path, members, power, remedy):
    kind = known(variant(**members))
    with refuses("policy", remedy, facts=("'power'",)):
        Session.create(tmp_path / "a.agglo", graph, kind(power))
    assert not (tmp_path / "a.agglo").exists()


def shares(self, graph):
    return graph.boundary_mean("boundary") / graph.boundary_mean("boundary").max()


@pytest.mark.parametrize(
    ("members", "remedy", "fact"),
    [
        (
            {"kernel": lambda self, graph: MeanPolicy().kernel(graph)},
            "kernel return None",
            "kernel",
        ),
        ({"kernel": lambda self, graph: RandomPolicy(1).kernel(graph)}, "kernel return", "kernel"),
        ({"score": shares}, "two regions", "alone"),
        (
            {"bounded": True, "score": lambda self, graph: 300 * graph.contact_area()},
            "1",
            "bounded",
        ),
    ],
)
def test_a_policy_whose_merges_it_would_not_score_alike_is_refused(
    graph, known, tmp_path, members, remedy, fact
):
    for kind in (variant(**members), known(variant(**members))):
        with refuses("policy", remedy, facts=("'power'", fact)):
            Session.create(tmp_path / "a.agglo", graph, kind(2.0))
        assert not (tmp_path / "a.agglo").exists()


def test_a_kernel_with_the_scores_of_the_policy_is_stored(graph, known, tmp_path):
    kind = known(variant(kernel=lambda self, graph: MeanPolicy().kernel(graph)))
    Session.create(tmp_path / "a.agglo", graph, kind(1.0)).close()
    with Session.open(tmp_path / "a.agglo") as session:
        assert not session.read_only


def test_scores_outside_of_the_promised_range_are_refused(graph):
    for members in ({"bounded": True}, {"probabilistic": True}):
        for factor in (3, -1):
            score = lambda self, graph, factor=factor: factor * Power.score(self, graph)  # noqa: E731
            with refuses("policy", "0 to 1"):
                agglomerate(graph, variant(score=score, **members)())
        inside = variant(score=lambda self, graph: np.ones(graph.n_boundaries), **members)()
        assert agglomerate(graph, inside).n_merges == 24


@pytest.mark.parametrize(
    ("returned", "fact"),
    [(lambda: np.zeros(0), "shape (0,)"), (lambda: None, "None"), (lambda: 1j, "complex")],
)
def test_faults_at_opening_have_the_words_of_a_merge(
    graph, known, tmp_path, monkeypatch, returned, fact
):
    kind = known(variant())
    Session.create(tmp_path / "a.agglo", graph, kind(3.0)).close()
    monkeypatch.setattr(kind, "score", lambda self, graph: returned())
    with pytest.warns(DataWarning, match="must return a finite number") as told:
        Session.open(tmp_path / "a.agglo").close()
    assert fact in str(told[0].message)
    with refuses("policy", facts=(fact,)):
        agglomerate(graph, kind(3.0))


def test_an_error_of_a_feature_block_at_opening_names_the_block(graph, tmp_path, monkeypatch):
    path, gold = tmp_path / "a.agglo", (graph.superpixels.image > 12) + 1
    block = FeatureBlock("sizes", ("ratio",), lambda part: part.contact_area())
    monkeypatch.setitem(feature_blocks._values, "sizes", block)
    policy = train(graph, gold, strategy="flat", preset="minimal+sizes")
    monkeypatch.setattr(feature_blocks, "package_of", lambda name: "agglo-sizes")
    Session.create(path, graph, policy).close()
    failing = FeatureBlock("sizes", ("ratio",), lambda part: 1 / 0)
    monkeypatch.setitem(feature_blocks._values, "sizes", failing)
    with pytest.warns(DataWarning, match="raised by the feature block 'sizes'") as told:
        Session.open(path).close()
    assert "'learned' of the package" not in str(told[0].message)
    assert "agglo-sizes" in str(told[0].message)


def test_a_class_whose_code_has_changed_opens_read_only(graph, known, tmp_path, monkeypatch):
    kind = known(variant())
    with Session.create(tmp_path / "a.agglo", graph, kind(3.0)) as session:
        session.threshold = float(session.history.unedited_tree.thresholds()[10])
        labels = session.labels()
    with Session.open(tmp_path / "a.agglo") as session:
        assert not session.read_only
        assert session.policy.power == 3.0
    for changed in (lambda self, graph: 1 - Power.score(self, graph), lambda self, graph: 1 / 0):
        monkeypatch.setattr(kind, "score", changed)
        with pytest.warns(DataWarning, match="read-only") as told:
            session = Session.open(tmp_path / "a.agglo")
        assert "agglo-power" in str(told[0].message)
        assert told[0].message.remedy is not None
        with session:
            assert session.read_only
            assert np.array_equal(session.labels(), labels)
    monkeypatch.setattr(kind, "score", Power.score)
    with Session.open(tmp_path / "a.agglo") as session:
        assert not session.read_only


def test_a_class_that_no_entry_point_names_is_passed_again(graph, tmp_path):
    Session.create(tmp_path / "a.agglo", graph, Power(2.0)).close()
    with Session.open(tmp_path / "a.agglo", policy=Power(2.0)) as session:
        assert not session.read_only
        assert session.history.policy_to_pass is session.policy
    with pytest.warns(DataWarning, match="read-only"):
        session = Session.open(tmp_path / "a.agglo")
    with session:
        assert session.history.policy_to_pass is None, "its code is not there"
    with refuses("policy", "pass power(power=2.0)", facts=("power=1.0 instead of 2.0",)):
        Session.open(tmp_path / "a.agglo", policy=Power(1.0))
    failing = variant(score=lambda self, graph: 1 / 0)(2.0)
    with pytest.raises(ZeroDivisionError) as raised:
        Session.open(tmp_path / "a.agglo", policy=failing)
    assert raised.value.__notes__ == ["raised by the policy 'power'"]
    with pytest.warns(DataWarning, match="read-only") as told:
        session = Session.open(tmp_path / "a.agglo")
    assert "as `policy`" in str(told[0].message)
    assert "power(power=2.0): not available" in repr(session.policy)
    session.close()


def test_a_class_of_the_same_version_says_that_its_code_differs(
    graph, known, tmp_path, monkeypatch
):
    kind = known(variant())
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.1")
    Session.create(tmp_path / "a.agglo", graph, kind(3.0)).close()
    monkeypatch.setattr(kind, "score", lambda self, graph: 1 - Power.score(self, graph))
    with pytest.warns(DataWarning, match="read-only") as told:
        Session.open(tmp_path / "a.agglo").close()
    words = str(told[0].message)
    assert "`tree`" not in words
    assert "install version" not in words
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.2")
    with pytest.warns(DataWarning, match="install version 0.1 of agglo-power"):
        Session.open(tmp_path / "a.agglo").close()


@pytest.fixture
def broken(monkeypatch):
    """Make the entry point of a name fail when it is loaded, as a module with an error does."""

    def break_(registry, name):
        monkeypatch.delitem(registry._values, name)
        entry = EntryPoint(name, "no_such_module_of_tests:Power", registry.group)
        monkeypatch.setattr(registry, "_pending", {name: entry})

    return break_


@pytest.mark.parametrize("read_only", [False, True])
def test_a_broken_package_leaves_the_session_to_be_read(graph, known, broken, tmp_path, read_only):
    path = tmp_path / "a.agglo"
    kind = known(variant())
    with Session.create(path, graph, kind(3.0)) as session:
        session.threshold = float(session.history.unedited_tree.thresholds()[10])
        labels = session.labels()
    broken(policies, "power")
    expected = nullcontext() if read_only else pytest.warns(DataWarning, match="no_such_module")
    with expected, Session.open(path, read_only=read_only) as session:
        assert np.array_equal(session.labels(), labels)
        with refuses("path", facts=("no_such_module_of_tests",), kind=NotSaved):
            session.undo()
        assert "no_such_module_of_tests" in repr(session.policy)
    report = Session.recover(path)
    assert not report.unmended
    assert "no_such_module_of_tests" in str(report)
    assert main(["segment", str(path), "-o", str(tmp_path / "l.npy"), "-q"]) == 0


def test_a_broken_or_changed_feature_is_named(graph, broken, tmp_path, monkeypatch):
    path, gold = tmp_path / "a.agglo", (graph.superpixels.image > 12) + 1
    block = FeatureBlock("sizes", ("ratio",), lambda part: part.contact_area())
    monkeypatch.setitem(feature_blocks._values, "sizes", block)
    policy = train(graph, gold, strategy="flat", preset="minimal+sizes")
    file = policy.save(tmp_path / "p.npz")
    Session.create(path, graph, policy).close()
    renamed = FeatureBlock("sizes", ("share",), lambda part: part.contact_area())
    monkeypatch.setitem(feature_blocks._values, "sizes", renamed)
    monkeypatch.setattr(feature_blocks, "package_of", lambda name: "agglo-sizes")
    facts = ("'sizes'", "agglo-sizes", "ratio", "share")
    with refuses("path", "train the policy again", facts=facts):
        load_policy(file)
    with pytest.warns(DataWarning, match="agglo-sizes"):
        Session.open(path).close()
    broken(feature_blocks, "sizes")
    with refuses("path", facts=("no_such_module_of_tests",)):
        load_policy(file)
    with pytest.warns(DataWarning, match="no_such_module_of_tests"):
        Session.open(path).close()
