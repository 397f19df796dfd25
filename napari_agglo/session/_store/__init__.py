"""The session directory on disk: data, journal, lock; nothing acknowledged is lost."""

from napari_agglo.session._store._digest import Fingerprint
from napari_agglo.session._store._errors import (
    NotSaved,
    SessionDamage,
    SessionDamaged,
    SessionLocked,
)
from napari_agglo.session._store._folder import check_path, holding_session
from napari_agglo.session._store._lines import Record
from napari_agglo.session._store._report import Report
from napari_agglo.session._store._snapshots import Snapshot
from napari_agglo.session._store._store import Store

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
