"""Damaged and hostile session folders: refused or unharmed, and repaired if possible."""

from __future__ import annotations

import copy
import json
import shutil
from contextlib import suppress

import numpy as np
import pytest
import zarr
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from oracles.disks import SUPERPIXELS, entries_of, small_graph, tree_of
from refusals import refuses

import napari_agglo as agglo
from napari_agglo import InvalidInput
from napari_agglo.errors import DataWarning
from napari_agglo.session import NotSaved, SessionDamaged
from napari_agglo.session._store import Store
from napari_agglo.session._store.manifest import _manifest_sum, digest_array

ENTRIES = [{"a": 1}, {"b": 2}]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    path = tmp_path_factory.mktemp("sessions") / "pristine.agglo"
    graph = small_graph()
    tree = agglo.agglomerate(graph)
    gold = SUPERPIXELS % 3
    with Store.create(path, graph, tree=tree, gold=gold) as store:
        for entry in ENTRIES:
            store.journal.append(entry)
    return path


@pytest.fixture
def path(pristine, tmp_path):
    return shutil.copytree(pristine, tmp_path / "copy.agglo")


def read_all(path):
    """Return everything that a session holds, as something to compare."""
    with Store.open(path, read_only=True) as store:
        graph, tree = store.data.graph, store.data.tree
        statistics = (graph.edges, graph.regions, graph.boundaries, graph.boxes, graph.cues)
        arrays = [graph.superpixels.image, graph.ids, *statistics]
        if tree is not None:
            arrays += [tree.winners, tree.losers, tree.priorities]
        if store.data.gold is not None:
            arrays.append(store.data.gold)
        plain = (graph.spacing, graph.cue_names, graph.cue_ranges, graph.layout, store.data.policy)
        return entries_of(store), store.settings, plain, [digest_array(array) for array in arrays]


def signed(manifest):
    """Return a manifest with a checksum that fits, as someone would make who means harm."""
    plain = {key: manifest[key] for key in manifest if key != "sum"}
    return json.dumps({**plain, "sum": _manifest_sum(plain)})


def flip(path, count, seed):
    """Flip single bits in any file but the journal's; return how often that was refused."""
    rng = np.random.default_rng(seed)
    expected = read_all(path)
    files = {name: data for name, data in tree_of(path).items() if not name.startswith("journal")}
    names, refused = sorted(files), 0
    for _ in range(count):
        name = names[int(rng.integers(len(names)))]
        damaged = bytearray(files[name])
        damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
        (path / name).write_bytes(damaged)
        try:
            assert read_all(path) == expected, f"a wrong state, by a flip in {name}"
        except InvalidInput:
            refused += 1
        (path / name).write_bytes(files[name])
    return refused


@pytest.mark.slow
def test_flipped_bits_are_refused_or_harmless(path):
    assert flip(path, 150, seed=0) > 75


@pytest.mark.slow
def test_flipped_bits_in_any_file(path):
    refused = flip(path, 2000, seed=1)
    print(f"\n2000 flips: {refused} refused in words, the others harmless")
    assert refused > 1000


def test_any_file_gone_or_empty(path):
    expected = read_all(path)
    for name, data in tree_of(path).items():
        for emptied in (False, True):
            if emptied:
                (path / name).write_bytes(b"")
            else:
                (path / name).unlink()
            try:
                found = read_all(path)
                assert name in ("journal.tail", "arrays.zarr/zarr.json") or not found[0]
                assert found[1:] == expected[1:]
            except (InvalidInput, pytest.PytestWarning, UserWarning):
                pass  # said in words
            (path / name).write_bytes(data)


WEIRD = st.sampled_from([
    None, True, -1, 0, 1, 10**6, 2**63, 1e300, "", "x", "<f8", "|O", "../..", [], [0], [-1, 3], {},
    [2**40, 2**40], {"a": 1}, [[0, 0]], [[0, 1], [0, 1]], ["boundary"], ["boundary", "b"],
])  # fmt: skip


def places(plain, at=()):
    """Return the way to every value within nested dicts and lists."""
    found = [at] if at else []
    inner = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, value in inner:
        deeper = isinstance(value, (dict, list))
        found += places(value, (*at, key)) if deeper else [(*at, key)]
    return found


