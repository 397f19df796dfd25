"""Recent sessions: a list of their folders, in a file beside the new ones."""

# In its own file: a list on the disk, without Qt.

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from napari_agglo.volumes import replacing

_FILE = "recent.json"
_MOST = 10


def recent_sessions(home: Path) -> list[Path]:
    """Return the folders of recent sessions that exist, the latest first.

    Parameters
    ----------
    home : Path
        The folder of new sessions, which has the list.

    Returns
    -------
    list of Path
        Empty if there is no list, or if it cannot be read.

    Examples
    --------
    >>> recent_sessions(Path("nowhere"))
    []
    """
    try:
        listed = json.loads((home / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    names = listed if isinstance(listed, list) else []
    paths = [Path(name) for name in names if isinstance(name, str)]
    return [path for path in paths if path.is_dir()]


def remember_session(home: Path, path: Path) -> None:
    """Put a session at the top of the list; without a place to write, the list stays as it is."""
    others = [one for one in recent_sessions(home) if one != path]
    names = [str(one) for one in (path, *others)][:_MOST]
    with suppress(OSError):  # a session in a place of its own needs no folder of new sessions
        home.mkdir(parents=True, exist_ok=True)
        with replacing(home / _FILE) as temporary:
            temporary.write_text(json.dumps(names, indent=1), encoding="utf-8")
