"""The edits of a session as a table, and a table of edits made again on a session.

A row has all that an edit needs, in the user's ids: the pairs of a merge, the parts of a cut, and
the pieces of superpixels that it divides. An edit is made again at its own threshold, on the
segments that hold its superpixels now. What cannot be made is listed with the reason, and the rows
after it are tried all the same.

In its own file: planners decide what an edit does, this module which edit a row asks for.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, check_progress, report
from napari_agglo.agglomeration import is_before
from napari_agglo.errors import Install, InvalidInput, SetOption
from napari_agglo.graph import Division, divide, pieces_to_runs, runs_to_pieces
from napari_agglo.session._actions import (
    Cut,
    Edit,
    Lock,
    Merge,
    Plan,
    Refused,
    as_ids,
)
from napari_agglo.session._plan_cuts import Parts, plan_parts
from napari_agglo.session._plan_edits import find_unlocked
from napari_agglo.session._start_segments import lowest_threshold
from napari_agglo.session._state import Applied, State
from napari_agglo.session._suggestions.rank import Suggestion
from napari_agglo.session._threshold_view import View

if TYPE_CHECKING:
    import pandas as pd

    from napari_agglo.session._session import Session

Ids = dict[int, int]  # of pieces: the id in the table, the id here


def details_of(state: State, applied: Applied) -> str:
    """Return all that is needed to make a live action again, as JSON in the user's ids."""
    action, ids = applied.action, state.graph.ids
    plain: dict[str, Any] = {}
    steps = zip(action.steps, applied.divisions or [()] * len(action.steps), strict=True)
    plain["steps"] = [_step(step.edit, pieces, ids) for step, pieces in steps]
    if action.override is not None:
        plain["superpixel"] = int(ids[action.override.superpixel])
    if action.mark is not None:
        plain["mark"] = action.mark.to_json()
    if action.answer is not None:
        pair = [int(ids[one]) for one in action.answer.superpixels]
        plain["answer"] = {"pair": pair, "same": action.answer.same}
    return json.dumps({key: value for key, value in plain.items() if value})


def _step(edit: Edit, divisions: tuple[Division, ...], ids: NDArray[np.uint64]) -> dict[str, Any]:
    scale = None if is_before(edit.scale) else edit.scale  # JSON has no infinity
    if isinstance(edit, Merge):
        return {"merge": ids[np.array(edit.pairs, np.int64)].tolist(), "scale": scale}
    if isinstance(edit, Cut):
        plain: dict[str, Any] = {"cut": [ids[part].tolist() for part in edit.parts]}
        if divisions:
            plain["divisions"] = [
                {
                    "superpixel": int(ids[one.superpixel]),
                    "runs": pack_runs(pieces_to_runs(one.pieces)),
                    "ids": ids[one.members].tolist(),
                }
                for one in divisions
            ]
        return plain | {"scale": scale}
    if isinstance(edit, Lock):
        return {"lock": ids[edit.members].tolist(), "scale": scale}
    return {"unlock": int(ids[edit.superpixel]), "scale": scale}


_FEW = 400  # numbers of runs that are written as they are, for people to read
_PACKED = "zlib:"


def pack_runs(runs: Sequence[int]) -> list[int] | str:
    """Return runs as they are, or if they are many as a text: base64 of compressed numbers.

    Spreadsheets refuse cells of more than 32,767 characters. The bytes of equal weight come
    together, labels before lengths, which compresses them to about an eighth of the JSON.

    Examples
    --------
    >>> pack_runs([1, 3, 0, 1])
    [1, 3, 0, 1]
    >>> unpack_runs(pack_runs([1, 3, 0, 1] * 500)) == [1, 3, 0, 1] * 500
    True
    """
    if len(runs) <= _FEW:
        return list(runs)
    pairs = np.array(runs, "<u8").reshape(-1, 2)
    weights = np.ascontiguousarray(pairs.T).view(np.uint8).reshape(2, -1, 8).transpose(0, 2, 1)
    return _PACKED + base64.b64encode(zlib.compress(weights.tobytes(), 9)).decode("ascii")


