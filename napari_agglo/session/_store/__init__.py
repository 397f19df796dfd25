"""The session directory on disk: data, journal, lock; no acknowledged edit is lost."""

from napari_agglo.session._store.create import check_path, holding_session
from napari_agglo.session._store.sources import SessionSources, Source
from napari_agglo.session._store.store import Store
from napari_agglo.session._store.store_errors import (
    NotSaved,
    PackageMissing,
    Report,
    SessionDamage,
    SessionDamaged,
    SessionLocked,
)

__all__ = [
    "NotSaved",
    "PackageMissing",
    "Report",
    "SessionDamage",
    "SessionDamaged",
    "SessionLocked",
    "SessionSources",
    "Source",
    "Store",
    "check_path",
    "holding_session",
]
