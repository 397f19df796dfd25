"""Registry of export kinds, and the targets that an export may be written to.

The decorator `exporter` makes a function an `Exporter`. The folder's ``__init__`` registers the
kinds of this folder; another package names its own in the entry point group
``napari_agglo.exports``. `Session.export`, the dock's menu and ``napari-agglo export`` read the
registry.
"""

from __future__ import annotations

import inspect
import os
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from napari_agglo._progress import ProgressCallback, check_progress
from napari_agglo._registry import Registry, named_errors
from napari_agglo.errors import InvalidInput, SetOption, is_whole
from napari_agglo.graph import RegionGraph
from napari_agglo.session._marks import Marks
from napari_agglo.session._store import check_path, holding_session
from napari_agglo.volumes import replacing
from napari_agglo.volumes._hdf5 import datasets

if TYPE_CHECKING:
    from napari_agglo.session._exports.csv_tables import EditRow, MergeRows


class ExportView(Protocol):
    """The data of a session that exports read: the segments at the threshold, edits, merges.

    Each value is computed when it is first used.
    """

    @property
    def graph(self) -> RegionGraph:
        """The superpixels as they are divided now, and their boundaries."""

    @property
    def lut(self) -> NDArray[np.uint64]:
        """The segment of each superpixel in the user's ids, shape (n + 1,); 0 for 0."""

    @property
    def threshold(self) -> float:
        """The scale of the segments."""

    @property
    def marks(self) -> Marks:
        """Names, comments and reviewed flags, by segment id."""

    @property
    def boundary_scores(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Pairs of segment ids that touch, shape (k, 2), and the policy's priority of each."""

    @property
    def edits(self) -> list[EditRow]:
        """All edits of the journal, oldest first."""

    @property
    def merges(self) -> MergeRows:
        """All merges at every scale, edits included."""


@dataclass(frozen=True)
class ExportOption:
    """An option of an export kind: a keyword-only parameter of its function."""

    name: str
    type: Any
    default: Any
    help: str = ""


@dataclass(frozen=True)
class Exporter:
    """A kind of export; made by `exporter`.

    Attributes
    ----------
    name : str
        The kind, as in ``session.export(path, name)``.
    label : str
        Text for menus.
    suffixes : tuple of str
        Suffixes of file names, the usual one first; none if a folder is written.
    write : callable
        The function that writes the file; see `exporter`.
    options : tuple of ExportOption
        Options of this kind.
    in_3d : bool
        Whether it needs a volume, with three axes: menus leave it out for others.
    """

    name: str
    label: str
    suffixes: tuple[str, ...]
    write: Callable[..., object]
    options: tuple[ExportOption, ...]
    in_3d: bool = False


exports: Registry[Exporter] = Registry(
    "napari_agglo.exports", "export kind", Exporter, made_by="the decorator exporter"
)
_SHARED = ("overwrite", "progress")  # parameters of a function that are no options


def exporter(
    name: str, *, label: str, suffixes: tuple[str, ...] = (), in_3d: bool = False
) -> Callable[[Callable[..., object]], Exporter]:
    """Return a decorator that makes a function an export kind.

    The function is called as ``write(view, path, **options)`` with an `ExportView` and a temporary
    path, which is renamed when the function returns: the target is complete or absent. A parameter
    `progress` gets the callback. A function with a parameter `overwrite` gets the target itself,
    and must write it completely or not at all. Its other keyword-only parameters are the options of
    the kind; ``Annotated[type, "help"]`` gives an option its help text.

    Parameters
    ----------
    name : str
        The kind.
    label : str
        Text for menus.
    suffixes : tuple of str
        Suffixes of file names, the usual one first.
    in_3d : bool
        Whether it needs a volume, with three axes.

    Returns
    -------
    callable
        The decorator; it returns an `Exporter`, which is registered.

    Examples
    --------
    >>> @exporter("sizes", label="Sizes of segments", suffixes=(".txt",))
    ... def export_sizes(view, path, *, least: Annotated[int, "Smallest size to list"] = 0):
    ...     sizes = np.bincount(view.lut[view.graph.superpixels.image].ravel())
    ...     path.write_text(" ".join(str(n) for n in sizes[1:] if n >= least))
    >>> export_sizes.options
    (ExportOption(name='least', type=<class 'int'>, default=0, help='Smallest size to list'),)
    """
    is_text: Any = isinstance(suffixes, str)
    if is_text or not all(isinstance(one, str) and one.startswith(".") for one in suffixes):
        raise InvalidInput(
            f"`suffixes` of the export kind {name!r} must be a tuple of suffixes, each with its "
            f"dot, got {suffixes!r}",
            argument="suffixes",
            remedy=SetOption("suffixes", (f".{str(suffixes).lstrip('.')}",) if is_text else ()),
        )

    def decorate(write: Callable[..., object]) -> Exporter:
        options = _options(write)
        for option in options:
            if option.default is not inspect.Parameter.empty:
                _check_default(name, option)
        return Exporter(name, label, tuple(suffixes), write, options, in_3d)

    return decorate


def _check_default(kind: str, option: ExportOption) -> None:
    """Refuse an option whose default is not of its type."""
    nouns = _types_needed(option, option.default)
    if nouns:
        raise InvalidInput(
            f"The option {option.name!r} of the export kind {kind!r} is declared as {nouns}, and "
            f"its default is {option.default!r:.40}",
            argument=option.name,
            remedy="declare the type of its default as well, such as int | None, or change the "
            "default",
        )


def _options(write: Callable[..., object]) -> tuple[ExportOption, ...]:
    parameters = inspect.signature(write).parameters.values()
    named = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in _SHARED]
    # Only the types of options are resolved: others may be imported for type checks only.
    namespace = {**getattr(write, "__globals__", {})}
    hints = get_type_hints(
        type("Options", (), {"__annotations__": {p.name: p.annotation for p in named}}),
        namespace,
        include_extras=True,
    )
    options = []
    for parameter in named:
        kind, help_ = hints[parameter.name], ""
        if get_origin(kind) is Annotated:
            kind, help_ = get_args(kind)[:2]
        options.append(ExportOption(parameter.name, kind, parameter.default, help_))
    return tuple(options)


