"""The journal: acknowledged entries are read again, or their loss is reported."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from refusals import refuses

from napari_agglo.session._store.journal import JOURNAL, TAIL, Journal, encode, examine, scan

START = "0123456789abcdef" * 2
ENTRIES = [{"op": "merge", "a": k, "note": "ä\n" * (k % 3)} for k in range(40)]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a journal of 40 entries."""
    (tmp_path / JOURNAL).write_bytes(b"")
    journal = Journal(tmp_path, START, read_only=False)
    assert [journal.append(entry).seq for entry in ENTRIES] == list(range(1, 41))
    journal.close()
    return tmp_path


def entries_in(folder):
    """Return the entries that can be trusted, and the report; asserts that they are a prefix."""
    found, report = examine(folder, START)
    entries = [record.entry for record in found.records]
    assert entries == ENTRIES[: len(entries)], "a wrong state"
    return entries, report


def test_appended_entries_are_read(folder):
    entries, report = entries_in(folder)
    assert entries == ENTRIES
    assert (report.kept, report.lost, report.sentences) == (40, 0, ())
    lines = (folder / JOURNAL).read_text().splitlines()
    assert [json.loads(line)["entry"] for line in lines] == ENTRIES, "each line is plain JSON"
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 41))


def test_cut_at_every_byte_of_the_last_twenty_entries(folder):
    whole = (folder / JOURNAL).read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    print(f"\ncut at {len(whole) - ends[19]} places")
    for length in reversed(range(ends[19], len(whole))):
        os.truncate(folder / JOURNAL, length)
        entries, report = entries_in(folder)
        assert len(entries) == sum(end <= length for end in ends)
        assert report.lost == 40 - len(entries)
        assert report.sentences


def test_cut_and_opened_for_writing_keeps_the_rest_aside(folder):
    whole = (folder / JOURNAL).read_bytes()
    (folder / JOURNAL).write_bytes(whole[:-5])
    for opened in ("first", "again"):
        journal = Journal(folder, START, read_only=False)
        journal.close()
        assert len(journal.records) == 39
        assert (journal.report.lost == 1) == (opened == "first"), "told once, then mended"
    last = whole.splitlines(keepends=True)[-1]
    assert (folder / "journal.damaged-1").read_bytes() == last[:-5]
    assert not (folder / "journal.damaged-2").exists()


def overwrite(path, at, byte):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(bytes([byte]))


def flip_bits(folder, count, seed):
    """Flip one random bit at a time of journal and note; return how many entries were kept."""
    rng = np.random.default_rng(seed)
    kept = []
    files = {name: (folder / name).read_bytes() for name in (JOURNAL, TAIL)}
    for _ in range(count):
        name = JOURNAL if rng.random() < 0.95 else TAIL
        at = int(rng.integers(len(files[name])))
        flipped = files[name][at] ^ 1 << int(rng.integers(8))
        overwrite(folder / name, at, flipped)
        entries, report = entries_in(folder)
        if name == JOURNAL:
            assert len(entries) == files[name][:at].count(b"\n"), "all before the damaged line"
            assert report.lost == 40 - len(entries)
        else:
            assert len(entries) == 40
            assert report.lost == 0
        assert report.sentences, "told in words"
        kept.append(len(entries))
        overwrite(folder / name, at, files[name][at])
    return kept


def test_flipped_bits(folder):
    assert len(set(flip_bits(folder, 400, seed=0))) > 30, "test invalid: flips are all in one place"


@pytest.mark.slow
def test_flipped_bits_ten_thousand(folder):
    assert len(flip_bits(folder, 10_000, seed=1)) == 10_000


