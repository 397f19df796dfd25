"""A session folder against a plain list, through closing, crashes, failing disks and damage."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from oracles.disks import Died, Disk, entries_of, small_graph

from napari_agglo.session import NotSaved
from napari_agglo.session._store import SessionDamage, Store
from napari_agglo.session._store.journal import read_tail

ENTRY = st.dictionaries(
    st.text(max_size=3),
    st.none() | st.integers() | st.text(max_size=20) | st.lists(st.floats(-1, 1), max_size=3),
    max_size=3,
)


class Sessions(RuleBasedStateMachine):
    """The model is `entries`, a list: what was acknowledged and not reported as lost."""

    pristine: Path

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "a.agglo"
        shutil.copytree(self.pristine, self.path)
        self.entries, self.settings, self.snapshot = [], {}, None
        self.store = Store.open(self.path)

    def reopen(self, **options):
        self.store = Store.open(self.path, **options)
        assert self.store.report.lost == 0

    @rule(entry=ENTRY)
    def append(self, entry):
        self.entries.append(entry)
        assert self.store.journal.append(entry).seq == len(self.entries)

    @rule(threshold=st.floats(0, 1))
    def set_threshold(self, threshold):
        self.settings = {"threshold": threshold}
        self.store.save_settings(self.settings)

    @rule()
    def take_snapshot(self):
        assert self.store.snapshot("state", {"n": np.array([len(self.entries)])})
        self.snapshot = len(self.entries)

    @rule()
    def close_and_reopen(self):
        self.store.close()
        self.reopen()

    @rule()
    def look_beside(self):
        with Store.open(self.path, read_only=True) as reader:
            assert entries_of(reader) == self.entries

    @rule(name=st.sampled_from(["b.agglo", "ü ñ.agglo", "a.agglo"]))
    def move(self, name):
        self.store.close()
        self.path = self.path.rename(self.folder / name)
        self.reopen()

    @rule(entry=ENTRY, at=st.integers(0, 3), error=st.sampled_from([errno.ENOSPC, errno.EIO]),
          times=st.integers(1, 9))  # fmt: skip
    def append_to_a_failing_disk(self, entry, at, error, times):
        with Disk(at, error, times=times).in_use():
            try:
                self.store.journal.append(entry)
                self.entries.append(entry)
            except NotSaved:
                pass
        if self.store.read_only:
            self.store.close()
            self.reopen()
            if len(entries_of(self.store)) > len(self.entries):  # "shows when it is opened again"
                self.entries.append(entry)

    @rule(entry=ENTRY, at=st.integers(0, 5))
    def die_in_an_append(self, entry, at):
        with Disk(at).in_use():
            try:
                self.store.journal.append(entry)
                self.entries.append(entry)
            except Died:
                pass
        self.store.close()
        self.reopen()
        if len(entries_of(self.store)) > len(self.entries):  # written, and not yet acknowledged
            self.entries.append(entry)

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def cut_the_journal(self, data):
        self.store.close()
        journal = self.path / "journal.jsonl"
        length = data.draw(st.integers(0, journal.stat().st_size - 1))
        os.truncate(journal, length)
        noted = read_tail(self.path / "journal.tail")  # a disk may have failed while it was written
        with pytest.warns(SessionDamage) if noted else nullcontext():
            self.store = Store.open(self.path)
        kept = len(entries_of(self.store))
        assert kept < len(self.entries)
        if noted:
            assert self.store.report.lost == len(self.entries) - kept
        else:
            assert "not known whether more entries followed" in str(self.store.report)
        self.entries = self.entries[:kept]

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def flip_a_bit(self, data):
        self.store.close()
        journal = self.path / "journal.jsonl"
        flipped = bytearray(journal.read_bytes())
        at = data.draw(st.integers(0, len(flipped) - 1))
        kept = flipped[:at].count(b"\n")
        flipped[at] ^= 1 << data.draw(st.integers(0, 7))
        journal.write_bytes(flipped)
        noted = read_tail(self.path / "journal.tail")
        report = Store.recover(self.path)
        assert report.kept == kept
        assert report.sentences
        assert report.lost == len(self.entries) - kept or not noted
        self.entries = self.entries[:kept]
        self.reopen()

    @invariant()
    def agrees(self):
        if not hasattr(self, "store"):
            return
        assert entries_of(self.store) == self.entries
        assert self.store.settings == self.settings
        found = self.store.load_snapshot("state")
        if found is not None:
            assert found.seq == found.arrays["n"][0] == self.snapshot <= len(self.entries)

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.folder)


@pytest.fixture(scope="module", autouse=True)
def pristine(tmp_path_factory):
    path = tmp_path_factory.mktemp("sessions") / "pristine.agglo"
    Store.create(path, small_graph()).close()
    shutil.rmtree(path / "arrays.zarr")  # only what changes is looked at here
    Sessions.pristine = path


TestSessions = Sessions.TestCase
TestSessions.settings = examples(15, stateful_step_count=30)


class ManySessions(Sessions):
    """The same, for longer."""


TestManySessions = pytest.mark.slow(ManySessions.TestCase)
TestManySessions.settings = examples(150, stateful_step_count=60)