def unpack_runs(runs: Any) -> Any:
    """Return the runs of `pack_runs`; those of a list as they are."""
    if not isinstance(runs, str):
        return runs
    if not runs.startswith(_PACKED):
        raise ValueError(f"runs must be a list, or begin with {_PACKED}")
    try:
        data = zlib.decompress(base64.b64decode(runs[len(_PACKED) :], validate=True))
    except zlib.error as error:
        raise ValueError(f"runs cannot be unpacked: {error}") from error
    weights = np.frombuffer(data, np.uint8).reshape(2, 8, -1).transpose(0, 2, 1)
    numbers: list[int] = np.ascontiguousarray(weights).view("<u8")[..., 0].T.reshape(-1).tolist()
    return numbers


@dataclass(frozen=True)
class NotApplied:
    """A row of a table of edits that could not be made.

    Attributes
    ----------
    row : int
        Its number in the table, from 0.
    kind : str
        merge, cut, lock, ...
    ids : str
        The segments that it was made on.
    reason : str
        The reason, in words.
    sequence : str
        Its number in the journal, the `sequence` of the table; empty if the table has none.
    """

    row: int
    kind: str
    ids: str
    reason: str
    sequence: str = ""

    def __str__(self) -> str:
        which = f"sequence {self.sequence}" if self.sequence else f"row {self.row}"
        return f"{which}, {self.kind} {self.ids}: {self.reason}"


@dataclass(frozen=True)
class AppliedTable:
    """The result of `Session.apply`.

    Attributes
    ----------
    applied : int
        Rows that were made, as actions, which `undo` takes back.
    already : int
        Rows whose result was there already.
    left_out : int
        Rows that are undone in the table.
    not_applied : tuple of NotApplied
        Rows that could not be made, with the reason.
    """

    applied: int
    already: int
    left_out: int
    not_applied: tuple[NotApplied, ...]

    def __str__(self) -> str:
        parts = [f"{self.applied} {'edit' if self.applied == 1 else 'edits'} applied"]
        if self.already:
            parts.append(f"{self.already} already made")
        if self.left_out:
            parts.append(f"{self.left_out} undone and left out")
        if self.not_applied:
            parts.append(f"{len(self.not_applied)} not possible")
        return ", ".join(parts)


def read_table(table: Any) -> pd.DataFrame:
    """Return a table of edits: a data frame, or a CSV or parquet file."""
    import pandas as pd

    if isinstance(table, (str, PathLike)):
        try:
            path = fspath(table)
            if path.lower().endswith(".parquet"):
                frame = pd.read_parquet(path)
            else:
                frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        except FileNotFoundError as error:
            raise InvalidInput(
                f"{fspath(table)} does not exist", argument="table", remedy="check the path"
            ) from error
        except ImportError as error:
            raise InvalidInput(
                f"{fspath(table)}: parquet needs pyarrow, which is not installed",
                argument="table",
                remedy=Install('"napari-agglo[parquet]"'),
            ) from error
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"{fspath(table)} cannot be read as a table ({error})",
                argument="table",
                remedy="pass a file of export(path, 'edits')",
            ) from error
    elif isinstance(table, pd.DataFrame):
        frame = table
    else:
        raise InvalidInput(
            f"`table` must be a data frame, or a CSV or parquet file, got {type(table).__name__}",
            argument="table",
            remedy="pass session.history.table(), or a file of export(path, 'edits')",
        )
    missing = [name for name in ("kind", "scale", "state", "details") if name not in frame.columns]
    if missing:
        raise InvalidInput(
            f"`table` is no table of edits: it has no column {' and no column '.join(missing)}",
            argument="table",
            remedy="pass session.history.table(), or a file of export(path, 'edits'), on the "
            "command line napari-agglo export SESSION edits -o edits.csv",
        )
    return frame


class OtherSuperpixels(InvalidInput):
    """A table of edits that was made on other superpixels than those of the session."""


