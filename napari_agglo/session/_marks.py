"""Marks of segments, `session.marks`: a name, a comment, and whether a segment is reviewed.

Marks belong to segment ids. The mark of a segment that became part of another is kept, but does not
count: undo brings it back with its segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from napari_agglo.errors import InvalidInput, SetOption, is_whole
from napari_agglo.volumes import is_on_disk, mapped_labels

if TYPE_CHECKING:
    from napari_agglo.session._actions import Change
    from napari_agglo.session._session import Session

NEWER = "open the session with the version that wrote it, or a newer one"
_LONGEST = {"name": 200, "comment": 10_000}  # characters: a cell of a table, and a page


@dataclass(frozen=True)
class Mark:
    """The name of a segment, a comment on it, and whether it is reviewed.

    Attributes
    ----------
    name : str
        Empty if it has none.
    comment : str
        Empty if it has none.
    reviewed : bool
        Whether a person has reviewed the segment.
    """

    name: str = ""
    comment: str = ""
    reviewed: bool = False


@dataclass(frozen=True)
class MarkChange:
    """A change of the marks of a segment, for the journal; None leaves a mark as it is.

    Examples
    --------
    >>> MarkChange(7, name="axon").to_json()
    {'segment': 7, 'name': 'axon'}
    >>> MarkChange.from_json({"segment": 7, "reviewed": True})
    MarkChange(segment=7, name=None, comment=None, reviewed=True)
    """

    segment: int
    name: str | None = None
    comment: str | None = None
    reviewed: bool | None = None

    def __post_init__(self) -> None:
        if not (is_whole(self.segment) and self.segment >= 1):
            raise InvalidInput(
                f"`segment` must be the id of a segment, 1 or more, got {self.segment!r}",
                argument="segment",
                remedy="take an id of segments.ids()",
            )
        _check_text("name", self.name)
        _check_text("comment", self.comment)
        if self.reviewed is not None and not isinstance(self.reviewed, bool):
            raise InvalidInput(
                f"`reviewed` must be True or False, got {self.reviewed!r}",
                argument="reviewed",
                remedy=SetOption("reviewed", True),
            )
        if not self._changes():
            raise InvalidInput(
                "There is nothing to mark",
                argument="name",
                remedy="pass `name`, `comment` or `reviewed`",
            )

    def _changes(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(Mark)}
        return {name: value for name, value in values.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """Return the change as plain data."""
        return {"segment": int(self.segment), **self._changes()}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> MarkChange:
        """Return the change of the plain data of `to_json`."""
        unknown = plain.keys() - {field.name for field in fields(cls)}
        if unknown or "segment" not in plain:
            raise InvalidInput(
                f"The journal has an unknown mark: {dict(plain)!r:.200}",
                argument="mark",
                remedy=NEWER,
            )
        return cls(**plain)


@dataclass(frozen=True)
class Reviewed:
    """Progress of a review: segments reviewed, and left."""

    reviewed: int
    left: int

    def __str__(self) -> str:
        return f"{self.reviewed} of {self.reviewed + self.left} segments reviewed"


class Marks:
    """The marks of all segments; those without one have an empty `Mark`.

    Examples
    --------
    >>> marks = Marks()
    >>> undo = marks.apply(MarkChange(7, name="axon", reviewed=True))
    >>> marks[7]
    Mark(name='axon', comment='', reviewed=True)
    >>> print(marks.progress([7, 8, 9]))
    1 of 3 segments reviewed
    >>> _ = marks.apply(undo)
    >>> marks[7], len(marks)
    (Mark(name='', comment='', reviewed=False), 0)
    """

    def __init__(self) -> None:
        self._marks: dict[int, Mark] = {}

    def __getitem__(self, segment: int) -> Mark:
        return self._marks.get(int(segment), Mark())

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids of the segments that have a mark, ascending."""
        return iter(sorted(self._marks))

    def __len__(self) -> int:
        return len(self._marks)

    def apply(self, change: MarkChange) -> MarkChange:
        """Make a change and return its inverse."""
        before = self[change.segment]
        changes = change._changes()
        after = Mark(**{**vars(before), **changes})
        if after == Mark():
            self._marks.pop(int(change.segment), None)
        else:
            self._marks[int(change.segment)] = after
        return MarkChange(change.segment, **{name: getattr(before, name) for name in changes})

    def named(self, name: str) -> list[int]:
        """Return the segments of that name, ascending."""
        return [segment for segment in self if self._marks[segment].name == name]

    @property
    def reviewed(self) -> NDArray[np.uint64]:
        """The reviewed segments, ascending."""
        return np.array([one for one in self if self._marks[one].reviewed], np.uint64)

    def progress(self, segments: ArrayLike) -> Reviewed:
        """Count the reviewed among the present segments, each listed once."""
        present = np.asarray(segments, np.uint64)
        done = int(np.isin(self.reviewed, present).sum())
        return Reviewed(done, len(present) - done)


