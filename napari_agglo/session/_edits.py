"""What a user does, as values: plain data that say nothing of how the tree is repaired.

All ids are dense ids of superpixels. An edit is made at a scale; *where* it is made is said with
superpixels, which no later edit takes away, and not with segments, which come and go.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_agglo.errors import InvalidInput

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
    given = [int(superpixel) for superpixel in packed]
    ascend = all(a < b for a, b in pairwise(given))
    ids = np.array(given, np.int64)
    return _frozen(ids) if ascend else as_ids(ids)