def _check_superpixels(session: Session, frame: pd.DataFrame) -> None:
    """Refuse a table with the fingerprint of other superpixels; older tables have none."""
    if "superpixels" not in frame.columns:
        return
    here = session._store.manifest.superpixels
    known = [text for text in frame["superpixels"].tolist() if isinstance(text, str) and text]
    wrong = [text for text in dict.fromkeys(known) if not here.matches(text)]
    if wrong:
        raise OtherSuperpixels(
            f"`table` was made on other superpixels ({wrong[0]}) than those of the session "
            f"({here.text}), so that the same id may be another superpixel here",
            argument="table",
            remedy=(
                "apply it to a session of the same superpixels",
                SetOption("other_superpixels", True, when="to match them by id all the same"),
            ),
        )


class _NotPossible(Exception):
    """A row that cannot be made; its text is the reason."""


def apply_table(
    session: Session,
    table: Any,
    progress: ProgressCallback | None = None,
    *,
    other_superpixels: bool = False,
) -> AppliedTable:
    """Make the edits of a table again; see `Session.apply`."""
    check_progress(progress)
    frame = read_table(table)
    if not other_superpixels:
        _check_superpixels(session, frame)
    before = session.threshold
    applied = already = left_out = 0
    not_applied = []
    replay = _Replay(session)
    try:
        for k, row in enumerate(frame.to_dict("records")):
            report(progress, "edits", k, len(frame))
            if row["state"] == "undone":
                left_out += 1
                continue
            try:
                if replay.make(str(row["kind"]), row["scale"], _plain(_joined(row))):
                    applied += 1
                else:
                    already += 1
            except (_NotPossible, InvalidInput) as error:
                why = str(error)
                which = str(row.get("sequence", ""))
                one = NotApplied(k, str(row["kind"]), str(row.get("ids", "")), why, which)
                not_applied.append(one)
    finally:
        if not session.read_only:
            session.threshold = before
    return AppliedTable(applied, already, left_out, tuple(not_applied))


def _joined(row: Mapping[Any, Any]) -> Any:
    """Return the details of a row; those that are too long for a cell go on in further columns."""
    more = sorted(
        (int(name[8:]), text)
        for name, text in row.items()
        if re.fullmatch(r"details_\d+", str(name)) and isinstance(text, str)
    )
    first = row["details"]
    return first + "".join(text for _, text in more) if isinstance(first, str) else first


def _plain(details: Any) -> dict[str, Any]:
    try:
        plain = json.loads(details)
        for step in plain.get("steps", ()):
            for division in step.get("divisions", ()):
                division["runs"] = unpack_runs(division["runs"])
    except (AttributeError, KeyError, TypeError, ValueError):
        plain = None
    if not isinstance(plain, dict):
        missing = not isinstance(details, str) or not details.strip()
        state = "has no details" if missing else "has details that are not a JSON object"
        raise _NotPossible(f"the row {state}, so it is not known what it did")
    return plain


