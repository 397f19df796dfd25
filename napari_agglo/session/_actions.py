"""Edits and actions as values for the journal, their descriptions, and plans of them.

An edit is made at a scale, on segments that are given by superpixels (dense ids): a superpixel
stays through later edits, a segment may not.

An action is the unit of undo: a cut, for example, with the divisions of superpixels and the edits
that make an override real.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_agglo._typed_json import decode
from napari_agglo.agglomeration import threshold_phrase
from napari_agglo.errors import InvalidInput, Remedy, is_whole
from napari_agglo.graph import Division
from napari_agglo.session._marks import NEWER, MarkChange

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
    frozen = superpixels.dtype == np.int32 and not superpixels.flags.writeable
    if frozen and (superpixels[1:] > superpixels[:-1]).all():  # as those of a tree
        return superpixels
    return _frozen(np.unique(superpixels))


def _frozen(ascending: NDArray[Any]) -> Ids:
    ids: Ids = ascending.astype(np.int32, copy=False)
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

    Part number `heir`, by default the largest, keeps the name of the segment.
    """

    scale: float
    parts: tuple[Ids, ...]
    heir: int | None = None


@dataclass(frozen=True, eq=False)
class Lock:
    """Keep a segment of `scale` whole and alone at every scale."""

    scale: float
    members: Ids


@dataclass(frozen=True)
class Unlock:
    """Remove the lock on the segment of `superpixel`; at `scale` nothing changes."""

    scale: float
    superpixel: int


Edit = Merge | Cut | Lock | Unlock


@dataclass(frozen=True)
class Override:
    """Show, at `scale`, the parent (up) or the children (down) of a segment in its place.

    The segment is that of `superpixel`. `of` is its fingerprint: the override does not apply to
    another segment that edits at other scales put there. Without `of` it applies to any. The view
    alone changes: an override is neither a constraint nor an example.
    """

    direction: Literal["up", "down"]
    scale: float
    superpixel: int
    of: str = ""


def fingerprint(members: Ids) -> str:
    """Return a checksum of a set of superpixels."""
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
    kind = edit.direction if isinstance(edit, Override) else type(edit).__name__.lower()
    plain: dict[str, Any] = {"edit": kind, "scale": edit.scale}
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
        if isinstance(edit, Override) and edit.of:
            plain["of"] = edit.of
    return plain


