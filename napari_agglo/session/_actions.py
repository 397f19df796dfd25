"""Edits and actions as values for the journal, their words, and plans of them.

An edit says nothing of how the tree is repaired. All ids are dense ids of superpixels. An edit is
made at a scale; *where* it is made is given by superpixels, which no later edit takes away, and
not with segments, which come and go.

An action is one undoable thing that a user did. It holds everything that belongs to it, so that it
is there whole or not at all: the edits that make an override real, the division of superpixels, the
cut. Undoing one undoes it all.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo._typed_json import decode
from napari_agglo.errors import InvalidInput, Remedy, is_whole
from napari_agglo.graph import Division
from napari_agglo.session._marks import MarkChange

Ids = NDArray[np.int32]


def as_ids(superpixels: Iterable[int] | NDArray[Any]) -> Ids:
    """Return superpixels as a sorted array without repetitions.

    Examples
    --------
    >>> as_ids({5, 3, 4})
    array([3, 4, 5], dtype=int32)
    """
    if not isinstance(superpixels, np.ndarray):
        superpixels = np.fromiter(superpixels, np.int32)
    return _frozen(np.unique(superpixels))


def _frozen(ascending: NDArray[Any]) -> Ids:
    ids: Ids = ascending.astype(np.int32)
    ids.flags.writeable = False
    return ids


@dataclass(frozen=True)
class Merge:
    """Join, for each pair, the regions that hold its two superpixels at `scale`."""

    scale: float
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Cut:
    """Divide a segment at `scale` into `parts`, disjoint sets of superpixels.

    The part number `heir` goes on under the name of the whole; by default the largest.
    """

    scale: float
    parts: tuple[Ids, ...]
    heir: int | None = None


@dataclass(frozen=True, eq=False)
class Lock:
    """Keep a segment, seen at `scale`, whole and alone at every scale."""

    scale: float
    members: Ids


@dataclass(frozen=True)
class Unlock:
    """Let go of the lock that holds `superpixel`; at `scale` nothing changes."""

    scale: float
    superpixel: int


Edit = Merge | Cut | Lock | Unlock


@dataclass(frozen=True)
class Up:
    """Show, at `scale`, what the segment of `superpixel` becomes part of, in its place.

    `of` is the fingerprint of that segment: the move is of this one, and of no other that comes to
    be there by edits at other scales. Without one it is of any.
    """

    scale: float
    superpixel: int
    of: str = ""


@dataclass(frozen=True)
class Down:
    """Show, at `scale`, what the segment of `superpixel` was made of, in its place; see `Up`."""

    scale: float
    superpixel: int
    of: str = ""


Override = Up | Down  # of what is seen: neither constraint nor example


def fingerprint(members: Ids) -> str:
    """Return what a set of superpixels is known by."""
    return hashlib.blake2b(members.astype("<i4").tobytes(), digest_size=8).hexdigest()


def to_json(edit: Edit | Override) -> dict[str, Any]:
    """Return an edit as plain data for the journal.

    Examples
    --------
    >>> to_json(Merge(0.5, ((3, 8),)))
    {'edit': 'merge', 'scale': 0.5, 'pairs': [[3, 8]]}
    >>> from_json(to_json(Merge(0.5, ((3, 8),))))
    Merge(scale=0.5, pairs=((3, 8),))
    """
    plain: dict[str, Any] = {"edit": type(edit).__name__.lower(), "scale": edit.scale}
    if isinstance(edit, Merge):
        plain["pairs"] = [list(pair) for pair in edit.pairs]
    elif isinstance(edit, Cut):
        plain["parts"] = [_pack(part) for part in edit.parts]
        if edit.heir is not None:
            plain["heir"] = edit.heir
    elif isinstance(edit, Lock):
        plain["members"] = _pack(edit.members)
    else:
        plain["superpixel"] = edit.superpixel
        if isinstance(edit, (Up, Down)) and edit.of:
            plain["of"] = edit.of
    return plain


def from_json(plain: dict[str, Any]) -> Edit | Override:
    """Return the edit that `to_json` made plain data of."""
    try:
        scale = float(plain["scale"])
        match plain["edit"]:
            case "merge":
                return Merge(scale, tuple((int(a), int(b)) for a, b in plain["pairs"]))
            case "cut":
                return _cut(scale, plain)
            case "lock":
                return Lock(scale, _unpack(plain["members"]))
            case "unlock":
                return Unlock(scale, int(plain["superpixel"]))
            case "up":
                return Up(scale, int(plain["superpixel"]), str(plain.get("of", "")))
            case "down":
                return Down(scale, int(plain["superpixel"]), str(plain.get("of", "")))
            case other:
                raise InvalidInput(
                    f"The journal has an edit {other!r} that this version does not know; "
                    "open the session with the version that wrote it, or a newer one."
                )
    except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"An edit of the journal cannot be read: {plain!r:.200}.") from None


def _cut(scale: float, plain: dict[str, Any]) -> Cut:
    parts = tuple(_unpack(part) for part in plain["parts"])
    heir = plain.get("heir")
    if heir is not None and not 0 <= int(heir) < len(parts):
        raise ValueError(f"there is no part {heir!r}")
    return Cut(scale, parts, None if heir is None else int(heir))


# A list of a hundred thousand ids is 700 kB of digits, and takes longer to write than to make.
_LONG = 32


def _pack(ids: Ids) -> list[int] | str:
    """Ids as a list if they are few, else their differences, packed."""
    if len(ids) <= _LONG:
        return [int(superpixel) for superpixel in ids]
    steps = np.diff(ids, prepend=0).astype("<i4")
    return base64.b64encode(zlib.compress(steps.tobytes(), 1)).decode("ascii")


def _unpack(packed: list[int] | str) -> Ids:
    if isinstance(packed, str):
        steps = np.frombuffer(zlib.decompress(base64.b64decode(packed)), "<i4")
        ids = np.cumsum(steps, dtype=np.int64)
        # Ours ascend, and sorting them again is most of reading a long journal.
        return as_ids(ids) if (steps[1:] <= 0).any() else _frozen(ids)
    ids = np.array([int(superpixel) for superpixel in packed], np.int64)
    return _frozen(ids) if (ids[1:] > ids[:-1]).all() else as_ids(ids)


@dataclass(frozen=True, eq=False)
class Step:
    """One edit, and the superpixels that it divides, each with its pieces as run lengths.

    Each division is made on the graph after the one before.
    """

    edit: Edit
    divisions: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the step as plain data."""
        plain = to_json(self.edit)
        divisions = [{"superpixel": s, "runs": list(runs)} for s, runs in self.divisions]
        if len(divisions) == 1:
            plain["division"] = divisions[0]
        elif divisions:
            plain["divisions"] = divisions
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Step:
        """Return the step that `to_json` made plain data of."""
        edit = from_json(plain)
        if isinstance(edit, (Up, Down)):
            raise InvalidInput(f"An edit of the journal cannot be read: {plain!r:.200}.")
        listed = [plain["division"]] if "division" in plain else plain.get("divisions", [])
        divisions = []
        for division in listed:
            superpixel, runs = division["superpixel"], division["runs"]
            if not (isinstance(edit, Cut) and is_whole(superpixel) and all(map(is_whole, runs))):
                raise InvalidInput(f"A division of the journal cannot be read: {division!r:.200}.")
            divisions.append((int(superpixel), tuple(int(run) for run in runs)))
        return cls(edit, tuple(divisions))