@examples(150)
@given(data=st.data())
def test_a_hostile_manifest(pristine, tmp_path_factory, data):
    manifest = json.loads((pristine / "manifest.json").read_text())
    for _ in range(data.draw(st.integers(1, 2))):
        way = data.draw(st.sampled_from([p for p in places(manifest) if p[0] != "sum"]))
        holder = manifest
        for key in way[:-1]:
            holder = holder[key]
        holder[way[-1]] = copy.deepcopy(data.draw(WEIRD))
    folder = tmp_path_factory.getbasetemp() / "hostile.agglo"
    if not folder.exists():
        shutil.copytree(pristine, folder)
    (folder / "manifest.json").write_text(signed(manifest))
    with suppress(InvalidInput, UserWarning):  # which tells of a journal of another session
        read_all(folder)


@pytest.mark.parametrize(
    ("name", "change", "fact"),
    [
        ("edges", lambda a: a.__setitem__((0, 0), 10**9), "not there"),
        ("edges", lambda a: a.__setitem__((0, 0), 0), "not there"),
        ("edges", lambda a: a.__setitem__(slice(None), a[::-1].copy()), "not in order"),
        ("regions", lambda a: a.__setitem__((1, 0), -(2**62)), "negative"),
        ("boundaries", lambda a: a.__setitem__((0, 0), -1), "negative"),
        ("boxes", lambda a: a.__setitem__((1, 1, 0), 10**6), "out of the image"),
        ("superpixels", lambda a: a.__setitem__((0, 0), 99), "unknown ids"),
        ("ids", lambda a: a.__setitem__(1, 2**50), "ascend from 0"),
        ("tree_winners", lambda a: a.__setitem__(0, 10**6), "winner 1000000"),
        ("tree_priorities", lambda a: a.__setitem__(0, np.nan), "NaN"),
    ],
)
def test_hostile_values_never_reach_a_kernel(path, name, change, fact):
    """The checksums are right, for who means harm can compute them."""
    stored = zarr.open_array(str(path / "arrays.zarr" / name), mode="r+")
    array = stored[...]
    change(array)
    stored[...] = array
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["arrays"][name]["checksum"] = digest_array(array)
    (path / "manifest.json").write_text(signed(manifest))
    part = "merge tree" if name.startswith("tree_") else repr(name)
    with refuses("path", "restore the session", kind=SessionDamaged, facts=(part, fact)):
        read_all(path)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2**40, 2]},
        {"data_type": "float64"},
        {"codecs": [{"name": "pickle"}]},
        {"codecs": [{"name": "numcodecs.pickle", "configuration": {}}]},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2**50, 2]}}},
        {"chunk_grid": None},
        {"storage_transformers": [{"name": "x"}]},
    ],
)
def test_hostile_descriptions_of_arrays(path, change):
    file = path / "arrays.zarr" / "edges" / "zarr.json"
    plain = json.loads(file.read_text())
    file.write_text(json.dumps({**copy.deepcopy(plain), **change}))
    with refuses("path", "call recover()", kind=SessionDamaged):
        read_all(path)


def test_a_shape_beyond_all_memory_is_refused_before_it_is_allocated(path):
    manifest = json.loads((path / "manifest.json").read_text())
    file = path / "arrays.zarr" / "gold" / "zarr.json"
    plain = json.loads(file.read_text())
    for holder in (plain, manifest["arrays"]["gold"], manifest["superpixels"]):
        holder["shape"] = [2**30, 2**20]
    file.write_text(json.dumps(plain))
    (path / "manifest.json").write_text(signed(manifest))
    with (
        Store.open(path, read_only=True) as store,
        refuses("path", "use a crop", kind=SessionDamaged),
    ):
        _ = store.data.gold


def test_a_policy_outside_the_folder_is_not_opened(path):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["policy"] = {"kind": "learned", "file": "../policy.npz", "checksum": "0"}
    (path / "manifest.json").write_text(signed(manifest))
    with (
        Store.open(path) as store,
        refuses("path", "install the package that has it", kind=SessionDamaged),
    ):
        _ = store.data.policy


def test_a_policy_of_an_unknown_package_makes_a_session_read_only(path):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["policy"] = {"kind": "nobody knows"}
    (path / "manifest.json").write_text(signed(manifest))
    with Store.open(path) as store:
        with pytest.warns(DataWarning, match="install the package that has it"):
            store.do_without_missing()
        assert store.read_only
        assert store.data.policy.name == "nobody knows"
        with refuses("path", "install the package that has it", kind=NotSaved):
            store.save_settings({})
        with refuses("policy", "install the package that has it"):
            store.data.policy.score(store.data.graph)
        Store.open(path).close()  # its lock is free
    report = Store.recover(path)
    assert not report.unmended
    assert "opens read-only" in str(report)


