"""Exports of a session: files for people and other programs, each complete or absent, by kind.

Every module of this folder is imported, and each `Exporter` in it is registered: a new kind is one
new file.
"""

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

exports.register_modules(__name__, __path__, first="label_images")