@dataclass(frozen=True)
class Answer:
    """Answer to a suggestion: two superpixels (dense ids), and whether to merge them.

    `same` is True if they are one, False if they are two, and None if the question was skipped.
    """

    superpixels: tuple[int, int]
    same: bool | None


@dataclass(frozen=True, eq=False)
class Action:
    """One entry of the journal.

    Attributes
    ----------
    kind : str
        merge, cut, ...
    ids : tuple of int
        The user's ids of the segments it was made on, the first of them active.
    threshold : float
        Where it was made.
    steps : tuple of Step
        The edits, in order; more than one where something is made real first.
    override : Up or Down, optional
        What is moved along its branch.
    dropped : tuple of int
        Which overrides count no more, by their place among those that did.
    mark : MarkChange, optional
        Marks that are set on a segment.
    answer : Answer, optional
        The answer to a suggestion.
    examples : dict, optional
        Rows of features, and their labels, as they were when the edit was made.
    policy : dict, optional
        By which words the store knows the policy that was learned.
    """

    kind: str
    ids: tuple[int, ...]
    threshold: float
    steps: tuple[Step, ...] = ()
    override: Override | None = None
    dropped: tuple[int, ...] = ()
    mark: MarkChange | None = None
    answer: Answer | None = None
    examples: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None

    @property
    def words(self) -> str:
        """The action in words."""
        return KINDS[self.kind].words(self)

    @property
    def _where(self) -> str:
        return f"at {self.threshold:.6g}"

    @property
    def _others(self) -> str:
        return ", ".join(map(str, self.ids[1:]))

    def to_json(self) -> dict[str, Any]:
        """Return the action as plain data."""
        plain: dict[str, Any] = {
            "action": self.kind,
            "ids": [int(k) for k in self.ids],
            "threshold": float(self.threshold),
        }
        if self.steps:
            plain["steps"] = [step.to_json() for step in self.steps]
        if self.override is not None:
            plain["override"] = to_json(self.override)
        if self.dropped:
            plain["dropped"] = list(self.dropped)
        if self.mark is not None:
            plain["mark"] = self.mark.to_json()
        if self.answer is not None:
            plain["answer"] = {"pair": list(self.answer.superpixels), "same": self.answer.same}
        if self.examples is not None:
            plain["examples"] = self.examples
        if self.policy is not None:
            plain["policy"] = self.policy
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Action:
        """Return the action that `to_json` made plain data of."""
        kind = plain.get("action")
        known = KINDS[kind].fields | _FIELDS if isinstance(kind, str) and kind in KINDS else set()
        if plain.keys() - known:
            raise InvalidInput(
                f"The journal has an entry that this version does not know: {dict(plain)!r:.200}; "
                "open the session with the version that wrote it, or a newer one."
            )
        try:
            return cls(
                kind=plain["action"],
                ids=decode(_IDS, plain["ids"], "ids"),
                threshold=decode(float, plain["threshold"], "threshold"),
                steps=tuple(Step.from_json(step) for step in plain.get("steps", ())),
                override=_override(plain.get("override")),
                dropped=decode(_IDS, plain["dropped"], "dropped") if "dropped" in plain else (),
                mark=MarkChange.from_json(plain["mark"]) if "mark" in plain else None,
                answer=_answer(plain.get("answer")),
                examples=plain.get("examples"),
                policy=plain.get("policy"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"An entry of the journal cannot be read ({error}): {dict(plain)!r:.200}."
            ) from error


@dataclass(frozen=True, eq=False)
class Plan:
    """An action that may be done, as a planner returns it.

    Attributes
    ----------
    action : Action
        The entry of the journal.
    divisions : tuple of tuple of Division
        The divided superpixels of each step, if any are.
    notes : tuple of str
        Sentences for the user.
    where : ndarray of int, optional
        Superpixels whose segments the `Change` lists; without, those of the action.
    """

    action: Action
    divisions: tuple[tuple[Division, ...], ...] = ()
    notes: tuple[str, ...] = ()
    where: Ids | None = None


class Refused(InvalidInput):
    """An action that may not be done, with the reason and a remedy.

    Attributes
    ----------
    forceable : bool
        Whether ``force=True`` does it all the same.
    """

    def __init__(
        self,
        problem: str,
        *,
        argument: str | None = None,
        remedy: Remedy | str | None = None,
        forceable: bool = False,
    ) -> None:
        super().__init__(problem, argument=argument, remedy=remedy)
        self.forceable = forceable


@dataclass(frozen=True)
class Change:
    """The result of an action.

    Attributes
    ----------
    words : str
        The action in words.
    segments : tuple of int
        The segments that are there now where it was done, the one that kept its id first; none
        after undo or redo at another threshold.
    notes : tuple of str
        Further sentences for the user.
    """

    words: str
    segments: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([f"{self.words}.", *self.notes])


@dataclass(frozen=True)
class Kind:
    """A kind of action: its words, and the fields of its entry beside those of every entry."""

    words: Callable[[Action], str]
    fields: frozenset[str]


def _cut_words(action: Action) -> str:
    cut = action.steps[-1].edit
    assert isinstance(cut, Cut)
    n = sum(len(step.divisions) for step in action.steps)
    through = f" through {n} superpixels" if n > 1 else " through a superpixel" if n else ""
    return f"cut {action.ids[0]} into {len(cut.parts)} parts{through} {action._where}"


def _mark_words(action: Action) -> str:
    mark, segment = action.mark, action.ids[0]
    assert mark is not None
    words = []
    if mark.name is not None:
        words.append(f"named {segment} {mark.name!r}" if mark.name else f"unnamed {segment}")
    if mark.comment is not None:
        words.append(f"commented on {segment}")
    if mark.reviewed is not None:
        words.append(f"marked {segment} {'' if mark.reviewed else 'not '}reviewed")
    return "; ".join(words)


def _reject_words(action: Action) -> str:
    if action.answer is not None and action.answer.same:
        return f"confirmed {action.ids[0]}"
    return f"kept {action.ids[0]} and {action._others} apart"


_IDS = tuple[int, ...]
_FIELDS = frozenset(["action", "ids", "threshold"])
_EDIT = frozenset(["steps", "dropped", "examples"])
_ANSWER = frozenset(["answer", "examples"])
# The kinds of action. An entry of another kind, or with other fields, is of a newer version.
KINDS = {
    "merge": Kind(lambda a: f"merged {a._others} into {a.ids[0]} {a._where}", _EDIT),
    "cut": Kind(_cut_words, _EDIT),
    "lock": Kind(lambda a: f"locked {a.ids[0]} {a._where}", _EDIT),
    "unlock": Kind(lambda a: f"unlocked {a.ids[0]} {a._where}", _EDIT),
    "up": Kind(lambda a: f"moved {a.ids[0]} up its branch {a._where}", frozenset(["override"])),
    "down": Kind(lambda a: f"moved {a.ids[0]} down its branch {a._where}", frozenset(["override"])),
    "mark": Kind(_mark_words, frozenset(["mark"])),
    "reject": Kind(_reject_words, _ANSWER),
    "skip": Kind(lambda a: f"skipped a suggestion on {' and '.join(map(str, a.ids))}", _ANSWER),
    "relearn": Kind(lambda a: f"learned from the edits {a._where}", _EDIT | {"policy"}),
}


def _override(plain: Any) -> Override | None:
    if plain is None:
        return None
    override = from_json(plain)
    if not isinstance(override, (Up, Down)):
        raise InvalidInput(f"{plain!r:.80} is not a way along a branch")
    return override


def _answer(plain: Any) -> Answer | None:
    if plain is None:
        return None
    return Answer(
        decode(tuple[int, int], plain["pair"], "pair"), decode(bool | None, plain["same"], "same")
    )
