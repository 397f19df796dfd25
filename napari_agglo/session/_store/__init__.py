"""The session directory on disk: data, journal, lock; nothing acknowledged is lost."""

from napari_agglo.session._store.create import check_path, holding_session
from napari_agglo.session._store.journal import Record
from napari_agglo.session._store.manifest import Fingerprint
from napari_agglo.session._store.snapshot import Snapshot
from napari_agglo.session._store.store import Store
from napari_agglo.session._store.store_errors import (
    NotSaved,
    Report,
    SessionDamage,
    SessionDamaged,
    SessionLocked,
)

__all__ = [
    "Fingerprint",
    "NotSaved",
    "Record",
    "Report",
    "SessionDamage",
    "SessionDamaged",
    "SessionLocked",
    "Snapshot",
    "Store",
    "check_path",
    "holding_session",
]
