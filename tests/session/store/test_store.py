"""The session folder: data are read as they were written, and other data are refused."""

from __future__ import annotations

import json
import os
import shutil
import stat

import numpy as np
import pytest
from oracles.disks import SUPERPIXELS, entries_of, small_graph, tree_of
from refusals import refuses
from sklearn.tree import DecisionTreeClassifier

import napari_agglo as agglo
from napari_agglo import InvalidInput
from napari_agglo.errors import SetOption
from napari_agglo.features import FeatureMap
from napari_agglo.policy import LearnedPolicy, MeanPolicy, RandomPolicy, flatten_trees
from napari_agglo.session import NotSaved, SessionDamaged
from napari_agglo.session._store import Store, arrays, create
from napari_agglo.volumes import write_labels


@pytest.fixture
def path(tmp_path):
    """Return a session with two entries."""
    with Store.create(tmp_path / "cells.agglo", small_graph()) as store:
        store.journal.append({"a": 1})
        store.journal.append({"b": [1, 2.5, None, "ü"]})
    return tmp_path / "cells.agglo"


def forest(seed=0):
    """Return a learned policy for the small graph."""
    features = FeatureMap("minimal", ("boundary",), 25)
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(80, features.width)).astype(np.float32)
    trees = [DecisionTreeClassifier(random_state=0).fit(rows, rows[:, 0] > 0)]
    model = flatten_trees([tree.tree_ for tree in trees])
    return LearnedPolicy(features, model, {"strategy": "flat"})


def assert_same_graph(one, other):
    for name in ("edges", "regions", "boundaries", "boxes", "ids"):
        first, second = getattr(one, name), getattr(other, name)
        assert first.dtype == second.dtype
        assert np.array_equal(first, second)
    assert np.array_equal(one.superpixels.image, other.superpixels.image)
    assert one.superpixels.dtype == other.superpixels.dtype
    for name in ("spacing", "cue_names", "cue_ranges", "layout", "dams"):
        assert getattr(one, name) == getattr(other, name)
    assert (one.cues is None) == (other.cues is None)
    if one.cues is not None:
        assert one.cues.shape == other.cues.shape
        assert np.array_equal(one.cues, other.cues)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"spacing": (4.0, 0.1)},
        {"statistics": "mean"},
        {"bins": 7, "dams": True},
        {"keep_cues": False},
    ],
)
def test_graph_round_trip(tmp_path, options):
    graph = small_graph(**options)
    Store.create(tmp_path / "a.agglo", graph).close()
    with Store.open(tmp_path / "a.agglo") as store:
        assert_same_graph(store.data.graph, graph)
        assert not store.data.graph.superpixels.image.flags.writeable
        assert store.data.policy == MeanPolicy()
        assert store.data.tree is None
        assert store.data.gold is None


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3), (2, 1, 2, 3)])
@pytest.mark.parametrize("dtype", ["u1", ">i8", "<u8"])
def test_any_number_of_axes_and_any_integers(tmp_path, shape, dtype):
    rng = np.random.default_rng(0)
    labels = rng.integers(1, 5, shape).astype(dtype)
    graph = agglo.region_graph(labels, {"a": rng.random(shape), "b": rng.random(shape)})
    Store.create(tmp_path / "a.agglo", graph, "random").close()
    with Store.open(tmp_path / "a.agglo") as store:
        assert_same_graph(store.data.graph, graph)
        assert store.data.policy == RandomPolicy(0)


def test_an_image_without_boundaries(tmp_path):
    graph = agglo.region_graph(np.full((2, 2), 7), np.zeros((2, 2)))
    Store.create(tmp_path / "a.agglo", graph, tree=agglo.agglomerate(graph, "mean")).close()
    with Store.open(tmp_path / "a.agglo") as store:
        assert store.data.graph.n_boundaries == store.data.tree.n_merges == 0


