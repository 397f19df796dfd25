"""What a user did in one go, as a value: what the journal keeps, and says in words.

An action holds everything that belongs to it, so that it is there whole or not at all: the edits
that make real what was only seen, the division of superpixels, the cut. Undoing one undoes it all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from napari_agglo._decode import decode
from napari_agglo.errors import InvalidInput, is_whole
from napari_agglo.session._annotations import MarkChange
from napari_agglo.session._edits import Cut, Down, Edit, Override, Up, from_json, to_json


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
        said = [{"superpixel": s, "runs": list(runs)} for s, runs in self.divisions]
        if len(said) == 1:
            plain["division"] = said[0]
        elif said:
            plain["divisions"] = said
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Step:
        """Return the step that `to_json` made plain data of."""
        edit = from_json(plain)
        if isinstance(edit, (Up, Down)):
            raise InvalidInput(f"An edit of the journal cannot be read: {plain!r:.200}.")
        said = [plain["division"]] if "division" in plain else plain.get("divisions", [])
        divisions = []
        for division in said:
            superpixel, runs = division["superpixel"], division["runs"]
            if not (isinstance(edit, Cut) and is_whole(superpixel) and all(map(is_whole, runs))):
                raise InvalidInput(f"A division of the journal cannot be read: {division!r:.200}.")
            divisions.append((int(superpixel), tuple(int(run) for run in runs)))
        return cls(edit, tuple(divisions))


@dataclass(frozen=True)
class Answer:
    """What a person said to a suggestion: two superpixels (dense ids), and whether to merge them.

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
        What is said of a segment.
    answer : Answer, optional
        What was said to a suggestion.
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
        """Say in words what was done."""
        first = self.ids[0] if self.ids else ""
        at = f" at {self.threshold:.6g}"
        others = ", ".join(map(str, self.ids[1:]))
        match self.kind:
            case "merge":
                return f"merged {others} into {first}{at}"
            case "cut":
                parts = self.steps[-1].edit
                assert isinstance(parts, Cut)
                n = sum(len(step.divisions) for step in self.steps)
                inside = "" if n == 0 else f" through {n} superpixels" if n > 1 else _THROUGH
                return f"cut {first} into {len(parts.parts)} parts{inside}{at}"
            case "up" | "down":
                return f"moved {first} {self.kind} its branch{at}"
            case "mark" if self.mark is not None:
                said = self.mark.to_json()
                said.pop("segment")
                return "; ".join(_MARKED[name](value, first) for name, value in said.items())
            case "reject":
                same = self.answer is not None and self.answer.same
                return f"confirmed {first}" if same else f"kept {first} and {others} apart"
            case "skip":
                return f"skipped a suggestion on {' and '.join(map(str, self.ids))}"
            case "relearn":
                return f"learned from the edits{at}"
        return f"{self.kind}ed {first}{at}"

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
        unknown = plain.keys() - _FIELDS
        if unknown or plain.get("action") not in KINDS:
            raise InvalidInput(
                f"The journal has an entry that this version does not know: {dict(plain)!r:.200}; "
                "open the session with the version that wrote it, or a newer one."
            )
        try:
            return cls(
                kind=plain["action"],
                ids=decode(tuple[int, ...], plain["ids"], "ids"),
                threshold=decode(float, plain["threshold"], "threshold"),
                steps=tuple(Step.from_json(step) for step in plain.get("steps", ())),
                override=_override(plain.get("override")),
                dropped=decode(tuple[int, ...], plain.get("dropped", []), "dropped"),
                mark=MarkChange.from_json(plain["mark"]) if "mark" in plain else None,
                answer=_answer(plain.get("answer")),
                examples=plain.get("examples"),
                policy=plain.get("policy"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"An entry of the journal cannot be read ({error}): {dict(plain)!r:.200}."
            ) from error


_THROUGH = " through a superpixel"
KINDS = frozenset(
    ["merge", "cut", "lock", "unlock", "up", "down", "mark", "reject", "skip", "relearn"]
)
_FIELDS = frozenset(
    ["action", "ids", "threshold", "steps", "override", "dropped", "mark", "answer", "examples"]
) | {"policy"}
_MARKED = {
    "name": lambda said, segment: f"named {segment} {said!r}" if said else f"unnamed {segment}",
    "comment": lambda said, segment: f"commented on {segment}",
    "reviewed": lambda said, segment: f"marked {segment} {'' if said else 'not '}reviewed",
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