def export_kinds() -> list[Exporter]:
    """Return every export kind, those of this package first.

    Returns
    -------
    list of Exporter
        Each with its ``name``, ``label``, ``suffixes`` and ``options``.

    Examples
    --------
    >>> from napari_agglo.session import export_kinds
    >>> [kind.name for kind in export_kinds()][:3]
    ['labels', 'gold', 'tree']
    """
    return exports.values()


def write_export(
    view: ExportView,
    path: str | PathLike[str],
    kind: str,
    *,
    overwrite: bool = False,
    progress: ProgressCallback | None = None,
    options: Mapping[str, Any],
) -> Path:
    """Write one kind of export, completely or not at all; see `Session.export`."""
    check_progress(progress)
    exporter = exports[kind]
    known = {option.name: option for option in exporter.options}
    for name, value in options.items():
        if name not in known:
            raise InvalidInput(
                f"An export of {kind} has no option {name!r}",
                argument=name,
                remedy=f"use {' or '.join(known)}" if known else "leave it out",
            )
        _check_type(kind, known[name], value)
    shared = {"overwrite": overwrite, "progress": progress}
    wanted = inspect.signature(exporter.write).parameters
    passed = {**options, **{name: shared[name] for name in _SHARED if name in wanted}}
    if "overwrite" in wanted:
        with named_errors("export kind", kind):
            exporter.write(view, path, **passed)
    else:
        with replacing(check_target(path, overwrite)) as temporary:
            with named_errors("export kind", kind):
                exporter.write(view, temporary, **passed)
            if not os.path.lexists(temporary):
                raise InvalidInput(
                    f"The export kind {kind!r} has written nothing to the path that it got",
                    argument="kind",
                    remedy="fix its function: it writes a file or folder at `path`",
                )
    return Path(path)


_Check = Callable[[object], bool]
_TYPES: dict[Any, tuple[str, _Check]] = {
    bool: ("True or False", lambda value: isinstance(value, (bool, np.bool_))),
    int: ("a whole number", is_whole),
    float: ("a number", lambda value: isinstance(value, Real) and not isinstance(value, bool)),
    str: ("text", lambda value: isinstance(value, str)),
    Path: ("a path", lambda value: isinstance(value, (str, os.PathLike))),
    type(None): ("None", lambda value: value is None),
}


def _types_needed(option: ExportOption, value: object) -> str:
    """Return the plain types of an option in words if a value has none of them."""
    is_union = get_origin(option.type) in (types.UnionType, Union)
    choices = get_args(option.type) if is_union else (option.type,)
    if not all(one in _TYPES for one in choices):
        return ""
    nouns, checks = zip(*(_TYPES[one] for one in choices), strict=True)
    return "" if any(check(value) for check in checks) else " or ".join(nouns)


def _check_type(kind: str, option: ExportOption, value: object) -> None:
    """Refuse a value that is not of the type of an option."""
    if nouns := _types_needed(option, value):
        has_default = option.default not in (inspect.Parameter.empty, None)
        raise InvalidInput(
            f"The option {option.name!r} of the export kind {kind!r} must be {nouns}, "
            f"got {value!r:.40}",
            argument=option.name,
            remedy=SetOption(option.name, option.default)
            if has_default
            else f"pass {nouns.partition(' or ')[0]}",
        )


_DATASET = re.compile(r"(?P<path>.+?\.(?:h5|hdf5|zarr)):(?P<key>.*)", re.IGNORECASE | re.DOTALL)


def check_target(
    path: str | PathLike[str], overwrite: bool, argument: str = "path", *, with_key: bool = False
) -> Path:
    """Return `path` if it may be written to.

    An existing file is refused unless `overwrite`. With `with_key`, the path may name a dataset of
    an HDF5 file, whose other datasets stay, or labels of an OME-Zarr image. Any path in a session
    folder is refused.
    """
    target, key = split_key(path, argument, with_key)
    session = holding_session(target)
    if session is not None:
        raise InvalidInput(
            f"`{argument}` must not be in a session folder, whose edits might be lost; {target} is "
            f"in {session}",
            argument=argument,
            remedy="choose another folder",
        )
    if not overwrite and os.path.lexists(target) and not (key and _is_new(target, key)):
        existing = f"{target}:{key}" if key and (target.is_dir() or datasets(target)) else target
        raise InvalidInput(
            f"{existing} exists already",
            argument=argument,
            remedy="choose another name, or pass overwrite=True",
        )
    return Path(os.fspath(path))


def split_key(path: str | PathLike[str], argument: str, with_key: bool) -> tuple[Path, str]:
    """Return the file, and the key of a dataset in it, if one is named."""
    text = check_path(path, "a file or folder to write", argument)
    match = _DATASET.fullmatch(text) if with_key else None
    if match is None:
        return Path(text), ""
    parts = [part for part in match["key"].split("/") if part not in ("", ".")]
    return Path(match["path"]), "/".join(parts)


def _is_new(target: Path, key: str) -> bool:
    """Return whether a file lacks a dataset, or a Zarr a group, which may then be added."""
    if target.is_dir():
        return not (target / key).exists()
    keys = datasets(target)
    return bool(keys) and key not in keys