class _Replay:
    """The edits of a table, made again one by one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: Ids = {}  # of pieces of superpixels

    def make(self, kind: str, scale: Any, plain: Mapping[str, Any]) -> bool:
        """Make a row; return whether anything changed."""
        try:
            self._go_to(float(scale))
            if kind == "relearn":
                raise _NotPossible("a table has no policies; call relearn() instead")
            if "mark" in plain:
                return self._mark(plain["mark"])
            if "answer" in plain:
                return self._answer(kind, plain["answer"])
            if "superpixel" in plain:
                segment = self._segment(int(plain["superpixel"]))
                getattr(self._session, {"up": "up", "down": "down"}[kind])(segment)
                return True
            return any([self._step(step) for step in plain.get("steps", [])])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise _NotPossible(f"its details cannot be read ({error})") from error

    def _go_to(self, scale: float) -> None:
        """Set the threshold; the one before any merge is that of the hierarchy here."""
        before = is_before(scale) or not np.isfinite(scale)
        heights = self._session.history.unedited_tree.heights
        self._session.threshold = lowest_threshold(heights) if before else scale

    def _step(self, step: Mapping[str, Any]) -> bool:
        scale = step["scale"]
        self._go_to(-np.inf if scale is None else float(scale))
        kinds: dict[str, Callable[[Any, Mapping[str, Any]], bool]] = {
            "merge": self._merge, "cut": self._cut, "lock": self._lock, "unlock": self._unlock,
        }  # fmt: skip
        name = next(iter(kinds.keys() & step.keys()))
        return kinds[name](step[name], step)

    def _here(self, superpixel: Any) -> int:
        """Return the id that a superpixel, or a piece of one, has in this session."""
        return self._ids.get(int(superpixel), int(superpixel))

    def _dense(self, superpixels: Any) -> NDArray[np.int64]:
        """Return dense ids; refuse superpixels that this session does not have."""
        wanted = np.array([self._here(one) for one in superpixels], np.uint64)
        ids = self._session.graph.ids
        at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        wrong = wanted[ids[at] != wanted]
        if len(wrong):
            raise _NotPossible(f"there is no superpixel {int(wrong[0])} here")
        return at

    def _segments(self, superpixels: Any) -> NDArray[np.uint64]:
        """Return the segment of each superpixel at the threshold."""
        return np.asarray(self._session.lut()[self._dense(superpixels)], np.uint64)

    def _segment(self, superpixel: int) -> int:
        return int(self._segments([superpixel])[0])

    def _merge(self, pairs: Any, step: Mapping[str, Any]) -> bool:
        ends = self._segments([one for pair in pairs for one in pair]).reshape(-1, 2)
        changed = False
        for group in _groups(ends.tolist()):
            if len(group) > 1:
                self._session.merge(*group, force=True)
                changed = True
        return changed

    def _cut(self, parts: Any, step: Mapping[str, Any]) -> bool:
        divisions = step.get("divisions", [])
        if divisions and not all(self._is_divided(one) for one in divisions):
            return self._cut_through(parts, divisions)
        segments = [self._segments(part) for part in parts]
        changed = False
        for segment in np.unique(np.concatenate(segments)).tolist():
            groups = [
                [self._here(one) for one, at in zip(part, own.tolist(), strict=True)
                 if at == segment]
                for part, own in zip(parts, segments, strict=True)
            ]  # fmt: skip
            inside = [group for group in groups if group]
            if len(inside) < 2:
                continue
            members = self._session.segments.members(segment)
            if len(members) == sum(map(len, inside)):
                self._session.cut(segment, parts=inside)
            else:
                self._cut_around(segment, inside)
            changed = True
        return changed

    def _cut_around(self, segment: int, parts: list[list[int]]) -> None:
        """Cut a segment between parts; superpixels of no part go where they fit best."""
        try:
            self._session.cut(segment, seeds=parts, method="seeded")
        except InvalidInput as error:
            if error.argument != "seeds":
                raise
            raise _NotPossible(
                f"segment {segment} has other superpixels here, and cannot be cut so that each of "
                f"these parts stays together: {_parts_text(parts)}"
            ) from error

    def _cut_through(self, parts: Any, divisions: Any) -> bool:
        """Cut a segment through superpixels, into the same pieces of them."""
        first = self._dense([division["superpixel"] for division in divisions])
        segment = int(self._session.lut()[first[0]])
        pieces: Ids = {}
        self._session._do(_plan_cut_through, segment, parts, divisions, self._ids, pieces)
        self._ids |= pieces
        return True

    def _is_divided(self, division: Mapping[str, Any]) -> bool:
        """Return whether a superpixel is in these pieces already, by their ids and sizes."""
        runs = np.array(division["runs"], np.int64).reshape(-1, 2)
        sizes = np.bincount(runs[:, 0], runs[:, 1])[1:]
        try:
            at = self._dense(division["ids"])
        except _NotPossible:
            return False
        return np.array_equal(self._session.graph.sizes[at], sizes)

    def _lock(self, members: Any, step: Mapping[str, Any]) -> bool:
        segments = np.unique(self._segments(members))
        if len(segments) > 1 or len(self._session.segments.members(segments[0])) != len(members):
            raise _NotPossible("the segment has other superpixels now")
        if self._session.segments.is_locked(int(segments[0])):
            return False
        self._session.lock(int(segments[0]))
        return True

    def _unlock(self, superpixel: Any, step: Mapping[str, Any]) -> bool:
        segment = self._segment(superpixel)
        if not self._session.segments.is_locked(segment):
            return False
        self._session.unlock(segment)
        return True

    def _mark(self, mark: Mapping[str, Any]) -> bool:
        changes = {key: value for key, value in mark.items() if key != "segment"}
        segment = self._here(mark["segment"])
        now = self._session.marks.of(segment)
        if all(getattr(now, key) == value for key, value in changes.items()):
            return False
        self._session._mark(segment, **changes)
        return True

    def _answer(self, kind: str, answer: Mapping[str, Any]) -> bool:
        a, b = (self._here(one) for one in answer["pair"])
        first, second = self._segments(answer["pair"]).tolist()
        which = "false_merge" if first == second else "false_split"
        if answer["same"] is not None and answer["same"] != (which == "false_merge"):
            raise _NotPossible("the two are not as they were when the question was answered")
        segments = (first,) if first == second else (first, second)
        one = Suggestion(which, segments, (a, b), (0, 0), (), 0.0, 0.0, 0.0)  # type: ignore[arg-type]
        try:
            queue = self._session.queue
            queue.skip(one) if kind == "skip" else queue.reject(one)
        except Refused as error:
            if error.argument == "suggestion":
                return False
            raise
        return True


_FEW_LISTED = 6  # superpixels of a part, in a message


def _parts_text(parts: list[list[int]]) -> str:
    """Return parts of a cut in words.

    Examples
    --------
    >>> _parts_text([[1, 2], [3, 4, 5, 6, 7, 8, 9]])
    '1, 2 | 3, 4, 5, 6, 7, 8 and 1 more'
    """
    texts = []
    for part in parts:
        more = len(part) - _FEW_LISTED
        text = ", ".join(map(str, part[:_FEW_LISTED]))
        texts.append(f"{text} and {more} more" if more > 0 else text)
    return " | ".join(texts)


def _groups(pairs: list[list[int]]) -> Iterator[list[int]]:
    """Yield the segments that pairs connect, in the order of the pairs."""
    group_of: dict[int, list[int]] = {}
    for a, b in pairs:
        one, other = group_of.setdefault(a, [a]), group_of.setdefault(b, [b])
        if one is not other:
            one += other
            for segment in other:
                group_of[segment] = one
    for group in {id(group): group for group in group_of.values()}.values():
        yield list(dict.fromkeys(group))


def _plan_cut_through(
    view: View, segment: int, parts: Any, divisions: Any, known: Ids, pieces: Ids
) -> Plan:
    """Plan a cut into parts of which some are pieces of superpixels; `pieces` gets their ids."""
    target = find_unlocked(view, segment, "cut")
    state = view.state
    drawn: list[Division] = []
    runs = []
    try:
        for one in divisions:
            superpixel = known.get(int(one["superpixel"]), int(one["superpixel"]))
            at = int(np.searchsorted(state.graph.ids, np.uint64(superpixel)))
            start, stop = state.graph.boxes[at]
            try:
                labels = runs_to_pieces(one["runs"], (stop - start).tolist())
                division = divide(state.graph, at, labels)
            except InvalidInput:
                raise _NotPossible(f"superpixel {superpixel} is another one here") from None
            state.draw(division)
            drawn.append(division)
            runs.append(tuple(int(run) for run in one["runs"]))
            pairs = zip(one["ids"], state.graph.ids[division.members].tolist(), strict=True)
            pieces |= {int(old): int(new) for old, new in pairs}
        ids = state.graph.ids
        every = {**known, **pieces}
        dense = []
        for part in parts:
            wanted = np.array([every.get(int(one), int(one)) for one in part], np.uint64)
            at_part = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
            if (ids[at_part] != wanted).any():
                raise _NotPossible("its parts have superpixels that are not here")
            dense.append(as_ids(at_part))
        more = [division.members[1:] for division in drawn]
        members = as_ids(np.concatenate([target.members, *more]))
        if not np.array_equal(as_ids(np.concatenate(dense)), members):
            raise _NotPossible("the segment has other superpixels now")
    finally:
        for division in reversed(drawn):
            state.erase(division)
    return plan_parts(view, target, Parts(tuple(dense), tuple(drawn), tuple(runs)))
