"""Functions of Python as policies and as features: the same merges as the compiled ones."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput, MeanPolicy, Session, agglomerate, region_graph, train
from napari_agglo.errors import DataWarning, SetOption
from napari_agglo.features import FeatureBlock, FeatureMap, feature_blocks, feature_matrix
from napari_agglo.policy import (
    CallablePolicy,
    LearnedPolicy,
    NamedFunction,
    as_policy,
    load_policy,
    policies,
)
from napari_agglo.session import NotSaved


def mean(graph):
    """Score by the mean of the boundary cue."""
    return graph.boundary_mean("boundary")


@pytest.fixture(scope="module")
def graph():
    rng = np.random.default_rng(3)
    labels = np.arange(1, 37).reshape(6, 6).repeat(3, 0).repeat(3, 1)
    return region_graph(labels, {"boundary": rng.random(labels.shape).astype("f4")}, bins=4)


@pytest.fixture(scope="module")
def gold(graph):
    return (graph.superpixels.image > 18) + 1


def assert_same(tree, other):
    for name in ("winners", "losers", "priorities"):
        assert np.array_equal(getattr(tree, name), getattr(other, name))


def test_a_function_merges_as_the_policy_that_it_repeats(graph, gold):
    learned = train(graph, gold, strategy="flat", preset="minimal")
    assert_same(agglomerate(graph, mean), agglomerate(graph, "mean"))
    assert_same(agglomerate(graph, learned.score), agglomerate(graph, learned))
    for options in ({"locked": [4]}, {"cannot_link": [(1, 36), (5, 6)]}):
        assert_same(agglomerate(graph, mean, **options), agglomerate(graph, "mean", **options))


def test_a_function_sees_statistics_of_regions_that_have_merged(graph):
    seen = []

    def largest(part):
        seen.append(part)
        assert part.n_regions == 2 * part.n_boundaries
        sizes = part.sizes[part.edges]
        assert (part.regions[1:, part.layout.border].min(axis=1) >= 0).all()
        assert len(part.boundary_table()) == part.n_boundaries
        return 1 / sizes.sum(axis=1)

    tree = agglomerate(graph, largest)
    assert tree.n_merges == 35
    assert max(part.sizes.max() for part in seen) > graph.sizes.max()


@pytest.mark.parametrize(
    "function",
    [
        lambda graph: np.zeros(graph.n_boundaries + 1),
        lambda graph: np.full(graph.n_boundaries, np.nan),
        lambda graph: np.full(graph.n_boundaries, np.inf),
        lambda graph: "low",
        lambda graph: None,
        "no_such_module:function",
        "math:no_such_function",
        "__main__:<lambda>",
        3,
    ],
)
def test_unusable_functions_are_refused(graph, function):
    with pytest.raises(InvalidInput) as refusal:
        agglomerate(graph, function)
    assert refusal.value.argument == "policy"
    assert refusal.value.remedy is not None
    assert_same(agglomerate(graph, mean), agglomerate(graph, "mean"))  # nothing stays behind


def test_an_error_in_a_function_comes_through(graph):
    calls = []

    def fail(part):
        calls.append(part)
        if len(calls) > 3:
            raise ZeroDivisionError("mine")
        return np.zeros(part.n_boundaries)

    with pytest.raises(ZeroDivisionError, match="mine") as raised:
        agglomerate(graph, fail)
    assert [note for note in raised.value.__notes__ if "raised by the policy" in note] != []
    assert len(raised.value.__notes__) == 1
    assert len(calls) == 4, "not called again after it failed"


def test_a_session_proofreads_by_a_function_and_imports_none(graph, tmp_path):
    path, twin = tmp_path / "a.agglo", tmp_path / "b.agglo"
    with Session.create(path, graph, mean) as one, Session.create(twin, graph) as other:
        for session in (one, other):
            session.threshold = 0.45
            row = session.labels()[0]
            far = int(np.flatnonzero(row != row[0])[0])
            session.merge(int(row[0]), int(row[far]))
            session.lock(int(np.unique(session.labels())[1]))
            session.threshold = 0.55
        assert np.array_equal(one.labels(), other.labels())
        assert_same(one.tree, other.tree)
    words = json.loads((path / "manifest.json").read_text())
    assert f"{__name__}:mean" in json.dumps(words)
    kept = sys.modules.pop(__name__, None)
    try:
        with pytest.warns(DataWarning, match="read-only") as told:
            session = Session.open(path)
        assert __name__ not in sys.modules
    finally:
        if kept is not None:
            sys.modules[__name__] = kept
    needed = SetOption("policy", f"{__name__}:mean")
    assert told[0].message.remedy == needed
    with session, Session.open(twin) as other:
        assert session.history.needed_function == needed.value
        assert np.array_equal(session.labels(), other.labels())
        with refuses("path", needed, kind=NotSaved):
            session.undo()
    with Session.open(path, policy=mean) as session, Session.open(twin) as other:
        assert np.array_equal(session.labels(), other.labels())
        session.undo()
    for wrong in ("mean", lambda part: mean(part)):
        with pytest.raises(InvalidInput) as refusal:
            Session.open(path, policy=wrong)
        assert refusal.value.argument == "policy"
    with pytest.raises(InvalidInput) as refusal:
        Session.open(twin, policy=mean)
    assert refusal.value.argument == "policy"
    assert not Session.recover(path).unmended


def test_a_function_that_has_changed_is_noticed(graph, tmp_path):
    def scores(part):
        return mean(part) * factor

    factor = 1.0
    scores.__qualname__ = "scores"  # as of a module
    Session.create(tmp_path / "a.agglo", graph, scores).close()
    factor = 0.5
    with refuses("policy", "restore the code", facts=("scores", "merge of")):
        Session.open(tmp_path / "a.agglo", policy=scores)


def test_a_function_that_cannot_be_imported_again_is_warned_of(graph, tmp_path):
    path = tmp_path / "a.agglo"
    with pytest.warns(DataWarning, match="<lambda>") as told:
        session = Session.create(path, graph, lambda part: mean(part))
    assert told[0].message.remedy is not None
    with session:
        assert not session.read_only
        segment = int(session.labels().max())
        members = session.segments.members(segment)
        session.cut(segment, [members[:1], members[-1:]], "tree")
        labels = session.labels()
    with pytest.warns(DataWarning, match="read-only") as told:
        session = Session.open(path)
    with session:  # the snapshot stands for the cut
        assert np.array_equal(session.labels(), labels)
        assert session.history.needed_function is None  # none that has a name
    assert "as `policy`" in str(told[0].message)
    with Session.open(path, policy=lambda part: mean(part)) as session:
        session.undo()


def make_policy(power=1.0):
    return MeanPolicy()


def test_a_function_that_makes_a_policy_is_refused(graph):
    for function in (make_policy, lambda: MeanPolicy()):
        with refuses("policy", "MODULE:NAME"):
            agglomerate(graph, function)


def test_names_of_policies():
    assert policies.names()[:3] == ("mean", "oriented mean", "random")
    for name in policies.names():
        policy = as_policy(name)
        assert policy.name == name
        assert policies[name].from_json(policy.to_json()) == policy
    assert as_policy(MeanPolicy) == MeanPolicy()
    assert as_policy(mean) == CallablePolicy(mean)
    assert agglo.RandomPolicy(3).to_json() == {"kind": "random", "seed": 3}


def test_a_feature_block_is_learned_from_and_stored_by_name(graph, gold, tmp_path, monkeypatch):
    def compute(part):
        size = part.sizes[part.edges]
        return np.stack([np.log2(size.max(axis=1)), part.contact_area()], axis=1)

    if "own" not in feature_blocks:
        feature_blocks.register("own", FeatureBlock("own", ("log_larger", "area"), compute))
    features = FeatureMap("minimal+own", ("boundary",), 4)
    plain = FeatureMap("minimal", ("boundary",), 4)
    rows, without = feature_matrix(graph, features), feature_matrix(graph, plain)
    assert features.names[-2:] == ("own/log_larger", "own/area")
    assert np.array_equal(rows[:, :-2], without)
    assert np.array_equal(rows[:, -2:], compute(graph).astype("f4"))
    policy = train(graph, gold, epochs=1, preset="minimal+own", classifier="logistic")
    tree = agglomerate(graph, policy)
    assert_same(tree, agglomerate(graph, policy.score))
    path = policy.save(tmp_path / "p.npz")
    assert b"minimal+own" in np.load(path)["header"].tobytes()
    assert_same(agglomerate(graph, load_policy(path)), tree)
    with Session.create(tmp_path / "a.agglo", graph, policy) as session:
        session.threshold = 0.5
        assert session.labels().shape == gold.shape
        session.cut_children(int(session.segments.ids()[0]))
        session.relearn([(graph, gold)])
        assert session.policy.features == features
        n_entries = len(session.history)
    with pytest.raises(InvalidInput) as refusal:
        train(graph, gold, preset="minimal+no_such_block")
    assert refusal.value.remedy is not None
    monkeypatch.delitem(feature_blocks._values, "own")  # as if its package were not installed
    with refuses("path", "install the package that has it"):
        load_policy(path)
    with pytest.warns(DataWarning, match="its features own are of a package"):
        session = Session.open(tmp_path / "a.agglo")
    with session:
        assert session.read_only
        assert session.labels().shape == gold.shape
        with refuses("path", "install the package that has it", kind=NotSaved):
            session.undo()
    assert "install the package that has it" in str(Session.recover(tmp_path / "a.agglo"))
    monkeypatch.undo()
    with Session.open(tmp_path / "a.agglo") as session:
        assert len(session.history) == n_entries, "recover cuts no entry off that needs the package"


def test_a_feature_block_of_wrong_shape_is_refused(graph):
    if "bad" not in feature_blocks:
        feature_blocks.register("bad", FeatureBlock("bad", ("one",), lambda part: np.zeros(7)))
    with pytest.raises(InvalidInput) as refusal:
        feature_matrix(graph, FeatureMap("minimal+bad", ("boundary",), 4))
    assert refusal.value.argument == "preset"
    assert isinstance(as_policy("mean"), MeanPolicy)
    assert not isinstance(as_policy("mean"), LearnedPolicy)


@pytest.mark.parametrize(
    "function",
    [
        lambda part: part.boxes[part.edges[:, 0], 0, 0] * 1.0,
        lambda part: mean(part) * part.superpixels.image.max(),
        lambda part: mean(part) + part.cues.mean(),
        lambda part: mean(part) + np.asarray(part.boxes).sum(),
    ],
)
def test_values_missing_from_a_part_of_a_graph_are_an_error(graph, function, tmp_path):
    with refuses("policy", "read the statistics", facts=("parts of a graph",)):
        agglomerate(graph, function)
    with refuses("policy", "read the statistics", facts=("parts of a graph",)):
        Session.create(tmp_path / "a.agglo", graph, function, tree=agglomerate(graph))


def test_a_function_that_is_not_local_is_warned_of(graph):
    with pytest.warns(DataWarning, match="not local") as told:
        agglomerate(graph, lambda part: mean(part) / mean(part).max())
    assert told[0].message.argument == "policy"
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    ("compute", "problem"),
    [
        (lambda part: mean(part) / mean(part).max(), "not local"),
        (lambda part: part.region_mean()[part.edges[:, 0]], "comes first"),
        (lambda part: np.ones(part.n_boundaries), "same number"),
    ],
)
def test_a_doubtful_feature_block_is_warned_of(graph, gold, monkeypatch, compute, problem):
    block = FeatureBlock("doubtful", ("one",), compute)
    monkeypatch.setitem(feature_blocks._values, "doubtful", block)
    with pytest.warns(DataWarning, match=problem) as told:
        train(graph, gold, strategy="flat", preset="minimal+doubtful", classifier="logistic")
    assert "'doubtful'" in str(told[0].message)


def test_errors_of_a_feature_block_name_it(graph, monkeypatch):
    def fail(part):
        raise KeyError("mine")

    for compute in (fail, lambda part: np.full(part.n_boundaries, np.nan)):
        block = FeatureBlock("wrong", ("one",), compute)
        monkeypatch.setitem(feature_blocks._values, "wrong", block)
        with pytest.raises((KeyError, InvalidInput)) as raised:
            feature_matrix(graph, FeatureMap("minimal+wrong", ("boundary",), 4))
        assert "'wrong'" in f"{raised.value} {getattr(raised.value, '__notes__', '')}"


def test_a_feature_block_is_called_for_many_boundaries_at_once(graph, gold, monkeypatch):
    calls = []

    def compute(part):
        calls.append(part.n_boundaries)
        return part.contact_area()

    monkeypatch.setitem(feature_blocks._values, "few", FeatureBlock("few", ("area",), compute))
    features = FeatureMap("minimal+few", ("boundary",), 4)
    feature_matrix(graph, features)
    assert calls == [graph.n_boundaries]
    policy = train(graph, gold, strategy="flat", preset="minimal+few", classifier="logistic")
    calls.clear()
    tree = agglomerate(graph, policy)
    assert len(calls) < tree.n_merges + 20
    assert_same(tree, agglomerate(graph, policy.score))


class Lacking:
    name = "lacking"

    def score(self, graph):
        return mean(graph)


def test_members_that_a_policy_lacks_are_named(graph):
    for policy in (Lacking, Lacking()):
        members = ("probabilistic", "check", "to_json")
        with refuses("policy", "write the missing members", facts=members):
            agglomerate(graph, policy)


def test_a_class_that_needs_an_argument_is_refused_by_name(graph):
    class Needy(Lacking):
        def __init__(self, power):
            self.power = power

    with refuses("policy", "pass a policy made with its arguments", facts=("'lacking'",)):
        agglomerate(graph, Needy)


def test_a_name_of_a_function_is_explained(graph, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "bad_syntax.py").write_text("def f(graph)\n    return 1\n")
    for name, remedy, fact in (
        ("bad_syntax:f", "fix the module bad_syntax", "SyntaxError"),
        ("plain.py:f", "leave out .py: plain:f", "'plain'"),
        ("math:pi", "name a function", "3.14"),
    ):
        with refuses("policy", remedy, facts=(fact,)):
            agglomerate(graph, name)


def test_a_block_alone_is_no_preset(graph, monkeypatch):
    block = FeatureBlock("lone", ("area",), lambda part: part.contact_area())
    monkeypatch.setitem(feature_blocks._values, "lone", block)
    with pytest.raises(InvalidInput) as refusal:
        FeatureMap("lone", ("boundary",), 4)
    assert refusal.value.remedy == SetOption("preset", "shape+lone")


def test_a_named_function_is_shown_by_its_name():
    assert repr(NamedFunction("area", mean)) == "NamedFunction('area')"


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_of_a_preset_and_blocks_is_refused_with_one_text(kind, monkeypatch):
    block = FeatureBlock("sizes", ("ratio",), lambda part: part.contact_area())
    monkeypatch.setitem(feature_blocks._values, "sizes", block)
    for words in (["minimal", "sizes"], ["sizes", "minimal"]):
        with refuses("preset", SetOption("preset", "minimal+sizes")):
            FeatureMap(kind(words), ("boundary",), 25)
    for other in ("no such block", "em"):  # of two presets only one can be used
        with refuses("preset", SetOption("preset", "shape")):
            FeatureMap(kind(["minimal", other]), ("boundary",), 25)