def test_tree_gold_settings_and_a_learned_policy(tmp_path):
    graph, policy = small_graph(), forest()
    tree = agglo.agglomerate(graph, policy)
    gold = (SUPERPIXELS > 6).astype(np.uint8)
    with Store.create(tmp_path / "a.agglo", graph, policy, tree=tree, gold=gold) as store:
        store.save_settings({"threshold": 0.5})
        words = store.keep_policy(forest(seed=1))
        assert store.keep_policy(forest(seed=1)) == words, "written once"
        store.journal.append({"policy": words})
    with Store.open(tmp_path / "a.agglo", read_only=True) as store:
        assert np.array_equal(store.data.policy.score(store.data.graph), policy.score(graph))
        for name in ("winners", "losers", "priorities"):
            assert np.array_equal(getattr(store.data.tree, name), getattr(tree, name))
        assert np.array_equal(store.data.gold, gold)
        assert store.data.gold.dtype == gold.dtype
        assert store.settings == {"threshold": 0.5}
        again = store.recall_policy(entries_of(store)[0]["policy"])
        assert np.array_equal(again.score(graph), forest(seed=1).score(graph))
        for written in (lambda: store.keep_policy("x"), lambda: store.save_settings({})):
            with refuses("path", "open it for writing", kind=NotSaved):
                written()
    assert len(list((tmp_path / "a.agglo").glob("policy*.npz"))) == 2


def test_entries_settings_and_times_survive(path):
    with Store.open(path) as store:
        assert store.journal.append({"c": 3}).seq == 3
        store.save_settings({"threshold": 0.1})
        times = [record.time for record in store.journal.records]
    with Store.open(path) as store:
        assert entries_of(store) == [{"a": 1}, {"b": [1, 2.5, None, "ü"]}, {"c": 3}]
        assert [record.time for record in store.journal.records] == times == sorted(times)
        assert store.settings == {"threshold": 0.1}
        assert str(store.report) == "All is well: 3 entries."


def test_closed_is_closed(path):
    store = Store.open(path)
    store.close()
    store.close()
    with refuses("path", "open it for writing", kind=NotSaved):
        store.journal.append({})
    assert "2 entries, read-only" in repr(store)


def test_moved_renamed_linked_and_named_in_any_script(path, tmp_path):
    for name in ("mövçd — 移動 ✓.agglo", "two  words.agglo", "no suffix", "[a]*?'\".agglo"):
        moved = tmp_path / name
        path.rename(moved)
        with Store.open(moved) as store:
            store.journal.append({"in": name})
            assert store.data.graph.n_regions == 5
        path = moved
    link = tmp_path / "link.agglo"
    link.symlink_to(path)
    with Store.open(link) as store:
        assert [entry["in"] for entry in entries_of(store)[2:]][-1] == "[a]*?'\".agglo"
        with refuses("path", SetOption("read_only", True)):
            Store.open(path)  # the same folder by its other name


def test_moved_while_it_is_open(path, tmp_path):
    store = Store.open(path)
    path.rename(tmp_path / "elsewhere.agglo")
    with refuses("path", "the folder was moved or deleted: close the", kind=NotSaved):
        store.journal.append({"c": 3})
    assert len(entries_of(store)) == 2
    store.close()
    with Store.open(tmp_path / "elsewhere.agglo") as again:
        assert again.journal.append({"c": 3}).seq == 3


def test_reading_only_writes_nothing_and_works_beside_a_writer(path):
    before = tree_of(path)
    with Store.open(path, read_only=True) as reader:
        assert reader.data.graph.n_regions == 5
        assert reader.load_snapshot("none") is None
    assert tree_of(path) == before
    with Store.open(path) as writer, Store.open(path, read_only=True) as reader:
        writer.journal.append({"c": 3})
        assert len(entries_of(reader)) == 2
        with Store.open(path, read_only=True) as later:
            assert len(entries_of(later)) == 3


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of another kind")
def test_a_read_only_disk(path):
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    for at, _, files in os.walk(path):
        for name in files:
            os.chmod(os.path.join(at, name), stat.S_IRUSR)
        os.chmod(at, stat.S_IRUSR | stat.S_IXUSR)
    try:
        with refuses("path", "read_only=True", kind=NotSaved):
            Store.open(path)
        with Store.open(path, read_only=True) as store:
            assert len(entries_of(store)) == 2
            assert store.data.graph.n_regions == 5
    finally:
        for at, _, _ in os.walk(path):
            os.chmod(at, stat.S_IRWXU)


def test_a_folder_without_a_session_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.agglo").write_text("x")
    for where, remedy in [
        ("folder", "choose a NAME.agglo folder"),
        ("file.agglo", "choose a NAME.agglo folder"),
        ("absent.agglo", "check the path, or create the session"),
    ]:
        for opening in (Store.open, Store.recover):
            with refuses("path", remedy):
                opening(tmp_path / where)
    assert list((tmp_path / "folder").iterdir()) == [], "a folder of others is left alone"


