"""Registries of policies, feature blocks, exports and cut methods, open to other packages.

A registry maps names to values. The package fills it as its modules are imported; another package
adds to it by an entry point in the registry's group, loaded when the registry is first listed or
asked for a name that it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar, cast

from napari_agglo._data_warnings import warn_caller
from napari_agglo.errors import AggloError, DataWarning, InvalidInput, did_you_mean

T = TypeVar("T")
_PACKAGE = __name__.partition(".")[0]
_RAISED = "raised by the"


@cache
def declared_entry_points() -> EntryPoints:
    """Return the entry points of all installed packages, read once, as it takes 0.1 s."""
    # Before Python 3.12 it is of another class, with the same `select`.
    return cast(EntryPoints, entry_points())


class Registry(Generic[T]):
    """Values by name, of this package and of entry points.

    Parameters
    ----------
    group : str
        The group of entry points, such as ``napari_agglo.exports``.
    noun : str
        Name of one value in messages, such as ``export kind``.
    instance_of : type, optional
        Class that the values of entry points must be instances of.
    made_by : str
        How such a value is made, for messages, such as ``the decorator exporter``.
    accept : callable, optional
        Takes the name and the value of an entry point, and returns the value to keep; it raises an
        error with a message for a value that cannot be used.

    Examples
    --------
    >>> shapes: Registry[str] = Registry("napari_agglo.no_such_group", "shape")
    >>> shapes.register("round", "circle")
    'circle'
    >>> shapes["round"], shapes.names()
    ('circle', ('round',))
    >>> shapes["square"]
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: There is no shape 'square'; use one of 'round', or install a \
package with such an entry point in napari_agglo.no_such_group.
    """

    def __init__(
        self,
        group: str,
        noun: str,
        instance_of: type[T] | None = None,
        *,
        made_by: str = "",
        accept: Callable[[str, Any], T] | None = None,
    ) -> None:
        self.group = group
        self.noun = noun
        self._one = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
        self._instance_of = instance_of
        self._made_by = made_by
        self._accept = accept
        self._values: dict[str, T] = {}
        self._pending: dict[str, EntryPoint] | None = None  # None: not searched yet

    def register(self, name: str, value: T) -> T:
        """Add a value; a name that is taken is refused."""
        if name in self._values:
            raise InvalidInput(
                f"There is {self._one} {name!r} already",
                argument="name",
                remedy="choose another name",
            )
        self._values[name] = value
        return value

    def register_modules(self, package: str, path: Iterable[str], *, first: str = "") -> None:
        """Import every module of a package, and register the instances in it by their `name`.

        So a new value is one new file. The module `first`, which has the default, leads the menus.
        Values that are of no common class are registered by the decorator `add`, on import.
        """
        names = sorted(module.name for module in iter_modules(path))
        for name in sorted(names, key=lambda name: name != first):
            for value in list(vars(import_module(f"{package}.{name}")).values()):
                if self._instance_of is not None and isinstance(value, self._instance_of):
                    self.register(value.name, value)  # type: ignore[attr-defined]

    def add(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers a function or class under `name`."""
        return lambda value: self.register(name, value)

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str) or name not in self._values:
            entry = self._entries().get(name) if isinstance(name, str) else None
            if entry is None:
                names = ", ".join(map(repr, self.names()))
                elsewhere = f"install a package with such an entry point in {self.group}"
                raise InvalidInput(
                    f"There is no {self.noun} {name!r}{did_you_mean(name, self.names())}",
                    argument=self.noun,
                    remedy=f"use one of {names}, or {elsewhere}" if names else elsewhere,
                )
            self._values[name] = self._load(entry)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._entries()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> tuple[str, ...]:
        """Return every name, those of this package first, in order of registration."""
        return (*self._values, *(name for name in self._entries() if name not in self._values))

    def values(self) -> list[T]:
        """Return every value in the order of `names`; warn of those that cannot be loaded."""
        values = []
        for name in self.names():
            try:
                values.append(self[name])
            except InvalidInput as error:
                warn_caller(DataWarning(error.problem, argument=self.noun, remedy=error.remedy))
        return values

    def package_of(self, name: str) -> str | None:
        """Return the package that adds a name by an entry point, as pip knows it."""
        return next((package(one) for one in self._declared() if one.name == name), None)

    def entry_name(self, value: Any) -> str | None:
        """Return the name of the entry point that stands for a class or function, if there is one.

        The values are not loaded.
        """
        place = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', '')}"
        return next((one.name for one in self._declared() if _place(one) == place), None)

    def plugins(self) -> list[Plugin]:
        """Return the entry points of other packages in this group, each loaded to find problems."""
        plugins = []
        for entry in self._declared():
            problem = ""
            if self._entries().get(entry.name, entry) != entry or entry.name in self.own_names():
                problem = f"there is {self._one} of this name already: this one is not used"
            else:
                try:
                    _ = self[entry.name]
                except InvalidInput as error:
                    problem = str(error)
            plugins.append(Plugin(self.group, entry.name, entry.value, package(entry), problem))
        return plugins

    def _declared(self) -> EntryPoints:
        return declared_entry_points().select(group=self.group)

    def own_names(self) -> tuple[str, ...]:
        """Return the names that are not of an entry point."""
        return tuple(name for name in self._values if name not in self._entries())

    def _entries(self) -> dict[str, EntryPoint]:
        if self._pending is None:
            self._pending = {}
            for entry in self._declared():
                if entry.name in self._values or entry.name in self._pending:
                    problem = f"{entry.value} is not used: there is {self._one} {entry.name!r}"
                    remedy = "give its entry point another name"
                    warn_caller(DataWarning(problem, argument=self.noun, remedy=remedy))
                else:
                    self._pending[entry.name] = entry
        return self._pending

    def _load(self, entry: EntryPoint) -> T:
        try:
            value: Any = entry.load()
            if self._instance_of is not None and not isinstance(value, self._instance_of):
                made_by = f", made by {self._made_by}" if self._made_by else ""
                raise TypeError(
                    f"it must be of the class {self._instance_of.__name__}{made_by}, "
                    f"and is {_described(value)}"
                )
            name = getattr(value, "name", None) if self._instance_of is not None else None
            if isinstance(name, str) and name != entry.name:
                raise InvalidInput(
                    f"its name is {name!r}, and that of its entry point {entry.name!r}",
                    remedy="give both the same name",
                )
            kept: T = value if self._accept is None else self._accept(entry.name, value)
        except Exception as error:
            problem = error.problem if isinstance(error, InvalidInput) else _words(error)
            owner = package(entry)
            raise InvalidInput(
                f"The {self.noun} {entry.name!r} cannot be loaded from {entry.value}"
                f"{f' of the package {owner}' if owner else ''}: {problem}",
                argument=self.noun,
                remedy=getattr(error, "remedy", None)
                or "fix or uninstall the package that defines it",
            ) from error
        return kept


