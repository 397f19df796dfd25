"""Registries of policies, feature blocks, exports and cut methods, open to other packages.

A registry maps names to values. The package fills it as its modules are imported; another package
adds to it by an entry point in the registry's group, loaded when the registry is first listed or
asked for a name that it does not have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar, cast

from napari_agglo.errors import InvalidInput, did_you_mean

T = TypeVar("T")


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

    Examples
    --------
    >>> shapes: Registry[str] = Registry("napari_agglo.no_such_group", "shape")
    >>> shapes.register("round", "circle")
    'circle'
    >>> shapes["round"], shapes.names()
    ('circle', ('round',))
    >>> shapes["square"]
    Traceback (most recent call last):
    napari_agglo.errors.InvalidInput: There is no shape 'square'; use one of 'round'.
    """

    def __init__(self, group: str, noun: str, instance_of: type[T] | None = None) -> None:
        self.group = group
        self.noun = noun
        self._instance_of = instance_of
        self._values: dict[str, T] = {}
        self._pending: dict[str, EntryPoint] | None = None  # None: not searched yet

    def register(self, name: str, value: T) -> T:
        """Add a value; a name that is taken is refused."""
        if name in self._values:
            raise InvalidInput(
                f"There is a {self.noun} {name!r} already",
                argument="name",
                remedy="choose another name",
            )
        self._values[name] = value
        return value

    def register_modules(self, package: str, path: Iterable[str], *, first: str) -> None:
        """Import every module of a package, and register the instances in it by their `name`.

        So a new value is one new file. The module `first`, which has the default, leads the menus.
        """
        names = sorted(module.name for module in iter_modules(path))
        for name in sorted(names, key=lambda name: name != first):
            for value in vars(import_module(f"{package}.{name}")).values():
                if self._instance_of is not None and isinstance(value, self._instance_of):
                    self.register(value.name, value)  # type: ignore[attr-defined]

    def add(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers a function or class under `name`."""
        return lambda value: self.register(name, value)

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str) or name not in self._values:
            entry = self._entries().pop(name, None) if isinstance(name, str) else None
            if entry is None:
                names = ", ".join(map(repr, self.names()))
                raise InvalidInput(
                    f"There is no {self.noun} {name!r}{did_you_mean(name, self.names())}",
                    argument=self.noun,
                    remedy=f"use one of {names}" if names else "install the package that has it",
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
                warnings.warn(str(error), stacklevel=2)
        return values

    def package_of(self, name: str) -> str | None:
        """Return the package that adds a name by an entry point, as pip knows it."""
        for entry in declared_entry_points().select(group=self.group, name=name):
            return None if entry.dist is None else entry.dist.name
        return None

    def _entries(self) -> dict[str, EntryPoint]:
        if self._pending is None:
            self._pending = {}
            for entry in declared_entry_points().select(group=self.group):
                if entry.name in self._values or entry.name in self._pending:
                    warnings.warn(
                        f"{entry.value} is not used: there is a {self.noun} {entry.name!r} already",
                        stacklevel=3,
                    )
                else:
                    self._pending[entry.name] = entry
        return self._pending

    def _load(self, entry: EntryPoint) -> T:
        try:
            value: T = entry.load()
            if self._instance_of is not None and not isinstance(value, self._instance_of):
                raise TypeError(f"it is not a {self._instance_of.__name__}")
        except Exception as error:
            raise InvalidInput(
                f"The {self.noun} {entry.name!r} cannot be loaded from {entry.value}: {error}",
                argument=self.noun,
                remedy="fix or uninstall the package that defines it",
            ) from error
        return value
