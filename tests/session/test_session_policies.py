"""Policies of other packages in sessions: what a folder could not give back is refused at once."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refuses

from napari_agglo import InvalidInput, Session, region_graph
from napari_agglo.errors import DataWarning
from napari_agglo.policy import policies


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
    with pytest.raises(InvalidInput) as refusal:
        Session.open(tmp_path / "a.agglo", policy=Power(1.0))
    assert refusal.value.argument == "policy"
