"""Exports of a session: files for people and other programs, each whole or absent, by kind.

Every module of this folder is imported, and each `Exporter` in it is registered: a new kind is one
new file.
"""

from importlib import import_module
from pkgutil import iter_modules

from napari_agglo.session._exports.export_kinds import (
    Exporter,
    ExportOption,
    ExportView,
    export_kinds,
    exporter,
    exports,
    write_export,
)

__all__ = [
    "ExportOption",
    "ExportView",
    "Exporter",
    "export_kinds",
    "exporter",
    "exports",
    "write_export",
]

_names = sorted(
    (module.name for module in iter_modules(__path__)), key=lambda n: (n != "labels", n)
)
for _name in _names:  # labels first: the default kind leads the menus
    for _value in vars(import_module(f"{__name__}.{_name}")).values():
        if isinstance(_value, Exporter):
            exports.register(_value.name, _value)