@dataclass(frozen=True)
class Plugin:
    """An entry point of another package: its group, name, place in the code, and problem if any."""

    group: str
    name: str
    value: str
    package: str | None
    problem: str = ""


@contextmanager
def named_errors(noun: str, name: str) -> Iterator[None]:
    """Add the name of a plug-in to errors of its code, so that no one takes them for ours.

    The command line prints the note.
    """
    try:
        yield
    except AggloError:
        raise
    except Exception as error:
        if not getattr(error, "__notes__", ()):
            error.add_note(f"{_RAISED} {noun} {name!r}")
        raise


def raised_by(error: BaseException) -> str | None:
    """Return the note of `named_errors` on an error; None if the error is not of a plug-in.

    Examples
    --------
    >>> try:
    ...     with named_errors("policy", "mine"):
    ...         1 / 0
    ... except ZeroDivisionError as error:
    ...     print(raised_by(error))
    raised by the policy 'mine'
    """
    notes = getattr(error, "__notes__", ())
    return next((note for note in notes if note.startswith(_RAISED)), None)


def misspelt_groups(known: Iterable[str]) -> list[Plugin]:
    """Return the entry points in groups that begin like ours and are not `known`."""
    groups = [*known]
    wrong = []
    declared = declared_entry_points()
    for entry in (one for group in declared.groups for one in declared.select(group=group)):
        first, _, rest = entry.group.replace("-", "_").partition(".")
        if first == _PACKAGE and rest and entry.group not in groups:
            problem = f"there is no group {entry.group!r}{did_you_mean(entry.group, groups)}"
            wrong.append(Plugin(entry.group, entry.name, entry.value, package(entry), problem))
    return wrong


def package(entry: EntryPoint) -> str | None:
    """Return the package of an entry point, as pip knows it."""
    return None if entry.dist is None else entry.dist.name


def _place(entry: EntryPoint) -> str:
    return entry.value.replace(" ", "").partition("[")[0]


def _words(error: Exception) -> str:
    """Return an error in words, with its class where the words alone say little."""
    plain = isinstance(error, (ImportError, TypeError))
    return str(error) if plain else f"{type(error).__name__}: {error}"


def _described(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = getattr(value, "__name__", None)
    return f"the {type(value).__name__} {name}" if name else f"of the class {type(value).__name__}"