def test_a_wrong_line_in_the_middle_ends_what_is_trusted(folder):
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    for changed in (
        [*lines[:10], *lines[11:]],  # one gone
        [*lines[:10], lines[9], *lines[10:]],  # one twice
        [*lines[:10], lines[11], lines[10], *lines[12:]],  # two swapped
        [*lines[:10], lines[10].replace(b"merge", b"Merge"), *lines[11:]],
        [*lines[:10], b"\n", *lines[10:]],
    ):
        (folder / JOURNAL).write_bytes(b"".join(changed))
        entries, report = entries_in(folder)
        assert len(entries) == 10
        assert report.lost == 30
        assert "cannot be trusted" in str(report)
    journal = Journal(folder, START, read_only=False)
    journal.close()
    assert (folder / "journal.damaged-1").read_bytes() == b"".join(changed[10:])
    assert (folder / JOURNAL).read_bytes() == b"".join(lines[:10])


def test_a_letter_that_becomes_a_line_end_is_counted_once(tmp_path):
    (tmp_path / JOURNAL).write_bytes(b"")
    journal = Journal(tmp_path, START, read_only=False)
    for name in ("one", "Jane", "three"):
        journal.append({"by": name})
    journal.close()
    at = (tmp_path / JOURNAL).read_bytes().index(b"J")
    overwrite(tmp_path / JOURNAL, at, ord("J") ^ 0x40)
    found, report = examine(tmp_path, START)
    assert found.complete_lines_after == 3, "test invalid: no line end was made"
    assert (report.kept, report.lost) == (1, 2)


def test_a_journal_of_another_session_is_not_taken(folder):
    found, report = examine(folder, "f" * 32)
    assert found.records == []
    assert report.lost == 40


def test_a_note_that_lags_behind_raises_no_alarm(folder):
    (folder / TAIL).write_bytes((folder / TAIL).read_bytes().replace(b"0040", b"0030"))
    _, report = entries_in(folder)
    assert "journal.tail is missing or damaged" in str(report), "its checksum is wrong"
    assert report.lost == 0
    (folder / TAIL).unlink()
    assert entries_in(folder)[1].lost == 0
    (folder / JOURNAL).write_bytes(b"")
    assert "not known whether more" in str(entries_in(folder)[1]), "even if it is empty"


def test_reading_only_writes_nothing(folder):
    (folder / JOURNAL).write_bytes((folder / JOURNAL).read_bytes()[:-1])
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    journal = Journal(folder, START, read_only=True)
    assert len(journal.records) == 39
    with refuses("path", "open it for writing"):
        journal.append({})
    journal.close()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("entry", [[1, 2], {"a": np.int64(3)}, {"a": np.nan}, {"a": object()}])
def test_an_entry_that_is_not_json_leaves_no_trace(folder, entry):
    before = (folder / JOURNAL).read_bytes()
    journal = Journal(folder, START, read_only=False)
    with pytest.raises((TypeError, ValueError)):
        journal.append(entry)
    assert journal.append({"after": 1}).seq == 41
    journal.close()
    assert (folder / JOURNAL).read_bytes().startswith(before)


def test_a_change_by_another_program_is_noticed(folder):
    journal = Journal(folder, START, read_only=False)
    with open(folder / JOURNAL, "ab") as other:
        other.write(b"x")
    with refuses("path", "close the session and open it again"):
        journal.append({})
    (folder / JOURNAL).unlink()
    with refuses("path", "the folder was moved or deleted: close the"):
        journal.append({})
    assert len(journal.records) == 40
    journal.close()


def test_a_line_with_a_right_checksum_and_wrong_content_is_refused():
    line, _ = encode({"a": 1}, 2, START)  # number 2 where 1 is due
    assert scan(line, START).records == []
    line, _ = encode({"a": 1}, 1, START)
    assert len(scan(line, START).records) == 1


def test_ten_thousand_entries_are_read_line_by_line(tmp_path):
    previous, lines = START, []
    for seq in range(1, 10_001):
        line, record = encode({"op": "merge", "segments": [seq, seq + 1], "t": 0.5}, seq, previous)
        lines.append(line)
        previous = record.sum
    found = scan(b"".join(lines), START)
    assert len(found.records) == 10_000
    assert found.rest == b""