def test_create_overwrites_nothing(path, tmp_path):
    before = tree_of(tmp_path)
    (tmp_path / "empty.agglo").mkdir()
    (tmp_path / "dangling.agglo").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file.agglo").write_text("mine")
    for name in ("cells", "empty", "dangling", "file"):
        with refuses("path", "open it, or choose another name for the new"):
            Store.create(tmp_path / f"{name}.agglo", small_graph())
    assert (tmp_path / "file.agglo").read_text() == "mine"
    with refuses("path", f"call it {tmp_path / 'cells.agglo'}"):
        Store.create(tmp_path / "cells", small_graph())
    with refuses("path", f"make the folder {tmp_path / 'no'} first"):
        Store.create(tmp_path / "no" / "a.agglo", small_graph())
    assert before.items() <= tree_of(tmp_path).items()


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"graph": "x"}, ("graph", "make one with region_graph(superpixels")),
        ({"policy": "median"}, ("policy", "pass one of these names, a function, or")),
        ({"gold": np.zeros((2, 2), int)}, ("gold", "use the same crop of both")),
    ],
)
def test_create_refuses_what_does_not_belong(tmp_path, options, refusal):
    with refuses(*refusal):
        Store.create(tmp_path / "a.agglo", **{"graph": small_graph(), **options})
    assert list(tmp_path.iterdir()) == []


def test_create_refuses_a_policy_of_other_cues(tmp_path):
    with refuses("policy", "build the graph as for the training"):
        Store.create(tmp_path / "a.agglo", small_graph(bins=3), forest())


def test_cancelled_leaves_nothing(tmp_path):
    def cancel(progress):
        if progress.done:
            raise agglo.Cancelled

    with pytest.raises(agglo.Cancelled):
        Store.create(tmp_path / "a.agglo", small_graph(), progress=cancel)
    assert list(tmp_path.iterdir()) == []


class TestSuperpixelsElsewhere:
    """Superpixels that are not copied in, but named."""

    @pytest.fixture(autouse=True)
    def small_limit(self, monkeypatch):
        monkeypatch.setattr("napari_agglo.session._store.create.COPY_BELOW", 1)

    @pytest.fixture
    def path(self, tmp_path):
        (tmp_path / "project").mkdir()
        write_labels(tmp_path / "project" / "cells.npz", SUPERPIXELS)
        source = tmp_path / "project" / "cells.npz"
        Store.create(tmp_path / "project" / "a.agglo", small_graph(), source=source).close()
        return tmp_path / "project" / "a.agglo"

    def test_found_by_the_relative_path(self, path, tmp_path):
        assert not (path / "arrays.zarr" / "superpixels").exists()
        assert json.loads((path / "manifest.json").read_text())["source"] == "../cells.npz"
        (tmp_path / "project").rename(tmp_path / "moved")
        with Store.open(tmp_path / "moved" / "a.agglo") as store:
            assert_same_graph(store.data.graph, small_graph())

    def test_relocated_once_and_for_all(self, path, tmp_path):
        (path.parent / "cells.npz").rename(tmp_path / "labels.npz")
        with Store.open(path) as store, pytest.raises(InvalidInput) as caught:
            _ = store.data.graph
        assert caught.value.remedy.option == "superpixels"
        with Store.open(path, superpixels=tmp_path / "labels.npz") as store:
            assert_same_graph(store.data.graph, small_graph())
        with Store.open(path) as store:
            assert_same_graph(store.data.graph, small_graph())
        with Store.open(path, superpixels=SUPERPIXELS.astype(np.uint64)) as store:
            assert_same_graph(store.data.graph, small_graph())

    def test_other_data_are_refused_and_both_are_shown(self, path):
        other = SUPERPIXELS.copy()
        other[0, 0] = 9
        with refuses("superpixels", "pass the same label image") as caught:
            Store.open(path, superpixels=other)
        assert str(caught.value).count("shape (3, 4), 5 superpixels, checksum") == 2
        write_labels(path.parent / "cells.npz", other)
        with (
            Store.open(path) as store,
            refuses("superpixels", SetOption("superpixels", None, when="with their present path")),
        ):
            _ = store.data.graph

    def test_a_wrong_source_is_noticed_at_the_beginning(self, path, tmp_path):
        write_labels(tmp_path / "other.npz", SUPERPIXELS + 1)
        with refuses("source", "leave it out: the superpixels are then copied"):
            Store.create(tmp_path / "b.agglo", small_graph(), source=tmp_path / "other.npz")

    def test_without_a_source_they_are_copied_all_the_same(self, tmp_path):
        Store.create(tmp_path / "b.agglo", small_graph()).close()
        with Store.open(tmp_path / "b.agglo") as store:
            assert_same_graph(store.data.graph, small_graph())


