"""Policy files: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import io
import json
import zipfile

import numba
import numpy as np
import pytest
from refusals import refuses
from sklearn.tree import DecisionTreeClassifier

from napari_agglo import InvalidInput
from napari_agglo.errors import SetOption
from napari_agglo.features import FeatureMap
from napari_agglo.policy import LearnedPolicy, Logistic, flatten_trees, load_policy

FEATURES = FeatureMap("minimal", ("boundary",), 25)
ANOTHER_COPY = "train the policy again or use another copy"


@pytest.fixture
def policy():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(80, FEATURES.width)).astype(np.float32)
    labels = (rows[:, 0] + rows[:, 3] > 0).astype(int)
    trees = [
        DecisionTreeClassifier(max_features=3, random_state=k).fit(rows, labels) for k in range(3)
    ]
    return LearnedPolicy(FEATURES, flatten_trees([t.tree_ for t in trees]), {"strategy": "flat"})


def rewritten(path, target, **changes):
    """Copy a policy file with some of its arrays, or its header, replaced (None drops one)."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(arrays["header"].tobytes())
    header.update(changes.pop("header", {}))
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    arrays.update(changes)
    np.savez(target, **{k: v for k, v in arrays.items() if v is not None})
    return target


def test_round_trip(policy, tmp_path):
    path = policy.save(tmp_path / "p.npz")
    again = load_policy(path)
    assert again.features == policy.features
    assert again.record == policy.record
    for name in ("roots", "nodes", "values"):
        assert np.array_equal(getattr(again.model, name), getattr(policy.model, name))
    line = LearnedPolicy(FEATURES, Logistic(np.arange(FEATURES.width + 1.0)), {})
    assert np.array_equal(load_policy(line.save(path)).model.weights, line.model.weights)


def test_a_policy_from_a_file_runs_the_kernels_of_a_new_one(policy, tmp_path):
    # Numba compiles once for each type, and an array that is read-only is of another type.
    again = load_policy(policy.save(tmp_path / "p.npz"))
    assert numba.typeof(again.kernel(None)) == numba.typeof(policy.kernel(None))


def test_every_truncation_is_refused_in_words(policy, tmp_path):
    whole = policy.save(tmp_path / "p.npz").read_bytes()
    for length in [*range(0, 200), *range(200, len(whole), 37)]:
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        with refuses("path", ANOTHER_COPY):
            load_policy(tmp_path / "cut.npz")


def test_flipped_bytes_are_refused_or_harmless(policy, tmp_path):
    whole = bytearray(policy.save(tmp_path / "p.npz").read_bytes())
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, FEATURES.width)).astype(np.float32)
    expected = policy.model.predict(rows)
    refused = 0
    for at in rng.integers(0, len(whole), 400):
        damaged = whole.copy()
        damaged[at] ^= 1 << rng.integers(8)
        (tmp_path / "bad.npz").write_bytes(damaged)
        try:
            again = load_policy(tmp_path / "bad.npz")
        except InvalidInput:
            refused += 1
        else:  # a byte that nobody reads: a time stamp in the zip
            assert np.array_equal(again.model.predict(rows), expected)
    assert refused > 300


@pytest.mark.parametrize(
    ("changes", "remedy", "fact"),
    [
        ({"header": {"schema": 2}}, "update napari-agglo", "schema is 2"),
        ({"header": {"format": "other"}}, ANOTHER_COPY, "format"),
        ({"header": {"model": "pickle"}}, ANOTHER_COPY, "'pickle'"),
        ({"header": {"bins": 10**9}}, ANOTHER_COPY, "1000000000 bins"),
        ({"header": {"cues": []}}, ANOTHER_COPY, "cues"),
        ({"header": {"preset": "large"}}, SetOption("preset", "shape"), "'large'"),
        ({"header": {"features": ["a"]}}, ANOTHER_COPY, "features"),
        ({"nodes": None}, ANOTHER_COPY, "damaged"),
        ({"nodes": np.zeros((3, 4), np.int64)}, ANOTHER_COPY, "'nodes' is of type int64"),
        ({"nodes": np.zeros((0, 4), np.uint32), "values": np.zeros(0)}, ANOTHER_COPY, "a root"),
        ({"roots": np.array([10**6], np.uint32)}, ANOTHER_COPY, "a root"),
        ({"roots": np.zeros(0, np.uint32)}, ANOTHER_COPY, "roots have shape (0,)"),
        ({"values": np.zeros(1)}, ANOTHER_COPY, "values have shape (1,)"),
    ],
)
def test_wrong_contents_are_named(policy, tmp_path, changes, remedy, fact):
    path = rewritten(policy.save(tmp_path / "p.npz"), tmp_path / "q.npz", **changes)
    with refuses("path", remedy, facts=(fact,)):
        load_policy(path)


@pytest.mark.parametrize(
    ("column", "value", "fact"),
    [
        (0, FEATURES.width, "a feature"),
        (2, 10**6, "children"),
        (3, 0, "children"),
        (1, np.float32("nan").view(np.uint32), "a threshold"),
    ],
)
def test_hostile_trees_are_refused(policy, tmp_path, column, value, fact):
    nodes = policy.model.nodes.copy()
    nodes[0 if column != 3 else 1, column] = value
    if column == 3:
        nodes[1, 2] = 0  # back to the root: a circle
    path = rewritten(policy.save(tmp_path / "p.npz"), tmp_path / "q.npz", nodes=nodes)
    with refuses("path", ANOTHER_COPY, facts=(fact,)):
        load_policy(path)


def test_a_node_in_two_places_is_refused(policy, tmp_path):
    nodes = policy.model.nodes.copy()
    nodes[0, 3] = nodes[0, 2]
    path = rewritten(policy.save(tmp_path / "p.npz"), tmp_path / "q.npz", nodes=nodes)
    with refuses("path", ANOTHER_COPY, facts=("exactly one place",)):
        load_policy(path)


def test_a_huge_declared_shape_allocates_nothing(policy, tmp_path):
    path = policy.save(tmp_path / "p.npz")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
    )
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "q.npz", "w") as new:
        for name in old.namelist():
            new.writestr(name, header.getvalue() if name == "values.npy" else old.read(name))
    with refuses("path", ANOTHER_COPY):
        load_policy(tmp_path / "q.npz")


def test_pickles_are_not_opened(tmp_path):
    np.savez(tmp_path / "p.npz", header=np.array([{"a": 1}], object))
    with refuses("path", ANOTHER_COPY):
        load_policy(tmp_path / "p.npz")
    with refuses("path", "train a policy, or correct the path"):
        load_policy(tmp_path / "none.npz")


def test_the_json_of_a_policy_is_refused_as_such(tmp_path):
    (tmp_path / "p.json").write_text('{"kind": "mean"}')
    with refuses("path", "from_json", facts=("JSON",)):
        load_policy(tmp_path / "p.json")


def test_another_ending_is_refused(policy, tmp_path):
    with pytest.raises(InvalidInput) as refusal:
        policy.save(tmp_path / "p.pkl")
    assert refusal.value.argument == "path"
    assert refusal.value.remedy.value == str(tmp_path / "p.npz")
    assert not list(tmp_path.iterdir())