def from_json(plain: dict[str, Any]) -> Edit | Override:
    """Return the edit of the plain data of `to_json`."""
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
            case "up" | "down" as way:
                return Override(way, scale, int(plain["superpixel"]), str(plain.get("of", "")))
            case other:
                raise InvalidInput(
                    f"The journal has an unknown edit {other!r}", argument="edit", remedy=NEWER
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


_LONG = 32  # ids; more are compressed, as a hundred thousand are 700 kB of digits


def _pack(ids: Ids) -> list[int] | str:
    """Return a few ids as a list, many as their differences, compressed."""
    if len(ids) <= _LONG:
        return [int(superpixel) for superpixel in ids]
    steps = np.diff(ids, prepend=0).astype("<i4")
    return base64.b64encode(zlib.compress(steps.tobytes(), 1)).decode("ascii")


def _unpack(packed: list[int] | str) -> Ids:
    ids: Any
    if isinstance(packed, str):
        steps = np.frombuffer(zlib.decompress(binascii.a2b_base64(packed)), "<i4")
        ids = steps.cumsum(dtype=np.int64)
        if steps[1:].min(initial=1) < 1:  # to sort always would take long in a long journal
            ids = np.unique(ids)
    else:
        ids = sorted({int(superpixel) for superpixel in packed})
    if len(ids) and not 0 < ids[0] <= ids[-1] < 2**31:
        raise ValueError("ids are out of range")
    return _frozen(np.array(ids, np.int32))


@dataclass(frozen=True, eq=False)
class Step:
    """One edit, and the superpixels that it divides, in order, with their pieces as run lengths."""

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
        """Return the step of the plain data of `to_json`."""
        edit = from_json(plain)
        if isinstance(edit, Override):
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
    """Answer to a suggestion: two superpixels (dense ids), and whether they are of one object."""

    superpixels: tuple[int, int]
    same: bool | None  # None if the suggestion was skipped


@dataclass(frozen=True, eq=False)
class Action:
    """One entry of the journal."""

    kind: str  # one of `KINDS`
    ids: tuple[int, ...]  # the user's ids of its segments, the active one first
    threshold: float  # at which it was made
    steps: tuple[Step, ...] = ()  # the edits, in order; overrides are made real first
    override: Override | None = None
    dropped: tuple[int, ...] = ()  # overrides that it replaces, by index
    mark: MarkChange | None = None
    answer: Answer | None = None
    examples: dict[str, Any] | None = None  # features and labels at the time of the edit
    policy: dict[str, Any] | None = None  # reference to the policy that was learned

    @property
    def words(self) -> str:
        """The action in words."""
        return KINDS[self.kind].words(self)

    @property
    def is_edit(self) -> bool:
        """Whether the action is about segments, not a mark or an answer alone."""
        return self.kind not in ("mark", "reject", "skip")

    @property
    def _where(self) -> str:
        return threshold_phrase(self.threshold)

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
        answer = self.answer
        optional = {
            "steps": [step.to_json() for step in self.steps],
            "override": self.override and to_json(self.override),
            "dropped": list(self.dropped),
            "mark": self.mark and self.mark.to_json(),
            "answer": answer and {"pair": list(answer.superpixels), "same": answer.same},
            "examples": self.examples,
            "policy": self.policy,
        }
        return plain | {name: value for name, value in optional.items() if value}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Action:
        """Return the action of the plain data of `to_json`."""
        kind = plain.get("action")
        known = KINDS[kind].fields if isinstance(kind, str) and kind in KINDS else frozenset()
        if not plain.keys() <= known:
            raise InvalidInput(
                f"The journal has an unknown entry: {dict(plain)!r:.200}",
                argument="entry",
                remedy=NEWER,
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
    """An action that a planner allows."""

    action: Action
    divisions: tuple[tuple[Division, ...], ...] = ()  # of superpixels, by step, if any
    notes: tuple[str, ...] = ()  # sentences for the user
    where: Ids | None = None  # superpixels whose segments the `Change` lists; else its `ids`


class Refused(InvalidInput):
    """An action that is not allowed, with the reason and a remedy.

    Parameters
    ----------
    problem : str
        The reason.
    argument : str, optional
        The argument that is the cause.
    remedy : Remedy, str or tuple of these, optional
        The action that helps.
    forceable : bool
        Whether ``force=True`` allows it.

    Attributes
    ----------
    forceable : bool
        Whether ``force=True`` allows it.
    """

    def __init__(
        self,
        problem: str,
        *,
        argument: str | None = None,
        remedy: Remedy | str | tuple[Remedy | str, ...] | None = None,
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
        The resulting segments, the one that kept its id first; none after undo or redo at another
        threshold.
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
    """A kind of action: its description, and the fields that its entries may have."""

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
_EDIT = _FIELDS | {"steps", "dropped", "examples"}
_ANSWER = _FIELDS | {"answer", "examples"}
# The kinds of action. An entry of another kind, or with other fields, is of a newer version.
KINDS = {
    "start": Kind(lambda a: "started from the segments of another tool", _EDIT),
    "merge": Kind(lambda a: f"merged {a._others} into {a.ids[0]} {a._where}", _EDIT),
    "cut": Kind(_cut_words, _EDIT),
    "lock": Kind(lambda a: f"locked {a.ids[0]} {a._where}", _EDIT),
    "unlock": Kind(lambda a: f"unlocked {a.ids[0]} {a._where}", _EDIT),
    "up": Kind(lambda a: f"moved {a.ids[0]} up its branch {a._where}", _FIELDS | {"override"}),
    "down": Kind(lambda a: f"moved {a.ids[0]} down its branch {a._where}", _FIELDS | {"override"}),
    "mark": Kind(_mark_words, _FIELDS | {"mark"}),
    "reject": Kind(_reject_words, _ANSWER),
    "skip": Kind(lambda a: f"skipped a suggestion on {' and '.join(map(str, a.ids))}", _ANSWER),
    "relearn": Kind(lambda a: f"learned from the edits {a._where}", _EDIT | {"policy"}),
}


def _override(plain: Any) -> Override | None:
    if plain is None:
        return None
    override = from_json(plain)
    if not isinstance(override, Override):
        raise InvalidInput(f"{plain!r:.80} is not an override")
    return override


def _answer(plain: Any) -> Answer | None:
    if plain is None:
        return None
    return Answer(
        decode(tuple[int, int], plain["pair"], "pair"), decode(bool | None, plain["same"], "same")
    )