def test_one_gigabyte_is_the_limit():
    assert create.COPY_BELOW == 10**9


def test_other_data_than_its_own_copy_are_refused(path):
    with refuses("superpixels", "pass the same label image"):
        Store.open(path, superpixels=SUPERPIXELS.T.copy())
    with Store.open(path, superpixels=SUPERPIXELS) as store:
        assert_same_graph(store.data.graph, small_graph())


def test_snapshots_belong_to_an_entry_of_this_history(path, tmp_path):
    arrays = {"lut": np.arange(6, dtype=np.uint32), "levels": np.array([[0.5, np.inf]])}
    with Store.open(path) as store:
        assert store.load_snapshot("state") is None
        assert store.snapshot("state", arrays)
        store.journal.append({"c": 3})
        found = store.load_snapshot("state")
        assert found.seq == 2
        for name, array in arrays.items():
            assert np.array_equal(found.arrays[name], array)
            assert found.arrays[name].dtype == array.dtype
        store.snapshot("state", arrays)
        assert store.load_snapshot("state").seq == 3
        with refuses("name", "call recover()"):
            store.load_snapshot("../state")
    journal = path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]))
    with pytest.warns(match="3 were written: 1 entry is lost"):
        store = Store.open(path)
    with store:
        assert store.load_snapshot("state") is None, "of an entry that is no longer there"
        store.journal.append({"c": 4})
        assert store.load_snapshot("state") is None, "nor of another with its number"


def test_damaged_snapshots_are_ignored(path):
    with Store.open(path) as store:
        store.snapshot("state", {"lut": np.arange(6)})
        file = path / "snapshots" / "state.npz"
        whole = file.read_bytes()
        rng = np.random.default_rng(0)
        ignored = 0
        for at in rng.integers(0, len(whole), 200):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << int(rng.integers(8))
            file.write_bytes(damaged)
            found = store.load_snapshot("state")
            ignored += found is None
            assert found is None or np.array_equal(found.arrays["lut"], np.arange(6))
        assert ignored > 100
        for length in range(0, len(whole), 13):
            file.write_bytes(whole[:length])
            assert store.load_snapshot("state") is None


def test_a_newer_schema_is_refused(path):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["schema"] = 2
    (path / "manifest.json").write_text(json.dumps(manifest))
    for opening in (Store.open, Store.recover):
        with refuses("path", "update napari-agglo"):
            opening(path)


def test_the_copy_is_independent(path, tmp_path):
    shutil.copytree(path, tmp_path / "copy.agglo")
    with Store.open(path) as one, Store.open(tmp_path / "copy.agglo") as two:
        one.journal.append({"only": "here"})
        assert len(entries_of(two)) == 2


@pytest.mark.parametrize(
    ("shape", "chunk_bytes", "n_chunks"),
    [
        ((7,), 24, 3),  # the last chunk is not full
        ((5, 3), 48, 3),
        ((2, 5, 3), 48, 6),  # as cues: chunks of rows of the second axis
        ((3, 2, 5), 32, 12),  # of the last axis
        ((3, 2), 8, 6),  # each value is a chunk
        ((4, 3, 2), 1 << 22, 1),
    ],
)
def test_arrays_are_read_from_their_chunks(tmp_path, monkeypatch, shape, chunk_bytes, n_chunks):
    monkeypatch.setattr(arrays, "_CHUNK_BYTES", chunk_bytes)
    array = np.random.default_rng(0).integers(0, 1 << 40, shape)
    note = arrays.write_array(tmp_path, "a", array)
    chunks = sorted(p for p in (tmp_path / "a" / "c").rglob("*") if p.is_file())
    assert len(chunks) == n_chunks
    read = arrays.read_array(tmp_path, "a", note)
    assert read.dtype == array.dtype
    assert np.array_equal(read, array)
    if n_chunks > 1:  # one in the place of another has a right checksum of its own
        shutil.copy(chunks[0], chunks[1])
        with pytest.raises(SessionDamaged):
            arrays.read_array(tmp_path, "a", note)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forks in a process with threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_does_not_change_arrays(tmp_path):
    note = arrays.write_array(tmp_path, "a", np.arange(6))
    read = arrays.read_array(tmp_path, "a", note)
    child = os.fork()
    if child == 0:
        read[:] = 9
        os._exit(0)
    os.waitpid(child, 0)
    assert np.array_equal(read, np.arange(6))