class Annotations:
    """The marks of a session, `session.marks`: names, comments, and what is reviewed.

    Every change is an action that can be undone.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def rename(self, segment: int, name: str) -> Change:
        """Name a segment; an empty name removes it.

        Parameters
        ----------
        segment : int
            A segment at the threshold.
        name : str
            The name; several segments may have the same one.

        Returns
        -------
        Change
            The action in words.

        Raises
        ------
        Refused
            If there is no such segment at the threshold; nothing changes.
        """
        return self._session._mark(segment, name=name)

    def comment(self, segment: int, comment: str) -> Change:
        """Comment on a segment; an empty comment removes it.

        Parameters
        ----------
        segment : int
            A segment at the threshold.
        comment : str
            Any text.

        Returns
        -------
        Change
            The action in words.

        Raises
        ------
        Refused
            If there is no such segment at the threshold; nothing changes.
        """
        return self._session._mark(segment, comment=comment)

    def review(self, segment: int, reviewed: bool = True) -> Change:
        """Mark a segment as reviewed, or as not reviewed.

        Parameters
        ----------
        segment : int
            A segment at the threshold.
        reviewed : bool
            Whether it counts as reviewed.

        Returns
        -------
        Change
            The action in words.

        Raises
        ------
        Refused
            If there is no such segment at the threshold; nothing changes.
        """
        return self._session._mark(segment, reviewed=reviewed)

    def of(self, segment: int) -> Mark:
        """Return the mark of a segment at the threshold.

        Parameters
        ----------
        segment : int
            A segment at the threshold.

        Returns
        -------
        Mark
            Its ``name``, ``comment`` and ``reviewed``; empty if it has none.

        Raises
        ------
        Refused
            If there is no such segment at the threshold.
        """
        with self._session._lock:
            return self._session._state.marks[self._session._find(segment).id]

    def all(self) -> dict[int, Mark]:
        """Return all marks by segment, also of segments of other thresholds.

        Returns
        -------
        dict of int to Mark
            By the ids of the segments, ascending.
        """
        with self._session._lock:
            marks = self._session._state.marks
            return {segment: marks[segment] for segment in marks}

    def named(self, name: str) -> list[int]:
        """Return the segments at the threshold that have this name, ascending.

        Parameters
        ----------
        name : str
            The name to look for.

        Returns
        -------
        list of int
            Ids of segments.
        """
        with self._session._lock:
            there = set(self._session.segments)
            return [one for one in self._session._state.marks.named(name) if one in there]

    def gold(self, index: Any = ...) -> Any:
        """Return the reviewed segments as a gold standard.

        The whole of a volume on disk is a `MappedLabels`, which is computed where it is sliced.

        It is partial: 0, not annotated, wherever the segment at the threshold is not reviewed. Pass
        it to `train` with the graph, or to another tool.

        Parameters
        ----------
        index : index of an array, optional
            The part to return, such as ``np.s_[10:20]``; by default the whole image.

        Returns
        -------
        ndarray of int
            The ids of the reviewed segments; 0 elsewhere.

        Raises
        ------
        InvalidInput
            If no segment is reviewed at the threshold.
        """
        with self._session._lock:
            reviewed = self._session._state.marks.reviewed
            kept = np.intersect1d(reviewed, self._session.segments.ids())
            if not len(kept):
                raise InvalidInput(
                    "No segment is reviewed at this threshold",
                    argument="reviewed",
                    remedy="mark segments as reviewed first: marks.review(segment)",
                )
            table = self._session._view.table()
            table = np.where(np.isin(table, kept), table, table.dtype.type(0))
            image: Any = self._session.graph.superpixels.image
            if index is Ellipsis and is_on_disk(image):
                return mapped_labels(image.view(), table)
            return np.asarray(table[image[index]])

    @property
    def progress(self) -> Reviewed:
        """Number of segments at the threshold that are reviewed, and of those that are left."""
        with self._session._lock:
            return self._session._state.marks.progress(self._session.segments.ids())


def _check_text(argument: str, text: str | None) -> None:
    if text is None:
        return
    if not isinstance(text, str):
        raise InvalidInput(
            f"`{argument}` must be text, got {text!r}",
            argument=argument,
            remedy=SetOption(argument, str(text)),
        )
    if len(text) > _LONGEST[argument]:
        raise InvalidInput(
            f"`{argument}` must be at most {_LONGEST[argument]} characters long, got {len(text)}",
            argument=argument,
            remedy="shorten it",
        )
    wrong = next((letter for letter in text if not _is_text(letter)), None)
    if wrong is not None or (argument == "name" and any(letter in "\n\r\t" for letter in text)):
        raise InvalidInput(
            f"`{argument}` must be plain text"
            f"{' on one line' if argument == 'name' else ''}, got {text!r:.80}",
            argument=argument,
            remedy="remove the control characters",
        )


def _is_text(letter: str) -> bool:
    """Return whether XML and UTF-8 can encode a character: no control code, no surrogate."""
    code = ord(letter)
    return letter in "\n\r\t" or (
        code >= 0x20 and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000
        and code not in (0xFFFE, 0xFFFF)
    )  # fmt: skip