class TestRecover:
    def recovered(self, path, expected, words, *, without=(), **options):
        before = tree_of(path)
        report = Store.recover(path, **options)
        assert words in str(report)
        assert not report.unmended
        assert read_all(path) == expected
        kept = list(tree_of(path).values())
        assert all(data in kept for name, data in before.items() if name not in without)
        assert str(Store.recover(path)) == "All is well: 2 entries.", "there is nothing left to do"

    def test_nothing(self, path):
        self.recovered(path, read_all(path), "All is well: 2 entries.")

    @pytest.mark.parametrize("data", [b"", b"{", b'{"format": "x"}'])
    def test_manifest(self, path, data):
        expected = read_all(path)
        (path / "manifest.json").write_bytes(data)
        with refuses("path", kind=SessionDamaged):
            Store.open(path)
        self.recovered(path, expected, "manifest.json was damaged")

    def test_missing_manifest(self, path):
        expected = read_all(path)
        (path / "manifest.json").unlink()
        self.recovered(path, expected, "manifest.json was damaged or missing")

    @pytest.mark.parametrize("name", ["edges", "regions", "boundaries", "boxes"])
    def test_statistics_are_computed_again(self, path, name):
        expected = read_all(path)
        chunk = next(p for p in (path / "arrays.zarr" / name / "c").rglob("*") if p.is_file())
        chunk.write_bytes(b"damaged " + chunk.read_bytes())
        with Store.open(path) as store, refuses("path", "call recover()", kind=SessionDamaged):
            _ = store.data.graph
        self.recovered(path, expected, f"The array '{name}' was damaged and is restored")
        assert (path / f"{name}.damaged-1").is_dir()

    def test_superpixels_are_given_again(self, path):
        expected = read_all(path)
        shutil.rmtree(path / "arrays.zarr" / "superpixels")
        report = Store.recover(path)
        assert report.unmended
        assert "superpixels=PATH" in str(report)
        with refuses("superpixels", "pass the same label image"):
            Store.recover(path, superpixels=SUPERPIXELS + 1)
        self.recovered(path, expected, "'superpixels' was damaged", superpixels=SUPERPIXELS)

    def test_tree_and_gold_are_done_without(self, path):
        entries, chosen, plain, digests = read_all(path)
        for name in ("tree_losers", "gold"):
            (path / "arrays.zarr" / name / "zarr.json").write_bytes(b"[]")
        expected = (entries, chosen, plain, digests[:-4])
        words = "The merge tree was damaged; the session continues without it."
        self.recovered(path, expected, words, without=["manifest.json"])
        with Store.open(path) as store:
            assert store.data.tree is None

    def test_journal(self, path):
        journal = path / "journal.jsonl"
        first = journal.read_bytes().splitlines(keepends=True)[0]
        journal.write_bytes(first + b"x\n")
        report = Store.recover(path)
        assert (report.kept, report.lost) == (1, 1)
        assert [p.read_bytes() for p in report.aside] == [b"x\n"]
        assert read_all(path)[0] == ENTRIES[:1]

    def test_missing_journal(self, path):
        (path / "journal.jsonl").unlink()
        report = Store.recover(path)
        assert (report.kept, report.lost) == (0, 2)
        assert "journal.jsonl was missing" in str(report)
        assert read_all(path)[0] == []

    def test_damage_beyond_repair_is_named_and_left(self, path):
        shutil.rmtree(path / "arrays.zarr" / "cues")
        (path / "arrays.zarr" / "edges" / "zarr.json").write_bytes(b"")
        before = tree_of(path)
        report = Store.recover(path)
        assert report.unmended
        assert "without cues they cannot be computed again" in str(report)
        assert tree_of(path) == before

    def test_both_manifests(self, path):
        (path / "manifest.json").write_bytes(b"{")
        (path / "arrays.zarr" / "zarr.json").write_bytes(b"{")
        before = tree_of(path)
        with refuses("path", "restore manifest.json from a copy of the", kind=SessionDamaged):
            Store.recover(path)
        assert tree_of(path) == before
