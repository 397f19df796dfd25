"""What a journal on disk holds, and what is wrong with it, without changing it."""

from __future__ import annotations

from pathlib import Path

from napari_agglo.session._store._errors import SessionDamaged, remedy, said
from napari_agglo.session._store._lines import Scan, scan
from napari_agglo.session._store._report import Report
from napari_agglo.session._store._tail import Tail, read_tail

JOURNAL = "journal.jsonl"
TAIL = "journal.tail"


def examine(folder: Path, start: str) -> tuple[Scan, Report]:
    """Read a journal without changing it, and say what is wrong with it."""
    path = folder / JOURNAL
    noted = read_tail(folder / TAIL)  # first: a writer beside us may append in between
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise SessionDamaged(
            f"{folder} has no {JOURNAL}; copy it from where the session came from, or call "
            "recover() to go on without the edits."
        ) from error
    except OSError as error:
        raise SessionDamaged(f"{path} cannot be read ({said(error)}); {remedy(error)}.") from error
    found = scan(data, start)
    return found, _judged(found, noted)


def _judged(found: Scan, noted: Tail | None) -> Report:
    kept = len(found.records)
    expected = noted.seq if noted is not None else 0
    # The note counts better than the lines: damage may have made a line end, or unmade one.
    lost = expected - kept if expected > kept else found.complete_lines_after
    sentences = []
    if found.rest and not lost:
        sentences.append(
            f"The journal ends in an incomplete line ({len(found.rest)} bytes): an edit that is "
            "being written, or was when the program stopped; it was never acknowledged. "
            f"The {_entries(kept)} before it {_are(kept)} there."
        )
    elif found.rest:
        sentences.append(
            f"The journal is damaged after {_entries(kept)}, which {_are(kept)} there; "
            f"{_entries(lost)} from line {kept + 1} on cannot be trusted and {_are(lost)} lost "
            f"({len(found.rest)} bytes)."
        )
    elif lost:
        sentences.append(
            f"The journal ends after {_entries(kept)}, but {expected} were written: "
            f"{_entries(lost)} {_are(lost)} lost, for the file was cut off."
        )
    if noted is None:
        sentences.append(
            f"The note {TAIL} is missing or damaged, so it is not known whether more entries "
            "followed."
        )
    return Report(kept, lost, tuple(sentences))


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
